"""`clew synth`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.cli.options import AsJson, Base
from clew.cli.output import out, print_json, progress_bar, say
from clew.synthesis.benchmark import Report, Wanted, make_benchmark
from clew.synthesis.card import statistics_table
from clew.synthesis.templates import KINDS
from clew.toolbox import Toolbox


def synth(
    base: Base,
    output: Annotated[Path, typer.Option("--out", "-o", help="The folder to write; run again to go on.")],
    count: Annotated[int, typer.Option("-n", min=1, help="How many questions.")] = 1000,
    templates: Annotated[
        str | None, typer.Option("--templates", metavar="FILE.toml|mag|prime", help="By default from the schema.")
    ] = None,
    kinds: Annotated[str, typer.Option("--kinds", metavar="KIND,…", help="Kinds of questions.")] = ",".join(KINDS),
    roles: Annotated[str, typer.Option("--roles", metavar="ROLE,…", help="Who asks, such as doctor,patient.")] = "user",
    seed: Annotated[int, typer.Option("--seed", help="Other seeds give other questions.")] = 0,
    beside: Annotated[
        Path | None, typer.Option("--beside", help="A folder of real STaRK data to compare with (amazon/, mag/, …).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a benchmark of questions with gold answers, queries and paths from any knowledge base."""
    wanted = Wanted(count, _listed(kinds), templates, _listed(roles), seed, beside)
    with progress_bar("questions") as progress:
        report = make_benchmark(Toolbox.open(base), output, wanted, progress=progress)
    if as_json:
        print_json(report.to_json())
    else:
        show(report)


def show(report: Report) -> None:
    """What was made, for people."""
    made = report.made
    out.print(f"{report.folder}: {len(made.rows):,} questions", markup=False)
    for step, amount in made.acceptance.items():
        out.print(f"  {step}: {amount}", markup=False)
    out.print(f"  gates: {'all hold' if not any(made.gates.values()) else 'FAILED'}", markup=False)
    out.print(statistics_table(made.statistics), markup=False)
    for remark in made.remarks:
        say(remark)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
