"""`clew check` and `clew dedup` on the command line."""

import json

import pytest

import clew

NODES = [
    {"id": "D1", "type": "disease", "name": "Marfan syndrome"},
    {"id": "D2", "type": "disease", "name": "Marfan syndrome"},
    {"id": "P1", "type": "phenotype", "name": "Arachnodactyly"},
]
EDGES = [
    {"head": "D1", "relation": "has_phenotype", "tail": "P1"},
    {"head": "D2", "relation": "has_phenotype", "tail": "P1"},
]


@pytest.fixture
def twins(tmp_path):
    clew.build(clew.from_tables(NODES, EDGES), tmp_path / "twins.kb")
    return tmp_path / "twins.kb"


def test_check_says_by_its_exit_status_whether_it_found_something(run, twins, tmp_path):
    code, out, _ = run("check", twins)
    assert code == 3
    assert "duplicate name: 1 names that several nodes of a type have" in out
    code, out, _ = run("check", twins, "--json")
    assert (code, [problem["kind"] for problem in json.loads(out)["problems"]]) == (3, ["duplicate name"])
    clew.build(clew.from_tables(NODES[1:], EDGES[1:]), tmp_path / "sound.kb")
    assert run("check", tmp_path / "sound.kb")[:2] == (0, f"{tmp_path / 'sound.kb'}: nothing doubtful found\n")
    assert run("check", tmp_path / "nothing.kb")[0] == 2
