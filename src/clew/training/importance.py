"""How much a ranker leans on each feature: the loss of Hit@1 when its values are shuffled among all candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from clew.training.labelled import FloatArray, Table

REPEATS = 10


@dataclass(frozen=True, slots=True)
class Importance:
    """A feature, or the columns of one embedding together, and the mean loss of Hit@1 with its standard deviation."""

    feature: str
    loss: float
    deviation: float


def hit_at_1(table: Table, scores: FloatArray) -> float:
    """The share of questions whose best candidate is right; ties go to the earlier candidate."""
    pairs = zip(table.questions(scores), table.questions(table.right.astype(np.float64)), strict=True)
    return float(np.mean([bool(len(own)) and right[int(np.argmax(own))] > 0 for own, right in pairs]))


def permutation_importance(
    table: Table,
    columns: Sequence[str],
    predict: Callable[[FloatArray], FloatArray],
    repeats: int = REPEATS,
    seed: int = 0,
) -> list[Importance]:
    """The most important feature first (Breiman 2001; the paper's 10 repeats)."""
    rng = np.random.default_rng(seed)
    whole = hit_at_1(table, predict(table.rows))
    names = np.array(columns)
    found = []
    for name in dict.fromkeys(columns):
        own = np.flatnonzero(names == name)
        losses = []
        for _ in range(repeats):
            shuffled = table.rows.copy()
            shuffled[:, own] = shuffled[rng.permutation(len(shuffled))][:, own]
            losses.append(whole - hit_at_1(table, predict(shuffled)))
        found.append(Importance(name, float(np.mean(losses)), float(np.std(losses))))
    return sorted(found, key=lambda importance: (-importance.loss, importance.feature))
