"""ZIP archives of tables are read like folders."""

import zipfile

import pytest

import clew
from clew.core.errors import InputError, SourceError
from clew.store.sources import files
from clew.store.sources.read import read_sources

STOPS = "stop_id,stop_name\n1,Old Mill\n2,Harbour\n"
TIMES = "trip_id,stop_id,minute\na,1,5\na,2,9\nb,2,12\n"


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "feed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("feed/stops.txt", STOPS)
        packed.writestr("feed/stop_times.txt", TIMES)
        packed.writestr("feed/map.png", b"\x89PNG")
        packed.writestr("__MACOSX/feed/._stops.txt", b"\0")
    return path


def content(tables):
    """Return what tables hold, without where it was read from."""
    return [piece.table.to_pylist() for piece in (*tables.nodes, *tables.edges)]


def test_an_archive_is_read_like_its_folder(archive, tmp_path):
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "stops.txt").write_text(STOPS)
    (tmp_path / "feed" / "stop_times.txt").write_text(TIMES)
    packed = read_sources([archive])
    assert content(packed) == content(read_sources([tmp_path / "feed"]))
    assert any("map.png" in note for note in packed.notes)
    assert not any("_stops" in note for note in packed.notes)


def test_a_folder_with_nothing_but_an_archive_is_that_archive(archive, tmp_path):
    clew.build([tmp_path], tmp_path / "feed.kb")
    answer = clew.open(tmp_path / "feed.kb").ask("How many stops are there?")
    assert answer.value == 2


@pytest.mark.parametrize("name", ["{}/secret.csv", "../secret.csv", "x/../../secret.csv"])
def test_a_name_that_leads_out_of_an_archive_reads_nothing_there(tmp_path, name):
    (tmp_path / "secret.csv").write_text("id,name\n1,secret\n")
    with zipfile.ZipFile(tmp_path / "feed.zip", "w") as packed:
        packed.writestr("stops.csv", "id,name\n1,Old Mill\n")
        packed.writestr(name.format(tmp_path), "id,name\n2,inside\n")
    assert [row["name"] for table in content(read_sources([tmp_path / "feed.zip"])) for row in table] == ["Old Mill"]


def test_an_archive_beside_tables_is_named_and_can_be_given_too(archive, tmp_path):
    (tmp_path / "lines.csv").write_text("line_id,line_name\n1,Coast Line\n2,Hill Line\n")
    assert any("feed.zip" in note for note in read_sources([tmp_path]).notes)
    both = read_sources([tmp_path, archive])
    assert {"Coast Line", "Old Mill"} <= {row.get("name") for table in content(both) for row in table}
    assert not any("Not read: archives" in note for note in both.notes)


def test_a_row_is_named_by_archive_file_and_line(archive):
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("feed/routes.csv", "route_id,route_name\n1,East\n2\n")
    with pytest.raises(SourceError) as caught:
        read_sources([archive])
    assert (caught.value.file, caught.value.line) == (f"{archive}/feed/routes.csv", 3)


def test_archives_that_cannot_be_read_are_refused(tmp_path, archive, monkeypatch):
    cut, empty, secret = (tmp_path / name for name in ("cut.zip", "empty.zip", "secret.zip"))
    cut.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(SourceError, match="damaged"):
        read_sources([cut])
    with zipfile.ZipFile(empty, "w") as packed:
        packed.writestr("picture.png", b"x")
    with pytest.raises(InputError, match="no readable files in this archive"):
        read_sources([empty])
    data = bytearray(archive.read_bytes())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):  # the bit of encryption, in both headers of the first file
        data[data.index(mark) + (6 if mark[2] == 3 else 8)] |= 1
    secret.write_bytes(data)
    with pytest.raises(SourceError, match="encrypted"):
        read_sources([secret])
    monkeypatch.setattr(files, "MOST_MEMBERS", 2)
    with pytest.raises(SourceError, match="over 2 files"):
        read_sources([archive])


@pytest.mark.parametrize("is_lying", [False, True])
def test_a_bomb_is_refused_even_if_it_lies_about_its_size(tmp_path, monkeypatch, is_lying):
    monkeypatch.setattr(files, "SMALL", 1000)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("nodes.csv", "id,name\n" + "1,a\n" * 1_000_000)
    size = (8 + 4 * 1_000_000).to_bytes(4, "little")
    if is_lying:
        bomb.write_bytes(bomb.read_bytes().replace(size, (100).to_bytes(4, "little")))
    with pytest.raises(SourceError, match="damaged" if is_lying else "unpacks to over"):
        read_sources([bomb])
