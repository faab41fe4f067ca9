"""`clew eval`, `clew report`, `clew grade` and `clew reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from clew.cli import options as opt
from clew.cli.output import err, out, print_json, print_plain, print_table, stages, tell
from clew.core.errors import InputError, NotFoundError, PendingError

if TYPE_CHECKING:
    from clew.documents.passage_graph import EdgeOptions
    from clew.lab.datasets.questions import Dataset
    from clew.lab.evaluation.page import PageTable
    from clew.lab.evaluation.report import ReportSection
    from clew.lab.evaluation.run_folder import QuestionRow
    from clew.lab.evaluation.runs import Run


def report(
    folders: Annotated[list[Path], Argument(metavar="DIR…", help="Folders of `clew eval --out`.")],
    html: Annotated[Path | None, Option("--html", help="Write a self-contained HTML page.")] = None,
    metric: Annotated[str | None, Option("--metric", help="Metric for comparisons. Default: hit@1.")] = None,
    failures: Annotated[int, Option("--failures", min=0, help="Number of worst failures to list.")] = 3,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show tables, paired comparisons, plots and the worst failures of runs."""
    from clew.core.disk import refuse_existing
    from clew.lab.evaluation.page import report_page
    from clew.lab.evaluation.report import failure_json, load_runs, make_report, report_json, worst_failures

    refuse_existing(html, force=force)
    sections = make_report(load_runs(folders), metric)
    if html is not None:
        html.write_text(report_page(sections, max(failures, 10)), "utf-8")
        err.line(f"written: {html}")
    if as_json:
        print_json(report_json(sections, failures))
        return
    for section in sections:
        show_section(section)
        for label, run in section.runs:
            for row in worst_failures(run, section.metric, failures):
                show_failure(label, failure_json(row))


def show_section(section: ReportSection) -> None:
    """Print the tables of one set of questions."""
    from clew.lab.evaluation.page import comparison_table, costs, overview, type_table

    for table in (overview(section), costs(section), comparison_table(section), type_table(section)):
        if table.rows:
            _show(table)


def _show(table: PageTable) -> None:
    # Print intervals below their values to limit the width.
    rows = [[cell.replace(" [", "\n[") for cell in row] for row in table.rows]
    print_table(table.title, table.columns, rows)
    out.line((f"{table.note}\n" if table.note else "", "dim"))


def show_failure(label: str, failure: dict[str, Any]) -> None:
    """Print a failed question with the answers found and the trace."""
    out.line((failure["question"], "bold"), "  ", (f"{label}, {failure['id']}", "dim"))
    for name in ("gold", "found", "places", "error", "fallbacks"):
        if value := failure[name]:
            shown = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
            out.line((f"  {name}", "dim"), f" {shown}")
    for line in failure["trace"]:
        out.line(("  │", "dim"), f" {line}")
    out.line()


