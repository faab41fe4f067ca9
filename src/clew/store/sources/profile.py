"""Profile every column of some tables to detect keys, names, references, lists and categories.

This module makes these decisions for files, databases and Python objects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.nouns import plural, singular
from clew.store.graph.build import kind_of
from clew.store.graph.tables import STRING
from clew.store.sources.columns import DESCRIPTIONS, GENERAL_KEYS, KEY_ENDINGS, NAME_PARTS, NAMES, is_worded, plain
from clew.store.sources.databases import ForeignKey, SqlTable
from clew.store.sources.pieces import as_lists, as_text, is_list, is_text

Content = Mapping[str, pa.ChunkedArray]

MAX_NAME_CHARS = 80
"""Maximum length of a name or a category, in characters. Longer texts are descriptions."""
MAX_ITEM_CHARS = 40
"""Maximum length of a list item in a cell, in characters."""
MAX_REPEATED = 0.9
"""Maximum number of distinct texts per filled cell of a category."""
MIN_FILLED = 0.5
"""Minimum share of rows with a name."""
MIN_DISTINCT_TITLE, MIN_DISTINCT_NAME = 0.5, 0.95
"""Minimum number of distinct texts per filled cell of a column of names: with a matching header, and without."""
MIN_LETTERED = 0.8
"""Minimum share of the texts of a column of names that have letters."""
MIN_SPOKEN, MIN_UNSPOKEN = 0.5, 0.95
"""Minimum share of distinct values found in another table: with a header that names the table, and without."""
MAX_CHANCE = 1e-6
"""Maximum probability that numbers are those of rows of another table by chance."""
MIN_SPLIT = 0.05
"""Minimum share of filled cells with the separator of a list."""
MIN_STEM = 3
"""Minimum number of letters of a short form of the name of a table in the header of its key."""
MAX_TARGETS = 20
"""Maximum number of columns of a table to which others may refer, so that the cost is not quadratic."""
MAX_SHARED_COLUMNS = 6
"""Maximum number of columns of two tables whose combinations may be a key."""
MAX_PANEL_COLUMNS = 3
"""Maximum columns that identify a row together. The number of combinations grows fast."""
MAX_LISTED_VALUES = 50
"""Maximum number of values of a category that is listed in the summary."""
_SAMPLE = 2000
"""Number of values of a column to examine. More take longer."""
_SEPARATORS = ("|", ";", ",")
_THOUSANDS = re.compile(r"[^,]*\d(,\d{3})+(\D[^,]*)?|\d+,\d+")
"""Cells whose only commas are between thousands, or before decimals."""
_CODE = re.compile(r"^(?=\D*\d)\S+$")
_IDENTIFIER = re.compile(r"^[a-z0-9]+(_[a-z0-9]+)+$")
_NOT_A_NAME = re.compile(
    r"^\w+://|^www\.|^\S+@\S+\.\w+$"  # addresses
    r"|^\S*[/\\]\S+\.\w{1,5}$|^\S+\.[a-z]\w{1,4}$"  # files
    r"|^\d{4}-\d\d-\d\d|^\D*(?:\d{1,2}\D+){1,2}\d{4}$"  # days
    r"|\w\s+\w.*\s\w+[.!?]$",  # sentences
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """Statistics of one column. For lists, they count items."""

    name: str
    kind: str
    """`text`, `integer`, `number`, `boolean`, `date`, `list`, or `empty` if no cell has a value."""
    rows: int
    filled: int
    """Number of cells with a value."""
    values: pa.Array = field(repr=False)
    """Distinct values as text."""
    items: int
    """Number of values: cells, or items of lists."""
    separator: str | None = None
    """Separator of the items if lists are written as text."""

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len(self.values)

    @property
    def empty(self) -> int:
        """Number of cells without a value."""
        return self.rows - self.filled

    @property
    def is_unique(self) -> bool:
        """Whether every row has a value and all values are different."""
        return self.kind != "list" and self.rows == self.distinct > 0

    @cached_property
    def longest(self) -> int:
        """Number of characters of the longest value."""
        return pc.max(pc.utf8_length(self.values)).as_py() or 0

    @cached_property
    def sample(self) -> list[str]:
        """Some of the distinct values."""
        return [text for text in map(str.strip, self.values.slice(0, _SAMPLE).to_pylist()) if text]

    @property
    def is_category(self) -> bool:
        """Whether the values are short texts with repetitions."""
        is_worded = self.kind in ("text", "list") and 0 < self.longest <= MAX_NAME_CHARS
        return is_worded and self.distinct <= MAX_REPEATED * self.items

    @cached_property
    def is_code(self) -> bool:
        """Whether the texts are single words with digits (`L0141`), or capitals of one length (`JFK`)."""
        alike = len(set(map(len, self.sample))) == 1 and all(map(str.isupper, self.sample))
        return (alike and not any(" " in text for text in self.sample)) or self._mostly(_CODE)

    @cached_property
    def could_name(self) -> bool:
        """Whether the values are short, mostly different texts with letters, and not addresses, dates or sentences."""
        if not self.sample or self.longest > MAX_NAME_CHARS or not self.tells(MIN_DISTINCT_NAME):
            return False
        lettered = sum(any(map(str.isalpha, text)) for text in self.sample)  # a song may be called "911"
        return lettered >= MIN_LETTERED * len(self.sample) and not self._mostly(_NOT_A_NAME)

    @cached_property
    def is_identifier(self) -> bool:
        """Whether the texts are words joined by `_`, as programs write names."""
        return self._mostly(_IDENTIFIER)

    def tells(self, least: float) -> bool:
        """Return whether most rows have a text, and at least the share `least` of these texts is distinct."""
        is_filled = self.kind == "text" and self.filled > MIN_FILLED * self.rows
        return is_filled and self.distinct >= least * self.filled

    def _mostly(self, pattern: re.Pattern[str]) -> bool:
        return 2 * sum(pattern.search(text) is not None for text in self.sample) > len(self.sample)


@dataclass(frozen=True, eq=False)
class TableProfile:
    """The columns of a table, and conclusions from them."""

    table: SqlTable
    """Its key and its foreign keys."""
    columns: Mapping[str, ColumnProfile]
    rows: int
    shares: Mapping[str, float] = field(default_factory=dict)
    """Share of distinct values found in the other table, by reference column."""
    named_by: tuple[str, ...] = ()
    """Columns that name a row. Empty if rows are named by keys or numbers."""
    is_between: bool = False
    """Whether rows connect other rows and are named after them."""
    is_panel: bool = False
    """Whether several columns name a row, with about one row per combination, such as a country and a year."""

    @property
    def type(self) -> str:
        """Type of a row: `category` for `categories`, or the header of the names if the table's name has no word."""
        if is_worded(self.table.name):
            return singular(self.table.name)
        named = [name for name in self.named_by if plain(name) not in (*NAMES["full"], *NAMES["title"])]
        return singular(named[0]) if len(self.named_by) == 1 and named else "row"

    @cached_property
    def handles(self) -> frozenset[str]:
        """The key, the first column and names."""
        names = _name_columns(self.columns, nouns_of(self.table.name))
        return frozenset({*list(self.columns)[:1], *names, *self.table.key})

    @cached_property
    def targets(self) -> list[ColumnProfile]:
        """Columns to which others may refer: handles and codes, if they are unique."""
        fitting = [
            one
            for name, one in self.columns.items()
            if one.is_unique
            and (one.kind == "text" or (one.kind == "integer" and (name,) == self.table.key))
            and (name in self.handles or one.is_code)
            and ((name,) == self.table.key or not plain(name).endswith(KEY_ENDINGS))  # probably a reference itself
        ]
        return fitting[:MAX_TARGETS]

    @property
    def other_names(self) -> list[str]:
        """Columns of further names of the rows: `long_name` next to `short_name`."""
        return [name for name in _called(self.columns) if name not in {*self.references, *self.named_by}]

    @property
    def references(self) -> frozenset[str]:
        """Columns that refer to rows."""
        return frozenset(column for key in self.table.foreign for column in key.columns)

    def to_text(self) -> str:
        """Summarise the table: `orders: 318 orders, named by order_no; customer → customers (100 %)`."""
        noun = "row" if self.type == self.table.name else self.type
        named = " and ".join(self.named_by) or ("what they connect" if self.is_between else "")
        parts = [f"{self.rows:,} {noun if self.rows == 1 else plural(noun)}" + (f", named by {named}" if named else "")]
        for key in self.table.foreign:
            share = min((self.shares[column] for column in key.columns if column in self.shares), default=1.0)
            parts.append(f"{', '.join(key.columns)} → {key.table} ({math.floor(100 * share)} %)")
        for name, column in self.columns.items():
            if name not in self.references and name not in self.named_by and column.is_category:
                parts += [f"{name}: {column.distinct} values"] if 1 < column.distinct <= MAX_LISTED_VALUES else []
            elif plain(name) in GENERAL_KEYS and not column.is_unique:
                parts.append(f"{name} is not unique")
        return f"{self.table.name}: {'; '.join(parts)}"


