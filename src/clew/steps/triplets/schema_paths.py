"""Paths through the schema: how a named node may be connected with what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clew.kb.schema import Schema
from clew.types import RelationUse

GENERIC = frozenset({"entity", "node", "thing", "item", "object", "concept", "resource"})
"""Type names that say nothing."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One step away from a named node: along a relation or against it, to a type.

    `share` says which part of all edges between the two types has this relation: how safe it is to assume it.
    """

    relation: str
    forward: bool
    type: str
    share: float


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
        totals: Counter[tuple[str, str]] = Counter()
        for row in schema.relations:
            totals[row.head, row.tail] += row.count
            totals[row.tail, row.head] += row.count
        self._hops: dict[str, list[Hop]] = {}
        for row in schema.relations:
            share = row.count / max(1, totals[row.head, row.tail])
            self._hops.setdefault(row.head, []).append(Hop(row.name, True, row.tail, share))
            self._hops.setdefault(row.tail, []).append(Hop(row.name, False, row.head, share))

    def first_hops(self, start: str, uses: Sequence[RelationUse]) -> list[Hop]:
        """The hops that named nodes really have, with their own shares."""
        counts = {(use.relation, use.direction == "out"): use.count for use in uses}
        possible = [hop for hop in self._hops.get(start, ()) if (hop.relation, hop.forward) in counts]
        totals: Counter[str] = Counter()
        for hop in possible:
            totals[hop.type] += counts[hop.relation, hop.forward]
        return [
            Hop(hop.relation, hop.forward, hop.type, counts[hop.relation, hop.forward] / totals[hop.type])
            for hop in possible
        ]

    def paths(
        self, start: str, uses: Sequence[RelationUse], ends: frozenset[str], judge: Judge, longest: int, beam: int
    ) -> list[SchemaPath]:
        """The most promising paths to one of the end types, best first."""
        grown: list[tuple[float, tuple[Hop, ...]]] = [(judge(hop), (hop,)) for hop in self.first_hops(start, uses)]
        found: list[tuple[float, tuple[Hop, ...]]] = []
        for length in range(1, longest + 1):
            found += [entry for entry in grown if entry[1][-1].type in ends]
            if length == longest:
                break
            grown = sorted(grown, key=_order)[:beam]
            grown = [
                (score + judge(hop), (*hops, hop))
                for score, hops in grown
                for hop in self._hops.get(hops[-1].type, ())
                if self._continues(hops, hop)
            ]
        return [SchemaPath(start, hops) for _, hops in sorted(found, key=_order)[:beam]]

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
