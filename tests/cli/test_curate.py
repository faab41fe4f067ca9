"""`clew check` and `clew dedup` on the command line."""

import gc
import json

import pytest

import clew

NODES = [
    {"id": "D1", "type": "disease", "name": "Marfan syndrome"},
    {"id": "D2", "type": "disease", "name": "Marfan syndrome"},
    {"id": "D3", "type": "disease", "name": "Bardet-Biedl syndrome"},
    *({"id": f"P{number}", "type": "phenotype", "name": f"Sign {number}"} for number in range(9)),
]
EDGES = [
    *(
        {"head": disease, "relation": "has_phenotype", "tail": sign}
        for disease in ("D1", "D2")
        for sign in ("P0", "P1")
    ),
    *({"head": "D3", "relation": "has_phenotype", "tail": f"P{number}"} for number in range(2, 9)),
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
    clew.build(clew.from_tables(NODES[1:], EDGES[2:]), tmp_path / "sound.kb")
    assert run("check", tmp_path / "sound.kb")[:2] == (0, f"{tmp_path / 'sound.kb'}: nothing doubtful found\n")
    assert run("check", tmp_path / "nothing.kb")[0] == 2


def test_dedup_shows_first_merges_when_told_and_takes_it_back(run, twins):
    code, out, _ = run("dedup", twins)
    assert code == 0
    assert "the same name: 'Marfan syndrome'" in out
    assert "1 pairs in 1 groups; --merge makes each group one node" in out
    shown = json.loads(run("dedup", twins, "--json")[1])
    assert (shown["groups"], shown["merged"]) == ([["D1", "D2"]], False)
    assert shown["pairs"][0]["evidence"]
    gc.collect()  # what earlier commands of this process had open
    code, out, _ = run("dedup", twins, "--merge")
    assert (code, out.splitlines()[-1]) == (0, "merged into 1: 11 nodes, 9 edges; --undo takes it back")
    assert len(list(twins.glob("clew-data-*"))) == 2  # with the state before it
    assert run("dedup", twins)[1] == "no duplicates found\n"
    assert run("dedup", twins, "--undo")[1] == "undone: merged 1 nodes into 1\n"
    assert json.loads(run("info", twins, "--json")[1])["nodes"] == 12
    assert run("dedup", twins, "--undo")[0] == 2
    assert run("dedup", twins, "--undo", "--merge")[0] == 2
