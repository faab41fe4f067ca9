"""Small files that ask for much work are refused or read by steps that are counted, never by a clock."""

import json
import zipfile
from pathlib import Path

import pytest

from clew.core.errors import SourceError
from clew.core.limits import FREE_STEPS, allow, bounded_work, spend
from clew.documents.formats import read_document

TOO_MUCH = "far more cells or text than its size"
RELATIONS = '<Relationships><Relationship Id="r1" Type="x/{}" Target="{}"/>{}</Relationships>'


def packed(file: Path, **parts: str) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file


def workbook(folder: Path, rows: str, merged: str = "", strings: str = "") -> Path:
    shared = '<Relationship Id="r2" Type="x/sharedStrings" Target="strings.xml"/>'
    sheets = '<workbook xmlns:r="x/relationships"><sheets><sheet name="s" r:id="r1"/></sheets></workbook>'
    return packed(
        folder / "made.xlsx",
        **{
            "_rels/.rels": RELATIONS.format("officeDocument", "xl/workbook.xml", ""),
            "xl/workbook.xml": sheets,
            "xl/_rels/workbook.xml.rels": RELATIONS.format("worksheet", "sheet.xml", shared),
            "xl/sheet.xml": f"<worksheet><sheetData>{rows}</sheetData><mergeCells>{merged}</mergeCells></worksheet>",
            "xl/strings.xml": f"<sst>{strings}</sst>",
        },
    )


def row(number: int, *columns: str) -> str:
    cells = (f'<c r="{column}{number}" t="inlineStr"><is><t>{column.lower()}</t></is></c>' for column in columns)
    return f'<row r="{number}">{"".join(cells)}</row>'


def merged_sheets(folder: Path) -> Path:
    return workbook(folder, "".join(row(number, "A", "B") for number in range(1, 4)), whole_sheets(200))


def whole_sheets(count: int) -> str:
    return '<mergeCell ref="A1:XFD1048576"/>' * count


def many_merged_rows(folder: Path) -> Path:
    return workbook(folder, "".join(row(number, "A", "B") for number in range(1, 1000)), whole_sheets(1000))


def one_long_string(folder: Path) -> Path:
    rows = ("<row>" + '<c t="s"><v>0</v></c>' * 100 + "</row>") * 1000
    return workbook(folder, rows, strings=f"<si><t>{'x ' * 50_000}</t></si>")


def repeated_cells(folder: Path) -> Path:
    cell = '<table-cell number-columns-repeated="1000"><p>x</p></table-cell>'
    rows = f'<table-row number-rows-repeated="1000">{cell}</table-row>' * 50
    body = (
        f'<document-content><body><spreadsheet><table name="t">{rows}</table></spreadsheet></body></document-content>'
    )
    return packed(folder / "made.ods", **{"content.xml": body})


def wide_cells(folder: Path) -> Path:
    cells = '<tc><tcPr><gridSpan val="1000"/></tcPr><p><r><t>x</t></r></p></tc>' * 200
    body = f"<document><body><tbl>{f'<tr>{cells}</tr>' * 200}</tbl></body></document>"
    relations = RELATIONS.format("officeDocument", "word/document.xml", "")
    return packed(folder / "made.docx", **{"_rels/.rels": relations, "word/document.xml": body})


def written(name: str, content: str):
    def make(folder: Path) -> Path:
        (folder / name).write_text(content)
        return folder / name

    make.__name__ = name
    return make


SPANNED = "<table><tr>" + "<td colspan=1000 rowspan=1000>x</td>" * 1000 + "</tr>" + "<tr><td>y</tr>" * 5000 + "</table>"
MULTIPART = "From: a@b\nContent-Type: multipart/mixed; boundary=x\n\n"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (merged_sheets, TOO_MUCH),
        (many_merged_rows, TOO_MUCH),
        (one_long_string, TOO_MUCH),
        (repeated_cells, TOO_MUCH),
        (wide_cells, TOO_MUCH),
        (written("spans.html", SPANNED), TOO_MUCH),
        (written("menus.html", '<div class="nav">' * 140 + "<p>" + "word " * 100_000), TOO_MUCH),
        (written("comments.html", "<!-- > " * 100_000), TOO_MUCH),
        (written("columns.json", json.dumps([{f"k{number}": 1} for number in range(20_000)])), TOO_MUCH),
        (written("ragged.csv", "a,b\n" + "," * 500_000 + "x\n" + "a,b\n" * 20_000), TOO_MUCH),
        (
            written("described.eml", "From: a@b\nContent-Type: text/plain; " + "a=b; " * 300_000 + "\n\nb\n"),
            "part header",
        ),
        (written("parts.eml", MULTIPART + "--x\nContent-Type: text/plain\n\na\n" * 50_000), "too many parts"),
        (written("bare.eml", MULTIPART + "--x\n\na\n" * 100_000), "too many parts"),
    ],
    ids=lambda made: made.__name__ if callable(made) else "",
)
def test_a_file_that_asks_for_more_than_its_size_explains_is_refused(make, reason, tmp_path):
    with pytest.raises(SourceError, match=reason):
        read_document(make(tmp_path))


@pytest.mark.parametrize(
    "make",
    [
        written("tags.html", "<p>Text.</p>" + "<a " * 200_000),
        written("ends.html", "<p>Text.</p>" + "</" * 200_000),
        written("marks.html", "<p>Text.</p>" + "<?" * 200_000),
        written("open.html", "<p>Text.</p>" + "<!--" * 100_000),
        written("subject.eml", "From: a@b\nSubject: " + "=?utf-8?q?a?= " * 200_000 + "\n\nText.\n"),
        written("people.eml", "From: " + "a@b, " * 300_000 + "\nSubject: s\n\nText.\n"),
    ],
    ids=lambda made: made.__name__,
)
def test_what_the_standard_parsers_take_long_for_is_kept_from_them(make, tmp_path):
    assert "Text." in read_document(make(tmp_path)).text


def test_a_sheet_with_many_small_tables_and_merged_cells_is_read(tmp_path):
    rows = "".join(row(3 * number, "A", "B", "C") + row(3 * number + 1, "A", "B", "C") for number in range(1, 1000))
    merged = "".join(f'<mergeCell ref="A{3 * number}:B{3 * number}"/>' for number in range(1, 1000))
    assert len(read_document(workbook(tmp_path, rows, merged)).blocks) > 900


def test_work_is_counted_for_each_file_by_itself():
    spend(10 * FREE_STEPS)  # outside of a file nothing is counted
    for _ in range(3):
        with bounded_work(0):
            spend(FREE_STEPS)
            with pytest.raises(SourceError, match=TOO_MUCH):
                spend(1)
    with bounded_work(0):
        allow(1)
        spend(FREE_STEPS + 1)


def test_a_mail_whose_date_has_a_day_of_many_digits_is_left_out(tmp_path):
    file = tmp_path / "letters.mbox"
    head = "From a@b Mon Jan  1 10:00:00 2024\nFrom: a@b\n"
    one = head + "Date: Mon, {day} Jan 2024 10:00:00 +0000\nSubject: {name}\n\nText.\n\n"
    file.write_text(one.format(day="9" * 30, name="Damaged") + one.format(day="1", name="Sound"))
    text = read_document(file).text
    assert "Sound" in text
    assert "Damaged" not in text
