"""Step 1: a template with entities filled in that are spread over the base; its gold query, and what that gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.answering.queries.execution import found_nodes
from clew.answering.queries.linking import OPPOSITE
from clew.answering.queries.witnesses import witnesses
from clew.core.errors import NotFoundError
from clew.core.query import Edge, Exists, Formula, Nodes, Not, Pattern, Query, Variable, find
from clew.core.types import EMPTY, NodeRef, NodeSet, Path
from clew.lab.synthesis.templates import Branch, Step, Template
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.protocol import KnowledgeBase

TARGET = "answer"


@dataclass(frozen=True)
class Requirement:
    """What a question asks of the graph: a template, the entity behind each label, and every node that satisfies it."""

    template: Template
    entities: Mapping[str, NodeRef]
    candidates: NodeSet
    """What executing the query gives, the named entities included where they satisfy it themselves."""

    @property
    def query(self) -> Query:
        """The gold query."""
        return gold_query(self.template, self.entities)

    @property
    def possible(self) -> NodeSet:
        """The candidates that may be answers: nothing that the question itself names."""
        return self.candidates - NodeSet.of([ref.id for ref in self.entities.values()])

    @property
    def identity(self) -> str:
        """Two requirements with one identity ask the same."""
        named = ",".join(f"{label}={ref.key}" for label, ref in sorted(self.entities.items()))
        return f"{self.template}|{named}"


def gold_query(template: Template, entities: Mapping[str, NodeRef]) -> Query:
    """Return the branches of a template as edges, each in its stored direction."""
    variables: list[Variable] = []
    edges: list[Edge] = []
    where: list[Formula] = []
    for number, branch in enumerate(template.branches, 1):
        own, steps = _branch(branch, number, entities)
        if branch.negated:
            where.append(Not(Exists(Pattern(tuple(own), tuple(steps)))))
        else:
            variables += own
            edges += steps
    return find(TARGET, template.target, Pattern(tuple(variables), tuple(edges), tuple(where)))


def _branch(branch: Branch, number: int, entities: Mapping[str, NodeRef]) -> tuple[list[Variable], list[Edge]]:
    start, variables, edges = branch.start, list[Variable](), list[Edge]()
    near: str | Nodes = f"any{number}" if start.anything else Nodes((entities[start.label].key,))
    if isinstance(near, str):
        variables.append(Variable(near, start.type))
    for place, step in enumerate(branch.steps, 1):
        far = TARGET if place == len(branch.steps) else f"via{number}_{place}"
        variables.append(Variable(far, step.target))
        head, tail = (near, far) if step.direction == "out" else (far, near)
        edges.append(Edge(head, step.relation, tail))
        near = far
    return variables, edges


def gold_paths(kb: KnowledgeBase, requirement: Requirement, answers: NodeSet) -> dict[int, tuple[Path, ...]]:
    """Return for each answer one way through the graph from it to what the question names."""
    return {ref.id: witnesses(kb, requirement.query, [ref], limit=1) for ref in kb.refs(answers.array)}


LONGEST_NAME = 80
WIDEST = 20_000
"""A path that passes through more nodes than this says nothing about any of them."""
TRIES = 12
"""How often a template is tried for one question before another one takes its place."""


@dataclass
class Sampler:
    """Draws requirements; how often it has named each entity is all it remembers."""

    kb: ArrayKnowledgeBase
    most_candidates: int = 20
    most_with_text: int = 60
    """A textual requirement narrows further, so it may begin with more."""
    most_uses: int = 3
    """How often one entity may be named."""
    uses: Counter[int] = field(default_factory=Counter)
    _starts: dict[Step, NodeSet] = field(default_factory=dict)

    def draw(
        self, template: Template, rng: random.Random, *, with_text: bool = False, tries: int = TRIES
    ) -> Requirement | None:
        """A requirement with at least one possible answer; None where several tries gave none."""
        most = self.most_with_text if with_text else self.most_candidates
        for _ in range(tries):
            requirement = self._try(template, rng)
            if requirement is not None and (1 + with_text) <= len(requirement.possible) <= most:
                return requirement
        return None

    def note(self, requirement: Requirement) -> None:
        """Remember which entities a requirement names."""
        self.uses.update({ref.id for ref in requirement.entities.values()})

    def starts(self, branch: Branch) -> NodeSet:
        """The nodes a path may begin with: they have its first edge, and a name of their own."""
        step = branch.steps[0]
        if step not in self._starts:
            reach = OPPOSITE[step.direction]
            found = self.kb.neighbors(self.kb.nodes(step.target), step.relation, reach) & self.kb.nodes(step.source)
            self._starts[step] = NodeSet(found.array[self.speakable[found.array]])
        return self._starts[step]

    @cached_property
    def speakable(self) -> NDArray[np.bool_]:
        """Which nodes can be named in a question: a short name of words that no other node of the type has."""
        names = self.kb.columns().column("name").cast(pa.large_string())
        length = pc.utf8_length(names).to_numpy(zero_copy_only=False)
        worded = pc.match_substring_regex(names, r"\p{L}|\p{N}").to_numpy(zero_copy_only=False)
        plain = ~pc.match_substring_regex(names, r"[\n\r\t<>]").to_numpy(zero_copy_only=False)
        folded = pc.dictionary_encode(pc.utf8_lower(pc.utf8_trim_whitespace(names))).indices.to_numpy()
        pairs = folded.astype(np.int64) * len(self.kb.schema.node_types) + self.kb.types
        _, inverse, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        fit = np.asarray(worded & plain & (length >= 2) & (length <= LONGEST_NAME) & (counts[inverse] == 1))
        return fit.astype(np.bool_)

    def follow(self, nodes: NodeSet, steps: Sequence[Step]) -> NodeSet:
        """The nodes at the end of a path; nothing where it grows too wide."""
        for step in steps:
            nodes = self.kb.neighbors(nodes, step.relation, step.direction) & self.kb.nodes(step.target)
            if len(nodes) > WIDEST:
                return EMPTY
        return nodes

    def _try(self, template: Template, rng: random.Random) -> Requirement | None:
        entities: dict[str, NodeRef] = {}
        reached: NodeSet | None = None
        widths: list[int] = []
        for branch in sorted(template.branches, key=lambda branch: branch.negated):
            start = branch.start
            if start.anything:
                continue
            if start.label not in entities:
                node = self._choose(branch, reached, rng)
                if node is None:
                    return None
                entities[start.label] = self.kb.refs([node])[0]
            if not branch.negated:
                found = self.follow(NodeSet.of([entities[start.label].id]), branch.steps)
                widths.append(len(found))
                reached = found if reached is None else reached & found
                if not len(reached):
                    return None
        narrows = len(widths) == 1 or (reached is not None and len(reached) < min(widths))
        if not narrows:  # one path alone says as much
            return None
        chosen = [(ref.name, ref.type) for ref in entities.values()]
        if len(set(chosen)) < len(chosen):  # the same entity twice
            return None
        candidates = found_nodes(self.kb, gold_query(template, entities))
        if not self._tells(template, candidates, reached):
            return None
        return Requirement(template, entities, candidates)

    def _tells(self, template: Template, candidates: NodeSet, reached: NodeSet | None) -> bool:
        """Whether something is left, and a forbidden edge has taken something away."""
        if not len(candidates) or reached is None:
            return False
        return len(candidates) < len(reached) or not any(branch.negated for branch in template.branches)

    def _choose(self, branch: Branch, reached: NodeSet | None, rng: random.Random) -> int | None:
        """An entity to name: any at first, then one that leads to what has been reached already."""
        if branch.start.name is not None:
            return self._fixed(branch)
        if reached is None:
            usable = self.starts(branch)
            for _ in range(TRIES):
                node = int(usable.array[rng.randrange(len(usable))]) if len(usable) else None
                if node is not None and self.uses[node] < self.most_uses:
                    return node
            return None
        node = int(reached.array[rng.randrange(len(reached))])
        for step in reversed(branch.steps):
            near = self.kb.neighbors(NodeSet.of([node]), step.relation, OPPOSITE[step.direction])
            near &= self.kb.nodes(step.source)
            if not len(near):
                return None
            node = int(near.array[rng.randrange(len(near))])
        return node if self.speakable[node] and self.uses[node] < self.most_uses else None

    def _fixed(self, branch: Branch) -> int:
        start = branch.start
        named = pc.equal(self.kb.columns().column("name"), start.name).to_numpy(zero_copy_only=False)
        found = NodeSet(np.flatnonzero(named).astype(np.int32)) & self.kb.nodes(start.type)
        if len(found) != 1:
            raise NotFoundError(
                f"a template names {start.name!r}, which {len(found)} nodes of type {start.type!r} are called"
            )
        return int(found.array[0])
