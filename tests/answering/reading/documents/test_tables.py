"""Tables become typed columns, columns a small base, and questions over it are carried out."""

import datetime
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import documents_made as made
from clew.answering.reading.documents.table_base import TableBase, best, compared
from clew.answering.reading.documents.table_columns import (
    Table,
    TableRow,
    columns_of,
    date,
    long_form,
    number,
    panel_of,
    read_table,
    scale_of,
)
from clew.answering.reading.documents.tables import AskedTable, TableReader
from clew.answering.reading.quantities import Quantity, quantities
from clew.documents.building import build_documents
from clew.documents.extracted import cells_of, markdown
from clew.store.open_base import OpenBase


def table(header, *rows, title="things"):
    return Table(title, tuple(header), tuple(TableRow(tuple(row)) for row in rows))


def kinds(made_table):
    return [(column.name, column.kind) for column in columns_of(made_table).columns]


STATIONS = AskedTable(columns_of(read_table(markdown(cells_of(made.STATIONS)), "Stations")))
BUDGET = AskedTable(columns_of(read_table(markdown(cells_of(made.BUDGET)), "Budget")))


# Cells


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1,070.4", 1070.4),
        ("(12)", -12),
        ("−3.5 %", -3.5),
        ("€ 1 200", 1200),
        ("US$35,000", 35000),
        ("12,5", 12.5),
        ("3.5 million", 3.5e6),
        ("31 m³/s", 31),
        ("17 [a]", 17),
        ("n/a", None),
        ("Route 66", None),
    ],
)
def test_numbers_are_read_as_people_write_them(written, value):
    assert number(written) == value


@pytest.mark.parametrize("written", ["2021-03-05", "2021/3/5", "5.3.2021", "3/5/2021", "5 March 2021", "March 5, 2021"])
def test_dates_are_read_as_people_write_them(written):
    assert date(written) == datetime.date(2021, 3, 5)
    assert date("31.2.2021") is None


def test_every_row_knows_where_it_stands():
    text = "Flows\n\n| a | b |\n| --- | --- |\n| x \\| y | 2 |\n| z |\n"
    found = read_table(text, node=7)
    assert [row.cells for row in found.rows] == [("x | y", "2"), ("z", "")]
    assert [text[row.start : row.end] for row in found.rows] == ["| x \\| y | 2 |", "| z |"]
    assert {row.node for row in found.rows} == {7}


# Columns


@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=30))
def test_whole_numbers_make_a_column_of_them_however_they_are_separated(values):
    rows = [(f"row {place}", f"{value:,}") for place, value in enumerate(values)]
    column = columns_of(table(("name", "amount"), *rows)).columns[1]
    assert column.kind == "integer"
    assert column.values.tolist() == values


@given(st.lists(st.dates(datetime.date(1600, 1, 1), datetime.date(2199, 1, 1)), min_size=3, max_size=20))
def test_dates_make_a_column_of_days(values):
    rows = [(f"row {place}", value.isoformat()) for place, value in enumerate(values)]
    column = columns_of(table(("name", "day"), *rows)).columns[1]
    assert column.kind == "date"
    assert column.values.tolist() == [value.toordinal() for value in values]


@given(st.lists(st.sampled_from(("", "NA", "–", "3", "4.5")), min_size=2, max_size=20))
def test_empty_cells_have_no_value(cells):
    rows = [(f"row {place}", cell) for place, cell in enumerate(cells)]
    values = columns_of(table(("name", "amount"), *rows, ("last", "7"))).columns[1].values
    assert [math.isnan(value) for value in values] == [cell in ("", "NA", "–") for cell in cells] + [False]


def test_letters_after_digits_are_no_unit_where_each_is_another():
    assert kinds(table(("flight", "wind"), ("41B", "3 m"), ("51C", "4 m"), ("61A", "9 m"))) == [
        ("flight", "text"),
        ("wind", "integer"),
    ]


def test_a_header_that_is_data_becomes_a_row():
    found = columns_of(table(("Rome", "12"), ("Oslo", "3"), ("Bern", "4")))
    assert [column.name for column in found.columns] == ["column 1", "column 2"]
    assert found.names == ("Rome", "Oslo", "Bern")


