"""`clew train` and `clew feedback`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from clew.cli.options import AsJson, Base, CandidateSource, DatasetBase, MaxHops, Questions, Topics, listed
from clew.cli.output import err, out, print_json, print_table, progress_bar, tell
from clew.core.disk import refuse_foreign
from clew.core.errors import InputError
from clew.models.model_card import CARD

if TYPE_CHECKING:
    from clew.lab.evaluation.rankers import RankerReport


Weights = Annotated[Path, Option("--out", "-o", help="Output folder for the weights.")]
LeftOut = Annotated[str | None, Option("--left-out", metavar="K/N", help="Hold out fold K of N for evaluation.")]
Epochs = Annotated[int, Option("--epochs", min=1, help="Passes over the questions.")]
Seed = Annotated[int, Option("--seed", help="Random seed for folds and training.")]
Minutes = Annotated[float | None, Option("--minutes", min=0.01, help="Time limit in minutes.")]


def ranker(
    questions: Questions,
    output: Annotated[Path, Option("--out", "-o", help="Output folder for the ranker.")],
    kb: DatasetBase = None,
    kind: Annotated[
        Literal["linear", "logistic", "catboost", "neural"], Option("--ranker", help="Kind of ranker.")
    ] = "logistic",
    features: Annotated[
        str, Option("--features", help="Feature groups: text,graph,g2t,match,source. Neural: text or g2t,highlight.")
    ] = "text,graph,g2t",
    source: CandidateSource = "nearby",
    candidates: Annotated[int, Option("--candidates", min=2, help="Candidates per question.")] = 20,
    model: Annotated[
        str, Option("--model", help="Language model that generates candidates or describes subgraphs.")
    ] = "none",
    texts: Annotated[
        Literal["facts", "model"], Option("--texts", help="Texts of subgraphs: fact by fact, or written by the model.")
    ] = "facts",
    max_hops: MaxHops = 4,
    topics: Topics = False,
    limit: Annotated[int | None, Option("--limit", min=10, help="Use a random sample of N questions.")] = None,
    quick: Annotated[bool, Option("--quick", help="CatBoost: one setting instead of the grid.")] = False,
    encoder: Annotated[Path | None, Option("--encoder", help="Neural: initial encoder.")] = None,
    epochs: Annotated[int, Option("--epochs", min=1, help="Neural: passes over the questions.")] = 3,
    seed: Annotated[int, Option("--seed", help="Random seed for sample, split and training.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train a ranker of candidate answers on questions with gold answers, and evaluate it on held-out questions."""
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.benchmark import Benchmark
    from clew.lab.evaluation.rankers import PoolMaker, train_on_questions
    from clew.lab.training.neural_ranker import NeuralSettings
    from clew.lab.training.ranker import RankerSettings, TreeSettings
    from clew.models.opening import open_model

    dataset = load_dataset(questions)
    dataset = (dataset.with_topics() if topics else dataset).sample(limit, seed)
    benchmark = Benchmark(dataset, kb, model=open_model(model))
    maker = PoolMaker.of(benchmark, source, candidates, max_hops, texts)
    settings = RankerSettings(
        kind,
        listed(features),
        trees=TreeSettings((0.1,), (6,), seed=seed) if quick else TreeSettings(seed=seed),
        neural=NeuralSettings(encoder, epochs=epochs, seed=seed),
        seed=seed,
    )
    with progress_bar("candidates and subgraphs") as move:
        report = train_on_questions(
            maker, dataset, benchmark.tools.embedder, settings, output, source=source, texts=texts, progress=move
        )
    if as_json:
        print_json(report.to_json())
    else:
        show_report(report)


def show_report(report: RankerReport) -> None:
    """Print Hit@N before and after, and the importance of each feature."""
    told = ", ".join(f"{count} {name}" for name, count in report.counts.items())
    out.line(f"questions by topic: {told}; no topic in two of them")
    rows = []
    for name, curve in (("the source's order", report.before), (f"{report.card.kind} ranker", report.after)):
        low, high = curve.interval.low, curve.interval.high
        hits = [f"{100 * curve.at(n):.1f}" for n in (1, 2, 3, 5, 10)]
        rows.append((name, f"{hits[0]} [{100 * low:.1f}, {100 * high:.1f}]", *hits[1:]))
    print_table("Test questions, percent", ("", "Hit@1 [95 %]", "Hit@2", "Hit@3", "Hit@5", "Hit@10"), rows)
    out.line(f"paired randomisation test of Hit@1: p = {report.p_value:.4f}")
    if len(report.by_type) > 1:
        shown = [(kind, str(n), f"{100 * a:.1f}", f"{100 * b:.1f}") for kind, (n, a, b) in report.by_type.items()]
        print_table("Hit@1 by type of question, percent", ("type", "questions", "before", "after"), shown)
    if report.importance:
        losses = [(one.feature, f"{100 * one.loss:.2f}", f"{100 * one.deviation:.2f}") for one in report.importance]
        print_table("Loss of Hit@1 when shuffled, points", ("feature", "loss", "±"), losses)
    if report.own_importance:
        own = sorted(report.own_importance.items(), key=lambda item: -item[1])
        print_table("CatBoost's importance", ("feature", "percent"), [(name, f"{value:.2f}") for name, value in own])
    if report.card.usable:
        err.line(f"saved in {report.folder}; use it with --option ranker={report.folder}")
    else:
        err.line(f"kept in {report.folder}, but not usable: it ranks worse than the source does")


