"""Spreadsheets as they are kept: several sheets, titles, merged headers, totals, references between sheets."""

import pytest

import clew
from clew.documents.building import hold_documents
from clew.documents.workbooks import tables_of

openpyxl = pytest.importorskip("openpyxl")


def workbook(file):
    book = openpyxl.Workbook()
    customers = book.active
    customers.title = "customers"
    for row in (
        ["Customers of the shop"],
        [],
        ["customer_id", "name", "city"],
        ["C1", "Ann", "Hagen"],
        ["C2", "Bo", "Unna"],
    ):
        customers.append(row)
    orders = book.create_sheet("orders")
    for row in (["order_no", "customer", "Price", ""], ["", "", "net", "gross"], ["A1", "C1", 10, 12],
                ["A2", "C1", 20, 24], ["A3", "C2", 5, 6], ["Total", "", 35, 42]):  # fmt: skip
        orders.append(row)
    for merged in ("A1:A2", "B1:B2", "C1:D1"):
        orders.merge_cells(merged)
    book.create_sheet("empty")
    book.save(file)


def test_sheets_are_tables_that_refer_to_each_other(tmp_path):
    workbook(tmp_path / "shop.xlsx")
    assert not hold_documents([tmp_path])
    report = clew.build([tmp_path], tmp_path / "shop.kb")
    base = clew.open(tmp_path / "shop.kb")
    assert {row.name: row.count for row in base.schema.node_types} == {"customer": 2, "order": 3}
    assert [(row.head, row.name, row.tail) for row in base.schema.relations] == [("order", "customer", "customer")]
    assert base.schema.attribute_types["Price gross"] == "integer"
    assert any("total" in note for note in report.notes)
    assert base.query("find sum(x.`Price gross`) where (x: order)").value == 42


def test_a_sheet_of_notes_does_not_make_other_sheets_documents(tmp_path):
    workbook(tmp_path / "shop.xlsx")
    book = openpyxl.load_workbook(tmp_path / "shop.xlsx")
    notes = book.create_sheet("notes")
    for row in (["sheet", "content"], ["orders", "one row each"], *([], *([f"Note {at}."] for at in range(7)))):
        notes.append(row)
    book.save(tmp_path / "shop.xlsx")
    assert not hold_documents([tmp_path])


def test_a_sheet_of_text_is_a_document(tmp_path):
    book = openpyxl.Workbook()
    for line in range(9):
        book.active.append([f"This is sentence number {line} of a letter to nobody."])
    book.save(tmp_path / "letter.xlsx")
    assert hold_documents([tmp_path])


def test_the_only_table_is_named_after_its_file(tmp_path):
    book = openpyxl.Workbook()
    for row in (["name", "age"], ["Ann", 3], ["Bo", 4]):
        book.active.append(row)
    book.save(tmp_path / "people.xlsx")
    (table,) = tables_of(tmp_path / "people.xlsx")
    assert (table.name, table.table.to_pylist()[0]) == ("people", {"name": "Ann", "age": "3"})
