"""GraphML export, for Gephi, Cytoscape, yEd and the like: streamed, without any further package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from clew.kb.sources.objects import rows
from clew.kb.tables import Piece, Tables

_HEADING = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML file may hold, escaped or not."""


def write_graphml(tables: Tables, file: Path) -> None:
    """Write nodes, edges and all their attributes; lists become one text with ` | ` between the items."""
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
    """Write the declarations of the attributes; returns attribute → declared id."""
    types: dict[str, str] = {}
    for piece in pieces:
        for column in piece.table.schema:
            if column.name not in ends and not pa.types.is_null(column.type):
                types[column.name] = _type(column.type)
    ids = {name: f"{target[0]}{number}" for number, name in enumerate(types)}
    for name, kind in types.items():
        out.write(f'<key id="{ids[name]}" for="{target}" attr.name={_quoted(name)} attr.type="{kind}"/>\n')
    return ids


def _type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_floating(kind):
        return "double"
    return "boolean" if pa.types.is_boolean(kind) else "string"


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
