"""Every format gives its title, headings, paragraphs, tables and pages in reading order."""

import gzip
import zipfile
from email.message import EmailMessage
from pathlib import Path

import openpyxl
import pytest

import formats_made as made
from clew.core.errors import SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats import READERS, read_document
from clew.documents.formats.docx import ListLevel, ListNumbers, written
from clew.documents.formats.grid import Cell, Sheet, parts, spread, with_one_header
from clew.documents.formats.text_file import read_plain_text
from clew.documents.formats.xlsx import shown_by
from clew.documents.passages import outline
from conftest import DATA


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    return made.make_all(tmp_path_factory.mktemp("made"))


def read(file: Path) -> Extracted:
    return READERS[file.suffix](file)


def shown(extracted: Extracted) -> list[str]:
    """One line per block: the level and text of headings, the rows of tables, the text of paragraphs."""
    lines = []
    for block in extracted.blocks:
        text = extracted.text[block.start : block.end]
        if block.kind == "heading":
            lines.append(f"{'#' * block.level} {text}")
        elif block.cells is not None:
            rows = ["|".join(row) for row in (block.cells.header, *block.cells.rows)]
            lines.append(f"[{block.cells.caption}] " + " / ".join(rows))
        else:
            lines.append(text)
    return lines


def text_file(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / name


def word_file(tmp_path: Path, body: str, **parts: str) -> Extracted:
    made.zipped(tmp_path / "a.docx", made.docx_parts(body, **parts))
    return read(tmp_path / "a.docx")


def test_plain_text_keeps_items_and_line_breaks_and_finds_headings(files):
    assert shown(read(files[".txt"])) == [
        "# HARBOUR RULES",
        "Boats keep left. Boats under 6 m pay nothing.",
        "## 1.2 Opening hours",
        "The gate opens at 6 am.",
        "## Version 2.1 (2024-03-01)",
        "* The gate has a bell.",
        "* The bell is loud.",
        "10:00  first boat\n    11:30  second boat",
        "## Contact",
        "Ask Ida Falk.",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "This is an ordinary sentence that stands alone.",
        "Dear Ms. Holm,",
        "1. Open the lid",
        "USA",
        "10:30 am",
        "I. Falk",
        "2024 was a good year, all in all",
        "NOTE: the lid is hot.",
        "RIVER        +25%     +50%",
    ],
)
def test_lines_that_are_no_headings_stay_text(tmp_path, line):
    extracted = read_plain_text(
        text_file(tmp_path, "a.txt", f"Before it.\n\n{line}\n\n2. Close the lid\n\nAfter it.\n")
    )
    assert line not in [
        extracted.text[block.start : block.end] for block in extracted.blocks if block.kind == "heading"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "CHANGES FROM 3.3 TO 3.3a",
        "Version 1.2.3",
        "v0.9 (unreleased)",
        "borg (1.2.4-1) unstable; urgency=medium",
        "2021-05-04  Ida Falk  <ida@x>",
        "INSTALLATION",
        "3.1 Building from source",
    ],
)
def test_headings_by_their_form(tmp_path, line):
    extracted = read_plain_text(text_file(tmp_path, "a.txt", f"Before it.\n\n{line}\n\n  After it.\n"))
    assert [extracted.text[block.start : block.end] for block in extracted.blocks if block.kind == "heading"] == [line]


def test_a_line_between_two_rules_is_a_heading(tmp_path):
    extracted = read_plain_text(text_file(tmp_path, "a.txt", "=======\nHarbour\n=======\n\nBoats keep left.\n-----\n"))
    assert shown(extracted) == ["# Harbour", "Boats keep left.\n-----"]
    assert extracted.title == "Harbour"


def test_restructured_text(files):
    extracted = read(files[".rst"])
    assert extracted.title == "Harbour"
    assert shown(extracted) == [
        "# Harbour",
        "Boats keep left::",
        "left\n    right",
        "## Fees",
        "Children pay nothing.",
        "[Fees by length] Length|Euros / 6 m|12 / 9 m|20",
        "[] Month|Open / May|yes",
        "[Gates] Gate|Width / North|12 m",
        "### Details",
        "* one thing",
        "* another thing",
    ]


