"""Keys for the rows of a table that has none: the names of the rows, numbered where several are called the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clew.kb.sources.columns import node_roles, plain
from clew.kb.sources.files import SourceOptions, stem_of
from clew.kb.sources.naming import names_of_rows
from clew.kb.sources.pieces import RawTable, as_text, is_text

_KEY, _NAME = "\0key", "\0name"
_PLAIN = frozenset({"full", "display", "preferred", "id", "key", "item", "text", "caption", "subject", "headline"})
"""What does not say what rows are."""
MOST_OF_LINKS = 3
"""Columns: a table of no more of them, all texts and none naming the rows, may as well be one of edges."""


def is_of_things(raw: RawTable, options: SourceOptions) -> bool:
    """Whether the rows of a table without a key are things that the table tells about, and not edges between others.

    A few columns of texts may be either, where no column names the rows, or each of them could.
    """
    if raw.table.num_columns > MOST_OF_LINKS or not all(map(is_text, raw.table.schema.types)):
        return True
    columns = [[text for text in column.to_pylist() if text] for column in raw.table.columns]
    worded = [any(map(str.isalpha, "".join(texts))) for texts in columns]
    if sum(worded) == 1:  # the others are numbers: edges have two ends
        return True
    names, _ = _names(raw, options)
    could_name = [is_worded and len(set(texts)) == len(texts) for is_worded, texts in zip(worded, columns, strict=True)]
    return names[0] != f"{_noun(raw)} 1" and not all(could_name)


def keyed(raw: RawTable, options: SourceOptions) -> tuple[RawTable, SourceOptions, str | None]:
    """The table with a key for every row, how to read it then, and what to tell; as it is where it has keys."""
    roles = node_roles(raw.table.column_names, options.columns)
    if "key" in roles and ("key" in options.columns or roles["key"] != roles.get("name")):
        return raw, options, None
    if "key" in roles and _tell_apart(raw.table[roles["key"]]):
        return raw, options, None
    names, column = _names(raw, options)
    keys = unique_keys(names)
    shared = sum(key != name for key, name in zip(keys, names, strict=True))
    table = raw.table if column in ("", options.columns.get("type")) else raw.table.drop_columns([column])
    table = table.append_column(_KEY, pa.array(keys, pa.large_string()))
    table = table.append_column(_NAME, pa.array(names, pa.large_string()))
    mapped = {**options.columns, "key": _KEY, "name": _NAME}
    told = f"{raw.file}: {shared:,} rows are called like one before them; each is a node of its own."
    own = replace(options, columns=mapped, node_type=options.node_type or _kind(column))
    return replace(raw, table=table), own, told if shared else None


def unique_keys(names: Sequence[str]) -> list[str]:
    """The names, with a number after those that came before."""
    taken, used, keys = set(names), dict.fromkeys(names, 0), []
    for name in names:
        used[name] += 1
        key = name
        while used[name] > 1 and (key := f"{name} ({used[name]})") in taken:
            used[name] += 1
        taken.add(key)
        keys.append(key)
    return keys


def _tell_apart(names: pa.ChunkedArray) -> bool:
    """Whether every row has a name of its own."""
    if not is_text(names.type):
        return bool(names.null_count == 0)
    tidy = pc.utf8_trim_whitespace(names)
    return bool(pc.count_distinct(tidy, mode="all").as_py() == len(names) and pc.all(pc.not_equal(tidy, "")).as_py())


def _names(raw: RawTable, options: SourceOptions) -> tuple[list[str], str]:
    """How each row is called, and the column that says so; where none does, `cars 12`."""
    texts = [name for name, kind in zip(raw.table.column_names, raw.table.schema.types, strict=True) if is_text(kind)]
    held = {name: as_text(raw.table[name]).to_pylist() for name in texts or raw.table.column_names[:1]}
    return names_of_rows(_noun(raw), (), held, options.columns.get("name"))


def _kind(column: str) -> str | None:
    """What the rows are, where the header of their names says so: `country`, `Airport Name`."""
    bare = re.sub(r"[\W_]*(?:names?|titles?|labels?)$", "", column.strip(), flags=re.IGNORECASE)
    return bare if bare and plain(bare) not in _PLAIN else None


def _noun(raw: RawTable) -> str:
    return stem_of(Path(raw.file)) or "row"
