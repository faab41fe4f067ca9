"""Folders read by one process or several: the same tables, every reason named, nothing lost and nothing left over."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
import documents_made
import formats_made as made
from clew.core.errors import MissingExtraError
from clew.documents import building, reading
from clew.documents.building import build_documents, read_folder
from clew.documents.formats import READERS
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import DocumentOptions

PLAIN = DocumentOptions(edges=EdgeOptions(()))
SLOW = """
import sys, time, os
from clew.documents import reading as r
read = r.replied
def replied(file):
    if "slow" in file.name: time.sleep(600)
    if "crash" in file.name: os._exit(3)
    return read(file)
r.replied = replied
r.main()
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    place = documents_made.make_folder(tmp_path_factory.mktemp("source"))
    made.make_all(place / "formats")
    (place / "nothing.txt").write_text("")
    (place / "blank.md").write_text(" \n\n")
    return place


def contents(read) -> list:
    return [piece.table.to_pylist() for piece in (*read.tables.nodes, *read.tables.edges)], read.skipped


@pytest.fixture
def apart(monkeypatch):
    """Every file is read by a process."""
    monkeypatch.setattr(building, "ALL_READ_HERE", 0)


@pytest.fixture
def slow_reader(tmp_path_factory, monkeypatch):
    """Processes that sleep over some files and end at others."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "slow_reader.py").write_text(SLOW)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(reading, "MODULE", "slow_reader")


def test_processes_give_what_one_process_gives(source, monkeypatch):
    monkeypatch.setattr(building, "UNBOUNDED", frozenset())
    here = contents(read_folder([source], PLAIN))
    monkeypatch.setattr(building, "ALL_READ_HERE", 0)
    assert contents(read_folder([source], PLAIN, jobs=1)) == here
    assert contents(read_folder([source], PLAIN, jobs=3)) == here


@pytest.fixture
def linked(tmp_path) -> Path:
    """A folder with links that lead out of it, within it and in a circle."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("The secret number is 4711.")
    place = tmp_path / "docs"
    (place / "sub").mkdir(parents=True)
    (place / "own.md").write_text("The harbour opens at six.")
    (place / "a_link.md").symlink_to(place / "own.md")
    (place / "sub" / "up").symlink_to(place)
    (place / "out.md").symlink_to(outside / "secret.md")
    (place / "sub" / "out").symlink_to(outside)
    (place / "loop.md").symlink_to(place / "loop.md")
    return place


def test_links_that_lead_out_of_a_folder_are_named_and_not_followed(linked):
    read = read_folder([linked], PLAIN)
    names = {row["file"] for row in read.tables.nodes[0].table.to_pylist()}
    assert names == {"own.md"}  # once, although two links lead to it
    assert [one.file for one in read.skipped] == ["out.md", "sub/out"]
    assert all("--follow-links" in one.message for one in read.skipped)


def test_links_are_followed_where_that_is_said_and_each_file_is_read_once(linked):
    read = read_folder([linked], DocumentOptions(edges=EdgeOptions(()), follow_links=True))
    names = {row["file"] for row in read.tables.nodes[0].table.to_pylist()}
    assert names == {"own.md", "out.md"}
    assert not read.skipped


def test_the_command_follows_links_only_when_told(linked, tmp_path, run):
    base = tmp_path / "base.kb"
    assert "skipped out.md: the link leads out of the folder" in run("build", linked, "-o", base)[2]
    assert "4711" not in run("find", base, "secret")[1]
    assert "skipped" not in run("build", linked, "-o", base, "--follow-links")[2]
    assert "4711" in run("ask", base, "What is the secret number?")[1]


