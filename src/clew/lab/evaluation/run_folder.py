"""Run folders: `run.json` has the setup, `answers.jsonl` gets one line per question and survives a kill."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from clew.answering.methods.protocol import Method
from clew.answering.reading import reader_version
from clew.core.disk import BINARY, hold, refuse_foreign, write_whole
from clew.core.errors import CorruptError, InputError, LockedError, NotFoundError, StorageError
from clew.core.texts import parse_json
from clew.core.version import __version__
from clew.lab.datasets.questions import Dataset, Kind, Match
from clew.lab.evaluation.rows import QuestionRow
from clew.store.graph.manifest import learned_digests
from clew.store.open_base import OpenBase


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The configuration of a run. Runs with equal setups answer the same questions in the same way."""

    dataset: str
    split: str | None
    portion: str
    kind: Kind
    match: Match = "strict"
    n: int
    questions: str
    """Digest of the questions and their gold answers."""
    method: str
    parameters: Mapping[str, Any]
    model: str = "none"
    base: str = ""
    per_question: bool = False
    version: str = __version__

    @classmethod
    def of(cls, dataset: Dataset, method: str, parameters: Mapping[str, Any], **more: Any) -> Setup:
        """Build the setup of one method on one data set. `more` are further fields."""
        asked = [(q.id, q.text, q.answers, q.passages, dict(q.aliases)) for q in dataset.questions]
        return cls(
            dataset=dataset.name,
            split=dataset.split,
            portion=dataset.portion,
            kind=dataset.kind,
            n=len(asked),
            questions=hashlib.sha256(json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16],
            method=method,
            parameters=parameters,
            **more,
        )

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values that survive a JSON round trip."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Setup:
        """Parse the setup of a run folder."""
        return cls(**{part.name: raw[part.name] for part in fields(cls)})

    def folder_name(self) -> str:
        """Return the run's path below the output folder: data set, then method and model."""
        dataset = f"{self.dataset}-{self.split}" if self.split else self.dataset
        method = self.method if self.model == "none" else f"{self.method}-{self.model}"
        return f"{_plain(dataset)}/{_plain(method)}"

    def refuse(self, other: Setup, folder: object) -> None:
        """Raise InputError if the setups differ, because their answers must not be mixed."""
        ours, theirs = self.to_json(), other.to_json()
        different = [f"{name} is {theirs[name]!r}, not {ours[name]!r}" for name in ours if ours[name] != theirs[name]]
        if different:
            raise InputError(
                f"{folder} holds another run ({'; '.join(different)}): choose another --out, or remove the folder"
            )


def identity(method: Method, tools: OpenBase) -> dict[str, Any]:
    """Return everything except questions, base and model that can change a method's answers."""
    options = {part.name: getattr(method, part.name) for part in fields(method) if part.repr}
    taught = {} if tools.kb.folder is None else learned_digests(tools.kb.folder)
    learned = {"learned": {**method.learned(tools), **taught}, "reader": reader_version()}
    return {**options, **learned, "embedder": tools.embedder.name, "clew": __version__}


def _plain(text: str) -> str:
    return re.sub(r"[^\w.\-]+", "_", text).strip("._") or "run"


SETUP = "run.json"
ANSWERS = "answers.jsonl"


class RunFolder:
    """An open run for adding rows. Only one process can open it."""

    def __init__(self, folder: Path, rows: list[QuestionRow], descriptor: int) -> None:
        """Use `open_run`."""
        self.folder = folder
        self.rows = rows
        """Rows stored by earlier runs."""
        self._descriptor = descriptor

    def append(self, row: QuestionRow) -> None:
        """Append a row in one write. A kill can only leave a partial last line."""
        line = row.to_line()
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise StorageError(f"cannot write {self.folder / ANSWERS}: {error.strerror}; run it again") from error
        if written != len(line):
            raise StorageError(f"{self.folder / ANSWERS} was only partly written: free disk space and run again")


@contextmanager
def open_run(folder: Path, setup: Setup) -> Iterator[RunFolder]:
    """Start or resume a run. Raise InputError for a different setup. Drop a partial last line."""
    refuse_foreign(folder, (SETUP, f".{SETUP}"), "run of `clew eval`", "name a new folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / SETUP).exists():  # first, so that a killed run can resume
            write_whole(folder / SETUP, json.dumps(setup.to_json(), ensure_ascii=False, indent=1).encode() + b"\n")
        descriptor = os.open(folder / ANSWERS, os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY, 0o644)
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror}") from error
    try:
        try:
            hold(descriptor, wait=False)
        except OSError:
            raise LockedError(f"another process is writing {folder}: wait for it, or choose another --out") from None
        setup.refuse(read_setup(folder), folder)
        rows, whole = _parse(folder / ANSWERS)
        os.ftruncate(descriptor, whole)
        yield RunFolder(folder, rows, descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_setup(folder: Path) -> Setup:
    """Read the setup of a run folder."""
    file = folder / SETUP
    try:
        return Setup.from_json(parse_json(file.read_text("utf-8")))
    except FileNotFoundError:
        raise NotFoundError(f"{folder} is not a run of `clew eval`: {SETUP} is missing") from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise CorruptError(f"{file} is damaged ({error}): remove the folder and run again") from error


def read_rows(folder: Path) -> list[QuestionRow]:
    """Read the stored answers of a run, one per question."""
    return _parse(folder / ANSWERS)[0]


def find_runs(folders: Iterable[Path]) -> list[Path]:
    """Find every run at or below these folders, in order and without duplicates."""
    found: dict[Path, None] = {}
    for folder in folders:
        here = [folder] if (folder / SETUP).exists() else sorted(file.parent for file in folder.rglob(SETUP))
        if not here:
            raise NotFoundError(f"no run of `clew eval` at or below {folder}")
        found.update(dict.fromkeys(place.resolve() for place in here))
    return list(found)


def _parse(file: Path) -> tuple[list[QuestionRow], int]:
    """Return the rows and the file length up to the last complete line."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return [], 0
    whole = data.rfind(b"\n") + 1
    rows: dict[str, QuestionRow] = {}
    for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
        try:
            row = QuestionRow.from_json(parse_json(line))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{file}, line {number} is damaged ({error}): remove that line and run again") from error
        rows.setdefault(row.id, row)
    return list(rows.values()), whole
