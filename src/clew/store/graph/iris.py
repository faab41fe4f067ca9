"""RDF names of nodes, relations, types and attributes. Keys that are IRIs stay unchanged."""

from __future__ import annotations

from urllib.parse import quote

PREFIX = "urn:clew:"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

EDGE_HEAD, EDGE_RELATION, EDGE_TAIL = (f"{PREFIX}edge:{part}" for part in ("head", "relation", "tail"))
"""Predicates of an edge that is represented as a node, so that it can have attributes."""


def node_iri(key: str) -> str:
    """Return the IRI of a node."""
    return key if "://" in key and not set(key) & set(' <>"{}|\\^`') else f"{PREFIX}node:{quote(key, safe=':')}"


def relation_iri(name: str) -> str:
    """Return the IRI of a relation."""
    return f"{PREFIX}relation:{quote(name, safe='')}"


def type_iri(name: str) -> str:
    """Return the IRI of a node type."""
    return f"{PREFIX}type:{quote(name, safe='')}"


def attribute_iri(name: str) -> str:
    """Return the IRI of a node attribute."""
    return f"{PREFIX}attribute:{quote(name, safe='')}"
