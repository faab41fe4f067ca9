"""Read any sources as tables. Each file is recognised by its suffix, its columns or its records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.addresses import is_bolt
from clew.core.disk import list_files
from clew.core.errors import InputError, SourceError
from clew.store.graph.node_table import with_edge_groups
from clew.store.graph.tables import Piece, Problem, Tables, Visibility, texts_of
from clew.store.sources.bolt import read_graph
from clew.store.sources.columns import edge_roles, is_vague, kind_of_columns, node_roles
from clew.store.sources.databases import DATABASE_FILES, SQLITE_FILES, is_sqlite, is_url
from clew.store.sources.delimited import looks_like_triples, read_delimited, read_triples, sniff
from clew.store.sources.files import (
    GRAPHS,
    JSON_LINES,
    RDF_FORMATS,
    RECORDS,
    SourceOptions,
    is_archive,
    kind_of,
    members_of,
    read_utf8,
)
from clew.store.sources.folders import documents_of, tables_of
from clew.store.sources.jsonl import holds_objects, nested_raw, read_json, read_json_lines, read_parquet
from clew.store.sources.neo4j import is_neo4j, plain_tables
from clew.store.sources.obo import read_obo
from clew.store.sources.pieces import (
    RawTable,
    as_edges,
    as_nodes,
    is_plainly,
    unclear,
    with_dates,
)
from clew.store.sources.profile import profile_column, profile_tables
from clew.store.sources.rdf import RdfGraph
from clew.store.sources.relational import read_database, read_tables
from clew.store.sources.stark import read_stark, stark_folder
from clew.store.sources.wide import agreed, end_columns, split_wide
from clew.store.sources.wikidata import is_wikidata, read_wikidata

Said = Literal["nodes", "edges", "triples"] | None
DELIMITED = {".csv", ".tsv", ".tab", ".txt", ".psv", ".list", ""}
"""Suffixes of delimited text."""
_PARQUET = {".parquet", ".pq"}
_TABLES = _PARQUET | {".csv", ".tsv", ".jsonl"}
"""Suffixes of files that make a folder in a folder worth a note."""
_ARCHIVES = {".tar", ".tgz", ".7z", ".rar"}
_IN_ARCHIVES = (DELIMITED | RECORDS | GRAPHS) - {""}
"""Suffixes of the files that are read from a ZIP archive: the formats whose readers take bytes."""
_PART = re.compile(r"part[-.]\d+\b")
"""Names of the files of one table: `part-00001-5a1f.snappy.parquet`."""
MAX_UNLIKE = 4
"""Maximum number of edges whose relations may all differ."""
MAX_DOCUMENT = 1 << 24
"""Maximum size of a JSON document that may be one of many in a folder, in bytes."""
_READABLE = (DELIMITED | RECORDS | _PARQUET | GRAPHS | DATABASE_FILES) - {""}
"""Suffixes of the files that a folder is searched for. Files given by name may have any suffix that `_read` accepts."""
DOCUMENTS = """
.pdf, .docx, .pptx, .xlsx, .odt, .ods, .odp, .epub, .html, .htm, .xhtml, .md, .markdown, .rst, .txt, .text, .man, .csv,
.tsv, .json, .eml, .mbox and other files of plain text
""".strip().replace("\n", " ")
"""Formats that `clew.documents` reads, for messages."""


TOO_MUCH = (RecursionError, MemoryError, pa.ArrowException)
"""Exceptions for tables that are nested too deeply, too large, or of unsupported types."""


@contextmanager
def readable(file: str | Path) -> Iterator[None]:
    """Turn exceptions of table readers into SourceError with the file."""
    try:
        yield
    except TOO_MUCH as failure:
        why = f"{type(failure).__name__}: {failure}"
        raise SourceError(f"cannot be read as a table ({why})", file=file) from failure


@dataclass
class _Found:
    """Data read so far."""

    rdf: RdfGraph
    partial: bool
    given: frozenset[Path]
    """Files and folders that the user gave."""
    nodes: list[Piece] = field(default_factory=list)
    edges: list[Piece] = field(default_factory=list)
    things: list[RawTable] = field(default_factory=list)
    """Tables whose rows may be nodes, or connect rows of other tables."""
    edge_tables: list[RawTable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    empty: list[Path] = field(default_factory=list)
    """Files with a header but no rows."""
    answers: list[str] = field(default_factory=list)
    implicit: bool = False
    """Whether entities that only edges name also become nodes. `take` does not change it."""
    columns: dict[str, None] = field(default_factory=dict)

    def add(self, raw: RawTable, said: Said, options: SourceOptions) -> None:
        """Add a table. `said` is the user's decision between nodes, edges and triples, None if there is none."""
        self.columns.update(dict.fromkeys(raw.table.column_names))
        kind = said or kind_of_columns(raw.table.column_names, options.columns)
        if kind not in ("nodes", None) and (said or not _are_things(raw.table, options.columns)):
            self.edge_tables.append(raw)
        elif said or self.partial:
            self.add_nodes(raw, options)
        else:
            self.things.append(raw)

    def joined(self, part: RawTable) -> RawTable:
        """Return a part of a table together with its earlier parts, which are removed."""
        same = [one for one in self.things if (one.file, one.table.schema) == (part.file, part.table.schema)]
        self.things = [one for one in self.things if one not in same]
        return replace(part, table=pa.concat_tables([one.table for one in [*same, part]]))

    def add_nodes(self, raw: RawTable, options: SourceOptions) -> None:
        """Add a node table of a graph, with its key, and optionally a column of types."""
        roles = node_roles(raw.table.column_names, options.columns)
        if "key" not in roles and (self.partial or is_plainly("nodes", Path(raw.file))):
            raise unclear(raw)
        key = roles.get("key")
        is_given = "key" in options.columns or key != roles.get("name")
        if key is not None and (self.partial or is_given or profile_column(key, raw.table[key]).is_unique):
            if "name" not in roles and not self.partial and not is_plainly("nodes", Path(raw.file)):
                free = {one: raw.table[one] for one in raw.table.column_names if one not in roles.values()}
                profile = profile_tables({"node": free})["node"]
                if len(profile.named_by) == 1 and not profile.is_panel:
                    options = replace(options, columns={**options.columns, "name": profile.named_by[0]})
            self.nodes.append(as_nodes(raw, options, partial=self.partial))
            return
        declared = {role: column for role, column in roles.items() if role in ("type", "name")}
        self.take(read_tables([raw], replace(options, columns=declared | dict(options.columns))))

    def settle(self, options: SourceOptions) -> None:
        """Read tables as one database, unless edges or the user name the rows, or one has nodes that no other has."""
        is_graph = bool(self.nodes or self.edges or self.edge_tables or self.rdf.files)
        is_graph |= any(is_plainly("nodes", Path(raw.file)) for raw in self.things) and self._have_own_keys(options)
        if is_graph or options.columns.keys() & {"key", "type"}:
            for raw in self.things:
                with readable(raw.file):
                    self.add_nodes(raw, options)
        elif self.things:  # rules may name the files whose rows only some may see
            things = self.things if options.visible else tables_of(self.things)
            with readable(things[0].file):
                self.take(read_tables(things, options))

    def _have_own_keys(self, options: SourceOptions) -> bool:
        """Return whether no two of the tables have rows with the same key."""
        roles = [(raw.table, node_roles(raw.table.column_names, options.columns).get("key")) for raw in self.things]
        keys = [pc.unique(table[key].cast(pa.string())).to_pylist() for table, key in roles if key is not None]
        return len(set().union(*keys)) == sum(map(len, keys))

    def take(self, tables: Tables, columns: Sequence[str] = ()) -> None:
        """Add the tables of a whole source. `columns` are the columns that the user may map."""
        self.nodes += tables.nodes
        self.edges += tables.edges
        self.notes += tables.notes
        self.skipped += tables.skipped
        self.answers += tables.answers
        self.columns.update(dict.fromkeys(columns))


