"""Compute the paper's statistics of questions: length, answers, diversity, relational and textual words."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from clew.core.plots import Axis, Series, line_plot
from clew.lab.datasets.load import load_stark

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Statistics:
    """Statistics of a question set.

    `entropy` is in bits over words. `relational_share` is a share of requirement words.
    """

    name: str
    questions: int
    mean_words: float
    median_words: float
    mean_answers: float
    several_answers: float
    """Share of questions with more than one answer."""
    entropy: float
    type_token_ratio: float
    relational_share: float | None = None
    lengths: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values, without the per-question lists."""
        shown = {name: value for name, value in asdict(self).items() if name not in ("lengths", "answers")}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in shown.items()}


def shannon_entropy(counts: Iterable[int]) -> float:
    """Compute -Σ p log₂ p of a distribution given by counts."""
    amounts = [count for count in counts if count]
    total = sum(amounts)
    return -sum(count / total * math.log2(count / total) for count in amounts) if total else 0.0


def describe(
    name: str, questions: Sequence[str], answers: Sequence[int], relational_share: float | None = None
) -> Statistics:
    """Compute the statistics of questions and their numbers of answers."""
    words = Counter(word for question in questions for word in _WORD.findall(question.lower()))
    lengths = tuple(len(question.split()) for question in questions)
    return Statistics(
        name=name,
        questions=len(questions),
        mean_words=fmean(lengths) if lengths else 0.0,
        median_words=float(median(lengths)) if lengths else 0.0,
        mean_answers=fmean(answers) if answers else 0.0,
        several_answers=fmean(count > 1 for count in answers) if answers else 0.0,
        entropy=shannon_entropy(words.values()),
        type_token_ratio=len(words) / words.total() if words else 0.0,
        relational_share=relational_share,
        lengths=lengths,
        answers=tuple(answers),
    )


def describe_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> Statistics:
    """Compute the statistics of synthetic questions."""
    return describe(
        name, [row["question"] for row in rows], [len(row["answers"]) for row in rows], _relational_share(rows)
    )


def _relational_share(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean share of relational words among all requirement words (the paper's figure 5)."""
    shares = []
    for row in rows:
        relational = len(row["wording"]["relational"].split())
        textual = sum(len(one["text"].split()) for one in row["textual"]["properties"]) if row["textual"] else 0
        shares.append(relational / (relational + textual))
    return fmean(shares) if shares else None


def stark_statistics(folder: Path, count: int) -> list[Statistics]:
    """Compute the statistics of the real STaRK questions, sampled to `count` because diversity depends on n."""
    sets = []
    for base in sorted({file.parent.parent for file in folder.glob("*/stark_qa/stark_qa.csv*")}):
        questions = load_stark(base).questions
        chosen = random.Random(0).sample(questions, min(count, len(questions)))
        answers = [len(question.answers) for question in chosen]
        sets.append(describe(f"STaRK {base.name}", [question.text for question in chosen], answers))
    return sets


def distribution_plot(title: str, label: str, series: Mapping[str, Sequence[int]], highest: int) -> str:
    """Plot the share of questions by a whole number, one line per set. Values above `highest` count as `highest`."""
    lines = []
    for name, values in series.items():
        counts = Counter(min(value, highest) for value in values)
        shares = [(value, 100 * counts[value] / len(values)) for value in range(highest + 1) if values]
        steps = tuple((end, share) for value, share in shares for end in (float(value), value + 1.0))
        lines.append(Series(name, steps))
    return line_plot(title, lines, Axis(f"{label}, {highest} or more at the end", low=0), Axis("percent", low=0)) + "\n"
