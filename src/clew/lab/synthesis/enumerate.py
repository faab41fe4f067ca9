"""Enumerate templates from a schema, measure them on samples, and select the useful ones.

A template is useful if its candidate sets are neither empty nor huge, its answers are spread over many nodes instead of
a few hubs, and many entities can start it. Equivalent relations (inverse, symmetric or duplicate) are recognised by
their edges, so that no two templates are equivalent.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
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
    steps, texts = distinct_steps(sampler.kb), types_with_text(sampler.kb)
    templates: list[Template] = []
    for kind in kinds:
        weighed = sorted(_of_kind(kind, steps, texts), key=lambda pair: (-pair[0], pair[1].name))
        fitness = {template: measure(sampler, template, seed) for _, template in weighed[:MEASURED]}
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


def distinct_steps(kb: ArrayKnowledgeBase) -> list[tuple[int, TemplateStep]]:
    """Return every step with its number of edges, without equivalent steps.

    Equivalent are a relation and its stored inverse, two names of one relation, and both directions of a symmetric one.
    """
    seen: set[tuple[str, str, tuple[bytes, ...]]] = set()
    found = []
    for row in sorted(kb.schema.relations, key=lambda row: (-row.count, row.name, row.head, row.tail)):
        for step in (
            TemplateStep(row.head, row.name, row.tail, "out"),
            TemplateStep(row.tail, row.name, row.head, "in"),
        ):
            extension = (step.source, step.target, _extension(kb, step))
            if extension not in seen:
                seen.add(extension)
                found.append((row.count, step))
    return found


def _extension(kb: ArrayKnowledgeBase, step: TemplateStep) -> tuple[bytes, ...]:
    """Return a signature of a step: the number of targets and the targets of some nodes."""
    sources = kb.nodes(step.source)
    stride = max(1, len(sources) // PROBES)
    probes = sources.array[::stride]
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


Weighed = Iterator[tuple[int, Template]]


def _of_kind(
    kind: Kind, all_steps: Sequence[tuple[int, TemplateStep]], texts: frozenset[str]
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


def _single(steps: Sequence[tuple[int, TemplateStep]]) -> Weighed:
    for weight, step in steps:
        yield weight, _template("1-hop", _branch("a", step))


def _double(steps: Sequence[tuple[int, TemplateStep]]) -> Weighed:
    for (first_weight, first), (second_weight, second) in product(steps, steps):
        if first.target == second.source:
            yield min(first_weight, second_weight), _template("2-hop", _branch("a", first, second))


def _intersections(steps: Sequence[tuple[int, TemplateStep]]) -> Weighed:
    for (first_weight, first), (second_weight, second) in combinations_with_replacement(steps, 2):
        if first.target == second.target:
            branches = (_branch("a", first), _branch("b", second))
            yield min(first_weight, second_weight), _template("intersection", *branches)


def _negations(steps: Sequence[tuple[int, TemplateStep]]) -> Weighed:
    for (first_weight, first), (second_weight, second) in product(steps, steps):
        if first.target == second.target:
            forbidden = replace(second, negated=True)
            weight = min(first_weight, second_weight)
            yield weight, _template("negation", _branch("a", first), _branch("b", forbidden))
            if first != second:
                nothing = TemplateBranch(Start(second.source, "none", anything=True), (forbidden,))
                yield weight // 2, _template("negation", _branch("a", first), nothing)


def _conjunctions(steps: Sequence[tuple[int, TemplateStep]]) -> Weighed:
    for (weight, first), (other_weight, second) in product(steps, steps):
        if first.target != second.source:
            continue
        for last_weight, last in steps:
            if last.target == second.target:
                same = last.source == first.source and first != last
                branches = (_branch("a", first, second), _branch("a" if same else "b", last))
                yield min(weight, other_weight, last_weight), _template("metapath-and", *branches)


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
