"""OWL's way to say that things of a class are related to things of another, as one edge between the two classes.

A rdfs:subClassOf [ owl:onProperty P ; owl:someValuesFrom B ]     becomes     A —P→ B
"""

from __future__ import annotations

from collections.abc import Sequence

_OWL = "http://www.w3.org/2002/07/owl#"
_ON = _OWL + "onProperty"
_TARGETS = (_OWL + "someValuesFrom", _OWL + "allValuesFrom", _OWL + "hasValue", _OWL + "onClass")
_SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_HOLDS = (_SUBCLASS, _OWL + "equivalentClass")

Edge = tuple[str, str, str]


def unfolded(edges: Sequence[Edge]) -> tuple[list[Edge], set[str]]:
    """The edges with restrictions between two named things as one edge each, and the blank nodes that fall away."""
    properties = {head: tail for head, relation, tail in edges if relation == _ON and head.startswith("_:")}
    targets = {head: tail for head, relation, tail in edges if relation in _TARGETS and head in properties}
    plain = {blank for blank, target in targets.items() if not target.startswith("_:")}
    held = {tail for _, relation, tail in edges if relation in _HOLDS and tail in plain}
    others = {tail for _, relation, tail in edges if relation not in _HOLDS} & held
    gone = held - others  # one that something else leads to, such as an intersection, stays as it is
    found = []
    for head, relation, tail in edges:
        if head in gone:
            continue
        found.append((head, properties[tail], targets[tail]) if tail in gone else (head, relation, tail))
    return found, gone
