"""`clew synth`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from clew.cli import options as opt
from clew.cli.ask import show_estimate
from clew.cli.output import err, out, print_json, progress_bar

if TYPE_CHECKING:
    from clew.lab.synthesis.output import Made


def synth(
    base: opt.Base,
    output: Annotated[Path, Option("--out", "-o", help="Output folder. Run again to continue a stopped run.")],
    count: Annotated[int, Option("-n", min=1, help="Number of questions.")] = 1000,
    templates: Annotated[
        str | None, Option("--templates", metavar="FILE.toml|amazon|mag|prime", help="Default: from the schema.")
    ] = None,
    kinds: Annotated[str, Option("--kinds", metavar="KIND,…", help="Kinds of questions.")] = (
        "1-hop,2-hop,intersection,negation,metapath-and,textual"
    ),
    roles: Annotated[
        str, Option("--roles", metavar="ROLE,…", help="Roles of users, such as doctor,patient. Default: user.")
    ] = "",
    model: opt.Model = "none",
    rewriter: Annotated[
        str | None, Option("--rewriter", help="Model that rewrites the questions. Default: --model.")
    ] = None,
    judge: Annotated[
        list[str] | None, Option("--judge", help="Model that judges the questions, repeatable. Default: --model.")
    ] = None,
    seed: Annotated[int, Option("--seed", help="Random seed for the questions.")] = 0,
    beside: Annotated[
        Path | None, Option("--beside", help="A folder of real STaRK data to compare with (amazon/, mag/, …).")
    ] = None,
    max_calls: opt.MaxCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    max_seconds: opt.MaxSeconds = None,
    estimate: opt.EstimateOnly = False,
    trace: opt.TraceFile = None,
    groups: opt.Groups = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Create a benchmark of questions with gold answers, queries and paths from a knowledge base."""
    from clew.api import open as open_base
    from clew.core.disk import refuse_existing
    from clew.core.trace import Recorder, recording
    from clew.lab.synthesis.benchmark import BenchmarkOptions, Writers, estimate_benchmark, make_benchmark
    from clew.models.budget import Budget, Ledger
    from clew.models.opening import open_estimating, open_model
    from clew.models.prices import Estimate

    refuse_existing(trace, force=force)
    wanted = BenchmarkOptions(count, opt.listed(kinds), templates, opt.listed(roles), seed, beside)
    tools = open_base(base, groups=opt.group_names(groups)).tools
    if estimate:
        free = model == "none"
        show_estimate(Estimate() if free else estimate_benchmark(tools, wanted, open_estimating(model)), as_json)
        return
    ledger = Ledger(Budget(max_cost, max_tokens, max_calls, max_seconds))
    opened = [open_model(name, ledger=ledger) for name in judge or ()]
    writers = Writers(
        open_model(model, ledger=ledger),
        open_model(rewriter, ledger=ledger),
        tuple(one for one in opened if one is not None),
        ledger,
    )
    recorder = Recorder()
    try:
        with progress_bar("questions") as progress, recording(recorder):
            made = make_benchmark(tools, output, wanted, writers, progress=progress)
    finally:
        if trace is not None:
            recorder.write(trace)
    if as_json:
        print_json(made.to_json())
    else:
        show(made)


def show(made: Made) -> None:
    """Print a summary of the benchmark."""
    from clew.lab.synthesis.output import statistics_table

    out.line(f"{made.folder}: {len(made.rows):,} questions")
    for step, amount in made.acceptance.items():
        out.line(f"  {step}: {amount}")
    out.line(f"  gates: {'all hold' if not any(made.gates.values()) else 'FAILED'}")
    out.line(statistics_table(made.statistics))
    for remark in made.remarks:
        err.line(remark)
