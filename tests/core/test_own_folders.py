"""Clew writes into folders of its own, and removes only what it wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.answering.methods.subgraph_reranking.ranker_file import RankerParts, save_ranker
from clew.core.errors import CorruptError, InputError
from clew.documents.extracted import ExtractedCache
from clew.models.embedding.opening import HashEmbedder
from clew.server.documents import DocumentFolder
from clew.store.building import build, check, update
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import seal
from clew.store.graph.storage import LOCK, locked, read_manifest, staging
from clew.store.index.vector_store import VectorStore
from clew.store.sources.delta import Delta
from conftest import NODES, tables

NODE_LINES = '{"key": "a", "type": "t", "name": "Alpha"}\n{"key": "b", "type": "t", "name": "Beta"}\n'


def clew(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clew", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of somebody's work, with names that once were taken for Clew's own."""
    for name in ("data-raw/thesis.txt", ".stage-one/notes.txt", "extracted/table.json", "vectors/old/mine.txt"):
        file = tmp_path / "work" / name
        file.parent.mkdir(parents=True)
        file.write_text("years of work")
    for name in ("README.md", "answers.jsonl", "subgraph-1.svg", "manifest.json"):
        (tmp_path / "work" / name).write_text("years of work")
    return tmp_path / "work"


def state(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_build_into_a_folder_of_other_files_is_refused_and_touches_nothing(theirs):
    (theirs / "nodes.jsonl").write_text(NODE_LINES)
    (theirs / "edges.tsv").write_text("head\trelation\ttail\na\tnear\tb\n")
    before = state(theirs)
    done = clew("build", "nodes.jsonl", "edges.tsv", "-o", ".", cwd=theirs)
    assert done.returncode == 2
    assert "contains other files" in done.stderr
    assert "name a new folder" in done.stderr
    assert state(theirs) == before


@pytest.mark.parametrize(
    "command",
    [
        ("build", "{notes}", "-o", "."),
        ("demo", "--folder", "."),
        ("synth", "{kb}", "-n", "4", "--out", "."),
        ("eval", "-q", "{questions}", "--kb", "{kb}", "-m", "bm25", "--out", "../.."),
    ],
    ids=lambda command: command[0],
)
def test_every_command_that_writes_a_folder_refuses_one_of_other_files(theirs, tmp_path, command):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Alpha\n\nBeta is near Alpha.\n")
    build(tables(), tmp_path / "kb")
    questions = tmp_path / "work.jsonl"
    questions.write_text('{"question": "Which gene?", "answers": ["BBS2"]}\n')
    if command[0] == "eval":  # which writes below its folder, in one named after questions and method
        theirs = theirs.rename(tmp_path / "bm25")
        (tmp_path / "work").mkdir()
        theirs = theirs.rename(tmp_path / "work" / "bm25")
    before = state(theirs)
    places = {"notes": tmp_path / "notes", "kb": tmp_path / "kb", "questions": questions}
    done = clew(*(part.format(**places) for part in command), cwd=theirs)
    assert done.returncode == 2, done.stderr
    assert "contains other files" in done.stderr
    assert state(theirs) == before


def test_a_ranker_and_a_server_of_documents_refuse_a_folder_of_other_files(theirs):
    before = state(theirs)
    with pytest.raises(InputError, match="contains other files"):
        save_ranker(theirs, RankerParts(card=None))  # type: ignore[arg-type]  # refused before it is looked at
    with pytest.raises(InputError, match="contains other files"):
        DocumentFolder(theirs)
    assert state(theirs) == before


def test_what_others_put_into_a_base_survives_rebuild_update_and_a_switch_of_the_embedder(tmp_path):
    folder = tmp_path / "kb"
    build(tables(), folder)
    kept = [folder / "data-raw" / "a.txt", folder / "data-0123456789abcdef" / "b.txt", folder / ".stage-x" / "c.txt"]
    kept += [folder / "vectors" / "mine" / "d.txt", folder / "extracted" / "table.json"]
    for file in kept:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    first = read_manifest(folder).generation
    build(tables(NODES[:2], [("BBS2", "near", "FBN1", None)]), folder)
    assert not (folder / first).exists()
    update(folder, Delta(tables(NODES[2:3], [])))
    store = VectorStore.open(folder / "vectors", HashEmbedder(), spec="hash", in_use=False)
    store.adopt()
    ExtractedCache(folder / "extracted").drop_unused()
    assert [file.read_text() for file in kept] == ["mine"] * len(kept)
    assert check(folder) == []


def test_what_a_killed_build_left_is_removed_by_the_next_one(tmp_path):
    folder = tmp_path / "kb"
    build(tables(), folder)
    child = os.fork()
    if not child:
        with locked(folder), staging(folder) as stage:
            (stage / "half").write_text("…")
            os._exit(0)
    os.waitpid(child, 0)
    assert any(path.name.startswith(".clew-stage-") for path in folder.iterdir())
    build(tables(), folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {LOCK, "manifest.json", read_manifest(folder).generation}


@pytest.mark.parametrize("name", ["../outside", "/etc", "data-raw", "", ".", "clew-data-0123456789abcdeg"])
def test_a_manifest_or_lock_that_names_a_folder_not_of_clews_making_is_not_followed(tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    folder = tmp_path / "kb"
    build(tables(), folder)
    (folder / "data-raw").mkdir()
    (folder / LOCK).write_text(f"{name}\n")
    build(tables(NODES[:2], []), folder)
    raw = json.loads((folder / "manifest.json").read_text())
    raw.pop("digest")
    raw["generation"] = name
    (folder / "manifest.json").write_text(json.dumps({**raw, "digest": seal(raw)}))
    with pytest.raises(CorruptError, match="generation"):
        ArrayKnowledgeBase.open(folder)
    build(tables(), folder)
    assert (outside / "file").read_text() == "mine"
    assert (folder / "data-raw").is_dir()


def test_a_manifest_that_names_a_file_outside_its_generation_is_refused(tmp_path):
    build(tables(), tmp_path / "kb")
    file = tmp_path / "kb" / "manifest.json"
    raw = json.loads(file.read_text())
    raw.pop("digest")
    raw["files"]["../../secret"] = {"size": 1, "sha256": "0" * 64}
    file.write_text(json.dumps({**raw, "digest": seal(raw)}))
    with pytest.raises(CorruptError, match="secret"):
        ArrayKnowledgeBase.open(tmp_path / "kb")


def test_a_link_in_place_of_an_old_generation_is_not_followed(tmp_path):
    folder, outside = tmp_path / "kb", tmp_path / "outside"
    build(tables(), folder)
    outside.mkdir()
    (outside / "file").write_text("mine")
    (folder / "clew-data-0123456789abcdef").symlink_to(outside)
    (folder / LOCK).write_text("clew-data-0123456789abcdef\n")
    build(tables(NODES[:2], []), folder)
    assert (outside / "file").read_text() == "mine"


def test_a_refused_build_leaves_no_trace(tmp_path):
    (tmp_path / "nodes.jsonl").write_text('{"key": "a"}\n')
    (tmp_path / "edges.tsv").write_text("head\trelation\ttail\na\tnear\tnowhere\n")
    done = clew("build", "nodes.jsonl", "edges.tsv", "-o", "deep/er/kb", cwd=tmp_path)
    assert done.returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.tsv", "nodes.jsonl"]


def test_a_base_of_the_first_version_is_rebuilt_in_place(tmp_path):
    """Its generations were called data-…, its lock .lock."""
    folder = tmp_path / "kb"
    build(tables(), folder)
    raw = json.loads((folder / "manifest.json").read_text())
    raw.pop("digest")
    old = raw["generation"]
    raw["generation"] = old.replace("clew-data-", "data-")
    (folder / old).rename(folder / raw["generation"])
    (folder / LOCK).rename(folder / ".lock")
    (folder / "manifest.json").write_text(json.dumps({**raw, "digest": seal(raw)}))
    assert check(folder) == []
    build(tables(NODES[:2], []), folder)
    assert {path.name for path in folder.iterdir()} == {
        LOCK,
        ".lock",
        "manifest.json",
        read_manifest(folder).generation,
    }


@pytest.mark.parametrize(
    "command",
    [
        ("ask", "KB", "Which gene is it?", "--trace"),
        ("ask", "KB", "Which gene is it?", "--svg"),
        ("subgraph", "KB", "BBS2", "P4", "--svg"),
        ("subgraphs", "-q", "QUESTIONS", "--kb", "KB", "--out"),
        ("show", "KB", "BBS2", "--page"),
        ("synth", "KB", "--out", "NEW", "--trace"),
        ("report", "RUNS", "--html"),
        ("trace", "TRACE", "--otel"),
    ],
    ids=" ".join,
)
def test_a_file_of_the_user_is_overwritten_only_by_force(command, tmp_path, run):
    """The check comes before everything else: no base is opened for it."""
    mine = tmp_path / "mine.png"
    mine.write_text("years of work")
    code, _, said = run(*command, mine)
    assert (code, mine.read_text()) == (2, "years of work")
    assert "mine.png exists already: name another file, or add --force" in said
    assert "exists already" not in run(*command, mine, "--force")[2]


def test_a_forced_file_is_written(tmp_path, run):
    base, drawing = tmp_path / "tiny.kb", tmp_path / "drawing.svg"
    build(tables(), base)
    drawing.write_text("old")
    assert run("subgraph", base, "BBS2", "P4", "--svg", drawing, "--force")[0] == 0
    assert drawing.read_text().startswith("<svg")
    assert run("ask", base, "gene", "--trace", "/dev/null")[0] == 0  # a device is no file of anybody
