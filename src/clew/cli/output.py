"""What commands print; rich is imported where something is drawn, since most commands print lines alone."""

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
    from rich.table import Table
    from rich.tree import Tree

MOST_ROWS = 500
"""Rows of a table that people are shown."""
PIPED_WIDTH = 200
"""Columns where nobody looks: a table in a file must not be folded to a narrow screen."""


STYLES: dict[str, dict[str, Any]] = {
    "": {"reset": False},
    "bold": {"bold": True},
    "dim": {"dim": True},
    "red": {"fg": "red"},
    "yellow": {"fg": "yellow"},
    "title": {"fg": "cyan", "bold": True},
}
Styled = tuple[str, str]
"""A text and how it is shown."""


@dataclass(frozen=True)
class Screen:
    """Where people read: standard output, or standard error.

    It is sent no commands but its own: names and texts may hold characters that a terminal obeys.
    """

    is_error: bool = False

    def line(self, *pieces: str | Styled) -> None:
        """One line of texts; only a terminal is sent their styles."""
        plain_or_styled = ((piece, "") if isinstance(piece, str) else piece for piece in pieces)
        shown = "".join(typer.style(shown_text(text), **STYLES[style]) for text, style in plain_or_styled)
        typer.echo(shown, err=self.is_error, color=False if os.environ.get("NO_COLOR") else None)

    def draw(self, shown: Table | Tree) -> None:
        """What rich makes of it."""
        self.console.print(shown)

    @cached_property
    def console(self) -> Console:
        """For what rich draws; control characters show as the signs that stand for them."""
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
    """One JSON document on stdout."""
    sys.stdout.write(shown_json(json.dumps(value, ensure_ascii=False, indent=2, default=str)) + "\n")


def tell(as_json: bool, value: Any, *lines: str) -> None:
    """A value as JSON, or the same in lines for people."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        out.line(line)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table for people; numbers are right-aligned."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows[:MOST_ROWS]:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    out.draw(table)
    if len(rows) > MOST_ROWS:
        out.line(f"… and {len(rows) - MOST_ROWS:,} more: --json lists them all")


def print_plain(text: str) -> None:
    """A long text on stdout as it is, neither folded nor coloured."""
    sys.stdout.write(shown_text(text))


def say(text: str) -> None:
    """A line for people, on stderr."""
    err.line(text)


@contextmanager
def stages(title: str) -> Iterator[Any]:
    """A spinner that names the stage of a long piece of work; yields the function to name it with."""
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err.console, transient=True, disable=not err.console.is_terminal) as progress:
        task = progress.add_task(title)
        yield lambda stage: progress.update(task, description=f"{title}: {escape(stage)}")


@contextmanager
def being_written() -> Iterator[Callable[[str], None] | None]:
    """Shows a text while it is written and takes it away in the end; None where no person looks on."""
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
    """A bar; yields a function (done, total) to move it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err.console, transient=True, disable=not err.console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
