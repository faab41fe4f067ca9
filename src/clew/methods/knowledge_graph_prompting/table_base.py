"""A table as a small knowledge base, for the learned reader: rows are nodes, and so are the values of categories."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.schema import NodeType, Relation, Schema
from clew.core.types import Direction, IntArray, NodeRef, NodeSet, RelationUse
from clew.index.names import NameIndex
from clew.methods.knowledge_graph_prompting.table_columns import Column, Columns

EXAMPLES = 3
"""Names that describe a type."""
ATTRIBUTE_KINDS = {"number": "number", "integer": "integer", "date": "date", "boolean": "boolean", "text": "text"}


@dataclass(frozen=True, eq=False)
class TableBase:
    """What the reader asks of a knowledge base, answered from the columns of a table.

    Rows come first, in their order; then the values of each category. A category is a type of its own, and a relation
    leads to it from the rows.
    """

    table: Columns

    @cached_property
    def row_type(self) -> str:
        """The type of the rows."""
        return self.table.noun or "row"

    @cached_property
    def categories(self) -> tuple[int, ...]:
        """The columns whose values are nodes."""
        return tuple(place for place, column in enumerate(self.table.columns) if column.kind == "category")

    @cached_property
    def attributes(self) -> dict[str, int]:
        """Attribute → its column; columns of one name are told apart by number."""
        found: dict[str, int] = {}
        for place, column in enumerate(self.table.columns):
            if place not in self.categories and (place != self.table.key or column.is_compared):
                name = column.name or f"column {place + 1}"
                found[name if name not in found else f"{name} {place + 1}"] = place
        return found

    @cached_property
    def relations_of(self) -> dict[str, int]:
        """Relation → its column."""
        found: dict[str, int] = {}
        for place in self.categories:
            name = self.table.columns[place].name or f"column {place + 1}"
            found[name if name not in found else f"{name} {place + 1}"] = place
        return found

    def category_type(self, relation: str) -> str:
        """The type of a category's values."""
        return f"{relation} " if relation == self.row_type else relation

    @cached_property
    def offsets(self) -> dict[int, int]:
        """Column of a category → the node of its first value."""
        found, start = {}, len(self.table.rows)
        for place in self.categories:
            found[place] = start
            start += len(self.column(place).codes[0])
        return found

    def column(self, place: int) -> Column:
        """A column."""
        return self.table.columns[place]

    @cached_property
    def schema(self) -> Schema:
        """The type of the rows with its attributes, and one type and relation for each category."""
        columns = self.table.columns
        title = self.table.title if self.table.title != self.row_type else ""
        said = " : ".join(part for part in (title, such_as(self.table.names)) if part)
        rows = NodeType(self.row_type, len(self.table.rows), description=said, attributes=tuple(self.attributes))
        types = [rows]
        relations = []
        for relation, place in self.relations_of.items():
            texts, codes = columns[place].codes
            types.append(NodeType(self.category_type(relation), len(texts), description=such_as(texts)))
            filled = int((codes >= 0).sum())
            relations.append(Relation(relation, self.row_type, self.category_type(relation), filled))
        kinds = {name: ATTRIBUTE_KINDS[columns[place].kind] for name, place in self.attributes.items()}
        return Schema(tuple(types), tuple(relations), kinds)

    @property
    def described(self) -> None:
        """Nothing stored knows its nodes."""

    def nodes(self, type: str | None = None) -> NodeSet:
        """All nodes, or those of one type."""
        rows = len(self.table.rows)
        if type is None:
            values = sum(len(self.column(place).codes[0]) for place in self.categories)
            return NodeSet(np.arange(rows + values, dtype=np.int32))
        if type == self.row_type:
            return NodeSet(np.arange(rows, dtype=np.int32))
        place = next(place for name, place in self.relations_of.items() if self.category_type(name) == type)
        start = self.offsets[place]
        return NodeSet(np.arange(start, start + len(self.column(place).codes[0]), dtype=np.int32))

    def values(self, nodes: NodeSet, attribute: str) -> list[float]:
        """The numbers of rows in one column; NaN where there is none."""
        column = self.column(self.attributes[attribute])
        numbers: list[float] = (column.values[nodes.array] * column.scale).tolist()
        return numbers

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Name and type of nodes."""
        return [NodeRef(int(node), str(node), *self._called(int(node))) for node in nodes]

    def _called(self, node: int) -> tuple[str, str]:
        if node < len(self.table.rows):
            return self.table.names[node], self.row_type
        for relation, place in reversed(self.relations_of.items()):
            if node >= self.offsets[place]:
                return self.column(place).codes[0][node - self.offsets[place]], self.category_type(relation)
        raise IndexError(node)

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """Rows of values, and values of rows."""
        assert relation is not None
        place = self.relations_of[relation]
        codes, start = self.column(place).codes[1], self.offsets[place]
        found: list[NDArray[np.integer]] = []
        if direction in ("out", "any"):
            own = codes[nodes.array[nodes.array < len(self.table.rows)]]
            found.append(np.unique(own[own >= 0]) + start)
        if direction in ("in", "any"):
            wanted = nodes.array - start
            wanted = wanted[(wanted >= 0) & (wanted < len(self.column(place).codes[0]))]
            found.append(np.flatnonzero(np.isin(codes, wanted)))
        return NodeSet.of(np.concatenate(found).astype(np.int32).tolist())

    def relations(self, nodes: NodeSet) -> list[RelationUse]:
        """Which relations leave and enter nodes."""
        found = []
        is_row = bool(np.any(nodes.array < len(self.table.rows)))
        for relation, place in self.relations_of.items():
            start = self.offsets[place]
            if is_row:
                found.append(RelationUse(relation, "out", 1))
            if np.any((nodes.array >= start) & (nodes.array < start + len(self.column(place).codes[0]))):
                found.append(RelationUse(relation, "in", 1))
        return found

    @cached_property
    def names(self) -> NameIndex:
        """Finds rows and values by name."""
        key = self.table.key
        rows = [] if key is None or self.column(key).kind == "category" else list(enumerate(self.table.names))
        named = [(node, name) for node, name in rows if name]
        for column in self.table.columns:
            if rows and column.is_name and column is not self.column(key or 0):
                named += [(node, cell) for node, cell in enumerate(column.cells) if cell]
        for place in self.categories:
            named += [(self.offsets[place] + at, text) for at, text in enumerate(self.column(place).codes[0])]
        types = np.zeros(len(self.nodes()), dtype=np.int32)
        for code, place in enumerate(self.categories, start=1):
            types[self.offsets[place] : self.offsets[place] + len(self.column(place).codes[0])] = code
        nodes = np.array([node for node, _ in named], dtype=np.int32)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # mapped files outlive their names
            NameIndex.write(Path(folder), pa.array([_spaced(name) for _, name in named], pa.large_string()), nodes)
            return NameIndex.open(Path(folder), types, self.schema, name_of=lambda node: self._called(node)[0])


def such_as(names: Sequence[str]) -> str:
    """Some names as the description of a type: they say what a header such as "name" does not."""
    some = list(dict.fromkeys(name for name in names[: 2 * EXAMPLES] if name))[:EXAMPLES]
    return f"such as {', '.join(some)}" if some else ""


def _spaced(name: str) -> str:
    """`gov.administrators` and `Town_Car` as they are said."""
    return name if " " in name else name.replace("_", " ").replace(".", " ").strip() or name
