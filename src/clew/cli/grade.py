"""`clew grade`: have a language model say which written answers of a run are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.cli.options import AsJson
from clew.cli.output import out, print_json, print_table
from clew.core.errors import InputError
from clew.datasets.load import load_dataset
from clew.evaluation.grading import Grading, summarise_grades
from clew.evaluation.grading import grade as graded
from clew.evaluation.report import load_runs
from clew.models.opening import open_model


def grade(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of `clew eval --out`.")],
    questions: Annotated[
        str, typer.Option("--questions", "-q", metavar="FILE|DATASET:PATH[:SPLIT]", help="The data set of the runs.")
    ],
    model: Annotated[str, typer.Option("--model", help="The language model that grades.")],
    as_json: AsJson = False,
) -> None:
    """Grade the written answers of runs by a language model, in both orders, and compare with exact match."""
    opened = open_model(model)
    if opened is None:
        raise InputError("grading asks a language model: name one with --model")
    answers = {question.id: question.answers for question in load_dataset(questions).questions}
    found: dict[str, Grading] = {}
    for run in load_runs(folders):
        found[run.setup.method] = summarise_grades(graded(run.rows, answers, opened))
    if as_json:
        print_json({name: grading.to_json() for name, grading in found.items()})
        return
    rows = [
        [
            name,
            str(one.n),
            f"{100 * one.accuracy:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]",
            f"{100 * one.em:.1f}",
            f"{100 * one.orders_agree:.1f}",
            f"{100 * one.agrees_with_em:.1f}",
            f"{one.kappa_with_em:.2f}",
        ]
        for name, one in found.items()
    ]
    columns = ["method", "n", "graded right", "EM", "orders agree", "agrees with EM", "kappa"]
    print_table(f"Graded by {opened.name}", columns, rows)
    out.print("[dim]right where the grader says so in both orders; shares in %[/dim]")
