"""Templates for any base: enumerated from its schema, measured on samples, the useful ones kept.

A template is useful where its candidate sets are neither empty nor huge, where its answers are spread over many nodes
rather than a few hubs, and where there are many entities to name. Relations that say the same, forward, backward or
twice, are recognised by their edges, so that no two templates ask the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

from clew.core.errors import InputError
from clew.core.types import NodeSet
from clew.lab.synthesis.requirement import Sampler
from clew.lab.synthesis.templates import KINDS, Branch, Kind, Start, Step, Template
from clew.store.graph.arrays import ArrayKnowledgeBase

MEASURED = 36
"""Templates of a kind that are measured: those over the relations with most edges."""
KEPT = 12
"""Templates of a kind that are kept."""
DRAWS = 16
"""Requirements drawn to measure a template."""
LEAST = 0.05
"""Templates that score less are left out."""
PROBES = 64
"""Nodes by which two relations are compared."""


@dataclass(frozen=True, slots=True)
class Usefulness:
    """How fit a template is: the share of draws that gave a requirement, and the share of different answers."""

    yields: float
    spread: float
    entities: int

    @property
    def score(self) -> float:
        """Between 0 and 1."""
        return self.yields * self.spread * min(1.0, self.entities / 20)


def enumerate_templates(sampler: Sampler, kinds: Sequence[Kind], seed: int) -> list[Template]:
    """The useful templates of the given kinds, the most useful of each kind first."""
    steps, texts = distinct_steps(sampler.kb), types_with_text(sampler.kb)
    templates: list[Template] = []
    for kind in kinds:
        weighed = sorted(_of_kind(kind, steps, texts), key=lambda pair: (-pair[0], pair[1].name))
        fitness = {template: measure(sampler, template, seed) for _, template in weighed[:MEASURED]}
        useful = [template for template, fit in fitness.items() if fit.score >= LEAST]
        # On a tiny base few entities can be named at all.
        useful = useful or [template for template, fit in fitness.items() if fit.yields * fit.spread >= LEAST]
        templates += sorted(useful, key=lambda template: (-fitness[template].score, template.name))[:KEPT]
    return templates


def measure(sampler: Sampler, template: Template, seed: int) -> Usefulness:
    """Draw a few requirements and look at them."""
    rng = random.Random(f"{seed}|measure|{template.name}")
    drawn = [sampler.draw(template, rng, with_text=template.kind == "textual", tries=1) for _ in range(DRAWS)]
    found = [requirement for requirement in drawn if requirement is not None]
    answers = [node for requirement in found for node in requirement.possible]
    entities = min(
        (len(sampler.starts(branch)) for branch in template.branches if not branch.start.anything), default=0
    )
    spread = len(set(answers)) / len(answers) if answers else 0.0
    return Usefulness(len(found) / DRAWS, spread, entities)


def distinct_steps(kb: ArrayKnowledgeBase) -> list[tuple[int, Step]]:
    """Every edge that may be followed, with the number of its edges; of several with the same extension, one.

    A relation and its stored inverse, two names of one relation, and both directions of a symmetric one are the same.
    """
    seen: set[tuple[str, str, tuple[bytes, ...]]] = set()
    found = []
    for row in sorted(kb.schema.relations, key=lambda row: (-row.count, row.name, row.head, row.tail)):
        for step in (Step(row.head, row.name, row.tail, "out"), Step(row.tail, row.name, row.head, "in")):
            extension = (step.source, step.target, _extension(kb, step))
            if extension not in seen:
                seen.add(extension)
                found.append((row.count, step))
    return found


def _extension(kb: ArrayKnowledgeBase, step: Step) -> tuple[bytes, ...]:
    """Where a step leads from a few nodes that have it, wherever the schema allows either direction."""
    sources = kb.nodes(step.source)
    stride = max(1, len(sources) // PROBES)
    probes = sources.array[::stride]
    targets = kb.nodes(step.target)
    near = [kb.neighbors(NodeSet.of([int(node)]), step.relation, step.direction) & targets for node in probes]
    total = len(kb.neighbors(sources, step.relation, step.direction) & targets)
    return (str(total).encode(), *(nodes.array.tobytes() for nodes in near))


def types_with_text(kb: ArrayKnowledgeBase) -> frozenset[str]:
    """The types of which a good part of the nodes has something written about it."""
    found = []
    for node_type in kb.schema.node_types:
        nodes = kb.nodes(node_type.name)
        sample = nodes.array[:: max(1, len(nodes) // PROBES)]
        texts = [kb.node(int(node)).text for node in sample]
        if sum(bool(text.strip()) for text in texts) * 3 >= len(texts):
            found.append(node_type.name)
    return frozenset(found)


Weighed = Iterator[tuple[int, Template]]


def _of_kind(
    kind: Kind, all_steps: Sequence[tuple[int, Step]], texts: frozenset[str]
) -> Iterable[tuple[int, Template]]:
    if kind == "textual":
        plain = [*_of_kind("1-hop", all_steps, texts), *_of_kind("2-hop", all_steps, texts)]
        return [
            (weight, replace(template, name=f"textual: {template.name}", kind="textual"))
            for weight, template in plain
            if template.target in texts
        ]
    makers = {
        "1-hop": _single,
        "2-hop": _double,
        "intersection": _intersections,
        "negation": _negations,
        "metapath-and": _conjunctions,
    }
    return makers[kind](all_steps)


def _single(steps: Sequence[tuple[int, Step]]) -> Weighed:
    for weight, step in steps:
        yield weight, _template("1-hop", _branch("a", step))


def _double(steps: Sequence[tuple[int, Step]]) -> Weighed:
    for (first_weight, first), (second_weight, second) in product(steps, steps):
        if first.target == second.source:
            yield min(first_weight, second_weight), _template("2-hop", _branch("a", first, second))


def _intersections(steps: Sequence[tuple[int, Step]]) -> Weighed:
    for (first_weight, first), (second_weight, second) in combinations_with_replacement(steps, 2):
        if first.target == second.target:
            branches = (_branch("a", first), _branch("b", second))
            yield min(first_weight, second_weight), _template("intersection", *branches)


def _negations(steps: Sequence[tuple[int, Step]]) -> Weighed:
    for (first_weight, first), (second_weight, second) in product(steps, steps):
        if first.target == second.target:
            forbidden = replace(second, negated=True)
            weight = min(first_weight, second_weight)
            yield weight, _template("negation", _branch("a", first), _branch("b", forbidden))
            if first != second:
                nothing = Branch(Start(second.source, "none", anything=True), (forbidden,))
                yield weight // 2, _template("negation", _branch("a", first), nothing)


def _conjunctions(steps: Sequence[tuple[int, Step]]) -> Weighed:
    for (weight, first), (other_weight, second) in product(steps, steps):
        if first.target != second.source:
            continue
        for last_weight, last in steps:
            if last.target == second.target:
                same = last.source == first.source and first != last
                branches = (_branch("a", first, second), _branch("a" if same else "b", last))
                yield min(weight, other_weight, last_weight), _template("metapath-and", *branches)


def _branch(label: str, *steps: Step) -> Branch:
    return Branch(Start(steps[0].source, label), steps)


def _template(kind: Kind, *branches: Branch) -> Template:
    unnamed = Template("", kind, branches)
    return replace(unnamed, name=str(unnamed))


def check_kinds(names: Iterable[str], others: Iterable[str] = ()) -> tuple[Kind, ...]:
    """Kinds as the command line gives them. An error lists `others`, too."""
    chosen = tuple(names)
    for name in chosen:
        if name not in KINDS:
            raise InputError(f"no kind of question {name!r}; there are: {', '.join((*KINDS, *others))}")
    return tuple(kind for kind in KINDS if kind in chosen)
