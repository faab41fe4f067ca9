"""Figure 4 of Knowledge Graph Prompting: what the neighbours of the seeds hold, however they are chosen among.

SF-EM is the share of questions whose supporting passages are all neighbours of some seed, precision the share of
neighbours that support the question: a denser graph gains the one and loses the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from clew.datasets.questions import Question
from clew.documents.graph.edges import density
from clew.methods.knowledge_graph_prompting.passages import PassageGraph, readable_nodes, tf_idf_ranking
from clew.toolbox import Toolbox

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
    questions: Sequence[Question], tools_for: Callable[[Question], Toolbox], kinds: Sequence[str], seeds: int = SEEDS
) -> Neighbourhood:
    """Over the graph of each question; seeds by TF-IDF, as in the paper."""
    measured = [_measured(question, tools_for(question), kinds, seeds) for question in questions]
    columns = [mean(column) for column in zip(*measured, strict=True)]
    return Neighbourhood(len(measured), *columns)


def _measured(question: Question, tools: Toolbox, kinds: Sequence[str], seeds: int) -> tuple[float, ...]:
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