def profile_column(name: str, column: pa.ChunkedArray) -> ColumnProfile:
    """Count the values of a column, and detect the separator of lists written as text."""
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        column = pa.chunked_array([pa.nulls(len(column), STRING)])
    kind = kind_of(column.type)
    items = pc.list_flatten(column) if kind == "list" else column
    is_flat = is_text(items.type) or pa.types.is_primitive(items.type)
    counts = pc.value_counts(items if is_flat else _texts(items))  # converting distinct values is faster
    texts = pc.utf8_trim_whitespace(_texts(counts.field("values")).combine_chunks())
    is_there = pc.fill_null(pc.not_equal(texts, ""), False)
    count = pc.sum(counts.field("counts").filter(is_there)).as_py() or 0
    filled = len(column) - column.null_count if kind == "list" else count
    values = texts.filter(is_there)
    values = values if pa.types.is_primitive(items.type) else pc.unique(values)
    found = ColumnProfile(name, kind if filled else "empty", len(column), filled, values, count)
    return replace(found, separator=_separator(found, _texts(column))) if kind == "text" else found


def _texts(cells: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return as_text(cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])).cast(STRING)


def _separator(column: ColumnProfile, texts: pa.ChunkedArray) -> str | None:
    """Find the separator that splits cells into short repeated items.

    Commas also occur in names and places ("Portland, Oregon"). So items must occur alone or at both ends of cells,
    unless they are words without a blank after the comma, and some cells have only one item.
    """
    for separator in _SEPARATORS:
        is_cut = pc.match_substring(column.values, separator)
        if (pc.sum(is_cut).as_py() or 0) < max(2, MIN_SPLIT * column.distinct):
            continue
        written = texts.filter(pc.not_equal(pc.utf8_trim_whitespace(texts), "")).slice(0, _SAMPLE).to_pylist()
        cells = [[item.strip() for item in text.split(separator)] for text in written]
        items = [item for cell in cells for item in cell]
        distinct = set(items)
        if max(map(len, items)) > MAX_ITEM_CHARS or len(distinct) > MAX_REPEATED * len(items) or "" in distinct:
            continue
        cut = [cell for cell in cells if len(cell) > 1]
        free = {cell[0] for cell in cells if len(cell) == 1} | {cell[0] for cell in cut} & {cell[-1] for cell in cut}
        parts = {item for cell in cut for item in cell}
        are_words = len(cut) < len(cells) and not any(" " in text for text in written)
        numbers = [text for text in written if _THOUSANDS.fullmatch(text)] if separator == "," else []
        if 2 * len(numbers) <= len(cut) and (separator != "," or are_words or 2 * len(parts & free) > len(parts)):
            return separator
    return None


