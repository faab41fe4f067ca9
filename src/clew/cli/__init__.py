"""The command line: parse, call one library function, show."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated

import typer
from typer import Option

from clew.cli.output import err
from clew.core.errors import ClewError
from clew.core.version import __version__

COMMANDS = {
    "build": ("build:build", "Build a knowledge base from files, a database or documents."),
    "update": ("build:update", "Add, change and delete nodes and edges."),
    "verify": ("inspect:verify", "Check every file of a base against its checksums."),
    "repair": ("inspect:repair", "Restore a damaged base."),
    "check": ("inspect:check", "Report doubtful data."),
    "dedup": ("inspect:dedup", "List likely duplicates, and merge them with --merge."),
    "info": ("inspect:info", "Show the types, relations and sizes of a base."),
    "schema": ("inspect:schema", "Print the schema as TOML."),
    "show": ("inspect:show", "Show one node, or its page of a PDF."),
    "export": ("inspect:export", "Write a base as a DuckDB file, for the SQL of its answers."),
    "find": ("inspect:find", "Find nodes by name or text."),
    "embed": ("build:embed", "Compute the vectors of all nodes ahead."),
    "doctor": ("models:doctor", "Show versions, extras, models, caches and permissions."),
    "demo": ("demo:demo", "Build two small bases and ask five questions."),
    "ask": ("ask:ask", "Ask a question and see the answers with their evidence."),
    "chat": ("ask:chat", "Ask questions one after another."),
    "methods": ("ask:methods", "List the methods and their options."),
    "models": ("models:models", "List the configured language models and check them."),
    "batch run": ("models:run", "Answer waiting requests with a local model."),
    "batch status": ("models:status", "Count waiting requests and replies."),
    "trace": ("trace:trace", "Show the steps of an answer as a tree."),
    "feedback": ("train:feedback", "Confirm answers, or learn from confirmed ones."),
    "eval": ("eval:evaluate", "Run methods on the questions of a data set and judge them."),
    "tune": ("tune:tune", "Choose the method and options that answer best over a base."),
    "reproduce": ("eval:reproduce_tables", "Run the tables of published data sets."),
    "report": ("eval:report", "Compare runs: tables, tests, plots and the worst failures."),
    "grade": ("eval:grade", "Grade the written answers of runs by a language model."),
    "subgraph": ("subgraph:subgraph", "Show the subgraph between entities."),
    "subgraphs": ("subgraph:subgraphs", "Write a data set of subgraphs."),
    "synth": ("synth:synth", "Make a benchmark from a base."),
    "train ranker": ("train:ranker", "Train a ranker of candidate answers."),
    "train reader": ("train:reader", "Fit the reader to a base, or train it on many schemas."),
    "train passages": ("train:passages", "Train the network that reads passages."),
    "train next_passage": ("train:next_passage", "Train the embedder that finds the passages of an answer."),
    "train graph_to_text": ("train:graph_to_text", "Fine-tune a language model to describe subgraphs."),
    "train traverser": ("train:traverser", "Fine-tune a language model to write missing evidence."),
    "train bridge_reranker": ("train:passages", "Train the network that reads passages."),
    "train dense_retriever": ("train:dense_retriever", "Train encoders of questions and documents for a base."),
    "train qa_gnn": ("train:qa_gnn", "Train the graph network."),
    "serve": ("serve:serve", "Serve a page, a REST API, OpenAI-compatible chat and MCP."),
    "users": ("serve:users", "List the users of a server, or reset a password."),
    "mcp": ("serve:mcp", "Offer bases to an agent over MCP (stdio)."),
    "completion": ("models:completion", "Print a completion script for your shell."),
}
"""Command → its function and summary, so that `clew --help` imports no command."""
GROUPS = {"batch": "Answer the requests of `--model batch:DIR`.", "train": "Train on questions with gold answers."}
"""Summaries of command groups."""

app = typer.Typer(
    name="clew",
    help="Answer questions over a knowledge base, with the facts, paths and passages behind each answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing rich takes longer than most commands
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clew {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    _settings["debug"] = debug


_settings = {"debug": False}


def _register(arguments: Sequence[str] = (), *, all_commands: bool = True) -> None:
    """Add the requested command, or all of them. Imports take longer than most commands."""
    requested = next((argument for argument in arguments if not argument.startswith("-")), "")
    chosen = [names for names in COMMANDS if names.split()[0] == requested]
    groups: dict[str, typer.Typer] = {}
    for names in chosen or COMMANDS:
        place, summary = COMMANDS[names]
        group, _, name = names.rpartition(" ")
        if group and group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], no_args_is_help=True)
            app.add_typer(groups[group], name=group)
        function = _function(place) if chosen or all_commands else lambda: None
        groups.get(group, app).command(name, short_help=summary)(function)


def _function(place: str) -> Callable[..., None]:
    module, name = place.split(":")
    found: Callable[..., None] = getattr(import_module(f"clew.cli.{module}"), name)
    return found


OBJECTS = 200_000
"""Threshold of the garbage collector. With Python's default of 700, imports trigger hundreds of collections."""


def command() -> None:
    """Run a command and end the process with its exit code.

    Skips the interpreter's shutdown, during which libraries with threads may abort.
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
    """Run a command. Print each error as one line and exit with its code."""
    _register(sys.argv[1:], all_commands="_CLEW_COMPLETE" in os.environ)
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
        err.line(("error:", "red"), f" not enough memory {error}: use less data at once, or more memory")
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
            err.line("this is a bug in Clew: run again with `clew --debug …` and report it")
        sys.exit(1)
