"""A query as the user means it: other relations than it was understood by, the other way round, or another type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.core.errors import InputError
from clew.core.query import Constant, Term, Triplet, TripletQuery, Variable
from clew.core.roles import Parse
from clew.core.schema import Relation, Schema

ANY = "*"
"""How a requirement is named that any relation satisfies."""
TURNED = "^"
"""What stands before a relation that is meant the other way round."""


@dataclass(frozen=True)
class Corrections:
    """What is meant in the place of what was understood."""

    relations: Mapping[str, str] = field(default_factory=dict)
    """Relation → the one that is meant; `^` before it turns it round, `*` is a requirement of any relation."""
    type: str | None = None
    """The type of what is asked for."""

    def __bool__(self) -> bool:
        return bool(self.relations) or self.type is not None

    def corrected(self, parse: Parse, schema: Schema) -> Parse:
        """The first reading that asks for the type, with the relations; it is what is meant: no other is tried."""
        query, kind = parse.query, self.type
        if kind is not None:
            schema.node_type(kind)  # raises where there is none
            readings = (query, *parse.alternatives)
            query = next((one for one in readings if one.target.type == kind), None) or of_type(query, kind, schema)
        return replace(parse, query=with_relations(query, self.relations, schema), alternatives=(), certainty=1.0)


def with_relations(query: TripletQuery, relations: Mapping[str, str], schema: Schema) -> TripletQuery:
    """Every edge of a corrected relation is one of the other, in whichever direction fits what the question names."""
    for name in relations.values():
        schema.relation_rows(_plain(name, schema))  # raises where there is none
    triplets, types = [], {name: variable.type for name, variable in query.variables().items()}
    for triplet in query.triplets:
        meant = relations.get(triplet.relation or ANY)
        if meant is not None:
            triplet, row = _meant(triplet, meant, schema)
            for term, kind in ((triplet.head, row.head), (triplet.tail, row.tail)):
                if isinstance(term, Variable):
                    types[term.name] = kind
        triplets.append(triplet)
    best = query.best
    if best is not None and best.relation is not None and best.relation in relations:
        other = Variable("", best.of)
        ends = (query.target, other) if best.is_head else (other, query.target)
        counted, row = _meant(Triplet(ends[0], best.relation, ends[1]), relations[best.relation], schema)
        is_head = counted.head == query.target
        types[query.target.name] = row.head if is_head else row.tail
        best = replace(best, relation=counted.relation, is_head=is_head, of=row.tail if is_head else row.head)

    def typed(term: Term) -> Term:
        return replace(term, type=types[term.name]) if isinstance(term, Variable) else term

    settled = tuple(replace(one, head=typed(one.head), tail=typed(one.tail)) for one in triplets)
    target = replace(query.target, type=types[query.target.name])
    either = tuple(with_relations(one, relations, schema) for one in query.either)
    return replace(query, triplets=settled, target=target, best=best, either=either)


def of_type(query: TripletQuery, kind: str, schema: Schema) -> TripletQuery:
    """The query, asking for another type: by the relations that there are, or for what is joined to its answers."""
    if query.best or query.conditions or query.counts or query.attribute or query.either or query.among:
        raise InputError(f"this question cannot ask for {kind}: it requires more than relations ({query})")
    target = replace(query.target, type=kind)
    retyped = [_retyped(one, target, schema) for one in query.triplets]
    whole = tuple(one for one in retyped if one is not None)
    if len(whole) == len(retyped):
        return replace(query, triplets=whole, target=target)
    asked = Variable(f"{target.name}_{kind}", kind)
    joined = _joined(Triplet(asked, None, query.target), schema)
    if joined is None:
        raise InputError(f"this question cannot ask for {kind}: nothing joins {kind} to {query.target.type or 'nodes'}")
    return replace(query, triplets=(*query.triplets, joined), target=asked)


def _retyped(triplet: Triplet, target: Variable, schema: Schema) -> Triplet | None:
    """The triplet with the target of another type; None where nothing joins that to its other end."""
    ends = [
        target if isinstance(end, Variable) and end.name == target.name else end for end in (triplet.head, triplet.tail)
    ]
    changed = replace(triplet, head=ends[0], tail=ends[1])
    rows = () if triplet.relation is None else schema.relation_rows(triplet.relation)
    is_kept = target not in ends or _row(changed, rows, (Constant, Variable)) is not None
    return changed if is_kept else _joined(changed, schema)


def _joined(triplet: Triplet, schema: Schema) -> Triplet | None:
    """The triplet by the only relation that joins the types of its ends, or by any of several; None where none does."""
    ways = (triplet, _round(triplet))
    names = {row.name for row in schema.relations if any(_row(one, (row,), (Constant, Variable)) for one in ways)}
    if not names:
        return None
    name = names.pop() if len(names) == 1 else None
    changed = replace(triplet, relation=name)
    return changed if name is None else _fitting(changed, schema.relation_rows(name))[0]


def _plain(name: str, schema: Schema) -> str:
    return name if name in schema.relation_names else name.removeprefix(TURNED)


def _meant(triplet: Triplet, meant: str, schema: Schema) -> tuple[Triplet, Relation]:
    """The triplet by the relation that is meant, and the row of the schema that it goes by."""
    rows = schema.relation_rows(_plain(meant, schema))
    name = rows[0].name
    found, row = _fitting(replace(triplet, relation=name), rows)
    if meant == name:
        return found, row
    turned = _round(found)
    fits = _row(turned, rows, (Constant, Variable)) or _row(turned, rows, (Constant,))
    if fits is None:
        told = " or ".join(f"from {one.head} to {one.tail}" for one in rows)
        raise InputError(f"{name} leads {told}: here it cannot be meant the other way round")
    return turned, fits


def _fitting(triplet: Triplet, rows: Sequence[Relation]) -> tuple[Triplet, Relation]:
    """The triplet, turned round where only that fits: all its ends, or else what the question names."""
    for considered in ((Constant, Variable), (Constant,)):
        for one in (triplet, _round(triplet)):
            row = _row(one, rows, considered)
            if row is not None:
                return one, row
    return triplet, rows[0]


def _round(triplet: Triplet) -> Triplet:
    return replace(triplet, head=triplet.tail, tail=triplet.head)


def _row(triplet: Triplet, rows: Sequence[Relation], considered: tuple[type, ...]) -> Relation | None:
    """The first row whose types are those of the triplet's ends, as far as they are considered and known."""
    for row in rows:
        ends = ((triplet.head, row.head), (triplet.tail, row.tail))
        if all(term.type in (None, kind) for term, kind in ends if isinstance(term, considered)):
            return row
    return None
