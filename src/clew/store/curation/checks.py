"""Find doubtful data in a base, as opposed to damaged files: `clew check`.

A base may contain such data on purpose, so a finding is not an error. Each has a count, examples and advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.schema import Relation
from clew.core.types import IntArray
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import NODE_COLUMNS

RARE = 0.01
"""Maximum share of a relation's edges at which a pair of types is doubtful."""
MOSTLY = 0.9
"""Minimum share of numbers among the texts of an attribute at which its other texts are doubtful."""
_NUMBER = r"^\s*[-+]?[0-9]+([.,][0-9]+)?\s*$"
_LETTER = r"[\p{L}\p{N}\p{S}]"

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """A kind of problem: its count, some examples, and advice."""

    kind: str
    count: int
    what: str
    examples: tuple[str, ...]
    advice: str


def check_data(kb: ArrayKnowledgeBase, most: int = 5) -> list[Finding]:
    """Return all doubtful data, with up to `most` examples each."""
    return [finding for look in _LOOKS for finding in look(_Seen(kb, most))]


class _Seen:
    """Data shared by several checks."""

    def __init__(self, kb: ArrayKnowledgeBase, most: int) -> None:
        self.kb = kb
        self.most = most
        self.columns = kb.columns()
        self.names = self.columns.column("name")
        self.keys = self.columns.column("key")
        self.degrees = kb.degrees(kb.nodes().array)
        self.called_by_key = _mask(pc.equal(self.names, self.keys))

    def examples(self, nodes: IntArray | NDArray[np.int64]) -> tuple[str, ...]:
        """Return the first nodes as text."""
        return tuple(
            f"{ref.name!r} ({ref.type}, {ref.key})" for ref in self.kb.refs(nodes[: self.most].astype(np.int32))
        )

    def found(self, kind: str, mask: Mask, what: str, advice: str) -> Iterator[Finding]:
        """Yield a finding about the marked nodes, if any."""
        nodes = np.flatnonzero(mask)
        if len(nodes):
            yield Finding(kind, len(nodes), what, self.examples(nodes), advice)


def _dangling(seen: _Seen) -> Iterator[Finding]:
    """Find nodes without data except their key that only edges name, if most nodes are described."""
    bare = seen.called_by_key.copy()
    for name in seen.columns.schema.names:
        column = seen.columns.column(name)
        if name == "text":
            bare &= _mask(pc.equal(column, ""))
        elif name not in NODE_COLUMNS or name == "aliases":
            bare &= _mask(column.is_null())
    if 2 * bare.sum() < len(bare):
        what = "nodes that edges refer to and no source describes"
        yield from seen.found(
            "dangling", bare & (seen.degrees > 0), what, "add their rows, or delete them: clew update"
        )


def _unnamed(seen: _Seen) -> Iterator[Finding]:
    """Find nodes named by their key, in types where most have a name, and names without letters, digits or signs."""
    types = seen.kb.types
    counts = np.bincount(types, minlength=len(seen.kb.schema.node_types))
    keyed = np.bincount(types[seen.called_by_key], minlength=len(counts))
    named_types = 2 * keyed < counts
    wordless = _mask(pc.invert(pc.match_substring_regex(seen.names, _LETTER)))
    empty = (seen.called_by_key & named_types[types]) | wordless
    yield from seen.found(
        "empty name", empty, "nodes without a name", "give them one: clew update, or --map name=COLUMN"
    )


def _duplicates(seen: _Seen) -> Iterator[Finding]:
    """Find names that several nodes of a type share, ignoring case."""
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(seen.names))
    table = pa.table({"type": pa.array(seen.kb.types), "name": plain, "node": pa.array(np.arange(seen.kb.count))})
    groups = table.group_by(["type", "name"]).aggregate([("node", "count"), ("node", "min")])
    groups = groups.filter(pc.greater(groups["node_count"], 1)).sort_by(
        [("node_count", "descending"), ("node_min", "ascending")]
    )
    if not groups.num_rows:
        return
    first = groups.slice(0, seen.most)
    refs = seen.kb.refs(first["node_min"].to_numpy().astype(np.int32))
    counts = first["node_count"].to_pylist()
    examples = tuple(f"{ref.name!r}: {count} of type {ref.type}" for ref, count in zip(refs, counts, strict=True))
    advice = "run clew dedup to find and merge nodes that are the same"
    yield Finding("duplicate name", groups.num_rows, "names that several nodes of a type have", examples, advice)


