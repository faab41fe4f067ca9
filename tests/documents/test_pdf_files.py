"""Whole PDFs, written here: places of lines, headings, contents, labels, tables over pages, and files that are bad."""

import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from clew.core.errors import NotFoundError, SourceError
from clew.documents.formats import pdf_file
from clew.documents.formats.pdf import read_pdf
from clew.documents.formats.pdf_render import render_page
from clew.documents.passages import outline


def drawn(file: Path, *pages: list[tuple[float, float, str]]) -> Path:
    canvas = Canvas(str(file), pagesize=A4)
    for page in pages:
        for x, top, text in page:
            canvas.setFont("Helvetica", 10)
            canvas.drawString(x, A4[1] - top, text)
        canvas.showPage()
    canvas.save()
    return file


def test_every_line_is_where_it_is_printed(tmp_path):
    file = drawn(tmp_path / "a.pdf", [(72, 100, "The first line here"), (72, 300, "The second one")])
    extracted = read_pdf(file)
    assert [extracted.text[one.start : one.end] for one in extracted.lines] == ["The first line here", "The second one"]
    first, second = extracted.lines
    assert (first.page, round(first.x0)) == (1, 72)
    assert first.top < 100 < first.bottom + 3
    assert 290 < second.top < 300
    assert pdf_file.read_pages(file).sizes == [(595.3, 841.9)]


def test_bookmarks_give_headings_and_levels_and_labels_are_kept(tmp_path):
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=A4)
    for number, (title, level) in enumerate([("Pumps", 0), ("Small pumps", 1), ("Valves", 0)]):
        canvas.bookmarkPage(title)
        canvas.addOutlineEntry(title, title, level)
        canvas.addPageLabel(number, style="ROMAN_LOWER", start=number + 1)
        canvas.drawString(72, 700, f"{number + 1} {title}")
        canvas.drawString(72, 660, f"The text about {title.lower()} is here.")
        canvas.showPage()
    canvas.save()
    extracted = read_pdf(tmp_path / "a.pdf")
    headings = [(extracted.text[b.start : b.end], b.level) for b in extracted.blocks if b.kind == "heading"]
    assert headings == [("1 Pumps", 1), ("2 Small pumps", 2), ("3 Valves", 1)]
    assert extracted.labels == ("i", "ii", "iii")


def test_contents_are_marked_and_left_out_of_passages(tmp_path):
    entries = [(72, 100 + 20 * n, f"{n} Chapter {n} {'. ' * 30}{n * 3}") for n in range(1, 8)]
    text = [(72, 100, "This page has the text."), (72, 140, "It is a sentence about water.")]
    extracted = read_pdf(drawn(tmp_path / "a.pdf", [(72, 80, "Contents"), *entries], text))
    assert [block.kind for block in extracted.blocks if block.page == 1] == ["contents"]
    assert not any("Chapter" in passage.text for passage in outline(extracted).passages)


def test_a_table_over_two_pages_is_one_table_on_the_first(tmp_path):
    style = getSampleStyleSheet()
    rows = [["Name", "Value", "Unit"], *([f"row {n}", str(n), "m"] for n in range(60))]
    grid = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])
    story = [Paragraph("Some words first.", style["Normal"]), Table(rows, style=grid, repeatRows=1)]
    SimpleDocTemplate(str(tmp_path / "a.pdf"), pagesize=A4).build(story)
    extracted = read_pdf(tmp_path / "a.pdf")
    tables = [block for block in extracted.blocks if block.kind == "table"]
    assert [table.page for table in tables] == [1]
    assert [list(tables[0].cells.header), *map(list, tables[0].cells.rows)] == rows
    last = next(line for line in extracted.lines if "row 59" in extracted.text[line.start : line.end])
    assert last.page == 2


def test_code_keeps_its_line_breaks_and_indents(tmp_path):
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=A4)
    canvas.drawString(72, 700, "The program is short, and this sentence is not in its letters:")
    canvas.setFont("Courier", 10)
    for n, text in enumerate(["if x:", "    y = 1", "    z = 2"]):
        canvas.drawString(72, 660 - 12 * n, text)
    canvas.save()
    assert "if x:\n    y = 1\n    z = 2" in read_pdf(tmp_path / "a.pdf").text