def test_markdown(files):
    extracted = read(files[".md"])
    assert extracted.title == "Harbour notes"
    assert shown(extracted) == [
        "# Harbour",
        "Boats keep left.",
        "## Fees",
        "[] Length|Euros / 6 m|12",
        "* first item",
        "* second item",
        "code line",
        "### Who keeps the key?",
        "Ida Falk.",
    ]


def test_html_has_questions_as_headings_and_headers_of_two_rows(files):
    extracted = read(files[".html"])
    assert shown(extracted) == [
        "# Harbour",
        "## Fees",
        "[Fees by length] Length|Euros Summer|Euros Winter / 6 m|12|8",
        "### Where is the key?",
        "Under the mat.",
        "gate: The way in.",
        "### May I swim?",
        "No.",
        "first line\n  second line",
    ]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>one<p>two<ul><li>a<li>b</ul>", ["one", "two", "a", "b"]),
        ("<table><tr><td><h2>Left</h2><p>x</p></td><td>menu</td></tr></table>", ["## Left", "x", "menu"]),
        ("<p>Q: Is it deep enough?</p><p>A: Yes.</p>", ["# Q: Is it deep enough?", "A: Yes."]),
        ("<h1>Contents</h1><a href='#x'>X</a><h1>X</h1><p>y", ["# X", "y"]),
        ("<nav>menu <p>all that follows", ["menu", "all that follows"]),
        ("text &lt;b&gt; <!-- hidden --><script>var x</script>&amp; more", ["text <b> & more"]),
        ("</p></table><td>stray</b></td>", ["stray"]),
        ("<ol><li>Stop.<li><p>Go.</p><p>Fast.</p></ol><ol start=4><li>End", ["1. Stop.", "2. Go.", "Fast.", "4. End"]),
    ],
)
def test_html_of_all_sorts(tmp_path, page, expected):
    assert shown(read(text_file(tmp_path, "a.html", page))) == expected


def test_json_tables_and_key_paths(files, tmp_path):
    assert shown(read(files[".json"])) == [
        "title: Boats",
        "[boats] name|length|flag / Ida|6| / Per||true",
        "port.depth: 4.5",
    ]
    nested = text_file(tmp_path, "a.json", '{"a": {"b": [1, 2], "c": [{"d": "x"}, {"e": {"f": null}}]}, "g": true}')
    assert shown(read(nested)) == ["a.b: 1, 2\na.c.0.d: x", "g: true"]


def test_an_error_in_a_packed_file_names_that_file_and_the_line(tmp_path):
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(b'{"a":\n]'))
    with pytest.raises(SourceError) as caught:
        read_document(file)
    assert str(caught.value).startswith(f"{file}: line 2: ")


def test_separated_values_with_a_title_line(files):
    assert shown(read(files[".csv"])) == ["[Fees of the harbour] Length|Euros / 6 m|12 / 9 m|20"]


@pytest.mark.parametrize("ending", [".docx", ".pptx", ".xlsx"])
def test_an_office_file_that_is_called_pdf_is_read(files, tmp_path, ending):
    renamed = tmp_path / "file.pdf"
    renamed.write_bytes(files[ending].read_bytes())
    assert shown(read_document(renamed)) == shown(read(files[ending]))


def test_signed_mail_is_read_without_notes_about_its_signature(tmp_path):
    mail, signed, content, signature = (EmailMessage() for _ in range(4))
    content.set_content("The fees are below.")
    content.add_attachment("Length,Euros\n6 m,12\n", subtype="csv", filename="fees.csv")
    signature.set_content(b"abc", "application", "pgp-signature", filename="signature.asc")
    for whole, kind, parts_of_it in ((signed, "signed", (content, signature)), (mail, "mixed", (signed,))):
        whole["Content-Type"] = f"multipart/{kind}"
        for part in parts_of_it:
            whole.attach(part)
    mail["Subject"] = "Fees"
    file = tmp_path / "signed.eml"
    file.write_bytes(mail.as_bytes())
    extracted = read(file)
    assert shown(extracted) == ["# Fees", "The fees are below.", "## fees.csv", "[] Length|Euros / 6 m|12"]
    assert not extracted.notes


def test_mail_reads_its_attachments(files):
    extracted = read(files[".eml"])
    assert extracted.title == "Fees of the harbour"
    assert shown(extracted) == [
        "# Fees of the harbour",
        "From: Ida Falk <ida@x>\nTo: per@x\nDate: Thu, 16 Jun 2005 16:12:13 -0700",
        "The fees are below.",
        "Yours, Ida",
        "## fees.csv",
        "[] Length|Euros / 6 m|12",
    ]
    assert extracted.notes == ("attachment 'photo.png' was not read",)
    assert sum(block.level == 1 for block in read(files[".mbox"]).blocks) == 2


