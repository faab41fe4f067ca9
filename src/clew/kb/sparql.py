"""A knowledge base behind a SPARQL 1.1 endpoint: the same protocol as the embedded one, asked for what is needed.

IRIs and literals become node ids when they are first seen. Relations are called by the last part of their IRI. Nothing
above this module knows that the graph is remote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from clew.core.errors import NotFoundError, SchemaError
from clew.core.schema import NodeType, Schema
from clew.core.types import EMPTY, Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple
from clew.kb import render
from clew.kb.protocol import Edges
from clew.kb.sources.rdf import local_name
from clew.kb.sparql_endpoint import Row, SparqlEndpoint, Term, content, iri, number, pages_of
from clew.kb.sparql_schema import UNTYPED, VALUE, EndpointSchema, Reading

SHORT = re.compile(r"[A-Z]\d+")
"""A node by its short name, as Wikidata gives them."""


@dataclass
class _Interned:
    """Terms by id and ids by term, growing as the graph is seen."""

    terms: list[Term] = field(default_factory=list)
    ids: dict[Term, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def id(self, term: Term) -> int:
        found = self.ids.get(term)
        if found is None:
            with self.lock:
                found = self.ids.setdefault(term, len(self.terms))
                if found == len(self.terms):
                    self.terms.append(term)
        return found


class SparqlKnowledgeBase:
    """The graph of an endpoint; node keys are IRIs, or literals as SPARQL writes them."""

    def __init__(self, endpoint: SparqlEndpoint, reading: Reading | None = None) -> None:
        self.endpoint = endpoint
        self.reading = reading or Reading()
        self._told = EndpointSchema(endpoint, self.reading)
        self._nodes = _Interned()
        self._named: dict[int, NodeRef] = {}

    def __repr__(self) -> str:
        return f"SparqlKnowledgeBase({self.endpoint.url!r})"

    @property
    def schema(self) -> Schema:
        """Types and relations with their counts; where an endpoint is too large to count by type, without types."""
        return self._told.schema

    # Nodes

    def node(self, node: int) -> Node:
        """Name, type and description of one node."""
        (ref,) = self.refs([node])
        return Node(node, ref.key, ref.type, ref.name, (), self._comment(node))

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Key, name and type of many nodes; labels not yet known are asked for together."""
        wanted = [int(node) for node in nodes]
        unknown = sorted({node for node in wanted if node not in self._named})
        for portion in pages_of([self._term(node) for node in unknown], self.reading.batch):
            self._learn_names(portion)
        return [self._named[node] for node in wanted]

    def find(self, key: str) -> int:
        """The id of an IRI that occurs in the graph."""
        term = key if key.startswith('"') else iri(self._full(key))
        if term not in self._nodes.ids:
            found = self._ask(f"SELECT ?p WHERE {{ {{ {term} ?p ?o }} UNION {{ ?s ?p {term} }} }} LIMIT 1", None)
            if not found:
                raise NotFoundError(f"{self.endpoint.url} says nothing about {key!r}")
        return self._nodes.id(term)

    def _full(self, key: str) -> str:
        """The IRI of a key: the key itself, or with what its kind of IRI begins with."""
        entities = self.reading.entities
        return f"{entities}{key}" if entities and SHORT.fullmatch(key) else key

    def intern(self, terms: Iterable[Term]) -> list[int]:
        """The ids of terms that the endpoint has given."""
        return [self._nodes.id(term) for term in terms]

    def nodes(self, type: str | None = None) -> NodeSet:
        """All nodes, or those of one type: as many queries as there are pages of them."""
        if type in (None, UNTYPED, VALUE):
            found = self._ask("SELECT DISTINCT ?s WHERE { { ?s ?p ?o } UNION { ?x ?p ?s } }", "?s")
        else:
            kind = self.type_iri(type or "")
            if kind is None:
                raise SchemaError(f"no node type {type!r}; there are: {', '.join(self.schema.type_names)}")
            found = self._ask(f"SELECT DISTINCT ?s WHERE {{ ?s {iri(self.reading.type)} {iri(kind)} }}", "?s")
        return self._set(row["s"] for row in found if "s" in row)

    def values(self, nodes: NodeSet, attribute: str) -> list[Any]:
        """Attributes are edges to values here: the first value of each node, None where it has none."""
        firsts: dict[int, Any] = {}
        for head, _, tail in _each(self.edges(nodes, attribute, "out")):
            firsts.setdefault(head, content(self._term(tail)))
        return [firsts.get(node) for node in nodes]

    def text(self, node: int, *, relations: bool = False) -> str:
        """Name, type and description, and the relations where asked for."""
        shown = self.node(node)
        lines = render.document(shown, NodeType(shown.type, 0))
        if not relations:
            return lines
        groups: dict[str, dict[str, list[str]]] = {}
        totals: dict[tuple[str, str], int] = {}
        for triple in self.triples(node):
            other = self.refs([triple.tail if triple.head == node else triple.head])[0]
            label = triple.relation if triple.head == node else f"{triple.relation} (of)"
            groups.setdefault(label, {}).setdefault(other.type, []).append(other.name)
            totals[label, other.type] = totals.get((label, other.type), 0) + 1
        return render.SEPARATOR.join([lines, *render.relation_lines(groups, totals)])

    # Edges

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """The nodes one edge away."""
        found = EMPTY
        for side in _sides(direction):
            for rows in self._portions(
                nodes, side, relation, "SELECT DISTINCT ?o" if relation else "SELECT DISTINCT ?o ?p"
            ):
                found = found | self._set(row["o"] for row in rows if self._is_told(row, relation))
        return found

    def relations(self, nodes: NodeSet) -> list[RelationUse]:
        """Which relations leave and enter these nodes, with counts, in schema order."""
        counts: dict[tuple[str, Direction], int] = {}
        for side in _sides("any"):
            for portion in pages_of([self._term(node) for node in nodes if self._asks(node, side)], self.reading.batch):
                pattern = _pattern(side, "?p")
                query = (
                    f"SELECT ?p (COUNT(*) AS ?n) WHERE {{ VALUES ?s {{ {' '.join(portion)} }} {pattern} }} GROUP BY ?p"
                )
                for row in self._ask(query, "?p"):
                    name = self._relation_name(row["p"])
                    if name is not None:
                        counts[name, side] = counts.get((name, side), 0) + number(row["n"])
        order = {name: place for place, name in enumerate(self.schema.relation_names)}
        uses = [RelationUse(name, side, count) for (name, side), count in counts.items()]
        return sorted(uses, key=lambda use: (order[use.relation], use.direction != "out"))

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """The edges that leave, enter or touch these nodes; "any" gives each edge once."""
        found: list[tuple[int, int, int]] = []
        for side in _sides(direction):
            for rows in self._portions(
                nodes, side, relation, "SELECT ?s ?p ?o" if relation is None else "SELECT ?s ?o"
            ):
                for row in rows:
                    name = relation or self._relation_name(row["p"])
                    if name is None or "o" not in row:
                        continue
                    near, far = self._nodes.id(row["s"]), self._nodes.id(row["o"])
                    if direction == "any" and side == "in" and far in nodes:
                        continue  # it leaves one of the nodes already
                    head, tail = (near, far) if side == "out" else (far, near)
                    found.append((head, self.schema.relation_code[name], tail))
        table = np.array(found, dtype=np.int32).reshape(-1, 3)
        return Edges(table[:, 0], table[:, 1], table[:, 2])

    def triples(self, node: int) -> list[Triple]:
        """Every edge of one node, outgoing first."""
        names = self.schema.relation_names
        edges = self.edges(NodeSet.of([node]), None, "any")
        return [Triple(head, names[code], tail) for head, code, tail in _each(edges)]

    def edge_attributes(self, head: int, relation: str, tail: int) -> list[Mapping[str, Any]]:
        """RDF edges carry nothing; one empty mapping where the edge is there."""
        return [{}] if tail in self.neighbors(NodeSet.of([head]), relation, "out") else []

    # Inside

    def _ask(self, query: str, ordered_by: str | None) -> list[Row]:
        return self.endpoint.rows(query, ordered_by=ordered_by) if ordered_by else self.endpoint.page(query)

    def _term(self, node: int) -> Term:
        if not 0 <= node < len(self._nodes.terms):
            raise NotFoundError(f"no node {node} has been seen at {self.endpoint.url}")
        return self._nodes.terms[node]

    def _set(self, terms: Iterable[Term]) -> NodeSet:
        return NodeSet.of(self.intern(terms))

    def _asks(self, node: int, side: Direction) -> bool:
        """Nothing leaves a literal."""
        return side == "in" or self._term(node).startswith("<")

    def _portions(self, nodes: NodeSet, side: Direction, relation: str | None, select: str) -> Iterable[list[Row]]:
        predicate = "?p" if relation is None else iri(self.predicate(relation))
        order = "?s ?p ?o" if relation is None else "?s ?o"
        order = " ".join(name for name in order.split() if name in select)
        for portion in pages_of([self._term(node) for node in nodes if self._asks(node, side)], self.reading.batch):
            values = f"VALUES ?s {{ {' '.join(portion)} }}"
            yield self._ask(f"{select} WHERE {{ {values} {_pattern(side, predicate)} }}", order)

    def _is_told(self, row: Row, relation: str | None) -> bool:
        return "o" in row and (relation is not None or self._relation_name(row["p"]) is not None)

    def type_iri(self, type: str) -> str | None:
        """The IRI of a type; None where its nodes have none."""
        return next((i for i, name in self._told.type_names.items() if name == type), None)

    def predicate(self, relation: str) -> str:
        """The IRI of a relation."""
        if relation not in self._told.predicates:
            raise SchemaError(f"no relation {relation!r}; there are: {', '.join(self._told.predicates)}")
        return self._told.predicates[relation]

    def _relation_name(self, predicate: Term) -> str | None:
        """The name of a relation; None where it is noise."""
        return self._told.relation_names.get(content(predicate))

    def _learn_names(self, portion: list[Term]) -> None:
        iris = [term for term in portion if term.startswith("<")]
        labels: dict[Term, str] = {}
        kinds: dict[Term, str] = {}
        if iris:
            label, kind, language = iri(self.reading.label), iri(self.reading.type), self.reading.language
            values = f"VALUES ?s {{ {' '.join(iris)} }}"
            wanted = f'FILTER (LANG(?l) = "" || LANGMATCHES(LANG(?l), "{language}"))'
            for row in self._ask(f"SELECT ?s ?l WHERE {{ {values} ?s {label} ?l {wanted} }}", "?s ?l"):
                labels.setdefault(row["s"], content(row["l"]))
            for row in self._ask(f"SELECT ?s ?t WHERE {{ {values} ?s {kind} ?t }}", "?s ?t"):
                kinds.setdefault(row["s"], self._told.type_names.get(content(row.get("t", "")), UNTYPED))
        for term in portion:
            node, text = self._nodes.id(term), content(term)
            if term.startswith("<"):
                name = labels.get(term) or local_name(text)
                key = text.removeprefix(self.reading.entities)
                self._named[node] = NodeRef(node, key, name, kinds.get(term, UNTYPED))
            else:
                self._named[node] = NodeRef(node, term, text, VALUE)

    def _comment(self, node: int) -> str:
        term = self._term(node)
        if not term.startswith("<"):
            return ""
        wanted = f'FILTER (LANG(?c) = "" || LANGMATCHES(LANG(?c), "{self.reading.language}"))'
        rows = self._ask(f"SELECT ?c WHERE {{ {term} {iri(self.reading.comment)} ?c {wanted} }}", "?c")
        return content(rows[0]["c"]) if rows else ""


def _sides(direction: Direction) -> tuple[Direction, ...]:
    return ("out", "in") if direction == "any" else (direction,)


def _pattern(side: Direction, predicate: str) -> str:
    return f"?s {predicate} ?o" if side == "out" else f"?o {predicate} ?s"


def _each(edges: Edges) -> Iterable[tuple[int, int, int]]:
    return zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True)
