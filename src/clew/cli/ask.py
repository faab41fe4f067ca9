"""`clew ask`, `clew chat` and `clew methods`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from clew.cli import options as opt
from clew.cli.output import being_written, err, out, print_json, print_table
from clew.core.errors import InputError

if TYPE_CHECKING:
    from clew.core.types import Answer
    from clew.models.prices import Estimate


MOST_PLACES = 3
"""Number of further passages that a brief answer from documents lists."""
LONGEST_LINE = 100
"""Maximum number of characters to quote from a further passage."""


def ask(
    asked: Annotated[
        list[str],
        Argument(
            metavar="KB… QUESTION",
            help="One or more knowledge bases, sparql+http://HOST/query or bolt://HOST/DATABASE, then the question.",
            show_default=False,
        ),
    ],
    method: opt.Method = "auto",
    k: opt.Shown = 10,
    every: opt.ShownAll = False,
    more: Annotated[bool, Option("--more", help="Show the other passages of documents with their evidence.")] = False,
    option: opt.Options = None,
    no_kinds: opt.NoKinds = False,
    fix: Annotated[
        list[str] | None, Option("--fix", metavar="NAME=KEY", help="Link a name in the question to a node, repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, Option("--exclude", metavar="NAME", help="Words that are not a name, repeatable.")
    ] = None,
    relation: Annotated[
        list[str] | None,
        Option(
            "--relation",
            metavar="OLD=NEW",
            help="Replace a relation in the interpretation of the question. `OLD=^OLD` reverses it.",
        ),
    ] = None,
    type: Annotated[str | None, Option("--type", help="Node type of the answers.")] = None,
    model: opt.Model = "none",
    embedder: opt.EmbedderOption = None,
    groups: opt.Groups = None,
    max_calls: opt.MaxCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    max_seconds: opt.MaxSeconds = None,
    estimate: opt.EstimateOnly = False,
    trace: opt.TraceFile = None,
    svg: Annotated[
        Path | None, Option("--svg", metavar="FILE", help="Draw the paths behind the answers into this file.")
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Ask a question and see the answers with their evidence.

    In a terminal, the model's text appears while it is written, before it is checked.
    """
    from clew.api import open as open_base
    from clew.core.disk import refuse_existing
    from clew.core.trace import Recorder
    from clew.models.budget import Budget

    refuse_existing(trace, svg, force=force)
    *bases, question = asked
    if not bases:
        raise InputError(f"only one argument {question!r}: give a knowledge base and a question")
    base = bases[0] if len(bases) == 1 else bases
    options = opt.assignments(option) | ({"kinds": "false"} if no_kinds else {})
    budget = Budget(max_cost, max_tokens, max_calls, max_seconds)
    seen = opt.group_names(groups)
    opened = open_base(base, model=None if estimate else model, embedder=embedder, budget=budget, groups=seen)
    if estimate:
        show_estimate(opened.estimate(question, opened.method(method, options), model=model), as_json)
        return
    relations = opt.assignments(relation, "--relation")
    recorder = Recorder()
    try:
        chosen = opened.method(method, options)
        with nullcontext() if as_json else being_written() as recorder.on_text:
            answer = opened.ask(
                question, chosen, fixes=opt.corrections(fix, exclude), relations=relations, type=type, recorder=recorder
            )
    finally:
        if trace is not None:
            recorder.write(trace)
    k = len(answer.candidates) if every else k
    if svg is not None:
        from clew.answering.evidence_drawing import draw_evidence

        svg.write_text(draw_evidence(answer, k), "utf-8")
        err.line(f"written: {svg}")
    if as_json:
        shown = answer.to_dict()
        print_json({**shown, "answers": shown["answers"][:k]})
    else:
        show_answer(answer, k, is_brief=not (more or every))


def show_estimate(estimate: Estimate, as_json: bool) -> None:
    """Print the estimated cost of a question."""
    if as_json:
        print_json(asdict(estimate))
    else:
        out.line(estimate.in_words())
        out.line(("a guess: what the model says decides what it is asked next", "dim"))


def show_answer(answer: Answer, k: int, *, is_brief: bool = True) -> None:
    """Print an answer: its state, its text, and the candidates by group with evidence.

    A brief answer from documents lists at most `MOST_PLACES` further passages, on one line each.
    """
    if answer.outage is not None:
        out.line((answer.outage, "yellow"))
    if answer.headline:
        out.line((answer.headline, "bold"))
    if answer.text is not None:
        show_text(answer)
    if answer.found and answer.query.get("text"):
        out.line((f"understood: {answer.query['text']}", "dim"))
    if answer.sure:
        out.line((answer.sure, "dim"))
    if answer.dropped and answer.found:
        out.line((f"not used: {'; '.join(answer.dropped)}", "dim"))
    if answer.rows:
        show_rows(answer, k)
    rank, with_evidence = 0, sum(bool(candidate.evidence) for candidate in answer.candidates)
    places = _further_places(answer) if is_brief else None
    if places:
        out.line(("Other passages:", "dim"))
        for place in places[:MOST_PLACES]:
            out.line(f"  {place}")
        if len(places) > MOST_PLACES:
            out.line((f"{len(places) - MOST_PLACES:,} more with --more", "dim"))
    for title, group in () if answer.rows or places is not None else answer.sections(k):
        out.line((f"{title}:", "dim"))
        for candidate in group:
            rank, node = rank + 1, candidate.node
            about = f"{node.type}  {node.key}"
            out.line((f"{rank:>3}  {node.name}", "bold"), "  ", (about, "dim"), f"  {candidate.score:.3f}")
            for piece in candidate.evidence[:3]:
                out.line(f"       {piece.in_words()}")
    if 0 < with_evidence < rank:
        out.line((f"evidence was collected for {with_evidence:,} of these {rank:,}: -O shown=N collects more", "dim"))
    if rank < len(answer.matches) and not answer.rows and places is None:
        out.line((f"{len(answer.matches) - rank:,} more: -k N shows more of them, --all lists every one", "dim"))
    for note in answer.notes[answer.outage is not None :]:
        out.line((note, "dim"))
    for fallback in answer.fallbacks:
        out.line((f"{fallback.step}: {fallback.reason}; {fallback.instead}", "yellow"))
    out.line((f"{answer.method}, model {answer.model}, {answer.seconds:.3f} s", "dim"))


