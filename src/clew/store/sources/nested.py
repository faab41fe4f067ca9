"""Convert nested JSON to flat tables: objects of objects, nested objects and lists of objects become tables that refer
to each other, so that profiling their columns finds keys, names and references.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import mean
from typing import Any

from clew.core.nouns import singular
from clew.store.sources.columns import GENERAL_KEYS, NAMES, is_worded, plain

Record = dict[str, Any]

MIN_MAP_KEYS = 3
"""Minimum number of keys of a nested object that may be values, not field names."""
MIN_ALIKE = 0.3
"""Minimum number of fields per shared field in a map of similar objects."""
MIN_ROWS = 10
"""More objects than this, and than they have fields, are rows, however different they are."""
MIN_SAME = 0.9
"""Minimum share of map keys with the same meaning in all records, to count as keys of things."""
MAX_FIELDS = 30
"""Maximum number of fields of a nested object that become columns. Larger objects become lists of fields."""


def nested_tables(document: Any, name: str, groups: str | None = None) -> dict[str, list[Record]]:
    """Return the tables of a JSON document by name. Empty if it has no objects.

    A single main table is called `name`, or like its field if `name` has no word. `groups` is the field with the groups
    that may see a record. They alone see the records nested in it.
    """
    tables: dict[str, list[Record]] = {}
    parts = _parts(document)
    for part, records in parts.items():
        _add(part if len(parts) > 1 or (part and not is_worded(name)) else name, records, tables, groups)
    return tables


def _parts(document: Any) -> dict[str, list[Record]]:
    """Return the lists of objects in a document, by field name."""
    if isinstance(document, list):
        records = [record for record in document if isinstance(record, dict)]
        return {"": records} if records and len(records) == len(document) else {}
    if not isinstance(document, dict):
        return {}
    if _is_map([document], least=2):
        return {"": _map_records(document)}
    if rows := _keyed_rows(document):
        return {"": rows}
    parts: dict[str, list[Record]] = {}
    for name, value in document.items():
        inner = _parts(value)
        if not inner and isinstance(value, dict) and len(value) > 1:
            inner = {"": _map_records(value)}
        for own, records in inner.items():
            parts[own or name] = records
    return parts


def _is_map(objects: Sequence[Mapping[str, Any]], least: int = MIN_MAP_KEYS) -> bool:
    """Return whether the keys of objects are values: they lead to similar objects, or most objects lack most keys."""
    values = [value for one in objects for value in one.values()]
    keys = {key for one in objects for key in one}
    if len(keys) < least or not values:
        return False
    if all(isinstance(value, dict) for value in values):
        counts = Counter(field for value in values for field in value)
        shared = {field for field, count in counts.items() if count > 1}
        if 2 * sum(counts[field] for field in shared) <= counts.total():
            return False
        tables = sum(map(_is_part, values[0].values()))
        is_alike = mean(map(len, values)) >= MIN_ALIKE * len(shared) and 2 * tables <= len(values[0])
        return is_alike or len(values) > max(MIN_ROWS, len(shared))
    is_plain = not any(isinstance(value, dict) for value in values)
    return is_plain and len(objects) > 1 and mean(map(len, objects)) <= len(keys) / 2


def _keyed_rows(document: Mapping[str, Any]) -> list[Record]:
    """Return the objects of many lists with the key of their list, if all have some of the same fields."""
    lists = [value for value in document.values() if isinstance(value, list) and value]
    if len(document) <= MIN_ROWS or len(lists) < len(document) or not all(map(_has_objects, lists)):
        return []
    shared = set.intersection(*(set.union(*map(set, items)) for items in lists))
    if not shared or "key" in shared:
        return []
    return [{"key": key, **item} for key, items in document.items() for item in items]


def _has_objects(items: Sequence[Any]) -> bool:
    return all(isinstance(item, dict) for item in items)


def _is_part(value: Any) -> bool:
    """Return whether a value is a table. An object with mostly such values is a group of tables, not a thing."""
    return isinstance(value, list) and len(value) > 1 and _has_objects(value)


def _map_records(items: Mapping[str, Any]) -> list[Record]:
    """Convert an object of objects to records. A key becomes the name, unless the objects have names."""
    fields = {plain(field) for value in items.values() if isinstance(value, dict) for field in value}
    if any(isinstance(value, dict) for value in items.values()):
        is_named = bool(fields & {*NAMES["full"], *NAMES["title"]}) or any(one.endswith("_name") for one in fields)
        header = "id" if is_named and "id" not in fields else "key" if is_named else "name"
        return [{header: key, **value} for key, value in items.items() if isinstance(value, dict)]
    if any(isinstance(value, list) for value in items.values()):
        return [{"name": key, "items": value} for key, value in items.items()]
    return [{"id": key, "name": value} for key, value in items.items()]


def _add(name: str, records: list[Record], tables: dict[str, list[Record]], groups: str | None) -> None:
    """Add a table, and tables of the records nested in it."""
    if groups is None:
        records = _with_things(name, records, tables)
    while structs := _structs(records):
        records = [_flattened(record, structs) for record in records]
    tables[name] = records = [dict(record) for record in records]
    for field in dict.fromkeys(field for record in records for field in record):
        values = [value for record in records if (value := record.get(field)) not in (None, [], {})]
        objects = [value for value in values if isinstance(value, dict)]
        lists = [value for value in values if isinstance(value, list) and any(isinstance(one, dict) for one in value)]
        if objects and len(objects) == len(values):
            if all(isinstance(item, dict) for one in objects for item in one.values()) and _is_map(objects):
                rows = [_map_records(record.get(field) or {}) for record in records]
                _add_rows(name, field, records, rows, tables, groups, is_map=True)
            else:
                _list_items(records, field, objects)
        elif lists and len(lists) == len(values):
            rows = [[one for one in record.get(field) or () if isinstance(one, dict)] for record in records]
            _add_rows(name, field, records, rows, tables, groups)


def _with_things(name: str, records: list[Record], tables: dict[str, list[Record]]) -> list[Record]:
    """Add a table of the objects in fields such as `team1` and `team2`, if they repeat, and put their keys there."""
    fields_of: dict[str, list[str]] = {}
    for field in sorted(_structs(records)):
        fields_of.setdefault(plain(field).rstrip("_0123456789").rpartition("_")[2], []).append(field)
    for thing, fields in fields_of.items():
        if len(fields) == 1 or thing in {name, *tables}:
            continue
        objects = [record[field] for record in records for field in fields if record.get(field)]
        distinct = list({json.dumps(one, sort_keys=True): one for one in objects}.values())
        key = _key_field(distinct)
        if len(distinct) == len(objects) or key is None:
            continue
        keys = [{field: record[field][key] for field in fields if record.get(field)} for record in records]
        records = [record | own for record, own in zip(records, keys, strict=True)]
        _add(thing, distinct, tables, None)
    return records


def _structs(records: Sequence[Record]) -> set[str]:
    """Return the fields with objects of the same few fields in all records."""
    objects: dict[str, list[Record]] = {}
    others: set[str] = set()
    for record in records:
        for field, value in record.items():
            if isinstance(value, dict):
                objects.setdefault(field, []).append(value)
            elif value is not None:
                others.add(field)
    few = {field for field, held in objects.items() if len({key for one in held for key in one}) <= MAX_FIELDS}
    return {field for field in few - others if not _is_map(objects[field])}


def _flattened(record: Record, structs: Collection[str]) -> Record:
    """Replace nested objects by their fields."""
    flat: Record = {}
    for field, value in record.items():
        flat |= {f"{field}.{key}": one for key, one in (value or {}).items()} if field in structs else {field: value}
    return flat


def _list_items(records: list[Record], field: str, objects: Sequence[Mapping[str, Any]]) -> None:
    """Replace an object by a list of its values if keys have one value in all records, otherwise of keys and values."""
    meanings: dict[str, set[str]] = {}
    for one in objects:
        for key, value in one.items():
            meanings.setdefault(key, set()).add(str(value))
    is_named = bool(meanings) and sum(len(texts) == 1 for texts in meanings.values()) >= MIN_SAME * len(meanings)
    is_named = is_named and all(isinstance(value, str) for one in objects for value in one.values())
    for record in records:
        if isinstance(record.get(field), dict):
            record[field] = [value if is_named else f"{key}: {_text(value)}" for key, value in record[field].items()]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _add_rows(
    parent: str,
    field: str,
    records: list[Record],
    rows: list[list[Record]],
    tables: dict[str, list[Record]],
    groups: str | None,
    *,
    is_map: bool = False,
) -> None:
    """Create a table of nested records.

    Repeated records are separate things, and their parent records refer to them, unless groups restrict who may see
    these. Other records belong to their parent record, refer to it and have its groups, if they have none.
    """
    name = field.rpartition(".")[2]
    name = f"{parent}_{name}" if name in tables else name
    distinct = list({json.dumps(row, sort_keys=True): row for inner in rows for row in inner}.values())
    key = _key_field(distinct, MIN_SAME)
    if len(distinct) < sum(map(len, rows)) and key is not None and groups is None:
        for record, inner in zip(records, rows, strict=True):
            record[field] = [str(row[key]) for row in inner]
        _add(name, list({str(row[key]): row for row in reversed(distinct)}.values())[::-1], tables, None)
        return
    own = _key_field(records)
    if own is None:
        own = "id" if not any("id" in record for record in records) else "row_id"
        for number, record in enumerate(records, 1):
            record[own] = number
    column = singular(parent)
    held = [{column: record[own], **row} for record, inner in zip(records, rows, strict=True) for row in inner]
    if groups is not None:
        outer = [record.get(groups) for record, inner in zip(records, rows, strict=True) for _ in inner]
        held = [row if row.get(groups) else {**row, groups: one} for row, one in zip(held, outer, strict=True)]
    if is_map and _key_field(held, MIN_SAME) is None:  # a name that is not unique, such as a language
        held = [{"key" if field == "name" else field: value for field, value in row.items()} for row in held]
    for record in records:
        record.pop(field, None)
    if held:
        _add(name, held, tables, groups)


def _key_field(records: Sequence[Record], least: float = 1.0) -> str | None:
    """Return the field that identifies the share `least` of records: a field named like a key, or else a name."""
    for headers in (GENERAL_KEYS, NAMES["full"]):
        for field in records[0] if records else ():
            values = [record.get(field) for record in records]
            is_plain = all(isinstance(value, str | int) and value != "" for value in values)
            if plain(field) in headers and is_plain and len(set(map(str, values))) >= least * len(values):
                return field
    return None