def read_sources(
    sources: Sequence[Path | str | RawTable], options: SourceOptions | None = None, *, partial: bool = False
) -> Tables:
    """Read all nodes and edges of files, folders, databases and tables. Entities in triples become nodes.

    For `partial` changes to a base, missing values stay missing.
    """
    options = options or SourceOptions()
    raws = [source for source in sources if isinstance(source, RawTable)]
    paths = [source for source in sources if not isinstance(source, RawTable)]
    databases = [str(path) for path in paths if is_url(path)]
    said: list[tuple[Path, Said]] = [(Path(path), None) for path in paths if not is_url(path)]
    said += [(Path(path), "nodes") for path in options.nodes]
    said += [(Path(path), "edges") for path in options.edges]
    said += [(Path(path), "triples") for path in options.triples]
    if not said and not databases and not raws:
        raise InputError("no sources: give files or folders to read")
    found = _Found(RdfGraph(options.language), partial, frozenset(path for path, _ in said))
    for raw in raws:
        found.add(raw, None, options)
    for url in databases:
        found.take(*(read_graph if is_bolt(url) else read_database)(url, options))
    for path, kind in said:
        if path.is_dir() and (folder := stark_folder(path)):
            found.take(read_stark(folder, options))
            continue
        files = _files(path, found, options.follow_links)
        if kind is None and path.is_dir() and not (partial or options.visible):
            files = _without_documents(path, files, options, found)
        for file in files:
            with readable(file):
                _read(file, kind, options, found)
    if found.empty:
        if not (found.nodes or found.edges or found.edge_tables or found.things or found.rdf.files):
            raise SourceError("the file has a header but no rows", file=found.empty[0])
        found.notes.append(f"Files without rows: {', '.join(map(str, found.empty))}.")
    found.settle(options)
    if found.rdf.files:
        described, linked, notes = found.rdf.pieces(partial=partial, include=options.include)
        found.notes += notes
        found.nodes.append(described)
        found.edges.append(linked)
    _check_mapping(found, options)
    edge_tables, ends = (found.edge_tables, []) if found.nodes else split_wide(found.edge_tables, options.columns)
    found.edges += [as_edges(raw, options) for raw in edge_tables]
    end_options = replace(options, columns=end_columns(options.columns))
    for piece in (as_nodes(raw, end_options, partial=True) for raw in ends):
        found.nodes.append(replace(piece, table=with_edge_groups(piece.table, found.edges)))
    implicit_type = options.node_type or "entity"
    nodes, edges = _of_types(found.nodes, found.edges, options)
    return Tables(
        agreed(nodes),
        agreed(edges),
        found.implicit or not (found.nodes or partial),
        implicit_type,
        tuple(found.notes),
        tuple(found.skipped),
        tuple(found.answers),
        Visibility(options.columns.get("groups")),
    )


