"""Processor milliseconds of each form of query, on arrays and in DuckDB on the same data.

    clew build nodes.jsonl.gz edges.tsv.gz -o hpo.kb
    python benchmarks/query_speed.py hpo.kb [--rounds 9]        # the Human Phenotype Ontology
    python benchmarks/query_speed.py prime.kb --prime           # a synthetic base of the size of STaRK's PRIME

Prints the median and the slowest of some rounds, after one that does not count, and how many edges a query reads. Both
have to give the same rows, and both have one thread, so that a busy machine changes little. `--prime` builds the base
if the folder is missing, and leaves DuckDB out unless `--duckdb` is given.
"""

# ruff: noqa: E501 - a query stays on its line

import argparse
import statistics
import time
from collections import Counter
from pathlib import Path
from string import Template

import duckdb
import numpy as np
import pyarrow as pa
from synthetic import PRIME_NODES, prime_tables

from clew.answering.queries.execution import execute
from clew.answering.queries.kinds import check
from clew.answering.queries.parsing import parse
from clew.answering.queries.sql import create, sql
from clew.core.types import NodeRef
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase

HPO = {
    "seizure": "HP:0001250", "nervous": "HP:0000707", "short": "HP:0004322", "ataxia": "HP:0001251", "part": "seizure",
    "has": "has_phenotype", "causes": "associated_with_disease", "inherits": "has_inheritance", "isa": "is_a",
}  # fmt: skip
PRIME = {
    "part": "word77", "has": "phenotype_present", "causes": "associated_with", "inherits": "linked_to", "isa": "parent_child",
}  # fmt: skip
FORMS = {
    "one hop": 'find distinct d where (d: disease) -[$has]-> node("$seizure")',
    "two hops": 'find distinct g where (g: gene) -[$causes]-> (d) and (d) -[$has]-> node("$seizure")',
    "both": 'find distinct d where (d) -[$has]-> node("$seizure") and (d) -[$has]-> node("$short")',
    "either": 'find distinct d where (d: disease) and ((d) -[$has]-> node("$ataxia") or (d) -[$has]-> node("$short"))',
    "absent": 'find distinct d where (d: disease) and not exists {(d) -[$has]-> node("$seizure")}',
    "absent, two steps": "find distinct g where (g: gene) and not exists {(g) -[$causes]-> (d) and (d) -[$inherits]-> (p)}",
    "below in a hierarchy": 'find distinct p where (p) -[$isa*]-> node("$nervous")',
    "two hops and a hierarchy": 'find distinct g where (g: gene) -[$causes]-> (d) and (d) -[$has]-> (p) and (p) -[$isa*]-> node("$nervous")',
    "any relation": 'find distinct x where (x) -[any]- node("$seizure")',
    "a part of a name": 'find p.name where (p: phenotype) and p.name contains "$part"',
    "an attribute of an edge": 'find distinct d where (d: disease) -[e: $has]-> (p) and e.frequency = "HP:0040281"',
    "number": "find count(distinct d) where (g: gene) -[$causes]-> (d)",
    "number of solutions": "find count(*) where (g: gene) -[$causes]-> (d) and (d) -[$has]-> (p)",
    "number for each": "find d, count(p) where (d: disease) -[$has]-> (p) group by d",
    "number for each value": "find e.frequency, count(*) where (d: disease) -[e: $has]-> (p) group by e.frequency",
    "having": "find d.name where (d: disease) -[$has]-> (p) group by d having count(*) >= 100",
    "first five": "find d.name, count(p) where (d) -[$has]-> (p) group by d order by count(p) desc first 5",
    "most, with ties": "find g where (g: gene) -[$causes]-> (d) group by g order by count(d) desc first 1 with ties",
    "in an order": "find g.name where (g: gene) order by length(g.name) desc, g.name",
    "optional": 'find d.name, g.name where (d) -[$has]-> node("$ataxia") and optional {(g: gene) -[$causes]-> (d)}',
    "number over a pattern": "find g where (g: gene) and count(d for (g) -[$causes]-> (d)) >= 5",
    "compared with an average": "find p.name where (p: phenotype) and length(p.name) > 3 * (find avg(length(q.name)) where (q: phenotype))",
    "in a sub-query": "find distinct d.name where (d: disease) and d.name in (find g.name where (g: gene))",
    "but not": '(find d where (d: disease) -[$has]-> node("$seizure")) except (find d where (g: gene) -[$causes]-> (d))',
    "joined by a value": "find a, b where (a: disease) and (b: disease) and a.name = b.name and a is not b",
}  # fmt: skip
LARGE = {
    "one hop of the largest": "find distinct g where (a: anatomy) -[expression_present]-> (g: gene) and a is node(\"$organ\")",
    "largest and small": 'find distinct a where (a: anatomy) -[expression_present]-> (g: gene) and (g) -[associated_with]-> node("$illness")',
    "two hops of one relation": 'find distinct x where (x: drug) -[synergistic_interaction]-> (y: drug) and (y) -[target]-> node("$protein")',
    "number by the largest": 'find a, count(g) where (a: anatomy) -[expression_present]-> (g: gene) and (g) -[ppi]-> node("$protein") group by a order by count(g) desc first 5',
    "all of the largest": "find count(*) where (a: anatomy) -[expression_present]-> (g: gene)",
    "a number as a condition": "find x.name where (x: drug) and x.mass > 990 order by x.mass desc first 10",
    "an average for each": 'find d, avg(x.mass) where (d: disease) -[indication]-> (x: drug) group by d',
}  # fmt: skip


