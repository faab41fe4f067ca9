"""LLM-graded accuracy, the first metric of Knowledge Graph Prompting: a model judges whether an answer is right.

Each answer is graded twice, with gold before and after the prediction, because models have a position bias. An answer
is right if both grades are positive. The report includes the agreement between the two orders and with exact match,
because grader accuracy says nothing about the grader's quality.
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
from clew.lab.evaluation.run_folder import QuestionRow
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask

GRADE = Prompt.load("clew.lab.evaluation", "grade")


@dataclass(frozen=True, slots=True)
class Graded:
    """Grades of one answer in both orders. None if the reply was unusable."""

    id: str
    gold_first: bool | None
    prediction_first: bool | None
    exact: bool

    @property
    def right(self) -> bool:
        """Whether both grades are positive."""
        return bool(self.gold_first and self.prediction_first)


@dataclass(frozen=True)
class Grading:
    """Grades of a whole run. Rates are between 0 and 1."""

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
        """Convert to JSON values."""
        return asdict(self)


def grade(rows: Sequence[QuestionRow], answers: Mapping[str, Sequence[str]], model: LanguageModel) -> list[Graded]:
    """Grade every written answer in both orders. Missing answers are wrong and need no model call.

    `answers` maps question ids to accepted texts.
    """
    if unknown := [row.id for row in rows if not answers.get(row.id)]:
        raise InputError(
            f"{len(unknown)} questions have no gold answer, such as {unknown[0]!r}: pass the question file of this run"
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


def summarise_grades(grades: Sequence[Graded]) -> Grading:
    """Compute the accuracy with its interval, and its agreement between orders and with exact match."""
    if not grades:
        raise InputError("the run has no answers: nothing to grade")
    right = [float(one.right) for one in grades]
    interval = bootstrap(right)
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
    """Return whether the grade is 1. Raise ReplyError unless the reply contains exactly one of 0 and 1."""
    found = set(re.findall(r"(?<![\d.])[01](?!\d|\.\d)", completion.text))
    if len(found) != 1:
        raise ReplyError("expected 1 or 0")
    return found == {"1"}


def _mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values)
