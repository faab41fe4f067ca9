"""Judges that must agree: by phrase, by words, by meaning, by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.errors import PendingError
from clew.core.types import NodeSet
from clew.index.tokens import normalise, terms
from clew.kb.protocol import KnowledgeBase
from clew.models.prompts import Prompt
from clew.models.protocol import LanguageModel
from clew.models.structured import Ask, ask
from clew.roles.score import read_yes_no
from clew.synthesis.textual import Rarity, TextualRequirement, fields, written


class Judge(Protocol):
    """Says of each node whether its text satisfies a requirement."""

    @property
    def name(self) -> str:
        """How votes are labelled."""
        ...

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[bool]:
        """One vote per node, in order."""
        ...


@dataclass(frozen=True)
class Verdict:
    """The votes on every candidate; a judge is not asked about a node that an earlier one has turned down."""

    kept: NodeSet
    votes: dict[int, dict[str, bool]]


def unanimous(judges: Sequence[Judge], requirement: TextualRequirement, nodes: NodeSet) -> Verdict:
    """The nodes that every judge accepts."""
    votes: dict[int, dict[str, bool]] = {node: {} for node in nodes}
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
        nodes = NodeSet(nodes.array[np.array(said, dtype=np.bool_)])
    if waiting is not None:
        raise waiting
    return Verdict(nodes, votes)


@dataclass(frozen=True)
class PhraseJudge:
    """Every property stands in the node's text, word for word."""

    kb: KnowledgeBase
    name: str = "phrase"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[bool]:
        """Whether the text holds the words in their order."""
        wanted = [f" {normalise(one.text)} " for one in requirement.properties]
        documents = (written(self.kb, node) for node in nodes)
        return [all(phrase in document for phrase in wanted) for document in documents]


@dataclass(frozen=True)
class WordJudge:
    """Most of the words of the requirement, the rare ones counting more, stand somewhere in the node's text."""

    kb: KnowledgeBase
    rarity: Rarity
    least: float = 0.8
    name: str = "words"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[bool]:
        """Whether enough of the words occur."""
        weights = {term: self.rarity.idf(term) for one in requirement.properties for term in terms(one.text)}
        whole = sum(weights.values()) or 1.0
        found = (frozenset(terms(written(self.kb, node))) for node in nodes)
        return [sum(weight for term, weight in weights.items() if term in own) >= self.least * whole for own in found]


class Likeness(Protocol):
    """How alike a text and the documents of nodes are."""

    def similarities(self, query: str, nodes: NodeSet) -> NDArray[np.float32]:
        """One cosine per node, in order."""
        ...


@dataclass(frozen=True)
class MeaningJudge:
    """The node's document is about what the requirement says."""

    vectors: Likeness
    least: float = 0.2
    name: str = "meaning"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[bool]:
        """Whether document and requirement are alike enough."""
        return [bool(value >= self.least) for value in self.vectors.similarities(requirement.text, nodes)]


PROMPTS = tuple(Prompt.load("clew.synthesis.prompts", f"judge_{name}") for name in ("plain", "strict", "searcher"))
LONGEST_DOCUMENT = 3000


@dataclass(frozen=True)
class ModelJudge:
    """A model with one of the prompts."""

    kb: KnowledgeBase
    model: LanguageModel
    prompt: Prompt

    @property
    def name(self) -> str:
        """Prompt and model."""
        return f"{self.prompt.name} by {self.model.name}"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[bool]:
        """A reply that cannot be read counts as no."""
        votes = []
        for outcome in ask(self.model, [self._ask(requirement, node) for node in nodes], role="judge"):
            if outcome.value is None:
                trace.fallback("judge", outcome.problem or "no reply", "counted as no")
            votes.append((outcome.value or 0.0) >= 0.5)
        return votes

    def _ask(self, requirement: TextualRequirement, node: int) -> Ask[float]:
        content = self.kb.node(node)
        document = "\n".join(f"{name}: {text}" for name, text in fields(self.kb, node))[:LONGEST_DOCUMENT]
        filled = self.prompt.fill(
            name=content.name,
            type=self.kb.schema.node_type(content.type).label,
            document=document or "(nothing)",
            requirement=requirement.text,
        )
        return Ask(filled, read_yes_no, max_tokens=4)


def model_judges(kb: KnowledgeBase, models: Sequence[LanguageModel]) -> tuple[ModelJudge, ...]:
    """Three judges: one prompt each for three models, all three for one."""
    return tuple(
        ModelJudge(kb, models[place % len(models)], PROMPTS[place % len(PROMPTS)])
        for place in range(max(len(PROMPTS), len(models)))
    )