def test_two_header_rows_become_one():
    found = table(
        ("City", "People", "", "Area"),
        ("", "men", "women", "km²"),
        ("Rome", "1", "2", "3"),
        ("Oslo", "4", "5", "6"),
        ("Bern", "7", "8", "9"),
    )
    assert [column.name for column in columns_of(found).columns] == ["City", "People men", "People women", "Area km²"]


def test_row_numbers_are_no_column_and_totals_no_row():
    found = columns_of(table(("", "city", "people"), ("1", "Rome", "10"), ("2", "Oslo", "20"), ("3", "Total", "30")))
    assert [column.name for column in found.columns] == ["city", "people"]
    assert found.names == ("Rome", "Oslo")


def test_a_company_called_total_is_a_row():
    found = columns_of(table(("company", "sales"), ("Total", "131"), ("BP", "232"), ("ENI", "53")))
    assert found.names == ("Total", "BP", "ENI")


def test_years_as_columns_also_have_a_long_form():
    wide = columns_of(
        table(("", "X1990", "X1991", "X1992"), ("Ohio", "1", "2", ""), ("Utah", "4", "5", "6"), title="votes")
    )
    long = long_form(wide)
    assert [(column.name, column.kind) for column in long.columns] == [
        ("", "category"),
        ("year", "integer"),
        ("votes", "integer"),
    ]
    assert list(zip(long.names, long.columns[1].cells, long.columns[2].cells, strict=True))[:3] == [
        ("Ohio", "1990", "1"),
        ("Utah", "1990", "4"),
        ("Ohio", "1991", "2"),
    ]
    assert panel_of(wide).slice(1992).names == ("Ohio", "Utah")
    assert panel_of(wide).slice(1800) is None


def test_scales_stand_in_headers():
    assert scale_of("Sales (US$ bn)") == 1e9
    assert scale_of("telephones (thousands)") == 1e3
    assert scale_of("Mass (m)") == 1.0


# The base


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("x", "y", ""))), min_size=4, max_size=20))
def test_neighbours_of_values_are_the_rows_that_have_them(pairs):
    rows = [(f"row {place}", *pair) for place, pair in enumerate(pairs)]
    base = TableBase(columns_of(table(("name", "letter", "mark"), *rows)))
    for relation, place in base.relations_of.items():
        for node in base.nodes(base.category_type(relation)):
            text = base.refs([node])[0].name
            one = type(base.nodes())(np.array([node], dtype=np.int32))
            having = [row for row, cells in enumerate(rows) if cells[place] == text]
            assert base.neighbors(one, relation, "in").array.tolist() == having
            back = type(one)(np.array(having, dtype=np.int32))
            assert base.neighbors(back, relation, "out").array.tolist() == [node]


OPERATIONS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@given(st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=3, max_size=20), st.integers(-50, 50))
def test_conditions_choose_the_rows_that_plain_comparison_chooses(values, bound):
    cells = ["" if value is None else str(value) for value in values]
    column = columns_of(
        table(("name", "n"), *((f"row {at}", cell) for at, cell in enumerate(cells)), ("z", "0"))
    ).columns[1]
    for operator, holds in OPERATIONS.items():
        found = compared(column, operator, Quantity(0, 1, str(bound), float(bound))).tolist()[:-1]
        assert found == [value is not None and holds(value, bound) for value in values]


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=20))
def test_the_best_rows_are_all_that_share_the_highest_value(values):
    array = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    known = [value for value in values if value is not None]
    for most in (True, False):
        goal = (max if most else min)(known, default=None)
        expected = [value is not None and value == goal for value in values]
        assert best(np.ones(len(values), dtype=bool), array, most=most).tolist() == expected


def test_a_number_with_its_scale_is_compared_in_the_scale_of_the_column():
    column = columns_of(table(("name", "sales (bn)"), ("a", "9"), ("b", "11"), ("c", "12"))).columns[1]
    [spelt], [plain] = quantities("over 10 billion"), quantities("over 10")
    assert compared(column, ">", spelt).tolist() == compared(column, ">", plain).tolist() == [False, True, True]


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
    asked = AskedTable(
        columns_of(table(("ship", "weight", "colour"), *((n, str(w), c) for n, w, c in rows), title="Ships"))
    )
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
