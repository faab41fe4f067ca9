"""Processor milliseconds of each form of query over the Human Phenotype Ontology, on arrays and in DuckDB on the same data.

    clew build nodes.jsonl.gz edges.tsv.gz -o hpo.kb
    python benchmarks/query_speed.py hpo.kb [--rounds 9]

Prints the median and the slowest of some rounds, after one that does not count. Both have to give the same rows, and
both have one thread, so that a busy machine changes little.
"""

# ruff: noqa: E501 - a query stays on its line

import argparse
import statistics
import time
from collections import Counter

import duckdb
import pyarrow as pa

from clew.answering.queries.execution import execute
from clew.answering.queries.kinds import check
from clew.answering.queries.parsing import parse
from clew.answering.queries.sql import create, sql
from clew.core.types import NodeRef
from clew.store.graph.arrays import ArrayKnowledgeBase

SEIZURE, NERVOUS, SHORT, ATAXIA = "HP:0001250", "HP:0000707", "HP:0004322", "HP:0001251"
FORMS = {
    "one hop": f'find distinct d where (d: disease) -[has_phenotype]-> node("{SEIZURE}")',
    "two hops": f'find distinct g where (g: gene) -[associated_with_disease]-> (d) and (d) -[has_phenotype]-> node("{SEIZURE}")',
    "both": f'find distinct d where (d) -[has_phenotype]-> node("{SEIZURE}") and (d) -[has_phenotype]-> node("{SHORT}")',
    "either": f'find distinct d where (d: disease) and ((d) -[has_phenotype]-> node("{ATAXIA}") or (d) -[has_phenotype]-> node("{SHORT}"))',
    "absent": f'find distinct d where (d: disease) and not exists {{(d) -[has_phenotype]-> node("{SEIZURE}")}}',
    "absent, two steps": "find distinct g where (g: gene) and not exists {(g) -[associated_with_disease]-> (d) and (d) -[has_inheritance]-> (p)}",
    "below in a hierarchy": f'find distinct p where (p) -[is_a*]-> node("{NERVOUS}")',
    "two hops and a hierarchy": f'find distinct g where (g: gene) -[associated_with_disease]-> (d) and (d) -[has_phenotype]-> (p) and (p) -[is_a*]-> node("{NERVOUS}")',
    "any relation": f'find distinct x where (x) -[any]- node("{SEIZURE}")',
    "a part of a name": 'find p.name where (p: phenotype) and p.name contains "seizure"',
    "an attribute of an edge": 'find distinct d where (d: disease) -[e: has_phenotype]-> (p) and e.frequency = "HP:0040281"',
    "number": "find count(distinct d) where (g: gene) -[associated_with_disease]-> (d)",
    "number of solutions": "find count(*) where (g: gene) -[associated_with_disease]-> (d) and (d) -[has_phenotype]-> (p)",
    "number for each": "find d, count(p) where (d: disease) -[has_phenotype]-> (p) group by d",
    "number for each value": "find e.frequency, count(*) where (d: disease) -[e: has_phenotype]-> (p) group by e.frequency",
    "having": "find d.name where (d: disease) -[has_phenotype]-> (p) group by d having count(*) >= 100",
    "first five": "find d.name, count(p) where (d) -[has_phenotype]-> (p) group by d order by count(p) desc first 5",
    "most, with ties": "find g where (g: gene) -[associated_with_disease]-> (d) group by g order by count(d) desc first 1 with ties",
    "in an order": "find g.name where (g: gene) order by length(g.name) desc, g.name",
    "optional": f'find d.name, g.name where (d) -[has_phenotype]-> node("{ATAXIA}") and optional {{(g: gene) -[associated_with_disease]-> (d)}}',
    "number over a pattern": "find g where (g: gene) and count(d for (g) -[associated_with_disease]-> (d)) >= 5",
    "compared with an average": "find p.name where (p: phenotype) and length(p.name) > 3 * (find avg(length(q.name)) where (q: phenotype))",
    "in a sub-query": "find distinct d.name where (d: disease) and d.name in (find g.name where (g: gene))",
    "but not": f'(find d where (d: disease) -[has_phenotype]-> node("{SEIZURE}")) except (find d where (g: gene) -[associated_with_disease]-> (d))',
    "joined by a value": "find a, b where (a: disease) and (b: disease) and a.name = b.name and a is not b",
}  # fmt: skip


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
    given = parser.parse_args()
    kb = ArrayKnowledgeBase.open(given.kb)
    base = loaded(kb)
    print(f"{'form':28}{'rows':>9}{'median':>9}{'slowest':>9}{'DuckDB':>9}")
    for form, text in FORMS.items():
        query = parse(text)
        check(query, kb.schema)
        written = sql(query, kb.schema)
        median, slowest, rows = timed(lambda query=query: execute(kb, query).rows, given.rounds)
        other, _, expected = timed(lambda written=written: base.execute(written).fetchall(), max(3, given.rounds // 3))
        same = "" if plain(rows) == plain(expected) else f"  DIFFERENT: {len(expected)} rows"
        print(f"{form:28}{len(rows):9,}{median:9.1f}{slowest:9.1f}{other:9.1f}{same}", flush=True)


if __name__ == "__main__":
    main()
