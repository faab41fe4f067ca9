"""Tables answer simple questions by themselves; pages, tables and sections are found where the question says."""

import datetime

import pytest

import documents_made as made
from clew.documents.extracted import cells_of, markdown
from clew.methods.knowledge_graph_prompting.structure_questions import references, without_references
from clew.methods.knowledge_graph_prompting.tables import date, look_up, number, read_table

STATIONS = read_table(markdown(cells_of(made.STATIONS, "Table 1. Stations")))
BUDGET = read_table(markdown(cells_of(made.BUDGET)))


def test_columns_have_types():
    assert STATIONS.types == ("text", "text", "number", "date")
    assert BUDGET.types == ("year", "number", "number")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1,070.4", 1070.4),
        ("(12)", -12),
        ("−3.5 %", -3.5),
        ("€ 1 200", 1200),
        ("12,5", 12.5),
        ("31 m³/s", 31),
        ("n/a", None),
    ],
)
def test_numbers_are_read_as_people_write_them(written, value):
    assert number(written) == value


@pytest.mark.parametrize("written", ["2021-03-05", "5.3.2021", "3/5/2021", "5 March 2021", "March 5, 2021"])
def test_dates_are_read_as_people_write_them(written):
    assert date(written) == datetime.date(2021, 3, 5)
    assert date("31.2.2021") is None


@pytest.mark.parametrize(
    ("table", "question", "answer"),
    [
        (STATIONS, "Which station has the highest flow?", "Wetter"),
        (STATIONS, "What is the lowest flow?", "5.9"),
        (STATIONS, "What is the flow at Hagen?", "5.9"),
        (STATIONS, "On which river is Altena?", "Lenne"),
        (STATIONS, "Which is the oldest station?", "Wetter"),
        (STATIONS, "What is the total flow?", "1133"),
        (STATIONS, "Which stations have a flow above 20?", "Arnsberg, Wetter, Altena"),
        (STATIONS, "How many stations have a flow of at least 25.2?", "3"),
        (STATIONS, "Which station opened in 1923?", "Wetter"),
        (BUDGET, "What was the income in 2020?", "130"),
        (BUDGET, "In which year were costs highest?", "2020"),
        (BUDGET, "How much more income was there in 2021 than in 2019?", "35"),
        (BUDGET, "What is the average income?", "135"),
        (BUDGET, "Who wrote the report?", None),
        (STATIONS, "Why is the flow measured?", None),
    ],
)
def test_simple_questions_are_looked_up_and_others_are_left_alone(table, question, answer):
    found = look_up(question, table)
    assert (found and found.text) == answer


def test_references_are_read_with_their_numbers_orders_and_headings():
    def read(question):
        return [(r.kind, r.number, r.ordinal, r.heading) for r in references(question)]

    assert read("difference between page 1 and table 2") == [("page", "1", None, None), ("table", "2", None, None)]
    assert read("Compare pages 2, 3 and 5") == [("page", n, None, None) for n in ("2", "3", "5")]
    assert read("the last page and the second table") == [("page", None, 0, None), ("table", None, 2, None)]
    assert read('section "Salt works"') == [("section", None, None, "Salt works")]
    assert read("Which table tennis player turned the page?") == []


def test_what_only_says_where_to_look_is_taken_out_of_the_question():
    question = "In Table 2 of report.pdf, which year had the most alarms?"
    assert without_references(question, references(question)) == "which year had the most alarms?"
