"""What the rows of a table are called, as the data shows it, and keys made of that where a table has none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.store.sources.columns import node_roles, plain
from clew.store.sources.files import SourceOptions, stem_of
from clew.store.sources.pieces import RawTable, as_text, is_text

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
    return bool(names) and names[0] != f"{_noun(raw)} 1" and not all(could_name)


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
    named = [name for name in raw.table.column_names if name != options.columns.get("groups")]
    texts = [name for name in named if is_text(raw.table.schema.field(name).type)]
    held = {name: as_text(raw.table[name]).to_pylist() for name in texts or named[:1]}
    return names_of_rows(_noun(raw), (), held, options.columns.get("name"))


def _kind(column: str) -> str | None:
    """What the rows are, where the header of their names says so: `country`, `Airport Name`."""
    bare = re.sub(r"[\W_]*(?:names?|titles?|labels?)$", "", column.strip(), flags=re.IGNORECASE)
    return bare if bare and plain(bare) not in _PLAIN else None


def _noun(raw: RawTable) -> str:
    return stem_of(Path(raw.file)) or "row"


_FULL = ("name", "full_name", "display_name", "label_name", "preferred_name")
_PARTS = (
    *(("first_name", "last_name"), ("firstname", "lastname"), ("given_name", "family_name"), ("forename", "surname")),
    *(("given_name", "surname"), ("first_name", "surname")),
)
_TITLES = ("title", "label", "caption", "subject", "headline")
_ENDINGS = ("_name", "_title", "_label")
_FILLED, _DISTINCT, _TELLING = 0.5, 0.5, 0.95
_LONGEST = 80
KEY_ENDINGS = ("_id", "_key", "_code", "_fk", "_no", "_uuid")
"""How columns of keys end."""
_CODE = re.compile(r"^(?=\D*\d)\S+$")
_OTHERS = re.compile(
    r"^\w+://|^www\.|^\S+@\S+\.\w+$"  # addresses
    r"|^\S*[/\\]\S+\.\w{1,5}$|^\S+\.[a-z]\w{1,4}$"  # files
    r"|^\d{4}-\d\d-\d\d|^\D*(?:\d{1,2}\D+){1,2}\d{4}$"  # days
    r"|\w\s+\w.*\s\w+[.!?]$",  # sentences
    re.IGNORECASE,
)
"""What is no name, though each row may have its own."""


def names_of_rows(
    table: str, key: Sequence[str], held: Mapping[str, list[Any]], said: str | None = None
) -> tuple[list[str], str]:
    """The name of every row, and the column that it was taken from; where nothing names it, `Invoice 12`."""
    count = len(next(iter(held.values()), ()))
    by_plain = {plain(name): name for name in reversed(list(held))}
    found = said if said in held else _named(by_plain, _FULL, held, 0)
    if found is None and (parts := next((pair for pair in _PARTS if set(pair) <= by_plain.keys()), None)):
        both = zip(*(held[by_plain[part]] for part in parts), strict=True)
        return [" ".join(str(part) for part in one if part) or str(row) for row, one in enumerate(both, 1)], ""
    if found is None:
        found = _named(by_plain, _TITLES, held, _DISTINCT) or _ending(by_plain, held) or _telling(held)
    numbers = zip(*(held[name] for name in key), strict=True) if key and set(key) <= held.keys() else ()
    shown = [" ".join(map(str, values)) for values in numbers] or [str(row) for row in range(1, count + 1)]
    others = [f"{table} {number}" for number in shown]
    if found is None:
        return others, ""
    texts = ["" if value is None else str(value).strip() for value in held[found]]
    return [text or other for text, other in zip(texts, others, strict=True)], found


def _named(
    by_plain: Mapping[str, str], names: Sequence[str], held: Mapping[str, list[Any]], least: float
) -> str | None:
    """The first of some names that most rows have a text for; the title of an employee tells nobody apart."""
    return next((by_plain[name] for name in names if name in by_plain and _tells(held[by_plain[name]], least)), None)


def _ending(by_plain: Mapping[str, str], held: Mapping[str, list[Any]]) -> str | None:
    """`ProductName`, `company_name`: the first such column."""
    fitting = [column for name, column in by_plain.items() if name.endswith(_ENDINGS)]
    return next((column for column in held if column in fitting and _tells(held[column], _DISTINCT)), None)


def _telling(held: Mapping[str, list[Any]]) -> str | None:
    """The first column whose texts could be names; where there is none, the first of codes, if each has its own."""
    worded = [column for column, values in held.items() if could_name(values, with_codes=True)]
    found = [column for column in worded if not plain(column).endswith(KEY_ENDINGS) and could_name(held[column])]
    return next(iter((*found, *worded)), None)


def could_name(values: Sequence[Any], *, with_codes: bool = False) -> bool:
    """Whether values are short texts of which hardly two are the same, with letters, and none of another sort.

    Codes are single words with digits (`L0141`, a checksum), or capitals of one length (`JFK`).
    """
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    if not texts or max(map(len, texts)) > _LONGEST or not _tells(values, _TELLING):
        return False
    if not all(any(map(str.isalpha, text)) for text in texts) or _are_mostly(_OTHERS, texts):
        return False
    alike = len(set(map(len, texts))) == 1 and all(map(str.isupper, texts)) and not any(" " in one for one in texts)
    return with_codes or not (alike or _are_mostly(_CODE, texts))


def _are_mostly(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return 2 * sum(pattern.search(text) is not None for text in texts) > len(texts)


def _tells(values: Sequence[Any], least: float) -> bool:
    """Whether most rows have a text there, and so many of them one of their own."""
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    return len(texts) > _FILLED * len(values) and len(set(texts)) >= least * len(texts)
