"""`clew build` and `clew update`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.building import BuildReport
from clew.building import build as build_base
from clew.cli.options import AsJson
from clew.cli.output import err, out, print_json, stages
from clew.kb.schema_file import schema_edits
from clew.kb.sources import SourceOptions, parse_columns, read_sources

Files = list[Path] | None
Sources = Annotated[Files, typer.Argument(metavar="SOURCE…", help="Files or folders to read.", show_default=False)]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="KB", help="The folder to build.")]
NodeFiles = Annotated[Files, typer.Option("--nodes", help="A file to read as nodes.")]
EdgeFiles = Annotated[Files, typer.Option("--edges", help="A file to read as edges.")]
TripleFiles = Annotated[Files, typer.Option("--triples", help="A file to read as triples without a header.")]
Map = Annotated[list[str] | None, typer.Option("--map", metavar="ROLE=COLUMN", help="Such as name=title.")]
Class = Annotated[str | None, typer.Option("--class", help="What the subjects of bare triples are, such as movie.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="A TOML file that edits the schema; by default schema.toml beside the sources."),
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of text files; UTF-8 by default.")]
Language = Annotated[str, typer.Option("--language", help="The language of RDF labels.")]
Trust = Annotated[bool, typer.Option("--trust", help="Read STaRK's pickles, through a restricted reader.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used, and list them.")]


def build(
    sources: Sources = None,
    output: Output = Path("base.kb"),
    nodes: NodeFiles = None,
    edges: EdgeFiles = None,
    triples: TripleFiles = None,
    columns: Map = None,
    node_type: Class = None,
    schema: SchemaFile = None,
    encoding: Encoding = None,
    language: Language = "en",
    trust: Trust = False,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Build a knowledge base from nodes and edges, triples, RDF or documents."""
    options = SourceOptions(
        nodes=tuple(nodes or ()),
        edges=tuple(edges or ()),
        triples=tuple(triples or ()),
        columns=parse_columns(columns or []),
        encoding=encoding,
        node_type=node_type,
        language=language,
        trust=trust,
        skip_bad=skip_bad,
    )
    edits = schema_edits(schema, [*(sources or ()), *options.nodes, *options.edges, *options.triples])
    with stages("building") as say:
        say("reading")
        tables = read_sources(sources or [], options)
        report = build_base(tables, output, edits=edits, skip_bad=skip_bad, say=say)
    show_report(report, as_json)


def show_report(report: BuildReport, as_json: bool) -> None:
    """What was built and what was left out."""
    if as_json:
        print_json(
            {
                "base": str(report.folder),
                "nodes": report.nodes,
                "edges": report.edges,
                "skipped": report.skipped,
                "problems": [vars(problem) for problem in report.problems] if report.problems else [],
                "notes": list(report.notes),
            }
        )
        return
    out.print(f"{report.folder}: {report.nodes:,} nodes, {report.edges:,} edges", markup=False)
    for problem in report.problems[:20]:
        err.print(f"skipped {problem.file}, line {problem.line}: {problem.message}", markup=False)
    if report.skipped > 20:
        err.print(f"… {report.skipped:,} rows skipped in all; --json lists up to 1,000 of them")
