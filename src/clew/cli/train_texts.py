"""`clew train` for networks over passages and for language models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from clew.cli.options import AsJson
from clew.cli.output import err
from clew.cli.train import Epochs, LeftOut, Minutes, Seed, Weights, show_figures
from clew.core.disk import refuse_foreign
from clew.models.model_card import CARD

Documents = Annotated[
    list[Path], Argument(help="Folders with docs/ and questions.jsonl, or files in the form of HotpotQA.")
]
Teacher = Annotated[Path | None, Option("--teacher", help="Folder of a cross-encoder (transformers) for distillation.")]
CrossEncoder = Annotated[Path | None, Option("--start", help="Folder of a cross-encoder (transformers) to start from.")]
Start = Annotated[
    str, Option("--model", metavar="FOLDER[#FILE.gguf]", help="The language model to start from (transformers).")
]
Apart = Annotated[str, Option("--left-out", metavar="K/N", help="Hold out fold K of N for evaluation.")]
Licence = Annotated[str, Option("--licence", help="Licence of the data, for the model card.")]


def passages(
    sources: Documents,
    output: Weights,
    start: CrossEncoder = None,
    left_out: LeftOut = None,
    epochs: Epochs = 4,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train the network that reads a question with passages (needs the extra `train`, hours without a GPU)."""
    from clew.lab.training.passages.fitting import train_passages

    refuse_foreign(output, ("card.json", "steps"), "the weights of a passage network")
    figures = train_passages(sources, output, start=start, left_out=left_out, epochs=epochs, seed=seed, say=err.line)
    show_figures("The passage network", figures, as_json=as_json)


def next_passage(
    sources: Documents,
    output: Weights,
    teacher: Teacher = None,
    left_out: LeftOut = None,
    epochs: Epochs = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train the embedder that finds the passages of an answer (needs the extra `train`, an hour without a GPU)."""
    from clew.lab.training.next_passage import train_next_passage

    refuse_foreign(output, ("card.json", "steps"), "the weights of an embedder")
    figures = train_next_passage(
        sources, output, teacher=teacher, left_out=left_out, epochs=epochs, seed=seed, say=err.line
    )
    show_figures("The embedder of passages", figures, f"`clew embed KB --embedder {output}`", as_json=as_json)


def graph_to_text(
    sources: Annotated[
        list[Path], Argument(help='JSON lines {"triples": [[subject, relation, object], …], "text": "…"}.')
    ],
    model: Start,
    output: Weights,
    measured_on: Annotated[
        list[Path] | None, Option("--measure-on", help="Additional file for evaluation, repeatable.")
    ] = None,
    left_out: Apart = "0/10",
    licence: Licence = "",
    epochs: Epochs = 3,
    minutes: Minutes = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a language model to describe subgraphs in sentences (extra `train`, a minute on a GPU)."""
    from clew.lab.training.fine_tuning import STEPS, Course
    from clew.lab.training.graph_to_text import train_graph_to_text
    from clew.lab.training.language import LanguageSettings

    refuse_foreign(output, (CARD, STEPS), "fine-tuned model")
    tuning = LanguageSettings(epochs, seconds=minutes and 60 * minutes, seed=seed)
    course = Course(model, output, left_out, licence, tuning, err.line)
    figures = train_graph_to_text(sources, course, measured_on or ())
    show_figures("Telling subgraphs", figures, f"--writer hf:{output} (clew subgraphs)", as_json=as_json)


def traverser(
    sources: Annotated[list[str], Argument(help="Questions with supporting passages: hotpotqa:FILE, 2wiki:FILE, …")],
    model: Start,
    output: Weights,
    measured_on: Annotated[
        list[str] | None, Option("--measure-on", help="Additional data set for evaluation, repeatable.")
    ] = None,
    left_out: Apart = "0/10",
    licence: Licence = "",
    epochs: Epochs = 4,
    minutes: Minutes = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a language model to write missing evidence for a question (extra `train`, better with a GPU)."""
    from clew.lab.training.fine_tuning import STEPS, Course
    from clew.lab.training.language import LanguageSettings
    from clew.lab.training.traverser import train_traverser

    refuse_foreign(output, (CARD, STEPS), "fine-tuned model")
    tuning = LanguageSettings(epochs, 2e-4, seconds=minutes and 60 * minutes, seed=seed)
    course = Course(model, output, left_out, licence, tuning, err.line)
    figures = train_traverser(sources, course, measured_on or ())
    use = f"-O traverser=generative -O traverser_model=hf:{output}"
    show_figures("The next evidence", figures, use, as_json=as_json)
