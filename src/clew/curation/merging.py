"""Several nodes of a base made one: names and edges united, and a way back.

The node that is kept has its key, its name and its values; the others give it their names as aliases, what is written
about them, the values it lacks, and their edges. Their keys are kept in the attribute `merged_keys`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.building import BuildReport, Say, with_vectors, write_base
from clew.core.disk import refuse_link
from clew.core.errors import CorruptError, InputError
from clew.core.texts import parse_json
from clew.core.types import NodeRef
from clew.index.build import VECTORS, have_all_vectors
from clew.index.vector_store import FILE as EMBEDDER
from clew.index.vector_store import OWN
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.manifest import MANIFEST, read_manifest
from clew.kb.schema_file import SchemaEdits
from clew.kb.storage import locked, record, remove_recorded
from clew.kb.tables import GROUPS, Piece, Tables
from clew.kb.visibility import audience

MERGED = "merged_keys"

Row = dict[str, Any]


def merge(folder: Path, groups: Sequence[Sequence[NodeRef]], *, say: Say = lambda _: None) -> BuildReport:
    """Make each group its first node; the base as it was is kept for `clew dedup KB --undo`.

    Raise InputError if the nodes of a group are not for the same readers.
    """
    with locked(folder):
        old = ArrayKnowledgeBase.open(folder)
        for node in (node for group in groups for node in group):
            old.find(node.key)  # somebody else may have changed the base since
        edits = SchemaEdits.from_json(old.manifest.facts["edits"])
        had_vectors = have_all_vectors(old)
        tables = merged(old.to_tables(), [[node.key for node in group] for group in groups])
        say("keeping the base as it was")
        keep_state(folder)
        gone = sum(len(group) - 1 for group in groups)
        what = f"merged {gone:,} nodes into {len(groups):,}"
        old.release()

        def about_to(generation: str) -> None:
            record_change(folder, what, generation)

        report = write_base(tables, folder, edits, skip_bad=False, say=say, lenient=True, about_to=about_to)
        if had_vectors:
            say("vectors")
            report = with_vectors(report)
        return report


def merged(tables: Tables, groups: Sequence[Sequence[str]]) -> Tables:
    """The tables of a base in which the keys of each group are the first one."""
    leaders = {key: group[0] for group in groups for key in group}
    (nodes,), (edges,) = tables.nodes, tables.edges
    return replace(tables, nodes=(_merged_nodes(nodes, leaders),), edges=(_merged_edges(edges, leaders),))


def _merged_nodes(piece: Piece, leaders: Mapping[str, str]) -> Piece:
    table = piece.table
    touched = pc.is_in(table["key"], value_set=pa.array(list(leaders), table["key"].type))
    rows = {row["key"]: row for row in table.filter(touched).to_pylist()}
    members: dict[str, list[Row]] = {}
    for key, leader in leaders.items():
        members.setdefault(leader, []).append(rows[key])
    united = [_united(group) for group in members.values()]
    names = [*table.column_names, *([] if MERGED in table.column_names else [MERGED])]
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    kinds.setdefault(MERGED, pa.large_list(pa.large_string()))
    changed = pa.table({name: pa.array([row.get(name) for row in united], kinds[name]) for name in names})
    untouched = table.filter(pc.invert(touched))
    if MERGED not in table.column_names:
        untouched = untouched.append_column(MERGED, pa.nulls(untouched.num_rows, kinds[MERGED]))
    return Piece(pa.concat_tables([untouched, changed.select(untouched.column_names)]), piece.file)


def _united(group: Sequence[Row]) -> Row:
    """The first row with what the others add."""
    first, *others = group
    for other in others:
        if audience(first.get(GROUPS)) != audience(other.get(GROUPS)):
            raise InputError(f"{first['key']!r} and {other['key']!r} are for different groups: they cannot be merged")
    row = {name: next((one[name] for one in group if one[name] not in (None, "", [])), None) for name in first}
    names = dict.fromkeys(name for one in group for name in (one["name"], *(one["aliases"] or ())))
    row["aliases"] = [name for name in names if name != first["name"]]
    row["text"] = "\n\n".join(dict.fromkeys(one["text"] for one in group if one["text"]))
    row |= {name: first[name] for name in ("key", "type", "name")}
    earlier = [key for one in group for key in one.get(MERGED) or ()]
    return row | {MERGED: [*earlier, *(one["key"] for one in others)]}


def _merged_edges(piece: Piece, leaders: Mapping[str, str]) -> Piece:
    """Edges between what is one now are gone, and those that became the same are one."""
    table = piece.table
    marks = []
    for end in ("head", "tail"):
        keys = table[end]
        places = pc.index_in(keys, value_set=pa.array(list(leaders), keys.type))
        instead = pa.array(list(leaders.values()), keys.type).take(places)
        table = table.set_column(table.column_names.index(end), end, pc.coalesce(instead, keys))
        marks.append(pc.is_valid(places))
    moved = pc.or_(*marks)
    rows = table.filter(pc.and_(moved, pc.not_equal(table["head"], table["tail"]))).to_pylist()
    distinct = {repr(sorted(row.items())): row for row in rows}
    united = pa.Table.from_pylist(list(distinct.values()), table.schema)
    return Piece(pa.concat_tables([table.filter(pc.invert(moved)), united]), piece.file)


UNDO = ".clew-undo"
_KEPT, _CHANGE = "kept", "change.json"


def keep_state(folder: Path) -> None:
    """Keep the files of a base that its caller has locked and is about to change."""
    place = folder / UNDO
    refuse_link(place)
    shutil.rmtree(place, ignore_errors=True)
    manifest = read_manifest(folder)
    lasting = [Path(manifest.generation, name) for name in manifest.files]
    for relative in (Path(MANIFEST), *lasting, *_vector_files(folder)):
        target = place / _KEPT / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if relative not in lasting or not _linked(folder / relative, target):
            shutil.copy2(folder / relative, target)


def record_change(folder: Path, what: str, generation: str) -> None:
    """Say which generation is about to take the place of the kept one: a kill afterwards can still be undone."""
    told = {"what": what, "generation": generation}
    (folder / UNDO / _CHANGE).write_text(json.dumps(told, ensure_ascii=False) + "\n", "utf-8")


def undo(folder: Path) -> str:
    """Put the kept state back, and return what was undone."""
    read_manifest(folder)
    with locked(folder):
        place = folder / UNDO
        told, changed = _last_change(place), read_manifest(folder).generation
        before = None if told is None else read_manifest(place / _KEPT)
        if told is None or before is None or changed == before.generation:
            _remove(folder, place)  # of a merge or an undo that was killed
            raise InputError(f"{folder}: there is nothing to undo")
        if changed != told["generation"]:
            raise InputError(f"{folder} was changed again since ({told['what']}): undoing would lose the later change")
        kept = [Path(before.generation, name) for name in before.files] + list(_vector_files(place / _KEPT))
        refuse_link(place / _KEPT, *(base / part for base in (folder, place / _KEPT) for part in _parts(kept)))
        record(folder, changed)  # before it is replaced: whoever is killed then leaves it to the next command
        for relative in (*kept, Path(MANIFEST)):  # the manifest last: replacing it is the moment of the change
            _put_back(place / _KEPT / relative, folder / relative)
        _remove_vectors(folder, set(_vector_files(folder)) - set(kept))
        _remove(folder, place)
        return str(told["what"])


def _last_change(place: Path) -> dict[str, str] | None:
    """What the kept state was left for; None where that was never written down."""
    try:
        told = parse_json((place / _CHANGE).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        told = None
    if not isinstance(told, dict) or not {"what", "generation"} <= told.keys():
        raise CorruptError(f"{place / _CHANGE} is damaged: remove {place}, and the base stays as it is")
    return {name: str(value) for name, value in told.items()}


def _remove(folder: Path, place: Path) -> None:
    """Remove what was kept, and generations that were replaced, but for one that somebody has open."""
    remove_recorded(folder)
    refuse_link(place)
    (place / _CHANGE).unlink(missing_ok=True)  # first: without it the rest means nothing
    shutil.rmtree(place, ignore_errors=True)


def _vector_files(folder: Path) -> Iterator[Path]:
    """The files of the vectors, relative to the folder."""
    for file in sorted((folder / VECTORS).rglob("*")):
        if file.is_file() and not file.is_symlink() and (OWN.fullmatch(file.name) or file.name == EMBEDDER):
            yield file.relative_to(folder)


def _parts(files: Sequence[Path]) -> set[Path]:
    """Files with the folders they lie in: none of them may lead out of the base."""
    return {part for file in files for part in (file, *file.parents) if part.name}


def _remove_vectors(folder: Path, files: set[Path]) -> None:
    for relative in files:
        (folder / relative).unlink()
    for place in sorted({(folder / relative).parent for relative in files} | {folder / VECTORS}, reverse=True):
        with suppress(OSError):  # something is left in it, or it was never there
            place.rmdir()


def _linked(file: Path, target: Path) -> bool:
    """Whether the file system could link instead of copy."""
    try:
        os.link(file, target)
    except OSError:
        return False
    return True


def _put_back(kept: Path, file: Path) -> None:
    if file.exists() and file.samefile(kept):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.undo")
    draft.unlink(missing_ok=True)
    shutil.copy2(kept, draft)
    draft.replace(file)
