"""How long reading takes: `python benchmarks/sources.py [FOLDER OF DATA SETS]` prints JSON, CPU and wall seconds each.

The synthetic tables have PRIME's size: 129,375 nodes and 8.1 million edges with 18 relations.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from clew.lab.datasets.hpo import load_hpo
from clew.store.sources.read import read_sources

NODES, EDGES, RELATIONS = 129_375, 8_100_000, 18


def measured(read):
    wall, cpu = time.perf_counter(), time.process_time()
    tables = read()
    return {
        "wall_s": round(time.perf_counter() - wall, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "nodes": sum(piece.table.num_rows for piece in tables.nodes),
        "edges": sum(piece.table.num_rows for piece in tables.edges),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
    }


def write_synthetic(folder: Path) -> None:
    random = np.random.default_rng(0)
    names = np.array([f"relation_{number}" for number in range(RELATIONS)])
    edges = pa.table(
        {
            "head": random.integers(0, NODES, EDGES),
            "relation": names[random.integers(0, RELATIONS, EDGES)],
            "tail": random.integers(0, NODES, EDGES),
        }
    )
    pq.write_table(edges, folder / "edges.parquet")
    pcsv.write_csv(edges, folder / "edges.csv")
    keys = np.arange(NODES)
    nodes = pa.table({"id": keys, "name": keys.astype(str), "text": ["some words " * 20] * NODES})
    pq.write_table(nodes, folder / "nodes.parquet")
    with (folder / "nodes.jsonl").open("w") as out:
        out.writelines(json.dumps(row) + "\n" for row in nodes.to_pylist())


def main() -> None:
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_synthetic(folder)
        for nodes, edges in (("nodes.parquet", "edges.parquet"), ("nodes.jsonl", "edges.csv")):
            results[f"{nodes} + {edges}"] = measured(lambda n=nodes, e=edges: read_sources([folder / n, folder / e]))
    results["hpo from its package"] = measured(load_hpo)
    if len(sys.argv) > 1:
        data = Path(sys.argv[1])
        for source in ("hpo", "stark_prime_mini", "metaqa/kb.txt.gz", "webqsp/triples.tsv.gz"):
            results[source] = measured(lambda s=source: read_sources([data / s]))
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
