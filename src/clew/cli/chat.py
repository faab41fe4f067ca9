"""`clew chat`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated

import typer

from clew.api import open as open_base
from clew.cli.ask import show_answer
from clew.cli.options import (
    AnyBase,
    EmbedderOption,
    Groups,
    MaxCalls,
    MaxCost,
    MaxSeconds,
    MaxTokens,
    Method,
    Model,
    Options,
    Shown,
    assignments,
    group_names,
)
from clew.cli.output import being_written, err, out
from clew.core.errors import InputError
from clew.core.trace import Recorder
from clew.methods.catalog import DEFAULT_METHOD
from clew.models.wrappers import Budget

HELP = (
    "Ask; a question may lean on those before it (“which of them …”, “what about X”, “why?”). /new forgets, /quit ends."
)


def chat(
    base: AnyBase,
    method: Method = DEFAULT_METHOD,
    k: Shown = 5,
    option: Options = None,
    model: Model = "none",
    embedder: EmbedderOption = None,
    groups: Groups = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for every answer.")] = False,
) -> None:
    """Ask questions one after another; each may lean on those before it.

    Questions come from the terminal or, a line each, from standard input.
    """
    budget = Budget(max_cost, max_tokens, max_calls, max_seconds)
    opened = open_base(base, model=model, embedder=embedder, budget=budget, groups=group_names(groups))
    chosen = opened.method(method, assignments(option))
    conversation = opened.conversation(chosen)
    for question in _questions():
        if question in ("/quit", "/exit"):
            return
        if question == "/new":
            conversation = opened.conversation(chosen)
            continue
        try:
            with nullcontext() if as_json else being_written() as show:
                answer = conversation.ask(question, Recorder(on_text=show))
        except InputError as error:  # one bad question does not end the conversation
            err.print(str(error), markup=False)
            continue
        if as_json:
            shown = answer.to_dict()
            line = json.dumps({**shown, "answers": shown["answers"][:k]}, ensure_ascii=False, default=str)
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        else:
            show_answer(answer, k)
            out.print()


def _questions() -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin if line.strip())
        return
    import readline  # noqa: F401 - arrows and history in the terminal

    err.print(f"[dim]{HELP}[/dim]")
    while True:
        try:
            question = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            err.print()
            return
        if question:
            yield question
