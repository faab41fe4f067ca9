"""Graphs of PyTorch Geometric → tables, and back: node types and relations are its own kinds of nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from clew.core.errors import InputError, MissingExtraError
from clew.kb.sources.objects import from_tables, rows
from clew.kb.tables import Tables

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData


def to_pyg(tables: Tables) -> HeteroData:
    """A `HeteroData`: an `edge_index` for each (head type, relation, tail type), all else as lists in the same order.

    Keys, names, texts and attributes stand under their own names; what a type has no value for is left out.
    """
    try:
        import torch
        from torch_geometric.data import HeteroData
    except ImportError as missing:
        raise MissingExtraError("torch_geometric", "pyg") from missing
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
    """Nodes and edges of a graph with what is listed for each; tensors of features are left out.

    A node has its `key`, or else its type and place (`paper/3`).
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
        nodes += [
            {**{name: values[place] for name, values in listed.items()}, "key": key, "type": kind}
            for place, key in enumerate(keys[kind])
        ]
    one = ("entity", "related_to", "entity")
    edge_stores = dict(zip(hetero.edge_types, hetero.edge_stores, strict=True)) if hetero else {one: graph}
    edges: list[dict[str, Any]] = []
    for (head, relation, tail), store in edge_stores.items():
        ends = store.edge_index.tolist()
        listed = {} if hetero is None else _listed(store, len(ends[0]))
        edges += [
            {
                **{name: values[place] for name, values in listed.items()},
                "head": keys[head][first],
                "relation": relation,
                "tail": keys[tail][last],
            }
            for place, (first, last) in enumerate(zip(*ends, strict=True))
        ]
    return from_tables(nodes, edges or None)


def _columns(same: list[dict[str, Any]]) -> Iterable[tuple[str, list[Any]]]:
    for name in dict.fromkeys(name for row in same for name in row):
        values = [row.get(name) for row in same]
        if any(value not in (None, [], "") for value in values):
            yield name, values


def _listed(store: Any, count: int) -> dict[str, list[Any]]:
    """The lists of a store that have one value a node or an edge."""
    return {name: value for name, value in store.items() if isinstance(value, list) and len(value) == count}
