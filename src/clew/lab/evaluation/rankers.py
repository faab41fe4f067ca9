"""Evaluate rankers: candidate pools, Hit@N curves, training with held-out evaluation, and subgraph data sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.methods.subgraph_reranking.candidates import CandidateSource, question_kind
from clew.answering.methods.subgraph_reranking.drawing import subgraph_json
from clew.answering.methods.subgraph_reranking.features import FloatArray, make_pool
from clew.answering.methods.subgraph_reranking.graph_to_text import FaithfulnessRates, GraphWriter, WrittenGraph, rates
from clew.answering.methods.subgraph_reranking.method import graph_writer, open_source
from clew.answering.methods.subgraph_reranking.ranker_file import RankerCard, Texts, load_ranker, save_ranker
from clew.answering.methods.subgraph_reranking.rankers import Ranker, SourceOrder, ranked
from clew.answering.methods.subgraph_reranking.subgraph import Subgraph, SubgraphExtractor
from clew.core.disk import written_whole
from clew.core.errors import InputError
from clew.core.plots import Bar, bar_plot
from clew.core.version import __version__
from clew.lab.datasets.questions import Dataset, Match, Question
from clew.lab.evaluation.benchmark import Benchmark, aliases_in
from clew.lab.evaluation.comparison import Interval, bootstrap, randomisation_test
from clew.lab.evaluation.judging import GoldAnswers, NamesOf
from clew.lab.training.labelled import SPLITS, Importance, LabelledPool, split_of
from clew.lab.training.ranker import RankerSettings, train_ranker
from clew.models.protocol import Embedder
from clew.store.graph.paths import PathLimits
from clew.store.graph.protocol import KnowledgeBase


@dataclass(frozen=True)
class PoolMaker:
    """Gets candidates for questions and labels them."""

    kb: KnowledgeBase
    source: CandidateSource
    extractor: SubgraphExtractor
    match: Match
    names_of: NamesOf
    candidates: int = 20
    write: Callable[[Sequence[Subgraph]], Sequence[str]] | None = None
    """Converts subgraphs to text. None writes them fact by fact."""

    @classmethod
    def of(
        cls, benchmark: Benchmark, source: str, candidates: int, max_hops: int = 4, texts: Texts = "facts"
    ) -> PoolMaker:
        """Get candidates for the questions of a benchmark from a source, with paths of at most `max_hops` edges."""
        tools = benchmark.tools
        return cls(
            tools.kb,
            open_source(tools, source, candidates),
            SubgraphExtractor(tools.kb, PathLimits(most_hops=max_hops)),
            benchmark.rule,
            aliases_in(tools.kb),
            candidates,
            graph_writer(tools, texts),
        )

    def pools(
        self, questions: Sequence[Question], progress: Callable[[int, int], None] = lambda _done, _all: None
    ) -> Iterator[LabelledPool]:
        """Yield one pool per question. Questions that share a topic entity share a group."""
        for done, question in enumerate(questions, start=1):
            yield self.pool(question)
            progress(done, len(questions))

    def pool(self, question: Question) -> LabelledPool:
        """Label the candidates of one question. Keep all candidates, and keep questions without a right candidate."""
        proposal = self.source(question.text, self.candidates)
        subgraphs = self.extractor.extract(proposal.entities, proposal.candidates)
        gold = GoldAnswers(question.answers, question.aliases, self.match)
        refs = self.kb.refs(proposal.candidates)
        right = np.array([bool(gold.named_by(ref, self.names_of)) for ref in refs], dtype=np.bool_)
        groups = question.topics or tuple(ref.key for ref in self.kb.refs(proposal.entities))
        pool = make_pool(self.kb, proposal.question, subgraphs, self.write)
        kind = question.type or question_kind(proposal.question)
        return LabelledPool(question.id, pool, right, kind, groups)


@dataclass(frozen=True, slots=True)
class HitCurve:
    """The share of questions with a right answer in the top 1 to N, and the interval of Hit@1."""

    hits: tuple[float, ...]
    interval: Interval
    first: tuple[float, ...]
    """1 if a question's best candidate is right, otherwise 0, per question."""

    def at(self, n: int) -> float:
        """Return Hit@n, or 0 without questions."""
        return self.hits[min(n, len(self.hits)) - 1] if self.hits else 0.0


def hit_curve(pools: Sequence[LabelledPool], scores: Sequence[FloatArray], most: int = 20) -> HitCurve:
    """Rank each pool by its scores. A question without a right candidate is a miss at every N."""
    places = [first_right(pool, own) for pool, own in zip(pools, scores, strict=True)]
    hits = tuple(
        float(np.mean([place is not None and place < n for place in places])) if places else 0.0
        for n in range(1, most + 1)
    )
    first = tuple(float(place == 0) for place in places)
    return HitCurve(hits, bootstrap(first), first)


def first_right(pool: LabelledPool, scores: FloatArray) -> int | None:
    """Return the number of wrong candidates ranked before the first right one, or None if no candidate is right."""
    return next((index for index, which in enumerate(ranked(scores)) if pool.right[which]), None)


@dataclass(frozen=True, eq=False)
class RankerReport:
    """A trained ranker and Hit@N on the test questions before and after reranking."""

    folder: Path
    card: RankerCard
    counts: Mapping[str, int]
    before: HitCurve
    after: HitCurve
    p_value: float
    by_type: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    """Maps the question type to the number of test questions and Hit@1 before and after."""
    importance: tuple[Importance, ...] = ()
    own_importance: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
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
            "usable": self.card.usable,
            "by_type": {
                kind: {"questions": count, "hit@1_before": before, "hit@1_after": after}
                for kind, (count, before, after) in self.by_type.items()
            },
            "permutation_importance": [asdict(one) for one in self.importance],
            "catboost_importance": dict(self.own_importance),
        }