def test_links_out_of_a_folder_of_tables_are_not_followed(tmp_path):
    (tmp_path / "outside.csv").write_text("key,name\nS,secret\n")
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "things.csv").write_text("key,name\nA,apple\n")
    (folder / "more.csv").symlink_to(tmp_path / "outside.csv")
    report = clew.build([folder], tmp_path / "base.kb")
    assert report.nodes == 1
    assert f"skipped {folder}/more.csv: the link leads out of the folder: add --follow-links to read it" in report.notes
    followed = clew.build([folder], tmp_path / "base.kb", options=clew.SourceOptions(follow_links=True))
    assert followed.nodes == 2
    assert not any("skipped" in note for note in followed.notes)


def test_a_few_small_files_are_read_without_starting_a_process(source, monkeypatch):
    monkeypatch.setattr(reading, "MODULE", "no_such_module")
    read = read_folder([source / "formats"], PLAIN)
    assert [one.file for one in read.skipped] == ["harbour.eml", "harbour.mbox", "harbour.mbox"]  # their photos


def test_what_is_left_out_is_named_with_its_reason(source, tmp_path):
    shutil.copytree(source, tmp_path, dirs_exist_ok=True)
    (tmp_path / "large.txt").write_bytes(b"word " * 300_000)
    (tmp_path / "old.docx").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    options = DocumentOptions(edges=EdgeOptions(()), most_megabytes=1)
    reasons = {one.file: one.message for one in read_folder([tmp_path], options).skipped}
    expected = {
        "blank.md": "no text",
        "broken.pdf": "damaged",
        "large.txt": "limit of 1 MB",
        "nothing.txt": "empty",
        "old.docx": "encrypted",
        "photo.png": "unsupported format",
        "scan.pdf": "images",
        "secret.pdf": "encrypted",
        "formats/harbour.eml": "photo.png",
        "formats/harbour.mbox": "photo.png",
    }
    assert reasons.keys() == expected.keys()
    for file, part in expected.items():
        assert part in reasons[file]
        assert str(tmp_path) not in reasons[file]


def test_progress_counts_the_files_in_order(source, apart):
    seen = []
    read_folder([source], PLAIN, lambda name, done, total: seen.append((name, done, total)))
    names = [name for name, _ in building.find_files([source])[0]]
    assert [name for name, _, _ in seen][: len(names)] == names
    assert [done for _, done, _ in seen][: len(names)] == list(range(len(names)))


