"""Combine files of a folder that are parts of one table: a file per year, or a JSON document per thing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clew.core.texts import parse_json
from clew.store.graph.tables import STRING
from clew.store.sources.columns import is_worded
from clew.store.sources.files import stem_of
from clew.store.sources.nested import nested_tables
from clew.store.sources.pieces import RawTable, constant
from clew.store.sources.wide import concatenated

MIN_SHARED_FIELDS = 0.5
"""Minimum share of the fields of two lists of objects that both have, if they are lists of the same things."""
_NUMBERS = re.compile(r"[\W\d_]*\d[\W\d_]*")
_CONTAINERS = frozenset({"data", "dataset", "datasets", "files", "json", "src", "dist"})
"""Names of folders that say nothing about their content."""
Document = dict[str, Any]


def documents_of(folder: Path, contents: Mapping[Path, bytes]) -> tuple[dict[str, dict[Path, Document]], set[Path]]:
    """Return groups of JSON objects with the same fields, by the name of the things and by file.

    Each object gets the name of its file and, if the files are in several folders, of its folder. Also return the files
    of other objects that contain no object, such as the version of a package.
    """
    groups: dict[frozenset[str], dict[Path, Document]] = {}
    for path, data in contents.items():
        with suppress(ValueError):  # reading it alone tells what is wrong
            document = parse_json(data)
            if isinstance(document, dict) and not isinstance(document.get("nodes"), list):
                groups.setdefault(frozenset(document), {})[path] = document
    alone = [(path, one) for group in groups.values() if len(group) == 1 for path, one in group.items()]
    groups = {fields: group for fields, group in groups.items() if _are_alike(list(group.values()))}
    found = {}
    for fields, group in groups.items():
        others = frozenset[str]().union(*(other for other in groups if other != fields))
        own = sorted(fields - others) if len(groups) > 1 else []
        places = _places(group)
        told = {path: document | _missing(places[path], document) for path, document in group.items()}
        found["_with_".join([_name_of(folder), *own[:1]])] = told
    return found, {path for path, document in alone if not nested_tables(document, "record")}


def _name_of(folder: Path) -> str:
    """Return the name of the things in a folder of documents."""
    name = folder.resolve().name
    return name if is_worded(name) and name.lower() not in _CONTAINERS else "record"


def tables_of(tables: Sequence[RawTable]) -> list[RawTable]:
    """Combine tables with the same columns whose files differ by their folder or by a number: `sales_2020.csv`."""
    groups: dict[tuple[object, ...], list[RawTable]] = {}
    for number, raw in enumerate(tables):
        kind = _NUMBERS.sub("_", stem_of(Path(raw.file))).strip("_")
        key = (kind, raw.typed, frozenset(raw.table.column_names)) if kind and not raw.name else (number,)
        groups.setdefault(key, []).append(raw)
    return [_combined(str(key[0]), group) if len(group) > 1 else group[0] for key, group in groups.items()]


def _combined(name: str, tables: Sequence[RawTable]) -> RawTable:
    """Return one table with the folder or name of each row's file in a column."""
    first, places = tables[0], _places(Path(raw.file) for raw in tables)
    parts, lines = [], []
    for raw in tables:
        count = raw.table.num_rows
        more = _missing(places[Path(raw.file)], raw.table.column_names)
        told = [(header, constant(name, count)) for header, name in more.items()]
        parts.append(
            reduce(lambda table, column: table.append_column(column[0], column[1].cast(STRING)), told, raw.table)
        )
        lines.append(raw.lines if raw.lines is not None else pa.array(np.arange(count) + raw.first_line))
    return replace(
        first, table=concatenated(parts), file=str(Path(first.file).parent), lines=pa.concat_arrays(lines), name=name
    )


def _places(paths: Iterable[Path]) -> dict[Path, dict[str, str]]:
    """Return what tells files apart: the folder, the name, or both."""
    every = list(paths)
    has_folders = len({path.parent for path in every}) > 1
    has_names = len({path.name for path in every}) > 1
    return {
        path: {
            **({"folder": path.parent.name} if has_folders else {}),
            **({"file": stem_of(path)} if has_names else {}),
        }
        for path in every
    }


def _missing(places: Mapping[str, str], fields: Collection[str]) -> dict[str, str]:
    """Return the parts of a place that the data does not have fields for."""
    return {header: name for header, name in places.items() if header not in fields}


def _are_alike(documents: Sequence[Document]) -> bool:
    """Return whether several documents have lists of the same kinds of objects in the same fields."""
    for name in documents[0]:
        fields = [
            {field for item in items if isinstance(item, dict) for field in item}
            for items in (document[name] for document in documents)
            if isinstance(items, list)
        ]
        some = [own for own in fields if own]
        if any(len(own & some[0]) < MIN_SHARED_FIELDS * len(own | some[0]) for own in some):
            return False
    return len(documents) > 1
