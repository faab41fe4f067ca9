"""Convert a table of a file to a piece of the base: assign roles, check keys, infer attribute types."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import SourceError
from clew.core.texts import parse_json
from clew.store.graph.tables import EDGE_COLUMNS, GROUPS, NODE_COLUMNS, Piece
from clew.store.sources.columns import Kind, edge_roles, node_roles
from clew.store.sources.files import SourceOptions, stem_of

_PLAIN_FILES: dict[Kind, set[str]] = {
    "nodes": {"nodes", "node", "entities", "entity", "vertices", "node_list", "nodelist"},
    "edges": {"edges", "edge", "links", "relations", "triples", "edge_list", "edgelist"},
}
_PLAIN_STEMS = {"graph", "kb", "table", ""}


@dataclass(frozen=True, eq=False)
class RawTable(Piece):
    """Rows of a file. `typed` is false if every value is text that may be a number."""

    typed: bool = True
    name: str = ""
    """Name of the table, if the file contains several."""


def unclear(raw: RawTable) -> SourceError:
    """Return the error for a table whose columns cannot be recognised."""
    return SourceError(
        "no column looks like a node key (id, key, identifier …) and no pair like head and tail (source and "
        f"target …). {_columns(raw.table.column_names)}. Add --map key=COLUMN for nodes, --map head=COLUMN "
        "--map tail=COLUMN for edges, or give the file with --nodes, --edges or --triples",
        file=raw.file,
    )


def as_nodes(raw: RawTable, options: SourceOptions, *, partial: bool = False) -> Piece:
    """Convert a node table to the columns key, type, name, aliases and text, if present, and attributes.

    Without a column for the type, the file's name is the type: nodes of actors.csv have the type actors. This does not
    apply to a `partial` table, which only changes nodes.
    """
    roles = node_roles(raw.table.column_names, options.columns)
    if "key" not in roles:
        raise SourceError(
            f"a node table needs a key column (id, key, identifier …); {_columns(raw.table.column_names)}. "
            "Name it with --map key=COLUMN",
            file=raw.file,
        )
    columns = {"key": _keys(raw, roles["key"], "key")}
    if "aliases" in roles and not _holds_words(raw, roles["aliases"]):
        del roles["aliases"]  # an altitude
    if {roles.get("type"), f"{roles.get('type')}_"} & options.attributes and "type" not in options.columns:
        del roles["type"]
    if "type" in roles:
        columns["type"] = _words(_first_of_list(raw.table[roles["type"]]))
    elif kind := options.node_type or (not partial and _telling_stem(raw.file, "nodes")):
        columns["type"] = constant(kind, raw.table.num_rows)
    if "name" in roles:
        columns["name"] = _words(raw.table[roles["name"]])
    if "aliases" in roles:
        columns["aliases"] = as_lists(raw.table[roles["aliases"]])
    if "text" in roles:
        columns["text"] = as_text(raw.table[roles["text"]])
    return _piece(raw, columns | _groups(raw, options), {*roles.values(), options.columns.get("groups")}, NODE_COLUMNS)


def as_edges(raw: RawTable, options: SourceOptions) -> Piece:
    """Convert an edge table to the columns head, relation, tail and attributes."""
    roles = edge_roles(raw.table.column_names, options.columns)
    for role, known in (("head", "head, source, from, subject"), ("tail", "tail, target, to, object")):
        if role not in roles:
            raise SourceError(
                f"an edge table needs a {role} column ({known} …); {_columns(raw.table.column_names)}. "
                f"Name it with --map {role}=COLUMN",
                file=raw.file,
            )
    columns = {"head": _keys(raw, roles["head"], "head")}
    if "relation" in roles:
        columns["relation"] = _words(_first_of_list(raw.table[roles["relation"]]))
        _check_present(raw, columns["relation"], roles["relation"], "relation")
    else:
        columns["relation"] = constant(_telling_stem(raw.file, "edges") or "related_to", raw.table.num_rows)
    columns["tail"] = _keys(raw, roles["tail"], "tail")
    return _piece(raw, columns | _groups(raw, options), {*roles.values(), options.columns.get("groups")}, EDGE_COLUMNS)


def _holds_words(raw: RawTable, name: str) -> bool:
    kind = _attribute(raw.table[name], raw.typed).type
    return is_text(kind) or is_list(kind) or bool(pa.types.is_null(kind))


def _groups(raw: RawTable, options: SourceOptions) -> dict[str, pa.ChunkedArray]:
    """Return the groups of each row, if the user has given their column."""
    column = options.columns.get("groups")
    return {GROUPS: as_lists(raw.table[column])} if column in raw.table.column_names else {}


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def as_lists(column: pa.ChunkedArray, *, split: bool = True, separator: str = "") -> pa.ChunkedArray:
    """Convert a column to lists of text, from lists, from JSON lists, or from text with `|` or `;` between items."""
    if is_list(column.type):
        return pc.cast(column, pa.list_(pa.string()))
    texts = missing_to_null(as_text(column), pa.array([""])).cast(pa.string())
    if not split or pc.any(pc.starts_with(texts, "[")).as_py():
        lists = [text and (_json_list(text) if split else [text]) for text in texts.to_pylist()]
        return pa.chunked_array([pa.array(lists, pa.list_(pa.string()))])
    separator = separator or ("|" if pc.any(pc.match_substring(texts, "|")).as_py() else ";")
    parts = pc.split_pattern(texts, separator)
    chunks = []
    for chunk in parts.chunks:
        items = pc.utf8_trim_whitespace(chunk.flatten())
        # offsets of a sliced list do not start at zero, flatten() does
        offsets = pc.subtract(chunk.offsets, chunk.offsets[0])
        chunks.append(pa.ListArray.from_arrays(offsets, items))
    lists = pa.chunked_array(chunks, pa.list_(pa.string()))
    return pc.if_else(pc.is_null(texts), pa.scalar(None, lists.type), lists)


def _piece(
    raw: RawTable, columns: dict[str, pa.ChunkedArray], used: Collection[str | None], reserved: tuple[str, ...]
) -> Piece:
    for name in raw.table.column_names:
        if name not in used:
            attribute = name.strip() or "unnamed"
            while attribute in columns or attribute in reserved:
                attribute += "_"  # a second column named like a role keeps its name
            columns[attribute] = _attribute(raw.table[name], raw.typed)
    return Piece(pa.table(columns), raw.file, raw.first_line, raw.lines)


def _keys(raw: RawTable, name: str, role: str) -> pa.ChunkedArray:
    column = raw.table[name]
    if pa.types.is_integer(column.type):
        keys = column
    elif pa.types.is_floating(column.type) and _are_whole(column):
        keys = pc.cast(column, pa.int64())  # data frames convert integers with gaps to floats
    else:
        keys = _words(column)
        if not raw.typed:
            keys = integers_where_canonical(keys)
    _check_present(raw, keys, name, role)
    return keys


def _are_whole(numbers: pa.ChunkedArray) -> bool:
    """Return whether all numbers are integers that a float represents exactly."""
    whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less_equal(pc.abs(numbers), float(2**53)))
    return bool(pc.all(whole).as_py())


def _check_present(raw: RawTable, column: pa.ChunkedArray, name: str, role: str) -> None:
    if pa.types.is_dictionary(column.type):
        if not {None, ""} & set(pc.unique(column).to_pylist()):
            return  # check the few dictionary entries, not the many rows
        column = column.cast(column.type.value_type)
    empty = pc.fill_null(pc.equal(column, ""), True) if is_text(column.type) else pc.is_null(column)
    row = pc.index(empty, True).as_py()
    if row >= 0:
        raise SourceError(f"the {role} (column {name!r}) is empty", file=raw.file, line=raw.line(row))


def _attribute(column: pa.ChunkedArray, typed: bool) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.large_string())
    if is_text(column.type):
        return typed_by_content(column, dates_only=typed)
    if pa.types.is_struct(column.type) or pa.types.is_map(column.type):
        return as_text(column)
    return column


def _words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strip spaces from text. Of a dictionary, only the entries are changed."""
    if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type):
        return pc.utf8_trim_whitespace(as_text(column))
    trimmed = [
        pa.DictionaryArray.from_arrays(chunk.indices, pc.utf8_trim_whitespace(chunk.dictionary))
        for chunk in column.chunks
    ]
    return pa.chunked_array(trimmed, column.type)


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert any column to text: lists with one item per line, nested values as JSON."""
    kind = column.type
    if is_text(kind):
        return column
    if is_list(kind):
        return pc.binary_join(pc.cast(column, pa.list_(pa.string())), "\n")
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        written = [None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in column.to_pylist()]
        return pa.chunked_array([pa.array(written, pa.string())])
    return pc.cast(column, pa.large_string())


def _first_of_list(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if is_list(column.type):
        firsts = [values[0] if values else None for values in column.to_pylist()]
        return pa.chunked_array([pa.array(firsts, column.type.value_type)])
    return column


def _json_list(text: str) -> list[str]:
    try:
        items = parse_json(text) if text.startswith("[") else [text]
    except json.JSONDecodeError:
        return [text]
    return [str(item) for item in items if item is not None]


def is_plainly(kind: Kind, path: Path) -> bool:
    """Return whether a file is just called nodes, edges or similar, optionally with a number."""
    return _bare_stem(path) in _PLAIN_FILES[kind]


def _bare_stem(path: Path) -> str:
    return re.sub(r"[\W\d_]+$", "", stem_of(path).lower())


def _telling_stem(file: str, kind: Kind) -> str:
    """Return the file name without suffixes, or "" if it only means nodes or edges."""
    return "" if _bare_stem(Path(file)) in _PLAIN_FILES[kind] | _PLAIN_STEMS else stem_of(Path(file))


def short_names(names: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """Return the names without what follows in brackets or on a second line, null if nothing does. None if none has."""
    texts = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    if not pc.any(pc.match_substring_regex(texts, _ADDED)).as_py():
        return None
    short = pc.struct_field(pc.extract_regex(texts, _ADDED), "name")
    return pc.if_else(pc.fill_null(pc.match_substring_regex(short, r"\pL"), False), short, None)


def lists_of(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the texts of each row that are not empty as a list."""
    order = np.arange(len(columns) * len(columns[0])).reshape(len(columns), -1).T
    cells = pa.concat_arrays(columns).take(pa.array(order.ravel()))
    is_there = pc.fill_null(pc.not_equal(cells, ""), False)
    counts = is_there.to_numpy(zero_copy_only=False).reshape(order.shape).sum(axis=1)
    return pa.LargeListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts))), cells.filter(is_there))


