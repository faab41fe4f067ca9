"""A table as a small knowledge base: rows and category values are nodes.

The learned reader reads questions over it. `Execution` runs its plans on the columns.
"""

from __future__ import annotations

import datetime
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.answering.reading.documents.table_columns import Columns, TableColumn
from clew.answering.reading.mentions import Sense
from clew.answering.reading.plan import Branch, Plan, Requirement
from clew.answering.reading.quantities import Quantity
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.schema import NodeType, Relation, Schema
from clew.core.types import Direction, IntArray, NodeRef, NodeSet, RelationUse
from clew.store.graph.protocol import Linked
from clew.store.index.names import NameIndex

EXAMPLES = 3
"""Number of names that describe a type."""
ATTRIBUTE_KINDS = {"number": "number", "integer": "integer", "date": "date", "boolean": "boolean", "text": "text"}


@dataclass(frozen=True, eq=False)
class TableBase(Linked):
    """The knowledge base interface of the reader, over the columns of a table.

    Rows come first, in their order, then the values of each category. Each category is a separate type, and a relation
    leads to it from the rows.
    """

    table: Columns

    @cached_property
    def row_type(self) -> str:
        """Type of the rows."""
        return self.table.noun or "row"

    @cached_property
    def categories(self) -> tuple[int, ...]:
        """Indexes of the columns whose values are nodes."""
        return tuple(place for place, column in enumerate(self.table.columns) if column.kind == "category")

    @cached_property
    def attributes(self) -> dict[str, int]:
        """Attribute → its column. Columns of the same name get a number."""
        every = enumerate(self.table.columns)
        own = [place for place, column in every if place != self.table.key or column.is_compared]
        return self._named([place for place in own if place not in self.categories])

    @cached_property
    def relations_of(self) -> dict[str, int]:
        """Relation → its column."""
        return self._named(self.categories)

    def _named(self, places: Iterable[int]) -> dict[str, int]:
        named: dict[str, int] = {}
        for place in places:
            name = self.table.columns[place].name or f"column {place + 1}"
            named[name if name not in named else f"{name} {place + 1}"] = place
        return named

    def category_type(self, relation: str) -> str:
        """Return the type of a category's values."""
        return f"{relation} " if relation == self.row_type else relation

    @cached_property
    def offsets(self) -> dict[int, int]:
        """Column of a category → the node of its first value."""
        found, start = {}, len(self.table.rows)
        for place in self.categories:
            found[place] = start
            start += len(self.column(place).codes[0])
        return found

    def column(self, place: int) -> TableColumn:
        """Return a column by its index."""
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
        """Always None: a table has no stored statistics."""

    def nodes(self, type: str | None = None) -> NodeSet:
        """Return all nodes, or the nodes of one type."""
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
        """Return the numbers of rows in one column. NaN if the cell has no number."""
        column = self.column(self.attributes[attribute])
        numbers: list[float] = (column.values[nodes.array] * column.scale).tolist()
        return numbers

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Return name and type of nodes."""
        return [NodeRef(int(node), str(node), *self._called(int(node))) for node in nodes]

    def _called(self, node: int) -> tuple[str, str]:
        if node < len(self.table.rows):
            return self.table.names[node], self.row_type
        for relation, place in reversed(self.relations_of.items()):
            if node >= self.offsets[place]:
                return self.column(place).codes[0][node - self.offsets[place]], self.category_type(relation)
        raise IndexError(node)

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """Return the rows of values, and the values of rows."""
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
        """Return the relations at some nodes, with their direction."""
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
        """Index of rows and values by name."""
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
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # deleted mapped files work
            NameIndex.write(Path(folder), pa.array([_spaced(name) for _, name in named], pa.large_string()), nodes)
            return NameIndex.open(Path(folder), types, self.schema, name_of=lambda node: self._called(node)[0])


def such_as(names: Sequence[str]) -> str:
    """Return some names as the description of a type, for headers such as "name"."""
    some = list(dict.fromkeys(name for name in names[: 2 * EXAMPLES] if name))[:EXAMPLES]
    return f"such as {', '.join(some)}" if some else ""


def _spaced(name: str) -> str:
    """Replace dots and underscores in names such as `gov.administrators` and `Town_Car` by spaces."""
    return name if " " in name else name.replace("_", " ").replace(".", " ").strip() or name


Mask = NDArray[np.bool_]
Value = float | int | bool | str
MOST_VALUES = 3
"""Maximum number of different values to return for rows of one name."""


@dataclass(frozen=True, eq=False)
class Found:
    """Result of running a plan."""

    nodes: NodeSet
    rows: Mask
    value: Value | None = None


CARRIED_OUT = frozenset(
    {"list", "count", "exists", "value", "max", "min", "most", "fewest", "compare_max", "compare_min"}
)
"""Forms of plans that can run on the rows of a table."""


@dataclass(frozen=True, eq=False)
class PlanRun:
    """Runs one plan."""

    base: TableBase
    vocabulary: Vocabulary
    plan: Plan
    senses: tuple[Sense, ...]
    numbers: tuple[Quantity, ...]

    def found(self) -> Found | None:
        """Return the result of the plan, or None if no row matches or the form is not supported."""
        plan = self.plan
        is_counted = any(one.attribute is None for one in plan.requirements)
        if is_counted or plan.form not in CARRIED_OUT:
            return None
        nodes, rows = self._about()
        match plan.form:
            case "count":
                return Found(nodes, rows, len(nodes))
            case "exists":
                if plan.mentions:
                    nodes = nodes & self.senses[plan.mentions[0]].nodes
                return Found(nodes, rows, len(nodes) > 0)
            case "value":
                value = None if plan.attribute is None else self._value(rows, self.column(plan.attribute))
                return None if value is None else Found(nodes, rows, value)
            case "max" | "min" | "compare_max" | "compare_min":
                assert plan.attribute is not None
                rows = best(rows, self.column(plan.attribute).values, most=plan.form.endswith("max"))
                return Found(self._set(rows), rows) if rows.any() else None
            case "most" | "fewest":
                return self._most(nodes)
            case _:
                return Found(nodes, rows) if len(nodes) else None

    def rows_about(self) -> Mask:
        """Return the rows that the plan is about, before it takes the best rows or their values."""
        return self._about()[1]

    def _about(self) -> tuple[NodeSet, Mask]:
        if self.plan.mentions and self.plan.form != "exists":
            nodes = reduce(or_, (self.senses[place].nodes for place in self.plan.mentions))
            return nodes, self._is_row(nodes) & self.required
        return self._reached()

    def column(self, attribute: int) -> TableColumn:
        """Return the column of an attribute of the vocabulary."""
        return self.base.column(self.base.attributes[self.vocabulary.attributes[attribute].name])

    @cached_property
    def required(self) -> Mask:
        """Mask of the rows that satisfy all requirements."""
        mask = np.ones(len(self.base.table.rows), dtype=bool)
        for requirement in self.plan.requirements:
            if requirement.attribute is not None:
                mask &= self._satisfies(requirement, self.column(requirement.attribute))
        return mask

    def _satisfies(self, requirement: Requirement, column: TableColumn) -> Mask:
        if requirement.quantity is not None:
            return compared(column, requirement.operator, self.numbers[requirement.quantity])
        if isinstance(requirement.value, bool):
            wanted = column.values == float(requirement.value)
        else:
            wanted = np.array([cell == requirement.value for cell in column.cells], dtype=bool)
        return np.asarray(~wanted if requirement.operator == "!=" else wanted)

    def _reached(self) -> tuple[NodeSet, Mask]:
        """Return the nodes of the target type that satisfy branches and requirements, and the rows on the way."""
        plan = self.plan
        target = self.base.schema.type_names[plan.target or 0]
        wanted = [branch for branch in plan.branches if not branch.negated]
        if not wanted:
            nodes, passed = self.base.nodes(target), self.required
            if target != self.base.row_type:
                relation = next(name for name in self.base.relations_of if self.base.category_type(name) == target)
                nodes = self.base.neighbors(self._set(self.required), relation, "out")
        else:
            walked = [self._walk(branch) for branch in wanted]
            nodes = reduce(or_ if plan.either else and_, (end for end, _ in walked))
            passed = reduce(or_, (rows for _, rows in walked))
        for branch in plan.branches:
            if branch.negated:
                nodes = nodes - self._walk(branch)[0]
        if target == self.base.row_type:
            nodes = nodes & self._set(self.required)
            passed = self._is_row(nodes)
        return nodes, passed

    def _walk(self, branch: Branch) -> tuple[NodeSet, Mask]:
        """Return the end nodes of a branch through rows that satisfy the requirements, and the rows it passes."""
        hops = [self.vocabulary.hops[place] for place in branch.hops]
        nodes = self.base.nodes(hops[0].start) if branch.mention is None else self.senses[branch.mention].nodes
        passed = self._is_row(nodes)
        for hop in hops:
            nodes = self.base.neighbors(nodes, hop.relation, hop.direction)
            if hop.end == self.base.row_type:
                nodes = nodes & self._set(self.required)
                passed = self._is_row(nodes)
        return nodes, passed

    def _value(self, rows: Mask, column: TableColumn) -> Value | None:
        """Return the value of some rows. Join up to MOST_VALUES different values, or return None."""
        places = [place for place in np.flatnonzero(rows).tolist() if column.cells[place]]
        texts = {column.cells[place]: place for place in places}
        if len(texts) == 1:
            return typed(column, places[0])
        return ", ".join(texts) if 0 < len(texts) <= MOST_VALUES else None

    def _most(self, nodes: NodeSet) -> Found | None:
        """Return the values of a category that most, or fewest, rows have."""
        hop = None if self.plan.hop is None else self.vocabulary.hops[self.plan.hop]
        if hop is None or hop.end != self.base.row_type or not len(nodes):
            return None
        place = self.base.relations_of[hop.relation]
        codes = self.base.column(place).codes[1]
        counts = np.bincount(codes[self.required & (codes >= 0)], minlength=len(self.base.column(place).codes[0]))
        own = counts[nodes.array - self.base.offsets[place]]
        chosen = nodes.array[own == (own.max() if self.plan.form == "most" else own.min())]
        return Found(NodeSet(chosen), self.required & np.isin(codes, chosen - self.base.offsets[place]))

    def _is_row(self, nodes: NodeSet) -> Mask:
        mask = np.zeros(len(self.base.table.rows), dtype=bool)
        mask[nodes.array[nodes.array < len(mask)]] = True
        return mask

    @staticmethod
    def _set(mask: Mask) -> NodeSet:
        return NodeSet(np.flatnonzero(mask).astype(np.int32))


def best(rows: Mask, values: NDArray[np.float64], *, most: bool) -> Mask:
    """Return the rows with the highest or lowest value."""
    known = rows & ~np.isnan(values)
    if not known.any():
        return known
    goal = values[known].max() if most else values[known].min()
    return np.asarray(known & (values == goal))


def compared(column: TableColumn, operator: str, quantity: Quantity) -> Mask:
    """Return the rows whose value compares as given with a number or date."""
    values = column.values
    if column.kind == "date":
        low, high = days(quantity)
    elif quantity.value is None:  # the 1990s, over a column of years
        low, high = float(quantity.low[:4]), float(quantity.high[:4])
    else:
        is_scaled = column.scale > 1 and re.search(r"[A-Za-z]", quantity.text) is not None
        low = high = quantity.value / (column.scale if is_scaled else 1.0)
    with np.errstate(invalid="ignore"):
        match operator:
            case "<":
                return np.asarray(values < low)
            case "<=":
                return np.asarray(values <= high)
            case ">":
                return np.asarray(values > high)
            case ">=":
                return np.asarray(values >= low)
            case "!=":
                return np.asarray((values < low) | (values > high))
            case _:
                return np.asarray((values >= low) & (values <= high))


def days(quantity: Quantity) -> tuple[float, float]:
    """Return the first and the last day of a date, or NaN if the quantity is not a date."""
    if not quantity.is_date:
        return float("nan"), float("nan")
    return _day(quantity.low), _day(quantity.high)


def _day(text: str) -> float:
    year, month, day = map(int, text.split("-"))
    while day > 28:
        try:
            return float(datetime.date(year, month, day).toordinal())
        except ValueError:  # the last day of a month is written as 31
            day -= 1
    return float(datetime.date(year, month, day).toordinal())


def typed(column: TableColumn, place: int) -> Value:
    """Return a cell as a value of its column's type."""
    value = column.values[place]
    if np.isnan(value) or column.kind in ("text", "category", "date"):
        return column.cells[place]
    if column.kind == "boolean":
        return bool(value)
    return int(value) if float(value).is_integer() else float(value)


def shown(value: Value) -> str:
    """Return a value as text."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)
