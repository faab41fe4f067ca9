"""RDF reader: labels become names, comments texts, literals attributes, and all other triples edges."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from clew.core.errors import SourceError, needing
from clew.store.graph.tables import EDGE_COLUMNS, NODE_COLUMNS, Piece
from clew.store.sources.columns import NAMES as HEADERS
from clew.store.sources.columns import plain
from clew.store.sources.files import RDF_FORMATS, SourceOptions, kind_of, line_at, read_utf8
from clew.store.sources.jsonl import column_of

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_OBO = "http://www.geneontology.org/formats/oboInOwl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
_TITLES = ("http://purl.org/dc/terms/", "http://purl.org/dc/elements/1.1/")

TYPE = _RDF + "type"
NAMES = (
    *(_SKOS + "prefLabel", _RDFS + "label", *(base + "name" for base in _SCHEMA), "http://xmlns.com/foaf/0.1/name"),
    *(base + "title" for base in _TITLES),
)
"""Predicates of names, best first. Further names become aliases."""
ALIASES = (
    *(_SKOS + "altLabel", _SKOS + "hiddenLabel", *(base + "alternateName" for base in _SCHEMA)),
    *(_OBO + f"has{kind}Synonym" for kind in ("Exact", "Related", "Narrow", "Broad")),
)
TEXTS = (
    *(_SKOS + "definition", "http://purl.obolibrary.org/obo/IAO_0000115", _RDFS + "comment"),
    *(base + "abstract" for base in (_TITLES[0], "http://dbpedia.org/ontology/")),
    *(base + "description" for base in (*_TITLES, *_SCHEMA)),
)
PLAIN_TYPES = frozenset({_OWL + "NamedIndividual", _OWL + "Thing", _RDFS + "Resource"})
"""Generic types, used only if there is no other type."""
_CLASSES = frozenset({_OWL + "Class", _RDFS + "Class"})
_VOCABULARIES = (_RDF, _RDFS, _OWL, "http://www.w3.org/ns/shacl#", "http://www.w3.org/2003/11/swrl#")
"""Namespaces that describe vocabularies: properties, restrictions, lists, shapes, rules."""


@dataclass(frozen=True, slots=True)
class Text:
    """A literal: its text, its language tag (may be empty) and its datatype."""

    value: str
    language: str
    datatype: str

    def parsed(self) -> object:
        """Parse the value by its datatype. Return the text if it is invalid."""
        parse = _PARSERS.get(self.datatype.removeprefix(XSD)) if self.datatype.startswith(XSD) else None
        if parse is None:
            return self.value
        try:
            return parse(self.value.strip())
        except ValueError:
            return self.value


def in_language(texts: Iterable[Text], language: str) -> list[Text]:
    """Return the texts in the language or its variants, or else texts without a language, or else all texts."""
    every = list(texts)
    wanted = [text for text in every if text.language == language or text.language.startswith(language + "-")]
    return wanted or [text for text in every if not text.language] or every


def local_name(iri: str) -> str:
    """Return the last part of an IRI in readable form: `…/Barack_Obama` → `Barack Obama`."""
    tail = iri.rstrip("/#")
    for separator in "#/:":
        tail = tail.rpartition(separator)[2] or tail
    return unquote(tail).replace("_", " ").strip() or iri


def short_names(iris: Iterable[str], labels: Mapping[str, str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return a distinct short name for each IRI: its label, its last part, with prefix, or the IRI."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for iri in sorted(iris):
        last = local_name(iri).replace(" ", "_")
        choices = [labels.get(iri, ""), last]
        choices += [
            f"{prefix}:{iri.removeprefix(base)}" for prefix, base in sorted(prefixes.items()) if iri.startswith(base)
        ]
        names[iri] = next((choice for choice in choices if choice and choice not in taken), iri)
        taken.add(names[iri])
    return names


def _boolean(value: str) -> bool:
    if value not in ("true", "false", "1", "0"):
        raise ValueError(value)
    return value in ("true", "1")


def _moment(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


_INTEGERS = (
    *("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
    *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "gYear"),
)
_PARSERS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(("decimal", "double", "float"), float),
    "boolean": _boolean,
    "date": date.fromisoformat,
    "dateTime": _moment,
}


@dataclass
class _Resource:
    """The triples of one subject, by predicate."""

    types: list[str] = field(default_factory=list)
    literals: dict[str, list[Text]] = field(default_factory=dict)


@dataclass
class RdfGraph:
    """The triples of one or more files, as resources and edges."""

    language: str = "en"
    names: tuple[str, ...] = NAMES
    texts: tuple[str, ...] = TEXTS
    resources: dict[str, _Resource] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def read(self, path: Path, options: SourceOptions) -> None:
        """Add the triples of a file. Blank nodes are numbered, so that keys are reproducible."""
        with needing("sparql", "pyoxigraph"):
            import pyoxigraph as ox
        data = read_utf8(path, options.encoding)
        refuse_entity_bomb(data, path)
        if kind_of(path) == ".jsonld":
            data = with_local_contexts(data, path)
        rdf_format = getattr(ox.RdfFormat, RDF_FORMATS[kind_of(path)])
        base = f"file:///{path.name}" if kind_of(path) not in (".nt", ".ntriples", ".nq", ".nquads") else None
        blanks: dict[str, str] = {}
        scope = f"{len(self.files)}-" if self.files else ""
        self.files.append(str(path))

        def key(term: Any) -> str:
            if isinstance(term, ox.BlankNode):
                return blanks.setdefault(term.value, f"_:{scope}b{len(blanks)}")
            return str(term.value)

        named = ox.NamedNode | ox.BlankNode
        try:
            triples = ox.parse(data, format=rdf_format, base_iri=base)
            for subject, predicate, value, *_ in triples:
                if not isinstance(subject, named):
                    continue  # a statement about a statement
                relation = predicate.value
                resource = self.resource(key(subject))
                if isinstance(value, ox.Literal):
                    text = Text(value.value, (value.language or "").lower(), value.datatype.value)
                    resource.literals.setdefault(relation, []).append(text)
                elif isinstance(value, named):
                    if relation == TYPE:
                        resource.types.append(key(value))
                    else:
                        self.edges.append((key(subject), relation, key(value)))
            self.prefixes |= triples.prefixes
        except SyntaxError as wrong:
            raise SourceError(f"not {rdf_format.name}: {wrong.msg}", file=path, line=wrong.lineno) from wrong
        if not self.resources:
            raise SourceError("no triples in this file", file=path)

    def resource(self, key: str) -> _Resource:
        """Return the entry of a subject, and create it if needed."""
        return self.resources.setdefault(key, _Resource())

    def pieces(self, *, partial: bool = False, include: Sequence[str] = ()) -> tuple[Piece, Piece, list[str]]:
        """Return nodes, edges and notes. Edges `type` connect nodes to classes described in the sources.

        For `partial` changes to a base, names are not derived from IRIs. Nodes that only describe the vocabulary are
        skipped, unless there are no other nodes or `include` names their type.
        """
        labels = self.labels
        file = ", ".join(self.files)
        edges, gone = unfolded(self.edges)
        axioms = self._axioms(edges, include)
        notes = []
        if axioms and len(self.resources) > len(axioms | gone):
            counts = Counter(local_name(self._kind(self.resources[key])) for key in axioms if key in self.resources)
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common(8) if kind)
            notes.append(f"{file}: left out {len(axioms):,} nodes that describe the vocabulary ({kinds})")
            edges = [edge for edge in edges if not {edge[0], edge[2]} & axioms]
            gone |= axioms
        described = {key: resource for key, resource in self.resources.items() if key not in gone}
        for key, resource in described.items():
            edges += [(key, TYPE, kind) for kind in resource.types if kind in described and not _is_own(kind)]
        relations = short_names({relation for _, relation, _ in edges}, labels, self.prefixes)
        heads, names, tails = zip(*edges, strict=True) if edges else ((), (), ())
        columns = (heads, [relations[name] for name in names], tails)
        table = pa.table(
            {role: pa.array(column, pa.string()) for role, column in zip(EDGE_COLUMNS, columns, strict=True)}
        )
        keys = dict.fromkeys([*described, *(key for head, _, tail in edges for key in (head, tail))])
        return Piece(self._nodes(list(keys), labels, partial), file), Piece(table, file), notes

    def _axioms(self, edges: Sequence[Edge], include: Sequence[str]) -> set[str]:
        """Return the nodes that describe the vocabulary, by type, or blank nodes reached by its predicates."""
        reached: dict[str, list[tuple[str, str]]] = {}
        for head, relation, tail in edges:
            if tail.startswith("_:"):
                reached.setdefault(tail, []).append((head, relation))
        axioms = set()
        for key, resource in self.resources.items():
            types = [kind for kind in resource.types if kind not in PLAIN_TYPES]
            own = [kind for kind in types if key.startswith("_:") or kind not in _CLASSES]
            if types and len(own) == len(types) and all(map(_is_own, types)):
                axioms.add(key)
        axioms = {key for key in axioms if not {local_name(kind) for kind in self.resources[key].types} & set(include)}
        waiting = {key for key in reached if not self.resources.get(key, _Resource()).types} - axioms
        while found := {key for key in waiting if all(way[0] in axioms or _is_own(way[1]) for way in reached[key])}:
            axioms |= found
            waiting -= found
        return axioms

    def _nodes(self, keys: list[str], labels: dict[str, str], partial: bool) -> pa.Table:
        resources = [self.resources.get(key, _Resource()) for key in keys]
        kinds = [self._kind(resource) for resource in resources]
        kind_names = short_names({kind for kind in kinds if kind}, labels, self.prefixes)
        attributes = self.attributes(resources, labels)
        columns: dict[str, Any] = {
            "key": keys,
            "type": pa.array([kind_names[kind] if kind else None for kind in kinds], pa.string()),
            "name": pa.array([labels.get(key) or (None if partial else _name(key)) for key in keys], pa.string()),
            "aliases": pa.array([self._aliases(resource) for resource in resources], pa.list_(pa.string())),
            "text": ["\n".join(self._texts(resource, self.texts)) for resource in resources],
        }
        for predicate, name in attributes.items():
            columns[name] = column_of([self._value(resource.literals.get(predicate)) for resource in resources])
        return pa.table(columns)

    @property
    def labels(self) -> dict[str, str]:
        """The best name of every resource with a name."""
        named = ((key, self._texts(resource, self.every_name)) for key, resource in self.resources.items())
        return {key: names[0] for key, names in named if names and names[0]}

    @cached_property
    def every_name(self) -> tuple[str, ...]:
        """The predicates of names, then those of other vocabularies that are called so: `…#name`, `…#Thing.name`."""
        used = {predicate for resource in self.resources.values() for predicate in resource.literals}
        called = {one for one in used if plain(local_name(one).rpartition(".")[2]) in HEADERS["full"]}
        return (*self.names, *sorted(called - {*self.names, *ALIASES}))

    def attributes(self, resources: Iterable[_Resource], labels: Mapping[str, str]) -> dict[str, str]:
        """Return the attribute names of predicates with literals."""
        told = {predicate for resource in resources for predicate in resource.literals}
        names = short_names(told - {*self.every_name, *ALIASES, *self.texts}, labels, self.prefixes)
        return {predicate: name + "_" if name in NODE_COLUMNS else name for predicate, name in names.items()}

    def _aliases(self, resource: _Resource) -> list[str]:
        names = self._texts(resource, self.every_name)
        return sorted({*names[1:], *self._texts(resource, ALIASES)})  # triples have no order

    def _texts(self, resource: _Resource, predicates: Iterable[str]) -> list[str]:
        """Return the literals of several predicates in the user's language, in the order of the predicates."""
        found = [text for predicate in predicates for text in resource.literals.get(predicate, ())]
        return list(dict.fromkeys(text.value for text in in_language(found, self.language)))

    def _kind(self, resource: _Resource) -> str:
        telling = [kind for kind in resource.types if kind not in PLAIN_TYPES]
        things = [kind for kind in telling if not _is_own(kind)]
        if not things and (classes := _CLASSES & set(telling)):
            return _OWL + "Class" if _OWL + "Class" in self.class_types else min(classes)
        return min(things or telling or resource.types, default="")

    @cached_property
    def class_types(self) -> set[str]:
        """The class types that the sources use."""
        return {kind for resource in self.resources.values() for kind in resource.types} & _CLASSES

    def _value(self, texts: list[Text] | None) -> object:
        if not texts:
            return None
        values = [text.parsed() for text in in_language(texts, self.language)]
        return values[0] if len(values) == 1 else sorted(str(value) for value in values)