def split_pools(
    pools: Sequence[LabelledPool], shares: tuple[float, float, float] = (0.6, 0.15, 0.25), seed: int = 0
) -> dict[str, list[LabelledPool]]:
    """Split into train, validation and test so that no topic entity occurs in two of them."""
    found: dict[str, list[LabelledPool]] = {name: [] for name in SPLITS}
    for pool, split in zip(pools, split_of([pool.groups for pool in pools], shares, seed), strict=True):
        found[split].append(pool)
    return found


def train_on_questions(
    maker: PoolMaker,
    dataset: Dataset,
    embedder: Embedder,
    settings: RankerSettings,
    out: Path,
    *,
    source: str,
    texts: Texts = "facts",
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> RankerReport:
    """Train on most questions, choose settings on some, and evaluate on the rest. Save the ranker in `out`."""
    schema = maker.kb.schema
    splits = split_pools(list(maker.pools(dataset.questions, progress)), seed=settings.seed)
    counts = {name: len(pools) for name, pools in splits.items()}
    if not all(counts.values()):
        sizes = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise InputError(f"{dataset.name} has too few topics to split its questions ({sizes}): add questions")
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
    trained = train_ranker(settings, splits["train"], splits["validation"], schema, embedder, data)
    parts = replace(trained.parts, card=trained.parts.card.model_copy(update={"texts": texts}))
    save_ranker(out, parts)
    ranker = load_ranker(out, schema, embedder, judged=False)
    test, held_out = splits["test"], [*splits["validation"], *splits["test"]]
    before, after = (_curve(one, test, maker.candidates) for one in (SourceOrder(), ranker))
    usable = _curve(ranker, held_out, 1).at(1) >= _curve(SourceOrder(), held_out, 1).at(1)
    card = save_ranker(out, replace(parts, card=parts.card.model_copy(update={"usable": usable})))
    if trained.importance:
        bars = [Bar(one.feature, 100 * one.loss, 100 * one.deviation) for one in trained.importance]
        title = "Loss of Hit@1 when a feature is shuffled, points"
        (out / "permutation_importance.svg").write_text(bar_plot(title, bars), "utf-8")
    if trained.own_importance:
        ordered = sorted(trained.own_importance.items(), key=lambda item: -item[1])
        own = bar_plot("CatBoost's importance, percent", [Bar(name, value) for name, value in ordered])
        (out / "catboost_importance.svg").write_text(own, "utf-8")
    p_value = randomisation_test(after.first, before.first)
    return RankerReport(
        out,
        card,
        counts,
        before,
        after,
        p_value,
        _by_type(test, before, after),
        trained.importance,
        trained.own_importance,
    )


def _curve(ranker: Ranker, pools: Sequence[LabelledPool], most: int) -> HitCurve:
    return hit_curve(pools, [ranker.scores(pool.pool) for pool in pools], most)


def _by_type(pools: Sequence[LabelledPool], before: HitCurve, after: HitCurve) -> dict[str, tuple[int, float, float]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for pool, pair in zip(pools, zip(before.first, after.first, strict=True), strict=True):
        found.setdefault(pool.type or "", []).append(pair)
    return {
        kind: (len(pairs), float(np.mean([first for first, _ in pairs])), float(np.mean([last for _, last in pairs])))
        for kind, pairs in sorted(found.items())
    }


@dataclass(frozen=True, slots=True)
class SubgraphSet:
    """A data set of subgraphs that connect candidates with the question (Salnikov et al., section 4.1).

    Each line is a JSON object with the question, its entities, the candidate, whether it is right, and the subgraph
    with its features and text. This class has the counts. If a model writes the texts, `told` has the rates of table 3.
    """

    file: Path
    questions: int
    subgraphs: int
    right: int
    disconnected: int
    told: FaithfulnessRates | None = None

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**asdict(self), "file": str(self.file)}


def write_subgraphs(
    maker: PoolMaker,
    questions: Sequence[Question],
    file: Path,
    writer: GraphWriter | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> SubgraphSet:
    """Write the subgraphs of all candidates. `writer` adds a text in sentences."""
    subgraphs = right = disconnected = 0
    checks = []
    with written_whole(file) as lines:
        for question, pool in zip(questions, maker.pools(questions, progress), strict=True):
            texts = [None] * len(pool.pool) if writer is None else writer.write(pool.pool.subgraphs)
            for row in _rows(maker, question, pool, texts):
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            subgraphs += len(pool.pool)
            right += int(pool.right.sum())
            disconnected += sum(one.disconnected for one in pool.pool.subgraphs)
            checks += [one.check for one in texts if one is not None and one.check is not None]
    rated = rates(checks) if writer is not None else None
    return SubgraphSet(file, len(questions), subgraphs, right, disconnected, rated)


def _rows(
    maker: PoolMaker, question: Question, pool: LabelledPool, texts: Sequence[WrittenGraph | None]
) -> Iterator[dict[str, Any]]:
    kb = maker.kb
    for place, subgraph in enumerate(pool.pool.subgraphs):
        written = texts[place]
        yield {
            "id": question.id,
            "question": pool.pool.question,
            "type": pool.type,
            "question_entities": [ref.key for ref in kb.refs(subgraph.entities)],
            "candidate": kb.refs([subgraph.candidate])[0].key,
            "candidate_name": pool.pool.names[place],
            "place": place + 1,
            "right": bool(pool.right[place]),
            **subgraph_json(kb, subgraph),
            **({} if written is None else {"written": written.written, "problem": written.problem}),
        }
