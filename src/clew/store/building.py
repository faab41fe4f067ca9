"""Build a knowledge base from source tables. Graph and indexes are committed together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.core.addresses import is_postgres
from clew.core.errors import CorruptError, InputError, LockedError, ModelError, StorageError, UntrustedEmbedder
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.manifest import altered_texts, is_base, read_manifest, remedy_for
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.storage import commit, locked, staging, verify
from clew.store.graph.tables import Problem, Problems, Tables, Visibility
from clew.store.graph.visibility import fingerprint, groups_in, refuse_widening
from clew.store.index.build import (
    build_indexes,
    forget_old_rows,
    forget_rows,
    have_all_vectors,
    renew_vectors,
    vector_folder,
)
from clew.store.index.vectors import vector_problems
from clew.store.sources.delta import Delta, apply_delta, read_delta
from clew.store.sources.files import SourceOptions

if TYPE_CHECKING:  # an extra
    from clew.store.postgres.connection import Address

Say = Callable[[str], None]
PATIENCE = 600.0
"""Seconds to wait for another process that builds the same base."""


@dataclass(frozen=True)
class BuildReport:
    """Counts of a finished build, and the source rows that were skipped."""

    folder: str | Path
    """Folder of the base, or the address of a database without its password."""
    nodes: int
    edges: int
    skipped: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def build(
    tables: Tables,
    folder: Path,
    *,
    edits: SchemaEdits | None = None,
    skip_bad: bool = False,
    widen: bool = False,
    say: Say = lambda _: None,
) -> BuildReport:
    """Build or replace a knowledge base. After a crash, the folder contains the old base or none.

    `widen` allows the new base to show restricted content of the old base to more people.
    """
    with locked(folder):
        report = write_base(tables, folder, edits or SchemaEdits(), skip_bad, say, widen=widen)
        forget_rows(folder)
        return report


def build_once(is_built: Callable[[], bool], build: Callable[[], object]) -> None:
    """Build a cached base unless it is built. Wait while another process builds it, at most `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not is_built():
        try:
            build()
            return
        except LockedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def into(
    place: str | Path,
    build_in: Callable[[Path], BuildReport],
    say: Say = lambda _: None,
    replacing: int | None = None,
    *,
    widen: bool = False,
) -> BuildReport:
    """Build in a folder, or in a temporary folder that is then loaded into the database at `place`.

    In a database, `replacing` is the generation that must still be current, 0 for none. `widen` allows the new base to
    show content to more people than before.
    """
    if not is_postgres(place):
        return build_in(Path(place))
    from clew.store.postgres.connection import Address

    return _loaded(Address.parse(str(place)), build_in, say, replacing, widen)


def _loaded(
    address: Address, build_in: Callable[[Path], BuildReport], say: Say, replacing: int | None, widen: bool
) -> BuildReport:
    from clew.store.postgres.loading import publish

    with TemporaryDirectory(prefix="clew-") as scratch:
        report = build_in(Path(scratch) / "base.kb")
        say("loading")
        publish(Path(report.folder), address, replacing, widen=widen)
    return replace(report, folder=str(address))


def facts_of(place: str | Path) -> Mapping[str, Any]:
    """Return the facts of the base at an address."""
    if not is_postgres(place):
        return read_manifest(Path(place)).facts
    from clew.store.postgres.catalog import current
    from clew.store.postgres.connection import Address

    return current(Address.parse(str(place))).facts


def read_changes(
    place: str | Path,
    paths: Sequence[Path | str] = (),
    options: SourceOptions | None = None,
    *,
    delete_nodes: Sequence[Path | str] = (),
    delete_edges: Sequence[Path | str] = (),
) -> Delta:
    """Read changes to a base from files. Use its column of groups unless `options` map another column."""
    facts = facts_of(place)
    column = Visibility.from_facts(facts).column
    attributes = frozenset(facts.get("schema", {}).get("attribute_types", {}))
    options = replace(options or SourceOptions(), attributes=attributes)
    if column is not None and "groups" not in options.columns:
        options = replace(options, columns={**options.columns, "groups": column}, groups_optional=True)
    return read_delta(paths, options, delete_nodes=delete_nodes, delete_edges=delete_edges)


def update(
    place: str | Path, delta: Delta, *, skip_bad: bool = False, widen: bool = False, say: Say = lambda _: None
) -> BuildReport:
    """Add, change and delete nodes and edges. The result equals a new build with unchanged embeddings reused.

    Raise InputError if content would become visible to more people, unless `widen` is set.
    """
    if is_postgres(place):
        return _update_database(str(place), delta, skip_bad, widen, say)
    folder = Path(place)
    with locked(folder):
        old = ArrayKnowledgeBase.open(folder)
        edits = SchemaEdits.from_json(old.manifest.facts.get("edits"))
        say("changes")
        tables = apply_delta(old.to_tables(), delta)
        old.release()
        return write_base(tables, folder, edits, skip_bad, say, lenient=True, widen=widen, renew=True)


def _update_database(url: str, delta: Delta, skip_bad: bool, widen: bool, say: Say) -> BuildReport:
    """Update a base in PostgreSQL: build a new generation from the current generation and the changes."""
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase
    from clew.store.postgres.vectors import have_all_vectors, renew_vectors

    old = PostgresKnowledgeBase.open(url)
    had_vectors = have_all_vectors(old)
    say("changes")
    tables, edits = apply_delta(old.to_tables(), delta), SchemaEdits.from_json(old.generation.facts.get("edits"))

    def build_in(folder: Path) -> BuildReport:
        with locked(folder):
            return write_base(tables, folder, edits, skip_bad, say, lenient=True)

    report = _loaded(old.address, build_in, say, old.generation.id, widen)
    old.release()
    if had_vectors:
        say("vectors")
        try:
            renew_vectors(PostgresKnowledgeBase.open(url))
        except (ModelError, UntrustedEmbedder) as error:
            return _without_vectors(report, error)
    return report


def check(place: str | Path) -> list[str]:
    """Return all problems of a knowledge base: damaged files first, then whether it opens and is consistent."""
    if is_postgres(place):
        from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

        return PostgresKnowledgeBase.open(str(place)).inconsistencies()
    folder = Path(place)
    problems = [*verify(folder), *vector_problems(vector_folder(folder)), *_text_problems(folder)]
    if problems:
        return problems
    try:
        return ArrayKnowledgeBase.open(folder).inconsistencies()
    except StorageError as error:
        return [str(error)]


def _text_problems(folder: Path) -> list[str]:
    remedy = f"`clew repair {folder}` keeps all readable parts"
    return [f"{file} was altered: {remedy}, and {remedy_for(file)}" for file in altered_texts(folder)]


def _refuse_widening(folder: Path, new: ArrayKnowledgeBase, groups: Sequence[str]) -> None:
    with suppress(CorruptError):  # a damaged manifest lists no groups
        had_groups = read_manifest(folder).facts.get("groups", ())
        try:
            old = ArrayKnowledgeBase.open(folder)
        except CorruptError:
            if lost := sorted(set(had_groups).difference(groups)):
                text = f"{folder} is damaged, and its new sources lack the groups {', '.join(lost)}"
                raise InputError(f"{text}: give --map groups=COLUMN or --visible FILE, or add --widen") from None
        else:
            if had_groups:
                refuse_widening(old.to_tables(), new.to_tables(), folder)
            old.release()


def _without_vectors(report: BuildReport, error: Exception) -> BuildReport:
    note = f"new nodes have no vectors ({error}): run `clew embed {report.folder}`"
    return replace(report, notes=(*report.notes, note))


def write_base(
    tables: Tables,
    folder: Path,
    edits: SchemaEdits,
    skip_bad: bool,
    say: Say,
    *,
    lenient: bool = False,
    widen: bool = True,
    renew: bool = False,
    merged: str | None = None,
) -> BuildReport:
    """Build in a folder that the caller has locked.

    Without `widen`, raise InputError if content of the old base would become visible to more people. `renew` computes
    missing vectors before the new generation is used, if the old generation had vectors. `merged` describes a merge, so
    that it can be undone.
    """
    problems = Problems(skip_bad)
    failure: list[Exception] = []
    with staging(folder) as stage:
        say("graph")
        graph = write_graph(tables, stage, problems)
        edits = (edits.within(graph.schema) if lenient else edits).answering(tables.answers, graph.schema)
        facts = graph.to_json(edits.apply(graph.schema)) | {"edits": edits.to_json()}
        staged = ArrayKnowledgeBase.staged(stage, facts)
        groups = groups_in(staged.columns(), staged.edge_columns)
        facts |= tables.visibility.to_facts()
        if groups:
            facts |= {"groups": groups, "restrictions": fingerprint(staged.to_tables())}
        if not widen and is_base(folder):
            _refuse_widening(folder, staged, groups)
        pa.default_memory_pool().release_unused()  # indexes take as much memory again
        say("indexes")
        facts |= {"language": build_indexes(staged, stage / "index")}

        def embed(generation: Path) -> None:
            kb = ArrayKnowledgeBase.staged(generation, facts, folder)
            if renew and have_all_vectors(kb):
                say("vectors")
                try:
                    renew_vectors(kb)
                except (ModelError, UntrustedEmbedder) as error:
                    failure.append(error)

        say("checksums")
        commit(folder, stage, facts, embed, merged)
    forget_old_rows(folder)
    report = BuildReport(folder, graph.nodes, graph.edges, problems.count, tuple(problems.listed), graph.notes)
    return _without_vectors(report, failure[0]) if failure else report