def split_lists(columns: Content) -> dict[str, pa.ChunkedArray]:
    """Split the cells of text columns that contain lists."""
    found = dict(columns)
    for name, column in columns.items():
        if is_text(column.type) and (separator := profile_column(name, column).separator):
            found[name] = as_lists(column, separator=separator)
    return found


def profile_tables(
    contents: Mapping[str, Content],
    declared: Mapping[str, SqlTable] | None = None,
    name: str | None = None,
    hidden: str | None = None,
) -> dict[str, TableProfile]:
    """Profile related tables.

    `declared` is the metadata of a database. `name` is the column that the user chose for names, and `hidden` a column
    to ignore.
    """
    profiles = {}
    for table, content in contents.items():
        columns = {one: profile_column(one, column) for one, column in content.items() if one != hidden}
        said = (declared or {}).get(table) or SqlTable(table, tuple(content), _own_key(table, columns, contents))
        profiles[table] = TableProfile(said, columns, len(next(iter(content.values()), ())))
    if declared is None:
        profiles = {table: _with_numbers(profile, profiles) for table, profile in profiles.items()}
    least = MIN_SPOKEN if declared is None else 1.0
    profiles = {table: _with_references(profile, profiles, contents, least) for table, profile in profiles.items()}
    if declared is None:
        profiles = {table: _with_shared_columns(profile, profiles, contents) for table, profile in profiles.items()}
        profiles = {table: _with_key(profile, profiles, contents[table]) for table, profile in profiles.items()}
    return {table: _with_names(profile, profiles, contents[table], name) for table, profile in profiles.items()}


