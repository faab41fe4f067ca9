"""Real PDFs of several makers (TeX, Word, Excel, LibreOffice, slides), where the data sets are at hand."""

from pathlib import Path

import pytest

from clew.documents.extracted import Extracted
from clew.documents.formats.pdf import read_pdf
from clew.documents.formats.pdf_file import read_pages


@pytest.fixture(scope="module")
def sample(data):
    folder = data / "docs_dev" / "docs"
    if not folder.is_dir():
        pytest.skip(f"no sample documents at {folder}")
    known: dict[str, Extracted] = {}

    def read(name: str) -> Extracted:
        if name not in known:
            known[name] = read_pdf(Path(folder / name))
        return known[name]

    return read


def headings(extracted: Extracted) -> list[tuple[int, str]]:
    return [(b.level, extracted.text[b.start : b.end]) for b in extracted.blocks if b.kind == "heading"]


def tables(extracted: Extracted) -> list:
    return [block.cells for block in extracted.blocks if block.cells is not None]


def test_a_paper_in_two_columns_reads_across_the_columns(sample):
    paper = sample("loudness-meter.pdf")
    assert "standards.\n\nA pseudo peak meter can provide some idea of loudness" in paper.text
    assert paper.text.index("1 or valves for some of us") > paper.text.index("available and widely")
    assert headings(paper)[:3] == [
        (1, "Loudness measurement according to EBU R-128"),
        (1, "1 Introduction"),
        (1, "2 An overview of current level metering practice"),
    ]
    assert tables(paper) == []


def test_slides_have_a_heading_each_and_no_footers(sample):
    slides = sample("loudness-meter-pres.pdf")
    assert (1, "What is missing ?") in headings(slides)
    assert len(headings(slides)) == slides.pages
    assert "Maynooth, Ireland" in slides.text
    assert slides.text.count("Maynooth") == 1


def test_a_report_from_a_sheet_keeps_its_tables_and_drops_its_head(sample):
    report = sample("RD-Mortality-Report_2015-18-180531.pdf")
    found = tables(report)
    assert len(found) == 12
    assert found[0].header == ("JAN", "2015", "2016", "2017", "2018")
    assert found[0].rows[0] == ("1", "107", "89", "107", "95")
    assert found[0].rows[-1][0] == "Med"
    assert "Registro Demográfico - División de Calidad y Estadísticas Vitales\n" not in report.text[:200]


def test_the_numbers_of_sections_give_levels_where_there_are_no_bookmarks(sample):
    assert {(1, "3 Compiling and Porting"), (2, "3.2 Porting and Optimising"), (3, "3.2.1 CPU optimisation")} <= set(
        headings(sample("speex-manual.pdf"))
    )


def test_captions_go_with_their_tables_and_contents_are_no_tables(sample):
    manual = sample("speex-manual.pdf")
    assert [table.caption for table in tables(manual)][2] == "Table 9.1: Bit allocation for narrowband modes"
    assert any(block.kind == "contents" for block in manual.blocks)
    assert not any("Getting help" in cell for table in tables(manual) for row in table.rows for cell in row)


def test_a_table_that_goes_on_for_pages_is_one(sample):
    guide = sample("SK-COM-PRG-GUIDE.pdf")
    methods = next(table for table in tables(guide) if table.rows[0][0] == "initialize")
    assert methods.rows[-1][0] == "getDataFileNameWidthId"
    assert ("Name", "Description") not in methods.rows


@pytest.mark.parametrize("name", ["loudness-meter.pdf", "SK-COM-PRG-GUIDE.pdf", "storeBackup.pdf"])
def test_lines_lie_on_their_pages_and_cover_the_text(sample, data, name):
    extracted = sample(name)
    sizes = read_pages(data / "docs_dev" / "docs" / name).sizes
    covered = 0
    for line in extracted.lines:
        width, height = sizes[line.page - 1]
        assert -20 <= line.x0 <= line.x1 <= width + 20
        assert -20 <= line.top <= line.bottom <= height + 20
        covered += line.end - line.start
    assert covered > 0.95 * sum(block.end - block.start for block in extracted.blocks)
