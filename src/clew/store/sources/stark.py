"""Official STaRK layout: node_info, edge_index, edge_types, node_types and two dictionaries of type names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.errors import InputError, SourceError
from clew.store.graph.tables import EDGE_COLUMNS, Piece, Tables
from clew.store.sources.columns import plain
from clew.store.sources.files import SourceOptions
from clew.store.sources.jsonl import table_of_records
from clew.store.sources.pickles import read_pickle, read_torch
from clew.store.sources.pieces import RawTable, as_nodes

CANDIDATES = {frozenset({"product", "brand"}): "product", frozenset({"author", "paper", "field_of_study"}): "paper"}
"""Types that identify a base of the benchmark, and its answer type. In PRIME, all types may be answers."""
SAID = ("overall", "summary", "reviewText", "text", "question", "answer")
"""Fields of a review or an answered question for readers. Other fields are technical."""
_PARTS = ("node_info", "edge_index", "edge_types", "node_types", "node_type_dict", "edge_type_dict")


def stark_folder(folder: Path) -> Path | None:
    """Return the folder with the parts: this folder or its subfolder `processed`."""
    for place in (folder, folder / "processed"):
        if _file(place, "node_info") and _file(place, "edge_index"):
            return place
    return None


def read_stark(folder: Path, options: SourceOptions) -> Tables:
    """Read one node table per type, keyed by official node ids, all edges, and the answer types."""
    if not options.trust:
        raise InputError(
            f"{folder} contains pickles (the official STaRK layout): add --trust if you trust their source. They "
            "are read by a restricted reader that accepts only plain data"
        )
    parts = {name: _read_part(folder, name) for name in _PARTS}
    info: Mapping[Any, Any] = parts["node_info"]
    if isinstance(info, list):
        info = dict(enumerate(info))
    type_names = _names(parts["node_type_dict"])
    relation_names = _relation_names(_names(parts["edge_type_dict"]), set(type_names.values()))
    types = _array(parts["node_types"], folder, "node_types", 1)
    ends = _array(parts["edge_index"], folder, "edge_index", 2)
    kinds = _array(parts["edge_types"], folder, "edge_types", 1)
    if ends.shape[0] != 2 or ends.shape[1] != len(kinds):
        raise SourceError(f"edge_index is {ends.shape}, expected (2, {len(kinds)}) as edge_types has", file=folder)
    if len(info) > len(types):
        raise SourceError(f"node_types has {len(types)} entries for {len(info)} nodes", file=folder)
    nodes = []
    for code in np.unique(types).tolist():
        keys = [key for key in np.flatnonzero(types == code).tolist() if key in info]
        if keys:
            name = type_names.get(code, f"type {code}")
            records = [{field: _readable(value) for field, value in dict(info[key]).items()} for key in keys]
            nodes.append(_nodes(keys, records, name, folder))
    codes = np.unique(kinds)
    dictionary = pa.array([relation_names.get(code, f"relation {code}") for code in codes.tolist()])
    relations = pa.DictionaryArray.from_arrays(pa.array(np.searchsorted(codes, kinds).astype(np.int32)), dictionary)
    columns = (pa.array(ends[0]), relations, pa.array(ends[1]))
    edges = Piece(pa.table(dict(zip(EDGE_COLUMNS, columns, strict=True))), str(folder / "edge_index"))
    answers = tuple(answer for types, answer in CANDIDATES.items() if types <= set(type_names.values()))
    return Tables(tuple(nodes), (edges,), answers=answers)


def _nodes(keys: list[int], records: list[dict[str, Any]], kind: str, folder: Path) -> Piece:
    table = table_of_records(records)
    roles = {"key": "\0key", "type": "\0type"}  # distinct names, since records may have an id and a type
    for name in table.column_names:
        if plain(name) == f"{plain(kind)}_name" and not {"name", "title"} & set(map(plain, table.column_names)):
            roles["name"] = name
    if "type" in table.column_names:
        table = table.drop_columns(["type"])
    table = table.append_column(roles["key"], pa.array(keys, pa.int64()))
    table = table.append_column(roles["type"], pa.repeat(kind, len(keys)))
    return as_nodes(RawTable(table, str(folder / "node_info")), SourceOptions(columns=roles))


def _readable(value: Any) -> Any:
    """Convert lists of records, such as reviews and answered questions, to lists of lines."""
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        return value
    return [_line(item) if isinstance(item, dict) else item for item in value]


def _line(record: Mapping[str, Any]) -> str:
    told = [field for field in SAID if field in record] or list(record)
    return "; ".join(f"{field}: {record[field]}" for field in told if record[field] not in (None, ""))


def _relation_names(names: dict[int, str], types: set[str]) -> dict[int, str]:
    """Return `cites` for `paper___cites___paper`, since the schema contains the types at its ends."""
    return {
        code: parts[1] if len(parts := name.split("___")) == 3 and {parts[0], parts[2]} <= types else name
        for code, name in names.items()
    }


def _names(dictionary: Any) -> dict[int, str]:
    """Return names by code, for dictionaries in either direction."""
    return {
        int(key) if isinstance(value, str) else int(value): str(value) if isinstance(value, str) else str(key)
        for key, value in dict(dictionary).items()
    }


def _array(value: Any, folder: Path, name: str, dimensions: int) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.ndim != dimensions or not np.issubdtype(array.dtype, np.integer):
        raise SourceError(f"{name} is not an array of integers in {dimensions} dimension(s)", file=folder)
    return array.astype(np.int64, copy=False)


def _read_part(folder: Path, name: str) -> Any:
    path = _file(folder, name)
    if path is None:
        raise SourceError(f"{name}.pkl or {name}.pt is missing: the layout needs {', '.join(_PARTS)}", file=folder)
    return read_torch(path) if path.suffix == ".pt" else read_pickle(path)


def _file(folder: Path, name: str) -> Path | None:
    places = (folder / f"{name}{suffix}" for suffix in (".pt", ".pkl"))
    return next(filter(Path.is_file, places), None)
