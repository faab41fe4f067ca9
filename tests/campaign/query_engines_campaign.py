"""Random bases and queries of every form, carried out by the executor, by brute force and by other engines.

    python tests/campaign/query_engines_campaign.py --n 20000 --seed 0 [--postgres postgresql://…]
    python tests/campaign/query_engines_campaign.py --n 5000 --csv                # CSV files with odd names, in DuckDB

Prints for each form how many queries were compared with each engine, how many a language cannot say, and how many have
rows at all. Differences are shown, and end the run with an error.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import clew
from clew.answering.queries.execution import execute
from clew.answering.queries.lowering import CannotPrintError
from clew.answering.queries.parsing import parse
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Problems
from query_engines import DuckDB, Kuzu, Oxigraph, Postgres, normal
from query_reference import Reference
from random_queries import FORMS, Maker, random_csv, random_query, random_tables

ENGINES = (DuckDB, Oxigraph, Kuzu)
ROUNDS = 4
"""Queries of each form for one base."""


def random_graph(chance, folder):
    """A base of random nodes and edges."""
    return ArrayKnowledgeBase.staged(folder, write_graph(random_tables(chance), folder, Problems(False)).to_json())


def built_from_csv(chance, folder):
    """A base that is built from random CSV files."""
    (folder / "files").mkdir()
    random_csv(chance, folder / "files")
    clew.build([folder / "files"], folder / "base.kb")
    return ArrayKnowledgeBase.open(folder / "base.kb")


def compared(seed, count, engines=ENGINES, made=random_graph, rounds=ROUNDS):
    """Yield form, engine, outcome and a text about a difference. Outcomes: equal, different, cannot say, empty."""
    chance, done = random.Random(seed), 0
    while done < count:
        with tempfile.TemporaryDirectory() as folder:
            kb = made(chance, Path(folder))
            is_csv = made is built_from_csv  # trying everything would take too long
            reference, opened, maker = Reference(kb), [engine(kb) for engine in engines], Maker(kb, chance, is_csv)
            for form in FORMS * rounds:
                done += 1
                query = random_query(maker, form)
                expected = normal(query, execute(kb, query).rows if is_csv else reference_rows(reference, query))
                yield form, "rows", "equal" if expected else "empty", ""
                yield form, "text", *outcome(query, query, lambda query: parse(str(query)))
                yield (
                    form,
                    "executor",
                    *outcome(query, expected, lambda query, kb=kb: normal(query, execute(kb, query).rows)),
                )
                for engine in opened:
                    yield (
                        form,
                        type(engine).__name__,
                        *outcome(query, expected, lambda query, engine=engine: carried_out(engine, query)),
                    )


def reference_rows(reference, query):
    return [
        tuple(reference.nodes[cell[1]].key if isinstance(cell, tuple) and cell[0] == "node" else cell for cell in row)
        for row in reference.rows(query)
    ]


def on_arrays(kb, query):
    return normal(query, execute(kb, query).rows)


def carried_out(engine, query):
    return normal(query, engine.rows(engine.text(query)))


def outcome(query, expected, run):
    try:
        given = run(query)
    except CannotPrintError:
        return "cannot say", ""
    except Exception as error:
        given = f"{type(error).__name__}: {error}"
    if given == expected:
        return "equal", ""
    return "different", f"{query}\n  gives    {given}\n  expected {expected}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5, help="maximum number of differences to show")
    parser.add_argument("--postgres", help="database that carries out whole queries, too")
    parser.add_argument("--csv", action="store_true", help="build bases from CSV files, and ask DuckDB alone")
    given = parser.parse_args()
    Postgres.url = given.postgres
    engines = (DuckDB,) if given.csv else (*ENGINES, Postgres) if given.postgres else ENGINES
    made = built_from_csv if given.csv else random_graph
    counts, shown = Counter(), 0
    for form, engine, result, text in compared(given.seed, given.n, engines, made):
        counts[form, engine, result] += 1
        counts["all", engine, result] += 1
        if result == "different" and shown < given.show:
            shown += 1
            print(f"--- {engine}, {form}: {text}", flush=True)
    names = ("text", "executor", *(engine.__name__ for engine in engines))
    print(f"{'form':16}{'queries':>8}{'with rows':>10}" + "".join(f"{name:>20}" for name in names))
    for form in (*FORMS, "all"):
        total = sum(counts[form, "rows", result] for result in ("equal", "empty"))
        cells = [
            f"{counts[form, name, 'equal']}/{counts[form, name, 'different']}/{counts[form, name, 'cannot say']}"
            for name in names
        ]
        print(f"{form:16}{total:8}{counts[form, 'rows', 'equal']:10}" + "".join(f"{cell:>20}" for cell in cells))
    print("cells are equal/different/cannot say")
    sys.exit(any(counts["all", name, "different"] for name in names))


if __name__ == "__main__":
    main()
