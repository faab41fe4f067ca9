"""Knowledge base in a SPARQL 1.1 endpoint, with the same protocol as the embedded base.

Nodes are IRIs and literals. Relations are named by their labels, or by the last part of their IRI. The nodes of a small
endpoint are read once (`sparql_schema.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from clew.core.errors import InputError, NotFoundError, SchemaError
from clew.core.schema import Schema
from clew.core.types import Direction, IntArray, Node, NodeRef, NodeSet
from clew.store.graph.protocol import StoredKnowledgeBase, Way
from clew.store.remote.remote import RemoteKnowledgeBase, each, sides
from clew.store.remote.sparql_endpoint import ResultRow, SparqlEndpoint, Term, content, iri, number, pages_of
from clew.store.remote.sparql_schema import UNTYPED, VALUE, EndpointSchema, EndpointVocabulary, attribute_predicates
from clew.store.sources.rdf import local_name

SHORT = re.compile(r"[A-Z]\d+")
"""Short name of a node, as in Wikidata."""


class SparqlKnowledgeBase(RemoteKnowledgeBase):
    """The graph of an endpoint. Node keys are IRIs, or literals in SPARQL syntax."""

    query_language = "sparql"

    def __init__(
        self,
        endpoint: SparqlEndpoint,
        reading: EndpointVocabulary = EndpointVocabulary(),
        describe: Callable[[], StoredKnowledgeBase | None] = lambda: None,
    ) -> None:
        """Initialise. `describe` returns the nodes without edges if they can be read, and is called on demand."""
        super().__init__(endpoint.url, reading.batch, describe)
        self.endpoint, self.place, self.reading = endpoint, f"sparql+{endpoint.url}", reading
        self._named: dict[int, NodeRef] = {}

    @cached_property
    def _told(self) -> EndpointSchema:
        described = None if self.described is None else self.described.schema
        return EndpointSchema(self.endpoint, self.reading, described)

    def _handles(self, described: StoredKnowledgeBase) -> Iterable[Term]:
        return map(iri, described.column("key"))

    @property
    def schema(self) -> Schema:
        """Types and relations with counts, without types if an endpoint is too large to count them."""
        return self._told.schema

    # Nodes

    def node(self, node: int) -> Node:
        """Return name, type, description and attributes of a node."""
        if self._is_described(node):
            return self._description.node(node)
        (ref,) = self.refs([node])
        return Node(node, ref.key, ref.type, ref.name, (), self._comment(node))

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Return key, name and type of nodes. Unknown labels are requested together."""
        wanted = [int(node) for node in nodes]
        told = [node for node in wanted if self._is_described(node)]
        known = {ref.id: ref for ref in self._description.refs(told)} if told else {}
        unknown = sorted({node for node in wanted if node not in known and node not in self._named})
        for portion in pages_of([self._term(node) for node in unknown], self.reading.batch):
            self._learn_names(portion)
        return [known.get(node) or self._named[node] for node in wanted]

    def find(self, key: str) -> int:
        """Return the id of an IRI that occurs in the graph."""
        try:
            term = key if key.startswith('"') else iri(self._full(key))
        except InputError:
            raise NotFoundError(f"{key!r} is not an IRI: nodes of {self.endpoint.url} have IRIs as keys") from None
        if term not in self._nodes.ids:
            query = f"SELECT ?p WHERE {{ {{ {term} ?p ?o }} UNION {{ ?s ?p {term} }} }} LIMIT 1"
            if not self.endpoint.page(query):
                raise NotFoundError(f"{self.endpoint.url} does not contain {key!r}")
        return self._nodes.id(term)

    def _full(self, key: str) -> str:
        """Return the IRI of a key, with the prefix of entities for short keys."""
        entities = self.reading.entities
        return f"{entities}{key}" if entities and SHORT.fullmatch(key) else key

    def intern(self, terms: Iterable[Term]) -> list[int]:
        """Return the ids of terms from the endpoint."""
        return [self._nodes.id(term) for term in terms]

    def nodes(self, type: str | None = None) -> NodeSet:
        """Return all nodes, or the nodes of one type, with one query per page unless they are described."""
        if self.described is not None:
            return self.described.nodes(type)
        if type in (None, UNTYPED, VALUE):
            found = self.endpoint.rows("SELECT DISTINCT ?s WHERE { { ?s ?p ?o } UNION { ?x ?p ?s } }", "?s")
        else:
            kind = self.type_iri(type or "")
            if kind is None:
                raise SchemaError(f"no node type {type!r}: the types are {', '.join(self.schema.type_names)}")
            found = self.endpoint.rows(f"SELECT DISTINCT ?s WHERE {{ ?s {iri(self.reading.type)} {iri(kind)} }}", "?s")
        return self._set(row["s"] for row in found if "s" in row)

    def values(self, nodes: NodeSet, attribute: str) -> list[Any]:
        """Return an attribute of nodes, or the first value if values are nodes. None for nodes without it."""
        if self.described is not None:
            told = NodeSet(nodes.array[nodes.array < self.described.count])
            return [*self.described.values(told, attribute), *[None] * (len(nodes) - len(told))]
        firsts: dict[int, Any] = {}
        for head, _, tail in each(self.edges(nodes, attribute, "out")):
            firsts.setdefault(head, content(self._term(tail)))
        return [firsts.get(node) for node in nodes]

    # Edges

    def closure(self, nodes: NodeSet, relation: str, direction: Direction) -> NodeSet:
        """Return all nodes reached by following a relation any number of times, with one query for many nodes."""
        found = nodes
        for side in sides(direction):
            for rows in self._portions(nodes, side, relation, "SELECT DISTINCT ?o", "*"):
                found = found | self._set(row["o"] for row in rows if "o" in row)
        return found

    def meet(self, ways: Iterable[Way], avoided: Iterable[Way] = ()) -> bool:
        """Return whether a node is at the end of all `ways` and of none of `avoided`, with one query."""
        # each way by itself: joined as one pattern, long ways multiply before they meet
        patterns = [
            f"{{ SELECT DISTINCT ?x WHERE {{ {self._along(way, f'a{place}')} }} }}" for place, way in enumerate(ways)
        ]
        patterns += [f"MINUS {{ {self._along(way, f'b{place}')} }}" for place, way in enumerate(avoided)]
        return bool(self.endpoint.page(f"SELECT ?x WHERE {{ {' '.join(patterns)} }} LIMIT 1"))

    def _along(self, way: Way, name: str) -> str:
        """Convert a way to query patterns that end at ?x."""
        starts, steps = way
        ends = [f"?{name}{place}" for place in range(len(steps))] + ["?x"]
        lines = [f"VALUES {ends[0]} {{ {' '.join(map(self._term, starts))} }}"]
        for place, (relation, direction, kind) in enumerate(steps):
            near, far = ends[place : place + 2]
            head, tail = (near, far) if direction == "out" else (far, near)
            lines.append(f"{head} {iri(self.predicate(relation))} {tail} .")
            stated = None if kind is None else self.type_iri(kind)
            lines += [] if stated is None else [f"{far} {iri(self.reading.type)} {iri(stated)} ."]
        return " ".join(lines)

    # Inside

    def _set(self, terms: Iterable[Term]) -> NodeSet:
        return NodeSet.of(self.intern(terms))

    def _ends(
        self, nodes: NodeSet, relation: str | None, side: Direction, others: NodeSet | None
    ) -> Iterator[tuple[int, int, int]]:
        """Yield every edge once, even if pages overlap."""
        among = "" if others is None else f" VALUES ?o {{ {' '.join(map(self._term, others))} }}"
        code = None if relation is None else self.schema.relation_code.get(relation)
        select = "SELECT ?s ?p ?o" if relation is None else "SELECT ?s ?o"
        found: dict[tuple[int, int, int], None] = {}
        for rows in self._portions(nodes, side, relation, select, among=among):
            for row in rows:
                if self._is_told(row, relation):
                    own = self.schema.relation_code[self._relation_name(row["p"]) or ""] if code is None else code
                    found[self._nodes.id(row["s"]), own, self._nodes.id(row["o"])] = None
        yield from found

    def _reached(self, nodes: NodeSet, relation: str | None, side: Direction) -> Iterator[int]:
        select = "SELECT DISTINCT ?o" if relation else "SELECT DISTINCT ?o ?p"
        for rows in self._portions(nodes, side, relation, select):
            yield from self.intern(row["o"] for row in rows if self._is_told(row, relation))

    def _counted(self, nodes: NodeSet, side: Direction) -> Iterator[tuple[str, int]]:
        for row in self._counts(nodes, side, "?p"):
            name = self._relation_name(row["p"])
            if name is not None:
                yield name, number(row["n"])

    def _counted_each(self, nodes: NodeSet, side: Direction) -> Iterator[tuple[int, int]]:
        for row in self._counts(nodes, side, "?s ?p"):
            if self._relation_name(row["p"]) is not None:
                yield self._nodes.id(row["s"]), number(row["n"])

    def _portions(
        self, nodes: NodeSet, side: Direction, relation: str | None, select: str, times: str = "", among: str = ""
    ) -> Iterable[list[ResultRow]]:
        predicate = "?p" if relation is None else iri(self.predicate(relation)) + times
        order = "?s ?p ?o" if relation is None else "?s ?o"
        order = " ".join(name for name in order.split() if name in select)
        for values in self._values(nodes, side):
            yield self.endpoint.rows(f"{select} WHERE {{ {values}{among} {self._pattern(side, predicate)} }}", order)

    def _values(self, nodes: NodeSet, side: Direction) -> Iterator[str]:
        """Yield a clause for each portion of nodes that may have edges. Literals have no outgoing edges."""
        terms = [term for term in map(self._term, nodes) if side == "in" or term.startswith("<")]
        return (f"VALUES ?s {{ {' '.join(portion)} }}" for portion in pages_of(terms, self.reading.batch))

    def _counts(self, nodes: NodeSet, side: Direction, by: str) -> Iterable[ResultRow]:
        """Count the edges of these nodes on one side, by relation, or by node and relation."""
        for values in self._values(nodes, side):
            where = f"{values} {self._pattern(side, '?p')}"
            yield from self.endpoint.rows(f"SELECT {by} (COUNT(*) AS ?n) WHERE {{ {where} }} GROUP BY {by}", by)

    def _pattern(self, side: Direction, predicate: str) -> str:
        """Return the pattern of an edge from ?s to ?o or back, only to nodes if values are attributes."""
        if side == "in":
            return f"?o {predicate} ?s"
        return f"?s {predicate} ?o" + ("" if self.described is None else " FILTER (isIRI(?o))")

    def _is_told(self, row: ResultRow, relation: str | None) -> bool:
        return "o" in row and (relation is not None or self._relation_name(row["p"]) is not None)

    def type_iri(self, type: str) -> str | None:
        """Return the IRI of a type, or None if it has none."""
        return next((i for i, name in self._told.type_names.items() if name == type), None)

    def predicate(self, relation: str) -> str:
        """Return the IRI of a relation."""
        if relation not in self._told.predicates:
            raise SchemaError(f"no relation {relation!r}: the relations are {', '.join(self._told.predicates)}")
        return self._told.predicates[relation]

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """The IRI of every attribute."""
        return {} if self.described is None else attribute_predicates(self.described.notes)

    def _relation_name(self, predicate: Term) -> str | None:
        """Return the name of a relation, or None for noise and for attributes."""
        name = self._told.relation_names.get(content(predicate))
        return name if name in self.schema.relation_code else None

    def _learn_names(self, portion: list[Term]) -> None:
        iris = [term for term in portion if term.startswith("<")]
        labels: dict[Term, str] = {}
        kinds: dict[Term, str] = {}
        if iris:
            label, kind, language = iri(self.reading.label), iri(self.reading.type), self.reading.language
            values = f"VALUES ?s {{ {' '.join(iris)} }}"
            wanted = f'FILTER (LANG(?l) = "" || LANGMATCHES(LANG(?l), "{language}"))'
            for row in self.endpoint.rows(f"SELECT ?s ?l WHERE {{ {values} ?s {label} ?l {wanted} }}", "?s ?l"):
                labels.setdefault(row["s"], content(row["l"]))
            for row in self.endpoint.rows(f"SELECT ?s ?t WHERE {{ {values} ?s {kind} ?t }}", "?s ?t"):
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
        rows = self.endpoint.rows(f"SELECT ?c WHERE {{ {term} {iri(self.reading.comment)} ?c {wanted} }}", "?c")
        return content(rows[0]["c"]) if rows else ""
