"""What is doubtful about the data of a base is found, counted and shown; what is well is left alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.store.curation.checks import _within_cycles, check_data
from clew.store.sources.objects import from_tables
from conftest import build_graph

NODES = [
    {"id": "a", "type": "city", "name": "Riga", "size": "605802"},
    {"id": "b", "type": "city", "name": "riga ", "size": "many"},
    {"id": "c", "type": "city", "name": "Oslo", "size": "709037"},
    {"id": "d", "type": "city", "name": "", "size": "1"},
    {"id": "e", "type": "city", "name": "—", "size": "2"},
    *({"id": f"x{number}", "type": "city", "name": f"City {number}", "size": f"{number}"} for number in range(20)),
    {"id": "r1", "type": "river", "name": "Daugava"},
    {"id": "r2", "type": "river", "name": "Glomma"},
    {"id": "k", "type": "country", "name": "Latvia"},
    {"id": "gone", "type": "country"},
    {"id": "p1", "type": "part", "name": "one"},
    {"id": "p2", "type": "part", "name": "two"},
    {"id": "p3", "type": "part", "name": "three"},
]
EDGES = [
    *({"head": node["id"], "relation": "in", "tail": "k"} for node in NODES if node["type"] == "city"),
    *({"head": "a", "relation": "in", "tail": "k"} for _ in range(100)),
    {"head": "k", "relation": "in", "tail": "gone"},
    {"head": "p1", "relation": "part_of", "tail": "p2"},
    {"head": "p2", "relation": "part_of", "tail": "p1"},
    {"head": "p3", "relation": "part_of", "tail": "p1"},
]


def findings(folder, nodes=NODES, edges=EDGES, most=5):
    kb = build_graph(from_tables(nodes, edges), folder / "base.kb")
    return {finding.kind: finding for finding in check_data(kb, most)}


def test_every_kind_of_problem_is_found_with_examples(tmp_path):
    found = findings(tmp_path)
    shown = {kind: (finding.count, finding.examples) for kind, finding in found.items()}
    assert shown == {
        "dangling": (1, ("'gone' (country, gone)",)),
        "empty name": (2, ("'d' (city, d)", "'—' (city, e)")),
        "duplicate name": (1, ("'Riga': 2 of type city",)),
        "cycle": (2, ("one → two → one",)),
        "types disagree": (1, ("country —in→ country: 1 edges",)),
        "values disagree": (1, ("'many'",)),
        "unused type": (1, ("river: 2 nodes",)),
    }
    assert all(finding.advice for finding in found.values())


def test_nodes_without_an_edge_are_isolated_and_examples_are_few(tmp_path):
    nodes = [*NODES, *({"id": f"z{number}", "type": "city", "name": f"Z {number}"} for number in range(9))]
    isolated = findings(tmp_path, nodes, most=2)["isolated"]
    assert (isolated.count, len(isolated.examples)) == (9, 2)


def test_a_base_of_bare_facts_and_the_tiny_one_have_no_problems(tmp_path, tiny_tables):
    assert not check_data(build_graph(tiny_tables, tmp_path / "tiny.kb"))
    facts = from_tables(edges=[{"head": "a", "relation": "knows", "tail": "b"}])
    assert not check_data(build_graph(facts, tmp_path / "facts.kb"))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_what_is_left_of_a_hierarchy_holds_every_cycle(pairs):
    heads, tails = (np.array([pair[side] for pair in pairs], dtype=np.int32) for side in (0, 1))
    left = set(zip(*(side.tolist() for side in _within_cycles(heads, tails, 8)), strict=True))

    def reachable(start):
        seen, front = set(), [start]
        while front:
            for head, tail in pairs:
                if head == front[0] and tail not in seen:
                    seen.add(tail)
                    front.append(tail)
            front.pop(0)
        return seen

    on_cycles = {(head, tail) for head, tail in pairs if head in reachable(tail) | {tail} and tail in reachable(head)}
    on_cycles = {(head, tail) for head, tail in on_cycles if head == tail or head in reachable(tail)}
    assert on_cycles <= left
    assert bool(left) == bool(on_cycles)
