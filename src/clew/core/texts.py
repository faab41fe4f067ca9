"""Untrusted text: repair invalid characters, hide terminal commands, and parse JSON and TOML.

Input too deep or too large for the parsers raises the same errors as any other invalid input.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clew.core.errors import InputError, SourceError

if TYPE_CHECKING:  # slow to import, and many commands do without
    from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound="BaseModel")

MOST_ASKED = 10_000
"""Maximum length of a question or a search text, in characters."""
REPLACEMENT = "\ufffd"
OPAQUE = re.compile(r"[a-z]\.[0-9a-z_]{3,}|_:\S+|[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{20,}")
"""Machine-made names: blank nodes and identifiers."""
_HALVES = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
"""Characters that change the direction of the surrounding text."""
_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control character → its visible symbol, such as ␛ for ESC."""


def whole_text(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text if text.isascii() else _HALVES.sub(REPLACEMENT, text)


def whole_value(value: Any) -> Any:
    """Replace lone surrogates in all texts of a JSON value."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(str(name)): whole_value(inner) for name, inner in value.items()}
    return [whole_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def asked_text(text: str, what: str = "question") -> str:
    """Return user input without control characters. Raise InputError if it is longer than `MOST_ASKED`."""
    if len(text) > MOST_ASKED:
        raise InputError(f"the {what} has {len(text):,} characters: shorten it to at most {MOST_ASKED:,}")
    return _CONTROL.sub(" ", _DIRECTIONS.sub(" ", whole_text(text)))


def shown_json(text: str) -> str:
    """Escape the characters of a JSON text that a terminal would obey. The value stays the same."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_text(text: str) -> str:
    """Replace the characters of a text that a terminal would obey by visible symbols."""
    if _CONTROL.search(text) is None and (text.isascii() or not _DIRECTIONS.search(text)):
        return whole_text(text)
    seen = _CONTROL.sub(lambda found: chr(_PICTURES.get(ord(found[0]), 0xFFFD)), text)
    return whole_text(_DIRECTIONS.sub(REPLACEMENT, seen))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raise JSONDecodeError for any invalid input, including deep nesting and huge numbers."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None
    except ValueError:
        raise json.JSONDecodeError("a number has too many digits", "", 0) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raise TOMLDecodeError for any invalid input."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
    except ValueError:
        raise tomllib.TOMLDecodeError("a number has too many digits") from None


def read_toml(file: Path, model: type[M], otherwise: str) -> M:
    """Parse and validate a TOML file. Raise SourceError without quoting values, since a value may be a secret key."""
    from pydantic import ValidationError

    try:
        return model.model_validate(parse_toml(file.read_text("utf-8")))
    except ValidationError as failure:
        raise SourceError(f"{otherwise}: {what_is_wrong(failure)}", file=file) from None
    except (OSError, ValueError) as failure:  # undecodable, or invalid TOML
        raise SourceError(f"invalid TOML: {failure}", file=file) from None


def read_json_lines(file: Path, model: type[M], expected: str) -> list[M]:
    """Parse and validate a file of JSON lines. Skip blank lines. Raise SourceError with an invalid line's number."""
    from pydantic import ValidationError

    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as failure:
        raise SourceError(f"cannot be read: {failure}", file=file) from failure
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows += [model.model_validate_json(line)] if line.strip() else []
        except ValidationError as failure:
            raise SourceError(f"expected {expected}: {failure}", file=file, line=number) from failure
    return rows


def what_is_wrong(failure: ValidationError, whole: str = "", limit: int | None = None) -> str:
    """List the first validation errors with their locations. An error without a location is about the `whole`."""
    errors = failure.errors()[:limit]
    return "; ".join(f"{'.'.join(map(str, error['loc'])) or whole}: {error['msg']}" for error in errors)
