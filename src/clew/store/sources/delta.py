"""Apply changes to the tables of a knowledge base, with the same result as a new build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import InputError, SourceError
from clew.store.graph.tables import EDGE_COLUMNS, GROUPS, STRING, Piece, Problem, Tables, Visibility, texts_of
from clew.store.graph.visibility import Row, Rules, apply_rules, audience, edge_content, has_groups
from clew.store.sources.categories import linked_as_in
from clew.store.sources.columns import kind_of_columns
from clew.store.sources.delimited import sniff
from clew.store.sources.files import SourceOptions, kind_of, read_utf8
from clew.store.sources.pieces import is_list, is_text
from clew.store.sources.read import DELIMITED, read_sources
from clew.store.sources.wide import agreed, cast_to, common_type

_NOTHING = Tables((), ())


@dataclass(frozen=True, eq=False)
class Delta:
    """Changes: deletions first, then additions and updates.

    A node with an existing key changes only in the given values. To clear a value, delete the node in the same delta.
    The edges given for a (head, relation, tail) replace all existing edges, and keep their groups unless other groups
    are given. Deleting a node deletes its edges. New nodes get groups by the rules of the base.
    """

    upserts: Tables = _NOTHING
    delete_nodes: tuple[Piece, ...] = ()
    """Tables with a column `key`."""
    delete_edges: tuple[Piece, ...] = ()
    """Tables with the columns `head`, `relation` and `tail`."""


def read_delta(
    paths: Sequence[Path | str] = (),
    options: SourceOptions | None = None,
    *,
    delete_nodes: Sequence[Path | str] = (),
    delete_edges: Sequence[Path | str] = (),
) -> Delta:
    """Read a delta from files. `delete_nodes` may contain keys, and files with one key per line or with a table."""
    options = options or SourceOptions()
    given = [*paths, *options.nodes, *options.edges, *options.triples]
    if not given and not delete_nodes and not delete_edges:
        raise InputError("no changes: give files to add, --delete-nodes or --delete-edges")
    upserts = read_sources(paths, options, partial=True) if given else _NOTHING
    removed_nodes = [_key_piece(Path(source), options) for source in delete_nodes if Path(source).is_file()]
    if named := [str(source) for source in delete_nodes if not Path(source).is_file()]:
        removed_nodes.append(Piece(pa.table({"key": named}), "--delete-nodes"))
    removed_edges = [piece for path in delete_edges for piece in _edge_pieces(Path(path), options)]
    return Delta(upserts, tuple(removed_nodes), tuple(removed_edges))


def apply_delta(old: Tables, delta: Delta) -> Tables:
    """Return the new tables. Deletions without a match are listed in `skipped`."""
    upserts, replaced = linked_as_in(old, delta.upserts)
    old = replace(old, edges=tuple(_unlinked(piece, replaced) for piece in old.edges))
    delta = replace(delta, upserts=upserts)
    nodes, skipped = _without_nodes(old.nodes, delta.delete_nodes)
    edges, missing = _without_edges(old.edges, delta.delete_edges)
    for end in ("head", "tail"):
        edges = _without(edges, end, texts_of(delta.delete_nodes))
    known = texts_of(nodes)
    rules = old.visibility.rules
    changed = tuple(_ruled(_changed(piece, nodes, known), rules, known) for piece in delta.upserts.nodes)
    nodes = _without(nodes, "key", texts_of(delta.upserts.nodes))
    given = tuple(_with_groups(piece, edges) for piece in delta.upserts.edges)
    edges, _ = _without_edges(edges, delta.upserts.edges)
    return replace(
        old,
        nodes=agreed([*nodes, *changed]),
        edges=agreed([*edges, *given]),
        implicit=old.implicit or delta.upserts.implicit,
        implicit_type=delta.upserts.implicit_type if delta.upserts.implicit else old.implicit_type,
        notes=tuple(dict.fromkeys((*old.notes, *delta.upserts.notes))),
        skipped=(*old.skipped, *delta.upserts.skipped, *skipped, *missing),
        visibility=Visibility(upserts.visibility.column or old.visibility.column, rules),
    )


def _without_nodes(nodes: tuple[Piece, ...], deleted: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], list[Problem]]:
    skipped = []
    for gone in deleted:
        keys = gone.texts("key")
        absent = pc.invert(pc.is_in(keys, value_set=texts_of(nodes)))
        for row in pc.indices_nonzero(absent).to_pylist():
            skipped.append(
                Problem(f"no node has the key {keys[row].as_py()!r}, to be deleted", gone.file, gone.line(row))
            )
    return _without(nodes, "key", texts_of(deleted)), skipped


def _without_edges(edges: tuple[Piece, ...], deleted: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], list[Problem]]:
    """Return the edges without the listed (head, relation, tail), and the listed triples that do not exist."""
    wanted: dict[tuple[str, ...], tuple[str, int]] = {}
    for gone in deleted:
        for row, triple in enumerate(zip(*(gone.texts(name).to_pylist() for name in EDGE_COLUMNS), strict=True)):
            wanted.setdefault(triple, (gone.file, gone.line(row)))
    if not wanted:
        return edges, []
    found: set[tuple[str, ...]] = set()
    heads = pa.array({head for head, _, _ in wanted}, STRING)
    kept = []
    for piece in edges:
        # compare only the few edges that share a head with the listed edges
        candidates = pc.indices_nonzero(pc.is_in(piece.texts("head"), value_set=heads))
        near = piece.table.select(EDGE_COLUMNS).take(candidates)
        triples = list(zip(*(near[name].cast(STRING).to_pylist() for name in EDGE_COLUMNS), strict=True))
        found.update(wanted.keys() & set(triples))
        rows = [row for row, triple in zip(candidates.to_pylist(), triples, strict=True) if triple in wanted]
        if rows:
            gone_rows = np.zeros(piece.table.num_rows, dtype=np.bool_)
            gone_rows[rows] = True
            piece = _kept(piece, pa.array(gone_rows))
        kept.append(piece)
    missing = [
        Problem(f"no edge {' —'.join(triple[:2])}→ {triple[2]}, to be deleted", *place)
        for triple, place in wanted.items()
        if triple not in found
    ]
    return tuple(kept), missing


def _unlinked(edges: Piece, columns: Sequence[Piece]) -> Piece:
    """Remove the edges that a column of changed rows replaces."""
    for given in columns:
        is_same = pc.equal(edges.texts("relation"), given.table["relation"][0])
        edges = _kept(edges, pc.and_(is_same, pc.is_in(edges.texts("head"), value_set=given.texts("head"))))
    return edges


def _changed(piece: Piece, old: tuple[Piece, ...], known: pa.ChunkedArray) -> Piece:
    """Fill the rows of a delta with the values of the old nodes with the same keys."""
    places = pc.index_in(piece.texts("key"), value_set=known)
    columns = {"key": piece.texts("key")}
    names = dict.fromkeys([*piece.table.column_names, *(name for other in old for name in other.table.column_names)])
    for name in names:
        if name == "key":
            continue
        given = piece.table[name] if name in piece.table.column_names else None
        columns[name] = _preferred(given, _old_values(old, name, places))
    return Piece(pa.table(columns), piece.file, piece.first_line, piece.lines)


def _ruled(piece: Piece, rules: Rules, known: pa.ChunkedArray) -> Piece:
    """Apply the rules of the base to new nodes without groups."""
    if not rules:
        return piece
    is_free = pc.invert(pc.is_in(piece.texts("key"), value_set=known))
    if GROUPS in piece.table.column_names:
        is_free = pc.and_(
            is_free, pc.invert(pc.fill_null(pc.greater(pc.list_value_length(piece.table[GROUPS]), 0), False))
        )
    return apply_rules(piece, rules, is_free)[0]


def _with_groups(piece: Piece, old: Sequence[Piece]) -> Piece:
    """Copy the groups of replaced edges to edges of a delta without groups.

    If parallel edges have different groups, use the edge with the same attributes.
    """
    if not any(map(has_groups, old)):
        return piece
    heads = piece.texts("head")
    near = [row for other in old for row in other.table.filter(pc.is_in(other.texts("head"), heads)).to_pylist()]
    before: dict[tuple[str, ...], list[Row]] = {}
    for row in near:
        before.setdefault(tuple(str(row[name]) for name in EDGE_COLUMNS), []).append(row)
    groups = [_kept_groups(row, before, piece, index) for index, row in enumerate(piece.table.to_pylist())]
    table = piece.table.drop_columns([GROUPS]) if GROUPS in piece.table.column_names else piece.table
    return replace(piece, table=table.append_column(GROUPS, pa.array(groups, pa.list_(pa.string()))))


def _kept_groups(row: Row, before: dict[tuple[str, ...], list[Row]], piece: Piece, place: int) -> list[str] | None:
    triple = tuple(str(row[name]) for name in EDGE_COLUMNS)
    parallel = before.get(triple, [])
    if row.get(GROUPS) or not parallel:
        return row.get(GROUPS)
    same = [other for other in parallel if edge_content(other) == edge_content(row)] or parallel
    audiences = {audience(other.get(GROUPS)) for other in same}
    if len(audiences) > 1 and same is parallel:
        shown = f"{' —'.join(triple[:2])}→ {triple[2]}"
        raise SourceError(
            f"the parallel edges {shown} are for different groups: give the column of groups (--map groups=COLUMN)",
            file=piece.file,
            line=piece.line(place),
        )
    return None if frozenset() in audiences else sorted(frozenset().union(*audiences))


def _old_values(old: tuple[Piece, ...], name: str, places: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of the old nodes at some places. None if no node has a value."""
    types = {piece.table[name].type for piece in old if name in piece.table.column_names} - {pa.null()}
    if not types:
        return None
    kind = common_type(types)
    chunks = []
    for piece in old:
        if name in piece.table.column_names:
            chunks += cast_to(piece.table[name], kind).chunks
        else:
            chunks.append(pa.nulls(piece.table.num_rows, kind))
    return pa.chunked_array(chunks, kind).take(places)