def show_rows(answer: Answer, k: int) -> None:
    """Print the first rows of a table."""
    from clew.core.types import NodeRef

    rows = [["" if c is None else c.name if isinstance(c, NodeRef) else c for c in row] for row in answer.rows[:k]]
    print_table("", answer.columns, rows)
    if len(answer.rows) > k:
        out.line((f"{len(answer.rows) - k:,} more rows: -k N shows more of them, --all lists every one", "dim"))


def _further_places(answer: Answer) -> list[str] | None:
    """Return a line for each passage that the text does not quote, or None if the answer is not from documents."""
    from clew.core.types import Passage

    quoted = {piece.node.id for piece in answer.evidence if isinstance(piece, Passage)}
    firsts = [next((p for p in one.evidence if isinstance(p, Passage) and p.file), None) for one in answer.candidates]
    if answer.text is None or not any(firsts):
        return None
    others = [one for one in firsts if one is not None and one.node.id not in quoted]
    return [f"{one.place}: {shorten(one.marked, LONGEST_LINE, placeholder=' …')}" for one in others]


def show_text(answer: Answer) -> None:
    """Print a text with its citations. The passage of a single citation follows, with the marked sentences in bold."""
    from clew.core.types import Passage

    out.line((answer.text or "", "bold"))
    said = " ".join((answer.text or "").split())
    for number, piece in enumerate(answer.evidence, start=1):
        is_said = isinstance(piece, Passage) and bool(piece.file) and " ".join(piece.marked.split()) in said
        shown = piece.place if isinstance(piece, Passage) and is_said else piece.in_words()
        out.line(f"  [{number}] {shown}")
        is_only = len(answer.evidence) == 1
        if is_only and isinstance(piece, Passage) and is_said and piece.mark and piece.marked != piece.text:
            start, end = piece.mark
            if piece.section:
                out.line((piece.section, "dim"))
            out.line(piece.text[:start], (piece.text[start:end], "bold"), piece.text[end:])


def methods(as_json: opt.AsJson = False) -> None:
    """List the methods and their options."""
    from clew.answering.methods.catalog import describe, method_names

    rows = [(name, *describe(name)) for name in method_names()]
    if as_json:
        print_json([{"name": name, "summary": summary, "options": options} for name, summary, options in rows])
    else:
        shown = [
            (name, summary, ", ".join(f"{o} ({v})" for o, v in options.items())) for name, summary, options in rows
        ]
        print_table("", ("method", "what it does", "options"), shown)


HELP = (
    "Ask. You can refer to earlier questions (“which of them …”, “what about X”, “why?”). /new starts over, /quit ends."
)


def chat(
    base: opt.AnyBase,
    method: opt.Method = "auto",
    k: opt.Shown = 5,
    every: opt.ShownAll = False,
    option: opt.Options = None,
    no_kinds: opt.NoKinds = False,
    model: opt.Model = "none",
    embedder: opt.EmbedderOption = None,
    groups: opt.Groups = None,
    max_calls: opt.MaxCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    max_seconds: opt.MaxSeconds = None,
    as_json: Annotated[bool, Option("--json", help="Print one line of JSON for every answer.")] = False,
) -> None:
    """Ask questions in a conversation. Questions can refer to earlier questions.

    Reads questions from the terminal, or one per line from standard input.
    """
    from clew.api import open as open_base
    from clew.core.trace import Recorder
    from clew.models.budget import Budget

    options = opt.assignments(option) | ({"kinds": "false"} if no_kinds else {})
    budget = Budget(max_cost, max_tokens, max_calls, max_seconds)
    opened = open_base(base, model=model, embedder=embedder, budget=budget, groups=opt.group_names(groups))
    chosen = opened.method(method, options)
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
        except InputError as error:  # continue after an invalid question
            err.line(str(error))
            continue
        most = len(answer.candidates) if every else k
        if as_json:
            shown = answer.to_dict()
            line = json.dumps({**shown, "answers": shown["answers"][:most]}, ensure_ascii=False, default=str)
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        else:
            show_answer(answer, most)
            out.line()


def _questions() -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin if line.strip())
        return
    import readline  # noqa: F401 - arrows and history in the terminal

    err.line((HELP, "dim"))
    while True:
        try:
            question = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            err.line()
            return
        if question:
            yield question