def _of_types(
    nodes: Sequence[Piece], edges: Sequence[Piece], options: SourceOptions
) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Return the nodes of the requested types or namespaces, and the edges between them."""
    if not options.include and not options.exclude:
        return nodes, edges
    seen: set[str] = set()

    def is_wanted(row: dict[str, object]) -> bool:
        names = {str(row.get("type") or "entity"), str(row["key"])}
        matched = [one for one in options.include + options.exclude if any(fnmatchcase(name, one) for name in names)]
        seen.update(matched, names & {str(row.get("type"))})
        is_in = not options.include or any(one in options.include for one in matched)
        return is_in and not any(one in options.exclude for one in matched)

    kept = []
    for piece in nodes:
        columns = [name for name in ("key", "type") if name in piece.table.column_names]
        rows = pa.array([is_wanted(row) for row in piece.table.select(columns).to_pylist()], pa.bool_())
        kept.append(piece.filter(rows))
    if unknown := [one for one in options.include + options.exclude if one not in seen]:
        raise InputError(f"{unknown[0]!r}: no node has this type or key: the types are {', '.join(sorted(seen)[:30])}")
    keys = texts_of(kept)
    if not len(keys):
        raise InputError("--include and --exclude leave no node: name other types or keys")
    ends = [[pc.is_in(piece.texts(end), value_set=keys) for end in ("head", "tail")] for piece in edges]
    return kept, [piece.filter(pc.and_(*pair)) for piece, pair in zip(edges, ends, strict=True)]


def from_database(url: str, options: SourceOptions | None = None) -> Tables:
    """Read an SQL database: `sqlite:///shop.db`, or any URL of SQLAlchemy with an installed driver."""
    if not is_url(url):
        raise InputError(f"{url}: expected the URL of a database, such as sqlite:///shop.db")
    return read_sources([url], options)


def _read(path: Path, said: Said, options: SourceOptions, found: _Found) -> None:
    """Read one file with the reader of its suffix, and add its tables to `found`. Each format has a branch here."""
    kind = kind_of(path)
    flat = said is not None or found.partial or is_plainly("nodes", path) or is_plainly("edges", path)
    groups = options.columns.get("groups")
    if kind in _PARQUET:
        raw = read_parquet(path, options.columns)
        if _PART.match(path.name):
            raw = found.joined(replace(raw, file=str(path.parent), name=path.resolve().parent.name))
        is_nested = not flat and any(map(holds_objects, raw.table.schema.types))
        for part in nested_raw(raw.table.to_pylist(), str(path), groups) if is_nested else [raw]:
            found.add(part, said, options)
    elif kind in JSON_LINES | {".json"} and is_wikidata(path):
        found.take(read_wikidata(path, options))
    elif kind in JSON_LINES:
        data = read_utf8(path, options.encoding, found.notes)
        raws, skipped = read_json_lines(data, str(path), skip_bad=options.skip_bad, flat=flat, groups=groups)
        found.skipped += skipped
        for raw in raws:
            found.add(raw, said, options)
    elif kind == ".json":
        for raw in read_json(read_utf8(path, options.encoding, found.notes), str(path), flat=flat, groups=groups):
            found.add(raw, said, options)
    elif kind in RDF_FORMATS:
        found.rdf.read(path, options)
    elif kind == ".obo":
        found.take(read_obo(read_utf8(path, options.encoding, found.notes), str(path), options.node_type))
    elif kind in DATABASE_FILES:
        found.take(*read_database(path, options))
    elif kind in DELIMITED:
        _read_delimited(path, said, options, found)
    elif kind in _ARCHIVES:
        raise SourceError("an archive, of which only .zip is read: unpack it, and build its folder", file=path)
    else:
        raise SourceError(
            f"unknown format {kind!r}: the supported formats are {', '.join(sorted(_READABLE))}", file=path
        )


def _without_documents(folder: Path, files: Sequence[Path], options: SourceOptions, found: _Found) -> list[Path]:
    """Read JSON documents that describe a thing each together, and return the other files."""
    own = [path for path in files if kind_of(path) == ".json" and not is_wikidata(path)]
    contents = {path: read_utf8(path, options.encoding, found.notes) for path in own if len(own) > 1}
    groups, others = documents_of(folder, {path: data for path, data in contents.items() if len(data) <= MAX_DOCUMENT})
    for name, documents in groups.items():
        with readable(folder):
            records, file = list(documents.values()), str(folder / f"{name}.json")
            for raw in nested_raw(records, file, options.columns.get("groups")):
                found.add(raw, None, options)
    read = {path for documents in groups.values() for path in documents}
    left = [path for path in files if path not in read | others]
    if others and (left or read):
        found.notes.append(
            f"Not read, as they have no lists of objects: {', '.join(path.name for path in sorted(others))}."
        )
        return left
    return [path for path in files if path not in read]


def _read_delimited(path: Path, said: Said, options: SourceOptions, found: _Found) -> None:
    data = read_utf8(path, options.encoding, found.notes)
    dialect = sniff(data, path)
    if dialect.loose:
        found.notes.append(f"{path}: fields are not quoted, so {dialect.separator!r} before a blank is read as text.")
    has_header = is_neo4j(dialect.header) or kind_of_columns(dialect.header, options.columns) is not None
    if said == "triples" or (said is None and not has_header and looks_like_triples(dialect, path)):
        piece, skipped = read_triples(data, dialect, str(path), options)
        found.edges.append(piece)
        found.implicit = True
    else:
        raw, skipped = read_delimited(data, dialect, str(path), skip_bad=options.skip_bad)
        if not raw.table.num_rows:
            found.empty.append(path)
            return
        for part in plain_tables(raw):
            found.add(part, said, options)
    found.skipped += skipped


def _are_things(table: pa.Table, columns: Mapping[str, str]) -> bool:
    """Return whether apparent edges are things that start and end on some days, or have a name in place of a relation.

    Examples are terms of office, and flights with a flight number, from an airport, to another.
    """
    roles = edge_roles(table.column_names, columns)
    if not is_vague(table.column_names, columns):
        return False
    ends = [table[roles[role]] for role in ("head", "tail")]
    if any(pa.types.is_temporal(with_dates(end).type) for end in ends):
        return True
    name = roles.get("relation")
    is_free = name not in (None, columns.get("relation")) and table.num_rows > MAX_UNLIKE
    return is_free and name is not None and profile_column(name, table[name]).is_unique


def _files(path: Path, found: _Found, follow_links: bool) -> list[Path]:
    """Return a file, or the readable files of a folder or ZIP archive, of these only files called nodes and edges.

    Add notes about other files.
    """
    if is_archive(path):
        files = _archived(path, found)
    elif path.is_dir():
        files = _in_folder(path, found, follow_links)
    else:
        return [path]
    plain = {kind: [file for file in files if is_plainly(kind, file)] for kind in ("nodes", "edges")}
    if not all(plain.values()):
        return files
    named = sorted(plain["nodes"] + plain["edges"])
    others = [file.name for file in files if file not in named]
    if others:
        found.notes.append(f"Not read, as {path} has files called nodes and edges: {', '.join(others)}.")
    return named


def _archived(archive: Path, found: _Found) -> list[Path]:
    members = members_of(archive)
    files = [member for member in members if kind_of(member) in _IN_ARCHIVES]
    if not files:
        raise SourceError("no readable files in this archive: unpack it, and build its folder", file=archive)
    if others := [member.name for member in members if member not in files]:
        found.notes.append(f"Not read in {archive}: {', '.join(others)}. Unpack it to read them.")
    return files


def _in_folder(folder: Path, found: _Found, follow_links: bool) -> list[Path]:
    listed = list_files(folder, follow_links=follow_links, subfolders=False)
    if not any(kind_of(path) in _READABLE or is_archive(path) for path in listed.files):
        listed = list_files(folder, follow_links=follow_links)
    found.notes += [f"skipped {path}: {reason}" for path, reason in listed.skipped]
    inner = sorted({path.parent.name for path in folder.glob("[!.]*/*") if path.suffix.lower() in _TABLES})
    if inner and not any(path.parent != folder for path in listed.files):
        found.notes.append(f"Not read: folders in {folder}, which can be given as sources: {', '.join(inner)}.")
    readable_files = [path for path in listed.files if kind_of(path) in _READABLE]
    files = [path for path in readable_files if kind_of(path) not in SQLITE_FILES or is_sqlite(path)]
    archives = [path for path in listed.files if is_archive(path) and path not in found.given]
    if files and archives:
        names = ", ".join(path.name for path in archives)
        found.notes.append(f"Not read: archives in {folder}, which can be given as sources: {names}.")
    files = files or [member for path in archives for member in _archived(path, found)]
    if not files:
        if packed := [path for path in listed.files if kind_of(path) in _ARCHIVES]:
            raise SourceError(f"no readable files in this folder: unpack {packed[0].name}", file=folder)
        readable = f"{', '.join(sorted(_READABLE))}; as documents {DOCUMENTS}"
        raise SourceError(f"no readable files in this folder: the supported formats are {readable}", file=folder)
    return files


def _check_mapping(found: _Found, options: SourceOptions) -> None:
    """Raise InputError for a mapped column that no file has."""
    for role, column in options.columns.items():
        if column not in found.columns and not (role == "groups" and options.groups_optional):
            raise InputError(f"--map {role}={column}: no source has it: the columns are {', '.join(found.columns)}")
