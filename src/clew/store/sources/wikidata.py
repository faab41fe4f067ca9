"""Wikidata's JSON dumps with one entity per line: labels, aliases, descriptions, and claims as edges and attributes."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from clew.core.errors import SourceError
from clew.store.graph.tables import EDGE_COLUMNS, NODE_COLUMNS, Piece, Problem, Tables
from clew.store.sources.files import SourceOptions, opened
from clew.store.sources.jsonl import column_of, table_of_records

INSTANCE_OF = "P31"
_MARKS = tuple(map(re.compile, (rb'"type"\s*:\s*"(item|property|lexeme)"', rb'"id"\s*:\s*"[QPL]\d+"')))
_LEFT_OUT = frozenset({"external-id", "commonsMedia", "geo-shape", "tabular-data"})
"""Types of values that are not useful to readers."""
_TIME = re.compile(r"\+?(\d{4})-(\d\d)-(\d\d)T")
_ENTITY_TYPES = {"item": "Q", "property": "P", "lexeme": "L"}


@dataclass
class _Dump:
    """The items, their links with qualifiers, and the labels of all entities."""

    items: list[dict[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    links: list[tuple[str, str, str, dict[str, Any]]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)

    def called(self, entity: str) -> str:
        """Return the label of an entity, or its id if the dump does not contain it."""
        return self.labels.get(entity) or entity


def is_wikidata(path: Path) -> bool:
    """Return whether the first record of a file looks like an entity of Wikidata."""
    try:
        with opened(path) as lines:
            beginning = lines.read(2000)
    except (OSError, EOFError, zlib.error):
        return False
    return all(mark.search(beginning) for mark in _MARKS)


def read_wikidata(path: Path, options: SourceOptions) -> Tables:
    """Read items as nodes and claims about items as edges. The type is the first class of an item."""
    dump = _Dump()
    skipped = []
    for number, line in _lines(path):
        try:
            _take(json.loads(line), number, dump, options.language)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            problem = Problem(f"not a Wikidata entity: {type(wrong).__name__}: {wrong}", str(path), number)
            if not options.skip_bad:
                raise SourceError(problem.message, file=path, line=number) from wrong
            skipped.append(problem)
    if not dump.items:
        raise SourceError("no item in this dump, only properties", file=path)
    known = {item["key"] for item in dump.items}
    links = [link for link in dump.links if link[2] in known]
    notes = []
    if len(links) < len(dump.links):
        notes.append(f"{path}: {len(dump.links) - len(links):,} claims lead to items that it does not hold, left out.")
    rows = [
        {"head": head, "relation": dump.called(relation), "tail": tail}
        | {_header(place, dump, EDGE_COLUMNS): value for place, value in qualifiers.items()}
        for head, relation, tail, qualifiers in links
    ]
    empty = pa.table({name: pa.array([], pa.string()) for name in EDGE_COLUMNS})
    edges = Piece(table_of_records(rows) if rows else empty, str(path))
    return Tables((_nodes(dump, options, str(path)),), (edges,), notes=tuple(notes), skipped=tuple(skipped))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a dump, which is a JSON list or only the items, one per line, without reading all at once."""
    with opened(path) as lines:
        for number, line in enumerate(lines, 1):
            content = line.strip().rstrip(b",")
            if content not in (b"", b"[", b"]"):
                yield number, content


def _take(entity: Mapping[str, Any], line: int, dump: _Dump, language: str) -> None:
    key, label = entity["id"], _in_language(entity["labels"], language)
    if label:
        dump.labels[key] = label
    if not key.startswith("Q"):
        return
    claims = {name: _best(statements) for name, statements in _mapping(entity.get("claims")).items()}
    values: dict[str, list[Any]] = {}
    for name, statements in claims.items():
        for statement in statements:
            unit, value = _value(statement.get("mainsnak"))
            if isinstance(value, _Item):
                dump.links.append((key, name, value.key, _qualifiers(statement)))
            elif value is not None:
                values.setdefault(f"{name} {unit}".strip(), []).append(value)
    kinds = [_value(statement.get("mainsnak"))[1] for statement in claims.get(INSTANCE_OF, ())]
    aliases = _mapping(entity.get("aliases")).get(language) or []
    dump.items.append(
        {
            "key": key,
            "kind": next((kind.key for kind in kinds if isinstance(kind, _Item)), None),
            "name": label or key,
            "aliases": [alias["value"] for alias in aliases],
            "text": _in_language(entity.get("descriptions"), language),
            "values": values,
        }
    )
    dump.lines.append(line)


