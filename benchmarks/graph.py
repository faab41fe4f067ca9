"""Speed and memory of the graph, against networkx, igraph and a plain dict of lists in the same run; prints JSON.

usage: python benchmarks/graph.py --scale tiny|prime|mag
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from synthetic import SCALES, Scale, tables

from clew.core.types import NodeSet
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import Tables

BUILD = """
import sys, time, resource, json
from pathlib import Path
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Problems
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources
from clew.store.graph.storage import commit, locked, staging
folder, target = Path(sys.argv[1]), Path(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
tables = read_sources([], SourceOptions(nodes=(folder / "nodes.parquet",), edges=(folder / "edges.parquet",)))
with locked(target), staging(target) as stage:
    facts = write_graph(tables, stage, Problems())
    commit(target, stage, facts.to_json())
seconds = time.perf_counter() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "peak_mb": (peak - before) / 1024}))
"""
OPEN = """
import sys, time, resource
from clew.store.graph.arrays import ArrayKnowledgeBase
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
kb = ArrayKnowledgeBase.open(sys.argv[1])
seconds = time.perf_counter() - begun
print(seconds * 1000, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
HUBS = (0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="tiny")
    parser.add_argument("--alternatives", help="comma-separated; networkx is left out at mag size for its memory")
    chosen = parser.parse_args()
    default = "dict,igraph" if chosen.scale == "mag" else "dict,igraph,networkx"
    with tempfile.TemporaryDirectory() as folder:
        result = measure(SCALES[chosen.scale], Path(folder), (chosen.alternatives or default).split(","))
    print(json.dumps({"scale": chosen.scale, **result}, indent=1))


def measure(scale: Scale, folder: Path, alternatives: list[str]) -> dict[str, Any]:
    source = tables(scale)
    pq.write_table(source.nodes[0].table, folder / "nodes.parquet")
    pq.write_table(source.edges[0].table, folder / "edges.parquet")
    built = json.loads(run(BUILD, folder, folder / "kb"))
    size = sum(f.stat().st_size for f in (folder / "kb").rglob("*") if f.is_file()) / 1e6
    opened = [tuple(map(float, run(OPEN, folder / "kb").split())) for _ in range(5)]
    kb = ArrayKnowledgeBase.open(folder / "kb")
    sample = np.random.default_rng(1).choice(scale.nodes, 2_000)
    ids = [kb.find(str(key)) for key in sample]
    hubs = [NodeSet.of([kb.find(str(hub))]) for hub in HUBS]
    relation = kb.schema.relation_names[0]
    code = kb.schema.relation_code["relation0"]
    first, second = (kb.neighbors(hub, None, "out") for hub in hubs)
    single = [NodeSet.of([node]) for node in ids]
    ours = {
        "neighbours_us": per_call(lambda node: kb.outward.of(node, code), ids) * 1e6,
        "neighbours_as_node_set_us": per_call(lambda nodes: kb.neighbors(nodes, relation, "out"), single) * 1e6,
        "intersection_ms": best(lambda: first & second) * 1e3,
        "two_hops_ms": best(lambda: kb.neighbors(first, None, "out"), 5) * 1e3,
    }
    return {
        "nodes": scale.nodes,
        "edges": scale.edges,
        "build_from_parquet": {**built, "arrays_mb": size, "peak_over_arrays": built["peak_mb"] / size},
        "open_in_new_process_ms": statistics.median(ms for ms, _ in opened),
        "open_memory_mb": statistics.median(mb for _, mb in opened),
        "hub_neighbours": [len(first), len(second)],
        "clew": ours,
        "alternatives": {name: ratios(ALTERNATIVES[name](source, sample.tolist()), ours) for name in alternatives},
    }


def ratios(theirs: dict[str, float], ours: dict[str, float]) -> dict[str, float]:
    """Their numbers, and how many times longer they take."""
    shared = [name for name in theirs if name in ours]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**theirs, **{f"{name}_ratio": theirs[name] / ours[name] for name in shared}, "peak_mb_so_far": peak}


def edge_lists(source: Tables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = source.edges[0].table
    relations = table["relation"].combine_chunks().indices.to_numpy()
    return table["head"].to_numpy(), relations, table["tail"].to_numpy()


def with_dict(source: Tables, sample: list[int]) -> dict[str, float]:
    begun = time.perf_counter()
    adjacency: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for head, kind, tail in zip(*(array.tolist() for array in edge_lists(source)), strict=True):
        adjacency[head].append((kind, tail))
    load = time.perf_counter() - begun
    first, second = ({tail for _, tail in adjacency[hub]} for hub in HUBS)
    return {
        "load_s": load,
        "neighbours_us": per_call(lambda node: {t for k, t in adjacency.get(node, ()) if k == 0}, sample) * 1e6,
        "intersection_ms": best(lambda: first & second) * 1e3,
        "two_hops_ms": once(lambda: {t for n in first for _, t in adjacency.get(n, ())}) * 1e3,
    }


def with_igraph(source: Tables, sample: list[int]) -> dict[str, float]:
    import igraph

    begun = time.perf_counter()
    heads, relations, tails = edge_lists(source)
    graph = igraph.Graph(n=source.nodes[0].table.num_rows, directed=True)
    graph.add_edges(np.stack((heads, tails), axis=1))
    graph.es["relation"] = relations.tolist()
    load = time.perf_counter() - begun
    first, second = (set(graph.neighbors(hub, mode="out")) for hub in HUBS)

    def by_relation(node: int) -> set[int]:
        return {edge.target for edge in graph.es[graph.incident(node, mode="out")] if edge["relation"] == 0}

    return {
        "load_s": load,
        "neighbours_us": per_call(by_relation, sample) * 1e6,
        "intersection_ms": best(lambda: first & second) * 1e3,
        "two_hops_ms": once(lambda: graph.neighborhood(HUBS[0], order=2, mode="out")) * 1e3,
    }


def with_networkx(source: Tables, sample: list[int]) -> dict[str, float]:
    import networkx

    begun = time.perf_counter()
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(source.nodes[0].table.num_rows))
    for head, kind, tail in zip(*(array.tolist() for array in edge_lists(source)), strict=True):
        graph.add_edge(head, tail, relation=kind)
    load = time.perf_counter() - begun
    first, second = (set(graph.successors(hub)) for hub in HUBS)

    def by_relation(node: int) -> set[int]:
        return {tail for _, tail, kind in graph.out_edges(node, data="relation") if kind == 0}

    return {
        "load_s": load,
        "neighbours_us": per_call(by_relation, sample) * 1e6,
        "intersection_ms": best(lambda: first & second) * 1e3,
        "two_hops_ms": once(lambda: {t for n in first for t in graph.successors(n)}) * 1e3,
    }


ALTERNATIVES = {"dict": with_dict, "igraph": with_igraph, "networkx": with_networkx}


def run(script: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def per_call(function: Callable[[Any], Any], inputs: Iterable[Any]) -> float:
    """Seconds per call, median of three rounds over all inputs."""
    every = list(inputs)
    rounds = []
    for _ in range(3):
        begun = time.perf_counter()
        for one in every:
            function(one)
        rounds.append((time.perf_counter() - begun) / len(every))
    return statistics.median(rounds)


def best(function: Callable[[], Any], rounds: int = 20) -> float:
    return min(once(function) for _ in range(rounds))


def once(function: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
