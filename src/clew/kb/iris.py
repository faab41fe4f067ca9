"""How nodes, relations, types and attributes are named in RDF; keys that are IRIs already stay as they are."""

from __future__ import annotations

from urllib.parse import quote

PREFIX = "urn:clew:"


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