def _nodes(dump: _Dump, options: SourceOptions, file: str) -> Piece:
    default = options.node_type or "entity"
    columns: dict[str, Any] = {
        "key": column_of([item["key"] for item in dump.items]),
        "type": column_of([dump.called(item["kind"]) if item["kind"] else default for item in dump.items]),
        **{name: column_of([item[name] for item in dump.items]) for name in ("name", "aliases", "text")},
    }
    for place in sorted({place for item in dump.items for place in item["values"]}):
        name = _header(place, dump, (*NODE_COLUMNS, "relation"))
        while name in columns:
            name += "_"
        columns[name] = column_of([_one(item["values"].get(place)) for item in dump.items])
    return Piece(pa.table(columns), file, lines=pa.array(dump.lines, pa.int64()))


def _header(place: str, dump: _Dump, taken: Sequence[str]) -> str:
    """Convert `P2048 Q11573` to `height (metre)`. Append a mark to labels that are roles."""
    name, _, unit = place.partition(" ")
    label = dump.called(name) + (f" ({dump.called(unit)})" if unit else "")
    return label + "_" if label in taken else label


def _one(values: list[Any] | None) -> Any:
    return values if values is None or len(values) > 1 else values[0]


@dataclass(frozen=True)
class _Item:
    key: str


def _best(statements: Any) -> list[Mapping[str, Any]]:
    """Return the preferred statements, or else the normal statements, but no deprecated statements."""
    ranked: dict[str, list[Mapping[str, Any]]] = {}
    for statement in statements if isinstance(statements, list) else ():
        ranked.setdefault(statement.get("rank", "normal"), []).append(statement)
    return ranked.get("preferred") or ranked.get("normal", [])


def _qualifiers(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return the qualifiers of a claim, the first value of each property."""
    found = {}
    for name, snaks in _mapping(statement.get("qualifiers")).items():
        unit, value = _value(snaks[0]) if snaks else ("", None)
        if value is not None and not isinstance(value, _Item):
            found[f"{name} {unit}".strip()] = value
    return found


def _value(snak: Any) -> tuple[str, Any]:
    """Return the unit and value of a snak, or None if the value is unknown or of a skipped type."""
    if not isinstance(snak, dict) or snak.get("snaktype") != "value" or snak.get("datatype") in _LEFT_OUT:
        return "", None
    kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
    if kind == "wikibase-entityid":
        return "", _Item(value.get("id") or f"{_ENTITY_TYPES[value['entity-type']]}{value['numeric-id']}")
    if kind == "quantity":
        amount, unit = float(value["amount"]), value.get("unit", "1").rpartition("/")[2]
        return "" if unit == "1" else unit, int(amount) if amount.is_integer() else amount
    if kind == "time":
        return "", _day(value["time"])
    if kind == "monolingualtext":
        return "", value["text"]
    if kind == "globecoordinate":
        return "", f"{value['latitude']}, {value['longitude']}"
    return "", str(value)


def _day(time: str) -> date | None:
    """Return the day, or the first day if only a year or month is known. None for dates BC."""
    found = _TIME.match(time)
    try:
        return None if found is None else date(int(found[1]), int(found[2]) or 1, int(found[3]) or 1)
    except ValueError:
        return None


def _in_language(texts: Any, language: str) -> str:
    """Return the text in a language, or the language-neutral text, or English, or any."""
    by_language = _mapping(texts)
    for wanted in (language, "mul", "en", *by_language):
        if wanted in by_language:
            return str(by_language[wanted]["value"])
    return ""


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, since dumps write an empty mapping as an empty list."""
    return value if isinstance(value, dict) else {}
