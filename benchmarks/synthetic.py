"""Synthetic graphs of the sizes of STaRK's knowledge bases, with skewed degrees; the same for a scale and seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from clew.store.graph.tables import Piece, Tables


@dataclass(frozen=True)
class Scale:
    nodes: int
    edges: int
    relations: int
    types: int


SCALES = {
    "tiny": Scale(2_000, 40_000, 6, 4),
    "prime": Scale(129_375, 8_100_000, 18, 10),
    "mag": Scale(1_872_968, 20_000_000, 4, 4),
}
HUB = 100_000
"""Neighbours of each of the two hubs, where the graph has that many nodes."""


def arrays(scale: Scale, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heads, relation codes and tails; degrees fall off like a power law, and nodes 0 and 1 are hubs."""
    random = np.random.default_rng(seed)
    heads = (random.random(scale.edges) ** 2.2 * scale.nodes).astype(np.int64)
    tails = random.integers(0, scale.nodes, scale.edges)
    relations = np.minimum(random.geometric(0.25, scale.edges) - 1, scale.relations - 1)
    spokes = min(HUB, scale.nodes, scale.edges // 4)
    for hub in (0, 1):
        own = slice(hub * spokes, (hub + 1) * spokes)
        heads[own], relations[own] = hub, 0
        tails[own] = random.choice(scale.nodes, spokes, replace=False)
    return heads, relations, tails


def tables(scale: Scale, seed: int = 0, *, texts: bool = False) -> Tables:
    """The graph as node and edge tables with integer keys."""
    heads, relations, tails = arrays(scale, seed)
    keys = np.arange(scale.nodes)
    nodes = {"key": pa.array(keys), "type": pa.array([f"type{k % scale.types}" for k in keys])}
    if texts:
        nodes["text"] = pa.array([f"text of node {k}, about thing {k * 7919 % 100_003}" for k in keys])
    names = pa.array([f"relation{r}" for r in range(scale.relations)])
    edges = {
        "head": pa.array(heads),
        "relation": pa.DictionaryArray.from_arrays(pa.array(relations.astype(np.int32)), names),
        "tail": pa.array(tails),
    }
    return Tables((Piece(pa.table(nodes), "nodes"),), (Piece(pa.table(edges), "edges"),))
