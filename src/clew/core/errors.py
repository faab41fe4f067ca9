"""All errors that Clew raises on purpose.

Every message names the problem, quotes the bad value and suggests a fix.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class ClewError(Exception):
    """Base class of errors shown to the user. The command line exits with `exit_code`."""

    exit_code = 1  # any failure

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without calling `__init__`, whose parameters differ from `args` in subclasses."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[ClewError], args: tuple[object, ...]) -> ClewError:
    return kind.__new__(kind, *args)


class InputError(ClewError):
    """The caller's input is wrong."""

    exit_code = 2  # as for wrong options of the command line


class SourceError(InputError):
    """A source file is invalid. Names the file and, if known, the line."""

    def __init__(self, message: str, *, file: str | Path | None = None, line: int | None = None) -> None:
        self.file = None if file is None else str(file)
        self.line = line
        place = "" if self.file is None else f"{self.file}{'' if line is None else f', line {line}'}: "
        super().__init__(place + message)


class NotFoundError(InputError):
    """A requested name does not exist."""


class SchemaError(InputError):
    """A schema file, or a query, does not fit the knowledge base."""


class StorageError(ClewError):
    """A knowledge-base folder cannot be read or written."""


class QueryRefusedError(StorageError):
    """An endpoint rejects the query."""


class CorruptError(StorageError):
    """A file of a knowledge base was cut or altered."""


class FormatError(StorageError):
    """This version cannot read the format of the knowledge base."""


class LockedError(StorageError):
    """Another process is writing the same knowledge base."""


class ModelError(ClewError):
    """A language model or an embedder could not be used."""


class ReplyError(ModelError):
    """A model's reply could not be parsed as the requested type."""


class BudgetError(ModelError):
    """A cap on dollars, tokens, calls or seconds was reached."""


class AccessError(ModelError):
    """A server denies access to the model: wrong or missing key, or unknown model or address."""


class OutageError(ModelError):
    """A server cannot be reached, or sends no usable reply."""


class PendingError(ModelError):
    """Requests were written to a batch, and their replies are pending."""


class EmbedderMismatch(InputError):  # noqa: N818 - a state, not a failure
    """The base contains vectors of another embedder."""


class UntrustedEmbedder(EmbedderMismatch):
    """A base names a host or folder for its embedder that the user has not approved."""


class WorkerError(ClewError):
    """Workers are missing, differ from this installation, or keep ending."""


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'clew-kb[{extra}]'")


@contextmanager
def needing(extra: str, package: str | None = None) -> Iterator[None]:
    """Turn an ImportError inside the block into an error that names the extra to install."""
    try:
        yield
    except ImportError as missing:
        raise MissingExtraError(package or missing.name or extra, extra) from missing
