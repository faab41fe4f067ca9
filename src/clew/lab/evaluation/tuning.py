"""Find the best method for a base: try candidates on its questions within a time limit, evaluate on held-out ones.

1  questions: confirmed, given and synthetic ones
2  selection on one half: start with a few questions for all candidates, then keep the better half and double the
   questions, and so on
3  evaluation on the other half: the selected candidate against `auto`; it is used only if it is better
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from clew.answering.methods.catalog import DEFAULT_METHOD
from clew.answering.methods.tuned import Tuned
from clew.core.errors import InputError
from clew.lab.datasets.load import load_dataset
from clew.lab.datasets.questions import Dataset, Question
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.comparison import Interval, bootstrap
from clew.lab.evaluation.judging import PRIMARY
from clew.lab.synthesis.benchmark import BenchmarkOptions, make_benchmark
from clew.store.confirmed import read_confirmed
from clew.store.open_base import OpenBase

FEWEST, FIRST, SYNTHETIC = 8, 6, 60
"""Minimum number of questions, number in the first round, and number of synthetic questions."""
Value = bool | int | float | str


@dataclass(frozen=True)
class TriedMethod:
    """A method with options."""

    method: str
    options: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, method: str, **options: Value) -> TriedMethod:
        """Build a candidate from keyword options."""
        return cls(method, tuple(options.items()))

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.method} ({options})" if options else self.method


AUTO = TriedMethod(DEFAULT_METHOD)
OVER_GRAPHS = (
    AUTO,
    TriedMethod("focus_plus"),
    TriedMethod.of("focus_plus", sure=0.05),
    TriedMethod.of("focus_plus", words=1.0),
    TriedMethod("aligned_paths"),
    TriedMethod.of("aligned_paths", depth=2),
    TriedMethod("hybrid"),
    TriedMethod.of("hybrid", with_relations=False),
    TriedMethod("bm25"),
)
OVER_DOCUMENTS = (
    AUTO,
    TriedMethod.of("knowledge_graph_prompting", traverser="none"),
    TriedMethod.of("knowledge_graph_prompting", closely=0),
    TriedMethod.of("knowledge_graph_prompting", closely=16),
    TriedMethod.of("hybrid", with_relations=False),
    TriedMethod("dense_passages"),
    TriedMethod("tf_idf"),
)


@dataclass(frozen=True)
class Tuning:
    """All tried candidates, the best one, and its gain on held-out questions."""

    chosen: TriedMethod
    before: float
    after: float
    gain: Interval
    judged: int
    metric: str
    tried: tuple[tuple[TriedMethod, int, float], ...]
    """Every candidate with its number of questions and mean score, best first."""
    ran_out: bool
    """Whether the time limit ended the selection."""

    @property
    def is_better(self) -> bool:
        """Whether to use the selected candidate."""
        return self.chosen != AUTO and self.after > self.before

    def tuned(self) -> Tuned:
        """Convert to the stored form."""
        chosen = self.chosen
        return Tuned(
            method=chosen.method,
            options=dict(chosen.options),
            before=self.before,
            after=self.after,
            questions=self.judged,
        )


def questions_of(tools: OpenBase, given: str | None = None, seed: int = 0) -> Dataset:
    """Collect confirmed questions and questions from a file. Add synthetic ones if there are fewer than `SYNTHETIC`."""
    folder, of_documents = tools.local.folder, tools.kb.schema.holds_passages
    confirmed = [
        Question(f"confirmed-{place}", one.question, tuple(one.answers))
        for place, one in enumerate(read_confirmed(folder))
    ]
    dataset = load_dataset(given) if given else Dataset("own", (), "graph", match="auto")
    own = (*dataset.questions, *confirmed)
    if len(own) < SYNTHETIC and tools.local.edge_count and not of_documents:
        with TemporaryDirectory(prefix="clew-tune-") as place:
            made = make_benchmark(tools, Path(place) / "synthetic", BenchmarkOptions(SYNTHETIC - len(own), seed=seed))
            own = (*own, *load_dataset(str(made.folder / "questions.jsonl")).questions)
    if len(own) < FEWEST:
        raise InputError(
            f"{folder} has {len(own)} questions, but tuning needs at least {FEWEST}: confirm some with "
            "`clew feedback`, or pass a file with --questions"
        )
    return replace(dataset, questions=own)


def tune(
    tools: OpenBase,
    dataset: Dataset,
    seconds: float,
    candidates: Sequence[TriedMethod] | None = None,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Tuning:
    """Find the best candidate for a base in about `seconds` seconds."""
    begun = time.monotonic()
    metric = PRIMARY[dataset.kind]
    shuffled = random.Random(seed).sample(dataset.questions, len(dataset.questions))
    choosing, judging = shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]
    asked = _Trials(Benchmark(dataset, given=tools), metric)
    alive = list(candidates or (OVER_DOCUMENTS if tools.kb.schema.holds_passages else OVER_GRAPHS))
    count, ran_out = min(FIRST, len(choosing)), False
    while not ran_out:
        for one in alive:
            per_question = asked.seconds(one)
            # Reserve time to evaluate two candidates on the other half.
            ran_out = time.monotonic() - begun + per_question * (count + 2 * len(judging)) > seconds
            if ran_out and asked.scores.get(one):
                break
            asked.ask(one, choosing[:count])
            progress(min(99, int(100 * (time.monotonic() - begun) / seconds)), 100)
        alive = sorted(alive, key=lambda one: -asked.mean(one))[: max(2, len(alive) // 2)]
        if count == len(choosing):
            break
        count = min(2 * count, len(choosing))
    chosen = max(alive, key=lambda one: (asked.mean(one), one == AUTO))
    tried = tuple((one, len(scores), asked.mean(one)) for one, scores in asked.scores.items())
    old, new = (asked.ask(one, judging) for one in (AUTO, chosen))
    gains = [after - before for before, after in zip(old, new, strict=True)]
    return Tuning(
        chosen,
        sum(old) / len(old),
        sum(new) / len(new),
        bootstrap(gains, seed),
        len(judging),
        metric,
        tuple(sorted(tried, key=lambda one: (-one[2], -one[1]))),
        ran_out,
    )


@dataclass(frozen=True)
class _Trials:
    """Results so far. Asks each candidate each question at most once."""

    benchmark: Benchmark
    metric: str
    scores: dict[TriedMethod, dict[str, float]] = field(default_factory=dict)
    spent: dict[TriedMethod, float] = field(default_factory=dict)

    def ask(self, candidate: TriedMethod, questions: Sequence[Question]) -> list[float]:
        known = self.scores.setdefault(candidate, {})
        left = tuple(question for question in questions if question.id not in known)
        begun = time.monotonic()
        if left:
            portion = replace(self.benchmark, dataset=replace(self.benchmark.dataset, questions=left))
            run = portion.run(portion.method(candidate.method, dict(candidate.options)))
            known.update({row.id: row.metrics.get(self.metric, 0.0) for row in run.rows})
        self.spent[candidate] = self.spent.get(candidate, 0.0) + time.monotonic() - begun
        return [known[question.id] for question in questions]

    def mean(self, candidate: TriedMethod) -> float:
        known = self.scores.get(candidate) or {"": 0.0}
        return sum(known.values()) / len(known)

    def seconds(self, candidate: TriedMethod) -> float:
        """Return the mean time per question so far."""
        return self.spent.get(candidate, 0.0) / max(1, len(self.scores.get(candidate, ())))
