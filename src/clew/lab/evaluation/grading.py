"""LLM-graded accuracy, the first metric of Knowledge Graph Prompting: a model says whether an answer is right.

Each answer is graded twice, gold before prediction and the other way round, as models lean to what stands where. It
counts as right where both say so; how often the two agree, and how often they agree with exact match, is reported
beside the accuracy, since a grader is no measure of its own quality.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from clew.core import trace
from clew.core.errors import InputError, ReplyError
from clew.lab.evaluation.comparison import bootstrap
from clew.lab.evaluation.metrics import text_exact
from clew.lab.evaluation.rows import Row
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask

GRADE = Prompt.load("clew.lab.evaluation", "grade")


@dataclass(frozen=True, slots=True)
class Graded:
    """What a grader said about one answer in both orders; None where it gave no usable reply."""

    id: str
    gold_first: bool | None
    prediction_first: bool | None
    exact: bool

    @property
    def right(self) -> bool:
        """Whether both orders say so."""
        return bool(self.gold_first and self.prediction_first)


@dataclass(frozen=True)
class Grading:
    """The grades of a run taken together; shares are 0..1."""

    n: int
    accuracy: float
    low: float
    high: float
    gold_first: float
    prediction_first: float
    orders_agree: float
    em: float
    agrees_with_em: float
    kappa_with_em: float
    ungraded: int

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def grade(rows: Sequence[Row], answers: Mapping[str, Sequence[str]], model: LanguageModel) -> list[Graded]:
    """Both orders of every written answer; an answer that was not written is wrong without asking.

    `answers` are the accepted wordings of each question, by its id.
    """
    if unknown := [row.id for row in rows if not answers.get(row.id)]:
        raise InputError(
            f"{len(unknown)} questions have no gold answer to grade by, such as {unknown[0]!r}: other data?"
        )
    asked = [row for row in rows if row.text]
    asks = []
    for row in asked:
        gold, said = f"Answer: {' or '.join(answers[row.id])}", f"Prediction: {' '.join((row.text or '').split())}"
        for first, second in ((gold, said), (said, gold)):
            filled = GRADE.fill(question=row.question, first=first, second=second)
            asks.append(Ask(filled, read_grade, max_tokens=8))
    outcomes = iter(ask(model, asks, role="score"))
    grades = {}
    for row in asked:
        both = [next(outcomes) for _ in range(2)]
        for outcome in both:
            if outcome.problem is not None:
                trace.fallback("score", outcome.problem, "counted as wrong")
        grades[row.id] = (both[0].value, both[1].value)
    return [
        Graded(row.id, *grades.get(row.id, (False, False)), exact=text_exact(row.text or "", answers[row.id]) == 1.0)
        for row in rows
    ]


def summarise_grades(grades: Sequence[Graded], seed: int = 0) -> Grading:
    """Accuracy with its interval, and how far the orders, and exact match, bear it out."""
    if not grades:
        raise InputError("nothing to grade: the run has no answers")
    right = [float(one.right) for one in grades]
    interval = bootstrap(right, seed)
    same = _mean([one.right == one.exact for one in grades])
    by_chance = sum(
        _mean(right if value else [1 - r for r in right]) * _mean([one.exact is value for one in grades])
        for value in (True, False)
    )
    return Grading(
        len(grades),
        _mean(right),
        interval.low,
        interval.high,
        _mean([bool(one.gold_first) for one in grades]),
        _mean([bool(one.prediction_first) for one in grades]),
        _mean([one.gold_first == one.prediction_first for one in grades]),
        _mean([one.exact for one in grades]),
        same,
        (same - by_chance) / (1 - by_chance) if by_chance < 1 else 1.0,
        sum(one.gold_first is None or one.prediction_first is None for one in grades),
    )


def read_grade(completion: Completion) -> bool:
    """The only 0 or 1 in a reply."""
    found = set(re.findall(r"(?<![\d.])[01](?!\d|\.\d)", completion.text))
    if len(found) != 1:
        raise ReplyError("expected 1 or 0")
    return found == {"1"}


def _mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values)
