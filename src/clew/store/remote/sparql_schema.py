"""Schema and nodes of an endpoint: its relations and types with names and counts, and its nodes.

The nodes of a small endpoint become a knowledge base without edges, by the rules for RDF files, so that names, words
and vectors can be searched as in any other base. At large endpoints, labels are looked up one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from clew.core.errors import QueryRefusedError, StorageError
from clew.core.schema import NodeType, Relation, Schema, with_hierarchies
from clew.core.trace import fallback
from clew.store.graph.iris import COMMENT, LABEL, TYPE
from clew.store.graph.tables import Tables
from clew.store.remote.sparql_endpoint import (
    ResultRow,
    SparqlEndpoint,
    Term,
    content,
    iri,
    literal_parts,
    number,
    pages_of,
)
from clew.store.sources.rdf import ALIASES, NAMES, TEXTS, RdfGraph, Text, short_names

NOISE = (
    r"^http://www\.w3\.org/",
    r"^http://www\.openlinksw\.com/",
    r"/type\.(object|type)\.",
    r"/(common\.topic|freebase|kg\.)",
    r"^http://schema\.org/(version|dateModified)",
)
"""Relations about the data, not about the world."""
MOST_RECOUNTED = 500
"""Maximum number of relations to count one by one if an endpoint counts them incorrectly."""
UNTYPED = "entity"
VALUE = "value"


@dataclass(frozen=True)
class EndpointVocabulary:
    """Settings for an endpoint: the properties that name, describe and type its nodes, and relations to ignore."""

    label: str = LABEL
    comment: str = COMMENT
    type: str = TYPE
    language: str = "en"
    noise: tuple[str, ...] = NOISE
    batch: int = 200
    """Number of nodes per query."""
    entities: str = ""
    """Prefix of the IRIs of nodes with short names, such as Q42. Empty if there are none."""
    claims: str = ""
    """Property from the description of a relation to the relation. If set, only described relations are used, named by
    their labels. They are neither searched nor counted, and nodes have no types.
    """
    identifiers: tuple[str, str] | None = None
    """Property and value of descriptions that mark relations to external identifiers."""


_WIKIBASE = "http://wikiba.se/ontology#"
WIKIDATA = EndpointVocabulary(
    comment="http://schema.org/description",
    type="http://www.wikidata.org/prop/direct/P31",
    entities="http://www.wikidata.org/entity/",
    claims=f"{_WIKIBASE}directClaim",
    identifiers=(f"{_WIKIBASE}propertyType", f"{_WIKIBASE}ExternalId"),
)
"""Wikidata's query service and similar endpoints, whose relations are called P31 and described elsewhere."""
SHAPES = {"wikidata": WIKIDATA}


