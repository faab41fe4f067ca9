"""`clew subgraph` shows connections between entities, and `clew subgraphs` writes a data set of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from clew.cli import options as opt
from clew.cli.output import err, out, print_json, print_table, progress_bar
from clew.core.disk import refuse_existing
from clew.core.errors import InputError

if TYPE_CHECKING:
    from clew.answering.methods.subgraph_reranking.graph_to_text import WrittenGraph
    from clew.answering.methods.subgraph_reranking.subgraph import Subgraph
    from clew.store.graph.protocol import KnowledgeBase


def subgraph(
    base: opt.AnyBase,
    entities: Annotated[
        list[str], Argument(metavar="A B [C…]", help="Names or keys. The last entity is the candidate answer.")
    ],
    svg: Annotated[Path | None, Option("--svg", metavar="FILE", help="Draw the subgraph into this file.")] = None,
    text: Annotated[bool, Option("--text", help="Print text, the default without --svg.")] = False,
    model: Annotated[str, Option("--model", help="Language model that writes sentences about it.")] = "none",
    most_hops: opt.MaxHops = 4,
    most_paths: Annotated[int, Option("--max-paths", min=1, help="Maximum number of paths per entity.")] = 50,
    groups: opt.Groups = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show the subgraph between entities: all shortest paths from each to the last entity, and the edges among them."""
    from clew.answering.methods.subgraph_reranking.drawing import draw_subgraph, subgraph_json
    from clew.answering.methods.subgraph_reranking.graph_to_text import GraphWriter
    from clew.answering.methods.subgraph_reranking.subgraph import SubgraphExtractor
    from clew.api import open as open_base
    from clew.models.opening import open_model
    from clew.store.graph.paths import PathLimits

    if len(entities) < 2:
        raise InputError("too few entities: name at least two, as in `clew subgraph KB BBS2 Polydactyly`")
    refuse_existing(svg, force=force)
    tools = open_base(base, groups=opt.group_names(groups)).tools
    *asked, candidate = map(tools.find_node, entities)
    limits = PathLimits(most_hops=most_hops, most_paths=most_paths)
    [found] = SubgraphExtractor(tools.kb, limits).extract(asked, [candidate])
    if svg is not None:
        svg.write_text(draw_subgraph(tools.kb, found), "utf-8")
        err.line(f"drawn into {svg}")
    writer = open_model(model)
    written = None if writer is None else GraphWriter(writer, tools.kb).write([found])[0]
    if as_json:
        told = {} if written is None else {"written": written_json(written)}
        print_json({**subgraph_json(tools.kb, found), **told})
    elif text or svg is None:
        show_subgraph(tools.kb, found)
        if written is not None:
            out.line(written.written or "")
            out.line((written.problem or "every entity is named, and no other", "dim"))


def written_json(written: WrittenGraph) -> dict[str, object]:
    """Return the model's sentences and the result of the check as JSON."""
    check = None if written.check is None else asdict(written.check)
    return {"text": written.written, "problem": written.problem, "check": check}


def show_subgraph(kb: KnowledgeBase, found: Subgraph) -> None:
    """Print distances and counts, then one fact per line."""
    from clew.answering.methods.subgraph_reranking.graph_to_text import triples_in_words

    names = {ref.id: ref.name for ref in kb.refs([*found.entities, found.candidate])}
    for paths in found.paths:
        ends = f"{names[paths.source]} to {names[paths.target]}"
        if paths.distance is None:
            why = "the search was cut short" if paths.gave_up else f"none of at most {found.most_hops} edges"
            out.line(f"{ends}: no path ({why})")
            continue
        shown = "" if paths.complete else f", {len(paths.paths)} of them shown"
        plural = "s" if paths.count != 1 else ""
        told = f"{paths.count:,} shortest path{plural} of length {paths.distance}"
        out.line(f"{ends}: {told}{shown}")
    for triple in triples_in_words(kb, found):
        out.line(", ".join(triple))


def subgraphs(
    questions: opt.Questions,
    output: Annotated[Path, Option("--out", "-o", metavar="FILE.jsonl", help="The file to write.")],
    kb: opt.DatasetBase = None,
    source: opt.CandidateSource = "nearby",
    candidates: Annotated[int, Option("--candidates", min=1, help="Candidates per question.")] = 20,
    model: Annotated[str, Option("--model", help="The language model that generates candidates.")] = "none",
    writer: Annotated[str, Option("--writer", help="Language model that describes each subgraph.")] = "none",
    max_hops: opt.MaxHops = 4,
    topics: opt.Topics = False,
    limit: opt.Sample = None,
    seed: opt.SampleSeed = 0,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write a data set of the subgraphs between each question's entities and its candidate answers."""
    from clew.answering.methods.subgraph_reranking.graph_to_text import GraphWriter
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.benchmark import Benchmark
    from clew.lab.evaluation.rankers import PoolMaker, write_subgraphs
    from clew.models.opening import open_model

    refuse_existing(output, force=force)
    dataset = load_dataset(questions)
    dataset = (dataset.with_topics() if topics else dataset).sample(limit, seed)
    benchmark = Benchmark(dataset, kb, model=open_model(model))
    maker = PoolMaker.of(benchmark, source, candidates, max_hops)
    telling = open_model(writer)
    graph_writer = None if telling is None else GraphWriter(telling, maker.kb)
    with progress_bar("subgraphs") as move:
        made = write_subgraphs(maker, dataset.questions, output, graph_writer, move)
    if as_json:
        print_json(made.to_json())
        return
    out.line(f"{output}: {made.subgraphs:,} subgraphs of {made.questions:,} questions, {made.right:,} right")
    if made.told is not None:
        told = made.told
        shares = (told.coverage, told.question_entities, told.candidates, told.hallucinated, told.used)
        names = ("entities kept", "question entities", "candidates", "texts that invent", "texts used")
        rows = [(name, f"{100 * share:.1f}") for name, share in zip(names, shares, strict=True)]
        print_table(f"{told.texts:,} texts, percent", ("", "share"), rows)
