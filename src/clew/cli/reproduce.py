"""`clew reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.cli.eval import live_metrics
from clew.cli.options import AsJson
from clew.cli.output import out, print_json, print_plain, say
from clew.core.errors import NotFoundError
from clew.evaluation.reproducing import Reproduced, chosen_tables, reproduce, write_report
from clew.evaluation.summary import summarise


def reproduce_tables(
    tables: Annotated[list[str] | None, typer.Argument(metavar="TABLE…", help="By default all of them.")] = None,
    data: Annotated[Path, typer.Option("--data", help="The folder with the data sets, one folder each.")] = Path(),
    output: Annotated[Path, typer.Option("--out", "-o", help="Keep runs and report here; run again to go on.")] = Path(
        "reproduced"
    ),
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Instead of the table's methods.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="A random sample of so many questions.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the sample.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run the tables of published data sets, beside what others published on them, and write the report."""
    done: list[Reproduced] = []
    missing: dict[str, str] = {}
    for table in chosen_tables(tables or ()):
        try:
            done.append(reproduce(table, data, output, live_metrics, methods=method or (), limit=limit, seed=seed))
        except NotFoundError as error:
            missing[table.name] = str(error)
            say(f"{table.name} is left out: {error}")
            continue
        if not as_json:
            print_plain(done[-1].to_markdown() + "\n")
    text, page = write_report(done, missing, output)
    if as_json:
        told = {one.table.name: [summarise(run).to_json() for run in one.runs] for one in done}
        print_json({"tables": told, "left_out": missing, "report": str(text), "page": str(page)})
    else:
        out.print(f"written: {text} and {page}", markup=False)
