"""Paths through the schema: how a named node may be connected with what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from clew.core.schema import Schema
from clew.core.types import RelationUse
from clew.queries.hierarchies import below

UPWARD = 0.8
GENERIC = frozenset({"entity", "node", "thing", "item", "object", "concept", "resource"})
"""Type names that say nothing."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One step away from a named node: along a relation or against it, to a type.

    `share` says which part of all edges between the two types has this relation: how safe it is to assume it;
    `usual` which part of the relation's edges leads to this type: a small one is noise in the data.
    """

    relation: str
    forward: bool
    type: str
    share: float = field(compare=False)
    usual: float = field(default=1.0, compare=False)


@dataclass(frozen=True, slots=True)
class SchemaPath:
    """From a named node of type `start` to what is asked for."""

    start: str
    hops: tuple[Hop, ...]

    @property
    def end(self) -> str:
        """The type it leads to."""
        return self.hops[-1].type


Judge = Callable[[Hop], float]
"""How good a hop looks before the words around it are considered."""


class SchemaGraph:
    """The types of a schema and the relations between them, in both directions."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._transitive = {row.name for row in schema.relations if row.transitive}
        between: Counter[tuple[str, str]] = Counter()
        relations: Counter[str] = Counter()
        for row in schema.relations:
            relations[row.name] += row.count
            between[row.head, row.tail] += row.count
            if row.head != row.tail:
                between[row.tail, row.head] += row.count
        self._hops: dict[str, list[Hop]] = {}
        for row in schema.relations:
            # Nodes of one type have no usual connection: something must say that one is meant.
            share = row.count / max(1, between[row.head, row.tail]) if row.head != row.tail else 0.0
            usual = row.count / max(1, relations[row.name])
            # Asked about a hierarchy, people name the broader node: "a kind of gastritis".
            up, down = (usual * UPWARD, usual) if row.transitive and below(row) == "in" else (usual, usual)
            self._hops.setdefault(row.head, []).append(Hop(row.name, True, row.tail, share, up))
            self._hops.setdefault(row.tail, []).append(Hop(row.name, False, row.head, share, down))

    def first_hops(self, start: str, uses: Sequence[RelationUse]) -> list[Hop]:
        """The hops that named nodes really have, with their own shares."""
        counts = {(use.relation, use.direction == "out"): use.count for use in uses}
        possible = [hop for hop in self._hops.get(start, ()) if (hop.relation, hop.forward) in counts]
        totals: Counter[str] = Counter()
        for hop in possible:
            totals[hop.type] += counts[hop.relation, hop.forward]
        return [
            replace(hop, share=counts[hop.relation, hop.forward] / totals[hop.type] if hop.type != start else 0.0)
            for hop in possible
        ]

    def paths(
        self, start: str, uses: Sequence[RelationUse], ends: frozenset[str], judge: Judge, longest: int, beam: int
    ) -> list[SchemaPath]:
        """The most promising paths of each length to one of the end types."""
        grown: list[tuple[float, tuple[Hop, ...]]] = [(judge(hop), (hop,)) for hop in self.first_hops(start, uses)]
        found: list[tuple[float, tuple[Hop, ...]]] = []
        for length in range(1, longest + 1):
            arrived = [entry for entry in grown if entry[1][-1].type in ends]
            found += sorted(arrived, key=_order)[:beam]
            if length == longest:
                break
            grown = sorted(grown, key=_order)[:beam]
            grown = [
                (score + judge(hop), (*hops, hop))
                for score, hops in grown
                for hop in self._hops.get(hops[-1].type, ())
                if self._continues(hops, hop)
            ]
        return [SchemaPath(start, hops) for _, hops in found]

    def _continues(self, hops: tuple[Hop, ...], hop: Hop) -> bool:
        """No step out, back and out again along one relation; a hierarchy is climbed in one direction only."""
        last = hops[-1]
        turns = last.relation == hop.relation and last.forward != hop.forward
        if turns and hop.relation in self._transitive:
            return False
        before = hops[-2] if len(hops) > 1 else None
        return not (
            turns and before is not None and before.relation == last.relation and before.forward != last.forward
        )


def _order(entry: tuple[float, tuple[Hop, ...]]) -> tuple[float, int, str]:
    score, hops = entry
    return -score, len(hops), " ".join(f"{hop.relation}{hop.forward}" for hop in hops)


def is_generic(type: str | None) -> bool:
    """Whether a type says nothing about its nodes."""
    return type is None or type.lower() in GENERIC
