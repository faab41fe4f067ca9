"""The pure parts of reading a PDF: order of lines, words made whole, running heads, tables over pages, contents."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.documents.formats.pdf import joined, without_running_heads, words_of
from clew.documents.formats.pdf_blocks import contents, footnotes, page_blocks
from clew.documents.formats.pdf_headings import Entry, marked_lines
from clew.documents.formats.pdf_lines import Box, Font, PrintedWord, line_of, lines_in_reading_order
from clew.documents.formats.pdf_ruled import Rule, merged, ruled_tables
from clew.documents.formats.pdf_unruled import rows_and_tables
from clew.documents.formats.pdf_words import View, mended

BODY = Font("Times", 10.0)
CODE = Font("Courier", 10.0, mono=True)


def words(text: str, x: float, top: float, font: Font = BODY) -> list[PrintedWord]:
    """A line of print whose letters are half as wide as the font is high."""
    width = font.size / 2
    placed, at = [], x
    for word in text.split(" "):
        if word:
            placed.append(PrintedWord(word, at, top, at + width * len(word), top + font.size, font))
        at += width * (len(word) + 1)
    return placed


def line(text: str, x: float, top: float, font: Font = BODY):
    return line_of(words(text, x, top, font), (50, 550))


def column(name: str, x: float, lines: int, top: float = 100) -> list[list[PrintedWord]]:
    return [words(f"{name}{n} is a whole line of prose here", x, top + 12 * n) for n in range(lines)]


def grid(cells: list[list[str]], x: float, top: float, across: float, down: float) -> list[PrintedWord]:
    placed = [(text, x + across * c, top + down * r) for r, row in enumerate(cells) for c, text in enumerate(row)]
    return [word for text, left, above in placed for word in words(text, left, above)]


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 30), st.integers(4, 30), st.randoms(use_true_random=False))
def test_two_columns_are_read_one_after_the_other_whatever_the_order_in_the_file(left, right, random):
    printed = [words("A title that runs over the whole width of the page and both its columns of text", 60, 60)]
    printed += column("left", 60, left) + column("right", 330, right)
    random.shuffle(printed)
    read = [one.text.split()[0] for one in lines_in_reading_order([word for one in printed for word in one])]
    assert read == ["A", *(f"left{n}" for n in range(left)), *(f"right{n}" for n in range(right))]


def test_a_label_stays_with_its_explanation():
    printed = []
    for n in range(8):
        printed += words(f"label{n}", 60, 100 + 12 * n) + words("explains what the label says here", 200, 100 + 12 * n)
    read = [one.text for one in lines_in_reading_order(printed)]
    assert read[3] == "label3 explains what the label says here"


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 700)), max_size=40))
def test_no_word_is_lost_or_doubled(places):
    printed = [PrintedWord(f"w{n}", x, top, x + 20, top + 10, BODY) for n, (x, top) in enumerate(places)]
    read = [text for one in lines_in_reading_order(printed) for text in one.text.split()]
    assert sorted(read) == sorted(word.text for word in printed)


@pytest.mark.parametrize(
    ("lines", "elsewhere", "whole"),
    [
        (["the num-", "ber of"], "", "the number of"),
        (["a file-", "based store"], "a file is based on", "a file-based store"),
        (["a file-", "based store"], "filebased", "a filebased store"),
        (["an on-", "line one"], "it is on-line", "an on-line one"),
        (["Jean-", "Marc"], "", "Jean-Marc"),
        (["state-of-the-", "art"], "", "state-of-the-art"),
        (["R-", "128"], "", "R- 128"),
        (["soft\u00ad", "ware and hy\u00adphen"], "", "software and hyphen"),
        (["two", "lines"], "", "two lines"),
    ],
)
def test_divided_words_are_made_whole_and_real_hyphens_kept(lines, elsewhere, whole):
    assert "".join(joined(lines, words_of([*lines, elsewhere]))) == whole


@given(st.lists(st.text(alphabet="ab-\u00ad ", min_size=1, max_size=12), min_size=1, max_size=6))
def test_joining_loses_only_hyphens_and_white_space(lines):
    def letters(text: str) -> str:
        return text.translate({ord(mark): None for mark in "-\u00ad "})

    assert letters("".join(joined(lines, words_of(lines)))) == letters("".join(lines))


@given(st.integers(3, 12), st.integers(1, 20))
def test_what_repeats_at_the_edges_is_dropped_and_the_text_is_kept(pages, length):
    made = []
    for page in range(pages):
        text = [line(f"Sentence {n} of page {chr(97 + page)} says more.", 60, 200 + 14 * n) for n in range(length)]
        head = line("The manual of the pump", 60, 30)
        made.append([head, *text, line(f"{page + 1}", 300, 760)])
    kept = without_running_heads(made, [792.0] * pages, 10.0)
    assert [len(page) for page in kept] == [length] * pages


def test_names_of_chapters_run_and_titles_of_slides_do_not():
    small = Font("Italic", 9.0)
    heads = ["Pumps", "Pumps", "Valves", "Valves", "Pipes", "Pipes"]
    book = [[line(head, 200, 30, small), line(f"Text {n} here.", 60, 300)] for n, head in enumerate(heads)]
    assert [len(page) for page in without_running_heads(book, [792.0] * 6, 10.0)] == [1] * 6
    large = Font("Sans", 24.0)
    slides = [[line(head, 60, 30, large), line(f"Text {n} here.", 60, 300)] for n, head in enumerate(heads)]
    assert [len(page) for page in without_running_heads(slides, [792.0] * 6, 10.0)] == [2] * 6


def test_contents_are_lines_of_dots_with_page_numbers_and_their_heading():
    lines = [line("Contents", 60, 60)]
    lines += [line(f"{n} Chapter {n} . . . . . . . . {n * 7}", 60, 90 + 14 * n) for n in range(1, 6)]
    lines.append(line("The text begins here.", 60, 300))
    assert contents(lines) == frozenset(range(6))


def test_the_first_entry_of_the_contents_may_take_two_lines():
    texts = ["46 Why is the battery of my pump low all the time and how do I", "mend this? 14"]
    texts += [f"{n} Why does pump {n} stop? {n - 30}" for n in range(47, 58)]
    assert contents([line(text, 60, 90 + 14 * n) for n, text in enumerate(texts)]) == frozenset(range(len(texts)))


def test_footnotes_come_after_the_text_of_the_page():
    small = Font("Times", 8.0)
    lines = [line("The text goes on and", 60, 600), line("1 A note about it.", 60, 700, small)]
    assert footnotes(lines, 792.0, 10.0) == frozenset({1})
    blocks = page_blocks([lines[1], lines[0]], {}, 792.0, 10.0)
    assert [block.lines[0].text for block in blocks] == ["The text goes on and", "1 A note about it."]


def test_code_keeps_its_lines_and_items_stand_alone():
    lines = [
        line("These items follow one after the other here:", 60, 100),
        line("• the first item", 70, 114),
        line("• the second item", 70, 128),
        line("while true:", 60, 150, CODE),
        line("    stop()", 60, 162, CODE),
    ]
    blocks = page_blocks(lines, {}, 792.0, 10.0)
    assert [(block.sort, len(block.lines)) for block in blocks] == [("text", 1), ("text", 1), ("text", 1), ("code", 2)]


def test_bookmarks_name_the_printed_lines_even_over_two_lines_and_without_numbers():
    pages = [[line("Text", 60, 100)], [line("2 An overview of", 60, 100), line("current practice", 60, 114)]]
    marks = marked_lines([Entry(1, "An overview of current practice", 1), Entry(1, "Absent", 0)], pages)
    assert sorted(marks) == [(1, 0), (1, 1)]


def test_a_grid_gives_cells_and_a_chart_does_not():
    cells = [["Name", "Flow"], ["Ruhr", "31"], ["Lenne", "25"]]
    printed = [
        w for r, row in enumerate(cells) for c, text in enumerate(row) for w in words(text, 65 + 100 * c, 105 + 20 * r)
    ]
    rules = [Box(60, 100 + 20 * n, 260, 100.5 + 20 * n) for n in range(4)]
    rules += [Box(60 + 100 * n, 100, 60.5 + 100 * n, 160) for n in range(3)]
    assert [list(map(list, table.rows)) for table in ruled_tables(printed, rules)] == [cells]
    assert ruled_tables(words("0.5", 40, 105) + words("1.0", 40, 125), rules) == []


def test_aligned_numbers_are_a_table_and_two_columns_of_prose_are_not():
    rows = [["Year", "Income", "Costs"], ["2019", "120", "95"], ["2020", "130", "140"], ["2021", "155", "121"]]
    printed = [
        w for r, row in enumerate(rows) for c, text in enumerate(row) for w in words(text, 60 + 90 * c, 100 + 14 * r)
    ]
    tables = [one.table for one in lines_in_reading_order(printed, (), rows_and_tables) if one.table]
    assert [list(map(list, table.rows)) for table in tables] == [rows]
    prose = [word for one in column("left", 60, 12) + column("right", 330, 12) for word in one]
    assert not any(one.table for one in lines_in_reading_order(prose, (), rows_and_tables))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 90), st.integers(1, 30)), min_size=1, max_size=30))
def test_merged_rules_cover_what_the_strokes_covered(strokes):
    rules = [Rule(10.0 * place, float(start), float(start + length)) for place, start, length in strokes]
    after = merged(rules)
    for rule in rules:
        assert any(m.place == rule.place and m.start <= rule.start and rule.end <= m.end for m in after)
    assert len(after) <= len(rules)


@pytest.mark.parametrize(
    ("turns", "expected"), [(0, (10, 70, 30, 80)), (1, (20, 10, 30, 30)), (2, (70, 20, 90, 30)), (3, (70, 70, 80, 90))]
)
def test_boxes_follow_the_rotation_of_the_page(turns, expected):
    import numpy as np

    view = View(0.0, 0.0, 100.0, 100.0, turns)
    assert tuple(view.boxes(np.array([[10.0, 30.0, 30.0, 20.0]]))[0]) == expected


@pytest.mark.parametrize(
    ("broken", "whole"), [("o昀昀er", "offer"), ("Gr¨unbacher", "Grünbacher"), ("東京", "東京"), ("it´s", "it´s")]
)
def test_broken_ligatures_and_loose_accents_are_mended(broken, whole):
    assert mended(broken) == whole
