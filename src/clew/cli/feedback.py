"""`clew feedback`: confirmed answers, kept beside a base and learned from."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.options import AsJson, Base, open_tools
from clew.cli.output import out, print_json
from clew.core.errors import InputError
from clew.training.path_feedback import confirm
from clew.training.path_feedback import learn as learn_from_confirmed


def feedback(
    base: Base,
    question: Annotated[str | None, typer.Option("--question", help="A question, its topic marked as [Name].")] = None,
    answer: Annotated[list[str] | None, typer.Option("--answer", help="A right answer: key or name; repeat.")] = None,
    learn: Annotated[bool, typer.Option("--learn", help="Learn from everything confirmed so far.")] = False,
    as_json: AsJson = False,
) -> None:
    """Confirm the answers to a question, or learn from all that were confirmed."""
    if question is None and not learn:
        raise InputError("give --question with --answer, or --learn")
    tools = open_tools(base)
    told: dict[str, int] = {}
    if question is not None:
        told["confirmed"] = confirm(tools, question, answer or [])
    if learn:
        told["learned_from"] = learn_from_confirmed(tools)[0]
    if as_json:
        print_json(told)
    else:
        out.print(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in told.items()), markup=False)