def _isolated(seen: _Seen) -> Iterator[Finding]:
    """Find nodes and whole types without edges, if the base has edges."""
    if not seen.kb.edge_count:
        return
    lonely = seen.degrees == 0
    totals = np.bincount(seen.kb.types, minlength=len(seen.kb.schema.node_types))
    alone = np.bincount(seen.kb.types[lonely], minlength=len(totals))
    unused = alone == totals
    advice = "check that the edges and the nodes use the same keys"
    yield from seen.found("isolated", lonely & ~unused[seen.kb.types], "nodes without an edge", advice)
    if unused.any():
        names = [seen.kb.schema.type_names[code] for code in np.flatnonzero(unused)]
        shown = tuple(f"{name}: {totals[seen.kb.schema.type_code[name]]:,} nodes" for name in names[: seen.most])
        yield Finding("unused type", len(names), "types without an edge to anything", shown, advice)


def _types_disagree(seen: _Seen) -> Iterator[Finding]:
    """Find edges of a relation between types that it rarely connects."""
    rare: list[Relation] = []
    for name in seen.kb.schema.relation_names:
        rows = seen.kb.schema.relation_rows(name)
        total = sum(row.count for row in rows)
        rare += [row for row in rows if row.count <= RARE * total]
    if rare:
        shown = tuple(f"{row.head} —{row.name}→ {row.tail}: {row.count:,} edges" for row in rare[: seen.most])
        what = f"edges between types that have at most {RARE:.0%} of their relation"
        advice = "check the type and key of both ends"
        yield Finding("types disagree", sum(row.count for row in rare), what, shown, advice)


def _values_disagree(seen: _Seen) -> Iterator[Finding]:
    """Find text attributes in which nearly all values are numbers."""
    for name, kind in seen.kb.schema.attribute_types.items():
        if kind != "text":
            continue
        column = seen.columns.column(name)
        numeric = pc.match_substring_regex(column, _NUMBER)
        present, numbers = len(column) - column.null_count, pc.sum(numeric).as_py() or 0
        if present > numbers > MOSTLY * present:
            others = column.filter(pc.and_(column.is_valid(), pc.invert(numeric)))
            shown = tuple(repr(value) for value in pc.unique(others).slice(0, seen.most).to_pylist())
            what = f"values of {name!r} that are not numbers, unlike most"
            yield Finding("values disagree", len(others), what, shown, "clear or correct them to compare the numbers")


def _cycles(seen: _Seen) -> Iterator[Finding]:
    """Find nodes of a hierarchy that are their own ancestors."""
    for name in seen.kb.schema.relation_names:
        if not any(row.transitive for row in seen.kb.schema.relation_rows(name)):
            continue
        edges = seen.kb.edges(seen.kb.nodes(), name, "out")
        heads, tails = _within_cycles(edges.heads, edges.tails, seen.kb.count)
        if len(heads):
            ring = _ring(heads, tails)
            shown = " → ".join(ref.name for ref in seen.kb.refs(np.array([*ring, ring[0]], dtype=np.int32)))
            what = f"nodes of the hierarchy {name!r} on cycles or between them"
            advice = "delete one edge of each cycle: clew update --delete-edges"
            yield Finding("cycle", len(np.unique(heads)), what, (shown,), advice)


def _within_cycles(heads: IntArray, tails: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Remove edges at the ends of the hierarchy repeatedly. Return the remaining edges."""
    while len(heads):
        below, above = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        below[tails], above[heads] = True, True
        kept = below[heads] & above[tails]  # the head has a predecessor, and the tail a successor
        if kept.all():
            break
        heads, tails = heads[kept], tails[kept]
    return heads, tails


def _ring(heads: IntArray, tails: IntArray) -> list[int]:
    """Return one cycle among edges that each have a successor."""
    following = dict(zip(heads[::-1].tolist(), tails[::-1].tolist(), strict=True))
    walk: dict[int, int] = {}
    node = int(heads[0])
    while node not in walk:
        walk[node] = len(walk)
        node = following[node]
    return list(walk)[walk[node] :]


def _mask(marks: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(marks, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


_LOOKS: tuple[Callable[[_Seen], Iterator[Finding]], ...] = (
    *(_dangling, _unnamed, _duplicates, _cycles, _types_disagree, _values_disagree, _isolated),
)
