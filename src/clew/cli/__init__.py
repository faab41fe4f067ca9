"""The command line: parse, call one library function, show."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated

import typer

from clew import __version__
from clew.cli.output import err
from clew.core.errors import ClewError

COMMANDS = {
    "build": "clew.cli.build:build",
    "update": "clew.cli.build:update",
    "verify": "clew.cli.inspect:verify",
    "repair": "clew.cli.inspect:repair",
    "check": "clew.cli.inspect:check",
    "dedup": "clew.cli.inspect:dedup",
    "info": "clew.cli.inspect:info",
    "schema": "clew.cli.inspect:schema",
    "show": "clew.cli.inspect:show",
    "find": "clew.cli.inspect:find",
    "embed": "clew.cli.build:embed",
    "doctor": "clew.cli.models:doctor",
    "demo": "clew.cli.demo:demo",
    "ask": "clew.cli.ask:ask",
    "chat": "clew.cli.ask:chat",
    "methods": "clew.cli.ask:methods",
    "models": "clew.cli.models:models",
    "batch run": "clew.cli.models:run",
    "batch status": "clew.cli.models:status",
    "trace": "clew.cli.trace:trace",
    "feedback": "clew.cli.train:feedback",
    "eval": "clew.cli.eval:evaluate",
    "tune": "clew.cli.tune:tune",
    "reproduce": "clew.cli.eval:reproduce_tables",
    "report": "clew.cli.eval:report",
    "grade": "clew.cli.eval:grade",
    "subgraph": "clew.cli.subgraph:subgraph",
    "subgraphs": "clew.cli.subgraph:subgraphs",
    "synth": "clew.cli.synth:synth",
    "train ranker": "clew.cli.train:ranker",
    "train reader": "clew.cli.train:reader",
    "train passages": "clew.cli.train_texts:passages",
    "train next_passage": "clew.cli.train_texts:next_passage",
    "train graph_to_text": "clew.cli.train_texts:graph_to_text",
    "train traverser": "clew.cli.train_texts:traverser",
    "train bridge_reranker": "clew.cli.train_texts:passages",
    "train dense_retriever": "clew.cli.train:dense_retriever",
    "train qa_gnn": "clew.cli.train:qa_gnn",
    "serve": "clew.cli.serve:serve",
    "users": "clew.cli.serve:users",
    "mcp": "clew.cli.serve:mcp",
    "completion": "clew.cli.models:completion",
}
"""Every command and the function behind it."""
GROUPS = {
    "batch": "Requests that wait in a folder for their replies (`--model batch:DIR`).",
    "train": "Learn from questions with gold answers.",
}
"""What the commands of two words have in common."""

app = typer.Typer(
    name="clew",
    help="Answers questions over a knowledge base and hands over the thread: the facts, paths and passages behind it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clew {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    _settings["debug"] = debug


_settings = {"debug": False}


def _register(arguments: Sequence[str] = ()) -> None:
    """The command that was asked for, or all of them where help needs them: imports take longer than most commands."""
    asked = next((argument for argument in arguments if not argument.startswith("-")), "")
    chosen = {names: place for names, place in COMMANDS.items() if names.split()[0] == asked} or COMMANDS
    groups: dict[str, typer.Typer] = {}
    for names, place in chosen.items():
        module, function = place.split(":")
        group, _, name = names.rpartition(" ")
        if group and group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], no_args_is_help=True)
            app.add_typer(groups[group], name=group)
        groups.get(group, app).command(name)(getattr(import_module(module), function))


OBJECTS = 200_000
"""New ones before Python looks for cycles among them; at its own 700, imports alone make it look hundreds of times."""


def command() -> None:
    """Run a command and end the process with its exit code.

    It ends at once: libraries with threads of their own may abort while an interpreter winds down.
    """
    gc.set_threshold(OBJECTS)
    try:
        main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def main() -> None:
    """Run a command; every error becomes one clear line and an exit code."""
    _register(sys.argv[1:])
    if "_CLEW_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        app(standalone_mode=True)
    except ClewError as error:
        if _settings["debug"]:
            traceback.print_exc()
        err.line(("error:", "red"), f" {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err.line("stopped; what was finished is kept")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
    except MemoryError as error:
        err.line(("error:", "red"), f" not enough memory {error}: give less at once, or more memory")
        sys.exit(1)
    except OSError as error:
        if _settings["debug"]:
            traceback.print_exc()
        where = f"{error.filename}: " if error.filename else ""
        err.line(("error:", "red"), f" {where}{error.strerror or error}")
        sys.exit(1)
    except Exception as error:
        if _settings["debug"]:
            traceback.print_exc()
        else:
            err.line(("internal error:", "red"), f" {type(error).__name__}: {error}")
            err.line("this is a fault of Clew: run again with `clew --debug …` and report it")
        sys.exit(1)
