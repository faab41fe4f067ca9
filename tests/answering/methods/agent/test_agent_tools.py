"""The tools that the method `agent` and MCP share."""

import clew
from clew.answering.methods.agent.tools import query_nodes, search_nodes, show_node
from clew.models.tokens import count_tokens
from clew.store.open_base import OpenBase


def opened(tiny_tables, tmp_path) -> OpenBase:
    clew.build(tiny_tables, tmp_path / "tiny.kb")
    return OpenBase.open(tmp_path / "tiny.kb")


def test_a_search_finds_names_first_and_then_texts(tiny_tables, tmp_path):
    tools = opened(tiny_tables, tmp_path)
    keys = [node["key"] for node in search_nodes(tools, "Marfan sydrome").data["nodes"]]
    assert keys[0] == "MFS"
    assert "P3" in [node["key"] for node in search_nodes(tools, "slender").data["nodes"]]
    only = search_nodes(tools, "finger", "phenotype")
    assert {node["type"] for node in only.data["nodes"]} == {"phenotype"}
    assert "[P3] Arachnodactyly (phenotype): Abnormally long and slender fingers." in only.text


def test_a_node_is_shown_with_its_neighbours_by_direction(tiny_tables, tmp_path):
    tools = opened(tiny_tables, tmp_path)
    shown = show_node(tools, "BBS")
    assert "-[has_phenotype]-> 2: [P1] Polydactyly (phenotype) {frequency = 80-99%}; [P2]" in shown.text
    assert "<-[associated_with]- 1: [BBS2] BBS2 (gene)" in shown.text
    assert [group["relation"] for group in show_node(tools, "BBS", "has_phenotype").data["neighbors"]] == [
        "has_phenotype"
    ]
    (fact,) = shown.seen[tools.find_node("P2")]
    assert fact.in_words().startswith("Bardet-Biedl syndrome —has_phenotype→ Rod-cone dystrophy")


def test_a_query_shows_its_first_rows_and_their_number(tiny_tables, tmp_path):
    tools = opened(tiny_tables, tmp_path)
    rows = query_nodes(tools, "find x where (x: phenotype)", k=2)
    assert rows.text.splitlines() == [
        "4 rows: x",
        "[P1] Polydactyly (phenotype)",
        "[P2] Rod-cone dystrophy (phenotype)",
    ]
    assert (rows.data["matches"], len(rows.data["answers"])) == (4, 2)
    assert "Mordor" in query_nodes(tools, 'find x where (x: gene) -[associated_with]-> "Mordor": disease').text


def test_a_result_keeps_to_its_limit_and_names_only_what_it_shows(tiny_tables, tmp_path):
    tools = opened(tiny_tables, tmp_path)
    for limit in (8, 25, 60):
        for result in (
            search_nodes(tools, "finger", tokens=limit),
            show_node(tools, "BBS", tokens=limit),
            show_node(tools, "BBS", "has_phenotype", tokens=limit),
            query_nodes(tools, "find x where (x)", tokens=limit),
        ):
            assert count_tokens(result.text) <= limit + 10  # and the line that says what is left out
            names = tools.kb.refs(list(result.seen))
            assert all(ref.name in result.text for ref in names)
