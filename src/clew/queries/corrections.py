"""A query with other relations in the place of those it was understood by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clew.core.errors import InputError
from clew.core.query import Constant, Term, Triplet, TripletQuery, Variable
from clew.core.schema import Relation, Schema


def with_relations(query: TripletQuery, relations: Mapping[str, str], schema: Schema) -> TripletQuery:
    """Every edge of a corrected relation is one of the other, in whichever direction fits what the question names."""
    for name in relations.values():
        if name not in schema.relation_names:
            there = ", ".join(schema.relation_names[:20])
            raise InputError(f"there is no relation {name!r}; there are: {there}")
    if not any(triplet.relation in relations for triplet in query.triplets):
        return replace(query, either=tuple(with_relations(one, relations, schema) for one in query.either))
    triplets, types = [], {name: variable.type for name, variable in query.variables().items()}
    for triplet in query.triplets:
        meant = relations.get(triplet.relation or "")
        if meant is not None:
            triplet, row = _turned(triplet, schema.relation_rows(meant))
            for term, kind in ((triplet.head, row.head), (triplet.tail, row.tail)):
                if isinstance(term, Variable):
                    types[term.name] = kind
        triplets.append(triplet)

    def typed(term: Term) -> Term:
        return replace(term, type=types[term.name]) if isinstance(term, Variable) else term

    settled = tuple(replace(one, head=typed(one.head), tail=typed(one.tail)) for one in triplets)
    target = replace(query.target, type=types[query.target.name])
    either = tuple(with_relations(one, relations, schema) for one in query.either)
    return replace(query, triplets=settled, target=target, either=either)


def _turned(triplet: Triplet, rows: Sequence[Relation]) -> tuple[Triplet, Relation]:
    """The triplet with the relation of the row that fits its name best, turned round where only that fits."""
    name = rows[0].name
    straight = replace(triplet, relation=name)
    turned = replace(triplet, head=triplet.tail, relation=name, tail=triplet.head)
    for one in (straight, turned):
        for row in rows:
            ends = ((one.head, row.head), (one.tail, row.tail))
            if all(term.type in (None, kind) for term, kind in ends if isinstance(term, Constant)):
                return one, row
    return straight, rows[0]
