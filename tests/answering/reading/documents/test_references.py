"""Pages, tables and sections are found where the question says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.reading.documents.references import (
    document_phrases,
    references,
    wanted,
    without_references,
)


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
