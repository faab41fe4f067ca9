"""The nodes of an endpoint as they are described there: names, types, texts and attributes, read once, without edges.

What is read becomes a small knowledge base beside the remote graph, by the rules for RDF files, so that names, words
and vectors are searched as in any other base. Large endpoints are not read: there, labels are looked up one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from clew.core.errors import QueryRefusedError, StorageError
from clew.kb.sources.rdf import ALIASES, NAMES, TEXTS, RdfGraph, Text
from clew.kb.sparql_endpoint import Row, SparqlEndpoint, content, iri, literal_parts, number
from clew.kb.sparql_schema import Reading
from clew.kb.tables import Tables

MOST_NAMED = 100_000
"""Endpoints with more names than these are not read."""
IS = " is "
"""Stands between an attribute and its predicate in the notes of the base."""


def can_be_read(endpoint: SparqlEndpoint, reading: Reading) -> bool:
    """Whether an endpoint has names, and not too many: they are counted no further than it matters."""
    if reading.claims:
        return False
    inner = f"SELECT ?s WHERE {{ ?s {iri(reading.label)} ?l }} LIMIT {MOST_NAMED + 1}"
    try:
        [row] = endpoint.page(f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {inner} }} }}")
    except QueryRefusedError:
        return False
    return 0 < number(row["n"]) <= MOST_NAMED


def read_nodes(endpoint: SparqlEndpoint, reading: Reading) -> Tables:
    """Every node that is said something about, or that something leads to."""
    graph = RdfGraph(
        reading.language,
        tuple(dict.fromkeys((reading.label, *NAMES))),
        tuple(dict.fromkeys((reading.comment, *TEXTS))),
    )
    noise = [re.compile(pattern) for pattern in reading.noise]
    known = {*graph.names, *graph.texts, *ALIASES}
    spoken = f'LANG(?o) = "" || LANGMATCHES(LANG(?o), "{reading.language}")'
    wanted = f"FILTER (?p = {iri(reading.type)} || (isLiteral(?o) && ({spoken})))"
    for row in _read(endpoint, f"SELECT ?s ?p ?o WHERE {{ ?s ?p ?o {wanted} }}", "?s ?p ?o"):
        if not row.get("s", "").startswith("<") or "o" not in row:
            continue
        predicate, value = content(row["p"]), row["o"]
        if predicate == reading.type and value.startswith("<"):
            graph.resource(content(row["s"])).types.append(content(value))
        elif predicate in known or not any(pattern.search(predicate) for pattern in noise):
            texts = graph.resource(content(row["s"])).literals.setdefault(predicate, [])
            texts.append(Text(*literal_parts(value)))
    ends = f"{{ ?s ?p ?o }} UNION {{ ?x ?p ?s FILTER (isIRI(?s) && ?p != {iri(reading.type)}) }}"
    for row in _read(endpoint, f"SELECT DISTINCT ?s WHERE {{ {ends} }}", "?s"):
        if row.get("s", "").startswith("<"):
            graph.resource(content(row["s"]))
    nodes, _ = graph.pieces()
    attributes = graph.attributes(graph.resources.values(), graph.labels)
    return Tables((nodes,), (), notes=tuple(f"{name}{IS}{predicate}" for predicate, name in attributes.items()))


def attribute_predicates(notes: Iterable[str]) -> dict[str, str]:
    """Attribute → predicate, as the notes of such a base tell."""
    return {name: predicate for name, _, predicate in (note.rpartition(IS) for note in notes)}


def _read(endpoint: SparqlEndpoint, query: str, order: str) -> list[Row]:
    """Every row of a query: at once where all of them come, or else page by page, each of which has to be sorted."""
    [row] = endpoint.page(f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {query} }} }}")
    count = number(row["n"])
    if count <= endpoint.politeness.most_rows:
        with suppress(StorageError):
            rows = endpoint.page(query)
            if len(rows) == count:
                return sorted(rows, key=lambda row: [row.get(name, "") for name in ("s", "p", "o")])
    return endpoint.rows(query, ordered_by=order)