def nouns_of(table: str) -> set[str]:
    """Return possible names of one row of a table, such as `people_category` for `people_categories`."""
    whole = plain(table)
    return {whole, singular(whole), whole.removesuffix("es")}


def _key_headers(table: str) -> set[str]:
    """Return possible headers of the key of a table, such as `order_id` and `orderid` for `orders`."""
    return {f"{one}{ending}" for one in nouns_of(table) for ending in (*KEY_ENDINGS, "id")}


def _shortens(header: str, table: str) -> bool:
    """Return whether a header of a key begins like the name of a table: `prod_id` of `products`."""
    stem, _, ending = plain(header).rpartition("_")
    return len(stem) >= MIN_STEM and f"_{ending}" in KEY_ENDINGS and plain(table).startswith(stem)


def _own_key(table: str, columns: Mapping[str, ColumnProfile], tables: Mapping[str, Content]) -> tuple[str, ...]:
    """Return the unique column that is named like the key of this table.

    The first column may have the name of any key (`playerID`), unless it is named after another table. The same column
    of two tables (`prod_id`) is the key of the table that it is named after (`products`).
    """
    of_others = {one for other in tables if other != table for one in _key_headers(other)}
    of_others |= {
        plain(name)
        for other in tables
        if other != table
        for name in tables[other]
        if name in columns and _shortens(name, other) and not _shortens(name, table)
    }
    called = GENERAL_KEYS | _key_headers(table)
    unique = [name for name, column in columns.items() if column.is_unique and column.kind in ("text", "integer")]
    own = [name for name in unique if plain(name) in called]
    own += [name for name in unique if columns[name].kind == "integer" and plain(name) in nouns_of(table)]
    own += [name for name in list(columns)[:1] if name in unique and plain(name).endswith(KEY_ENDINGS)]
    return tuple(name for name in own if not f"_{plain(name)}".endswith(tuple(f"_{one}" for one in of_others)))[:1]


def _with_numbers(profile: TableProfile, profiles: Mapping[str, TableProfile]) -> TableProfile:
    """Replace a numeric key by other numbers of the rows, if columns named after the table contain only these."""
    numbers = {name: one for name, one in profile.columns.items() if one.kind == "integer" and one.is_unique}
    if profile.table.key[:1] not in {(name,) for name in numbers}:
        return profile
    referring = [
        column.values
        for other in profiles.values()
        for column in other.columns.values()
        if column.kind == "integer"
        and _speaks_of(_unnumbered(column.name), profile.table.name, "", is_own=other is profile)
    ]
    fitting = [name for name, one in numbers.items() if all(_share(values, one.values) == 1 for values in referring)]
    if not referring or not fitting or profile.table.key[0] in fitting:
        return profile
    return replace(profile, table=replace(profile.table, key=tuple(fitting[:1])))


def _unnumbered(header: str) -> str:
    """Return a header without a number at its end: `bus` for `bus1`."""
    return plain(header).rstrip("_0123456789")


