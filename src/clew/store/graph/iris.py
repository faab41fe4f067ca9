"""How nodes, relations, types and attributes are named in RDF; keys that are IRIs already stay as they are."""

from __future__ import annotations

from urllib.parse import quote

PREFIX = "urn:clew:"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

EDGE_HEAD, EDGE_RELATION, EDGE_TAIL = (f"{PREFIX}edge:{part}" for part in ("head", "relation", "tail"))
"""Statements about an edge that is a node of its own, so that it can have attributes."""


def node_iri(key: str) -> str:
    """The IRI of a node."""
    return key if "://" in key and not set(key) & set(' <>"{}|\\^`') else f"{PREFIX}node:{quote(key, safe=':')}"


def relation_iri(name: str) -> str:
    """The IRI of a relation."""
    return f"{PREFIX}relation:{quote(name, safe='')}"


def type_iri(name: str) -> str:
    """The IRI of a node type."""
    return f"{PREFIX}type:{quote(name, safe='')}"


def attribute_iri(name: str) -> str:
    """The IRI of a node attribute."""
    return f"{PREFIX}attribute:{quote(name, safe='')}"


def edge_iri(number: int) -> str:
    """The IRI of an edge that is a node of its own."""
    return f"{PREFIX}edge:{number}"
