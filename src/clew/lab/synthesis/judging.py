"""Judges that must agree, property by property: by phrase, by words, by meaning, by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from clew.answering.roles.score import read_yes_no
from clew.core import trace
from clew.core.errors import PendingError, ReplyError
from clew.core.types import NodeSet
from clew.lab.synthesis.textual import TextualRequirement, fields, written
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask, find_json
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.tokens import normalise, terms
from clew.store.index.vectors import VectorIndex

Votes = tuple[bool, ...]
"""Whether a node has each property of a requirement."""


class Judge(Protocol):
    """Says of each node which properties of a requirement its text has."""

    @property
    def name(self) -> str:
        """How votes are labelled."""
        ...

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """For each node, in order, one vote per property."""
        ...


@dataclass(frozen=True)
class Verdict:
    """The votes on every candidate; a judge is not asked about a node that an earlier one has turned down."""

    kept: NodeSet
    votes: dict[int, dict[str, Votes]]


def unanimous(judges: Sequence[Judge], requirement: TextualRequirement, nodes: NodeSet) -> Verdict:
    """The nodes that have every deciding property by the vote of every judge."""
    votes: dict[int, dict[str, Votes]] = {node: {} for node in nodes}
    waiting: PendingError | None = None
    for judge in judges:
        if not len(nodes):
            break
        try:
            said = judge.judge(requirement, nodes)
        except PendingError as pending:  # the next judge may be asked in the same round
            waiting = pending
            continue
        for node, vote in zip(nodes, said, strict=True):
            votes[node][judge.name] = vote
        accepted = [all(np.array(vote)[list(requirement.deciding)]) for vote in said]
        nodes = NodeSet(nodes.array[np.array(accepted, dtype=np.bool_)])
    if waiting is not None:
        raise waiting
    return Verdict(nodes, votes)


@dataclass(frozen=True)
class PhraseJudge:
    """A property stands in the node's text, word for word."""

    kb: KnowledgeBase
    name: str = "phrase"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Whether the text holds the words in their order."""
        wanted = [f" {normalise(one.text)} " for one in requirement.properties]
        documents = (written(self.kb, node) for node in nodes)
        return [tuple(phrase in document for phrase in wanted) for document in documents]


@dataclass(frozen=True)
class WordJudge:
    """Most of the words of a property, the rare ones counting more, stand somewhere in the node's text."""

    kb: KnowledgeBase
    lexical: LexicalIndex
    least: float = 0.8
    name: str = "words"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Whether enough of the words occur."""
        wanted = [{term: self.lexical.idf(term) for term in terms(one.text)} for one in requirement.properties]
        documents = [frozenset(terms(written(self.kb, node))) for node in nodes]
        return [tuple(self._enough(weights, own) for weights in wanted) for own in documents]

    def _enough(self, weights: dict[str, float], own: frozenset[str]) -> bool:
        found = sum(weight for term, weight in weights.items() if term in own)
        return found >= self.least * (sum(weights.values()) or 1.0)


@dataclass(frozen=True)
class MeaningJudge:
    """The node's document is about what a property says."""

    vectors: VectorIndex
    least: float = 0.2
    name: str = "meaning"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Whether document and property are alike enough."""
        alike = [self.vectors.similarities(one.text, nodes) >= self.least for one in requirement.properties]
        return [tuple(bool(column[place]) for column in alike) for place in range(len(nodes))]


PROMPTS = tuple(Prompt.load("clew.lab.synthesis.prompts", f"judge_{name}") for name in ("plain", "strict", "searcher"))
SOURCES = Prompt.load("clew.lab.synthesis.prompts", "judge_sources")
CATEGORY = Prompt.load("clew.lab.synthesis.prompts", "judge_category")
LONGEST_DOCUMENT = 6000
_NO = ("", "na", "n/a", "no", "none", "false", "0", "null")


def read_votes(completion: Completion, count: int) -> Votes:
    """One vote per number from 1: true or false, or the fields that support it, where NA and an empty list are none."""
    numbers = [str(number) for number in range(1, count + 1)]
    for said in find_json(completion.text):
        if isinstance(said, dict) and said.keys() >= set(numbers):
            return tuple(_supports(said[number]) for number in numbers)
    raise ReplyError(f'expected a JSON object with a vote for each number from 1 to {count}, such as {{"1": true}}')


def _supports(said: object) -> bool:
    return any(map(_supports, said)) if isinstance(said, list) else str(said).strip().lower() not in _NO


@dataclass(frozen=True)
class ModelJudge:
    """A model with one of the prompts; it judges every property of a node by itself, in one request."""

    kb: KnowledgeBase
    model: LanguageModel
    prompt: Prompt

    @property
    def name(self) -> str:
        """Prompt and model."""
        return f"{self.prompt.name} by {self.model.name}"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """A reply that cannot be read counts as no."""
        votes = []
        for outcome in ask(self.model, [self._ask(requirement, node) for node in nodes], role="judge"):
            if outcome.value is None:
                trace.fallback("judge", outcome.problem or "no reply", "counted as no")
            votes.append(outcome.value or tuple(False for _ in requirement.properties))
        return votes

    def _ask(self, requirement: TextualRequirement, node: int) -> Ask[Votes]:
        content = self.kb.node(node)
        count = len(requirement.properties)
        document = "\n".join(f"{name}: {text}" for name, text in fields(self.kb, node))
        filled = self.prompt.fill(
            name=content.name,
            type=self.kb.schema.node_type(content.type).label,
            document=document[:LONGEST_DOCUMENT] or "(nothing)",
            requirements="\n".join(f"{place}. {one.text}" for place, one in enumerate(requirement.properties, 1)),
        )
        return Ask(filled, partial(read_votes, count=count), max_tokens=20 + 30 * count)


@dataclass(frozen=True)
class CategoryJudge:
    """A model says whether a node is the kind of thing that is sought; where no kind is known, every node is."""

    kb: KnowledgeBase
    model: LanguageModel

    @property
    def name(self) -> str:
        """Prompt and model."""
        return f"{CATEGORY.name} by {self.model.name}"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """The same vote for every property."""
        count = len(requirement.properties)
        if not requirement.item:
            return [(True,) * count for _ in nodes]
        asks = [self._ask(requirement.item, node) for node in nodes]
        votes = [(outcome.value or 0.0) >= 0.5 for outcome in ask(self.model, asks, role="judge")]
        return [(vote,) * count for vote in votes]

    def _ask(self, item: str, node: int) -> Ask[float]:
        content = self.kb.node(node)
        kind = self.kb.schema.node_type(content.type).label
        filled = CATEGORY.fill(name=content.name, type=kind, text=content.text[:1500] or "(nothing)", item=item)
        return Ask(filled, read_yes_no, max_tokens=4)


def model_judges(kb: KnowledgeBase, models: Sequence[LanguageModel]) -> tuple[Judge, ...]:
    """Three judges: one prompt each for three models, all three for one."""
    return tuple(
        ModelJudge(kb, models[place % len(models)], PROMPTS[place % len(PROMPTS)])
        for place in range(max(len(PROMPTS), len(models)))
    )


def product_judges(kb: KnowledgeBase, models: Sequence[LanguageModel]) -> tuple[Judge, ...]:
    """STaRK-AMAZON's filter: is it the kind of thing, then which field supports each requirement; by every model."""
    return tuple(judge for model in models for judge in (CategoryJudge(kb, model), ModelJudge(kb, model, SOURCES)))