def _with_references(
    profile: TableProfile, profiles: Mapping[str, TableProfile], contents: Mapping[str, Content], least: float
) -> TableProfile:
    """Add foreign keys: declared keys, and keys inferred from names and values."""
    table = profile.table
    found: list[ForeignKey] = []
    for key in table.foreign:
        target = next((name for name in profiles if name.lower() == key.table.lower()), None)
        targets = key.targets or (profiles[target].table.key if target else ())
        if target and len(targets) == len(key.columns) and set(targets) <= profiles[target].columns.keys():
            found.append(ForeignKey(key.columns, target, targets))
    taken = {column for key in found for column in key.columns}
    shares = {}
    for column in profile.columns.values():
        if column.name not in taken and (reference := _reference(profile, column, profiles, contents, least)):
            share, key = reference
            found.append(key)
            shares[column.name] = share
    found.sort(key=lambda key: table.columns.index(key.columns[0]))
    return replace(profile, table=replace(table, foreign=tuple(found)), shares=shares)


def _reference(
    profile: TableProfile,
    column: ColumnProfile,
    profiles: Mapping[str, TableProfile],
    contents: Mapping[str, Content],
    least: float,
) -> tuple[float, ForeignKey] | None:
    """Find the only table to whose rows a column refers, by key or by another unique column.

    Numbers match every table with numbered rows, so the header must name the table, unless it is that of a key and the
    other keys have so many gaps that the numbers do not match by chance. Otherwise nearly all texts must match. A
    unique column is often another key or name, and a number called `chapters` counts them.
    """
    if (column.name,) == profile.table.key or column.kind not in ("text", "integer", "list") or not column.distinct:
        return None
    header = _unnumbered(column.name)
    candidates: list[tuple[tuple[int, bool], float, bool, ForeignKey]] = []
    if column.kind == "integer" and not header.endswith(KEY_ENDINGS) and header != singular(header):
        return None
    is_same, is_known = column.is_unique and not header.endswith(KEY_ENDINGS), column.name in profile.handles
    has_letters = column.kind != "integer" and all(any(map(str.isalpha, text)) for text in column.sample)
    for other in profiles.values():
        is_own = other.table.name == profile.table.name
        for target in other.targets:
            is_key = (target.name,) == other.table.key
            spoken = _speaks_of(header, other.table.name, "" if is_same else target.name, is_own=is_own)
            spoken = spoken or int(is_key and _is_part_of(profile.table.name, header, other.table.name))
            is_handle = target.name in other.handles
            is_strange = target.rows == 1 or not has_letters or (is_same and (is_known or not is_handle))
            is_strange = not (is_key and _has_gaps(column, target)) if target.kind == "integer" else is_strange
            if target is column or (not spoken and is_strange):
                continue
            if is_own and _repeats(contents[other.table.name], column.name, target.name):
                continue
            share = _share(column.values, target.values)
            if share >= (least if spoken else MIN_UNSPOKEN):
                key = ForeignKey((column.name,), other.table.name, (target.name,))
                candidates.append(((spoken, is_handle), share, is_key, key))
    best = max((candidate[0] for candidate in candidates), default=None)
    candidates = [candidate for candidate in candidates if candidate[0] == best]
    if len({candidate[3].table for candidate in candidates}) != 1:
        return None
    _, share, _, key = max(candidates, key=lambda one: one[1:3])
    return share, key


def _with_shared_columns(
    profile: TableProfile, profiles: Mapping[str, TableProfile], contents: Mapping[str, Content]
) -> TableProfile:
    """Add references by several columns that another table has, too, such as the season and the round of a race."""
    own, name = contents[profile.table.name], profile.table.name
    linked = {key.table for key in profile.table.foreign}
    linked |= {other for other, one in profiles.items() for key in one.table.foreign if key.table == name}
    found = []
    for other in profiles.values():
        if other.table.name in linked | {name} or other.columns.keys() == profile.columns.keys():
            continue
        shared = [
            one
            for one in profile.columns.values()
            if one.name in other.columns
            and one.kind == other.columns[one.name].kind in ("text", "integer", "date")
            and not (one.is_unique or other.columns[one.name].is_unique)
            and one.filled
            and _share(one.values, other.columns[one.name].values) >= MIN_UNSPOKEN
        ]
        for columns in _combinations([one.name for one in shared][:MAX_SHARED_COLUMNS], 2):
            is_one_row = tell_apart([contents[other.table.name][one] for one in columns])
            if is_one_row and not tell_apart([own[one] for one in columns]):
                if _share_of_rows(own, contents[other.table.name], columns) >= MIN_UNSPOKEN:
                    found.append(ForeignKey(columns, other.table.name, columns))
                break
    return replace(profile, table=replace(profile.table, foreign=(*profile.table.foreign, *found)))


