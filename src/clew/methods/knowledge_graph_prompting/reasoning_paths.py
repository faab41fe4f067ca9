"""The reasoning paths of a walk as evidence: which passage led to which, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from clew.core.trace import span
from clew.core.types import Answer, Fact, Path
from clew.kb.protocol import KnowledgeBase
from clew.methods.knowledge_graph_prompting.passages import PassageGraph
from clew.methods.knowledge_graph_prompting.traversal import ReasoningPath

SHOWN = 10
"""Paths that the trace shows."""


def best_paths(paths: Sequence[ReasoningPath]) -> dict[int, ReasoningPath]:
    """For each passage that a walk came to after a seed, the path that gained most."""
    best: dict[int, ReasoningPath] = {}
    for path in paths:
        last = path.nodes[-1]
        if len(path.nodes) > 1 and (last not in best or path.gain > best[last].gain):
            best[last] = path
    return best


def as_evidence(kb: KnowledgeBase, graph: PassageGraph, path: ReasoningPath) -> Path:
    """The steps of a path as facts: the relation is the kind of edge that was walked."""
    refs = kb.refs(path.nodes)
    return Path(tuple(Fact(one, graph.kind(one.id, other.id), other) for one, other in pairwise(refs)))


def with_paths(kb: KnowledgeBase, graph: PassageGraph, answer: Answer, paths: Sequence[ReasoningPath]) -> Answer:
    """The answer with the path to each passage that the walk came to, beside its quotation."""
    best = best_paths(paths)
    with span("reasoning paths") as opened:
        led = {
            one.node.id: as_evidence(kb, graph, best[one.node.id]) for one in answer.candidates if one.node.id in best
        }
        opened.note(paths=[path.in_words() for path in list(led.values())[:SHOWN]])
    candidates = tuple(
        replace(one, evidence=(*one.evidence, led[one.node.id])) if one.node.id in led else one
        for one in answer.candidates
    )
    return replace(answer, candidates=candidates)


def pairs_to_read(paths: Sequence[ReasoningPath], ranked: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """The paths to read as the paper shows them, its "path pairs": the most promising first, then single passages.

    Where fewer paths than `count` have a second passage, the best passages that are on none follow.
    """
    led = sorted((path for path in paths if len(path.nodes) > 1), key=lambda path: -path.worth)
    chosen = list(dict.fromkeys(path.nodes for path in led))[:count]
    read = {node for nodes in chosen for node in nodes}
    return (chosen + [(node,) for node in ranked if node not in read])[:count]
