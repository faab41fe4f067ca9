"""Convert Python objects to tables and back: pyarrow, pandas, polars, NetworkX and PyTorch Geometric."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from clew.core.errors import InputError, needing
from clew.store.graph.build import kind_of
from clew.store.graph.tables import EDGE_COLUMNS, Piece, Tables, Visibility
from clew.store.sources.files import SourceOptions
from clew.store.sources.jsonl import table_of_records
from clew.store.sources.pieces import RawTable, as_edges, as_nodes
from clew.store.sources.relational import read_tables
from clew.store.sources.wide import agreed, concatenated

if TYPE_CHECKING:
    import networkx
    from torch_geometric.data import Data, HeteroData


_RELATION_NAMES = ("relation", "predicate", "edge_type", "type", "label")


def from_tables(
    nodes: Any = None,
    edges: Any = None,
    options: SourceOptions | None = None,
    *,
    tables: Mapping[str, Any] | None = None,
) -> Tables:
    """Convert tables of pyarrow, pandas or polars, or lists of dictionaries. Columns are recognised as in files.

    `nodes` and `edges` may be lists of several tables. Without nodes, the entities in edges become nodes. `tables` are
    named tables that are not a graph yet, `{"customers": …, "orders": …}`, and are read like files with these names.
    """
    options = options or SourceOptions()
    if tables is not None:
        if nodes is not None or edges is not None:
            raise InputError("expected either tables, or nodes and edges: give tables without nodes and edges")
        read = read_tables([replace(_raw(table, name), name=name) for name, table in tables.items()], options)
        return replace(read, visibility=Visibility(options.columns.get("groups")))
    node_pieces = [as_nodes(_raw(table, f"nodes[{i}]"), options) for i, table in enumerate(_several(nodes))]
    edge_pieces = [as_edges(_raw(table, f"edges[{i}]"), options) for i, table in enumerate(_several(edges))]
    if not node_pieces and not edge_pieces:
        raise InputError("no tables: give nodes, edges or both")
    made = Tables(agreed(node_pieces), agreed(edge_pieces), not node_pieces, options.node_type or "entity")
    return replace(made, visibility=Visibility(options.columns.get("groups")))


def from_networkx(graph: networkx.Graph[Any], options: SourceOptions | None = None) -> Tables:
    """Convert a graph's nodes and edges with their data. Undirected edges keep the direction in which they are listed.

    The relation of an edge is its `relation` (or predicate, edge_type, type, label), or its key in a multigraph.
    """
    options = options or SourceOptions()
    plain = all(isinstance(node, int) for node in graph.nodes) or all(isinstance(node, str) for node in graph.nodes)
    key: Any = (lambda node: node) if plain else str
    nodes = [{"key": key(node), **_without(data, "key")} for node, data in graph.nodes(data=True)]
    edges = []
    listed: Any = graph.edges  # accepts keys only for a multigraph
    links = listed(keys=True, data=True) if graph.is_multigraph() else ((u, v, 0, data) for u, v, data in listed.data())
    for head, tail, number, data in links:
        found = next((name for name in _RELATION_NAMES if isinstance(data.get(name), str)), None)
        relation = data[found] if found else number if isinstance(number, str) else "related_to"
        edges.append(
            {**_without(data, found, "head", "tail"), "head": key(head), "relation": relation, "tail": key(tail)}
        )
    columns = {**options.columns, "key": "key", "head": "head", "relation": "relation", "tail": "tail"}
    named = SourceOptions(columns=columns, node_type=options.node_type)
    node_pieces = (as_nodes(_raw(nodes, "nodes"), named),) if nodes else ()
    made = Tables(node_pieces, (as_edges(_raw(edges, "edges"), named),) if edges else ())
    return replace(made, visibility=Visibility(options.columns.get("groups")))


def to_networkx(tables: Tables) -> networkx.MultiDiGraph[Any]:
    """Build a directed multigraph by key, with `relation` and attributes of each parallel edge."""
    with needing("networkx", "networkx"):
        import networkx
    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for row in rows(tables.nodes):
        graph.add_node(str(row.pop("key")), **_present(row))
    for row in rows(tables.edges):
        graph.add_edge(str(row.pop("head")), str(row.pop("tail")), **_present(row))
    return graph


def to_arrow(tables: Tables) -> tuple[pa.Table, pa.Table]:
    """Return nodes and edges as pyarrow tables, for `.to_pandas()` or `polars.from_arrow`."""
    nodes, edges = ([piece.table for piece in agreed(pieces)] for pieces in (tables.nodes, tables.edges))
    empty = pa.table({name: pa.array([], pa.string()) for name in EDGE_COLUMNS})
    return concatenated(nodes), concatenated(edges or [empty])


def rows(pieces: Iterable[Piece]) -> Iterable[dict[str, Any]]:
    """Yield every row as a dictionary, with one batch in memory at a time."""
    for piece in pieces:
        for batch in piece.table.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()


def _raw(table: Any, name: str) -> RawTable:
    try:
        converted = table_of_records(table) if isinstance(table, Sequence) else pa.table(table)
    except (TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as wrong:
        raise InputError(
            f"{name}: expected a pyarrow, pandas or polars table or a list of dictionaries: {wrong}"
        ) from wrong
    return RawTable(converted, name)


def _several(tables: Any) -> list[Any]:
    if tables is None:
        return []
    if isinstance(tables, Sequence) and tables and not isinstance(tables[0], Mapping):
        return list(tables)
    return [tables]


def _without(data: Mapping[Any, Any], *names: str | None) -> dict[str, Any]:
    return {str(name): value for name, value in data.items() if name not in names}


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


_HEADING = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
_GRAPHML = {"integer": "long", "number": "double", "boolean": "boolean"}
"""GraphML types of attributes that are not text."""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not allow, even escaped."""


