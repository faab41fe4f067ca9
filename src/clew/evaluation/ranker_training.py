"""A ranker from questions with gold answers: split by topic, train, save, and judge on questions it has never seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew import __version__
from clew.core.errors import InputError
from clew.datasets.questions import Dataset
from clew.evaluation.bars import Bar, bar_plot
from clew.evaluation.intervals import randomisation_test
from clew.evaluation.reranking import HitCurve, PoolMaker, hit_curve
from clew.kb.schema import Schema
from clew.models.protocol import Embedder
from clew.steps.subgraphs.ranker_file import RankerCard, load_ranker, save_ranker
from clew.steps.subgraphs.rankers import SourceOrder
from clew.training.importance import Importance
from clew.training.labelled import SPLITS, LabelledPool, split_of
from clew.training.ranker import RankerSettings, train_ranker

Say = Callable[[str], None]
SHARES = (0.6, 0.15, 0.25)


@dataclass(frozen=True, eq=False)
class RankerReport:
    """What was trained, and Hit@N on the test questions before and after."""

    folder: Path
    card: RankerCard
    counts: Mapping[str, int]
    before: HitCurve
    after: HitCurve
    p_value: float
    importance: tuple[Importance, ...] = ()
    own_importance: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "ranker": str(self.folder),
            "kind": self.card.kind,
            "features": list(self.card.features),
            "questions": dict(self.counts),
            "test": {
                "hits_before": list(self.before.hits),
                "hits_after": list(self.after.hits),
                "hit@1_before": [self.before.at(1), self.before.interval.low, self.before.interval.high],
                "hit@1_after": [self.after.at(1), self.after.interval.low, self.after.interval.high],
                "p_value": self.p_value,
            },
            "permutation_importance": [
                {"feature": one.feature, "loss": one.loss, "deviation": one.deviation} for one in self.importance
            ],
            "catboost_importance": dict(self.own_importance),
        }


def split_pools(
    pools: Sequence[LabelledPool], shares: tuple[float, float, float] = SHARES, seed: int = 0
) -> dict[str, list[LabelledPool]]:
    """Train, validation and test: no topic entity occurs in two of them."""
    found: dict[str, list[LabelledPool]] = {name: [] for name in SPLITS}
    for pool, split in zip(pools, split_of([pool.groups for pool in pools], shares, seed), strict=True):
        found[split].append(pool)
    return found


def train_on_questions(
    maker: PoolMaker,
    dataset: Dataset,
    schema: Schema,
    embedder: Embedder,
    settings: RankerSettings,
    out: Path,
    *,
    source: str,
    shares: tuple[float, float, float] = SHARES,
    say: Say = lambda _: None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> RankerReport:
    """Train on most questions, choose settings on some, and report on the rest; the ranker is saved in `out`."""
    say("candidates and subgraphs")
    splits = split_pools(list(maker.pools(dataset.questions, progress)), shares, settings.seed)
    counts = {name: len(pools) for name, pools in splits.items()}
    if not all(counts.values()):
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise InputError(f"{dataset.name} has too few topics to split its questions ({told}): give more questions")
    data = {
        "dataset": dataset.name,
        "split": dataset.split,
        "portion": dataset.portion,
        "questions": counts,
        "source": source,
        "candidates": maker.candidates,
        "seed": settings.seed,
        "version": __version__,
    }
    trained = train_ranker(settings, splits["train"], splits["validation"], schema, embedder, data, say=say)
    card = save_ranker(out, trained.parts)
    say("test questions")
    ranker = load_ranker(out, schema, embedder)
    test = splits["test"]
    before, after = (
        hit_curve(test, [one.scores(pool.pool) for pool in test], maker.candidates) for one in (SourceOrder(), ranker)
    )
    if trained.importance:
        bars = [Bar(one.feature, 100 * one.loss, 100 * one.deviation) for one in trained.importance]
        title = "Loss of Hit@1 when a feature is shuffled, points"
        (out / "permutation_importance.svg").write_text(bar_plot(title, bars), "utf-8")
    if trained.own_importance:
        ordered = sorted(trained.own_importance.items(), key=lambda item: -item[1])
        own = bar_plot("CatBoost's importance, percent", [Bar(name, value) for name, value in ordered])
        (out / "catboost_importance.svg").write_text(own, "utf-8")
    p_value = randomisation_test(after.first, before.first)
    return RankerReport(out, card, counts, before, after, p_value, trained.importance, trained.own_importance)
