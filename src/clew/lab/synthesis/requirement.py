"""Step 1: fill a template with entities from all over the base, and execute its gold query."""

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
from clew.answering.queries.query_answers import witnesses
from clew.core.errors import NotFoundError
from clew.core.query import Edge, Exists, Formula, Nodes, Not, Pattern, Query, Variable, find
from clew.core.types import EMPTY, NodeRef, NodeSet, Path
from clew.lab.synthesis.templates import Template, TemplateBranch, TemplateStep
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.protocol import KnowledgeBase

TARGET = "answer"


@dataclass(frozen=True)
class GraphRequirement:
    """A graph requirement: a template, the entity for each label, and every node that satisfies it."""

    template: Template
    entities: Mapping[str, NodeRef]
    candidates: NodeSet
    """Result of the query, including named entities if they satisfy it."""

    @property
    def query(self) -> Query:
        """The gold query."""
        return gold_query(self.template, self.entities)

    @property
    def possible(self) -> NodeSet:
        """Candidates that may be answers. Excludes the entities in the question."""
        return self.candidates - NodeSet.of([ref.id for ref in self.entities.values()])

    @property
    def identity(self) -> str:
        """Identity. Equal for requirements that ask the same."""
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


def _branch(branch: TemplateBranch, number: int, entities: Mapping[str, NodeRef]) -> tuple[list[Variable], list[Edge]]:
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


def gold_paths(kb: KnowledgeBase, requirement: GraphRequirement, answers: NodeSet) -> dict[int, tuple[Path, ...]]:
    """Return one path per answer, from the answer to the entities of the question."""
    refs = kb.refs(answers.array)
    paths = witnesses(kb, requirement.query, [[ref] for ref in refs], limit=1)
    return {ref.id: path for ref, path in zip(refs, paths, strict=True)}


LONGEST_NAME = 80
"""Maximum characters of a name in a question. A longer name makes the question hard to read."""
WIDEST = 20_000
"""Maximum number of nodes on a path. Wider paths are not informative."""
TRIES = 12
"""Maximum number of draws of a template before trying the next one."""


@dataclass
class Sampler:
    """Draws requirements and counts the uses of each entity."""

    kb: ArrayKnowledgeBase
    most_candidates: int = 20
    most_with_text: int = 60
    """Higher limit for questions with a textual requirement, which removes more candidates."""
    most_uses: int = 3
    """Maximum number of questions per entity."""
    uses: Counter[int] = field(default_factory=Counter)
    _starts: dict[TemplateStep, NodeSet] = field(default_factory=dict)

    def draw(
        self, template: Template, rng: random.Random, *, with_text: bool = False, tries: int = TRIES
    ) -> GraphRequirement | None:
        """Draw a requirement with at least one possible answer, or return None after `tries` attempts."""
        most = self.most_with_text if with_text else self.most_candidates
        for _ in range(tries):
            requirement = self._try(template, rng)
            if requirement is not None and (1 + with_text) <= len(requirement.possible) <= most:
                return requirement
        return None

    def note(self, requirement: GraphRequirement) -> None:
        """Count the entities of a requirement as used."""
        self.uses.update({ref.id for ref in requirement.entities.values()})

    def starts(self, branch: TemplateBranch) -> NodeSet:
        """Return the nodes that can start a path: they have its first edge and a unique name."""
        step = branch.steps[0]
        if step not in self._starts:
            reach = OPPOSITE[step.direction]
            found = self.kb.neighbors(self.kb.nodes(step.target), step.relation, reach) & self.kb.nodes(step.source)
            self._starts[step] = NodeSet(found.array[self.speakable[found.array]])
        return self._starts[step]

    @cached_property
    def speakable(self) -> NDArray[np.bool_]:
        """Which nodes a question can name: the name is short, has letters or digits, and is unique within its type."""
        names = self.kb.columns().column("name").cast(pa.large_string())
        length = pc.utf8_length(names).to_numpy(zero_copy_only=False)
        worded = pc.match_substring_regex(names, r"\p{L}|\p{N}").to_numpy(zero_copy_only=False)
        plain = ~pc.match_substring_regex(names, r"[\n\r\t<>]").to_numpy(zero_copy_only=False)
        folded = pc.dictionary_encode(pc.utf8_lower(pc.utf8_trim_whitespace(names))).indices.to_numpy()
        pairs = folded.astype(np.int64) * len(self.kb.schema.node_types) + self.kb.types
        _, inverse, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        fit = np.asarray(worded & plain & (length >= 2) & (length <= LONGEST_NAME) & (counts[inverse] == 1))
        return fit.astype(np.bool_)

    def follow(self, nodes: NodeSet, steps: Sequence[TemplateStep]) -> NodeSet:
        """Return the nodes at the end of a path, or nothing if it has too many nodes."""
        for step in steps:
            nodes = self.kb.neighbors(nodes, step.relation, step.direction) & self.kb.nodes(step.target)
            if len(nodes) > WIDEST:
                return EMPTY
        return nodes

    def _try(self, template: Template, rng: random.Random) -> GraphRequirement | None:
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
        if not narrows:  # a single path is as specific
            return None
        chosen = [(ref.name, ref.type) for ref in entities.values()]
        if len(set(chosen)) < len(chosen):  # the same entity twice
            return None
        candidates = found_nodes(self.kb, gold_query(template, entities))
        if not self._tells(template, candidates, reached):
            return None
        return GraphRequirement(template, entities, candidates)

    def _tells(self, template: Template, candidates: NodeSet, reached: NodeSet | None) -> bool:
        """Return whether candidates remain and any forbidden edge removed some."""
        if not len(candidates) or reached is None:
            return False
        return len(candidates) < len(reached) or not any(branch.negated for branch in template.branches)

    def _choose(self, branch: TemplateBranch, reached: NodeSet | None, rng: random.Random) -> int | None:
        """Choose an entity: any for the first branch, then one that leads to the nodes reached so far."""
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

    def _fixed(self, branch: TemplateBranch) -> int:
        start = branch.start
        named = pc.equal(self.kb.columns().column("name"), start.name).to_numpy(zero_copy_only=False)
        found = NodeSet(np.flatnonzero(named).astype(np.int32)) & self.kb.nodes(start.type)
        if len(found) != 1:
            raise NotFoundError(f"a template needs one {start.type!r} node named {start.name!r}: found {len(found)}")
        return int(found.array[0])
