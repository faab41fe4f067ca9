"""Speed and density of the graph of passages.

    python benchmarks/documents.py speed [PASSAGES …]        graph, base and retrieval over made-up passages
    python benchmarks/documents.py density DATASET:PATH SVG [N]  density of each kind of edges against recall and time
    python benchmarks/documents.py neighbours DATASET:PATH [N]   SF-EM and precision of the seeds' neighbours (Figure 4)
    python benchmarks/documents.py structure KB [N]              Struct-EM on questions made from a base of documents
    python benchmarks/documents.py pages FOLDER [N]              N pages made of a folder's PDFs: time, memory

Without a number `speed` takes 1,120 passages (wanted: a graph in 1 s), 10,000 (retrieval in 150 ms) and 100,000 (a
graph in 300 s and 2 GB). Made-up passages draw words by Zipf's law and a few names each, so that keywords and names are
shared as in real text.
`density` needs the vectors of the data set's base: `clew eval` once, then `clew embed` on the base it names.
"""

import random
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import mean, median

import numpy as np
import pypdfium2
from passage_graphs import seed_neighbours, structural_questions

import clew
from clew.answering.methods.catalog import create
from clew.answering.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting, search_of
from clew.answering.methods.knowledge_graph_prompting.traversal import PassageGraph, fused, missing_evidence, walk
from clew.core.plots import Axis, Series, line_plot
from clew.core.types import NodeSet, Ranking
from clew.documents.building import build_documents
from clew.documents.passage_graph import EdgeOptions, density
from clew.documents.rows import TitledText, corpus_tables
from clew.lab.datasets.base import question_base
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.comparison import bootstrap, by_type
from clew.store.building import build
from clew.store.open_base import OpenBase

NEIGHBOURS = (1, 5, 20, 50)
METHOD = KnowledgeGraphPrompting()


def made_up(count: int, seed: int = 0) -> list[TitledText]:
    chance = random.Random(seed)
    numbers = np.random.default_rng(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]

    def word() -> str:
        return "".join(chance.choice(syllables) for _ in range(chance.randint(2, 3)))

    vocabulary = [word() for _ in range(30_000)]
    ranks = np.minimum(numbers.zipf(1.2, size=(count, 60)) - 1, len(vocabulary) - 1)
    names = [f"{word().title()} {word().title()}" for _ in range(count)]
    texts = []
    for place in range(count):
        words = [vocabulary[rank] for rank in ranks[place]]
        for _ in range(4):  # mostly neighbours in the list of names: clusters, as real topics are
            other = (place + chance.randint(-20, 20)) % count if chance.random() < 0.7 else chance.randrange(count)
            words.insert(chance.randrange(len(words)), names[other])
        texts.append(TitledText(f"{place:06d}", names[place], f"{names[place]} is {' '.join(words)}."))
    return texts


def speed(count: int) -> None:
    texts = made_up(count)
    begun, worked = time.perf_counter(), time.process_time()
    tables = corpus_tables(texts)
    print(
        f"graph over {count:,} passages: {time.perf_counter() - begun:.1f} s, "
        f"{time.process_time() - worked:.1f} s of processor time, {peak():.2f} GB at most"
    )
    print({piece.table["relation"][0].as_py(): piece.table.num_rows for piece in tables.edges})
    with tempfile.TemporaryDirectory() as folder:
        begun, worked = time.perf_counter(), time.process_time()
        build(tables, Path(folder) / "kb")
        seconds = time.process_time() - worked
        print(f"base: {time.perf_counter() - begun:.1f} s, {seconds:.1f} s of processor time, {peak():.2f} GB at most")
        tools = OpenBase.open(Path(folder) / "kb", embedder="hash")
        tools.vectors.embed_all()
        chance = random.Random(1)
        asked = []
        for _ in range(60):
            source = chance.choice(texts)
            asked.append(f"Which {source.text.split()[3]} {source.text.split()[5]} is with {source.title}?")
        begun = time.perf_counter()
        METHOD.rank(asked[0], tools)
        print(f"first retrieval: {1000 * (time.perf_counter() - begun):.0f} ms")
        for name, work in (("retrieval", METHOD.rank), ("answer", METHOD.answer)):
            times, worked_each = zip(*(timed(work, question, tools) for question in asked[1:]), strict=True)
            print(
                f"{name}: median {1000 * median(times):.0f} ms, {1000 * median(worked_each):.0f} ms of processor time"
            )


