"""A triplet query and what it becomes in the algebra give the same nodes."""

import random
import sys
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path

import pytest

from clew.answering.queries.algebra.bridge import from_triplets
from clew.answering.queries.algebra.execution import execute
from clew.answering.queries.algebra.kinds import check
from clew.answering.queries.algebra.parsing import parse
from clew.answering.queries.finishing import best_of, finish
from clew.answering.queries.grounding import ground, pose
from clew.answering.queries.solutions import solve
from conftest import ROOT, build_graph
from repeats import repeats

pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(ROOT / "benchmarks"))
from certificates import KINDS, ByName, queries, random_tables

WAYS = (
    {"edge_types": "strict", "direction": "strict"},
    {"edge_types": "strict", "direction": "strict", "hierarchical": True},
    {"edge_types": "ignore", "direction": "any"},
    {"edge_types": "prefer", "direction": "any", "hierarchical": True},
)


def solved(kb, readings, query, way):
    """What the triplet query gives: its nodes, and its value if it asks for one."""
    nodes = []
    for one, groundings in readings:
        target = solve(kb, pose(one, groundings, kb, **way)).target
        nodes.append(kb.nodes(one.target.type) if target is None else target)
    whole = reduce(or_, nodes)
    whole = whole if query.best is None else best_of(kb, query.best, whole)
    return finish(kb, query, whole)


@pytest.mark.long
def test_a_triplet_query_and_its_translation_give_the_same(tmp_path):
    chance, compared, found = random.Random(5), 0, 0
    for number in range(repeats(6, 200)):
        kb = build_graph(random_tables(chance), Path(tmp_path) / f"{number}.kb")
        names = ByName(kb)
        for _, query in islice(queries(kb, chance), 60):
            if query.best and kb.schema.attribute_types.get(query.best.attribute or "") in ("boolean", "list"):
                continue
            if query.best and query.best.attribute in KINDS and query.best.attribute not in kb.schema.attribute_types:
                continue
            readings = [(one, ground(one, names)) for one in (query, *query.either)]
            way = chance.choice(WAYS)
            expected = solved(kb, readings, query, way)
            translated = from_triplets(kb, readings, **way)
            assert parse(str(translated)) == translated
            check(translated, kb.schema)
            result = execute(kb, translated)
            compared, found = compared + 1, found + bool(len(expected.nodes))
            if query.asks in ("number", "truth"):
                [[amount]] = result.rows
                assert (amount if query.asks == "number" else amount > 0) == expected.value, (str(query), way)
            else:
                assert result.nodes == expected.nodes, (str(query), str(translated), way)
    assert found > compared / 3 > 50