def _is_own(iri: str) -> bool:
    """Return whether an IRI belongs to a vocabulary language."""
    return iri.startswith(_VOCABULARIES)


def _name(key: str) -> str:
    return key if key.startswith("_:") else local_name(key)


MOST_FOLD = 10
"""Maximum expansion of entities, as a multiple of the file size. Namespaces need about 1."""
SMALL = 10_000_000
"""Bytes that the entities of any file may expand to, whatever its size."""
_DECLARED = re.compile(rb"<!ENTITY\s+([^\s%]+)\s+(?:\"([^\"]*)\"|'([^']*)')")
_USED = re.compile(rb"&([^\s;#&<]{1,200});")


def refuse_entity_bomb(data: bytes, file: Path) -> None:
    """Raise SourceError for XML whose entities expand to many times its size."""
    declared = {name: double or single for name, double, single in _DECLARED.findall(data)}
    if not declared:
        return
    most = SMALL + MOST_FOLD * len(data)

    @cache
    def length(name: bytes) -> int:
        content = declared.get(name, b"")
        return min(most + 1, len(content) + sum(map(length, _USED.findall(content))))

    try:
        total = sum(map(length, _USED.findall(data)))
    except RecursionError:
        total = most + 1
    if total > most:
        raise SourceError("its entities expand to many times its size: expand or remove them", file=file)


