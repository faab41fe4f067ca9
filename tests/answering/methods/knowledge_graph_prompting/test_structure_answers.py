"""Parts of real documents are found by number, order, heading and description, and what is not there is said."""

import docx
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

from clew.answering.methods.knowledge_graph_prompting.method import structure_of
from clew.answering.methods.role_choice import reader_for
from clew.answering.reading.documents.references import asked_of_parts
from clew.core.trace import recording
from clew.core.types import Passage
from clew.documents.building import build_documents
from clew.store.open_base import OpenBase

GUIDE = """# Lighthouse keeper's guide

This guide tells keepers how to run a lighthouse.

## 1 The lamp

The lamp burns oil. It is lit at dusk.

### 1.1 Oil

Use whale oil in winter. Rape oil freezes at three degrees.

### 1.2 Wicks

Trim the wick twice a night. The wick is made of cotton.

## 2 The fog horn

The horn sounds every forty seconds. It needs compressed air.

Rules of thumb:

1. Start the engine before the fog comes.
2. Never sleep beside the horn.
3. Empty the water from the tank each morning.

## 3 Companies

Section 8 companies supply the oil. They deliver by boat.

| Company | Boats |
| --- | --- |
| Hansen | 4 |
| Brand | 2 |
"""
FAQ = """<html><head><title>Ferry FAQ</title></head><body><h1>Ferry FAQ</h1>
<h2>(1) When does the ferry leave?</h2><p>The ferry leaves at seven. On Sundays it leaves at nine.</p>
<h2>(2) May I bring a dog?</h2><p>Dogs travel free of charge on the lower deck.</p>
<h2>(3) What does a bicycle cost?</h2><p>A bicycle costs four crowns in every season.</p></body></html>
"""
TEXT = """NOTES ON KNOTS

1. Introduction

Knots hold ropes together. A good knot can be untied again.

2. Bowline

2.1 How to tie it

The bowline makes a loop that does not slip. The rabbit comes out of the hole.

2.2 Where it fails

The bowline may shake loose when it is not under load.

3. Hitches

Figure 1 shows the clove hitch.

+-----------+
|  o====o   |
+--Figure-1-+

A clove hitch ties a rope to a post.
"""
NOTES = """# Notes for keepers

Keepers write these notes for those who come after them. They are read aloud on the first evening.

## Visitors

Visitors come on summer afternoons only. They sign the book beside the stairs.
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    (folder / "guide.md").write_text(GUIDE, "utf-8")
    (folder / "ferry-faq.html").write_text(FAQ, "utf-8")
    (folder / "knots.txt").write_text(TEXT, "utf-8")
    (folder / "Keeper_Notes_2024.md").write_text(NOTES, "utf-8")
    style = getSampleStyleSheet()
    pages = ["The crew has nine members.", "The ship was built in Oslo.", "The voyage ended in Kiel."]
    story = [part for text in pages for part in (Paragraph(text, style["Normal"]), PageBreak())][:-1]
    SimpleDocTemplate(str(folder / "log.pdf"), pagesize=A4, title="Ship log").build(story)
    letter = docx.Document()
    letter.add_heading("Letter to the harbour master", 0)
    letter.add_paragraph("The pier needs new planks before the storms come.")
    letter.save(str(folder / "letter.docx"))
    build_documents([folder], folder / "kb")
    return OpenBase.open(folder / "kb", embedder="hash")


@pytest.fixture(scope="module")
def ask(tools):

    def ask(question):
        asked = asked_of_parts(question)
        return None if asked is None else structure_of(tools).answer(question, *asked, reader_for(tools))

    return ask


@pytest.mark.parametrize(
    ("question", "part", "said"),
    [
        ("What does section 1.1 of the lighthouse guide say about winter?", "1.1 Oil", "whale oil in winter"),
        ("In section 1 of the guide, how often is the wick trimmed?", "1 The lamp", "twice a night"),
        ("the section about wicks in the lighthouse guide: what is it made of?", "1.2 Wicks", "cotton"),
        ("What is the third rule in section 2 of the guide?", "rule 3", "Empty the water"),
        ("What is question number 2 of the Ferry FAQ about?", "(2) May I bring a dog?", "Dogs travel free"),
        ("Second entry of the ferry FAQ: where do dogs travel?", "(2) May I bring a dog?", "lower deck"),
        ("In section 2.2 of the knots text, when may it shake loose?", "2.2 Where it fails", "not under load"),
        ("What does chapter 2 of knots.txt deal with?", "2. Bowline", "loop that does not slip"),
        ("What does page 2 of log.pdf say?", "page 2", "built in Oslo"),
        ("What does the last page of the ship log say?", "page 3", "ended in Kiel"),
        ("In Figure 1 of knots.txt, which hitch is shown?", "figure 1", "clove hitch"),
    ],
)
def test_a_named_part_is_found_and_read(ask, question, part, said):
    answer = ask(question)
    assert part in [one["part"] for one in answer.query["structure"]]
    assert said in answer.text
    assert answer.evidence
    for piece in answer.evidence:
        if isinstance(piece, Passage):
            assert piece.file
            assert " ".join(piece.text.split()) in " ".join(answer.text.split())


@pytest.mark.parametrize(
    ("question", "value", "text"),
    [
        ("How many pages does the ship log have?", 3, "3 pages"),
        ("How many tables are in the lighthouse guide?", 1, "1 table"),
        ("On which page of the ship log is Oslo mentioned?", 2, "page 2"),
        ("Which section comes after section 1 of the guide?", None, "2 The fog horn"),
        ("Which section comes before section 1.2 of the guide?", None, "1.1 Oil"),
        ("What are the subsections of section 1 of the guide?", 2, "1.1 Oil"),
        ("Which section of the lighthouse guide covers the fog horn?", None, "2 The fog horn"),
        ("What is on the page after page 1 of the ship log?", 2, "built in Oslo"),
    ],
)
def test_facts_of_the_structure_are_told(ask, question, value, text):
    answer = ask(question)
    assert answer.value == value
    assert text in answer.text
    assert answer.evidence


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What does table 9 of guide.md say?", "there is no table 9 in guide.md"),
        ("What does page 7 of log.pdf say?", "there is no page 7 in log.pdf; it has 3 pages"),
        ("What does section 12 of guide.md say?", "there is no section 12 in guide.md; it has sections 1 to 3"),
    ],
)
def test_a_part_that_a_document_does_not_have_is_not_found_and_said(ask, question, said):
    with recording() as recorder:
        answer = ask(question)
    assert recorder.fallbacks[0].reason.startswith(said)
    assert not answer.found
    assert said[1:] in answer.text


def test_a_part_that_no_document_has_is_left_to_ordinary_search(ask):
    with recording() as recorder:
        assert ask("What does table 9 say about the horn?") is None
    assert recorder.fallbacks[0].reason.startswith("there is no table 9")


@pytest.mark.parametrize(
    "question",
    [
        "What do section 8 companies supply?",
        "How much does a bicycle cost?",
        "Who sat at the table beside the horn?",
        "What is the second argument against rape oil?",
        "Why is the first lamp lit at dusk?",
        "How many boats does Hansen have?",
        "What page do I log in on?",
        "How many pages does the keeper of the lighthouse write?",
    ],
)
def test_ordinary_questions_are_left_alone(ask, question):
    assert ask(question) is None


def test_a_document_is_summed_up_with_its_sections(ask):
    answer = ask("What is the lighthouse guide about?")
    assert "1 The lamp; 2 The fog horn; 3 Companies" in answer.text
    assert {piece.file for piece in answer.evidence} == {"guide.md"}


@pytest.mark.parametrize(
    "name", ["Keeper_Notes_2024", "keeper_notes_2024.md", "Keeper Notes 2024", "Notes for keepers"]
)
@pytest.mark.parametrize("order", ["summarise {}", "Summary of {}", "What is {} about?"])
def test_a_document_is_summed_up_by_any_form_of_its_name(ask, order, name):
    answer = ask(order.format(name))
    assert {quote.file for quote in answer.evidence} == {"Keeper_Notes_2024.md"}


@pytest.mark.parametrize(
    "question",
    ["compare Keeper_Notes_2024 and ferry-faq.html", "How do the Ferry FAQ and Notes for keepers differ?"],
)
def test_two_documents_are_compared_by_name(ask, question):
    assert {quote.file for quote in ask(question).evidence} == {"Keeper_Notes_2024.md", "ferry-faq.html"}


@pytest.mark.parametrize(
    ("question", "files"),
    [
        ("Which document discusses dogs?", ["ferry-faq.html"]),
        ("In which file is the bowline explained?", ["knots.txt"]),
        ("Which documents say something about the horn?", ["guide.md"]),
    ],
)
def test_a_question_for_documents_is_answered_by_documents(ask, question, files):
    answer = ask(question)
    assert [candidate.node.key for candidate in answer.candidates] == files
    assert [quote.file for quote in answer.evidence] == files


def test_a_question_for_documents_about_an_unknown_subject_is_left_to_ordinary_search(ask):
    assert ask("Which document discusses volcanoes?") is None


def test_a_folder_is_summed_up_by_a_line_for_each_document(ask):
    answer = ask("What are these documents about?")
    assert answer.value == 6
    assert len(answer.text.splitlines()) == 6
    assert {piece.file for piece in answer.evidence} == {
        "Keeper_Notes_2024.md",
        "ferry-faq.html",
        "guide.md",
        "knots.txt",
        "letter.docx",
        "log.pdf",
    }


def test_two_sections_are_compared_by_what_each_says_alone(ask):
    answer = ask("What is the difference between section 1.1 and section 2 of the guide?")
    first, second = answer.text.splitlines()
    assert "oil" in first
    assert "horn" in second


def test_a_part_that_several_documents_have_is_said_to_be_unclear(ask):
    answer = ask("What does section 3 say?")
    assert answer.certainty <= 0.5 or not answer.notes
    assert answer.query["structure"]
