"""Export a knowledge base as N-Triples, with the names of `clew.store.graph.iris` that its formal queries use."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.iris import COMMENT, LABEL, TYPE, attribute_iri, node_iri, relation_iri, type_iri
from clew.store.remote.sparql_endpoint import iri, literal

ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
XSD = "http://www.w3.org/2001/XMLSchema#"


def write_ntriples(kb: ArrayKnowledgeBase, file: Path) -> int:
    """Write every node and edge, one statement per line, without edge attributes. Return the number of statements."""
    count = 0
    with gzip.open(file, "wt", encoding="utf-8") if file.suffix == ".gz" else file.open("w", encoding="utf-8") as out:
        for statement in statements(kb):
            out.write(statement + " .\n")
            count += 1
    return count


def statements(kb: ArrayKnowledgeBase) -> Iterator[str]:
    """Yield names, types, texts and attributes of every node, then the edges."""
    names = [iri(node_iri(key)) for key in kb.columns()["key"].to_pylist()]
    for index, subject in enumerate(names):
        node = kb.node(index)
        yield f"{subject} {iri(TYPE)} {iri(type_iri(node.type))}"
        yield f"{subject} {iri(LABEL)} {literal(node.name)}"
        for alias in node.aliases:
            yield f"{subject} {iri(ALIAS)} {literal(alias)}"
        if node.text:
            yield f"{subject} {iri(COMMENT)} {literal(node.text)}"
        yield from attribute_statements(subject, node.attributes)
    edges = kb.edges(kb.nodes(), None, "out")
    predicates = [iri(relation_iri(name)) for name in kb.schema.relation_names]
    for head, code, tail in zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True):
        yield f"{names[head]} {predicates[code]} {names[tail]}"


def attribute_statements(subject: str, attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the attributes of a node or an edge."""
    for name, value in attributes.items():
        for part in value if isinstance(value, list) else [value] if value == value else []:  # skip NaN
            yield f"{subject} {iri(attribute_iri(name))} {_typed(part)}"


def _typed(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "double", datetime: "dateTime", date: "date"}
    kind = kinds.get(type(value))
    if kind is None:
        return literal(str(value))
    shown = value.isoformat() if kind in ("date", "dateTime") else str(value)
    if kind == "boolean":
        shown = shown.lower()
    elif kind == "double":
        shown = shown.replace("inf", "INF")
    return f"{literal(shown)}^^{iri(XSD + kind)}"
