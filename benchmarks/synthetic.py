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


PRIME_NODES = {
    "biological process": 28_642, "gene": 27_671, "disease": 17_080, "phenotype": 15_311, "anatomy": 14_035,
    "molecular function": 11_169, "drug": 7_957, "cellular component": 4_176, "pathway": 2_516, "exposure": 818,
}  # fmt: skip
PRIME_EDGES = [
    ("expression_present", "anatomy", "gene", 1_518_203), ("synergistic_interaction", "drug", "drug", 1_336_314),
    ("ppi", "gene", "gene", 321_075), ("phenotype_present", "disease", "phenotype", 150_317),
    ("interacts_with", "biological process", "gene", 144_805), ("interacts_with", "cellular component", "gene", 83_402),
    ("interacts_with", "molecular function", "gene", 69_530), ("interacts_with", "pathway", "gene", 42_646),
    ("associated_with", "gene", "disease", 80_411), ("associated_with", "gene", "phenotype", 1_665),
    ("side_effect", "drug", "phenotype", 64_784), ("contraindication", "drug", "disease", 30_675),
    ("indication", "drug", "disease", 9_388), ("off_label_use", "drug", "disease", 2_568),
    ("target", "drug", "gene", 16_380), ("enzyme", "drug", "gene", 5_317), ("carrier", "drug", "gene", 864),
    ("transporter", "drug", "gene", 3_092), ("expression_absent", "anatomy", "gene", 19_887),
    ("phenotype_absent", "disease", "phenotype", 1_193), ("linked_to", "exposure", "disease", 2_304),
    ("parent_child", "biological process", "biological process", 52_886),
    ("parent_child", "disease", "disease", 32_194), ("parent_child", "phenotype", "phenotype", 18_736),
    ("parent_child", "anatomy", "anatomy", 14_032),
    ("parent_child", "molecular function", "molecular function", 13_574),
    ("parent_child", "pathway", "pathway", 2_535),
]  # fmt: skip
"""Pairs of nodes that PRIME joins, by relation and types. Each pair has two edges, except for children and parents."""


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


def prime_tables(seed: int = 0) -> Tables:
    """A graph with the types, relations and counts of STaRK's PRIME, names of a few words, and skewed degrees."""
    random = np.random.default_rng(seed)
    words = np.array([f"word{number}" for number in range(3_000)])
    keys, first = {}, 0
    for kind, count in PRIME_NODES.items():
        keys[kind], first = np.arange(first, first + count), first + count
    chosen = words[random.integers(0, len(words), (first, 3))]
    nodes = {
        "key": pa.array([f"n{key}" for key in range(first)]),
        "type": pa.array([kind for kind, own in keys.items() for _ in own]),
        "name": pa.array([" ".join(row) for row in chosen.tolist()]),
        "mass": pa.array(random.integers(0, 1_000, first)),
    }
    parts = []
    for relation, head, tail, count in PRIME_EDGES:
        if relation == "parent_child":  # of a parent that comes before it
            lower = random.integers(1, len(keys[head]), count)
            pairs = keys[head][lower], keys[head][(random.random(count) * lower).astype(np.int64)]
        else:
            pairs = tuple(
                own[(random.random(count) ** 2.2 * len(own)).astype(np.int64)] for own in (keys[head], keys[tail])
            )
            parts.append((relation, pairs[1], pairs[0]))
        parts.append((relation, *pairs))
    relations = pa.array([relation for relation, head, _ in parts for _ in head])
    heads, tails = (nodes["key"].take(pa.array(np.concatenate([part[end] for part in parts]))) for end in (1, 2))
    edges = pa.table({"head": heads, "relation": relations, "tail": tails})
    return Tables((Piece(pa.table(nodes), "nodes"),), (Piece(edges, "edges"),))