def evaluate(
    questions: opt.Questions,
    kb: opt.DatasetBase = None,
    method: Annotated[list[str], Option("--method", "-m", help="Method, repeatable.")] = ["auto"],  # noqa: B006
    model: Annotated[str, Option("--model", help="The language model, or none.")] = "none",
    embedder: opt.EmbedderOption = None,
    option: opt.Options = None,
    limit: opt.Sample = None,
    seed: opt.SampleSeed = 0,
    output: Annotated[Path | None, Option("--out", "-o", help="Output folder. Run again to continue.")] = None,
    match: Annotated[
        Literal["strict", "lenient"] | None, Option("--match", help="Name comparison. Default: strict.")
    ] = None,
    topics: opt.Topics = False,
    per_question: Annotated[
        bool, Option("--per-question", help="Ask each question only over its own paragraphs.")
    ] = False,
    graph: Annotated[
        str | None, Option("--graph", metavar="KIND,…", help="Edges between passages: tfidf, entity, knn, ….")
    ] = None,
    neighbours: Annotated[int | None, Option("--neighbours", min=1, help="Neighbours per passage.")] = None,
    titles: Annotated[bool, Option("--titles/--no-titles", help="Include titles in passages.")] = True,
    sentences: Annotated[bool, Option("--sentences", help="Make every sentence of a corpus a passage.")] = False,
    documents: Annotated[
        int | None, Option("--documents", min=1, help="Ask each question over N documents, including its own.")
    ] = None,
    label: Annotated[str | None, Option("--label", help="Label of the set, such as reduced or human.")] = None,
    concurrency: Annotated[
        int | None, Option("--concurrency", "-j", min=1, help="Parallel questions. 8 with a model, else 1.")
    ] = None,
    ray: opt.Ray = None,
    max_calls: opt.MaxCalls = None,
    max_cost: opt.MaxCost = None,
    as_json: opt.AsJson = False,
) -> None:
    """Run one or more methods on the questions of a data set and evaluate the answers."""
    from clew.core.workers import hired
    from clew.lab.evaluation.benchmark import Benchmark
    from clew.models.budget import Budget, Ledger
    from clew.models.opening import open_model

    if twice := next((name for name in method if method.count(name) > 1), None):
        raise InputError(f"--method {twice} is given twice: leave out one of them")
    given = opt.assignments(option)
    dataset = prepare(questions, label, limit, seed, topics, titles, sentences=sentences, documents=documents)
    opened = open_model(model, ledger=Ledger(Budget(calls=max_calls, dollars=max_cost)))
    with stages(f"base of {dataset.name}") as stage:
        benchmark = Benchmark(
            dataset,
            kb,
            model=opened,
            embedder=embedder,
            match=match,
            per_question=per_question or documents is not None,
            edges=edge_options(graph, neighbours),
            say=stage,
            note=err.line,
        )
        methods = {name: benchmark.method(name, options_of(name, given)) for name in method}
        benchmark.tools  # noqa: B018 - builds the base while its progress is shown
    runs = []
    with hired(ray) as workers:
        for name in method:
            with live_metrics(name, dataset) as on_row:
                finishing = "finishing the questions under way; press Ctrl-C again to stop at once"
                run = benchmark.run(
                    methods[name],
                    out=output,
                    concurrency=concurrency,
                    workers=workers,
                    on_row=on_row,
                    on_interrupt=partial(err.line, finishing),
                )
                runs.append(run)
    show(runs, as_json)
    if waiting := sum(run.waiting for run in runs):
        raise PendingError(f"{waiting} questions wait: {next(run.pending for run in runs if run.pending)}")


def options_of(method: str, given: dict[str, str]) -> dict[str, str]:
    """Return the options of one method: options for all methods, and its own options, given as METHOD.NAME=VALUE."""
    parts = [(name.rpartition("."), value) for name, value in given.items()]
    return {name: value for (owner, _, name), value in parts if owner in ("", method)}


def edge_options(graph: str | None, neighbours: int | None) -> EdgeOptions | None:
    """Return the options for edges between passages, or None if the command line has none."""
    from clew.documents.passage_graph import EdgeOptions

    if graph is None and neighbours is None:
        return None
    options = EdgeOptions() if graph is None else EdgeOptions(opt.listed(graph))
    return options if neighbours is None else replace(options, neighbours=neighbours, nearest=neighbours)


def prepare(
    questions: str,
    label: str | None,
    limit: int | None,
    seed: int,
    topics: bool,
    titles: bool,
    *,
    sentences: bool = False,
    documents: int | None = None,
) -> Dataset:
    """Load and label the data set of the command line."""
    from clew.lab.datasets.load import load_dataset

    dataset = load_dataset(questions)
    if (sentences or documents is not None) and not dataset.paragraphs:
        raise InputError(f"{dataset.name} is not a corpus of texts: leave out --sentences and --documents")
    if documents is not None:
        dataset = dataset.with_documents(documents, seed)
    if sentences:
        dataset = dataset.in_sentences()
    if not titles:
        dataset = dataset.without_titles()
    if label:
        dataset = replace(dataset, portion=label)
    if topics:
        dataset = dataset.with_topics()
    return dataset.sample(limit, seed)


