"""A table of a document as a small knowledge base, built like the tables of files: repeated texts are nodes."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clew.answering.reading.documents.table_columns import Table, TableRow
from clew.core.types import NodeSet
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.schema_file import SchemaEdits, TypeEdit
from clew.store.graph.tables import NODE_COLUMNS, Piece, Problems, Tables
from clew.store.index.build import INDEX, build_indexes
from clew.store.index.protocol import Names
from clew.store.open_base import OpenBase
from clew.store.sources.categories import with_categories
from clew.store.sources.pieces import constant, lists_of, short_names

EXAMPLES = 3
"""Number of names that describe a type."""


@dataclass(frozen=True, eq=False)
class TableBase:
    """The base of a table. The key of a node of `row_type` is the index of its row."""

    table: Table
    kb: ArrayKnowledgeBase
    names: Names
    row_type: str

    @classmethod
    def of(cls, table: Table) -> TableBase:
        """Build the base of a table that has rows, in a temporary folder."""
        folder = tempfile.TemporaryDirectory(prefix="clew-")
        stage = Path(folder.name)
        tables, row_type = _tables(table)
        facts = write_graph(tables, stage, Problems())
        plain = ArrayKnowledgeBase.staged(stage, facts.to_json())
        said = {name: TypeEdit(description=such_as(plain, name)) for name in facts.schema.type_names}
        title = "" if table.title == table.noun else table.title
        rows = " : ".join(part for part in (title, said[row_type].description) if part)
        edits = SchemaEdits(types={**said, row_type: TypeEdit(description=rows)})
        language = build_indexes(plain, stage / INDEX)
        kb = ArrayKnowledgeBase.staged(stage, facts.to_json(edits.apply(facts.schema)) | {"language": language})
        weakref.finalize(kb, folder.cleanup)
        return cls(table, kb, OpenBase(kb).names, row_type)

    def rows(self, nodes: NodeSet | Sequence[int]) -> tuple[TableRow, ...]:
        """Return the rows among some nodes."""
        refs = self.kb.refs(list(nodes))
        return tuple(self.table.rows[int(ref.key)] for ref in refs if ref.type == self.row_type)


def _tables(table: Table) -> tuple[Tables, str]:
    """Return the nodes and edges of a table, and the type of its rows."""
    shown = [at for at in (table.key, table.year) if at is not None]
    cells = [row.cells for row in table.rows]
    named = _texts([", ".join(row[at] for at in shown) for row in cells])
    spoken = [pc.replace_substring_regex(named, r"[._]", " "), short_names(named)]
    spoken += [_texts(table.column(at)) for at in range(len(table.header)) if at not in shown and table.is_name(at)]
    content = {
        "key": _texts([f"{row:06}" for row in range(len(cells))]),
        "type": constant(table.noun, len(cells)),
        "name": named,
        "aliases": lists_of([one for one in spoken if one is not None]),
    }
    for at, name in enumerate(table.labels):
        if at != table.key or table.year is not None or table.is_time(at):
            while name in {*content, *NODE_COLUMNS, table.noun}:
                name += "_"
            content[name] = table.columns[at]
    return with_categories(Tables((Piece(pa.table(content), table.title),), ())), table.noun


def _texts(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def such_as(kb: ArrayKnowledgeBase, kind: str) -> str:
    """Return some names as the description of a type, for headers such as "name"."""
    names: Iterable[str] = (ref.name for ref in kb.refs(kb.nodes(kind).array[: 2 * EXAMPLES]))
    some = list(dict.fromkeys(name for name in names if name))[:EXAMPLES]
    return f"such as {', '.join(some)}" if some else ""
