"""`clew report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.cli.options import AsJson
from clew.cli.output import out, print_json, print_table, say
from clew.evaluation.page import report_page
from clew.evaluation.report import Section, failure_json, load_runs, make_report, report_json, worst_failures
from clew.evaluation.tables import Table, comparison_table, costs, overview, type_table


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of `clew eval --out`.")],
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that needs nothing else.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Compare by this metric; hit@1 by default.")] = None,
    failures: Annotated[int, typer.Option("--failures", min=0, help="How many of the worst failures to list.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Tables, paired comparisons, plots and the worst failures of runs."""
    sections = make_report(load_runs(folders), metric)
    if html is not None:
        html.write_text(report_page(sections, max(failures, 10)), "utf-8")
        say(f"written: {html}")
    if as_json:
        print_json(report_json(sections, failures))
        return
    for section in sections:
        show_section(section)
        for label, run in section.runs:
            for row in worst_failures(run, section.metric, failures):
                show_failure(label, failure_json(row))


def show_section(section: Section) -> None:
    """The tables of one set of questions."""
    for table in (overview(section), costs(section), comparison_table(section), type_table(section)):
        if table.rows:
            _show(table)


def _show(table: Table) -> None:
    # An interval goes below its value: so many columns would not fit on a line.
    rows = [[cell.replace(" [", "\n[") for cell in row] for row in table.rows]
    print_table(table.title, table.columns, rows)
    out.print(f"[dim]{escape(table.note)}[/dim]\n" if table.note else "")


def show_failure(label: str, failure: dict[str, object]) -> None:
    """A failed question with what was found instead and the trace."""
    question, place = escape(str(failure["question"])), escape(f"{label}, {failure['id']}")
    out.print(f"[bold]{question}[/bold]  [dim]{place}[/dim]")
    for name in ("gold", "found", "places", "error", "fallbacks"):
        value = failure[name]
        if value:
            shown = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
            out.print(f"  [dim]{name}[/dim] {escape(shown)}")
    trace = failure["trace"]
    for line in trace if isinstance(trace, list) else ():
        out.print(f"  [dim]│[/dim] {escape(str(line))}")
    out.print("")
