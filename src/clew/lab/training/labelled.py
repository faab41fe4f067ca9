"""Labelled candidates, splits that keep related questions together, and folds held out for evaluation."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import rustworkx
from numpy.typing import NDArray

from clew.core.errors import InputError

if TYPE_CHECKING:
    from clew.answering.methods.subgraph_reranking.features import CandidatePool

FloatArray = NDArray[np.float64]
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class LabelledPool:
    """The candidates of one question, and which are right."""

    id: str
    pool: CandidatePool
    right: NDArray[np.bool_]
    type: str | None = None
    groups: tuple[str, ...] = ()
    """Keys that splits must not share, such as the entities of the question."""


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The stacked feature rows of many questions."""

    rows: FloatArray
    right: NDArray[np.bool_]
    starts: NDArray[np.int64]
    """Start row of each question, followed by the number of rows."""

    @classmethod
    def of(cls, matrices: Sequence[FloatArray], pools: Sequence[LabelledPool]) -> FeatureTable:
        """Stack the matrices of these pools."""
        if not pools or not any(pool.right.any() for pool in pools):
            raise InputError("no question has a right answer among its candidates: choose another source of candidates")
        return cls(
            np.concatenate(matrices),
            np.concatenate([pool.right for pool in pools]),
            np.append(0, np.cumsum([len(pool.right) for pool in pools])),
        )

    def questions(self, values: FloatArray) -> list[FloatArray]:
        """Split row values by question."""
        return np.split(values, self.starts[1:-1])


def split_of(groups: Sequence[Sequence[object]], shares: tuple[float, float, float], seed: int = 0) -> list[str]:
    """Assign a split to each item so that items with a common group, also indirectly, get the same split.

    A hash of the smallest group of a component determines its split, so adding items does not change other splits.
    """
    if abs(sum(shares) - 1) > 1e-9 or min(shares) < 0:
        raise InputError(f"the shares of train, validation and test must add up to 1, not {shares}")
    own = [sorted({str(key) for key in keys}) or [f"\0{place}"] for place, keys in enumerate(groups)]
    splits = [""] * len(own)
    for component in sharing(own):
        smallest = min(own[place][0] for place in component)
        digest = hashlib.sha256(f"{seed}\n{smallest}".encode()).digest()
        cut = np.searchsorted(np.cumsum(shares), int.from_bytes(digest[:8], "little") / 2**64, side="right")
        for place in component:
            splits[place] = SPLITS[min(int(cut), 2)]
    return splits


def sharing(groups: Sequence[Iterable[str]]) -> list[list[int]]:
    """Return the indexes of items that share a group, also indirectly, as sorted lists."""
    graph: rustworkx.PyGraph[int, None] = rustworkx.PyGraph()
    graph.add_nodes_from(range(len(groups)))
    first: dict[str, int] = {}
    for place, keys in enumerate(groups):
        graph.add_edges_from_no_data([(first.setdefault(key, place), place) for key in keys])
    return sorted(map(sorted, rustworkx.connected_components(graph)))


def parse_fold(text: str) -> tuple[int, int]:
    """Parse a fold such as "0/3": its index and the number of folds."""
    fold, _, folds = text.partition("/")
    if not (fold.isdecimal() and folds.isdecimal() and int(fold) < int(folds)):
        raise InputError(f"invalid fold {text!r}: write 0/3, 1/3 or 2/3")
    return int(fold), int(folds)


def names_of_fold(names: Iterable[str], fold: int, folds: int, seed: int) -> set[str]:
    """Return the names in one fold."""
    every = sorted(names)
    return set(random.Random(seed).sample(every, len(every))[fold::folds])


@dataclass(frozen=True, slots=True)
class Importance:
    """A feature, or all columns of one embedding, with its mean loss of Hit@1 and standard deviation."""

    feature: str
    loss: float
    deviation: float


def hit_at_1(table: FeatureTable, scores: FloatArray) -> float:
    """Compute the share of questions whose best candidate is right. Ties go to the earlier candidate."""
    pairs = zip(table.questions(scores), table.questions(table.right.astype(np.float64)), strict=True)
    return float(np.mean([bool(len(own)) and right[int(np.argmax(own))] > 0 for own, right in pairs]))


def permutation_importance(
    table: FeatureTable,
    columns: Sequence[str],
    predict: Callable[[FloatArray], FloatArray],
    repeats: int = 10,
    seed: int = 0,
) -> list[Importance]:
    """Compute the importances, most important first (Breiman 2001, with the paper's 10 repeats)."""
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
