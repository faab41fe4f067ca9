"""Time to extract the subgraph between two entities at the size of PrimeKG, and the ratio to igraph in the same run.

    python benchmarks/subgraph.py [--pairs 300] [--without-igraph]

The graph is drawn at random with PrimeKG's counts (129,375 nodes, 8.1 million edges stored in both directions, 18
relations) and a skewed degree distribution whose hubs have over ten thousand edges. igraph gets every advantage: its
graph is undirected and free of parallel edges, on which its all-shortest-paths search grows exponentially.
"""

import argparse
import resource
import statistics
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np

from clew.store.graph.adjacency import Adjacency
from clew.store.graph.build import sorted_edges
from clew.store.graph.paths import ArrayGraph, Ball, PathLimits, shortest_paths

NODES, PAIRS_OF_NODES, RELATIONS = 129_375, 4_050_000, 18


def skewed_edges(seed=0):
    rng = np.random.default_rng(seed)
    weights = (np.arange(NODES) + 30.0) ** -0.8
    rng.shuffle(weights)
    share = np.cumsum(weights) / weights.sum()
    one, other = (share.searchsorted(rng.random(PAIRS_OF_NODES)).astype(np.int32) for _ in range(2))
    relations = rng.integers(0, RELATIONS, PAIRS_OF_NODES).astype(np.int32)
    return np.append(one, other), np.append(relations, relations), np.append(other, one)


def array_graph(heads, relations, tails):
    outward = Adjacency.build(*sorted_edges(heads, relations, tails, NODES, RELATIONS), NODES, RELATIONS)
    inward = Adjacency.build(*sorted_edges(tails, relations, heads, NODES, RELATIONS), NODES, RELATIONS)
    return ArrayGraph(SimpleNamespace(outward=outward, inward=inward, count=NODES))


def igraph_graph(heads, tails):
    import igraph

    low, high = np.minimum(heads, tails), np.maximum(heads, tails)
    keys = np.unique(low[low != high].astype(np.int64) * NODES + high[low != high])
    return igraph.Graph(NODES, np.stack((keys // NODES, keys % NODES), axis=1))


def extract(graph, source, target, limits):
    found = shortest_paths(Ball(graph, source), Ball(graph, target), limits)
    return found, graph.induced(found.nodes())


def extract_with_igraph(graph, source, target):
    paths = graph.get_all_shortest_paths(source, target)
    return paths, graph.induced_subgraph({node for path in paths for node in path})


def timed(work, pairs):
    """Wall and processor time of each call in milliseconds: they differ where other work shares the machine."""
    times, results = [], []
    for source, target in pairs:
        wall, processor = time.perf_counter(), time.process_time()
        results.append(work(source, target))
        times.append(((time.perf_counter() - wall) * 1000, (time.process_time() - processor) * 1000))
    return times, results


def told(name, times):
    walls, processors = (sorted(part) for part in zip(*times, strict=True))
    median = statistics.median(processors)
    print(
        f"{name:<28} median {statistics.median(walls):8.2f} ms ({median:8.2f} of processor time)   "
        f"p95 {walls[int(len(walls) * 0.95)]:8.2f} ms   max {walls[-1]:8.2f} ms   n {len(times)}"
    )
    return median


def peak_memory(work, pairs):
    tracemalloc.start()
    for source, target in pairs:
        work(source, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, default=300)
    options.add_argument("--without-igraph", action="store_true")
    given = options.parse_args()
    edges = skewed_edges()
    degrees = np.bincount(edges[0], minlength=NODES) * 2
    graph = array_graph(*edges)
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, NODES, (given.pairs, 2)).tolist()
    hubs = np.argsort(-degrees)[:200]
    between_hubs = rng.choice(hubs, (50, 2)).tolist()
    limits = PathLimits()
    print(f"{NODES:,} nodes, {len(edges[0]):,} edges, degrees up to {degrees.max():,}")

    def ours(source, target):
        return extract(graph, source, target, limits)

    timed(ours, pairs[:20])
    times, results = timed(ours, pairs)
    median = told("clew, random pairs", times)
    told("clew, the 200 largest hubs", timed(ours, between_hubs)[0])
    one, many = pairs[0][0], [target for _, target in pairs[:20]]
    begun = time.process_time()
    ball = Ball(graph, one)
    for target in many:
        graph.induced(shortest_paths(ball, Ball(graph, target), limits).nodes())
    print(f"one question entity, 20 candidates: {(time.process_time() - begun) * 1000:.1f} ms of processor time")
    print(f"peak memory of a search: {peak_memory(ours, pairs[:50] + between_hubs):.1f} MB")
    distances = [found.distance for found, _ in results]
    print("distances:", {d: distances.count(d) for d in sorted(set(distances), key=str)})
    if not given.without_igraph:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reference = igraph_graph(edges[0], edges[2])
        print(f"igraph's graph: {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MB more")
        single, _ = timed(lambda a, b: reference.induced_subgraph(reference.get_shortest_path(a, b)), pairs)
        one_path = told("igraph, one shortest path only", single)
        theirs, found = timed(lambda a, b: extract_with_igraph(reference, a, b), pairs[:15])
        all_paths = told("igraph, all shortest paths", theirs)
        for (mine, _), (paths, _) in zip(results, found, strict=False):
            assert mine.count == len(paths), "both must find the same number of shortest paths"
        print(
            f"igraph / clew, processor time: {one_path / median:.1f} (one path), {all_paths / median:.0f} (all paths)"
        )


if __name__ == "__main__":
    main()