def show(runs: list[Run], as_json: bool) -> None:
    """Print the tables of the report, or JSON."""
    from clew.lab.evaluation.comparison import summarise
    from clew.lab.evaluation.report import make_report

    if as_json:
        print_json({"runs": [summarise(run).to_json() for run in runs]})
        return
    for section in make_report([run for run in runs if run.rows]):
        show_section(section)


@contextmanager
def live_metrics(method: str, dataset: Dataset) -> Iterator[Callable[[QuestionRow], None]]:
    """Show a progress bar with the metrics so far. Yield a function to call with each row."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from clew.lab.evaluation.judging import PRIMARY

    primary = PRIMARY[dataset.kind]
    second = "recall@20" if dataset.kind == "documents" else "mrr"
    done, failed = 0, 0
    sums = {primary: 0.0, second: 0.0}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err.console, transient=True, disable=not err.console.is_terminal) as progress:
        task = progress.add_task(method, total=len(dataset.questions))

        def on_row(row: QuestionRow) -> None:
            nonlocal done, failed
            done, failed = done + 1, failed + (row.error is not None)
            for name in sums:
                sums[name] += row.metrics[name]
            if progress.disable:
                return
            means = "  ".join(f"{name} {100 * total / done:.1f}" for name, total in sums.items())
            wrong = f"  {failed} failed" if failed else ""
            progress.update(task, completed=done, description=f"{method}  {means}{wrong}")

        yield on_row


def grade(
    folders: Annotated[list[Path], Argument(metavar="DIR…", help="Folders of `clew eval --out`.")],
    questions: opt.Questions,
    model: Annotated[str, Option("--model", help="The language model that grades.")],
    as_json: opt.AsJson = False,
) -> None:
    """Grade the written answers of runs by a language model, in both orders, and compare with exact match."""
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.grading import Grading, summarise_grades
    from clew.lab.evaluation.grading import grade as graded
    from clew.lab.evaluation.report import load_runs
    from clew.models.opening import open_model

    opened = open_model(model)
    if opened is None:
        raise InputError("grading requires a language model: name it with --model")
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
    out.line(("right where the grader says so in both orders; shares in %", "dim"))


def reproduce_tables(
    tables: Annotated[list[str] | None, Argument(metavar="TABLE…", help="Tables to run. Default: all.")] = None,
    data: Annotated[Path, Option("--data", help="Folder with one subfolder per data set.")] = Path(),
    output: Annotated[Path, Option("--out", "-o", help="Output folder. Run again to continue.")] = Path("reproduced"),
    method: Annotated[list[str] | None, Option("--method", "-m", help="Method instead of the table's.")] = None,
    limit: opt.Sample = None,
    seed: opt.SampleSeed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Run the tables of published data sets, compare with published results, and write the report."""
    from clew.lab.evaluation.comparison import summarise
    from clew.lab.evaluation.reproducing import Reproduced, chosen_tables, reproduce, write_report

    done: list[Reproduced] = []
    missing: dict[str, str] = {}
    for table in chosen_tables(tables or ()):
        try:
            done.append(reproduce(table, data, output, live_metrics, methods=method or (), limit=limit, seed=seed))
        except NotFoundError as error:
            missing[table.name] = str(error)
            err.line(f"{table.name} is left out: {error}")
            continue
        if not as_json:
            print_plain(done[-1].to_markdown() + "\n")
    text, page = write_report(done, missing, output)
    told = {one.table.name: [summarise(run).to_json() for run in one.runs] for one in done}
    value = {"tables": told, "left_out": missing, "report": str(text), "page": str(page)}
    tell(as_json, value, f"written: {text} and {page}")
