"""OBO reader: terms of an ontology with synonyms, definitions, properties and relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from clew.core.errors import SourceError
from clew.store.graph.tables import NODE_COLUMNS, Piece, Tables
from clew.store.sources.jsonl import bounded_table, table_of_records
from clew.store.sources.pieces import is_text, typed_by_content
from clew.store.sources.rdf import XSD, Text, local_name

_ESCAPES = {"n": "\n", "t": "\t", "W": " "}
_XREF_PROPERTY = re.compile(r'([A-Za-z]\w*) "((?:[^"\\]|\\.)*)"')
_NUMBERED = re.compile(r"_\d+(?=_)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LISTS = {"xref": "xrefs", "alt_id": "alt_ids", "subset": "subsets"}
"""Names of the lists that tags become."""
_PROPERTY = re.compile(r'(\S+?):?\s+("(?:[^"\\]|\\.)*")\s*(\S*)')
"""A property with a value: its id, the quoted value, and the datatype."""
_EDGE_TAGS = ("is_a", "instance_of", "relationship")


@dataclass
class Stanza:
    """A block of an OBO file: its kind (empty for the header), its first line, and its tags."""

    kind: str
    line: int
    tags: dict[str, list[str]] = field(default_factory=dict)

    def first(self, tag: str) -> str:
        """Return the first value of a tag, or ""."""
        return self.tags.get(tag, [""])[0]


def read_obo(data: bytes, file: str, default_type: str | None = None) -> Tables:
    """Read the terms in use. Skip obsolete terms and relations to missing terms."""
    header, *blocks = stanzas(data.decode("utf-8"))
    described = [stanza for stanza in blocks if stanza.kind in ("Term", "Instance")]
    terms = [stanza for stanza in described if stanza.first("is_obsolete") != "true"]
    if not terms:
        raise SourceError("no [Term] in use: is this an OBO file?", file=file, line=1)
    for stanza in terms:
        if not stanza.first("id"):
            raise SourceError(f"a [{stanza.kind}] without an id", file=file, line=stanza.line)
    kind = header.first("default-namespace") or default_type or "term"
    names = {stanza.first("id"): stanza.first("name") for stanza in blocks if stanza.kind == "Typedef"}
    keys = {stanza.first("id") for stanza in terms}
    edges = [(stanza, *edge) for stanza in terms for edge in _edges(stanza, names)]
    kept = [edge for edge in edges if edge[2] in keys]
    notes = []
    if len(terms) < len(described):
        notes.append(f"{file}: {len(described) - len(terms):,} obsolete terms left out.")
    if len(kept) < len(edges):
        notes.append(f"{file}: {len(edges) - len(kept):,} relations to terms of other ontologies left out.")
    lines = pa.array([stanza.line for stanza, _, _ in kept], pa.int64())
    table = {
        "head": [stanza.first("id") for stanza, _, _ in kept],
        "relation": [relation for _, relation, _ in kept],
        "tail": [tail for _, _, tail in kept],
    }
    text = pa.schema([(name, pa.string()) for name in table])
    edge_piece = Piece(pa.table(table, text), file, lines=lines)
    with bounded_table(data, file):
        nodes = _nodes(terms, kind, file, names)
    return Tables((nodes,), (edge_piece,), notes=tuple(notes))


def stanzas(text: str) -> Iterator[Stanza]:
    """Yield the header, then every block of the file."""
    current = Stanza("", 1)
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("["):
            yield current
            current = Stanza(line.strip().strip("[]"), number)
            continue
        tag, colon, content = line.partition(":")
        if colon and not line.startswith("!"):
            current.tags.setdefault(tag.strip(), []).append(content.strip())
    yield current


def quotation(content: str) -> str:
    """Return the quoted text at the start of a value, with escapes resolved."""
    found = _QUOTED.match(content)
    return _unescaped(found[1]) if found else content


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), text)


def _edges(stanza: Stanza, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (relation, tail) of each relation of a term. Text after `!` or in braces is a comment."""
    for tag in _EDGE_TAGS:
        for content in stanza.tags.get(tag, ()):
            words = re.split(r"\s+[!{]", content, maxsplit=1)[0].split()
            if tag == "relationship" and len(words) > 1:
                relation = (names.get(words[0]) or local_name(words[0])) if ":" in words[0] else words[0]
                yield relation.replace(" ", "_"), words[1]
            elif tag != "relationship" and words:
                yield tag, words[0]


def _written(stanza: Stanza) -> Iterator[tuple[str, str]]:
    """Yield properties that are written as references without a database: `xref: delta_mono_mass "42.010565"`.

    The numbers in `spec_1_site` and `spec_2_site` only tell values apart.
    """
    for content in stanza.tags.get("xref", ()):
        if written := _XREF_PROPERTY.match(content):
            name = _NUMBERED.sub("", written[1])
            yield name + "_" if name in NODE_COLUMNS else name, _unescaped(written[2])


def _properties(stanza: Stanza, names: dict[str, str]) -> dict[str, object]:
    """Return the values of a term's properties by name, parsed by their datatypes. Several values are texts."""
    found: dict[str, list[object]] = {}
    for name, text in _written(stanza):
        found.setdefault(name, []).append(text)
    for content in stanza.tags.get("property_value", ()):
        if written := _PROPERTY.match(content):
            name = (names.get(written[1]) or local_name(written[1])).replace(" ", "_")
            value = Text(quotation(written[2]), "", written[3].replace("xsd:", XSD, 1)).parsed()
            found.setdefault(name + "_" if name in NODE_COLUMNS else name, []).append(value)
    return {name: cell[0] if len(cell) == 1 else list(map(str, cell)) for name, cell in found.items()}


def _namespace(stanza: Stanza) -> str:
    """Return the namespace of a term, unless it only repeats the beginning of the id, such as `http`."""
    namespace = stanza.first("namespace")
    return "" if stanza.first("id").startswith(f"{namespace}:") else namespace


def _nodes(terms: list[Stanza], kind: str, file: str, names: dict[str, str]) -> Piece:
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "key": pa.array([stanza.first("id") for stanza in terms], pa.string()),
        "type": pa.array([_namespace(stanza) or kind for stanza in terms], pa.string()),
        "name": pa.array([_unescaped(stanza.first("name")) for stanza in terms], pa.string()),
        "aliases": pa.array([_synonyms(stanza) for stanza in terms], pa.list_(pa.string())),
        "text": pa.array([quotation(stanza.first("def")) for stanza in terms], pa.string()),
        "comment": pa.array([_unescaped(stanza.first("comment")) or None for stanza in terms], pa.string()),
    }
    for tag, name in _LISTS.items():
        if any(tag in stanza.tags for stanza in terms):
            lists = [[one for one in stanza.tags.get(tag, ()) if not _XREF_PROPERTY.match(one)] for stanza in terms]
            values = [[content.split(" ", 1)[0] for content in some] for some in lists]
            columns[name] = pa.array(values, pa.list_(pa.string()))
    told = table_of_records([_properties(stanza, names) for stanza in terms])
    untyped = {name for stanza in terms for name, _ in _written(stanza)}
    for name, cells in zip(told.column_names, told.columns, strict=True):
        columns.setdefault(name, typed_by_content(cells) if name in untyped and is_text(cells.type) else cells)
    return Piece(pa.table(columns), file, lines=pa.array([stanza.line for stanza in terms], pa.int64()))


def _synonyms(stanza: Stanza) -> list[str]:
    found = dict.fromkeys(quotation(content) for content in stanza.tags.get("synonym", ()))
    return [synonym for synonym in found if synonym != stanza.first("name")]
