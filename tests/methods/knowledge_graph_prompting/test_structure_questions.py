"""Tables answer simple questions by themselves; pages, tables and sections are found where the question says."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import documents_made as made
from clew.documents.extracted import cells_of, markdown
from clew.methods.knowledge_graph_prompting.structure_questions import (
    document_phrases,
    references,
    wanted,
    without_references,
)
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


def read(question):
    return [(r.kind, r.label or r.ordinal or r.about) for r in references(question)]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("difference between page 1 and table 2", [("page", "1"), ("table", "2")]),
        ("Compare pages 2, 3 and 5", [("page", "2"), ("page", "3"), ("page", "5")]),
        ("the last page and the second table", [("page", -1), ("table", 2)]),
        ('section "Salt works"', [("section", "Salt works")]),
        ("What is Appendix A.4 about?", [("section", "A.4")]),
        ("the chapter about encryption in the manual", [("section", "encryption")]),
        ("In the installation chapter, what is needed?", [("section", "installation")]),
        ("Looking at 9.14 of the guide and fig. 5.8", [("figure", "5.8")]),
        ("the list in 9.14 of the guide", [("section", "9.14")]),
        ("the third configuration variable in section 4.2", [("item", 3), ("section", "4.2")]),
        ("What is item no. 4, and rule UC4?", [("item", "4"), ("item", "UC4")]),
        ("what is on page iv?", []),
        ("page IV", [("page", "IV")]),
        ("Which table tennis player turned the page?", []),
        ("What can the table I made hold?", []),
        ("Which section 8 companies exist?", []),
        ("How large is the page cache?", []),
    ],
)
def test_references_are_read_with_their_numbers_orders_and_headings(question, named):
    assert read(question) == named


@given(
    st.sampled_from(
        [("page", "page"), ("section", "section"), ("chapter", "section"), ("Table", "table"), ("Fig.", "figure")]
    ),
    st.one_of(
        st.integers(1, 999).map(str),
        st.lists(st.integers(1, 30), min_size=2, max_size=4).map(lambda parts: ".".join(map(str, parts))),
    ),
    st.sampled_from(["What does {} say?", "In {} of the guide, what is said?", "{}: how many?", "the list ({})"]),
)
def test_any_written_number_is_read_whole_and_taken_out_of_the_question(kind, number, frame):
    question = frame.format(f"{kind[0]} {number}")
    found = references(question)
    assert [(one.kind, one.label) for one in found if one.label] == [(kind[1], number)]
    assert number not in without_references(question, found)


@given(st.text(max_size=80))
def test_any_question_can_be_read(question):
    found = references(question)
    assert all(0 <= one.start < one.end <= len(question) for one in found)
    assert wanted(question, found).what
    without_references(question, found, document_phrases(question))


def test_what_only_says_where_to_look_is_taken_out_of_the_question():
    question = "In Table 2 of report.pdf, which year had the most alarms?"
    assert without_references(question, references(question)) == "which year had the most alarms?"


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ("What is chapter 6 of the manual about?", "summary"),
        ("Summarise page 3", "summary"),
        ("What does section 2 say?", "summary"),
        ("What does section 2 say about bridges?", "content"),
        ("How many pages does the report have?", "count"),
        ("On which page is the bridge explained?", "page"),
        ("What page do I log in on?", "content"),
        ("Which section of the report covers alarms?", "section"),
        ("Which section comes after section 3?", "next"),
        ("Which chapter is before chapter 3?", "previous"),
        ("What are the subsections of section 3?", "parts"),
        ("What are these documents about?", "folder"),
        ("What is the difference between page 1 and page 2?", "comparison"),
    ],
)
def test_what_is_asked_about_a_part_is_told_apart(question, what):
    assert wanted(question, references(question)).what == what
