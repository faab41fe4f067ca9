"""Texts are read whatever they are called: READMEs, notes of versions, manual pages, texts packed by gzip."""

import gzip
from pathlib import Path

import pytest

import clew
import formats_made as made
from clew.core.errors import SourceError
from clew.documents.building import TABLES, hold_documents, read_folder
from clew.documents.extracted import VERSION
from clew.documents.formats import READERS, format_of, read_document
from clew.documents.formats.manual_page import printed
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import DocumentOptions
from clew.store.sources.files import RECORDS
from clew.store.sources.read import _READABLE

PLAIN = DocumentOptions(edges=EdgeOptions(()))
PROSE = "The gate of the harbour opens at six. It closes when the last boat is in.\n"


@pytest.mark.parametrize("name", ["README", "LICENSE", "NEWS-3.0", "README.rules", "notes.1st"])
def test_a_text_without_a_known_ending_is_read_under_its_name(tmp_path, name):
    (tmp_path / name).write_text(PROSE)
    assert hold_documents([tmp_path])
    nodes = read_folder([tmp_path], PLAIN).tables.nodes[0].table.to_pylist()
    assert nodes[0]["name"] == name
    assert any(PROSE.strip() in (node["text"] or "") for node in nodes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("photo", b"\x89PNG\r\n\x1a\n" + bytes(80)),
        ("style.css", b"The body is written in serifs.\n"),
        ("harbour.ttl", b"The gate of the harbour.\n"),
        ("loop.zig", b"fn main() void { const a = b[0]; if (a) { return (a); } }\n"),
        ("noise", bytes(range(1, 256))),
        ("cut.gz", gzip.compress(PROSE.encode(), mtime=0)[:12]),
    ],
)
def test_what_is_no_text_or_another_format_is_not_read(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert format_of(tmp_path / name) == ""


def test_a_readme_beside_tables_does_not_make_them_documents(tmp_path):
    (tmp_path / "boats.csv").write_text("id,name\n1,Gull\n")
    (tmp_path / "README").write_text(PROSE)
    assert not hold_documents([tmp_path])


def test_a_table_without_an_ending_is_no_prose(tmp_path):
    (tmp_path / "boats").write_text("id,name\n1,Gull\n2,Tern\n")
    assert not hold_documents([tmp_path])


def test_a_text_table_with_commas_in_most_cells_is_a_table(tmp_path):
    rows = [f'{at},"Pier {at}{", north" * (at % 5)}",{at}.5\n' for at in range(1, 9)]
    (tmp_path / "stops.txt").write_text("stop_id,stop_name,stop_lat\n" + "".join(rows))
    assert not hold_documents([tmp_path])


def test_text_tables_with_quoted_commas_are_tables(tmp_path):
    stops = [f"S{number},Stop {number},47.{number},8.{number}" for number in range(9)]
    (tmp_path / "stops.txt").write_text("\n".join(["id,name,lat,lon", *stops, 'S9,"Riga, main station",47.9,8.9']))
    assert not hold_documents([tmp_path])


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_encodings_are_seen_from_the_content(tmp_path, encoding):
    (tmp_path / "LIESMICH").write_bytes("Die Schleuse öffnet um sechs.\n".encode(encoding))
    assert "öffnet" in read_document(tmp_path / "LIESMICH").text


def test_what_gzip_has_packed_is_read_as_what_it_was(tmp_path):
    (tmp_path / "a.md.gz").write_bytes(gzip.compress(b"# Gates\n\nThe gate opens at six.\n"))
    (tmp_path / "FAQ.gz").write_bytes(gzip.compress(PROSE.encode()))
    assert hold_documents([tmp_path])
    assert read_document(tmp_path / "a.md.gz").title == "Gates"
    assert read_document(tmp_path / "FAQ.gz").text == PROSE
    names = {row["name"] for row in read_folder([tmp_path], PLAIN).tables.nodes[0].table.to_pylist()}
    assert {"Gates", "FAQ"} <= names


def test_a_gzip_bomb_is_refused(tmp_path):
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"a b " * 20_000_000))
    with pytest.raises(SourceError, match="times its size"):
        read_document(tmp_path / "bomb.txt.gz")


def test_a_manual_page_loses_its_macros(tmp_path):
    (tmp_path / "gate.8").write_text(made.MANUAL)
    assert hold_documents([tmp_path])
    read = read_document(tmp_path / "gate.8")
    assert read.title == "gate(8)"
    assert [(block.kind, read.text[block.start : block.end]) for block in read.blocks] == [
        ("heading", "NAME"),
        ("paragraph", "gate - open the harbour gate"),
        ("heading", "OPTIONS"),
        ("paragraph", "-w, --wait SECONDS: How long to wait."),
        ("paragraph", "It is not asked “twice”."),
        ("paragraph", "gate -w 5\n  echo \\"),
    ]
    assert printed(r"\fBa\fR\-b\ c\|d \[em] \(bu") == "a-b cd — •"


def test_manual_pages_in_other_macros_say_what_to_do(tmp_path):
    (tmp_path / "gate.8").write_text(".Dd January 1, 2024\n.Dt GATE 8\n.Sh NAME\n.Nm gate\n")
    with pytest.raises(SourceError, match=r"run `man FILE > FILE\.txt`"):
        read_document(tmp_path / "gate.8")


def test_a_folder_with_nothing_readable_is_told_all_formats(tmp_path):
    (tmp_path / "photo.png").write_bytes(b"\x89PNG" + bytes(20))
    with pytest.raises(SourceError, match="no readable files") as told:
        clew.build([tmp_path], tmp_path / "base.kb")
    said = str(told.value)
    assert [ending for ending in READERS if f"{ending}," not in said and f"{ending} " not in said] == []


def test_an_unchanged_text_is_not_read_again(tmp_path: Path):
    (tmp_path / "README.rules").write_text(PROSE)
    options = DocumentOptions(edges=EdgeOptions(()), cache=tmp_path / ".kept")
    read_folder([tmp_path], options)
    assert [kept.name.split(".", 1)[1] for kept in (tmp_path / ".kept").iterdir()] == [f"txt-{VERSION}.json"]


@pytest.mark.parametrize("suffix", sorted(_READABLE - RECORDS - TABLES - {".txt", ".db", ".db3"}))
def test_a_file_of_any_graph_format_beside_documents_is_a_graph(suffix, tmp_path):
    (tmp_path / f"data{suffix}").write_text("<urn:a> <urn:knows> <urn:b> .\n")
    (tmp_path / "notes.md").write_text("# Notes\n\nThis folder has a graph of people who know each other.\n")
    assert not hold_documents([tmp_path])
