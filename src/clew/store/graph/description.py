"""Content of a knowledge base as plain values, for `clew info`, `clew show` and the web."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from clew.core.schema import Schema
from clew.core.types import NodeSet
from clew.store.graph.adjacency import Adjacency
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.protocol import KnowledgeBase


def describe(kb: ArrayKnowledgeBase) -> dict[str, Any]:
    """Return counts, schema, degrees, size on disk and source notes."""
    return {
        "nodes": kb.count,
        "edges": kb.edge_count,
        **described_schema(kb.schema),
        "degrees": {"out": _degrees(kb, kb.outward), "in": _degrees(kb, kb.inward)},
        "bytes": sum(facts["size"] for facts in kb.manifest.files.values()),
        "created": kb.manifest.created,
        "generation": kb.manifest.generation,
        "notes": kb.manifest.facts["notes"],
    }


def described_schema(schema: Schema) -> dict[str, Any]:
    """Return types, relations and attributes."""
    return {
        "node_types": [asdict(node_type) for node_type in schema.node_types],
        "relations": [asdict(relation) for relation in schema.relations],
        "attributes": schema.attribute_types,
        "edge_attributes": schema.edge_attributes,
    }


def node_page(kb: KnowledgeBase, node: int, most: int = 10) -> dict[str, Any]:
    """Return a node with its document, and its first neighbours by relation and direction."""
    content = kb.node(node)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    counts: dict[tuple[str, str], int] = {}
    for triple in kb.triples(node):
        direction, other = ("out", triple.tail) if triple.head == node else ("in", triple.head)
        group = (triple.relation, direction)
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= most:
            (ref,) = kb.refs([other])
            entry: dict[str, Any] = {"key": ref.key, "name": ref.name, "type": ref.type}
            if triple.attributes:
                entry["attributes"] = dict(triple.attributes)
            groups.setdefault(group, []).append(entry)
    return {
        "key": content.key,
        "name": content.name,
        "type": content.type,
        "aliases": list(content.aliases),
        "document": kb.text(node),
        "attributes": dict(content.attributes),
        "neighbors": [
            {"relation": relation, "direction": direction, "count": counts[relation, direction], "nodes": nodes}
            for (relation, direction), nodes in groups.items()
        ],
    }


def _degrees(kb: ArrayKnowledgeBase, side: Adjacency) -> dict[str, Any]:
    _, starts, ends = side.ranges(NodeSet.range(kb.count))
    degrees = ends - starts
    top = int(degrees.argmax())
    return {
        "mean": round(float(degrees.mean()), 2),
        "median": float(np.median(degrees)),
        "p90": float(np.percentile(degrees, 90)),
        "max": int(degrees[top]),
        "most": kb.refs([top])[0].name,
    }