def _combinations(columns: Sequence[str], least: int) -> Iterator[tuple[str, ...]]:
    """Yield the combinations of at least some number of columns, the smallest first."""
    for count in range(least, MAX_PANEL_COLUMNS + 1):
        yield from combinations(columns, count)


def _share_of_rows(own: Content, other: Content, columns: Sequence[str]) -> float:
    """Return the share of distinct rows of some columns, without empty ones, that another table has."""
    rows, targets = (
        pa.table({str(index): _texts(content[name]) for index, name in enumerate(columns)}) for content in (own, other)
    )
    rows = rows.drop_null().group_by(rows.column_names).aggregate([])
    there = rows.join(targets, keys=rows.column_names, join_type="left semi")
    return float(there.num_rows / max(1, rows.num_rows))


def _repeats(content: Content, column: str, key: str) -> bool:
    """Return whether most rows contain their own key or name in a column, which is then another form of it."""
    if is_list(content[column].type):
        return False
    same = pc.equal(_texts(content[column]), _texts(content[key]))
    return bool(2 * (pc.sum(same).as_py() or 0) > len(same))


def _share(values: pa.Array, targets: pa.Array) -> float:
    for part in (values.slice(0, 50), values):  # most columns fail early
        share = (pc.sum(pc.is_in(part, value_set=targets)).as_py() or 0) / len(part)
        if share < MIN_SPOKEN / 2:
            return 0.0
    return float(share)


def _speaks_of(header: str, table: str, target: str, *, is_own: bool) -> int:
    """Return the length of the part of a header that names a table or its column: `birth_place_id` of places.

    In the table itself the header must contain more: `parent_category_id` of categories.
    """
    names = {f"{one}{ending}" for one in nouns_of(table) for ending in ("", "id", *KEY_ENDINGS)}
    names |= {plain(target)} - GENERAL_KEYS - {"name", "title", "label", ""}
    fitting = [one for one in names if header.endswith(f"_{one}") or (header == one and not is_own)]
    return max(map(len, fitting), default=0)


def _is_part_of(table: str, header: str, other: str) -> bool:
    """Return whether the start of a table's name and the end of the header of a key are the other table's name.

    For example, `species_id` and `evolved_species_id` in `pokemon_evolution` are keys of `pokemon_species`.
    """
    own, (stem, _, ending) = f"{singular(plain(table))}_", f"_{header}".rpartition("_")
    names = nouns_of(other) if f"_{ending}" in KEY_ENDINGS else ()
    cuts = ((one, at) for one in names for at, letter in enumerate(one) if letter == "_")
    return any(own.startswith(one[: at + 1]) and stem.endswith(one[at:]) for one, at in cuts)


def _has_gaps(column: ColumnProfile, key: ColumnProfile) -> bool:
    """Return whether the numbers of a column called like a key would hardly all be keys of other rows by chance."""
    if column.kind != "integer" or not plain(column.name).endswith(KEY_ENDINGS):
        return False
    numbers, keys = column.values.cast(pa.int64()), key.values.cast(pa.int64())
    first, last = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    between = pc.sum(pc.and_(pc.greater_equal(keys, first), pc.less_equal(keys, last))).as_py()
    return bool((between / (last - first + 1)) ** column.distinct < MAX_CHANCE)


def _with_key(profile: TableProfile, profiles: Mapping[str, TableProfile], content: Content) -> TableProfile:
    """Choose the key of a table without a declared key: the column that others refer to, or a first column of codes.

    Record two references that are unique together.
    """
    table = profile.table
    foreign = [key for other in profiles.values() for key in other.table.foreign if key.table == table.name]
    used = [key.targets for key in foreign]
    key = table.key or max(sorted(set(used)), key=used.count, default=())
    first = next(iter(profile.columns.values()), None)
    if not key and first is not None and first.is_unique and first.name not in profile.references:
        key = (first.name,) if first.kind == "integer" or first.is_code else ()
    ends = [name for one in table.foreign for name in one.columns]
    is_pair = not key and len(ends) == len(table.foreign) == 2 and tell_apart([content[name] for name in ends])
    unique = (frozenset(ends),) if is_pair else ()
    return replace(profile, table=replace(table, key=key, unique=unique))


