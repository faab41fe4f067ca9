"""Questions about values in lists: attributes with several values, and columns that become nodes."""

import json

import pytest

import clew

COLORS = {"Alpha": ["red", "blue"], "Beta": ["green"], "Gamma": ["red", "green"], "Delta": []}


@pytest.fixture(scope="module")
def huts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("huts")
    nodes = [{"key": name, "type": "hut", "name": name, "colors": colors} for name, colors in COLORS.items()]
    nodes.append({"key": "vale", "type": "valley", "name": "Vale"})
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    (folder / "edges.tsv").write_text("".join(f"{name}\tin\tvale\n" for name in COLORS))
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "huts.kb")
    return clew.open(folder / "huts.kb")


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    rows = ["Alien,horror|science fiction", "Heat,crime|drama", "Airplane,comedy", "Scream,horror|comedy"]
    rows += ["Titanic,drama|romance", "Clue,comedy|crime", "Solaris,drama|science fiction", "Jaws,horror|drama"]
    (folder / "films.csv").write_text("\n".join(["title,genres", *rows]) + "\n")
    clew.build([folder / "films.csv"], folder / "films.kb")
    return clew.open(folder / "films.kb")


def names(answer):
    return {one.node.name for one in answer.matches}


def test_a_value_of_a_list_is_a_condition(huts):
    assert names(huts.ask("Which huts have the color red?")) == {"Alpha", "Gamma"}


def test_several_values_of_a_list_can_all_be_required(huts):
    assert names(huts.ask("Which huts have the colors red and green?")) == {"Gamma"}


def test_a_list_is_shown_as_its_values(huts):
    answer = huts.ask("What are the colors of the huts in Vale?")
    shown = {row[0].name: row[1] for row in answer.rows}
    assert shown == {"Alpha": "red, blue", "Beta": "green", "Gamma": "red, green"}
    assert "Alpha (red, blue)" in answer.text
    assert "[" not in huts.query("find x.colors where (x: hut)").text


def test_a_relation_named_like_its_type_is_a_noun(films):
    answer = films.ask("Which films are horror?")
    assert names(answer) == {"Alien", "Scream", "Jaws"}
    assert "have the genre horror" in answer.text


def test_an_irregular_plural_of_a_name_is_that_name(films):
    assert names(films.ask("Which films are comedies?")) == {"Airplane", "Scream", "Clue"}