def write_graphml(tables: Tables, file: Path) -> None:
    """Write nodes, edges and all attributes. Lists become one text with ` | ` between the items."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write(_HEADING)
        nodes = _declare(out, "node", tables.nodes, ("key",))
        edges = _declare(out, "edge", tables.edges, ("head", "tail"))
        out.write('<graph edgedefault="directed">\n')
        for row in rows(tables.nodes):
            out.write(f"<node id={_quoted(row['key'])}>{_data(row, nodes)}</node>\n")
        for row in rows(tables.edges):
            out.write(f"<edge source={_quoted(row['head'])} target={_quoted(row['tail'])}>{_data(row, edges)}</edge>\n")
        out.write("</graph>\n</graphml>\n")


def _declare(out: TextIO, target: str, pieces: Sequence[Piece], ends: tuple[str, ...]) -> dict[str, str]:
    """Write the declarations of the attributes. Return their ids by attribute."""
    types: dict[str, str] = {}
    for piece in pieces:
        for column in piece.table.schema:
            if column.name not in ends and not pa.types.is_null(column.type):
                types[column.name] = _GRAPHML.get(kind_of(column.type), "string")
    ids = {name: f"{target[0]}{number}" for number, name in enumerate(types)}
    for name, kind in types.items():
        out.write(f'<key id="{ids[name]}" for="{target}" attr.name={_quoted(name)} attr.type="{kind}"/>\n')
    return ids


def _data(row: dict[str, Any], ids: dict[str, str]) -> str:
    return "".join(
        f'<data key="{ids[name]}">{escape(_FORBIDDEN.sub("�", _text(value)))}</data>'
        for name, value in row.items()
        if name in ids and value is not None
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return " | ".join(map(str, value)) if isinstance(value, list) else str(value)


def _quoted(value: Any) -> str:
    return quoteattr(_FORBIDDEN.sub("�", str(value)))


def to_pyg(tables: Tables) -> HeteroData:
    """Build a `HeteroData` with an `edge_index` for each (head type, relation, tail type), and all other data as lists.

    Keys, names, texts and attributes keep their names. Attributes without values for a type are omitted.
    """
    with needing("pyg", "torch_geometric"):
        import torch
        from torch_geometric.data import HeteroData
    data = HeteroData()
    places: dict[str, tuple[str, int]] = {}
    nodes: dict[str, list[dict[str, Any]]] = {}
    for row in rows(tables.nodes):
        kind = row.pop("type", None) or tables.implicit_type
        same = nodes.setdefault(kind, [])
        places[str(row["key"])] = kind, len(same)
        same.append({**row, "key": str(row["key"])})
    edges: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows(tables.edges):
        head, tail = places[str(row["head"])], places[str(row["tail"])]
        edges.setdefault((head[0], row.pop("relation"), tail[0]), []).append(row)
    for kind, same in nodes.items():
        data[kind].num_nodes = len(same)
        for name, values in _columns(same):
            data[kind][name] = values
    for signature, links in edges.items():
        ends = [[places[str(row.pop(end))][1] for row in links] for end in ("head", "tail")]
        data[signature].edge_index = torch.tensor(ends, dtype=torch.long)
        for name, values in _columns(links):
            data[signature][name] = values
    return data


def from_pyg(graph: HeteroData | Data) -> Tables:
    """Convert the nodes and edges of a graph with their lists. Tensors of features are omitted.

    The key of a node is its `key`, or else its type and index (`paper/3`).
    """
    if not hasattr(graph, "edge_index") and not hasattr(graph, "edge_types"):
        raise InputError(f"expected a Data or HeteroData of torch_geometric, not {type(graph).__name__}")
    hetero: Any = graph if hasattr(graph, "edge_types") else None
    node_stores = dict(zip(hetero.node_types, hetero.node_stores, strict=True)) if hetero else {"entity": graph}
    keys: dict[str, list[str]] = {}
    nodes: list[dict[str, Any]] = []
    for kind, store in node_stores.items():
        count = int(store.num_nodes)
        listed = _listed(store, count)
        keys[kind] = [str(key) for key in listed.pop("key", [f"{kind}/{place}" for place in range(count)])]
        rows = ({name: values[place] for name, values in listed.items()} for place in range(count))
        nodes += [{**row, "key": key, "type": kind} for key, row in zip(keys[kind], rows, strict=True)]
    one = ("entity", "related_to", "entity")
    edge_stores = dict(zip(hetero.edge_types, hetero.edge_stores, strict=True)) if hetero else {one: graph}
    edges: list[dict[str, Any]] = []
    for (head, relation, tail), store in edge_stores.items():
        ends = store.edge_index.tolist()
        listed = {} if hetero is None else _listed(store, len(ends[0]))
        for place, (first, last) in enumerate(zip(*ends, strict=True)):
            row = {name: values[place] for name, values in listed.items()}
            edges.append({**row, "head": keys[head][first], "relation": relation, "tail": keys[tail][last]})
    return from_tables(nodes, edges or None)


def _columns(same: list[dict[str, Any]]) -> Iterable[tuple[str, list[Any]]]:
    for name in dict.fromkeys(name for row in same for name in row):
        values = [row.get(name) for row in same]
        if any(value not in (None, [], "") for value in values):
            yield name, values


def _listed(store: Any, count: int) -> dict[str, list[Any]]:
    """Return the lists of a store with one value per node or edge."""
    return {name: value for name, value in store.items() if isinstance(value, list) and len(value) == count}
