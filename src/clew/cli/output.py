"""What commands print; the parts of rich that only some of them show are imported there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from clew.core.texts import shown_json, shown_text

MOST_ROWS = 500
"""Rows of a table that people are shown."""
PIPED_WIDTH = 200
"""Columns where nobody looks: a table in a file must not be folded to a narrow screen."""


class SafeConsole(Console):
    """A console that sends no commands but its own: names and texts may hold characters that a terminal obeys."""

    def render_str(self, text: str, **how: Any) -> Text:
        """The text with its markup read; control characters show as the signs that stand for them."""
        return super().render_str(shown_text(text), **how)


out = SafeConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = SafeConsole(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(shown_json(json.dumps(value, ensure_ascii=False, indent=2, default=str)) + "\n")


def tell(as_json: bool, value: Any, *lines: str) -> None:
    """A value as JSON, or the same in lines for people."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        out.print(line, markup=False)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table for people; numbers are right-aligned."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows[:MOST_ROWS]:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    out.print(table)
    if len(rows) > MOST_ROWS:
        out.print(f"… and {len(rows) - MOST_ROWS:,} more: --json lists them all")


def print_plain(text: str) -> None:
    """A long text on stdout as it is, neither folded nor coloured."""
    sys.stdout.write(shown_text(text))


def say(text: str) -> None:
    """A line for people, on stderr."""
    err.print(escape(text))


@contextmanager
def stages(title: str) -> Iterator[Any]:
    """A spinner that names the stage of a long piece of work; yields the function to name it with."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(title)
        yield lambda stage: progress.update(task, description=f"{title}: {escape(stage)}")


@contextmanager
def being_written() -> Iterator[Callable[[str], None] | None]:
    """Shows a text while it is written and takes it away in the end; None where no person looks on."""
    if not (out.is_terminal and err.is_terminal):
        yield None
        return
    from rich.live import Live

    live = Live(console=err, transient=True, auto_refresh=False)

    def show(text: str) -> None:
        live.start()
        live.update(Text.assemble((shown_text(text), "dim"), "\n", ("being written, not checked yet", "yellow")))
        live.refresh()

    try:
        yield show
    finally:
        live.stop()


@contextmanager
def progress_bar(title: str) -> Iterator[Any]:
    """A bar; yields a function (done, total) to move it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