def _preferred(given: pa.ChunkedArray | None, before: pa.ChunkedArray | None) -> pa.ChunkedArray:
    """Return the given value, or else the old value."""
    if given is None or before is None:
        return before if given is None else given
    kind = common_type({given.type, before.type} - {pa.null()}) if given.type != before.type else given.type
    given, before = cast_to(given, kind), cast_to(before, kind)
    present = pc.is_valid(given)
    if is_list(kind):
        present = pc.and_(present, pc.fill_null(pc.greater(pc.list_value_length(given), 0), False))
    elif is_text(kind):
        present = pc.and_(present, pc.fill_null(pc.not_equal(given, ""), False))
    return pc.if_else(present, given, before)


def _without(pieces: Sequence[Piece], column: str, gone: pa.ChunkedArray) -> tuple[Piece, ...]:
    """Return the pieces without the rows with one of these texts in a column."""
    return tuple(_kept(piece, pc.is_in(piece.texts(column), value_set=gone)) for piece in pieces)


def _kept(piece: Piece, gone: pa.ChunkedArray | pa.Array) -> Piece:
    """Return the piece without the marked rows."""
    return piece.filter(pc.invert(gone)) if pc.any(gone).as_py() else piece


def _key_piece(path: Path, options: SourceOptions) -> Piece:
    """Read the keys of a node table, or of a list with one key per line."""
    if kind_of(path) in DELIMITED:
        data = read_utf8(path, options.encoding)
        if kind_of_columns(sniff(data, path).header, options.columns) is None:
            lines = data.decode("utf-8").split("\n")
            keys = {number: key for number, line in enumerate(lines, 1) if (key := line.strip())}
            return Piece(pa.table({"key": list(keys.values())}), str(path), lines=pa.array(keys, pa.int64()))
    (piece,) = read_sources((), replace(options, nodes=(path,), edges=(), triples=())).nodes
    return replace(piece, table=piece.table.select(["key"]))


def _edge_pieces(path: Path, options: SourceOptions) -> tuple[Piece, ...]:
    pieces = read_sources([path], replace(options, nodes=(), edges=(), triples=())).edges
    if not pieces:
        raise SourceError("--delete-edges needs head, relation and tail", file=path)
    return tuple(replace(piece, table=piece.table.select(EDGE_COLUMNS)) for piece in pieces)