def test_a_page_is_rendered_with_marks(tmp_path):
    file = drawn(tmp_path / "a.pdf", [(72, 100, "Marked words")])
    line = read_pdf(file).lines[0]
    picture = render_page(file, 1, [(line.x0, line.top, line.x1, line.bottom)], scale=1.0)
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    content = picture[picture.index(b"IDAT") + 4 :]
    pixels = zlib.decompressobj().decompress(content)
    row = int((line.top + line.bottom) / 2)
    marked = pixels[row * (3 * width + 1) + 1 + 3 * int(line.x1 - 1) :][:3]
    assert (width, height) == (596, 842)
    assert marked[2] < 200  # yellow has little blue
    with pytest.raises(NotFoundError, match="no page 2"):
        render_page(file, 2)


BAD = {
    "empty": b"",
    "not a pdf": b"Hello, this is text.",
    "cut": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\ntrailer << /Root 1 0 R >>",
    "no pages": (
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        b"2 0 obj\n<< /Type /Pages /Kids [] /Count 0 >>\nendobj\ntrailer << /Root 1 0 R >>"
    ),
    "pages in a circle": (
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        b"2 0 obj\n<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000000 >>\nendobj\ntrailer << /Root 1 0 R >>"
    ),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_bad_files_are_refused_with_a_reason(tmp_path, content):
    (tmp_path / "bad.pdf").write_bytes(content)
    with pytest.raises(SourceError, match="PDF"):
        read_pdf(tmp_path / "bad.pdf")


def page_file(*contents: bytes, rotate: int = 0) -> bytes:
    """A PDF with these streams as pages, deflated, written by hand."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(contents)))
    parts = [
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n",
        f"2 0 obj\n<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>\nendobj\n".encode(),
        b"3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n",
    ]
    for n, content in enumerate(contents):
        box = f"/MediaBox [0 0 600 800] /Rotate {rotate} /Resources << /Font << /F 3 0 R >> >>"
        page = f"<< /Type /Page /Parent 2 0 R {box} /Contents {11 + 2 * n} 0 R >>"
        packed = zlib.compress(content, 9)
        parts.append(f"{10 + 2 * n} 0 obj\n{page}\nendobj\n".encode())
        parts.append(f"{11 + 2 * n} 0 obj\n<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode())
        parts.append(packed + b"\nendstream\nendobj\n")
    return b"".join([*parts, b"trailer << /Root 1 0 R >>\n"])


GOOD = b"BT /F 12 Tf 72 700 Td (A good page with words) Tj ET"


def test_a_rotated_page_is_read_as_it_is_shown(tmp_path):
    upwards = b"BT /F 12 Tf 0 1 -1 0 100 200 Tm (Upright once turned) Tj ET"
    (tmp_path / "a.pdf").write_bytes(page_file(upwards, rotate=90))
    extracted = read_pdf(tmp_path / "a.pdf")
    assert pdf_file.read_pages(tmp_path / "a.pdf").sizes == [(800.0, 600.0)]
    line = extracted.lines[0]
    assert (round(line.x0), line.bottom - line.top < 20 < line.x1 - line.x0) == (200, True)
    assert line.top < 100 < line.bottom


def test_one_bad_page_does_not_lose_the_others(tmp_path):
    (tmp_path / "a.pdf").write_bytes(page_file(b"BT /F 12 Tf ( unfinished", b"q " * 20_000 + b"\xff\xfe garbage", GOOD))
    assert read_pdf(tmp_path / "a.pdf").text == "A good page with words"


def test_a_page_swollen_to_many_characters_is_cut_and_noted(tmp_path, monkeypatch):
    monkeypatch.setattr("clew.documents.formats.pdf_words.MAX_CHARACTERS", 500)
    swollen = b"BT /F 1 Tf 72 700 Td " + b"(word word word) Tj 0 -1 Td " * 200 + b"ET"
    (tmp_path / "a.pdf").write_bytes(page_file(swollen, GOOD))
    extracted = read_pdf(tmp_path / "a.pdf")
    assert len(extracted.text) < 700
    assert "A good page" in extracted.text
    assert "page 1 has too many characters" in extracted.notes[0]


def test_a_compressed_bomb_is_read_within_bounds(tmp_path):
    bomb = b"BT /F 1 Tf 72 700 Td " + b"(a) Tj " * 200_000 + b"ET"  # 1.4 MB in 2 kB
    (tmp_path / "a.pdf").write_bytes(page_file(bomb, GOOD))
    extracted = read_pdf(tmp_path / "a.pdf")
    assert "A good page" in extracted.text
    assert len(extracted.text) < 300_000


@pytest.mark.parametrize("bound", ["MAX_PAGES", "MAX_SECONDS"])
def test_long_files_are_read_up_to_a_bound_and_the_rest_is_noted(tmp_path, monkeypatch, bound):
    (tmp_path / "a.pdf").write_bytes(page_file(GOOD, GOOD, GOOD))
    monkeypatch.setattr(pdf_file, bound, 2 if bound == "MAX_PAGES" else -1.0)
    if bound == "MAX_SECONDS":
        with pytest.raises(SourceError, match="pages 1 to 3 were not read"):
            read_pdf(tmp_path / "a.pdf")
    else:
        extracted = read_pdf(tmp_path / "a.pdf")
        assert extracted.pages == 3
        assert extracted.notes == ("pages 3 to 3 were not read, the file is too long: split it",)


def test_files_can_be_read_from_several_threads(tmp_path):
    file = drawn(tmp_path / "a.pdf", *[[(72, 100, f"Words of page {n}")] for n in range(20)])
    expected = read_pdf(file)
    results = []
    threads = [threading.Thread(target=lambda: results.append(read_pdf(file))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_pictures_without_text_are_noted_by_page_or_recognised(tmp_path, monkeypatch):
    from PIL import Image

    from clew.documents.formats import pdf_file

    picture = tmp_path / "grey.png"
    Image.new("L", (300, 300), 128).save(picture)
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=A4)
    canvas.drawString(72, 700, "A page with words")
    canvas.showPage()
    canvas.drawImage(str(picture), 50, 50, 400, 600)
    canvas.save()
    monkeypatch.setattr(pdf_file, "_recogniser", lambda: None)
    assert read_pdf(tmp_path / "a.pdf").notes == (
        "page 2 is an image without text: install the extra 'ocr' to recognise it",
    )
    corners = [[100, 200], [240, 200], [240, 240], [100, 240]]
    letters = [[[x, 200], [x + 20, 240]] for x in (100, 120, 140, 160, 200, 220)]
    line = (corners, "Readby", "0.9", letters, list("Readby"), [1.0] * 6)
    monkeypatch.setattr(pdf_file, "_recogniser", lambda: lambda pixels, **_: ([line], 0.1))
    monkeypatch.setattr(pdf_file, "inked", lambda pixels: [(0, 80), (100, 140)])
    extracted = read_pdf(tmp_path / "a.pdf")
    assert extracted.notes == ()
    assert extracted.text.endswith("Read by")
    printed = extracted.lines[-1]
    assert (printed.page, printed.x0, printed.top, printed.x1, printed.bottom) == (2, 36.0, 72.0, 86.4, 86.4)


def test_words_in_a_picture_end_where_its_gaps_are_wide():
    from clew.documents.formats.pdf_file import inked

    picture = np.full((20, 60), 255, dtype=np.uint8)
    picture[5:15, [*range(2, 10), *range(12, 20), *range(30, 50)]] = 0
    assert inked(picture) == [(2, 20), (30, 50)]
    assert inked(255 - picture) == [(2, 20), (30, 50)]


@pytest.mark.parametrize(
    ("heading", "title"), [("1 I just upgraded", ""), ("Contents", ""), ("The harbour", "The harbour")]
)
def test_a_pdf_is_not_called_after_its_first_section(tmp_path, heading, title):
    style = getSampleStyleSheet()
    story = [Paragraph(heading, style["Heading1"]), Paragraph("The gate opens at six.", style["Normal"])]
    SimpleDocTemplate(str(tmp_path / "a.pdf"), pagesize=A4).build(story)
    assert read_pdf(tmp_path / "a.pdf").title == title
