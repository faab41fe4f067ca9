"""Judges that vote on each property, by phrase, words, meaning or model. All must agree."""

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
    """Votes which properties of a requirement each node's text has."""

    @property
    def name(self) -> str:
        """Label of the votes."""
        ...

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Return one vote per property for each node, in order."""
        ...


@dataclass(frozen=True)
class Verdict:
    """The votes on every candidate. Later judges skip nodes that an earlier judge rejected."""

    kept: NodeSet
    votes: dict[int, dict[str, Votes]]


def unanimous(judges: Sequence[Judge], requirement: TextualRequirement, nodes: NodeSet) -> Verdict:
    """Return the nodes that have every required property according to every judge."""
    votes: dict[int, dict[str, Votes]] = {node: {} for node in nodes}
    waiting: PendingError | None = None
    for judge in judges:
        if not len(nodes):
            break
        try:
            said = judge.judge(requirement, nodes)
        except PendingError as pending:  # ask the next judge in the same round
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
    """Checks that the node's text contains a property word for word."""

    kb: KnowledgeBase
    name: str = "phrase"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Return whether the text contains the words in order."""
        wanted = [f" {normalise(one.text)} " for one in requirement.properties]
        documents = (written(self.kb, node) for node in nodes)
        return [tuple(phrase in document for phrase in wanted) for document in documents]


@dataclass(frozen=True)
class WordJudge:
    """Checks that the node's text contains most words of a property, weighted by rarity."""

    kb: KnowledgeBase
    lexical: LexicalIndex
    least: float = 0.8
    name: str = "words"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Return whether enough words occur."""
        wanted = [{term: self.lexical.idf(term) for term in terms(one.text)} for one in requirement.properties]
        documents = [frozenset(terms(written(self.kb, node))) for node in nodes]
        return [tuple(self._enough(weights, own) for weights in wanted) for own in documents]

    def _enough(self, weights: dict[str, float], own: frozenset[str]) -> bool:
        found = sum(weight for term, weight in weights.items() if term in own)
        return found >= self.least * (sum(weights.values()) or 1.0)


@dataclass(frozen=True)
class MeaningJudge:
    """Checks that the node's document is similar to a property."""

    vectors: VectorIndex
    least: float = 0.2
    name: str = "meaning"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Return whether document and property are similar enough."""
        alike = [self.vectors.similarities(one.text, nodes) >= self.least for one in requirement.properties]
        return [tuple(bool(column[index]) for column in alike) for index in range(len(nodes))]


PROMPTS = tuple(Prompt.load("clew.lab.synthesis.prompts", f"judge_{name}") for name in ("plain", "strict", "searcher"))
SOURCES = Prompt.load("clew.lab.synthesis.prompts", "judge_sources")
CATEGORY = Prompt.load("clew.lab.synthesis.prompts", "judge_category")
LONGEST_DOCUMENT = 6000
"""Maximum characters of a document in a prompt: about 1,500 tokens of English."""
_NO = ("", "na", "n/a", "no", "none", "false", "0", "null")


def read_votes(completion: Completion, count: int) -> Votes:
    """Parse one vote per number from 1: a boolean, or the supporting fields. NA and an empty list mean no."""
    numbers = [str(number) for number in range(1, count + 1)]
    for said in find_json(completion.text):
        if isinstance(said, dict) and said.keys() >= set(numbers):
            return tuple(_supports(said[number]) for number in numbers)
    raise ReplyError(f'expected a JSON object with a vote for each number from 1 to {count}, such as {{"1": true}}')


def _supports(said: object) -> bool:
    return any(map(_supports, said)) if isinstance(said, list) else str(said).strip().lower() not in _NO


@dataclass(frozen=True)
class ModelJudge:
    """A model with one prompt. Judges all properties of a node in one request."""

    kb: KnowledgeBase
    model: LanguageModel
    prompt: Prompt

    @property
    def name(self) -> str:
        """Names of prompt and model."""
        return f"{self.prompt.name} by {self.model.name}"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Ask the model about each node. An unreadable reply counts as no."""
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
    """A model that judges whether a node is the requested kind of item. Accepts all nodes if no kind is given."""

    kb: KnowledgeBase
    model: LanguageModel

    @property
    def name(self) -> str:
        """Names of prompt and model."""
        return f"{CATEGORY.name} by {self.model.name}"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[Votes]:
        """Return the same vote for every property."""
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
    """Return three judges: one prompt per model, or all three prompts for a single model."""
    return tuple(
        ModelJudge(kb, models[index % len(models)], PROMPTS[index % len(PROMPTS)])
        for index in range(max(len(PROMPTS), len(models)))
    )


def product_judges(kb: KnowledgeBase, models: Sequence[LanguageModel]) -> tuple[Judge, ...]:
    """Return STaRK-AMAZON's filters for every model: the kind of item, then fields that support each requirement."""
    return tuple(judge for model in models for judge in (CategoryJudge(kb, model), ModelJudge(kb, model, SOURCES)))
