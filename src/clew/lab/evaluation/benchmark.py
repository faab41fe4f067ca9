"""Run a method on a data set, from the base to the judged answers. `clew eval` uses this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Literal

from clew.answering.methods.catalog import ask, create
from clew.answering.methods.knowledge_graph_prompting.answer import answer_from_passages
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import reader_for
from clew.core.errors import InputError, PendingError, StorageError
from clew.core.types import Answer, NodeRef, Ranking
from clew.core.workers import Workers
from clew.documents.passage_graph import EdgeOptions
from clew.lab.datasets.base import dataset_base, question_base
from clew.lab.datasets.questions import Dataset, Match, Question
from clew.lab.evaluation.judging import NamesOf
from clew.lab.evaluation.run_folder import QuestionRow, Setup, identity
from clew.lab.evaluation.runs import Answering, Run, evaluate, judged
from clew.models.protocol import LanguageModel
from clew.store.graph.protocol import KnowledgeBase
from clew.store.open_base import OpenBase

WITH_A_MODEL = 8
"""Number of parallel questions if a model answers. Without a model it is 1, to measure the latency of a single user."""


@dataclass(frozen=True)
class GoldenPassages(Method):
    """Use the gold passages of each question, which simulates perfect retrieval for the reader.

    Only the evaluation knows gold passages, so `clew ask` does not offer this method.
    """

    name = "golden_passages"
    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, dataset: Dataset) -> GoldenPassages:
        """Build the method from a data set."""
        return cls({question.text: question.passages for question in dataset.questions})

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the reader's answer from the gold passages, in their order."""
        nodes = [tools.kb.find(key) for key in self.gold.get(question, ())]
        ranking = Ranking.of(nodes, list(range(len(nodes), 0, -1)))
        return answer_from_passages(tools.stored, question, ranking, reader_for(tools))


@dataclass(frozen=True)
class Benchmark:
    """A data set and the base that answers its questions."""

    dataset: Dataset
    kb: str | Path | None = None
    """None selects the data set's base."""
    given: OpenBase | None = field(default=None, repr=False)
    """An open base to use instead."""
    model: LanguageModel | None = None
    embedder: str | None = None
    """None selects the base's embedder, if it ships with Clew or the user approved it."""
    match: Literal["strict", "lenient"] | None = None
    """None selects the data set's rule."""
    per_question: bool = False
    """Whether each question sees only its own paragraphs, like in the papers."""
    edges: EdgeOptions | None = None
    """Edges between the passages of a corpus. None selects the defaults of `clew build`."""
    say: Callable[[str], None] = field(default=lambda _: None, repr=False)
    """Receives the stages of a build."""
    note: Callable[[str], None] = field(default=lambda _: None, repr=False)
    """Receives the reason if a cached base is rebuilt."""

    @cached_property
    def tools(self) -> OpenBase:
        """The open base."""
        if self.given is not None:
            return self.given
        base = self.kb or dataset_base(self.dataset, self.edges, self.say, self.note)
        return OpenBase.open(base, model=self.model, embedder=self.embedder)

    @cached_property
    def rule(self) -> Match:
        """Rule that compares candidates with gold answers."""
        own = self.dataset.match
        if self.dataset.kind == "documents":
            return "key"
        if own in ("strict", "lenient"):
            return self.match or own
        gold = {answer for question in self.dataset.questions for answer in question.answers}
        known = self.tools.kb.ids([*gold])
        if own == "auto":
            return "key" if len(known) == len(gold) else self.match or "strict"
        if not known:
            raise InputError(f"no gold answer of {self.dataset.name} is a node of {self.kb}: pass the matching base")
        return "key"

    def name_of(self, key: str) -> str:
        """Return the name and key of the node with a gold key, or the key if the node is unnamed or missing."""
        kb = self.tools.kb
        name = next((ref.name for ref in kb.refs(kb.ids([key]))), key)
        return key if name == key else f"{name} ({key})"

    def run(
        self,
        method: Method,
        *,
        out: Path | None = None,
        concurrency: int | None = None,
        workers: Workers | None = None,
        on_row: Callable[[QuestionRow], None] = lambda _: None,
        on_interrupt: Callable[[], None] = lambda: None,
    ) -> Run:
        """Run a method on every question. `out` is the parent of the run folder.

        Workers open the base themselves. They cannot use a model, because its replies and costs are recorded in one
        place.
        """
        if self.per_question and not self.dataset.contexts:
            raise InputError(f"{self.dataset.name} has no paragraphs per question: remove --per-question")
        if workers is not None and self.tools.model is not None:
            raise InputError("workers cannot use a language model: use --concurrency instead of --ray")
        setup = Setup.of(
            self.dataset,
            method.name,
            identity(method, self.tools) | ({} if self.edges is None else {"edges": asdict(self.edges)}),
            model=self.tools.model_name,
            base=self.tools.identity,
            match=self.rule,
            per_question=self.per_question,
        )

        return evaluate(
            self.dataset.questions,
            self.answering(method),
            setup,
            names_of=aliases_in(self.tools.kb),
            name_of=self.name_of,
            out=None if out is None else out / setup.folder_name(),
            concurrency=concurrency or (1 if self.tools.model is None else WITH_A_MODEL),
            elsewhere=None if workers is None else partial(workers.each, AnswerQuestions.of(self, method, setup)),
            on_row=on_row,
            on_interrupt=on_interrupt,
        )

    def answering(self, method: Method) -> Answering:
        """Return a function that runs the method on a question."""
        return lambda question, recorder: ask(method, question.text, self._tools_for(question), recorder)

    def method(self, name: str, options: Mapping[str, object] | None = None) -> Method:
        """Create a method by name. Only `golden_passages` receives gold data."""
        return GoldenPassages.of(self.dataset) if name == GoldenPassages.name else create(name, options)

    def _tools_for(self, question: Question) -> OpenBase:
        if not self.per_question:
            return self.tools
        return OpenBase.open(question_base(self.dataset, question.id, self.edges), model=self.tools.model)


@dataclass(frozen=True)
class AnswerQuestions:
    """The task sent to workers: answer the questions of a run."""

    benchmark: Benchmark
    method: Method
    setup: Setup

    @classmethod
    def of(cls, benchmark: Benchmark, method: Method, setup: Setup) -> AnswerQuestions:
        """Build a task without open resources, and without paragraphs unless each question needs its own."""
        data = benchmark.dataset
        texts = data.paragraphs if benchmark.per_question else ()
        sent = replace(benchmark, kb=benchmark.tools.place, dataset=replace(data, base=None, paragraphs=texts))
        return cls(replace(sent, given=None, say=lambda _: None, note=lambda _: None), method, setup)

    def open(self) -> Callable[[Question], QuestionRow | PendingError]:
        """Open the base and return the function.

        Raise StorageError if the base or trained state differs from the run's.
        """
        benchmark, setup = self.benchmark, self.setup
        mine = identity(self.method, benchmark.tools)
        if benchmark.tools.identity != setup.base or any(setup.parameters[name] != mine[name] for name in mine):
            raise StorageError(f"{benchmark.tools.kb!r} differs from the run's base: copy that base to every worker")
        return partial(
            judged,
            answering=benchmark.answering(self.method),
            setup=setup,
            names_of=aliases_in(benchmark.tools.kb),
            name_of=benchmark.name_of,
        )


def aliases_in(kb: KnowledgeBase) -> NamesOf:
    """Return a cached lookup of node aliases. The same nodes are ranked many times."""

    @lru_cache(maxsize=1 << 18)
    def aliases(node: NodeRef) -> tuple[str, ...]:
        return kb.node(node.id).aliases

    return aliases