def test_files_that_take_too_long_or_end_their_reader_are_left_out(tmp_path, apart, slow_reader, monkeypatch):
    for name in ("a.txt", "crash.txt", "slow.txt", "z.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
    (tmp_path / "slow.txt").write_text("This is slow.\n" * 100)
    monkeypatch.setattr(reading, "seconds_for", lambda size: 1 if size > 1000 else 250)  # a load makes no other late
    read = read_folder([tmp_path], PLAIN, jobs=2)
    assert [(one.file, one.message.split(":")[0]) for one in read.skipped] == [
        ("crash.txt", "the file could not be read"),
        ("slow.txt", "the file took too long to read"),
    ]
    assert {"a.txt", "z.txt"} <= set(read.tables.nodes[0].table["key"].to_pylist())


def test_a_stop_keeps_what_was_read_and_leaves_no_process(tmp_path, apart, slow_reader, monkeypatch):
    started = []
    start = subprocess.Popen

    def record(*given, **options):
        started.append(start(*given, **options))
        return started[-1]

    monkeypatch.setattr(reading.subprocess, "Popen", record)
    for name in ("a.txt", "b.txt", "c-slow.txt", "d.txt"):
        (tmp_path / name).write_text(f"This is {name}.")

    def stop(name, done, total):
        if name == "c-slow.txt":
            raise KeyboardInterrupt

    options = DocumentOptions(edges=EdgeOptions(()), cache=tmp_path / ".kept")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        read_folder([tmp_path], options, stop, jobs=2)
    assert time.monotonic() - began < 120  # not until the slow file is read
    assert len(list((tmp_path / ".kept").glob("*.json"))) >= 2
    assert started
    assert all(process.poll() is not None for process in started)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals as POSIX has them")
def test_ctrl_c_ends_the_program_and_its_processes(tmp_path, slow_reader):
    for name in ("a.txt", "slow.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
    program = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from clew.documents import building, reading
building.ALL_READ_HERE = 0
reading.MODULE = "slow_reader"
start = reading.subprocess.Popen
def record(*given, **options):
    process = start(*given, **options)
    sys.stdout.write(f"{{process.pid}}\\n")
    sys.stdout.flush()
    return process
reading.subprocess.Popen = record
building.read_folder([Path({str(tmp_path)!r})], jobs=2)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as running:
        children = [int(running.stdout.readline()), int(running.stdout.readline())]
        running.send_signal(signal.SIGINT)
        assert running.wait(120) != 0
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_a_process_whose_parent_is_gone_ends(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", reading.MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        process.stdin.close()
        assert process.wait(120) == 0


def test_readers_import_nothing_heavy():
    heavy = "{'pyarrow', 'pandas', 'pydantic'}"
    check = f"import sys, clew.documents.reading; print({heavy} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "memory limit"),
        (RecursionError(), "nested too deeply"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (MissingExtraError("pdfplumber", "documents"), "not installed"),
    ],
)
def test_what_a_reader_runs_into_is_a_reason(tmp_path, monkeypatch, error, reason):
    def fail(file):
        raise error

    monkeypatch.setitem(READERS, ".txt", fail)
    (tmp_path / "a.txt").write_text("text")
    assert reason in reading.replied(tmp_path / "a.txt").decode()


TEXTS = {".md": "# Note {0}\n\nNote {0} names {1}.\n", ".txt": "NOTE\n\n{1} has {0}.\n", ".csv": "a,b\n{0},{1}\n"}
TEXTS |= {".html": "<h1>{0}</h1><p>{1}</p>", ".png": "{0}", ".json": '[{{"a": {0}, "b": "{1}"}}]'}
CHANGES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(sorted(TEXTS)), st.integers(0, 3) | st.none()), max_size=12
)


@settings(max_examples=30, deadline=None)
@given(CHANGES, CHANGES)
def test_reading_after_any_changes_equals_reading_anew(tmp_path_factory, before, after):
    root = tmp_path_factory.mktemp("changes")
    (root / "files").mkdir()
    (root / "files" / "always.txt").write_text("Unna is a town.")
    kept = DocumentOptions(edges=EdgeOptions(()), cache=root / "kept")
    for changes in (before, after):
        for name, ending, number in changes:
            file = root / "files" / f"{name}{ending}"
            if number is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(TEXTS[ending].format(number, "Unna" * number or "nothing"))
        updated = read_folder([root / "files"], kept)
    assert contents(updated) == contents(read_folder([root / "files"], PLAIN))
    contents_now = {
        building.content_key(file, file.suffix) for file in (root / "files").iterdir() if file.suffix != ".png"
    }
    assert {file.stem for file in (root / "kept").iterdir()} == contents_now


def test_a_kept_text_that_is_damaged_is_read_again(tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nOne sentence.")
    options = DocumentOptions(edges=EdgeOptions(()), cache=tmp_path / ".kept")
    first = contents(read_folder([tmp_path], options))
    (kept,) = (tmp_path / ".kept").iterdir()
    kept.write_text('{"title": 1')
    assert contents(read_folder([tmp_path], options)) == first
    assert kept.read_text() != '{"title": 1'


def test_a_name_that_is_not_utf8_is_read_like_others(tmp_path):
    (tmp_path / "notes").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/notes/caf\xe9.md")).write_bytes(b"# Alpha\n\nBeta is near Alpha.\n")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/notes/th\xe9.txt")).write_bytes(b"A file without a heading.\n")
    report = build_documents([tmp_path / "notes"], tmp_path / "kb")
    assert report.skipped == 0
    assert clew.open(tmp_path / "kb").ask("Beta", "bm25").candidates
