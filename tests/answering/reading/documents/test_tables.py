"""Tables become typed columns, columns a small base, and questions over it are carried out."""

import datetime
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import documents_made as made
from clew.answering.reading.documents.table_columns import Table, TableRow, cleaned, long_form, read_table, typed
from clew.answering.reading.documents.tables import AskedTable, TableBase, TableReader
from clew.core.types import NodeSet
from clew.documents.building import build_documents
from clew.documents.extracted import cells_of, markdown
from clew.store.open_base import OpenBase


def table(header, *rows, title="things"):
    return Table(title, tuple(header), tuple(TableRow(tuple(row)) for row in rows))


STATIONS = AskedTable(read_table(markdown(cells_of(made.STATIONS)), "Stations"))
BUDGET = AskedTable(read_table(markdown(cells_of(made.BUDGET)), "Budget"))


# Cells


def test_every_row_knows_where_it_stands():
    text = "Flows\n\n| a | b |\n| --- | --- |\n| x \\| y | 2 |\n| z |\n"
    found = read_table(text, node=7)
    assert [row.cells for row in found.rows] == [("x | y", "2"), ("z", "")]
    assert [text[row.start : row.end] for row in found.rows] == ["| x \\| y | 2 |", "| z |"]
    assert {row.node for row in found.rows} == {7}


# Columns


def values_of(cells):
    return typed(cells)[0].to_pylist()


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,070.4", "23.1"], [1070.4, 23.1]),
        (["(12)", "13", "(1,400)"], [-12, 13, -1400]),
        (["(1)", "(2)"], ["(1)", "(2)"]),
        (["−3.5 %", "4", "n/a"], [-3.5, 4, None]),
        (["€ 1 200", "€ 300"], [1200, 300]),
        (["US$35,000", "US$1,200"], [35000, 1200]),
        (["$1.2bn", "$3.4bn"], [1.2, 3.4]),
        (["12,5", "3,1"], [12.5, 3.1]),
        (["31 m³/s", "5.9 m³/s"], [31, 5.9]),
        (["25 °C", "30 °C"], [25, 30]),
        (["17 [a]", "18"], [17, 18]),
        (["1", "2", "3", "4", "5", "not measured"], [1, 2, 3, 4, 5, None]),
        (["41B", "51C"], ["41B", "51C"]),
        (["Route 66", "A 40"], ["Route 66", "A 40"]),
    ],
)
def test_numbers_are_read_as_people_write_them(cells, values):
    assert values_of(cells) == values


@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=30))
def test_whole_numbers_make_a_column_of_them_however_they_are_separated(values):
    assert values_of([f"{value:,}" for value in values]) == values


@given(st.lists(st.dates(datetime.date(1600, 1, 1), datetime.date(2199, 1, 1)), min_size=3, max_size=20))
def test_dates_make_a_column_of_days(values):
    assert values_of([value.isoformat() for value in values]) == values


@given(st.lists(st.sampled_from(("", "NA", "–", "3", "4.5")), min_size=2, max_size=20))
def test_empty_cells_have_no_value(cells):
    values = values_of([*cells, "7"])
    assert [value is None for value in values] == [cell in ("", "NA", "–") for cell in cells] + [False]


def test_yes_and_no_are_truth_values():
    assert values_of(["yes", "", "No"]) == [True, None, False]


def test_a_unit_of_cells_or_of_the_title_is_shown():
    found = table(("firm", "sales", "staff"), ("A", "3 bn", "1"), ("B", "4 bn", "2"), title="Firms (in thousands)")
    assert found.labels == ("firm", "sales (bn)", "staff (in thousands)")


def test_a_header_that_is_data_becomes_a_row():
    found = cleaned(table(("Rome", "12"), ("Oslo", "3"), ("Bern", "4")))
    assert found.header == ("column 1", "column 2")
    assert found.column(found.key) == ("Rome", "Oslo", "Bern")


def test_two_header_rows_become_one():
    found = table(
        ("City", "People", "", "Area"),
        ("", "men", "women", "km²"),
        ("Rome", "1", "2", "3"),
        ("Oslo", "4", "5", "6"),
        ("Bern", "7", "8", "9"),
    )
    assert cleaned(found).header == ("City", "People men", "People women", "Area km²")


def names_of(base):
    return {ref.name for ref in base.kb.refs(base.kb.nodes(base.row_type).array)}


def test_row_numbers_are_no_column_and_totals_no_row():
    found = cleaned(table(("", "city", "people"), ("1", "Rome", "10"), ("2", "Oslo", "20"), ("3", "Total", "30")))
    assert found.header == ("city", "people")
    assert names_of(TableBase.of(found)) == {"Rome", "Oslo"}


def test_a_company_called_total_is_a_row():
    found = table(("company", "sales"), ("Total", "131"), ("BP", "232"), ("ENI", "53"))
    assert names_of(TableBase.of(cleaned(found))) == {"Total", "BP", "ENI"}


def test_years_as_columns_also_have_a_long_form():
    wide = table(("", "X1990", "X1991", "X1992"), ("Ohio", "1", "2", ""), ("Utah", "4", "5", "6"), title="votes")
    long = long_form(wide)
    assert long.header == ("", "year", "votes")
    assert [row.cells for row in long.rows][:3] == [("Ohio", "1990", "1"), ("Utah", "1990", "4"), ("Ohio", "1991", "2")]
    assert long.of_year(1992).column(0) == ("Ohio", "Utah")
    assert long.of_year(1800) is None


