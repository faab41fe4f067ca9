"""Enumerate templates from a schema, measure them on samples, and select the useful ones.

A template is useful if its candidate sets are neither empty nor huge, its answers are spread over many nodes instead of
a few hubs, and many entities can start it. Equivalent relations (inverse, symmetric or duplicate) are recognised by
their edges, so that no two templates are equivalent.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

from clew.core.errors import InputError
from clew.core.types import NodeSet
from clew.lab.synthesis.requirement import Sampler
from clew.lab.synthesis.templates import KINDS, Kind, Start, Template, TemplateBranch, TemplateStep
from clew.store.graph.arrays import ArrayKnowledgeBase

MEASURED = 36
"""Maximum number of templates of a kind to measure, by number of edges."""
KEPT = 12
"""Maximum number of templates of a kind to select."""
DRAWS = 16
"""Number of requirements to draw per template."""
LEAST = 0.05
"""Minimum score of a template."""
PROBES = 64
"""Number of nodes used to compare two relations."""


@dataclass(frozen=True, slots=True)
class Usefulness:
    """Share of draws that gave a requirement, share of distinct answers, and number of entities."""

    yields: float
    spread: float
    entities: int

    @property
    def score(self) -> float:
        """Score between 0 and 1."""
        return self.yields * self.spread * min(1.0, self.entities / 20)


def enumerate_templates(sampler: Sampler, kinds: Sequence[Kind], seed: int) -> list[Template]:
    """Return the useful templates of the given kinds, the most useful of each kind first."""
    edges, texts = distinct_steps(sampler.kb), types_with_text(sampler.kb)
    templates: list[Template] = []
    for kind in kinds:
        weighed = sorted(_of_kind(kind, list(edges), texts), key=lambda one: (-_weight(one, edges), one.name))
        fitness = {template: measure(sampler, template, seed) for template in weighed[:MEASURED]}
        useful = [template for template, fit in fitness.items() if fit.score >= LEAST]
        # On a tiny base, accept templates with few entities.
        useful = useful or [template for template, fit in fitness.items() if fit.yields * fit.spread >= LEAST]
        templates += sorted(useful, key=lambda template: (-fitness[template].score, template.name))[:KEPT]
    return templates


def measure(sampler: Sampler, template: Template, seed: int) -> Usefulness:
    """Draw sample requirements and measure the template."""
    rng = random.Random(f"{seed}|measure|{template.name}")
    drawn = [sampler.draw(template, rng, with_text=template.kind == "textual", tries=1) for _ in range(DRAWS)]
    found = [requirement for requirement in drawn if requirement is not None]
    answers = [node for requirement in found for node in requirement.possible]
    entities = min(
        (len(sampler.starts(branch)) for branch in template.branches if not branch.start.anything), default=0
    )
    spread = len(set(answers)) / len(answers) if answers else 0.0
    return Usefulness(len(found) / DRAWS, spread, entities)


def distinct_steps(kb: ArrayKnowledgeBase) -> dict[TemplateStep, int]:
    """Return every step with its number of edges, without equivalent steps.

    Equivalent are a relation and its stored inverse, two names of one relation, and both directions of a symmetric one.
    """
    found: dict[tuple[str, str, tuple[bytes, ...]], tuple[TemplateStep, int]] = {}
    for row in sorted(kb.schema.relations, key=lambda row: (-row.count, row.name, row.head, row.tail)):
        out, back = TemplateStep(row.head, row.name, row.tail, "out"), TemplateStep(row.tail, row.name, row.head, "in")
        for step in (out, back):
            found.setdefault((step.source, step.target, _extension(kb, step)), (step, row.count))
    return dict(found.values())


def _extension(kb: ArrayKnowledgeBase, step: TemplateStep) -> tuple[bytes, ...]:
    """Return a signature of a step: the number of targets and the targets of some nodes."""
    sources = kb.nodes(step.source)
    probes = sources.array[:: max(1, len(sources) // PROBES)]
    targets = kb.nodes(step.target)
    near = [kb.neighbors(NodeSet.of([int(node)]), step.relation, step.direction) & targets for node in probes]
    total = len(kb.neighbors(sources, step.relation, step.direction) & targets)
    return (str(total).encode(), *(nodes.array.tobytes() for nodes in near))


def types_with_text(kb: ArrayKnowledgeBase) -> frozenset[str]:
    """Return the types for which at least a third of the sampled nodes have text."""
    found = []
    for node_type in kb.schema.node_types:
        nodes = kb.nodes(node_type.name)
        sample = nodes.array[:: max(1, len(nodes) // PROBES)]
        texts = [kb.node(int(node)).text for node in sample]
        if sum(bool(text.strip()) for text in texts) * 3 >= len(texts):
            found.append(node_type.name)
    return frozenset(found)


def _weight(template: Template, edges: Mapping[TemplateStep, int]) -> int:
    """Return the smallest number of edges of a step, or half of it if the template forbids an edge to any node."""
    steps = (replace(step, negated=False) for branch in template.branches for step in branch.steps)
    least = min(edges[step] for step in steps)
    return least // 2 if any(branch.start.anything for branch in template.branches) else least


def _of_kind(kind: Kind, steps: Sequence[TemplateStep], texts: frozenset[str]) -> Iterable[Template]:
    if kind == "textual":
        plain = [*_single(steps), *_double(steps)]
        return [replace(one, name=f"textual: {one.name}", kind=kind) for one in plain if one.target in texts]
    makers = {
        "1-hop": _single,
        "2-hop": _double,
        "intersection": _intersections,
        "negation": _negations,
        "metapath-and": _conjunctions,
    }
    return makers[kind](steps)


def _single(steps: Sequence[TemplateStep]) -> Iterator[Template]:
    for step in steps:
        yield _template("1-hop", _branch("a", step))


def _double(steps: Sequence[TemplateStep]) -> Iterator[Template]:
    for first, second in product(steps, steps):
        if first.target == second.source:
            yield _template("2-hop", _branch("a", first, second))


def _intersections(steps: Sequence[TemplateStep]) -> Iterator[Template]:
    for first, second in combinations_with_replacement(steps, 2):
        if first.target == second.target:
            yield _template("intersection", _branch("a", first), _branch("b", second))


def _negations(steps: Sequence[TemplateStep]) -> Iterator[Template]:
    for first, second in product(steps, steps):
        if first.target == second.target:
            forbidden = replace(second, negated=True)
            yield _template("negation", _branch("a", first), _branch("b", forbidden))
            if first != second:
                nothing = TemplateBranch(Start(second.source, "none", anything=True), (forbidden,))
                yield _template("negation", _branch("a", first), nothing)


def _conjunctions(steps: Sequence[TemplateStep]) -> Iterator[Template]:
    for first, second in product(steps, steps):
        for last in steps if first.target == second.source else ():
            if last.target == second.target:
                same = last.source == first.source and first != last
                yield _template("metapath-and", _branch("a", first, second), _branch("a" if same else "b", last))


def _branch(label: str, *steps: TemplateStep) -> TemplateBranch:
    return TemplateBranch(Start(steps[0].source, label), steps)


def _template(kind: Kind, *branches: TemplateBranch) -> Template:
    unnamed = Template("", kind, branches)
    return replace(unnamed, name=str(unnamed))


def check_kinds(names: Iterable[str], others: Iterable[str] = ()) -> tuple[Kind, ...]:
    """Validate kinds from the command line. An error also lists `others`."""
    chosen = tuple(names)
    for name in chosen:
        if name not in KINDS:
            raise InputError(f"no kind of question {name!r}: use {', '.join((*KINDS, *others))}")
    return tuple(kind for kind in KINDS if kind in chosen)
