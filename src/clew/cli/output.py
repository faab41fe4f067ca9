"""Output of commands. Functions import rich only if they draw, since most commands only print lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from clew.core.texts import shown_json, shown_text

if TYPE_CHECKING:
    from rich.console import Console

MOST_ROWS = 500
"""Maximum number of table rows to print."""
PIPED_WIDTH = 200
"""Width of piped output, so that tables in files are not wrapped to a narrow screen."""


STYLES: dict[str, dict[str, Any]] = {
    "": {"reset": False},
    "bold": {"bold": True},
    "dim": {"dim": True},
    "red": {"fg": "red"},
    "yellow": {"fg": "yellow"},
    "title": {"fg": "cyan", "bold": True},
}
Styled = tuple[str, str]
"""A text and its style."""


@dataclass(frozen=True)
class Screen:
    """Standard output or standard error.

    Replaces control characters in names and texts, which a terminal would obey.
    """

    is_error: bool = False

    def line(self, *pieces: str | Styled) -> None:
        """Print a line. Only terminals get styles."""
        plain_or_styled = ((piece, "") if isinstance(piece, str) else piece for piece in pieces)
        shown = "".join(typer.style(shown_text(text), **STYLES[style]) for text, style in plain_or_styled)
        typer.echo(shown, err=self.is_error, color=False if os.environ.get("NO_COLOR") else None)

    @cached_property
    def console(self) -> Console:
        """Rich console that prints control characters as visible symbols."""
        from rich.console import Console
        from rich.text import Text

        class SafeConsole(Console):
            def render_str(self, text: str, **how: Any) -> Text:
                return super().render_str(shown_text(text), **how)

        if self.is_error:
            return SafeConsole(stderr=True, highlight=False)
        return SafeConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPED_WIDTH)


out, err = Screen(), Screen(is_error=True)


def print_json(value: Any) -> None:
    """Print a JSON document."""
    sys.stdout.write(shown_json(json.dumps(value, ensure_ascii=False, indent=2, default=str)) + "\n")


def tell(as_json: bool, value: Any, *lines: str) -> None:
    """Print a value as JSON, or else as lines of text."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        out.line(line)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table with right-aligned numbers."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows[:MOST_ROWS]:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    out.console.print(table)
    if len(rows) > MOST_ROWS:
        out.line(f"… and {len(rows) - MOST_ROWS:,} more: --json lists them all")


def print_plain(text: str) -> None:
    """Print a long text without wrapping and colours."""
    sys.stdout.write(shown_text(text))


@contextmanager
def stages(title: str) -> Iterator[Any]:
    """Show a spinner with the current stage of the work. Yield a function that sets the stage."""
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err.console, transient=True, disable=not err.console.is_terminal) as progress:
        task = progress.add_task(title)
        yield lambda stage: progress.update(task, description=f"{title}: {escape(stage)}")


@contextmanager
def being_written() -> Iterator[Callable[[str], None] | None]:
    """Show a text while a model writes it, and remove it at the end. Yield None unless in a terminal."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield None
        return
    from rich.live import Live
    from rich.text import Text

    live = Live(console=err.console, transient=True, auto_refresh=False)

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
    """Show a progress bar. Yield a function (done, total) that moves it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err.console, transient=True, disable=not err.console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
