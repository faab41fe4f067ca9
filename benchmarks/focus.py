"""Speed of substitution and of focus_plus at PRIME's size, against the paper's algorithm node by node; prints JSON.

The graph is synthetic: 129,375 nodes, 8.1 million edges, 18 relations, skewed. The straightforward version looks
every neighbour up in the list of edges, as the published code does, one node at a time; it is run on the first nodes of
a domain and extrapolated, since the whole would take hours.

Vectors of the hash embedder stand in for real ones: searching them costs the same, computing them is free. Questions
are embedded by it as well, so the shipped embedder's 10 ms per question come on top. The learned reader is the one that
ships: reading the question is part of the time of focus_plus.

usage: python benchmarks/focus.py [--scale tiny|prime] [--base FOLDER]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from synthetic import SCALES, arrays, tables

from clew.answering.methods.catalog import ask, create
from clew.answering.methods.focus.four_step_focus import substitute
from clew.core.query import Edge, Nodes, Pattern, Variable
from clew.core.types import NodeSet
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase

HUB = "0"
SAMPLED = 3
"""Nodes that the straightforward version expands."""


def timed(call: Callable[[], object], rounds: int = 15) -> float:
    """The median time of a call in milliseconds."""
    call()
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


TYPES = (Variable("x", "type1"), Variable("y", "type2"))


def two_hops(hub: Nodes, relation: str | None) -> Pattern:
    """Everything of one type two steps from a hub."""
    directed = relation is not None
    return Pattern(TYPES, (Edge(hub, relation, "y", directed), Edge("y", relation, "x", directed)))


def two_constants(first: Nodes, second: Nodes) -> Pattern:
    """Three triplets with two constants."""
    ends = (("x", first), ("x", "y"), ("y", second))
    return Pattern(TYPES, tuple(Edge(head, None, tail, directed=False) for head, tail in ends))


def straightforward_ms(
    kb: ArrayKnowledgeBase, edges: tuple[np.ndarray, np.ndarray, np.ndarray], pattern: Pattern
) -> float:
    """The paper's Algorithm 2 for two hops, edge types ignored: one pass over all edges per node and direction."""
    heads, _, tails = edges
    middle = substitute(kb, Pattern(TYPES[1:], pattern.edges[:1]), "y")
    assert middle is not None
    key = [int(ref.key) for ref in kb.refs(middle.array[:SAMPLED])]
    begun = time.perf_counter()
    for node in key:
        set(tails[heads == node].tolist()) | set(heads[tails == node].tolist())
    per_node = (time.perf_counter() - begun) / len(key) * 1000
    return per_node * len(middle) * 2  # once from each side of the variable–variable triplet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=["tiny", "prime"], default="prime")
    parser.add_argument("--base", type=Path, help="Use or build the base here.")
    options = parser.parse_args()
    scale = SCALES[options.scale]
    with tempfile.TemporaryDirectory() as folder:
        base = options.base or Path(folder) / "synthetic.kb"
        if not base.exists():
            build(tables(scale, texts=True), base)
        OpenBase.open(
            base, embedder="hash"
        ).vectors.embed_all()  # the base has vectors; which ones does not matter here
        toolbox = OpenBase.open(base, embedder="hash")
        kb = toolbox.local
        hub = Nodes((HUB,))
        random = np.random.default_rng(0)
        pairs = [tuple(Nodes((kb.refs([int(n)])[0].key,)) for n in random.integers(0, len(kb), 2)) for _ in range(40)]
        strict, loose = two_hops(hub, "relation0"), two_hops(hub, None)
        ours = timed(lambda: substitute(kb, loose, "x"))
        slow = straightforward_ms(kb, arrays(scale), loose)
        method = create("focus_plus")
        questions = [
            f"Which type1 has relation{n % 6} with {kb.refs([int(random.integers(len(kb)))])[0].name}?"
            for n in range(12)
        ]
        ask(method, questions[0], toolbox)
        asked = [ask(method, question, toolbox).seconds * 1000 for question in questions[1:]]
        print(json.dumps({
            "scale": options.scale, "nodes": len(kb), "edges": kb.edge_count,
            "hub_degree": len(kb.neighbors(NodeSet.of([kb.find(HUB)]))),
            "two_hops_hub_ms": {
                "one_relation": round(timed(lambda: substitute(kb, strict, "x")), 2), "any": round(ours, 2)
            },
            "three_triplets_two_constants_ms": round(
                statistics.median(timed(lambda p=pair: substitute(kb, two_constants(*p), "x"), 3) for pair in pairs), 3
            ),
            "straightforward_two_hops_ms": round(slow), "ratio": round(slow / ours),
            "focus_plus_ms": {"p50": round(statistics.median(asked), 1), "max": round(max(asked), 1)},
            "vectors_complete": toolbox.vectors.is_complete,
        }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
