"""Read the graph of Neo4j, or of another database with Bolt and openCypher.

The first label is the type, a relationship type is a relation, and properties are attributes. Names and texts are
recognised by property names. A property that is named like a key and is unique becomes the key. Otherwise the
database's ids are the keys.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from clew.core.errors import SourceError
from clew.store.graph.tables import ELEMENT, Piece, Tables
from clew.store.remote.bolt import BoltServer, GraphAddress, Record
from clew.store.sources.columns import node_roles
from clew.store.sources.files import SourceOptions
from clew.store.sources.jsonl import column_of
from clew.store.sources.pieces import RawTable, as_edges, as_nodes
from clew.store.sources.relational import HEAD, KEY, RELATION, TAIL, TYPE, edge_options
from clew.store.sources.wide import agreed

UNTYPED = "entity"
LABELS = "all_labels"
"""Attribute with the labels of each node, if some node has several."""
NODES = "MATCH (n) RETURN elementId(n), labels(n), properties(n)"
EDGES = "MATCH (a)-[r]->(b) RETURN elementId(a), type(r), elementId(b), properties(r)"


@dataclass(frozen=True, eq=False)
class ReadNodes:
    """The nodes of a graph, with their element ids and keys."""

    pieces: tuple[Piece, ...]
    keys: dict[str, str]
    """Node keys by element id."""
    key_property: str | None
    """The property that contains every key unchanged. None if there is none."""
    properties: tuple[str, ...]


def read_graph(url: str, options: SourceOptions) -> tuple[Tables, list[str]]:
    """Read the whole graph, and the names of all properties."""
    server = BoltServer(GraphAddress(url))
    nodes = read_nodes(server, options)
    rows = [row for row in server.rows(EDGES, reads_all=True) if row[0] in nodes.keys and row[2] in nodes.keys]
    edges = edge_piece(rows, nodes.keys, str(server.address), options)
    names = [*nodes.properties, *dict.fromkeys(name for *_, held in rows for name in held)]
    return Tables(nodes.pieces, (edges,) if rows else ()), names


def read_nodes(server: BoltServer, options: SourceOptions, *, with_elements: bool = False) -> ReadNodes:
    """Read every node. `with_elements` stores the element ids in a column that is not an attribute."""
    rows = server.rows(NODES, reads_all=True)
    file = str(server.address)
    if not rows:
        raise SourceError("the graph contains no nodes", file=file)
    chosen, keys = _keys(rows, options, file)
    several = any(len(labels) > 1 for _, labels, _ in rows)
    by_type: dict[str, list[Record]] = {}
    for row in rows:
        by_type.setdefault(type_of(row[1], options), []).append(row)
    pieces = []
    for kind, own in sorted(by_type.items()):
        elements = [element for element, *_ in own]
        columns: dict[str, pa.Array] = {KEY: pa.array(map(keys.get, elements), pa.string())}
        columns[TYPE] = pa.array([kind] * len(own), pa.string())
        if several:
            columns[LABELS] = pa.array([labels for _, labels, _ in own], pa.list_(pa.string()))
        for name in dict.fromkeys(name for *_, held in own for name in held):
            if name != chosen:
                columns[name] = column_of([plain_value(held.get(name)) for *_, held in own])
        roles = {role: name for role, name in options.columns.items() if name in columns}
        raw = RawTable(pa.table(columns), f"{file}, label {kind}")
        piece = as_nodes(raw, replace(options, columns={**roles, "key": KEY, "type": TYPE}))
        if with_elements:
            piece = replace(piece, table=piece.table.append_column(ELEMENT, pa.array(elements, pa.string())))
        pieces.append(piece)
    held_as_is = chosen if all(held.get(chosen) == keys[element] for element, _, held in rows) else None
    return ReadNodes(agreed(pieces), keys, held_as_is, tuple(dict.fromkeys(name for *_, held in rows for name in held)))


def edge_piece(rows: Sequence[Record], keys: dict[str, str], file: str, options: SourceOptions) -> Piece:
    """Convert records of start, type, end and properties to edges."""
    columns: dict[str, pa.Array] = {
        HEAD: pa.array([keys[row[0]] for row in rows], pa.string()),
        RELATION: pa.array([row[1] for row in rows], pa.string()),
        TAIL: pa.array([keys[row[2]] for row in rows], pa.string()),
    }
    for name in dict.fromkeys(name for *_, held in rows for name in held):
        columns[name] = column_of([plain_value(held.get(name)) for *_, held in rows])
    return as_edges(RawTable(pa.table(columns), f"{file}, relationships"), edge_options(options))


def plain_value(value: Any) -> Any:
    """Convert a property value to Python. Unsupported values become text, and bytes become None."""
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return None
    if hasattr(value, "iso_format"):  # a moment or a duration of the driver
        native = value.to_native() if hasattr(value, "to_native") else None
        return native if isinstance(native, datetime.date) else value.iso_format()
    if isinstance(value, tuple):  # a point
        return ", ".join(map(str, value))
    return value


def _keys(rows: Sequence[Record], options: SourceOptions, file: str) -> tuple[str | None, dict[str, str]]:
    """Return the property with the keys, given by the user or recognised by name, and the key of every node.

    A property qualifies if most nodes have it and no two nodes of a type share a value. If nodes of two types share a
    value, keys are prefixed by the type. Nodes without the property use their element id.
    """
    own = {element: element for element, *_ in rows}
    named = options.columns.get("key")
    roles = node_roles(list(dict.fromkeys(name for *_, held in rows for name in held)), {})
    chosen = named or (roles.get("key") if roles.get("key") != roles.get("name") else None)
    told = [(row[0], type_of(row[1], options), row[2][chosen]) for row in rows if chosen in row[2]]
    if chosen is None or not all(isinstance(value, str | int) and str(value).strip() for *_, value in told):
        told = []
    plain = {element: str(value).strip() for element, _, value in told}
    typed = {element: f"{kind}/{plain[element]}" for element, kind, _ in told}
    keys = plain if len({*plain.values()}) == len(told) else typed
    if len({*keys.values()}) == len(told) > len(rows) / 2:
        return chosen, own | keys
    if named is not None:
        raise SourceError(f"--map key={named}: few nodes have this property, or two of a type share a value", file=file)
    return None, own


def type_of(labels: Sequence[str], options: SourceOptions) -> str:
    """Return the first label."""
    return labels[0] if labels else options.node_type or UNTYPED
