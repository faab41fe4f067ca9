"""What the graph of passages is worth in Knowledge Graph Prompting: the neighbours of the seeds, and structures.

seed_neighbours (figure 4): what the neighbours of the seeds hold, however they are chosen among. SF-EM is the share of
questions whose supporting passages are all neighbours of some seed, precision the share of neighbours that support the
question: a denser graph gains the one and loses the other.
structural_questions: questions about pages and tables, for Struct-EM. The paper's set of such questions is private; its
two examples ("a simple summary about page 5", "the difference between page 1 and page 2") are among the forms. Gold are
the keys of the pages and tables that a question names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from clew.answering.methods.knowledge_graph_prompting.traversal import PassageGraph
from clew.answering.reading.documents.search import readable_nodes, tf_idf_ranking
from clew.core.errors import InputError
from clew.core.types import NodeSet
from clew.documents.passage_graph import density
from clew.lab.datasets.questions import Dataset, Question
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase

SEEDS = 10


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The means over questions."""

    n: int
    density: float
    """The share of pairs of passages that are joined."""
    sf_em: float
    precision: float
    neighbours: float
    """How many there are to a question."""


def seed_neighbours(
    questions: Sequence[Question], tools_for: Callable[[Question], OpenBase], kinds: Sequence[str], seeds: int = SEEDS
) -> Neighbourhood:
    """Over the graph of each question; seeds by TF-IDF, as in the paper."""
    measured = [_measured(question, tools_for(question), kinds, seeds) for question in questions]
    columns = [mean(column) for column in zip(*measured, strict=True)]
    return Neighbourhood(len(measured), *columns)


def _measured(question: Question, tools: OpenBase, kinds: Sequence[str], seeds: int) -> tuple[float, ...]:
    kb = tools.local
    graph = PassageGraph(kb, kinds)
    passages = readable_nodes(kb)
    begun = tf_idf_ranking(kb, tools.lexical, question.text, seeds).nodes.tolist()
    reached = {int(node) for seed in begun for node in graph.ties(seed).nodes}
    gold = [{key, *question.aliases.get(key, ())} for key in question.passages]
    found = {ref.key for ref in kb.refs(sorted(reached))}
    covered = all(wordings & found for wordings in gold)
    supporting = sum(any(key in wordings for wordings in gold) for key in found)
    joined = sum(len(graph.ties(node).nodes) for node in passages)
    return (
        density(joined // 2, len(passages)),
        float(covered),
        supporting / len(found) if found else 0.0,
        float(len(found)),
    )


ONE_PAGE = (
    "Can you give me a simple summary about page {page} of {document}?",
    "What is on page {page} of {document}?",
    "{document}, p. {page}: what does it say?",
)
TWO_PAGES = (
    "What is the difference between page {page} and page {other} of {document}?",
    "Compare pages {page} and {other} of {document}.",
)
A_TABLE = (
    "What does the table on page {page} of {document} show?",
    "In {document}, what are the columns of the table on page {page}?",
)


def structural_questions(kb: ArrayKnowledgeBase, count: int, seed: int = 0) -> Dataset:
    """So many questions about pages and tables, a third of each form, documents called by file or by title."""
    if "page" not in kb.schema.type_names:
        raise InputError(f"{kb.folder} has no pages: build it from documents that have some, such as PDF files")
    rng = random.Random(seed)
    pages = {document: _parts(kb, document, "has_page") for document in kb.nodes("document")}
    paged = [document for document, own in pages.items() if len(own) > 1]
    tabled = [
        (document, page, tables[0])
        for document in paged
        for page in pages[document]
        if len(tables := _parts(kb, page, "has_table")) == 1
    ]
    made: dict[str, Question] = {}
    for number in range(20 * count):
        if len(made) == count:
            break
        form = number % (3 if tabled else 2)
        if form == 2:
            document, page, table = rng.choice(tabled)
            chosen, gold = [page], [kb.refs([table])[0].key]
        else:
            document = rng.choice(paged)
            chosen = sorted(rng.sample(pages[document], form + 1))
            gold = [ref.key for ref in kb.refs(chosen)]
        called = rng.choice([kb.node(document).attributes.get("file") or kb.node(document).key, kb.node(document).name])
        numbers = [int(kb.node(page).attributes["page"]) for page in chosen]
        words = rng.choice((ONE_PAGE, TWO_PAGES, A_TABLE)[form])
        text = words.format(page=numbers[0], other=numbers[-1], document=called)
        kind = ("page", "two pages", "table")[form]
        made.setdefault(text, Question(f"structure-{len(made) + 1}", text, (), kind, structures=tuple(gold)))
    return Dataset("structural", tuple(made.values()), "documents", match="key", portion=f"made, seed {seed}")


def _parts(kb: ArrayKnowledgeBase, node: int, relation: str) -> list[int]:
    if relation not in kb.schema.relation_names:
        return []
    return [int(part) for part in kb.neighbors(NodeSet.of([node]), relation, "out")]
