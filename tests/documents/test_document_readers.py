"""Files made by real writers become passages and tables whose spans are where they say."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import documents_made as made
from clew.core.errors import NotFoundError, SourceError
from clew.core.proper_names import sentence_spans, sentences
from clew.documents.building import find_files
from clew.documents.extracted import Block, Extracted, ExtractedCache, cells_of, content_key, to_json
from clew.documents.formats import READERS
from clew.documents.passages import outline


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return made.make_folder(tmp_path_factory.mktemp("documents"))


def read(file: Path) -> Extracted:
    return READERS[file.suffix](file)


def tables(extracted: Extracted) -> list:
    return [block.cells for block in extracted.blocks if block.cells is not None]


def test_ruled_tables_of_a_pdf_keep_header_cells_caption_and_page(folder):
    found = [block for block in read(folder / "report.pdf").blocks if block.kind == "table"]
    assert [block.page for block in found] == [2, 2]
    assert found[0].cells.caption.startswith("Table 1.")
    assert [list(found[0].cells.header), *map(list, found[0].cells.rows)] == made.STATIONS


def test_a_table_without_rules_is_found_by_its_columns(folder):
    extracted = read(folder / "budget.pdf")
    assert [[list(table.header), *map(list, table.rows)] for table in tables(extracted)] == [made.BUDGET]
    assert extracted.title == "Budget of the Lenz company"


def test_every_passage_is_the_text_at_its_span(folder):
    for name in ("report.pdf", "budget.pdf", "people.docx", "history.html", "notes.md", "letter.txt"):
        extracted = read(folder / name)
        cut = outline(extracted)
        assert cut.passages
        for passage in cut.passages:
            assert extracted.text[passage.start : passage.end] == passage.text


def test_spans_of_markdown_and_text_count_the_characters_of_the_file(folder):
    for name in ("notes.md", "letter.txt"):
        source = (folder / name).read_text("utf-8")
        for passage in outline(read(folder / name)).passages:
            assert source[passage.start : passage.end] == passage.text


def test_word_files_know_pages_headings_and_tables(folder):
    extracted = read(folder / "people.docx")
    cut = outline(extracted)
    assert [(section.heading, section.page) for section in cut.sections] == [
        ("People of the board", 1),
        ("Tove Lenz", 1),
        ("Gerda Holm", 2),
    ]
    assert cut.tables[0].page == 2
    assert cut.tables[0].caption == "Table 1: Years in office"
    assert "Years in office" not in "".join(passage.text for passage in cut.passages)


def test_html_shows_what_a_reader_sees(folder):
    extracted = read(folder / "history.html")
    assert "Its first bridge was built in 1405." in extracted.text
    assert "never shown" not in extracted.text
    assert "Home" not in extracted.text
    assert tables(extracted)[0].rows == (("Ida Falk", "1990"), ("Per Gran", "2004"))


def test_sheets_and_separated_values_are_tables(folder):
    assert tables(read(folder / "prices.csv"))[0].header == ("Item", "Price", "Stock")
    assert tables(read(folder / "rain.xlsx"))[0].rows[1] == ("June", "88.5")


@pytest.mark.parametrize(
    ("name", "reason"), [("broken.pdf", "damaged"), ("secret.pdf", "encrypted"), ("scan.pdf", "scanned")]
)
def test_files_that_cannot_be_read_say_why(folder, name, reason):
    with pytest.raises(SourceError, match=reason):
        read(folder / name)


def test_running_heads_and_divided_words_are_mended(tmp_path):
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    def head(canvas, document):
        canvas.drawString(72, 815, f"Confidential draft, page {document.page}")

    normal = getSampleStyleSheet()["Normal"]
    story = [part for n in range(4) for part in (Paragraph(f"The pump num-<br/>ber {n} works.", normal), PageBreak())]
    SimpleDocTemplate(str(tmp_path / "a.pdf")).build(story, onFirstPage=head, onLaterPages=head)
    text = read(tmp_path / "a.pdf").text
    assert "Confidential" not in text
    assert "The pump number 3 works." in text


def test_a_long_table_is_cut_by_rows_under_its_header(tmp_path):
    rows = [f"station {n};{n * 1.5}" for n in range(2000)]
    (tmp_path / "long.csv").write_text("name;flow\n" + "\n".join(rows), "utf-8")
    extracted = read(tmp_path / "long.csv")
    cut = outline(extracted)
    assert len(cut.passages) > 10
    assert all(passage.text.startswith("| name | flow |") for passage in cut.passages)
    assert sum(passage.text.count("station") for passage in cut.passages) == 2000
    last = cut.passages[-1]
    assert (
        extracted.text[last.start : last.end].splitlines()[-1]
        == last.text.splitlines()[-1]
        == "| station 1999 | 2998.5 |"
    )


def test_abbreviations_and_initials_end_no_sentence():
    text = "Dr. J. R. Smith of Acme Inc. lives in the U.S. He sails. 東京は首都です。次の文。"
    assert sentences(text)[:2] == ["Dr. J. R. Smith of Acme Inc. lives in the U.S. He sails.", "東京は首都です。"]


@given(st.text(alphabet="ab .!?\n。", max_size=200), st.integers(0, 50))
def test_sentences_and_passages_cover_every_character_that_is_not_white_space(text, length):
    spans = sentence_spans(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    blocks = (Block("paragraph", 0, len(text)),) if text.strip() else ()
    passages = outline(Extracted("", text, blocks), length).passages
    assert "".join("".join(p.text.split()) for p in passages) == "".join(text.split())


def test_extracted_texts_come_back_from_the_cache_as_they_were(tmp_path, folder):
    cache = ExtractedCache(tmp_path / "cache")
    extracted = read(folder / "report.pdf")
    key = content_key(folder / "report.pdf", ".pdf")
    cache.put(key, to_json(extracted))
    cache.put("0" * 32 + ".pdf-1", to_json(extracted))
    fresh = ExtractedCache(tmp_path / "cache")
    assert fresh.get(key) == extracted
    fresh.drop_unused()
    assert fresh.get("0" * 32 + ".pdf-1") is None


def test_hidden_files_and_knowledge_bases_are_not_sources(tmp_path):
    for name in ("a.txt", ".hidden.txt", "sub/b.txt", "base/manifest.json", "base/data-1/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    assert [name for name, _ in find_files([tmp_path])[0]] == ["a.txt", "sub/b.txt"]
    with pytest.raises(NotFoundError):
        find_files([tmp_path / "absent"])


def test_ragged_and_empty_cells_make_a_rectangle():
    cells = cells_of([["a", "", "b"], ["", "", ""], ["1"]])
    assert (cells.header, cells.rows) == (("a", "b"), (("1", ""),))
    assert cells_of([["", " "]]) is None