def timed(work, question: str, tools: OpenBase) -> tuple[float, float]:
    begun, worked = time.perf_counter(), time.process_time()
    work(question, tools)
    return time.perf_counter() - begun, time.process_time() - worked


def peak(whose: int = resource.RUSAGE_SELF) -> float:
    return resource.getrusage(whose).ru_maxrss / 1e6


def density_curve(spec: str, svg: Path, limit: int | None) -> None:
    dataset = load_dataset(spec).sample(limit)
    series_recall, series_time = [], []
    for kind in ("mentions", "entity", "tfidf", "knn"):
        recalls, times = [], []
        for neighbours in NEIGHBOURS if kind != "mentions" else NEIGHBOURS[:1]:
            edges = EdgeOptions(("mentions",) if kind == "knn" else (kind,), neighbours, neighbours)
            tools = tools_for(dataset, edges)
            near = partial(nearest, tools, neighbours, search_of(tools).passages) if kind == "knn" else None
            dense, recall, seconds = measured(tools, PassageGraph(tools.local, (kind,), near), dataset)
            recalls.append((100 * dense, 100 * recall))
            times.append((100 * dense, 1000 * seconds))
            print(f"{kind:9s} {neighbours:3d}  density {dense:.4%}  recall@5 {recall:.1%}  {1000 * seconds:.0f} ms")
        series_recall.append(Series(kind, tuple(recalls)))
        series_time.append(Series(kind, tuple(times)))
    x = Axis("density of the graph in %", logarithmic=True)
    name = f"{dataset.name}, {len(dataset.questions)} questions, {len(dataset.paragraphs):,} passages"
    svg.with_suffix(".recall.svg").write_text(
        line_plot(f"Recall@5: {name}", series_recall, x, Axis("Recall@5 in %"), marks=True)
    )
    svg.with_suffix(".time.svg").write_text(
        line_plot(f"Time: {name}", series_time, x, Axis("ms a question"), marks=True)
    )


def nearest(tools: OpenBase, count: int, passages: NodeSet, node: int) -> Ranking:
    return tools.vectors.nearest(node, count, passages)


def tools_for(dataset, edges: EdgeOptions) -> OpenBase:
    plain = Benchmark(dataset).tools  # its vectors serve every graph over the same passages
    tools = Benchmark(dataset, edges=edges).tools
    if not tools.vectors.is_complete:
        source, target = plain.local.folder / "vectors", tools.local.folder / "vectors"
        for file in source.glob("**/*"):
            if file.is_file() and not file.name.startswith("rows-"):
                place = target / file.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.read_bytes())
        tools = OpenBase.open(tools.local.folder)
        tools.vectors.embed_all()
    return tools


def measured(tools: OpenBase, graph: PassageGraph, dataset) -> tuple[float, float, float]:
    kb, search = tools.kb, search_of(tools)
    pairs = sum(len(graph.ties(node).nodes) for node in range(len(kb))) / 2
    recalls, times = [], []
    for question in dataset.questions:
        begun = time.perf_counter()
        asked = search.about(question.text)
        paths = walk(
            asked,
            graph,
            missing_evidence,
            asked.pool.top(METHOD.seeds),
            branching=METHOD.branching,
            hops=METHOD.hops,
            budget=METHOD.budget,
            beam=METHOD.beam,
        )
        ranking = fused(asked, paths, METHOD.k)
        times.append(time.perf_counter() - begun)
        found = {ref.key for ref in kb.refs(ranking.nodes[:5])}
        recalls.append(mean(key in found for key in question.passages))
    return density(int(pairs), len(kb)), mean(recalls), median(times)


