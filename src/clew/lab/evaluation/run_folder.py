"""Run folders: `run.json` has the setup, `answers.jsonl` gets one line per question and survives a kill.

A line is the stored result of one question, for scoring, comparison and failure analysis.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from clew.answering.methods.protocol import Method
from clew.answering.reading import reader_version
from clew.core.disk import BINARY, hold, refuse_foreign, write_whole
from clew.core.errors import CorruptError, InputError, LockedError, NotFoundError, StorageError
from clew.core.texts import parse_json
from clew.core.trace import Recorder, Span
from clew.core.types import Answer, Candidate, Fallback
from clew.core.version import __version__
from clew.lab.datasets.questions import Dataset, Kind, Match, Question
from clew.lab.evaluation.judging import QuestionScore
from clew.store.graph.manifest import learned_digests
from clew.store.open_base import OpenBase

SHOWN_GOLD, SHOWN_RANKING, SHOWN_EVIDENCE, SHOWN_SPANS = 20, 50, 3, 60
"""Maximum number of gold answers, ranked nodes, nodes with evidence, pieces of it, and steps that a row stores."""
LONGEST_EVIDENCE, LONGEST_DETAIL = 500, 240
"""Maximum characters of a piece of evidence, and of the details of a step, so that the file of a run stays small."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A stored candidate. The first few have their evidence as text."""

    key: str
    name: str
    score: float
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One trace step: depth, duration, inputs and results."""

    depth: int
    name: str
    seconds: float | None
    details: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question of a run."""

    id: str
    question: str = ""
    type: str | None = None
    gold: tuple[str, ...] = ()
    """The first gold answers. `gold_count` is the total."""
    gold_count: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    places: tuple[int, ...] = ()
    """Ranks of the gold answers, starting at 1."""
    ranking: tuple[Ranked, ...] = ()
    answers: int = 0
    """Number of candidates in the answer set."""
    text: str | None = None
    seconds: float = 0.0
    calls: int = 0
    cached: int = 0
    """Number of calls answered from the cache."""
    tokens: int = 0
    """Tokens of all calls, including cached ones."""
    cost: float = 0.0
    """Cost in dollars, without cached calls."""
    fallbacks: tuple[Fallback, ...] = ()
    error: str | None = None
    trace: tuple[TraceLine, ...] = ()
    """Stored if the primary metric is below 1."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Details of a failed answer: its query and notes."""

    def to_line(self) -> bytes:
        """Encode as one line of UTF-8 with a newline. Omit empty fields."""
        kept = _ROW.dump_python(self, exclude_defaults=True)
        line = json.dumps(kept, ensure_ascii=False, separators=(",", ":"), default=str)
        return line.encode("utf-8", "replace") + b"\n"

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> QuestionRow:
        """Parse a row. Ignore unknown fields of other versions."""
        return _ROW.validate_python(raw)


_ROW = TypeAdapter(QuestionRow)


def make_row(
    question: Question,
    gold: tuple[str, ...],
    answer: Answer | None,
    score: QuestionScore,
    recorder: Recorder,
    *,
    seconds: float,
    failed: bool,
    error: str | None = None,
) -> QuestionRow:
    """Build the row.

    `gold` is the displayed part of the gold answers. The trace is stored only for failed questions.
    """
    calls = [call for span in recorder.spans for call in span.calls]
    known = answer.fallbacks if answer else ()
    return QuestionRow(
        id=question.id,
        question=question.text,
        type=question.type,
        gold=gold,
        gold_count=score.gold,
        metrics={name: round(value, 6) for name, value in score.metrics.items()},
        places=score.places,
        ranking=_ranking(answer.candidates) if answer else (),
        answers=score.proposed,
        text=answer.text if answer else None,
        seconds=round(seconds, 6),
        calls=len(calls),
        cached=sum(call.cached for call in calls),
        tokens=sum(call.prompt_tokens + call.completion_tokens for call in calls),
        cost=sum(call.dollars for call in calls if not call.cached),
        fallbacks=tuple(dict.fromkeys((*known, *recorder.fallbacks))),
        error=error,
        trace=trace_lines(recorder.spans) if failed else (),
        extra=_about(answer) if answer and failed else {},
    )


def _ranking(candidates: tuple[Candidate, ...]) -> tuple[Ranked, ...]:
    return tuple(
        Ranked(
            candidate.node.key,
            candidate.node.name,
            round(float(candidate.score), 6),
            tuple(_cut(piece.in_words(), LONGEST_EVIDENCE) for piece in candidate.evidence[:SHOWN_EVIDENCE])
            if index < SHOWN_EVIDENCE
            else (),
        )
        for index, candidate in enumerate(candidates[:SHOWN_RANKING])
    )


def _about(answer: Answer) -> dict[str, Any]:
    about = {"query": {name: _cut(str(value), LONGEST_EVIDENCE) for name, value in answer.query.items()}}
    return {name: value for name, value in (about | {"notes": list(answer.notes)}).items() if value}


def trace_lines(spans: list[Span]) -> tuple[TraceLine, ...]:
    """Convert spans to lines, in start order."""
    depth: dict[int | None, int] = {None: -1}
    lines = []
    for span in spans[:SHOWN_SPANS]:
        depth[span.id] = depth.get(span.parent, -1) + 1
        details = ", ".join(f"{name}: {value}" for name, value in span.details.items())
        seconds = None if span.seconds is None else round(span.seconds, 6)
        lines.append(TraceLine(depth[span.id], span.name, seconds, _cut(details, LONGEST_DETAIL), span.error))
    return tuple(lines)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "…"


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
