"""The same questions to a base in a folder and to the same graph in a database that speaks Bolt; prints JSON.

Everything that an answer holds is compared: nodes, order, scores, evidence, the query in words, notes; only the formal
queries differ. The base that is built by Bolt is compared with the one in the folder, column by column.

usage: python benchmarks/graph_database.py hpo DATA --limit 50 --method focus_plus   (needs neo4j and arcadedb-embedded)
       python benchmarks/graph_database.py BASE.kb QUESTIONS.jsonl                    (any base, its questions)
       … --at bolt://127.0.0.1:7687/DATABASE                                          (a server that holds the base)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from endpoint import METHODS, compare
from postgres import hpo

import clew
from bolt_server import PASSWORD, USER, graph_server
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="hpo, or the folder of a base")
    parser.add_argument("data", type=Path, help="the folder with hpo/, or a file of questions")
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--method", action="append", help="several where none is given")
    parser.add_argument("--at", help="the address of a database that holds the base")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["CLEW_CACHE"] = str(folder / "cache")
        kb = folder / "kb" if given.base == "hpo" else Path(given.base)
        questions = hpo(given.data, kb) if given.base == "hpo" else read_questions(given.data)
        with loaded(kb, folder) if given.at is None else nullcontext(given.at) as address:
            begun = time.perf_counter()
            clew.build([address], folder / "by_bolt.kb")
            result: dict[str, Any] = {"seconds_to_build": round(time.perf_counter() - begun, 1)}
            result["same_base"] = are_same(ArrayKnowledgeBase.open(kb), ArrayKnowledgeBase.open(folder / "by_bolt.kb"))
            begun = time.perf_counter()
            OpenBase.open(address).kb.nodes()
            result["seconds_to_read"] = round(time.perf_counter() - begun, 1)
            asked = questions[:: max(1, len(questions) // given.limit)][: given.limit]
            for method in given.method or METHODS:
                tools = OpenBase.open(kb), OpenBase.open(address)  # anew: what one method has asked for is kept
                result[method] = compare(method, tools, tools[1].kb.server, asked)
                print(json.dumps({method: result[method]}), file=sys.stderr, flush=True)
    print(json.dumps(result, indent=1))


@contextmanager
def loaded(kb: Path, folder: Path):
    """A server of its own that holds a base; yields its address."""
    os.environ |= {"NEO4J_USERNAME": USER, "NEO4J_PASSWORD": PASSWORD}
    (folder / "server").mkdir()
    with graph_server(folder / "server", heap="1g") as server:
        yield server.load(ArrayKnowledgeBase.open(kb), "loaded")


def read_questions(file: Path) -> list[str]:
    return [json.loads(line)["question"] for line in file.read_text("utf-8").splitlines()]


def are_same(one: ArrayKnowledgeBase, other: ArrayKnowledgeBase) -> dict[str, bool]:
    edges = [base.edges(base.nodes(), None, "out") for base in (one, other)]
    carried = (one.edge_columns, other.edge_columns)
    return {
        "schema": one.schema == other.schema,
        "nodes": one.columns().equals(other.columns()),
        "edges": all(
            (getattr(edges[0], part) == getattr(edges[1], part)).all() for part in ("heads", "relations", "tails")
        ),
        "edge attributes": carried[0] is carried[1] is None or carried[0].equals(carried[1]),
    }


if __name__ == "__main__":
    main()
