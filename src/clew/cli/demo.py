"""`clew demo`: a real base and real questions in one command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from clew.catalog import DEFAULT_METHOD, create
from clew.catalog import ask as answer_question
from clew.cli.ask import show_answer
from clew.cli.options import AsJson
from clew.cli.output import out, print_json, stages
from clew.core.folders import refuse_foreign
from clew.core.json_form import answer_json
from clew.demo import QUESTIONS, demo_base, demo_pictures
from clew.toolbox import Toolbox

LONGEST_TEXT = 200


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to keep the demonstration base.")] = Path(".demo"),
    as_json: AsJson = False,
) -> None:
    """Build the Human Phenotype Ontology as a knowledge base and ask it two questions."""
    base = folder / "hpo.kb"
    refuse_foreign(folder, (base.name,), "demonstration", "name a new folder with --folder")
    begun = time.perf_counter()
    with stages("building the demonstration base") as say:
        report = demo_base(base, say)
    seconds = time.perf_counter() - begun
    tools = Toolbox.open(base)
    method = create(DEFAULT_METHOD, tools)
    answers = [answer_question(method, question) for question in QUESTIONS]
    pictures = list(demo_pictures(tools.kb, folder))
    if as_json:
        shown = [answer_json(answer) for answer in answers]
        drawn = [{"file": str(file), "text": text} for file, text in pictures]
        print_json({"base": str(base), "seconds": seconds, "answers": shown, "pictures": drawn})
        return
    out.print(f"{base}: {report.nodes:,} nodes, {report.edges:,} edges, ready in {seconds:.1f} s", markup=False)
    for note in report.notes:
        out.print(f"[dim]{note}[/dim]", soft_wrap=True)
    for answer in answers:
        out.print(f"\n[bold cyan]{answer.question}[/bold cyan]")
        show_answer(answer, 5)
    out.print("\n[bold cyan]What lies between two entities, drawn[/bold cyan]")
    for file, text in pictures:
        out.print(f"{file}: {text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + '…'}", markup=False)
    out.print(f'\nYour turn: clew ask {base} "…"', markup=False)