def test_presentations_have_a_page_for_each_slide(files):
    for ending, rows in ((".pptx", ["[] Length|Euros / 6 m|12"]), (".odp", [])):
        extracted = read(files[ending])
        assert shown(extracted) == ["# Harbour", "Boats keep left.", *rows, "Notes: Say hello."]
        assert {block.page for block in extracted.blocks} == {1}
        assert extracted.title == "Harbour"


def test_books_follow_their_spine(files):
    extracted = read(files[".epub"])
    assert shown(extracted) == ["# First", "Boats keep left.", "# Second", "The gate opens."]


def test_open_document_texts_and_sheets(files):
    extracted = read(files[".odt"])
    assert shown(extracted) == [
        "# Harbour",
        "Boats keep left.",
        "Since 1990.",
        "1. first",
        "2. second",
        "[Table 1: Fees] Length|Euros / free|free",
    ]
    assert [block.page for block in extracted.blocks] == [1, 1, 1, 1, 1, 2]
    assert shown(read(files[".ods"])) == ["# Fees", "[] Length|Euros / 6 m|12,00 € / 6 m|12,00 €"]


def test_word_headings_by_outline_level_of_the_style_chain(tmp_path):
    styles = """<w:style w:type="paragraph" w:styleId="A"><w:name w:val="Kapitel"/><w:basedOn w:val="B"/></w:style>
    <w:style w:type="paragraph" w:styleId="B"><w:name w:val="x"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
    <w:style w:type="paragraph" w:styleId="T"><w:name w:val="toc 1"/></w:style>"""
    body = """<w:p><w:pPr><w:pStyle w:val="T"/></w:pPr><w:r><w:t>Fees 3</w:t></w:r></w:p>
    <w:p><w:pPr><w:pStyle w:val="A"/></w:pPr><w:r><w:t>Fees</w:t></w:r></w:p>
    <w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>Own level</w:t></w:r></w:p>"""
    assert shown(word_file(tmp_path, body, styles=styles)) == ["## Fees", "### Own level"]


def test_word_lists_notes_boxes_and_changes(tmp_path):
    numbering = """<w:abstractNum w:abstractNumId="5">
    <w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
    <w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
    <w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num>"""
    item = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    )
    body = "".join(item.format(*pair) for pair in ((0, "one"), (1, "inner"), (1, "inner"), (0, "two"), (1, "inner")))
    body += """<w:p><w:r><w:t>Boats</w:t><w:footnoteReference w:id="2"/></w:r><w:ins><w:r><w:t> new</w:t></w:r></w:ins>
    <w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:r><w:pict><w:txbxContent>
    <w:p><w:r><w:t>A box of text.</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>"""
    notes = '<w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote>'
    assert shown(word_file(tmp_path, body, numbering=numbering, footnotes=notes)) == [
        "1. one", "1.a) inner", "1.b) inner", "2. two", "2.a) inner", "Boats new", "A box of text.", "A note.",
    ]  # fmt: skip


