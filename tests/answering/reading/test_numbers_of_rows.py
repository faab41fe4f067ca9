"""Numbers that rows hold about what they connect are added up and compared."""

import pytest

import clew


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    rows = [
        ("Leith", "2021-02-25", 40),
        ("Leith", "2021-02-26", 70),
        ("Oban", "2021-02-25", 90),
        ("Oban", "2021-02-26", 10),
    ]
    lines = [f"{town},{day},{cases}" for town, day, cases in rows * 3]
    (folder / "reports.csv").write_text("\n".join(["town,date,cases", *lines]))
    clew.build(folder / "reports.csv", folder / "reports.kb")
    return clew.open(folder / "reports.kb")


def test_how_many_asks_for_a_number_that_rows_hold(reports):
    assert reports.ask("How many cases did Leith have on 2021-02-25?").value == 120
    assert reports.ask("How many reports did Leith have on 2021-02-25?").value == 3


def test_what_has_the_most_of_a_number_that_rows_hold(reports):
    answer = reports.ask("Which town had the most cases on 2021-02-26?")
    assert [one.node.name for one in answer.matches] == ["Leith"]
    told = [piece.in_words() for piece in answer.matches[0].evidence]
    assert any("cases" in text and text.endswith((": 70", ": 210")) for text in told)  # one report, or all of them


def test_how_many_is_not_left_over(reports):
    answer = reports.ask("How many reports did Leith send?")
    assert "many" not in " ".join(answer.query["unexplained"]).split()
