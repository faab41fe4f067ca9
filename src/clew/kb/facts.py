"""What a manifest says about its graph, read back: counts and schema, as Clew would have written them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.core.errors import CorruptError
from clew.core.schema import NodeType, Relation, Schema


@dataclass(frozen=True)
class Facts:
    """How many nodes and edges there are, and of which types and relations."""

    nodes: int
    edges: int
    schema: Schema


def read_facts(raw: Mapping[str, Any], place: object) -> Facts:
    """The facts of a manifest; one that another program has sealed may hold anything, and is refused."""
    try:
        facts = Facts(raw["nodes"], raw["edges"], schema_from_json(raw["schema"]))
        wrong = "its notes are no list" if not isinstance(raw["notes"], list) else misfit(facts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        raise CorruptError(f"the manifest of {place} does not describe a graph ({wrong}): build the base again")
    return facts


def misfit(facts: Facts) -> str:
    """What of the facts cannot be; empty where all can."""
    kinds = facts.schema.node_types
    rows = facts.schema.relations
    counts = [facts.nodes, facts.edges, *(kind.count for kind in kinds), *(row.count for row in rows)]
    if not all(type(count) is int and count >= 0 for count in counts):
        return "a count is not a number"
    if sum(kind.count for kind in kinds) != facts.nodes or sum(row.count for row in rows) != facts.edges:
        return "the counts of its types or relations do not add up"
    known = {kind.name for kind in kinds}
    if len(known) != len(kinds) or not all(isinstance(name, str) for name in known):
        return "two types have one name"
    if not all(isinstance(row.name, str) and {row.head, row.tail} <= known for row in rows):
        return "a relation joins types that are not there"
    return ""


def schema_from_json(raw: Mapping[str, Any]) -> Schema:
    """The schema as the manifest keeps it."""
    return Schema(
        tuple(NodeType(**{**row, "attributes": tuple(row["attributes"])}) for row in raw["node_types"]),
        tuple(Relation(**row) for row in raw["relations"]),
        dict(raw["attribute_types"]),
        dict(raw["edge_attributes"]),
    )
