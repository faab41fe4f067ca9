"""What a question says about attributes of the nodes on a path: constraints, and the most or the least of them.

The thesis names this as future work (1a): "the nationality of the tallest person" needs the tallest person before the
path goes on. The learned reader finds the words; where the ends of a path have the attribute, they are narrowed, and
the formal query says so; where nodes on the way have it, the path begins anew at those that are meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.query import Best, Condition, TripletQuery
from clew.core.types import Answer, NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.methods.paths.execution import answer_paths
from clew.methods.role_choice import reader_parser
from clew.queries.claims import TARGET
from clew.queries.finishing import best_of
from clew.queries.problem import holds
from clew.queries.relation_paths import Explorer, RelationPath
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Refined:
    """The paths and ends that are left, what the ends were narrowed by, and a note where a path begins anew."""

    paths: list[RelationPath]
    ends: NodeSet
    conditions: tuple[Condition, ...] = ()
    best: Best | None = None
    notes: tuple[str, ...] = ()


def answer_refined(
    tools: Toolbox, explorer: Explorer, question: str, by: str, paths: list[RelationPath], ends: NodeSet
) -> Answer:
    """The ends of paths, narrowed by what the question says about attributes, where the base has any."""
    refined = Refined(paths, ends)
    if explorer.kb.schema.attribute_types:
        query = reader_parser(tools).parse(question, explorer.kb.schema).query
        refined = refine(explorer, paths, ends, query)
    answer = answer_paths(explorer, question, by, refined.paths, refined.ends, refined.conditions, refined.best)
    return replace(answer, notes=(*answer.notes, *refined.notes))


def refine(explorer: Explorer, paths: list[RelationPath], ends: NodeSet, query: TripletQuery) -> Refined:
    """The ends that meet the conditions on attributes and have the most or the least; all where that leaves none."""
    best = query.best if query.best is not None and query.best.attribute is not None else None
    if best is None and not query.conditions:
        return Refined(paths, ends)
    left, conditions, best_used = _narrowed(explorer.kb, ends, query.conditions, best)
    if len(left) and (conditions or best_used is not None):
        return Refined(paths, left, conditions, best_used)
    if len(paths) == 1:
        return _begun_anew(explorer, paths[0], ends, query.conditions, best)
    return Refined(paths, ends)


def _begun_anew(
    explorer: Explorer, path: RelationPath, ends: NodeSet, conditions: Sequence[Condition], best: Best | None
) -> Refined:
    """From the last nodes on the way that have what is asked about."""
    for count in range(len(path.hops) - 1, 0, -1):
        on_the_way = explorer.execute(RelationPath(path.topic, path.hops[:count]))
        left, _, _ = _narrowed(explorer.kb, on_the_way, conditions, best)
        if len(left) and len(left) < len(on_the_way):
            onward = RelationPath(left, path.hops[count:])
            reached = explorer.execute(onward)
            if len(reached):
                wishes = [f"{one.attribute} {one.comparison} {one.value}" for one in conditions]
                said = " and ".join(wishes if best is None else [*wishes, str(best)])
                first = " ".join(move.in_words() for hop in path.hops[:count] for move in hop)
                return Refined([onward], reached, notes=(f"of what {first} leads to, those {said}: {len(left)}",))
    return Refined([path], ends)


def _narrowed(
    kb: KnowledgeBase, nodes: NodeSet, conditions: Sequence[Condition], best: Best | None
) -> tuple[NodeSet, tuple[Condition, ...], Best | None]:
    """The nodes that are left, and which of the wishes could be met: those whose attribute some of the nodes have."""
    met: list[Condition] = []
    for condition in conditions:
        values = kb.values(nodes, condition.attribute)
        if any(value is not None for value in values):
            kept = [holds(value, condition.comparison, condition.value) for value in values]
            nodes = NodeSet.of([node for node, keep in zip(nodes, kept, strict=True) if keep])
            met.append(replace(condition, variable=TARGET))
    if best is not None and best.attribute is not None and len(chosen := best_of(kb, best, nodes)):
        return chosen, tuple(met), best
    return nodes, tuple(met), None