@dataclass(frozen=True)
class EndpointSchema:
    """Schema of an endpoint, requested once on demand."""

    endpoint: SparqlEndpoint
    reading: EndpointVocabulary
    described: Schema | None = None
    """Types and attributes of its nodes if they were read. Then values are attributes, not nodes."""

    @cached_property
    def schema(self) -> Schema:
        """Types and relations with counts, without types if an endpoint is too large to count them."""
        rows = self._relation_rows()
        kinds = {kind for _, head, tail, _ in rows for kind in (head, tail)}
        type_names = self._named(kinds - {UNTYPED, VALUE}) | {UNTYPED: UNTYPED, VALUE: VALUE}
        names = self.relation_names
        told = [(names[p], type_names[head], type_names[tail], count) for p, head, tail, count in rows]
        marked = with_hierarchies(Relation(*row) for row in told)
        relations = sorted(marked, key=lambda row: (row.name, row.head, row.tail))
        if self.described is not None:
            known = self.described.type_code
            between = tuple(row for row in relations if row.head in known and row.tail in known)
            return Schema(self.described.node_types, between, self.described.attribute_types)
        amounts: dict[str, int] = {type_names[kind]: 0 for kind in kinds}
        for row in relations:
            amounts[row.head] += row.count
        return Schema(tuple(NodeType(name, count) for name, count in sorted(amounts.items())), tuple(relations))

    @cached_property
    def relation_names(self) -> dict[str, str]:
        """Relation names by IRI."""
        return {predicate: name for name, predicate in self.predicates.items()}

    @cached_property
    def predicates(self) -> dict[str, str]:
        """IRIs by relation name, without noise."""
        if self.reading.claims:
            return self._described()
        rows = self.endpoint.rows("SELECT DISTINCT ?p WHERE { ?s ?p ?o }", "?p")
        described = {self.reading.label, self.reading.comment, self.reading.type}
        noise = [re.compile(pattern) for pattern in self.reading.noise]
        told = [content(row["p"]) for row in rows]
        kept = [p for p in told if p not in described and not any(pattern.search(p) for pattern in noise)]
        return {name: predicate for predicate, name in self._named(kept).items()}

    def _named(self, iris: Iterable[str]) -> dict[str, str]:
        """Return the label of each IRI, or else its last part."""
        every = sorted(iris)
        labels: dict[str, str] = {}
        spoken = f'FILTER (LANG(?l) = "" || LANGMATCHES(LANG(?l), "{self.reading.language}"))'
        for portion in pages_of([iri(one) for one in every], self.reading.batch):
            values = f"VALUES ?p {{ {' '.join(portion)} }}"
            query = f"SELECT ?p ?l WHERE {{ {values} ?p {iri(self.reading.label)} ?l {spoken} }}"
            for row in self.endpoint.rows(query, "?p ?l"):
                labels.setdefault(content(row["p"]), content(row["l"]))
        return short_names(every, labels, {})

    def _described(self) -> dict[str, str]:
        """Return the IRIs of described relations by label, without external identifiers."""
        reading = self.reading
        apart = ""
        if reading.identifiers is not None:
            kind, value = map(iri, reading.identifiers)
            apart = f"FILTER NOT EXISTS {{ ?d {kind} {value} }}"
        named = f'OPTIONAL {{ ?d {iri(reading.label)} ?l FILTER (LANGMATCHES(LANG(?l), "{reading.language}")) }}'
        rows = self.endpoint.rows(f"SELECT ?p ?l WHERE {{ ?d {iri(reading.claims)} ?p {named} {apart} }}", "?p ?l")
        labels = {content(row["p"]): content(row["l"]) for row in reversed(rows) if "l" in row}
        told = dict.fromkeys(content(row["p"]) for row in rows)
        return {name: predicate for predicate, name in short_names(told, labels, {}).items()}

    @cached_property
    def type_names(self) -> dict[str, str]:
        """Type names by IRI. Empty if types are not requested."""
        if self.reading.claims:
            return {}
        rows = self.endpoint.rows(f"SELECT DISTINCT ?t WHERE {{ ?s {iri(self.reading.type)} ?t }}", "?t")
        return self._named(content(row["t"]) for row in rows if row.get("t", "").startswith("<"))

    def _relation_rows(self) -> list[tuple[str, str, str, int]]:
        """Return (predicate, head type, tail type, edges). If counting by type fails, there is only one type."""
        wanted = set(self.predicates.values())
        if self.reading.claims:  # counting would read the whole graph
            return [(predicate, UNTYPED, UNTYPED, 0) for predicate in sorted(wanted)]
        try:
            found = self._counted_by_type("?p")
            told = self.endpoint.rows("SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p", "?p")
            totals = {content(row["p"]): number(row["n"]) for row in told}
        except StorageError as error:
            why = f"relations could not be counted by type ({error})"
            if self.described is None:
                fallback("schema", why, "all nodes count as one type")
                return [(predicate, UNTYPED, UNTYPED, 0) for predicate in sorted(wanted)]
            fallback("schema", why, "each is counted by itself")  # without types they would connect no nodes
            found, totals = {}, dict.fromkeys(wanted, 1)
        # Virtuoso 7 drops rows of large groups, so relations with too low counts are counted separately.
        short = [p for p in sorted(wanted) if sum(n for (q, *_), n in found.items() if q == p) < totals.get(p, 0)]
        for predicate in short[:MOST_RECOUNTED]:
            found |= self._counted_by_type(iri(predicate))
        for predicate in short[MOST_RECOUNTED:]:
            found[predicate, UNTYPED, UNTYPED] = totals[predicate]
        return [(*place, count) for place, count in found.items() if place[0] in wanted]

    def _counted_by_type(self, predicate: Term) -> dict[tuple[str, str, str], int]:
        """Return edges by (predicate, head type, tail type) for one predicate, or for all with a variable."""
        kind = iri(self.reading.type)
        optional = f"OPTIONAL {{ ?s {kind} ?a }} OPTIONAL {{ ?o {kind} ?b }} BIND (isLiteral(?o) AS ?v)"
        groups = "?p ?a ?b ?v" if predicate == "?p" else "?a ?b ?v"
        query = f"SELECT {groups} (COUNT(*) AS ?n) WHERE {{ ?s {predicate} ?o {optional} }} GROUP BY {groups}"
        found: dict[tuple[str, str, str], int] = {}
        for row in self.endpoint.rows(query, groups):
            head = content(row["a"]) if "a" in row else UNTYPED
            literal = content(row.get("v", "")) in ("true", "1")
            tail = content(row["b"]) if "b" in row else VALUE if literal else UNTYPED
            place = (content(row.get("p", predicate)), head, tail)
            found[place] = found.get(place, 0) + number(row["n"])
        return found


MOST_NAMED = 100_000
"""Maximum number of names of an endpoint that is read."""
IS = " is "
"""Separator of attribute and predicate in the notes of the base."""


def can_be_read(endpoint: SparqlEndpoint, reading: EndpointVocabulary) -> bool:
    """Return whether an endpoint has names but not too many. Counting stops at the limit."""
    if reading.claims:
        return False
    inner = f"SELECT ?s WHERE {{ ?s {iri(reading.label)} ?l }} LIMIT {MOST_NAMED + 1}"
    try:
        [row] = endpoint.page(f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {inner} }} }}")
    except QueryRefusedError:
        return False
    return 0 < number(row["n"]) <= MOST_NAMED


def read_nodes(endpoint: SparqlEndpoint, reading: EndpointVocabulary) -> Tables:
    """Read every node that is a subject or an object."""
    graph = RdfGraph(
        reading.language, tuple(dict.fromkeys((reading.label, *NAMES))), tuple(dict.fromkeys((reading.comment, *TEXTS)))
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
    nodes, *_ = graph.pieces()
    attributes = graph.attributes(graph.resources.values(), graph.labels)
    return Tables((nodes,), (), notes=tuple(f"{name}{IS}{predicate}" for predicate, name in attributes.items()))


def attribute_predicates(notes: Iterable[str]) -> dict[str, str]:
    """Return predicates by attribute from the notes of a base."""
    return {name: predicate for name, _, predicate in (note.rpartition(IS) for note in notes)}


def _read(endpoint: SparqlEndpoint, query: str, order: str) -> list[ResultRow]:
    """Return every row of a query, unsorted at once if possible, otherwise in sorted pages."""
    [row] = endpoint.page(f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {query} }} }}")
    count = number(row["n"])
    if count <= endpoint.politeness.most_rows:
        with suppress(StorageError):
            rows = endpoint.page(query)
            if len(rows) == count:
                return sorted(rows, key=lambda row: [row.get(name, "") for name in ("s", "p", "o")])
    return endpoint.rows(query, order)