def reader(
    sources: Annotated[
        list[Path],
        Argument(
            help="A knowledge base to fit the reader to, or folders with schemas.jsonl and questions.jsonl, each "
            "question with its query."
        ),
    ],
    output: Annotated[Path | None, Option("--out", "-o", help="Many schemas: output folder for the weights.")] = None,
    model: Annotated[
        str, Option("--model", help="A base: language model that writes questions about its content.")
    ] = "none",
    undo: Annotated[bool, Option("--undo", help="A base: restore the bundled reader.")] = False,
    left_out: Annotated[
        str | None,
        Option("--left-out", metavar="K/N", help="Hold out fold K of N, or schemas by prefixes of their names: j_,k_."),
    ] = None,
    teacher: Annotated[
        Path | None,
        Option("--teacher", help="Many schemas: folder of a larger encoder that is trained first and then imitated."),
    ] = None,
    epochs: Epochs = 7,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit the reader to a base in minutes, or train it on many schemas (extra `train`, hours without a GPU)."""
    from clew.store.graph.manifest import is_base

    if is_base(sources[0]):
        if len(sources) > 1 or output or left_out or teacher:
            raise InputError(
                "fitting works on one base and stores the result there: "
                "leave out --out, --left-out, --teacher and other bases"
            )
        _fit_reader(sources[0], model, undo=undo, as_json=as_json)
        return
    from clew.lab.training.reader.fitting import train_reader

    if output is None or undo or model != "none":
        raise InputError(
            f"{sources[0]} is not a knowledge base: to train on schemas, give --out and leave out --model and --undo"
        )
    refuse_foreign(output, ("card.json",), "the weights of a reader")
    figures = train_reader(sources, output, left_out=left_out, epochs=epochs, teacher=teacher, seed=seed, say=err.line)
    show_figures("The reader", figures, as_json=as_json)


def _fit_reader(base: Path, model: str, *, undo: bool, as_json: bool) -> None:
    from clew.answering.reading.fitted import forget
    from clew.lab.training.own_base import fit_to_base
    from clew.models.opening import open_model
    from clew.store.open_base import OpenBase

    tools = OpenBase.open(base)
    if undo:
        told = "undone: the reader is as shipped" if forget(tools.local.folder) else "nothing to undo"
        tell(as_json, {"undone": told.startswith("undone")}, told)
        return
    with progress_bar("questions worded") as move:
        found = fit_to_base(tools, open_model(model), move)
    if as_json:
        print_json(asdict(found))
        return
    rows = [
        (way, str(n), f"{100 * before / n:.0f}", f"{100 * after / n:.0f}")
        for way, (n, before, after) in found.by_way.items()
    ]
    print_table("Questions that were left out, percent read right", ("asked for", "n", "before", "after"), rows)
    verdict = f"{found.gained} gained, {found.lost} lost: "
    verdict += f"taken into use; `clew train reader {base} --undo` undoes it" if found.taken else "nothing was changed"
    err.line(verdict)


def dense_retriever(
    base: Base,
    output: Weights,
    questions: Annotated[
        str | None,
        Option("--questions", "-q", metavar="FILE|DATASET:PATH[:SPLIT]", help="Default: questions by `clew synth`."),
    ] = None,
    left_out: Annotated[str, Option("--left-out", metavar="K/N", help="Hold out fold K of N.")] = "0/5",
    relations: Annotated[
        bool, Option("--relations/--no-relations", help="Include neighbours in the node documents.")
    ] = True,
    epochs: Epochs = 8,
    rate: Annotated[float, Option("--rate", help="Learning rate.")] = 5e-5,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train encoders for questions and node documents of a base (needs the extra `train`, hours without a GPU)."""
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.lessons import Trial, train_dense
    from clew.lab.synthesis.benchmark import BenchmarkOptions, make_benchmark
    from clew.lab.training.dense_retriever import DenseSettings
    from clew.lab.training.networks import open_torch
    from clew.store.open_base import OpenBase

    open_torch()  # report missing packages before creating files
    refuse_foreign(output, ("card.json", "synthetic"), "the weights of a dense retriever")
    tools = OpenBase.open(base)
    if questions is None:
        with progress_bar("questions") as move:
            make_benchmark(tools, output / "synthetic", BenchmarkOptions(seed=seed), progress=move)
    dataset = load_dataset(questions or str(output / "synthetic" / "questions.jsonl"))
    settings = DenseSettings(epochs=epochs, rate=rate, seed=seed)
    with progress_bar("false positives, then vectors") as move:
        trial = Trial(tools, dataset, settings, left_out, relations, err.line, move)
        card = train_dense(trial, output, f"clew train dense_retriever {base} -q {questions or 'synthetic'}")
    if as_json:
        print_json(card)
        return
    figures = card["figures"]
    rows = [
        (name, *(f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]" for mean, low, high in figures[name].values()))
        for name in ("vector search", "dense retriever")
    ]
    title = f"{figures['questions']} questions held apart, {figures['searched']}, percent [95 %]"
    print_table(title, ("", "Hit@1", "Hit@5", "Recall@20", "MRR"), rows)
    err.line(f"paired randomisation test of Hit@1: p = {figures['p of hit@1']:.4f}")
    told = f"use it with `-m vector_search -O weights={output}`" if card["usable"] else "not usable: it finds less"
    err.line(f"kept in {output}; {told}")


def qa_gnn(
    sources: Annotated[
        list[str],
        Argument(
            metavar="DATASET:PATH[:SPLIT]|FILE@BASE",
            help="Questions with answers: a data set with its base, or FILE@BASE.",
        ),
    ],
    output: Weights,
    steps: Annotated[int, Option("--steps", min=1, help="Training steps, each on questions of one base.")] = 6000,
    minutes: Minutes = None,
    kept: Annotated[
        float, Option("--kept", min=0, max=0.9, help="Share of each base's questions held out for evaluation.")
    ] = 0.1,
    limit: Annotated[int | None, Option("--limit", min=10, help="Random sample of N per source.")] = None,
    left_out: LeftOut = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train the network that passes messages through a graph (extra `train`, minutes with a GPU, hours without)."""
    from clew.lab.datasets.base import dataset_base
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.lessons import graph_lessons
    from clew.lab.training.networks import open_torch
    from clew.lab.training.qa_gnn import GraphSettings, train_graph_network
    from clew.store.open_base import OpenBase

    open_torch()  # report missing packages before reading files
    refuse_foreign(output, ("card.json",), "the weights of a graph network")
    lessons = []
    for source in sources:
        questions, at, base = source.rpartition("@")
        dataset = load_dataset(questions if at else source).sample(limit, seed)
        tools = OpenBase.open(Path(base)) if at else OpenBase.open(dataset_base(dataset))
        lessons.append(graph_lessons(tools, source, dataset.questions, kept, seed))
        err.line(f"{source}: {len(lessons[-1].taught)} questions to learn from")
    seconds = 60 * minutes if minutes else float("inf")
    settings = GraphSettings(steps=steps, seconds=seconds, seed=seed)
    figures = train_graph_network(lessons, output, settings, left_out=left_out, say=err.line)
    use = f"`clew ask KB … --method qa_gnn -O weights={output}`"
    show_figures("The graph network", figures, use, as_json=as_json)


def show_figures(what: str, figures: Mapping[str, float], use: str = "", *, as_json: bool) -> None:
    """Print the figures of a training, and how to use its result unless they say that it is not usable."""
    if as_json:
        print_json(dict(figures))
        return
    print_table(what, ("figure", "value"), [(name, f"{value:.3f}") for name, value in figures.items()])
    if not figures.get("usable", True):
        err.line("not usable: it is no better on the held-out data")
    elif use:
        err.line(f"use it with {use}")


def feedback(
    base: Base,
    question: Annotated[str | None, Option("--question", help="Question with its topic as [Name].")] = None,
    answer: Annotated[list[str] | None, Option("--answer", help="Correct answer: key or name.")] = None,
    learn: Annotated[bool, Option("--learn", help="Learn from all confirmed answers.")] = False,
    as_json: AsJson = False,
) -> None:
    """Confirm the answers to a question, or learn from all confirmed answers."""
    from clew.lab.training.feedback import confirm
    from clew.lab.training.feedback import learn as learn_from_confirmed
    from clew.store.open_base import OpenBase

    if question is None and not learn:
        raise InputError("no action given: add --question with --answer, or --learn")
    tools = OpenBase.open(base)
    told: dict[str, int] = {}
    if question is not None:
        told["confirmed"] = confirm(tools, question, answer or [])
    if learn:
        told["learned_from"] = len(learn_from_confirmed(tools))
    tell(as_json, told, ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in told.items()))


Documents = Annotated[
    list[Path], Argument(help="Folders with docs/ and questions.jsonl, or files in the form of HotpotQA.")
]
Start = Annotated[
    str, Option("--model", metavar="FOLDER[#FILE.gguf]", help="The language model to start from (transformers).")
]
Apart = Annotated[str, Option("--left-out", metavar="K/N", help="Hold out fold K of N for evaluation.")]
Licence = Annotated[str, Option("--licence", help="Licence of the data, for the model card.")]


def passages(
    sources: Documents,
    output: Weights,
    start: Annotated[
        Path | None, Option("--start", help="Folder of a cross-encoder (transformers) to start from.")
    ] = None,
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
    teacher: Annotated[
        Path | None, Option("--teacher", help="Folder of a cross-encoder (transformers) for distillation.")
    ] = None,
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