class Counting(ArrayKnowledgeBase):
    """Counts the edges that are read."""

    touched = 0

    def _edges(self, nodes, relation, side):
        found = super()._edges(nodes, relation, side)
        self.touched += len(found)
        return found

    def neighbors(self, nodes, relation=None, direction="any"):
        self.edges(nodes, relation, direction)
        return super().neighbors(nodes, relation, direction)


def prime(folder: Path) -> dict[str, str]:
    """Build the synthetic base if it is missing. Return the names in its queries: nodes with many edges and with some."""
    if not folder.exists():
        build(prime_tables(), folder)
    kinds, firsts = list(PRIME_NODES), np.cumsum([0, *PRIME_NODES.values()])
    chosen = {
        "seizure": ("phenotype", 20), "short": ("phenotype", 5), "ataxia": ("phenotype", 200), "nervous": ("phenotype", 3),
        "organ": ("anatomy", 10), "illness": ("disease", 10), "protein": ("gene", 50),
    }  # fmt: skip
    return PRIME | {name: f"n{firsts[kinds.index(kind)] + place}" for name, (kind, place) in chosen.items()}


def loaded(kb: ArrayKnowledgeBase) -> duckdb.DuckDBPyConnection:
    """The base in DuckDB's tables, by Arrow."""
    base = duckdb.connect()
    base.execute("SET threads = 1")
    for statement in create(kb.schema):
        base.execute(statement)
    columns = pa.Table.from_batches([kb.columns()])
    names = ", ".join(f'"{name}"' for name in kb.schema.attribute_types)
    types = pa.array([kb.schema.type_names[code] for code in kb.types])
    nodes = columns.append_column("type", types)
    base.register("nodes_in", nodes)
    base.execute(f"INSERT INTO nodes SELECT key, type, name{', ' + names if names else ''} FROM nodes_in")
    table = kb.to_tables().edges[0].table
    base.register("edges_in", table.append_column("number", pa.array(range(table.num_rows))))
    names = ", ".join(f'"{name}"' for name in kb.schema.edge_attributes)
    base.execute(f"INSERT INTO edges SELECT number, head, relation, tail{', ' + names if names else ''} FROM edges_in")
    return base


def timed(run, rounds: int) -> tuple[float, float, list]:
    rows, taken = run(), []
    for _ in range(rounds):
        begin = time.process_time()
        rows = run()
        taken.append(1000 * (time.process_time() - begin))
    return statistics.median(taken), max(taken), rows


def plain(rows: list) -> Counter:
    return Counter(tuple(cell.key if isinstance(cell, NodeRef) else cell for cell in row) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kb")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--prime", action="store_true")
    parser.add_argument("--duckdb", action="store_true")
    given = parser.parse_args()
    names = prime(Path(given.kb)) if given.prime else HPO
    kb, counting = ArrayKnowledgeBase.open(given.kb), Counting.open(given.kb)
    base = loaded(kb) if given.duckdb or not given.prime else None
    forms = FORMS | (LARGE if given.prime else {})
    print(f"{'form':28}{'rows':>9}{'edges':>11}{'median':>9}{'slowest':>9}{'DuckDB':>9}")
    for form, text in forms.items():
        query = parse(Template(text).substitute(names))
        if "frequency" in text and "frequency" not in kb.schema.edge_attributes:
            continue
        check(query, kb.schema)
        counting.touched = 0
        execute(counting, query)
        median, slowest, rows = timed(lambda query=query: execute(kb, query).rows, given.rounds)
        line = f"{form:28}{len(rows):9,}{counting.touched:11,}{median:9.1f}{slowest:9.1f}"
        if base is not None:
            written = sql(query, kb.schema)
            run = lambda written=written: base.execute(written).fetchall()  # noqa: E731
            other, _, expected = timed(run, max(3, given.rounds // 3))
            line += f"{other:9.1f}" + ("" if plain(rows) == plain(expected) else f"  DIFFERENT: {len(expected)} rows")
        print(line, flush=True)


if __name__ == "__main__":
    main()
