"""How fast questions become relation paths, and relation paths are enumerated from a hub: CPU time of one core.

python benchmarks/paths.py metaqa DIR [N]    questions per second at three hops, one core, no model
python benchmarks/paths.py hub               all relation paths of depth 3 from a hub of a PRIME-size graph
"""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from clew.answering.queries.relation_paths import Explorer, RelationPath
from clew.core.types import NodeSet
from clew.lab.datasets.base import dataset_base
from clew.lab.datasets.load import load_dataset
from clew.store.graph.tables import Piece, Tables


def questions(folder: str, count: int) -> None:
    from clew.answering.methods.catalog import ask, create
    from clew.store.open_base import OpenBase

    dataset = load_dataset(f"metaqa:{folder}:3-hop-dev").sample(count)
    method, tools = create("aligned_paths"), OpenBase.open(dataset_base(dataset))
    for round_ in ("first", "warm"):
        begun = time.process_time()
        for question in dataset.questions:
            ask(method, question.text, tools)
        seconds = time.process_time() - begun
        print(f"{round_}: {count / seconds:.1f} questions/s, {1000 * seconds / count:.1f} ms each")


def hub(nodes: int = 129_375, edges: int = 8_100_000, relations: int = 18) -> None:
    import tempfile

    from clew.store.building import build
    from clew.store.graph.arrays import ArrayKnowledgeBase

    rng = np.random.default_rng(0)
    heads = (nodes * rng.power(0.4, edges)).astype(np.int64)
    columns = {
        "head": pa.array(heads.astype(str)),
        "relation": pa.array(np.char.add("relation_", rng.integers(0, relations, edges).astype(str))),
        "tail": pa.array(rng.integers(0, nodes, edges).astype(str)),
    }
    with tempfile.TemporaryDirectory() as folder:
        build(Tables((), (Piece(pa.table(columns), "edges"),), implicit=True), Path(folder) / "hub.kb")
        kb = ArrayKnowledgeBase.open(Path(folder) / "hub.kb")
        degree = np.diff(kb.outward.node_groups)
        topic = NodeSet.of([int(degree.argmax())])
        explorer = Explorer(kb)
        for round_ in ("first", "warm"):
            begun = time.process_time()
            counts = [0, 0, 0]
            level = [(topic, explorer.leads(topic))]
            for depth in range(3):
                counts[depth] = sum(len(leads) for _, leads in level)
                if depth < 2:
                    reached = [
                        explorer.ends(nodes, lead, RelationPath(topic)) for nodes, leads in level for lead in leads
                    ]
                    level = [(nodes, explorer.leads(nodes)) for nodes in reached]
            print(f"{round_}: {counts} relation paths, {1000 * (time.process_time() - begun):.0f} ms")


if __name__ == "__main__":
    if sys.argv[1] == "metaqa":
        questions(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 200)
    else:
        hub()
