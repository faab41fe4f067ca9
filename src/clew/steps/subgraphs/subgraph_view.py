"""A subgraph as plain values: what the command line and the web show."""

from __future__ import annotations

from typing import Any

from clew.kb.protocol import KnowledgeBase
from clew.steps.subgraphs.graph_features import GRAPH_FEATURES
from clew.steps.subgraphs.graph_to_text import linearize
from clew.steps.subgraphs.subgraph import Subgraph


def subgraph_json(kb: KnowledgeBase, subgraph: Subgraph) -> dict[str, Any]:
    """Nodes with their roles, edges, distances, features and the text."""
    refs = kb.refs(subgraph.nodes)
    keys = {ref.id: ref.key for ref in refs}
    names = kb.schema.relation_names
    return {
        "nodes": [
            {"key": ref.key, "name": ref.name, "type": ref.type, "role": _role(subgraph, ref.id)} for ref in refs
        ],
        "edges": [
            {"head": keys[head], "relation": names[code], "tail": keys[tail]} for head, code, tail in subgraph.triples
        ],
        "paths": [
            {
                "from": keys.get(found.source, ""),
                "distance": found.distance,
                "count": found.count,
                "kept": [[keys[node] for node in path] for path in found.paths],
            }
            for found in subgraph.paths
        ],
        "disconnected": subgraph.disconnected,
        "complete": subgraph.complete,
        "features": {name: round(feature(subgraph), 6) for name, feature in GRAPH_FEATURES.items()},
        "text": linearize(kb, subgraph),
    }


def _role(subgraph: Subgraph, node: int) -> str:
    if node == subgraph.candidate:
        return "candidate"
    return "question entity" if node in subgraph.entities else "between"
