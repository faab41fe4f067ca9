"""`clew build`, `update` and `embed`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from clew.cli.options import AnyBase, AsJson, Ray, listed
from clew.cli.output import err, out, print_json, progress_bar, stages, tell
from clew.core.errors import InputError

if TYPE_CHECKING:
    from clew.core.workers import Workers
    from clew.store.building import BuildReport
    from clew.store.sources.files import SourceOptions


def embed(
    base: AnyBase,
    embedder: Annotated[str | None, Option("--embedder", help="Switch the base to this embedder.")] = None,
    relations: Annotated[
        bool, Option("--relations", help="Include relations in the embedded documents, as STaRK's retrievers do.")
    ] = False,
    ray: Ray = None,
    as_json: AsJson = False,
) -> None:
    """Compute the vectors of all node documents in advance. Run again to continue a stopped run.

    A change of the embedder takes effect when all its vectors exist.
    """
    from clew.core.workers import hired
    from clew.models.embedding.opening import SHIPPED
    from clew.models.settings import Settings
    from clew.store.open_base import OpenBase
    from clew.store.remote_bases import shown_place

    with hired(ray) as workers, progress_bar("embedding") as move:
        if embedder is None:
            count = OpenBase.open(base).embed_all(move, relations=relations, workers=workers)
        else:
            count = OpenBase.switch_embedder(base, embedder, move, relations=relations, workers=workers)
    name = OpenBase.open(base, embedder=embedder).embedder.name
    told = {"base": shown_place(base), "embedder": name, "vectors": count}
    lines = [f"{shown_place(base)}: {count:,} vectors by {name}"]
    if embedder is not None and embedder not in SHIPPED | Settings.load().embedders:
        lines.append(f"to ask it: --embedder {embedder}, or CLEW_EMBEDDER={embedder}")
    tell(as_json, told, *lines)


Files = list[Path] | None
Sources = Annotated[
    list[str] | None,
    Argument(metavar="SOURCE…", help="Files or folders to read, or sqlite:///FILE.", show_default=False),
]
NodeFiles = Annotated[Files, Option("--nodes", help="A file to read as nodes.")]
EdgeFiles = Annotated[Files, Option("--edges", help="A file to read as edges.")]
TripleFiles = Annotated[Files, Option("--triples", help="A file to read as triples without a header.")]
Map = Annotated[list[str] | None, Option("--map", metavar="ROLE=COLUMN", help="Such as name=title.")]
Encoding = Annotated[str | None, Option("--encoding", help="Encoding of text files. Default: UTF-8.")]
Widen = Annotated[bool, Option("--widen", help="Allow changes that make data visible to more people.")]
FollowLinks = Annotated[bool, Option("--follow-links", help="Follow links in a folder, even out of it.")]
SkipBad = Annotated[bool, Option("--skip-bad", help="Skip and list invalid rows.")]


def build(
    sources: Sources = None,
    output: Annotated[
        str, Option("--output", "-o", metavar="KB", help="The folder to build, or postgresql://…#BASE.")
    ] = "base.kb",
    nodes: NodeFiles = None,
    edges: EdgeFiles = None,
    triples: TripleFiles = None,
    columns: Map = None,
    node_type: Annotated[
        str | None, Option("--class", help="Node type of subjects in untyped triples, such as movie.")
    ] = None,
    schema: Annotated[
        Path | None,
        Option("--schema", help="TOML file that edits the schema. Default: schema.toml next to the sources."),
    ] = None,
    encoding: Encoding = None,
    language: Annotated[str, Option("--language", help="Language of labels in RDF and Wikidata.")] = "en",
    include: Annotated[
        list[str] | None,
        Option("--include", metavar="TYPE", help="Read only this type, or keys such as 'http://example.org/*'."),
    ] = None,
    exclude: Annotated[
        list[str] | None, Option("--exclude", metavar="TYPE", help="Skip this type, or keys such as 'http://…/*'.")
    ] = None,
    trust: Annotated[bool, Option("--trust", help="Read STaRK's pickles, through a restricted reader.")] = False,
    skip_bad: SkipBad = False,
    embed: Annotated[
        Literal["lazy", "all"], Option("--embed", help="Compute vectors when needed, or all of them now.")
    ] = "lazy",
    documents: Annotated[bool, Option("--documents", help="Read every file as a document, tables included.")] = False,
    graph: Annotated[
        str | None, Option("--graph", metavar="KIND,…", help="Edges between passages: tfidf, entity, mentions, knn.")
    ] = None,
    neighbours: Annotated[int, Option("--neighbours", min=1, help="Neighbours per passage and kind of edge.")] = 20,
    passage_length: Annotated[
        int, Option("--passage-length", min=0, help="Characters of a passage. 0 means one sentence each.")
    ] = 600,
    most_megabytes: Annotated[int, Option("--most-megabytes", min=1, help="Skip larger documents.")] = 200,
    entities: Annotated[
        Path | None, Option("--entities", metavar="KB", help="Base of entities in the documents.")
    ] = None,
    visible: Annotated[
        Path | None,
        Option("--visible", metavar="FILE", help='File of access rules: TOML such as "hr/*" = ["hr", "board"].'),
    ] = None,
    widen: Widen = False,
    nodes_only: Annotated[
        bool, Option("--nodes-only", help="Read only names, texts and values of a remote graph, for #texts=KB.")
    ] = False,
    follow_links: FollowLinks = False,
    ray: Ray = None,
    as_json: AsJson = False,
) -> None:
    """Build a knowledge base from tables, nodes and edges, triples, RDF, a database or documents."""
    from clew.api import build as build_base
    from clew.core.workers import hired
    from clew.documents.building import build_documents, hold_documents
    from clew.documents.passage_graph import DEFAULT_KINDS, EdgeOptions
    from clew.documents.rows import DocumentOptions
    from clew.store.graph.visibility import read_rules
    from clew.store.sources.databases import is_url
    from clew.store.sources.files import SourceOptions

    files = [Path(source) for source in sources or () if not is_url(source)]
    rules = {} if visible is None else read_rules(visible)
    given_apart = nodes or edges or triples or len(files) < len(sources or ())
    if files and (documents or (not given_apart and hold_documents(files, follow_links=follow_links))):
        kinds = DEFAULT_KINDS if graph is None else listed(graph)
        joined = EdgeOptions(kinds, neighbours)
        limits = DocumentOptions(passage_length, joined, most_megabytes, follow_links=follow_links)
        wanted = replace(limits, entities=entities, visible=rules)
        with hired(ray) as workers:
            with progress_bar("reading") as move, stages("building") as say:
                told = {"progress": lambda _, *done: move(*done), "say": say}
                report = build_documents(files, output, wanted, workers=workers, widen=widen, **told)
            finish(report, output, embed, as_json, workers)
        return
    if ray is not None and embed == "lazy":
        raise InputError("--ray works only with documents or --embed all: leave it out")
    read = source_options(nodes, edges, triples, columns, encoding, skip_bad, follow_links)
    read = replace(read, include=tuple(include or ()), exclude=tuple(exclude or ()))
    options = replace(read, node_type=node_type, language=language, trust=trust)
    if nodes_only and options != SourceOptions():
        raise InputError("--nodes-only reads no files: leave out the options for reading files")
    how = {"skip_bad": skip_bad, "nodes_only": nodes_only, "widen": widen}
    with stages("building") as say:
        report = build_base(sources or [], output, options=options, schema=schema, visible=rules, say=say, **how)
    with hired(ray) as workers:
        finish(report, output, embed, as_json, workers)


def source_options(
    nodes: Files,
    edges: Files,
    triples: Files,
    columns: list[str] | None,
    encoding: str | None,
    skip_bad: bool,
    follow_links: bool,
) -> SourceOptions:
    """Return the options for reading files."""
    from clew.store.sources.files import SourceOptions, parse_columns

    named = parse_columns(columns or [])
    files = tuple(nodes or ()), tuple(edges or ()), tuple(triples or ())
    return SourceOptions(*files, columns=named, encoding=encoding, skip_bad=skip_bad, follow_links=follow_links)


def finish(
    report: BuildReport, output: str, embed: Literal["lazy", "all"], as_json: bool, workers: Workers | None
) -> None:
    """Compute the vectors if requested, and print the report."""
    from clew.store.open_base import OpenBase

    if embed == "all":
        with progress_bar("embedding") as move:
            OpenBase.open(output).embed_all(move, workers=workers)
    show_report(report, as_json)


def update(
    base: AnyBase,
    sources: Sources = None,
    nodes: NodeFiles = None,
    edges: EdgeFiles = None,
    triples: TripleFiles = None,
    delete_nodes: Annotated[list[str] | None, Option("--delete-nodes", help="A key, or a file of keys.")] = None,
    delete_edges: Annotated[Files, Option("--delete-edges", help="A file of edges to remove.")] = None,
    columns: Map = None,
    encoding: Encoding = None,
    skip_bad: SkipBad = False,
    widen: Widen = False,
    follow_links: FollowLinks = False,
    as_json: AsJson = False,
) -> None:
    """Add, change and delete nodes and edges of a knowledge base. Unchanged texts keep their vectors."""
    from clew.store.building import read_changes
    from clew.store.building import update as update_base

    options = source_options(nodes, edges, triples, columns, encoding, skip_bad, follow_links)
    with stages("updating") as say:
        delta = read_changes(
            base, sources or [], options, delete_nodes=delete_nodes or [], delete_edges=delete_edges or []
        )
        report = update_base(base, delta, skip_bad=skip_bad, widen=widen, say=say)
    show_report(report, as_json)


def show_report(report: BuildReport, as_json: bool) -> None:
    """Print the size of the base, notes and skipped rows."""
    if as_json:
        values = asdict(report)
        print_json({"base": str(values.pop("folder")), **values})
        return
    out.line(f"{report.folder}: {report.nodes:,} nodes, {report.edges:,} edges")
    for note in report.notes:
        err.line(note)
    for problem in report.problems[:20]:
        line = f", line {problem.line}" if problem.line else ""
        err.line(f"skipped {problem.file}{line}: {problem.message}")
    if report.skipped > 20:
        err.line(f"… {report.skipped:,} rows skipped in all; --json lists up to 1,000 of them")