def test_word_tables_with_merged_cells_and_tables_inside(tmp_path):
    def cell(text: str, properties: str = "", inner: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p>{inner}</w:tc>"

    inner = f"<w:tbl><w:tr>{cell('a')}{cell('b')}</w:tr><w:tr>{cell('1')}{cell('2')}</w:tr></w:tbl>"
    rows = [
        cell("Year", '<w:vMerge w:val="restart"/>') + cell("Fees", '<w:gridSpan w:val="2"/>'),
        cell("", "<w:vMerge/>") + cell("low") + cell("high"),
        cell("2020") + cell("1") + cell("2", inner=inner),
    ]
    header = "<w:trPr><w:tblHeader/></w:trPr>"
    table = "".join(f"<w:tr>{header if place < 2 else ''}{row}</w:tr>" for place, row in enumerate(rows))
    box = f"<w:tbl><w:tr>{cell('A frame around text.')}</w:tr></w:tbl>"
    assert shown(word_file(tmp_path, f"<w:tbl>{table}</w:tbl>{box}")) == [
        "[] Year|Fees low|Fees high / 2020|1|2",
        "[2020] a|b / 1|2",
        "A frame around text.",
    ]


def test_a_page_break_that_was_also_laid_out_counts_once(tmp_path):
    body = """<w:p><w:r><w:t>one</w:t><w:br w:type="page"/></w:r></w:p>
    <w:p><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r></w:p>
    <w:p><w:r><w:t>begins</w:t><w:lastRenderedPageBreak/><w:t> and ends</w:t></w:r></w:p>
    <w:p><w:pPr><w:pageBreakBefore/></w:pPr><w:r><w:lastRenderedPageBreak/><w:t>four</w:t></w:r></w:p>"""
    extracted = word_file(tmp_path, body)
    assert [block.page for block in extracted.blocks] == [1, 2, 2, 4]
    assert extracted.pages == 4


def test_a_sheet_of_several_tables(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Year"
    grid = [
        ["Fees of the harbour"], [], ["Length", "Fee", None, "Gate", "Width"], ["6 m", 12, None, "North", 9.5],
        ["9 m", 20, None, "South", 12], [], ["12 m", 35], [], ["Month", "Boats"], ["May", 3], ["Source: Ida"],
    ]  # fmt: skip
    for row in grid:
        sheet.append(row)
    hidden = book.create_sheet("Lists")
    hidden.append(["x", "y"])
    hidden.sheet_state = "hidden"
    book.save(tmp_path / "a.xlsx")
    extracted = read(tmp_path / "a.xlsx")
    assert shown(extracted) == [
        "# Year",
        "[Fees of the harbour] Length|Fee / 6 m|12 / 9 m|20 / 12 m|35",
        "[] Gate|Width / North|9.5 / South|12",
        "[] Month|Boats / May|3",
        "Source: Ida",
    ]
    assert extracted.notes == ("sheet 'Lists' is hidden",)
    assert extracted.title == ""


def test_merged_cells_of_a_sheet_name_their_columns(tmp_path):
    sheet = Sheet({(1, 2): "2020", (1, 4): "2021", (2, 1): "Gate"}, [(1, 2, 1, 3), (1, 4, 1, 5)])
    sheet.cells |= {(2, column): name for column, name in zip(range(2, 6), ("in", "out") * 2, strict=True)}
    sheet.cells |= {(3, column): str(column) for column in range(1, 6)}
    (part,) = parts(sheet)
    assert part.rows[0] == ["Gate", "2020 in", "2020 out", "2021 in", "2021 out"]


def test_cells_over_rows_and_columns_fill_all_they_cover():
    rows = [[Cell("a", 2, 2), Cell("b")], [Cell("c")], [Cell("d"), Cell("e"), Cell("f")]]
    assert spread(rows) == [["a", "a", "b"], ["a", "a", "c"], ["d", "e", "f"]]
    assert with_one_header([["x", "x"], ["a", "x"], ["1", "2"]], 2) == [["x a", "x"], ["1", "2"]]


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        ("General", 88.5, "88.5"),
        ("", 41, "41"),
        ("0.00", 1.005, "1.00"),
        ("#,##0", 1234567.8, "1,234,568"),
        ("0.0%", 0.125, "12.5%"),
        ('"$"#,##0.00', -5, "-$5.00"),
        ("[$€-407] #,##0.00", 3, "€3.00"),
        ('0" mm"', 7, "7 mm"),
        ("0.0##", 1.5, "1.5"),
        ("#,##0;[Red](#,##0)", -1200, "-1,200"),
        ("yyyy-mm-dd", 45047, "2023-05-01"),
        ("m/d/yy h:mm", 45047.5, "2023-05-01 12:00"),
        ("mmm-yy", 45047, "May 2023"),
        ("yyyy", 45047, "2023"),
        ("h:mm", 0.5, "12:00"),
        ("[h]:mm:ss", 1.5, "36:00:00"),
        ("@", 12, "12"),
        ("0.00E+00", 12345, "12345"),
    ],
)
def test_numbers_are_shown_as_their_sheet_shows_them(code, value, expected):
    assert shown_by(code)(value) == expected


