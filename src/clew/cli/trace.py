"""`clew trace`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from clew.cli.options import AsJson, Force
from clew.cli.output import err, out, print_json

if TYPE_CHECKING:
    from rich.tree import Tree

    from clew.core.trace import ModelCall, Spending
    from clew.core.trace_file import Step

SHOWN = 100
"""Maximum characters of a detail: about one line of a terminal."""
MOST_CALLS = 12
"""Maximum number of calls shown for a step. A step may have hundreds."""


def trace(
    file: Annotated[Path, Argument(metavar="FILE", help="A file written by `clew ask --trace`.")],
    otel: Annotated[
        Path | None, Option("--otel", help="Also write OpenTelemetry spans (OTLP JSON) to this file.")
    ] = None,
    replies: Annotated[bool, Option("--replies", help="Show the start of each model reply.")] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show the steps of an answer as a tree: times, results, model calls and fallbacks."""
    from rich.markup import escape
    from rich.tree import Tree

    from clew.core.disk import refuse_existing
    from clew.core.trace_file import read_trace, to_otlp

    refuse_existing(otel, force=force)
    read = read_trace(file)
    if otel is not None:
        otel.write_text(json.dumps(to_otlp(read)), "utf-8")
        err.line(f"written: {otel}")
    if as_json:
        print_json(to_otlp(read))
        return
    tree = Tree(f"[bold]{escape(file.name)}[/bold]  {_spent(read.spending())}")
    for root in read.roots:
        _grow(tree, root, replies)
    for fallback in read.fallbacks:
        tree.add(f"[yellow]{escape(fallback.step)}: {escape(fallback.reason)} → {escape(fallback.instead)}[/yellow]")
    out.console.print(tree)


def _grow(tree: Tree, step: Step, replies: bool) -> None:
    from rich.markup import escape

    from clew.core.trace import Spending

    seconds = "" if step.seconds is None else f"  [cyan]{_time(step.seconds)}[/cyan]"
    details = ", ".join(f"{name} {_brief(value)}" for name, value in step.details.items())
    spent = f"  {_spent(Spending.of(step.calls))}" if step.calls else ""
    branch = tree.add(f"[bold]{escape(step.name)}[/bold]{seconds}  [dim]{escape(details)}[/dim]{spent}")
    if step.error:
        branch.add(f"[red]{escape(step.error)}[/red]")
    for call in step.calls[:MOST_CALLS]:
        branch.add(_call(call, replies))
    if len(step.calls) > MOST_CALLS:
        branch.add(f"[dim]… {len(step.calls) - MOST_CALLS:,} more calls[/dim]")
    for fallback in step.fallbacks:
        branch.add(f"[yellow]{escape(fallback.step)}: {escape(fallback.reason)} → {escape(fallback.instead)}[/yellow]")
    for inner in step.inner:
        _grow(branch, inner, replies)


def _call(call: ModelCall, replies: bool) -> str:
    from rich.markup import escape

    tokens = f"{call.prompt_tokens:,} + {call.completion_tokens:,} tokens"
    price = "[green]cached[/green]" if call.cached else f"{_time(call.seconds)}  ${call.dollars:.6f}"
    line = f"[dim]{call.prompt_hash}[/dim]  {tokens}  {price}"
    if call.error:
        line += f"  [red]{escape(_brief(call.error))}[/red]"
    return line + (f"  {escape(_brief(call.reply))}" if replies and call.reply else "")


def _spent(spending: Spending) -> str:
    if not spending.calls:
        return ""
    cached = f", {spending.cached:,} cached" if spending.cached else ""
    failed = f", [red]{spending.failed:,} failed[/red]" if spending.failed else ""
    tokens = spending.prompt_tokens + spending.completion_tokens
    return f"{spending.calls:,} calls{cached}{failed}, {tokens:,} tokens, ${spending.dollars:.4f}"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def _brief(value: object) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
