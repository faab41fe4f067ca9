"""A quotation is looked at: the PDF page it stands on, found again and unchanged, with its lines marked."""

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import clew
from clew import cli
from clew.core.errors import InputError, NotFoundError
from clew.documents.originals import REMEMBERED, find_original, remembered_sources
from documents_made import ruled_pdf

TABLE, PASSAGE = "report.pdf#table=00001", "report.pdf#passage=000003"


@pytest.fixture
def built(tmp_path, monkeypatch) -> Path:
    """A base of one PDF and one text, asked from another folder than the one it was built in."""
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    ruled_pdf(tmp_path / "docs" / "report.pdf")
    ruled_pdf(tmp_path / "docs" / "deep" / "again.pdf")
    (tmp_path / "docs" / "notes.txt").write_text("The gate opens at nine. It closes at ten.\f Page two says more.")
    clew.build([tmp_path / "docs"], tmp_path / "base.kb")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "base.kb"


@pytest.fixture
def main(monkeypatch):
    def main(arguments: list[str]) -> int:
        monkeypatch.setattr("sys.argv", ["clew", *arguments])
        cli.app.registered_commands.clear()
        cli.app.registered_groups.clear()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code or 0

    return main


def marked_rows(picture: bytes) -> np.ndarray:
    """Where rows of a PNG hold yellow, from 0 at the top to 1 at the bottom."""
    width, height = struct.unpack(">II", picture[16:24])
    pixels = np.frombuffer(zlib.decompressobj().decompress(picture[picture.index(b"IDAT") + 4 :]), np.uint8)
    colours = pixels.reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3).astype(int)
    return np.flatnonzero((colours[:, :, 0] - colours[:, :, 2] > 60).any(axis=1)) / height


def test_the_page_of_a_passage_is_written_with_its_lines_marked(built, main, capsys):
    assert main(["show", str(built), TABLE, "--page", "table.png"]) == 0
    assert "wrote table.png" in capsys.readouterr().out
    rows = marked_rows(Path("table.png").read_bytes())
    assert 0.1 < rows.min() < rows.max() < 0.3  # the first of two tables, and nothing else of the page
    assert main(["show", str(built), "report.pdf#page=2", "--page", "page.png", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == "page.png"
    assert not len(marked_rows(Path("page.png").read_bytes()))
    assert clew.open(built).page_image("deep/again.pdf#passage=000003").startswith(b"\x89PNG")


def test_a_file_that_was_moved_is_found_where_the_user_says(built, main, capsys):
    moved = (built.parent / "docs").rename(built.parent / "moved")
    assert main(["show", str(built), PASSAGE, "--page", "a.png"]) == 2
    assert "--files FOLDER" in capsys.readouterr().err
    assert main(["show", str(built), PASSAGE, "--page", "a.png", "--files", str(moved)]) == 0
    assert len(marked_rows(Path("a.png").read_bytes()))
    Path("report.pdf").write_bytes((moved / "report.pdf").read_bytes())  # in the current folder
    assert clew.open(built).page_image(PASSAGE)


def test_what_cannot_be_shown_is_said(built, main, capsys):
    def refused(*given: str) -> str:
        assert main(["show", str(built), *given]) == 2
        assert not Path("a.png").exists()
        return capsys.readouterr().err

    assert "without a page" in refused("report.pdf", "--page", "a.png")
    assert "not a PDF" in refused("notes.txt#page=00001", "--page", "a.png")
    assert ".png" in refused(PASSAGE, "--page", "a.jpg")
    assert "--page" in refused(PASSAGE, "--files", ".")
    file = built.parent / "docs" / "report.pdf"
    file.write_bytes(file.read_bytes() + b"\n%")
    assert "changed since" in refused(PASSAGE, "--page", "a.png")


def test_a_base_leads_to_no_file_that_its_user_did_not_name(built):
    """Not by its name, not by a link, and not by a digest of another file."""
    base = clew.open(built)
    digest = base.tools.kb.node(base.tools.kb.find("report.pdf")).attributes["digest"]
    docs = built.parent / "docs"
    assert find_original(built, "report.pdf", digest) == docs / "report.pdf"
    for name in ("../docs/report.pdf", str(docs / "report.pdf"), "a\0.pdf"):
        with pytest.raises(InputError, match="do not use"):
            find_original(built, name, digest, docs)
    Path("link.pdf").symlink_to(docs / "report.pdf")
    with pytest.raises(NotFoundError):
        find_original(built, "link.pdf", digest, Path.cwd())
    with pytest.raises(InputError, match="digest"):
        find_original(built, "report.pdf", None, docs)
    stranger = built.rename(built.parent / "stranger.kb")  # as one that was not built here
    assert remembered_sources(stranger) == []
    with pytest.raises(NotFoundError):
        clew.open(stranger).page_image(PASSAGE)
    assert str(docs) not in "".join(file.read_text("latin-1") for file in stranger.rglob("*") if file.is_file())


def test_what_is_remembered_is_a_hint_and_breaks_nothing(built, monkeypatch):
    remembered = built.parent / "cache" / REMEMBERED
    assert json.loads(remembered.read_text()) == {str(built): {"paths": [str(built.parent / "docs")], "visible": {}}}
    for wrong in ("", "[1]", '{"a": 3}', json.dumps({str(built): [1, "/nowhere"]})):
        remembered.write_text(wrong)
        with pytest.raises(NotFoundError):
            clew.open(built).page_image(PASSAGE)
    blocked = built.parent / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("CLEW_CACHE", str(blocked))
    clew.build([built.parent / "docs"], built)