# The base


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("x", "y", ""))), min_size=8, max_size=20))
def test_neighbours_of_values_are_the_rows_that_have_them(pairs):
    rows = [(f"row {place}", *pair) for place, pair in enumerate(pairs)]
    base = TableBase.of(table(("name", "letter", "mark"), *rows))
    for at, relation in enumerate(("letter", "mark"), start=1):
        for value in base.kb.nodes(relation) if relation in base.kb.schema.relation_names else ():
            nodes = base.kb.neighbors(NodeSet.of([value]), relation, "in")
            having = [row for row in rows if row[at] == base.kb.refs([value])[0].name]
            assert [row.cells for row in base.rows(nodes)] == having


def test_a_number_with_its_scale_is_compared_in_the_scale_of_the_column():
    rows = [(f"Firm {name}", str(sales)) for name, sales in zip("ABCDE", (9, 11, 12, 3, 4), strict=True)]
    asked = AskedTable(table(("firm", "sales (bn)"), *rows))
    for question in ("Which firms have sales over 10 billion?", "Which firms have sales over 10?"):
        assert asked.answer(question).names == ("Firm B", "Firm C")


# Questions


@pytest.mark.parametrize(
    ("asked", "question", "answer"),
    [
        (STATIONS, "Which station has the highest flow?", ("Wetter",)),
        (STATIONS, "Which station has the lowest flow?", ("Hagen",)),
        (STATIONS, "What is the flow at Hagen?", 5.9),
        (STATIONS, "On which river is Altena?", "Lenne"),
        (STATIONS, "Which stations have a flow above 20?", ("Arnsberg", "Wetter", "Altena")),
        (STATIONS, "How many stations have a flow of at least 25.2?", 3),
        (BUDGET, "What was the income in 2020?", 130),
        (BUDGET, "In which year were costs highest?", ("2020",)),
        (BUDGET, "How much more income was there in 2021 than in 2019?", 35),
        (BUDGET, "What is the average income?", 135),
    ],
)
def test_questions_are_answered_from_tables(asked, question, answer):
    found = asked.answer(question)
    assert (found.value if found.value is not None else found.names) in (answer, (answer,))
    assert 0.0 <= found.certainty <= 1.0
    assert found.rows


def test_what_a_table_does_not_say_is_uncertain():
    for asked, question in ((BUDGET, "Who wrote the report?"), (STATIONS, "Why is the flow measured?")):
        found = asked.answer(question)
        assert found is None or found.certainty < 0.38


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.sampled_from(("red", "green", "blue"))), min_size=6, max_size=12))
def test_answers_are_those_of_plain_python(pairs):
    names = ["Alba", "Bruma", "Corva", "Delta", "Edda", "Fjord", "Gorm", "Hild", "Ivar", "Juno", "Kraka", "Lofn"]
    rows = list(zip(names, *zip(*pairs, strict=True), strict=False))
    asked = AskedTable(table(("ship", "weight", "colour"), *((n, str(w), c) for n, w, c in rows), title="Ships"))
    heaviest = max(weight for _, weight, _ in rows)
    found = asked.answer("Which ship has the highest weight?")
    assert set(found.names) == {name for name, weight, _ in rows if weight == heaviest}
    [(common, count)] = Counter(colour for *_, colour in rows).most_common(1)
    found = asked.answer(f"How many ships are {common}?")
    if found is not None and found.value is not None and "colour" in found.how:
        assert found.value == count
    found = asked.answer("What is the average weight of the ships?")
    assert math.isclose(found.value, sum(weight for _, weight, _ in rows) / len(rows))


def test_the_most_certain_of_several_tables_answers_and_its_rows_are_quoted(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    depths = [place * 7 % 331 for place in range(300)]
    lakes = "\n".join(f"Lake {place:03},{depth},{'FS'[place % 2]}" for place, depth in enumerate(depths))
    (folder / "lakes.csv").write_text(f"lake,depth (m),country\n{lakes}\n", "utf-8")
    (folder / "towers.csv").write_text("tower,height (m)\nAlta,90\nBora,120\nCima,75\n", "utf-8")
    build_documents([folder], tmp_path / "kb")
    kb = OpenBase.open(tmp_path / "kb", embedder="hash").local
    reader, tables = TableReader(kb), list(kb.nodes("table"))
    found = reader.answer("Which lake has the greatest depth?", tables)
    deepest = depths.index(max(depths))
    assert found.names == (f"Lake {deepest:03}",)
    quoted, understood = reader.quotes(found)
    assert f"Lake {deepest:03}" in quoted.text
    assert quoted.file == "lakes.csv"
    assert "depth" in understood.reason
    assert kb.node(found.table).attributes["file"] == "lakes.csv"
    height = reader.answer("How high is Bora?", tables)
    assert (height.value, height.how) == (120, "height m of Bora")
    passage = next(node for node in kb.nodes("passage") if "Lake 299" in kb.node(node).text)
    assert reader.tables([passage]) == [found.table]
    assert reader.answer("Who painted the ceiling of the chapel?", tables) is None
