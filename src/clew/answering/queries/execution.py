"""The executor: solutions as tables of node ids, joined edge by edge from the most selective part.

1. Constants restrict the variables next to them.
2. The variable with the fewest expected nodes comes first. Edges are followed from the variables that are bound, the
   cheapest next, and each condition is decided as soon as its variables are bound.
3. Variables that nothing needs any more are dropped, and equal rows with them, if the result does not count solutions.
4. Optional parts, sub-patterns and aggregates over sub-patterns start from the different rows of the variables that
   they share with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from operator import and_
from typing import Any

import numpy as np

from clew.answering.queries import columns as arrays
from clew.answering.queries.columns import Array, Ids, Mask, ValueArray
from clew.answering.queries.kinds import comparable
from clew.answering.queries.lowering import turned
from clew.core import query as ql
from clew.core.errors import InputError
from clew.core.types import Direction, NodeRef, NodeSet, Triple, distinct
from clew.store.graph.protocol import Edges, KnowledgeBase
from clew.store.graph.tables import ROW


class QueryTooLargeError(InputError):
    """A query has more solutions than the executor allows."""


@dataclass(frozen=True)
class QueryLimits:
    """Bounds on one query. A row of solutions takes 4 bytes per variable."""

    rows: int = 10_000_000
    """Maximum number of rows of one table of solutions."""
    work: int = 500_000_000
    """Maximum number of rows of all tables together."""
    cells: int = 2_000_000
    """Maximum number of cells of a result, which take about 300 bytes each."""


STEP_WORK = 50_000
"""Work of one step of a walk, in rows, however few nodes it starts from."""


@dataclass(frozen=True, eq=False)
class Solutions:
    """Solutions as parallel arrays. Names of variables have node ids, names of edges have numbers, -1 is missing."""

    size: int
    columns: Mapping[str, Array]

    def take(self, rows: Array) -> Solutions:
        """Return some rows, given by index or by mask."""
        size = int(rows.sum()) if rows.dtype == np.bool_ else len(rows)
        return Solutions(size, {name: column[rows] for name, column in self.columns.items()})


ONE = Solutions(1, {})
"""The empty solution."""


@dataclass(frozen=True, eq=False)
class Result:
    """The rows of a query."""

    names: tuple[str, ...]
    cells: tuple[ValueArray, ...]
    rows: list[tuple[Any, ...]]
    """Values of each row. A node is a NodeRef, an edge a Triple, a missing value None."""

    @property
    def nodes(self) -> NodeSet | None:
        """Nodes of the first column, or None if it has other values."""
        first = self.cells[0]
        return NodeSet.of(first.values[first.present]) if first.kind == "node" else None


Join = Callable[[ql.Pattern, frozenset[str]], Solutions | None]
"""Return the different solutions of a pattern for some variables, or None if the executor has to find them."""


def execute(
    kb: KnowledgeBase, query: ql.AnyQuery, limits: QueryLimits | None = None, join: Join = lambda *_: None
) -> Result:
    """Return the rows of a query. Raise QueryTooLargeError if it has too many solutions."""
    run = _Run(kb, limits or QueryLimits(), join)
    return run.rows(*run.query(query))


def shown(kb: KnowledgeBase, query: ql.Query, cells: list[ValueArray]) -> Result:
    """Return the result of a query from its columns."""
    return _Run(kb, QueryLimits()).rows(query.headings, cells)


def found_nodes(kb: KnowledgeBase, query: ql.Query, join: Join = lambda *_: None) -> NodeSet:
    """Return the nodes of the first column of a query."""
    _, cells = _Run(kb, QueryLimits(), join).query(query)
    return NodeSet.of(cells[0].values[cells[0].present])


def values_of(kb: KnowledgeBase, expression: ql.Expression, variable: str, nodes: Sequence[int]) -> list[Any]:
    """Return the value of an expression about each node, or None if it is missing."""
    run = _Run(kb, QueryLimits())
    return run.shown(run.evaluate(expression, Solutions(len(nodes), {variable: np.array(nodes, np.int32)})))


def satisfying(kb: KnowledgeBase, pattern: ql.Pattern, variable: str, among: NodeSet | None = None) -> NodeSet:
    """Return the nodes of a variable in the solutions of a pattern. With `among`, try only these nodes."""
    table = ONE if among is None else Solutions(len(among), {variable: among.array})
    return NodeSet.of(_Run(kb, QueryLimits()).extend(pattern, table, frozenset({variable})).columns[variable])


def solutions(
    kb: KnowledgeBase, query: ql.Query, rows: Sequence[Sequence[Any]], most: int = 10
) -> list[list[dict[str, NodeRef | Triple]]]:
    """Return up to `most` solutions that back each row of the result: the evidence for it.

    The rows have nodes in the same columns. These nodes and other values of single solutions must agree with the row.
    Aggregates are not compared.
    """
    run = _Run(kb, QueryLimits())
    number, columns = next(run.hidden), list[tuple[int, ql.Expression]]()
    start: dict[str, Array] = {number: np.arange(len(rows))}
    for place, column in enumerate(query.columns):
        if not isinstance(column.expression, ql.Var):
            columns.append((place, column.expression))
        elif rows[0][place]:
            start[column.expression.name] = np.array([row[place].id for row in rows], np.int32)
    table = run.extend(query.pattern, Solutions(len(rows), start), None)
    for place, part in columns:
        if not ql.aggregates(part) and table.size:
            values = zip(arrays.to_values(run.evaluate(part, table)), table.columns[number], strict=True)
            table = table.take(np.array([value == rows[row][place] for value, row in values], np.bool_))
    table = table.take(np.argsort(table.columns[number], kind="stable"))
    backed = table.columns[number]
    table = table.take(np.arange(table.size) - np.searchsorted(backed, backed) < most)
    names = [name for name in table.columns if name != number]
    cells = [run.shown(run.evaluate(ql.Var(name), table)) for name in names]
    found = [list[dict[str, NodeRef | Triple]]() for _ in rows]
    for place, row in enumerate(table.columns[number].tolist()):
        found[row].append({name: shown[place] for name, shown in zip(names, cells, strict=True) if shown[place]})
    return found


class _Run:
    """One execution: the base, the edges bound to names, and the budget."""

    def __init__(self, kb: KnowledgeBase, limits: QueryLimits, join: Join = lambda *_: None) -> None:
        self.kb, self.limits, self.join, self.work = kb, limits, join, 0
        self.edge_names: set[str] = set()
        self.edges = np.empty((5, 0), np.int64)  # head, relation, tail, number among parallel edges, row or -1
        self.hidden = (f"#{number}" for number in count())
        self.results: dict[ql.AnyQuery, ValueArray] = {}

    def spend(self, rows: int, work: int | None = None) -> None:
        self.work += rows if work is None else work
        if rows > self.limits.rows or self.work > self.limits.work:
            raise QueryTooLargeError(
                f"the query has too many solutions (over {min(rows, self.limits.rows):,} rows): "
                "name something, add a condition, or connect all its variables"
            )

    # Queries

    def query(self, query: ql.AnyQuery) -> tuple[tuple[str, ...], list[ValueArray]]:
        """Return the names of the columns, and the columns."""
        if isinstance(query, ql.Combined):
            return self.combined(query)
        grouped = query.is_grouped
        parts = (*query.outputs, *query.group, *query.having)
        needed = frozenset().union(*map(ql.names_used, parts)) & query.pattern.bound
        table = self.join(query.pattern, needed if query.is_set else query.pattern.bound)
        if table is None:
            table = self.extend(query.pattern, ONE, needed if query.is_set else None)
        if grouped:
            table, cells = self.groups(query, table)
        else:
            known = {part: self.evaluate(part, table) for part in dict.fromkeys(query.outputs)}
            cells = [known[part] for part in query.outputs]
        rows = self.selected(query, cells)
        return query.headings, [cell.take(rows) for cell in cells[: len(query.columns)]]

    def rows(self, names: tuple[str, ...], cells: list[ValueArray]) -> Result:
        count = len(cells[0])
        if count * len(cells) > self.limits.cells:
            raise QueryTooLargeError(
                f"the query finds {count:,} rows: add a condition, or `first {self.limits.cells // 100}`"
            )
        return Result(names, tuple(cells), list(zip(*map(self.shown, cells), strict=True)))

    def groups(self, query: ql.Query, table: Solutions) -> tuple[Solutions, list[ValueArray]]:
        """Return a row of the table for each group, and the values of the outputs."""
        columns = {key: self.evaluate(key, table) for key in query.group}
        keys = list(map(self.codes, columns.values()))
        ids, first = arrays.row_ids(keys, table.size)
        chosen = table.take(first) if table.size else (ONE if not keys else table)
        known = {key: column.take(first) for key, column in columns.items()} if table.size else {}
        inside = _Groups(table, ids, len(first) if keys else 1, known)
        kept = np.ones(inside.size, np.bool_)
        for formula in query.having:
            kept &= self.holds(formula, chosen, inside)
        cells = [self.evaluate(part, chosen, inside).take(np.flatnonzero(kept)) for part in query.outputs]
        return chosen, cells

    def selected(self, query: ql.Query, cells: list[ValueArray]) -> Ids:
        """Return the rows to show, in order."""
        width, size = len(query.columns), len(cells[0])
        rows = np.arange(size)
        if query.distinct:
            rows = np.sort(arrays.row_ids([self.codes(cell) for cell in cells], size)[1])
        if query.ties:
            rows = rows[reduce(and_, (cell.present[rows] for cell in cells[width:]))]
        if query.order or query.first is not None or query.skip:
            keys = [
                arrays.sort_keys(cell, str.lower, descending=key.descending)
                for key, cell in zip(query.order, cells[width:], strict=True)
            ]
            exact = [arrays.sort_keys(cell, str) for cell in cells[:width]]
            flat = [part[rows] for pair in (*keys, *exact) for part in (pair[1], pair[0])]
            rows = rows[np.lexsort(flat[::-1])]
            stop = size if query.first is None else query.skip + query.first
            if query.ties and 0 < stop < len(rows):
                last = np.all([pair[0][rows] == pair[0][rows[stop - 1]] for pair in keys], axis=0)
                stop = max(stop, int(np.flatnonzero(last)[-1]) + 1)
            rows = rows[query.skip : stop]
        return rows

    def combined(self, query: ql.Combined) -> tuple[tuple[str, ...], list[ValueArray]]:
        names, left = self.query(query.left)
        _, right = self.query(query.right)
        both = [arrays.concatenate(a, b) for a, b in zip(left, right, strict=True)]
        size, total = len(left[0]), len(both[0])
        ids, first = arrays.row_ids([self.codes(cell) for cell in both], total)
        in_right = np.zeros(len(first), np.bool_)
        in_right[ids[size:]] = True
        match query.operation:
            case "union":
                kept = first
            case "intersect":
                kept = first[(first < size) & in_right]
            case "except":
                kept = first[(first < size) & ~in_right]
        return names, [cell.take(np.sort(kept)) for cell in both]

    # Patterns

    def extend(self, pattern: ql.Pattern, table: Solutions, keep: frozenset[str] | None) -> Solutions:
        """Join a table with the solutions of a pattern. If `keep` is given, only these variables matter."""
        return _Extension(self, pattern, table, keep).table

    def constant(self, constant: ql.Constant) -> NodeSet:
        if isinstance(constant, ql.Named):
            raise InputError(f"{constant} is not linked to nodes: link the constants of the query first")
        return NodeSet.of(self.kb.ids(constant.keys))

    def step(self, nodes: NodeSet, edge: ql.Edge, forward: bool) -> tuple[Array, Array, Ids, Edges]:
        """Return near and far ends of the single edges from some nodes, the index of each edge, and the edges."""
        direction: Direction = "any" if not edge.directed else "out" if forward else "in"
        found = self.kb.edges(nodes, edge.relation, direction)
        self.spend(len(found))
        if edge.directed:
            near, far = (found.heads, found.tails) if forward else (found.tails, found.heads)
            return near, far, np.arange(len(found)), found
        inside = np.flatnonzero(nodes.holds(found.heads))
        turned = np.flatnonzero(nodes.holds(found.tails) & (found.heads != found.tails))
        near = np.concatenate((found.heads[inside], found.tails[turned]))
        far = np.concatenate((found.tails[inside], found.heads[turned]))
        return near, far, np.concatenate((inside, turned)), found

    def pairs(self, nodes: NodeSet, edge: ql.Edge, forward: bool) -> tuple[Array, Array]:
        """Return the different pairs of near and far ends that an unnamed edge or walk connects."""
        if edge.is_single:
            near, far, *_ = self.step(nodes, edge, forward)
            return _unpacked(distinct(np.sort(_packed(near, far))))
        level = _packed(nodes.array, nodes.array)
        level = _repeated(level, edge.least, lambda level: self.next_level(level, edge, forward))
        steps = edge.least
        parts = [level]  # each more than twice as long as the next, so that a pair is moved a few times only
        while len(level) and (edge.most is None or steps < edge.most):
            level, steps = self.next_level(level, edge, forward), steps + 1
            for part in parts:
                level = _without(level, part)
            parts.append(level)
            while len(parts) > 1 and len(parts[-2]) <= 2 * len(parts[-1]):
                parts[-2:] = [np.sort(np.concatenate(parts[-2:]))]
            self.spend(sum(map(len, parts)), work=len(parts[-1]))
        return _unpacked(np.sort(np.concatenate(parts)))

    def next_level(self, level: Ids, edge: ql.Edge, forward: bool) -> Ids:
        self.spend(len(level), work=STEP_WORK)
        origins, here = _unpacked(level)
        near, far, *_ = self.step(NodeSet.of(here), edge, forward)
        rows, matches = self.match(here, near)
        return distinct(np.sort(_packed(origins[rows], far[matches])))

    def reach(self, nodes: NodeSet, edge: ql.Edge, forward: bool) -> NodeSet:
        """Return the nodes that an unnamed edge or walk reaches from some nodes."""
        direction: Direction = "any" if not edge.directed else "out" if forward else "in"

        def next_nodes(level: Array) -> Array:
            self.spend(len(level), work=len(level) + STEP_WORK)
            return self.kb.neighbors(NodeSet(level), edge.relation, direction).array

        level = NodeSet(_repeated(nodes.array, edge.least, next_nodes))
        reached, steps = level, edge.least
        while len(level) and (edge.most is None or steps < edge.most):
            self.spend(len(reached), work=len(reached) + STEP_WORK)
            level = self.kb.neighbors(level, edge.relation, direction) - reached
            reached, steps = reached | level, steps + 1
        return reached

    def match(self, left: Array, right: Array) -> tuple[Ids, Ids]:
        """Return all pairs of positions at which two arrays of keys are equal."""
        order = np.argsort(right, kind="stable")
        ordered = right[order]
        starts, ends = ordered.searchsorted(left, "left"), ordered.searchsorted(left, "right")
        sizes = ends - starts
        total = int(sizes.sum())
        self.spend(total)
        rows = np.repeat(np.arange(len(left)), sizes)
        offsets = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows, order[np.repeat(starts, sizes) + offsets]

    def named_edges(self, name: str, found: Edges) -> Ids:
        """Register edges under a name, and return their numbers."""
        self.edge_names.add(name)
        nodes = 1 + max(int(found.heads.max(initial=0)), int(found.tails.max(initial=0)))
        keys = (
            found.heads.astype(np.int64) * len(self.kb.schema.relation_names) + found.relations
        ) * nodes + found.tails
        every = np.arange(len(found))
        order = every if np.all(keys[1:] >= keys[:-1]) else np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        parallel = np.empty(len(found), np.int64)
        parallel[order] = every - np.repeat(starts, np.diff(np.append(starts, len(found))))
        rows = np.full(len(found), -1) if found.rows is None else found.rows
        fresh = np.stack((found.heads, found.relations, found.tails, parallel, rows))
        first = self.edges.shape[1]
        self.edges = fresh if not first else np.concatenate((self.edges, fresh), axis=1)
        return every + first

    # Sub-patterns

    def seed(self, part: Any, table: Solutions) -> tuple[str, Ids, Solutions]:
        """Return a table of the different rows of the variables that a sub-pattern shares, and each row's number."""
        shared = sorted(ql.names_used(part) & table.columns.keys())
        ids, first = arrays.row_ids([table.columns[name].astype(np.int64) for name in shared], table.size)
        hidden = next(self.hidden)
        columns = {name: table.columns[name][first] for name in shared}
        return hidden, ids, Solutions(len(first), {**columns, hidden: np.arange(len(first))})

    def exists(self, pattern: ql.Pattern, table: Solutions) -> Mask:
        hidden, ids, seed = self.seed(pattern, table)
        found = np.zeros(seed.size, np.bool_)
        found[self.extend(pattern, seed, frozenset((hidden,))).columns[hidden]] = True
        return np.asarray(found[ids])

    def over(self, part: ql.Aggregate, table: Solutions) -> ValueArray:
        """Evaluate an aggregate over a sub-pattern."""
        assert part.over is not None
        hidden, ids, seed = self.seed((part.over if part.argument is None else part), table)
        keep = frozenset((hidden, *(ql.names_used(part.argument) if part.argument is not None else ())))
        found = self.extend(part.over, seed, keep if part.is_set else None)
        groups = _Groups(found, found.columns[hidden].astype(np.int64), seed.size)
        return self.aggregate(replace(part, over=None), groups).take(ids)

    def aggregate(self, part: ql.Aggregate, groups: _Groups) -> ValueArray:
        if part.argument is None:
            return arrays.count_column(part.function, np.bincount(groups.ids, minlength=groups.size))
        argument = self.evaluate(part.argument, groups.table)
        if argument.kind == "edge":
            argument = ValueArray("integer", self.codes(argument), argument.present)
        return arrays.aggregate(part.function, argument, groups.ids, groups.size, distinct=part.distinct)

    # Expressions

    def evaluate(self, part: ql.Expression, table: Solutions, groups: _Groups | None = None) -> ValueArray:
        """Return the value of an expression for each row."""
        if groups is not None and part in groups.keys:
            return groups.keys[part]
        match part:
            case ql.Value(value):
                kind = {bool: "boolean", int: "integer", float: "number"}.get(type(value), "text")
                return arrays.constant(kind, value, table.size)
            case ql.Var(name):
                values = table.columns.get(name, np.full(table.size, -1))
                return ValueArray("edge" if name in self.edge_names else "node", values, values >= 0)
            case ql.Attribute(variable, name):
                return self.attribute(self.evaluate(ql.Var(variable), table), name)
            case ql.Call(sign, (left, right)):
                return arrays.arithmetic(sign, self.evaluate(left, table, groups), self.evaluate(right, table, groups))
            case ql.Call("row", (argument,)):
                return self.attribute(self.evaluate(argument, table, groups), ROW)
            case ql.Call(name, (argument,)):
                return arrays.function(name, self.evaluate(argument, table, groups))
            case ql.Aggregate(over=None):
                assert groups is not None, "only groups have aggregates"
                return self.aggregate(part, groups)
            case ql.Aggregate():
                return self.over(part, table)
            case ql.Subquery(query):
                column = self.result(query)
                if not len(column):
                    return arrays.missing(column.kind, table.size)
                return column.take(np.zeros(table.size, np.int64))
        raise InputError(f"{part} has no value: use it in a condition")

    def result(self, query: ql.AnyQuery) -> ValueArray:
        if query not in self.results:
            _, [self.results[query]] = self.query(query)
        return self.results[query]

    def attribute(self, owner: ValueArray, name: str) -> ValueArray:
        """Return an attribute of nodes or edges. Read each different node or edge once."""
        present = owner.values[owner.present]
        places, first = arrays.row_ids([present.astype(np.int64)], len(present))
        members = present[first]
        schema = self.kb.schema
        if owner.kind == "edge":
            heads, codes, tails, numbers, known = self.edges[:, members]
            kind = "text" if name == "relation" else schema.edge_attributes.get(name, "text")
            if name == "relation":
                values: Any = [schema.relation_names[code] for code in codes]
            else:
                heads, codes, tails = (part.astype(np.int32) for part in (heads, codes, tails))
                edges = Edges(heads, codes, tails, known if np.all(known >= 0) else None)
                values = self.kb.edge_values(edges, numbers, name)
        else:
            kinds = {**dict.fromkeys(("name", "key", "type", "text"), "text"), ROW: "integer"}
            kind = kinds.get(name) or schema.attribute_types.get(name, "text")
            values = self.kb.raw_values(NodeSet(members.astype(np.int32)), name)
        column = arrays.from_values(kind, values)
        if not len(members):
            return arrays.missing(kind, len(owner))
        rows = np.zeros(len(owner), np.int64)
        rows[owner.present] = places
        result = column.take(rows)
        return replace(result, present=result.present & owner.present)

    def codes(self, column: ValueArray, *, exact: bool = True) -> Ids:
        """Assign numbers to the different values of a column."""
        if column.kind == "edge":
            ids, _ = arrays.row_ids(list(self.edges[:4]), self.edges.shape[1])
            return np.where(column.present, ids[column.values] if len(ids) else -1, -1)
        return arrays.codes(column, exact=exact)

    def shown(self, column: ValueArray) -> list[Any]:
        """Return the cells of a column as the result has them."""
        if column.kind not in ("node", "edge"):
            return arrays.to_values(column)
        ids = column.values[column.present].tolist()
        if column.kind == "node":
            cells: Iterable[Any] = self.kb.refs(ids)
        else:
            names = self.kb.schema.relation_names
            cells = (Triple(int(h), names[r], int(t)) for h, r, t, *_ in self.edges[:, ids].T)
        following = iter(cells)
        return [next(following) if present else None for present in column.present]

    # Formulas

    def holds(self, formula: ql.Formula, table: Solutions, groups: _Groups | None = None) -> Mask:
        """Decide a formula for each row."""
        match formula:
            case ql.All(parts):
                return reduce(np.logical_and, (self.holds(part, table, groups) for part in parts))
            case ql.Either(parts):
                return reduce(np.logical_or, (self.holds(part, table, groups) for part in parts))
            case ql.Not(part):
                return ~self.holds(part, table, groups)
            case ql.Exists(pattern):
                return self.exists(pattern, table)
            case ql.Missing(expression):
                return ~self.evaluate(expression, table, groups).present
            case ql.Compare():
                return self.compared(formula if isinstance(formula.right, ql.Value) else turned(formula), table, groups)

    def compared(self, formula: ql.Compare, table: Solutions, groups: _Groups | None) -> Mask:
        comparison, right = formula.comparison, formula.right
        column = self.evaluate(formula.left, table, groups)
        if isinstance(right, ql.Value):
            return arrays.compare_literal(column, comparison, right.value)
        if isinstance(right, ql.Named | ql.Nodes):
            inside = self.constant(right).holds(column.values.astype(np.int32))
            return column.present & (inside if comparison == "=" else ~inside)
        if comparison == "in":
            assert isinstance(right, ql.Subquery)
            members = self.result(right.query)
            if not comparable(members.kind, column.kind):
                return np.zeros(len(column), np.bool_)
            both = self.codes(arrays.concatenate(column, members), exact=False)
            return column.present & np.isin(both[: len(column)], both[len(column) :])
        other = self.evaluate(right, table, groups)
        if column.kind == other.kind == "edge":
            both = self.codes(arrays.concatenate(column, other))
            equal = both[: len(column)] == both[len(column) :]
            return np.asarray(column.present & other.present & (equal if comparison == "=" else ~equal))
        return arrays.compare(column, comparison, other)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Solutions, the group of each, the number of groups, and values that each group has."""

    table: Solutions
    ids: Ids
    size: int
    keys: Mapping[ql.Expression, ValueArray] = field(default_factory=dict)


class _Extension:
    """The join of a table with the solutions of a pattern."""

    def __init__(self, run: _Run, pattern: ql.Pattern, table: Solutions, keep: frozenset[str] | None) -> None:
        self.run, self.kb, self.pattern, self.table = run, run.kb, pattern, table
        self.types, self.before = pattern.types, frozenset(table.columns)
        self.names = pattern.bound | self.before
        self.keep = None if keep is None else keep | frozenset(name for name in self.before if name.startswith("#"))
        self.formulas = list(pattern.where)
        self.optional = list(pattern.optional)
        self.domains: dict[str, NodeSet] = {}
        self.unbound = set(self.types) - self.before
        for name in sorted(self.types.keys() & self.before):
            self.filter(name, self.admitted(name, _members(table.columns[name])))
        self.pending = list(filter(None, map(self.prepared, pattern.edges)))
        for formula in list(self.formulas):
            match formula:
                case ql.Compare(ql.Var(name), "=", ql.Named() | ql.Nodes() as constant) if name in self.unbound:
                    self.restrict(name, run.constant(constant))
                    self.formulas.remove(formula)
        self.settle()
        while self.pending or self.unbound:
            self.advance()
            self.settle()
        while self.optional:
            self.outer_join(self.optional.pop(0))
            self.settle()
        assert not self.formulas, "conditions use variables of their pattern"

    def prepared(self, edge: ql.Edge) -> ql.Edge | None:
        """Let constants restrict their neighbours. For a named edge, store its constant as a hidden variable."""
        ends = {side: end for side, end in (("head", edge.head), ("tail", edge.tail)) if not isinstance(end, str)}
        if not ends:
            return edge
        sets = {side: self.run.constant(end) for side, end in ends.items()}
        if edge.name or len(ends) == 2:
            for side, nodes in sets.items():
                name = next(self.run.hidden)
                self.types, self.domains[name] = {**self.types, name: None}, nodes
                self.unbound.add(name)
                edge = replace(edge, **{side: name})  # type: ignore[arg-type]
            if not edge.name and self.keep is None:
                self.keep = frozenset(name for name in self.names if not name.startswith("#")) | self.before
            return edge
        [(side, nodes)] = sets.items()
        self.restrict(edge.variables[0], self.run.reach(nodes, edge, forward=side == "head"))
        return None

    def restrict(self, name: str, nodes: NodeSet) -> None:
        if name in self.unbound:
            known = self.domains.get(name)
            self.domains[name] = nodes if known is None else known & nodes
        else:
            self.filter(name, nodes)

    def filter(self, name: str, nodes: NodeSet) -> None:
        column = self.table.columns[name]
        inside = nodes.holds(column.astype(np.int32))
        if not inside.all():
            self.table = self.table.take(inside)

    def needs(self, part: object) -> frozenset[str]:
        return ql.names_used(part) & self.names

    def settle(self) -> None:
        """Decide the conditions whose variables are bound, and drop variables that are not needed any more."""
        for formula in list(self.formulas):
            if self.needs(formula) <= self.table.columns.keys():
                self.formulas.remove(formula)
                self.table = self.table.take(self.run.holds(formula, self.table))
        if self.keep is None:
            return
        needed = self.keep.union(*map(ql.names_used, (*self.pending, *self.formulas, *self.optional)))
        columns = {name: column for name, column in self.table.columns.items() if name in needed}
        if len(columns) < len(self.table.columns):
            keys = [column.astype(np.int64) for column in columns.values()]
            _, first = arrays.row_ids(keys, self.table.size)
            self.table = Solutions(self.table.size, columns).take(first)

    def admitted(self, name: str, nodes: NodeSet) -> NodeSet:
        """Return the nodes that have the variable's type and meet the conditions on only this variable."""
        kind = self.types.get(name)
        if kind is not None:
            nodes = nodes & self.kb.nodes(kind)
        if name in self.domains:
            nodes = nodes & self.domains[name]
        for formula in list(self.formulas):
            if self.needs(formula) == {name} and name in self.unbound:
                self.formulas.remove(formula)
                nodes = NodeSet(nodes.array[self.run.holds(formula, Solutions(len(nodes), {name: nodes.array}))])
        return nodes

    def expected(self, name: str) -> float:
        """Estimate the number of nodes of a variable."""
        counts = {kind.name: kind.count for kind in self.kb.schema.node_types}
        size = float(len(self.domains[name])) if name in self.domains else 0.0
        if not size and name not in self.domains:
            kind = self.types.get(name)
            size = float(sum(counts.values()) if kind is None else counts.get(kind, 1))
        for formula in self.formulas:
            if self.needs(formula) == {name}:
                size /= 10 if isinstance(formula, ql.Compare) and formula.comparison == "=" else 3
        return size

    def fan_out(self, edge: ql.Edge, forward: bool) -> float:
        """Estimate the number of far ends of an edge per near end."""
        rows = self.kb.schema.relations if edge.relation is None else self.kb.schema.relation_rows(edge.relation)
        counts = {kind.name: kind.count for kind in self.kb.schema.node_types}
        near = {row.head if forward else row.tail for row in rows}
        ratio = sum(row.count for row in rows) / max(1, sum(counts.get(kind, 1) for kind in near))
        far = edge.tail if forward else edge.head
        total = max(1, sum(counts.values()))
        share = min(1.0, self.expected(str(far)) / total) if far in self.domains else 1.0
        return ratio * share * (1 if edge.is_single else 10)

    def advance(self) -> None:
        """Take the cheapest next step: an edge between bound variables, an edge from one, or a new variable."""
        bound = self.table.columns.keys()
        inside = next((edge for edge in self.pending if bound >= set(edge.variables)), None)
        if inside is not None:
            self.pending.remove(inside)
            self.join_bound(inside)
            return
        steps = [(edge, edge.head in bound) for edge in self.pending if bound & set(edge.variables)]
        if steps:
            edge, forward = min(steps, key=lambda step: self.fan_out(*step))
            self.pending.remove(edge)
            self.join_new(edge, forward)
            return
        self.start(min(sorted(self.unbound), key=self.expected))

    def start(self, name: str) -> None:
        """Bind a variable to which no edge leads from the table."""
        domain = self.domains.get(name)
        nodes = self.admitted(name, self.kb.nodes(self.types.get(name)) if domain is None else domain)
        self.unbound.discard(name)
        fresh = Solutions(len(nodes), {name: nodes.array})
        for formula in self.formulas:
            sides = self.equality(formula, name)
            if sides is not None:
                left = self.run.evaluate(sides[0], self.table)
                right = self.run.evaluate(sides[1], fresh)
                if comparable(left.kind, right.kind):
                    both = self.run.codes(arrays.concatenate(left, right), exact=False)
                    keys = both[: len(left)], np.where(both[len(left) :] < 0, -2, both[len(left) :])
                    rows, matches = self.run.match(*keys)
                    self.formulas.remove(formula)
                    self.merge(rows, {name: nodes.array[matches]})
                    return
        self.run.spend(self.table.size * len(nodes))
        rows = np.repeat(np.arange(self.table.size), len(nodes))
        self.merge(rows, {name: np.tile(nodes.array, self.table.size)})

    def equality(self, formula: ql.Formula, name: str) -> tuple[ql.Expression, ql.Expression] | None:
        """Return the side of an equality that the table has, and the side that a new variable has."""
        if not isinstance(formula, ql.Compare) or formula.comparison != "=" or not self.table.columns:
            return None
        for old, new in ((formula.left, formula.right), (formula.right, formula.left)):
            if self.needs(new) == {name} and self.needs(old) and self.needs(old) <= self.table.columns.keys():
                return (old, new) if not isinstance(new, ql.Named | ql.Nodes) else None
        return None

    def merge(self, rows: Ids, columns: Mapping[str, Array]) -> None:
        self.table = Solutions(len(rows), {**self.table.take(rows).columns, **columns})

    def join_new(self, edge: ql.Edge, forward: bool) -> None:
        """Follow an edge to a variable that is not bound yet."""
        here, there = (edge.head, edge.tail) if forward else (edge.tail, edge.head)
        assert isinstance(here, str)
        assert isinstance(there, str)
        column = self.table.columns[here]
        members = _members(column)
        extra: dict[str, Array] = {}
        if edge.name:
            near, far, numbers, found = self.run.step(members, edge, forward)
            extra[edge.name] = self.run.named_edges(edge.name, found)[numbers]
        else:
            near, far = self.run.pairs(members, edge, forward)
        if self.is_restricted(there, edge, forward):
            inside = np.flatnonzero(self.admitted(there, NodeSet.of(far)).holds(far))
            near, far, extra = near[inside], far[inside], {name: part[inside] for name, part in extra.items()}
        self.unbound.discard(there)
        rows, matches = self.run.match(column, near)
        self.merge(rows, {there: far[matches], **{name: part[matches] for name, part in extra.items()}})

    def is_restricted(self, name: str, edge: ql.Edge, forward: bool) -> bool:
        """Return whether an edge may lead to nodes outside the variable's domain."""
        if name in self.domains or any(self.needs(formula) == {name} for formula in self.formulas):
            return True
        kind = self.types.get(name)
        if kind is None or edge.relation is None or not edge.directed or not edge.is_single:
            return kind is not None
        return any(kind != (row.tail if forward else row.head) for row in self.kb.schema.relation_rows(edge.relation))

    def join_bound(self, edge: ql.Edge) -> None:
        """Select the rows whose two nodes an edge connects."""
        head, tail = (self.table.columns[name] for name in edge.variables)
        members, others = _members(head), _members(tail)
        forward = len(members) <= len(others)
        start = members if forward else others
        if edge.name:
            near, far, numbers, found = self.run.step(start, edge, forward)
        else:
            near, far = self.run.pairs(start, edge, forward)
        keys = _packed(near, far) if forward else _packed(far, near)
        wanted = np.where((head >= 0) & (tail >= 0), _packed(head, tail), -1)
        if not edge.name:
            self.table = self.table.take(np.isin(wanted, keys))
            return
        rows, matches = self.run.match(wanted, keys)
        self.merge(rows, {edge.name: self.run.named_edges(edge.name, found)[numbers][matches]})

    def outer_join(self, part: ql.Pattern) -> None:
        """Add the variables of an optional part. They are missing if it has no solution."""
        hidden, ids, seed = self.run.seed(part, self.table)
        keep = (
            None if self.keep is None else self.keep.union(seed.columns, *map(ql.names_used, self.formulas), part.bound)
        )
        found = self.run.extend(part, seed, keep)
        rows, matches = self.run.match(ids, found.columns[hidden])
        missing = np.setdiff1d(np.arange(self.table.size), rows)
        self.run.edge_names.update(part.edge_names)
        columns = {}
        for name in sorted(part.bound - self.table.columns.keys()):
            values = found.columns.get(name, np.full(found.size, -1))
            columns[name] = np.append(values[matches], np.full(len(missing), -1, values.dtype))
        self.merge(np.append(rows, missing), columns)


def _members(column: Array) -> NodeSet:
    return NodeSet.of(column[column >= 0])


def _packed(near: Array, far: Array) -> Ids:
    packed: Ids = (near.astype(np.int64) << 32) | far
    return packed


def _repeated(level: Array, count: int, step: Callable[[Array], Array]) -> Array:
    """Take `count` steps from a level. If a level comes again, skip whole rounds (Brent's algorithm)."""
    seen, seen_after, done = level, 0, 0
    while len(level) and done < count:
        level, done = step(level), done + 1
        if np.array_equal(level, seen):
            done = count - (count - done) % (done - seen_after)
        elif not done & (done - 1):
            seen, seen_after = level, done
    return level


def _without(pairs: Ids, sorted_pairs: Ids) -> Ids:
    """Return the pairs that are not in `sorted_pairs`."""
    if not len(sorted_pairs):
        return pairs
    found = sorted_pairs[np.minimum(sorted_pairs.searchsorted(pairs), len(sorted_pairs) - 1)]
    remaining: Ids = pairs[found != pairs]
    return remaining


def _unpacked(packed: Ids) -> tuple[Array, Array]:
    return (packed >> 32).astype(np.int32), (packed & 0xFFFFFFFF).astype(np.int32)