def constant(value: str, count: int) -> pa.ChunkedArray:
    """Return a column that contains the text once, as the only entry of a dictionary."""
    indices = pa.repeat(pa.scalar(0, pa.int8()), count)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.large_string()))])


def _columns(names: list[str]) -> str:
    return f"the columns are: {', '.join(names)}"


_BLANK = ("", "N/A", "n/a", "–", "—")
"""Cells without a value in any column. Others of the next list are values in some."""
_MISSING = (*_BLANK, "NA", "NaN", "nan", "null", "NULL", "None", "-")
_DASHES = ("-", "--", "‐", "−", "...", "…")
"""Cells without a value among words."""
_ADDED = r"^(?P<name>[^\n(\[]+[^\s(\[])\s*(?:\n|[(\[])"
"""A name with an addition: `Petra Chocová (CZE)`."""
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(((0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)|(\.[0-9]+))$"
_UNTOLD = r"^(?:[-–—−‐.…?*/ ]*|\(?(?i:n\.?/?[ad]\.?|nan|null|none)\)?)$"
"""Cells without a value in a column of numbers, such as `?`, `--` or `n.d.`."""
_FOOTNOTE = r"([0-9%€])\s*(?:\[[^\]]{1,30}\]|[*†‡§])+$"
_BLANKS = " \u00a0\u202f"
_GROUPED = {
    f"[{mark}{_BLANKS}]": rf"^[-−+]?(?:[1-9][0-9]{{0,2}}(?:[{mark}{_BLANKS}][0-9]{{3}})+|0|[1-9][0-9]*)"
    rf"(?:[{point}][0-9]+)?$"
    for mark, point in (",.", ".,")
}
"""Thousands separators, and numbers with them: with a decimal point, and with a decimal comma."""
_MEASURED = (
    rf"^(?P<currency>(?:(?:US|A|C)?[$€£¥])?) ?(?P<number>[-−+]?[0-9](?:[0-9.,{_BLANKS}]*[0-9])?)"
    r"(?P<unit> ?[%€]| ?°[CF]?| ?[bm]n| [^\W\d_][^\d\s]{0,11}[23]?|)$"
)
_BRACKETS = r"^([$€£¥]?)\s*\(([0-9][0-9.,]*)\)$"
"""A negative number, as accountants write it. Numbers that are all in brackets are references."""
_SYMBOLS = ("%", "$", "€", "£", "¥")
_TOO_LONG = r"^-?[0-9]{19,}$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?$"
_WRITTEN = ("%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d. %b %Y", "%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")
_WITH_YEAR = r"^([^0-9]*[0-9]{1,2}[^0-9]+)+[0-9]{4}$|^[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}$"
_DATES = {"date": _DATE, "time": _TIME}
_PATTERNS = {"integer": _INTEGER, "number": _NUMBER, "boolean": r"^(?i:true|false)$", **_DATES}
_SAMPLE = 256
"""Number of values tested before all values, so that a column that does not match is rejected early."""


def typed_by_content(column: pa.ChunkedArray, *, dates_only: bool = False) -> pa.ChunkedArray:
    """Convert a text column to its narrowest type. Empty values become missing. Codes such as 007 stay text."""
    cleaned = missing_to_null(column, pa.array(_BLANK))
    values = missing_to_null(cleaned, pa.array(_MISSING))
    if values.null_count == len(values):
        return cleaned
    sample = values.drop_null().slice(0, _SAMPLE)
    for name, pattern in (_DATES if dates_only else _PATTERNS).items():
        if _all_match(sample, pattern) and _all_match(values, pattern):
            if name == "number" and pc.any(pc.match_substring_regex(values, _TOO_LONG)).as_py():
                return cleaned  # a float would lose digits
            return _cast(values, name, cleaned)
    if not dates_only and _plain_digits(sample) is not None and (numbers := _plain_digits(values)) is not None:
        return typed_by_content(numbers)
    dates = _written_dates(values) if _all_match(sample, _WITH_YEAR) else None
    worded = missing_to_null(cleaned, pa.array(() if dates_only else _DASHES, pa.string()))
    is_worded = worded is not cleaned and _all_match(worded, r"[\pL\pN]")  # a gene is on the strand `-` or `+`
    return dates if dates is not None else worded if is_worded else cleaned


def with_dates(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a text column to dates if its texts are dates, and leave any other column as it is."""
    return typed_by_content(column, dates_only=True) if is_text(column.type) else column


def typed_with_unit(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, str]:
    """Convert a text column to its narrowest type, and to numbers if all cells have the same unit: `$1,200`, `45 %`.

    A word is a unit only after a blank, since codes such as 12A have none. Also return the unit, or "".
    """
    typed = typed_by_content(column)
    steps = (typed.drop_null().slice(0, _SAMPLE), typed) if is_text(typed.type) else ()
    if not steps or not all(_all_match(values := _without_notes(cells), _MEASURED) for cells in steps):
        return typed, ""
    parts = pc.extract_regex(values, _MEASURED)
    units = [pc.utf8_trim_whitespace(pc.struct_field(parts, name).drop_null()) for name in ("currency", "unit")]
    units = [sorted(pc.unique(one).to_pylist(), reverse=True) for one in units]
    units = [one[:1] if one[0] in _SYMBOLS and one[1:] == [""] else one for one in units]  # only in some rows
    numbers = typed_by_content(pc.struct_field(parts, "number"))
    is_same = all(len(one) == 1 for one in units) and is_number(numbers.type)
    unit = " ".join(one[0] for one in units if one[0]) if is_same else ""
    return (numbers, unit) if unit else (typed, "")


def _plain_digits(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Remove footnotes and thousands separators from numbers. Return None if any text is another.

    Numbers with decimal commas need a separator or a leading zero in one cell, since `1,2` may be a list.
    """
    values = _without_notes(values)
    for separator, pattern in _GROUPED.items():
        sure = "" if "," in separator else f"{separator}|^0,"
        if _all_match(values, pattern) and pc.any(pc.match_substring_regex(values, sure)).as_py():
            digits = pc.replace_substring_regex(values, rf"{separator}|\+", "")
            return pc.replace_substring(pc.replace_substring(digits, ",", "."), "−", "-")
    return None


def _without_notes(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove footnote marks after numbers, and marks for missing numbers."""
    values = pc.replace_substring_regex(values, _FOOTNOTE, r"\1")
    is_negative = pc.match_substring_regex(values, _BRACKETS)
    if pc.any(is_negative).as_py() and not pc.all(is_negative).as_py():
        values = pc.replace_substring_regex(values, _BRACKETS, r"\1-\2")
    return pc.if_else(pc.match_substring_regex(values, _UNTOLD), pa.scalar(None, values.type), values)


def _written_dates(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Convert the column to dates if exactly one format fits all values: 3/4/2021 may be March or April."""
    if not _all_match(values, _WITH_YEAR):
        return None
    read = [pc.strptime(values, format=way, unit="s", error_is_null=True) for way in _WRITTEN]
    fitting = [pc.cast(dates, pa.date32()) for dates in read if dates.null_count == values.null_count]
    if len(fitting) != 1:
        return None
    early = pc.fill_null(pc.less(pc.day(fitting[0]), 4), False)  # days to which June 31 would overflow
    for text, date in zip(values.filter(early).to_pylist(), fitting[0].filter(early).to_pylist(), strict=True):
        if date.day not in map(int, re.findall("[0-9]+", text)):
            return None
    return fitting[0]


def integers_where_canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert text keys to integers if all are canonical integers, so that no information is lost."""
    if not len(column) or not _all_match(column.slice(0, _SAMPLE), _INTEGER):
        return column
    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if pc.all(pc.equal(pc.cast(numbers, column.type), column)).as_py() else column


def missing_to_null(column: pa.ChunkedArray, missing: pa.Array) -> pa.ChunkedArray:
    """Replace every value of `missing` by null."""
    absent = pc.is_in(column, value_set=missing.cast(column.type))
    if not pc.any(absent).as_py():
        return column
    return pc.if_else(absent, pa.scalar(None, column.type), column)


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def _cast(values: pa.ChunkedArray, name: str, otherwise: pa.ChunkedArray) -> pa.ChunkedArray:
    types = {
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "time": pa.timestamp("us"),
    }
    try:
        written = pc.utf8_lower(values) if name == "boolean" else values
        return pc.cast(pc.utf8_rtrim(values, "Z") if name == "time" else written, types[name])
    except pa.ArrowInvalid:  # written like a date, but with a thirteenth month
        return otherwise