def tell_apart(columns: Sequence[pa.ChunkedArray]) -> bool:
    """Return whether no two rows have the same values in all columns, and no value is missing."""
    if any(cells.null_count or pa.types.is_nested(cells.type) for cells in columns):
        return False
    table = pa.table(list(columns), names=[str(index) for index in range(len(columns))])
    return bool(table.group_by(table.column_names).aggregate([]).num_rows == table.num_rows)


def _with_names(
    profile: TableProfile, profiles: Mapping[str, TableProfile], content: Content, said: str | None
) -> TableProfile:
    """Choose the columns that name the rows. Rows without names that connect others are named after them."""
    table = profile.table
    described = {name for name in profile.columns if plain(name) in DESCRIPTIONS}
    free = {name: one for name, one in profile.columns.items() if name not in profile.references | described}
    if said in profile.columns:
        return replace(profile, named_by=(str(said),))
    if found := _name_columns(free, nouns_of(table.name)):
        return replace(profile, named_by=found)
    referred = {key.table for other in profiles.values() for key in other.table.foreign}
    if len(table.foreign) > 1 and table.name not in referred:
        return replace(profile, is_between=True)
    codes = [name for name, one in free.items() if one.could_name]
    if codes or len(table.key) == 1:
        return replace(profile, named_by=tuple(codes[:1]))
    return replace(profile, named_by=_panel(profile, content), is_panel=True)


def _called(columns: Mapping[str, ColumnProfile]) -> list[str]:
    """Return the columns of short texts, few of them repeated, whose headers end in `name`."""
    return [
        name
        for name, one in columns.items()
        if plain(name).endswith("name") and one.longest <= MAX_NAME_CHARS and one.tells(MIN_DISTINCT_TITLE)
    ]


def _name_columns(columns: Mapping[str, ColumnProfile], nouns: Collection[str]) -> tuple[str, ...]:
    """Return the column of names: by header, first and last name, or the first column of short distinct texts."""
    by_plain = {plain(name): name for name in reversed(list(columns))}

    def first(headers: Sequence[str], least: float) -> tuple[str, ...]:
        fitting = (by_plain[header] for header in headers if header in by_plain)
        return tuple(name for name in fitting if columns[name].tells(least))[:1]

    if found := first((*NAMES["full"], *(f"{noun}_name" for noun in sorted(nouns))), 0):
        spoken = [name for name in _called(columns) if not columns[name].is_identifier]
        return tuple(spoken[:1]) if spoken and columns[found[0]].is_identifier else found
    if parts := next((pair for pair in NAME_PARTS if set(pair) <= by_plain.keys()), ()):
        return tuple(by_plain[part] for part in parts)
    ending = [header for header in reversed(by_plain) if header.endswith(("_name", "_title", "_label"))]
    ending += [header for header in reversed(by_plain) if header.startswith("name_")]
    worded = [name for name, one in columns.items() if one.could_name and not one.is_code]
    unlike_keys = tuple(name for name in worded if not plain(name).endswith(KEY_ENDINGS))[:1]
    titled = first(NAMES["title"], MIN_DISTINCT_TITLE) or first(ending, MIN_DISTINCT_TITLE)
    return titled or first(sorted(nouns), MIN_DISTINCT_NAME) or unlike_keys


def _panel(profile: TableProfile, content: Content) -> tuple[str, ...]:
    """Return the few columns with about one row per combination, such as a country and a year."""
    fitting = [
        name
        for name, one in profile.columns.items()
        if one.kind in ("text", "date", "integer") and one.distinct > 1 and not one.empty
    ]
    for names in _combinations(fitting[:12], 1):
        kinds = {profile.columns[name].kind for name in names}
        combined = math.prod(profile.columns[name].distinct for name in names)
        is_worded = kinds != {"integer"} if len(names) > 1 else kinds == {"date"}
        is_full = profile.rows <= combined <= 2 * profile.rows
        if is_worded and is_full and tell_apart([content[name] for name in names]):
            return names
    return ()
