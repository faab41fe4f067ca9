"""Questions about the order of the rows of a table."""

import pytest

import clew
from clew.answering.reading.quantities import steps
from clew.store.index.tokens import tokenise

PLAYS = ["Zebra Crossing,Ida Holm", "Apple Pie,Karl Vik", "Mild Winter,Ida Holm", "Bad Weather,Berit Nes"]


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plays")
    (folder / "plays.csv").write_text("\n".join(["Play,Author", *PLAYS]) + "\n", "utf-8")
    clew.build([folder / "plays.csv"], folder / "plays.kb")
    return clew.open(folder / "plays.kb")


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the first play on the list?", "Zebra Crossing"),
        ("What is the last play listed?", "Bad Weather"),
        ("Which play is listed after Apple Pie?", "Mild Winter"),
        ("Which play comes before Apple Pie?", "Zebra Crossing"),
        ("Who is the author listed after Karl Vik?", "Ida Holm"),
    ],
)
def test_rows_are_found_by_their_order(plays, question, name):
    answer = plays.ask(question)
    assert [one.node.name for one in answer.matches] == [name]
    assert [one.node for one in plays.query(answer.query["query"]).matches] == [one.node for one in answer.matches]


def test_the_row_is_no_attribute_that_people_see(plays):
    assert plays.schema.attribute_types == {}
    assert "clew:row" not in str(plays.ask("What is known about Apple Pie?").to_dict())


@pytest.mark.parametrize(
    ("question", "name", "said"),
    [
        ("Who is listed after Ann?", "Ann", {"after": 1}),
        ("What is the previous stop to Ann?", "Ann", {}),
        ("Who comes directly before the Ann?", "Ann", {"before": -1}),
        ("What was built after 1900 by Ann?", "Ann", {}),
    ],
)
def test_words_for_neighbours_stand_before_names(question, name, said):
    tokens = tokenise(question)
    outside = [at for at, one in enumerate(tokens) if one.text != name.lower()]
    assert steps(tokens, outside, {question.index(name)}) == said


def test_rows_for_others_leave_no_gap_in_the_order(tmp_path):
    rows = [f"{play},{'board' if play.startswith('Apple') else ''}" for play in PLAYS]
    (tmp_path / "plays.csv").write_text("\n".join(["Play,Author,acl", *rows]) + "\n", "utf-8")
    options = clew.SourceOptions(columns={"groups": "acl"})
    clew.build([tmp_path / "plays.csv"], tmp_path / "plays.kb", options=options)
    query = 'find x where (x: play) and (y: play) and y.name = "Zebra Crossing" and row(x) = row(y) + 1'
    for groups, name in ((["board"], "Apple Pie"), ([], "Mild Winter")):
        seen = clew.open(tmp_path / "plays.kb", groups=groups)
        assert [one.node.name for one in seen.query(query).matches] == [name]