def test_list_numbers():
    assert [written(n, "lowerRoman") for n in (1, 4, 9, 14)] == ["i", "iv", "ix", "xiv"]
    assert [written(n, "upperLetter") for n in (1, 26, 27)] == ["A", "Z", "AA"]
    numbers = ListNumbers({("x", 0): ListLevel("bullet", "•"), ("x", 1): ListLevel("decimal", "%2.", 3)})
    assert [numbers.next("x", depth) for depth in (0, 1, 1, 0, 1)] == ["", "3.", "4.", "", "3."]


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("borg-faq.html", "Can I use Borg on SMR hard drives?"),
        ("fetchmail-FAQ.html", "G1. What is fetchmail and why should I bother?"),
        ("btrbk-FAQ.md", "How can I setup a debian pre-install hook?"),
        ("ripgrep-CHANGELOG.md", "13.0.0 (2021-06-12)"),
        ("tmux-CHANGES.txt", "CHANGES FROM 3.3 TO 3.3a"),
        ("SK-CDD-PRG-GUIDE.docx", "2.2 DigiDoc security model"),
        ("midi-mappings-va.xlsx", "By Module"),
    ],
)
def test_real_files_have_the_headings_a_reader_sees(name, heading):
    file = DATA / "docs_dev" / "docs" / name
    if not file.exists():
        pytest.skip("the development documents are not here")
    extracted = read(file)
    headings = [extracted.text[block.start : block.end] for block in extracted.blocks if block.kind == "heading"]
    assert headings.count(heading) == 1


def test_a_table_of_contents_in_html_is_left_out_with_its_numbers(tmp_path):
    page = tmp_path / "manual.html"
    page.write_text(
        "<h1>Manual</h1><dl><dt>9.11. <a href='manual.html#x'>Menu bindings</a></dt>"
        "<dt>9.12. <a href='#y'>Pager</a></dt></dl><p>2. <a href='#z'>Chapter two</a></p>"
        "<h2>Text</h2><p>See <a href='#x'>section 9</a> for more.</p><p>1984</p>"
    )
    extracted = read(page)
    assert [extracted.text[block.start : block.end] for block in extracted.blocks] == [
        "Manual",
        "Text",
        "See section 9 for more.",
        "1984",
    ]


NOTE = (
    "<table><tr><td rowspan=2><img src=note.png></td><th>Note</th></tr>"
    "<tr><td colspan=2><p>The gate is old.</p></td></tr></table>"
)
MENU = (
    "<tr><th colspan=3>The gate</th></tr><tr><td><a href=a.html>Prev</a></td><th>Chapter 2</th>"
    "<td><a href=b.html>Next</a></td></tr></table>"
)
CAPTIONED = "<tr><th>Length<th>Fee<tr><td>6 m<td>12</table>"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (f"<h1>Gate</h1>{NOTE}<p>It opens.</p>", ["# Gate", "Note: The gate is old.", "It opens."]),
        (f"<div class=navheader><table>{MENU}</div><h1>Gate</h1>", ["# Gate"]),
        (f"<h1>Gate</h1><p>x</p><table summary='Navigation footer'>{MENU}", ["# Gate", "x"]),
        ("<h1>Gate</h1><table><tr><td><a href=a>Back</a><td><a href=b>On</a></tr></table>", ["# Gate"]),
        ("<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>", ["a", "b", "c", "d"]),
        (f"<h1>Gate</h1><div class=navigation><p>{'word ' * 90}</p></div>", ["# Gate", ("word " * 90).strip()]),
        (
            f"<h1>Gate</h1><table><tr><td>Fees<td>Berths<tr><td>{'It is dear. ' * 60}<td>few</table>",
            ["# Gate", "Fees", "Berths", ("It is dear. " * 60).strip(), "few"],
        ),
        (f"<h1>Gate</h1><table>{CAPTIONED}", ["# Gate", "[] Length|Fee / 6 m|12"]),
    ],
)
def test_html_tables_that_arrange_text_are_text_and_menus_are_skipped(tmp_path, page, expected):
    assert shown(read(text_file(tmp_path, "a.html", page))) == expected


@pytest.mark.parametrize(
    "page",
    [
        f"<div class=table><p class=title><b>Table 2.1. Fees</b></p><table>{CAPTIONED}</div><p>Pay.</p>",
        f"<table>{CAPTIONED}<p>Table 2.1. Fees</p><p>Pay.</p>",
        f"<table><caption>Table 2.1. Fees</caption>{CAPTIONED}<p>Pay.</p>",
    ],
)
def test_a_caption_before_or_after_a_table_is_part_of_it(tmp_path, page):
    cut = outline(read(text_file(tmp_path, "a.html", f"<h1>Gate</h1><p>See below.</p>{page}")))
    assert [table.caption for table in cut.tables] == ["Table 2.1. Fees"]
    assert "Table 2.1. Fees" in cut.tables[0].text
    assert " ".join(passage.text for passage in cut.passages).split() == ["See", "below.", "Pay."]