_SCHEMA_ORG = re.compile(r"https?://(www\.)?schema\.org(/.*)?")
_VOCABULARY = {"@vocab": "https://schema.org/"}


def with_local_contexts(data: bytes, file: Path) -> bytes:
    """Replace contexts of JSON-LD that would have to be downloaded.

    schema.org is built in, others must be in the file.
    """
    try:
        document = json.loads(data)
    except json.JSONDecodeError as broken:
        raise SourceError(f"not JSON: {broken.msg}", file=file, line=line_at(data, broken.pos)) from broken
    return json.dumps(_local(document, file), ensure_ascii=False).encode("utf-8")


def _local(value: Any, file: Path) -> Any:
    if isinstance(value, list):
        return [_local(item, file) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _context(part, file) if name == "@context" else _local(part, file) for name, part in value.items()}


def _context(context: Any, file: Path) -> Any:
    if isinstance(context, list):
        return [_context(part, file) for part in context]
    if not isinstance(context, str):
        return context
    if _SCHEMA_ORG.fullmatch(context):
        return _VOCABULARY
    raise SourceError(
        f"the context {context!r} would have to be downloaded: replace its address by its content", file=file
    )


_ON = _OWL + "onProperty"
_TARGETS = (_OWL + "someValuesFrom", _OWL + "allValuesFrom", _OWL + "hasValue", _OWL + "onClass")
_HOLDS = (_RDFS + "subClassOf", _OWL + "equivalentClass")

Edge = tuple[str, str, str]


def unfolded(edges: Sequence[Edge]) -> tuple[list[Edge], set[str]]:
    """Convert restrictions between two named things to one edge each. Also return the removed blank nodes.

    OWL expresses that things of two classes are related as follows:
    A rdfs:subClassOf [ owl:onProperty P ; owl:someValuesFrom B ]     becomes     A —P→ B
    """
    properties = {head: tail for head, relation, tail in edges if relation == _ON and head.startswith("_:")}
    targets = {head: tail for head, relation, tail in edges if relation in _TARGETS and head in properties}
    plain = {blank for blank, target in targets.items() if not target.startswith("_:")}
    held = {tail for _, relation, tail in edges if relation in _HOLDS and tail in plain}
    others = {tail for _, relation, tail in edges if relation not in _HOLDS} & held
    gone = held - others  # keep nodes with other incoming edges, such as an intersection
    found = []
    for head, relation, tail in edges:
        if head in gone:
            continue
        found.append((head, properties[tail], targets[tail]) if tail in gone else (head, relation, tail))
    return found, gone
