"""Render node documents in a fixed order given by the schema."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.schema import NodeType
from clew.core.types import Node

MOST_LISTED = 20
"""Maximum number of list values, or neighbours by one relation, in a document."""
SEPARATOR = "\n"


def document(node: Node, node_type: NodeType) -> str:
    """Render name and type, other names, text and non-empty attributes."""
    lines = [f"{node.name} ({node_type.label})"]
    aliases = [alias for alias in node.aliases if alias != node.name]
    if aliases:
        lines.append(f"also called: {listed(aliases)}")
    if node.text:
        lines.append(node.text)
    for name in node_type.attributes:
        shown = value(node.attributes.get(name))
        if shown:
            lines.append(f"{name.replace('_', ' ')}: {shown}")
    return SEPARATOR.join(lines)


def relation_lines(
    groups: Mapping[str, Mapping[str, list[str]]], totals: Mapping[tuple[str, str], int]
) -> Iterable[str]:
    """Yield `relation: {type: (names…)}` with the number of omitted names."""
    for relation, by_type in groups.items():
        parts = [f"{kind}: ({listed(names, totals[relation, kind])})" for kind, names in by_type.items()]
        yield f"{relation}: {{{'; '.join(parts)}}}"


def listed(values: list[str], total: int | None = None) -> str:
    """Join the first values, and count the remaining values."""
    shown = values[:MOST_LISTED]
    more = (len(values) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def value(content: Any) -> str:
    """Render an attribute's value. Return "" for an empty value."""
    if content is None or content == "" or content == []:
        return ""
    return listed([str(part) for part in content]) if isinstance(content, list) else str(content)


def searchable(nodes: pa.RecordBatch, shown: Collection[str]) -> pa.Array:
    """Return the words of all documents for the lexical index: name, aliases, text, shown attributes."""
    string = pa.large_string()
    line = pa.scalar(SEPARATOR, string)
    parts = [nodes["name"], pc.fill_null(pc.binary_join(nodes["aliases"], line), ""), nodes["text"]]
    for name in nodes.schema.names:
        if name in ("key", "name", "aliases", "text") or name not in shown:
            continue
        column = nodes[name]
        flat = pc.binary_join(column, line) if pa.types.is_large_list(column.type) else column.cast(string)
        parts.append(pc.fill_null(flat, ""))
    return pc.binary_join_element_wise(*(part.cast(string) for part in parts), line)
