"""Cut and altered files of every format give a text or a reason, never another error; small bombs stay small."""

import random
import zipfile
from pathlib import Path

import pytest

import formats_made as made
from clew.core.errors import SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats import READERS
from clew.documents.passages import outline
from clew.documents.reading import read_file


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    return made.make_all(tmp_path_factory.mktemp("made"))


def damaged(content: bytes, count: int, seed: int):
    """Cuts, changed bytes, doubled and missing pieces."""
    dice = random.Random(seed)
    for turn in range(count):
        if turn % 3 == 0:
            yield content[: dice.randrange(1, len(content))]
            continue
        altered = bytearray(content)
        for _ in range(dice.choice((1, 2, 8))):
            altered[dice.randrange(len(altered))] = dice.randrange(256)
        if turn % 3 == 2:
            start = dice.randrange(len(altered))
            altered[start:start] = altered[start : start + dice.randrange(200)]
        yield bytes(altered)


def test_every_format_but_pdf_is_made_here(files):
    assert files.keys() | {".pdf", ".htm", ".xhtml", ".markdown", ".text", ".tsv"} == READERS.keys()


@pytest.mark.parametrize("ending", sorted(READERS.keys() - {".pdf", ".htm", ".xhtml", ".markdown", ".text", ".tsv"}))
def test_damaged_files_give_a_text_or_a_reason(files, ending, tmp_path):
    file = tmp_path / f"damaged{ending}"
    for content in damaged(files[ending].read_bytes(), 200, seed=len(ending)):
        file.write_bytes(content)
        read_or_refused(file)


@pytest.mark.parametrize("ending", [".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub"])
def test_damaged_parts_of_sound_archives_give_a_text_or_a_reason(files, ending, tmp_path):
    file = tmp_path / f"damaged{ending}"
    with zipfile.ZipFile(files[ending]) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    dice = random.Random(7)
    for name in [dice.choice([one for one in parts if parts[one]]) for _ in range(30)]:
        for content in damaged(parts[name], 3, seed=dice.randrange(10**6)):
            with zipfile.ZipFile(file, "w") as archive:
                for other, kept in parts.items():
                    archive.writestr(other, content if other == name else kept)
            read_or_refused(file)


def read_or_refused(file: Path) -> None:
    try:
        read = read_file(file)
    except SourceError:
        return
    assert isinstance(read, Extracted)
    for passage in outline(read).passages:
        assert passage.table is not None or read.text[passage.start : passage.end] == passage.text


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("doctype", [LAUGHS, '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_entities_are_refused(tmp_path, doctype, encoding):
    parts = made.docx_parts("<w:p><w:r><w:t>&a;</w:t></w:r></w:p>")
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, (doctype + content).encode(encoding) if name == "word/document.xml" else content)
    with pytest.raises(SourceError, match="entities"):
        read_file(tmp_path / "a.docx")


@pytest.mark.parametrize("ending", [".docx", ".xlsx", ".pptx", ".odt", ".epub"])
def test_zip_bombs_are_refused(files, ending, tmp_path):
    file = tmp_path / f"bomb{ending}"
    with zipfile.ZipFile(files[ending]) as sound, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sound.namelist():
            grown = name.endswith((".xml", ".xhtml")) and "Content_Types" not in name
            archive.writestr(name, sound.read(name) + (b" " * 30_000_000 if grown else b""))
    with pytest.raises(SourceError, match="zip bomb"):
        read_file(file)


SHEET = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:A1"/>
<sheetData>
<row r="1"><c r="A1" t="inlineStr"><is><t>Item</t></is></c><c r="B1" t="inlineStr"><is><t>Price</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>Bolt</t></is></c><c r="B2"><v>7</v></c></row>
<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>"""


def test_a_false_dimension_loses_no_rows_and_a_far_cell_makes_no_others(files, tmp_path):
    file = tmp_path / "far.xlsx"
    with zipfile.ZipFile(files[".xlsx"]) as sound, zipfile.ZipFile(file, "w") as archive:
        for name in sound.namelist():
            archive.writestr(name, SHEET if name.endswith("/sheet1.xml") else sound.read(name))
    rows = [row for block in read_file(file).blocks if block.cells for row in block.cells.rows]
    assert ("Bolt", "7") in [row[:2] for row in rows]
    assert sum(map(len, rows)) < 1_000


def test_deep_nesting_is_refused_or_read(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "a.html").write_text("<div><b>" * 50_000 + "deep text")
    made.zipped(tmp_path / "a.docx", made.docx_parts("<w:sdt>" * 50_000 + "</w:sdt>" * 50_000))
    read_or_refused(tmp_path / "a.json")
    assert read_file(tmp_path / "a.html").text == "deep text"
    read_or_refused(tmp_path / "a.docx")


def test_encrypted_files_say_so(tmp_path):
    (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    made.zipped(tmp_path / "b.odt", {"META-INF/manifest.xml": "<m><encryption-data/></m>", "content.xml": "?"})
    for name in ("a.docx", "b.odt"):
        with pytest.raises(SourceError, match="encrypted"):
            read_file(tmp_path / name)