def test_every_table_of_a_row_of_them_keeps_its_own_caption(tmp_path):
    tables = "".join(f"<p>Table {number}. Fees</p><table>{CAPTIONED}" for number in (1, 2, 3))
    cut = outline(read(text_file(tmp_path, "a.html", f"<h1>Gate</h1>{tables}")))
    assert [table.caption for table in cut.tables] == ["Table 1. Fees", "Table 2. Fees", "Table 3. Fees"]
    cut = outline(read(text_file(tmp_path, "b.html", f"<table>{CAPTIONED}<p>Table 1 shows what to pay.</p>")))
    assert [passage.text for passage in cut.passages] == ["Table 1 shows what to pay."]


def test_a_passage_does_not_end_with_what_announces_the_next_sentence(tmp_path):
    words = "The gate of the harbour is opened by the guard. " * 6
    text = f"{words}\n\nThis is the procedure:\n\n1. Ring the bell at the gate and wait.\n\n2. Go in. Be quick.\n"
    cut = outline(read_plain_text(text_file(tmp_path, "a.txt", text)), 300)
    assert [passage.text[:22] for passage in cut.passages] == ["The gate of the harbou", "This is the procedure:"]
    text = f"{words}\n\nAfter a storm you can open it. So you do it:\n\n1. Ring the bell at the gate and wait.\n"
    cut = outline(read_plain_text(text_file(tmp_path, "a.txt", text)), 340)
    assert [passage.text[:13] for passage in cut.passages] == ["The gate of t", "After a storm"]
    text = f"{words}\n\nIn a storm\n\nRing the bell at the gate and wait until the guard comes.\n"
    cut = outline(read_plain_text(text_file(tmp_path, "a.txt", text)), 300)
    assert [passage.text[:10] for passage in cut.passages] == ["The gate o", "In a storm"]
    cut = outline(read_plain_text(text_file(tmp_path, "a.txt", "Look:\n\n" * 100)), 60)
    assert max(len(passage.text) for passage in cut.passages) <= 70
    cut = outline(read_plain_text(text_file(tmp_path, "a.txt", "Look:\n\n2. Go in. Be quick.\n")), 0)
    assert [passage.text for passage in cut.passages] == ["Look:", "2. Go in.", "Be quick."]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("1 I just upgraded", ""),
        ("1. Scope", ""),
        ("2.3 Scope", ""),
        ("Chapter 1. Scope", ""),
        ("Contents", ""),
        ("Fees . . . . . . 3", ""),
        ("A brief history", "A brief history"),
        ("10 ways into the harbour", "10 ways into the harbour"),
    ],
)
def test_the_first_section_or_the_contents_are_no_title(tmp_path, heading, title):
    page = f"<h1>{heading}</h1><p>text</p><h2>More</h2><p>text</p>"
    assert read(text_file(tmp_path, "a.html", page)).title == title


def test_a_book_that_is_packed_wrongly_says_what_it_lacks(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.epub", "w") as archive:
        archive.writestr("folder/META-INF/container.xml", "<container/>")
    with pytest.raises(SourceError, match=r"lacks .*META-INF/container.xml"):
        read(tmp_path / "book.epub")


def test_notes_above_a_header_are_titles_even_if_they_fill_many_columns():
    rows = [["at", "the", "", "top"], ["Name", "Job", "Born", "Died"], ["Ada", "writer", "1815", "1852"]]
    cells = {(row, at): text for row, some in enumerate(rows, 1) for at, text in enumerate(some, 1) if text}
    [table] = parts(Sheet(cells, []))
    assert table.rows == rows[1:]
    assert table.caption == "at the top"
    corner = {(1, 2): "2019", (1, 3): "2020", (2, 1): "Income", (2, 2): "100", (2, 3): "130"}
    [table] = parts(Sheet(corner, []))
    assert table.rows == [["", "2019", "2020"], ["Income", "100", "130"]]