def neighbours_of_seeds(spec: str, limit: int | None) -> None:
    """Each question over twelve documents, every sentence a passage, as in the paper."""
    dataset = load_dataset(spec).with_documents(12).in_sentences().sample(limit)
    for kind in ("mentions", "tfidf", "entity", "knn", "mdr"):
        for neighbours in NEIGHBOURS if kind != "mentions" else NEIGHBOURS[:1]:
            edges = EdgeOptions((kind,), neighbours, neighbours)
            opened = partial(opened_for, dataset, edges)
            found = seed_neighbours(dataset.questions, opened, (kind,))
            print(
                f"{kind:9s} {neighbours:3d}  n {found.n}  density {found.density:.3f}  SF-EM {found.sf_em:.3f}  "
                f"precision {found.precision:.4f}  neighbours {found.neighbours:.0f}",
                flush=True,
            )


def opened_for(dataset, edges: EdgeOptions, question) -> OpenBase:
    return OpenBase.open(question_base(dataset, question.id, edges))


def structure(folder: str, count: int) -> None:
    tools = OpenBase.open(folder)
    dataset = structural_questions(tools.local, count)
    for name in ("knowledge_graph_prompting", "tf_idf"):
        run = Benchmark(dataset, given=tools).run(create(name))
        for kind, rows in (("all", run.rows), *by_type(run.rows).items()):
            values = [row.metrics["struct-em"] for row in rows]
            within = bootstrap(values)
            print(
                f"{name:26s} {kind:10s} n {len(rows):3d}  {mean(values):.1%} [{within.low:.1%}, {within.high:.1%}]",
                flush=True,
            )


def pages(folder: Path, count: int) -> None:
    """A folder of `count` pages: each file has pages of one real PDF, drawn anew and in another order."""
    with tempfile.TemporaryDirectory() as made:
        made_up_pages(sorted(folder.glob("**/*.pdf")), Path(made) / "docs", count)
        begun, worked = time.perf_counter(), processor_time()
        build_documents([Path(made) / "docs"], Path(made) / "kb")
        print(
            f"{count:,} pages: built in {time.perf_counter() - begun:.0f} s, {processor_time() - worked:.0f} s of "
            f"processor time, {peak():.2f} GB at most, {peak(resource.RUSAGE_CHILDREN):.2f} GB in a process that reads"
        )
        base = clew.open(Path(made) / "kb")
        kb = base.tools.kb
        size = sum(file.stat().st_size for file in Path(made, "kb").rglob("*"))
        print(f"{len(kb):,} nodes, {size / 1e6:.0f} MB")
        chosen = random.Random(1).sample(list(kb.nodes("passage")), 20)
        asked = [f"What about {' '.join(kb.node(node).text.split()[3:10])}?" for node in chosen]
        waited = [timed(lambda text, _: base.ask(text), text, base.tools) for text in asked]
        print(f"first answer, vectors still to come: {waited[0][0]:.1f} s")
        seconds, worked_each = (median(column) for column in zip(*waited[1:], strict=True))
        print(f"others: {seconds:.2f} s at the median, {worked_each:.2f} s of processor time, {peak():.2f} GB at most")


def made_up_pages(sources: list[Path], folder: Path, count: int, seed: int = 0) -> None:
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    written = 0
    while written < count:
        source = chance.choice(sources)
        document = pypdfium2.PdfDocument(source)
        chosen = list(range(len(document)))
        chance.shuffle(chosen)
        chosen = chosen[: min(len(chosen), count - written, chance.randint(5, 60))]
        new = pypdfium2.PdfDocument.new()
        new.import_pages(document, chosen)
        new.save(folder / f"{written:06d}-{source.name}")
        written += len(chosen)


def processor_time() -> float:
    """Of this process and of those that it started."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    if sys.argv[1] == "neighbours":
        neighbours_of_seeds(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
    elif sys.argv[1] == "pages":
        pages(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 10_000)
    elif sys.argv[1] == "structure":
        structure(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 150)
    elif sys.argv[1] == "density":
        density_curve(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        for count in map(int, sys.argv[2:] or ("1120", "10000", "100000")):
            speed(count)
