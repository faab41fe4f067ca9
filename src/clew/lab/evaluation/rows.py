"""The stored result of one question: a JSON line for scoring, comparison and failure analysis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from clew.core.trace import Recorder, Span
from clew.core.types import Answer, Candidate, Fallback
from clew.lab.datasets.questions import Question
from clew.lab.evaluation.judging import QuestionScore

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
