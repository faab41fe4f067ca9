"""A knowledge base on disk: atomic, canonical, checked."""

import gc
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.core.errors import ClewError, CorruptError, FormatError, LockedError, NotFoundError, StorageError
from clew.store.building import build, check, update
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.schema_file import parse_schema
from clew.store.graph.storage import LOCK, locked, read_manifest
from clew.store.graph.tables import Piece, Tables
from clew.store.sources.delta import Delta, apply_delta
from conftest import EDGES, NODES, build_graph, tables
from repeats import repeats


def test_two_builds_of_the_same_content_are_byte_identical_whatever_the_order_of_the_rows(tmp_path):
    build(tables(), tmp_path / "a")
    build(tables(NODES[::-1], EDGES[::-1]), tmp_path / "b")
    assert _content(tmp_path / "a") == _content(tmp_path / "b")


def test_a_changed_byte_in_any_file_is_found_and_the_file_named(tmp_path):
    build(tables(), tmp_path / "kb")
    files = [path for path in (tmp_path / "kb").rglob("*") if path.is_file() and path.name != LOCK]
    assert len(files) > 15
    random.seed(3)
    for file in files:
        whole = file.read_bytes()
        for place in {0, len(whole) - 1, random.randrange(len(whole))}:
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            problems = check(tmp_path / "kb")
            assert problems, f"byte {place} of {file} was changed unnoticed"
            assert file.name in problems[0]
        file.write_bytes(whole)
    assert check(tmp_path / "kb") == []


def test_a_cut_file_is_refused_at_opening(tmp_path):
    build(tables(), tmp_path / "kb")
    file = ArrayKnowledgeBase.open(tmp_path / "kb").generation / "nodes.arrow"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CorruptError, match=r"nodes\.arrow has .* bytes instead of"):
        ArrayKnowledgeBase.open(tmp_path / "kb")


def test_a_newer_format_a_plain_folder_and_a_missing_one_are_refused_in_plain_words(tmp_path):
    build(tables(), tmp_path / "kb")
    manifest = tmp_path / "kb" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(FormatError, match="format 99, this version reads up to 1: upgrade"):
        ArrayKnowledgeBase.open(tmp_path / "kb")
    with pytest.raises(NotFoundError, match="is not a knowledge base"):
        ArrayKnowledgeBase.open(tmp_path)
    with pytest.raises(NotFoundError, match="clew build"):
        ArrayKnowledgeBase.open(tmp_path / "nowhere")


def test_a_second_builder_is_turned_away(tmp_path):
    with locked(tmp_path / "kb"), pytest.raises(LockedError, match="another process is building"):
        build(tables(), tmp_path / "kb")


def test_a_full_disk_leaves_the_old_base_untouched(tmp_path):
    build(tables(), tmp_path / "kb")
    before = _content(tmp_path / "kb")
    child = multiprocessing.get_context("fork").Process(target=_build_with_little_space, args=(tmp_path / "kb",))
    child.start()
    child.join()
    assert child.exitcode == 7
    assert _content(tmp_path / "kb") == before
    assert check(tmp_path / "kb") == []


def test_an_open_base_survives_its_replacement(tmp_path):
    build(tables(), tmp_path / "kb")
    kb = ArrayKnowledgeBase.open(tmp_path / "kb")
    build(tables(NODES[:2], [("BBS2", "near", "FBN1", None)]), tmp_path / "kb")
    assert kb.node(kb.find("MFS")).name == "Marfan syndrome"
    assert len(ArrayKnowledgeBase.open(tmp_path / "kb")) == 2


def test_a_base_held_open_answers_by_what_it_opens_after_its_replacement(tmp_path):
    build(tables(), tmp_path / "kb")
    held = clew.open(tmp_path / "kb")
    before = held.tools.local.generation
    build(tables(NODES[:2], [("BBS2", "near", "FBN1", None)]), tmp_path / "kb")
    assert held.ask("long fingers", "bm25").candidates[0].node.key == "P3"
    assert held.ask("Which disease has Arachnodactyly?").candidates[0].node.key == "MFS"
    assert before.is_dir()
    del held
    gc.collect()
    update(tmp_path / "kb", Delta(tables(NODES[2:3], [])))
    assert not before.exists()
    names = {path.name for path in (tmp_path / "kb").iterdir()}
    assert names - {"vectors"} == {LOCK, "manifest.json", read_manifest(tmp_path / "kb").generation}


def test_a_damaged_generation_is_replaced_beside_it_so_that_a_kill_loses_nothing(tmp_path, monkeypatch):
    build(tables(), tmp_path / "kb")
    generation = ArrayKnowledgeBase.open(tmp_path / "kb").generation
    (generation / "by_type.npy").write_bytes(b"damaged")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: os._exit(1))
        child = multiprocessing.get_context("fork").Process(target=build, args=(tables(), tmp_path / "kb"))
        child.start()
        child.join()
    assert (generation / "nodes.arrow").exists()
    build(tables(), tmp_path / "kb")
    assert check(tmp_path / "kb") == []
    assert not generation.exists()


@pytest.mark.long
def test_a_kill_at_any_moment_leaves_the_old_base_or_the_new_one(tmp_path):
    """Kills are spread over the time that a build takes."""
    folder, many = tmp_path / "kb", 3_000
    nodes = [(f"n{i:05}", "thing", f"thing {i}", [], "some words " * 20) for i in range(many)]
    edges = [(f"n{i:05}", "next", f"n{(i * 7 + 1) % many:05}", "w") for i in range(many)]
    versions = [tables(nodes, edges), tables(nodes[: many // 2], [("n00001", "next", "n00002", "w")])]
    context = multiprocessing.get_context("fork")
    begun = time.perf_counter()
    build(versions[0], folder)
    usual = time.perf_counter() - begun
    sizes = {many, many // 2}
    random.seed(1)
    for turn in range(repeats(10, 50)):
        child = context.Process(target=build, args=(versions[turn % 2], folder))
        child.start()
        time.sleep(random.random() * usual * 1.1)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert check(folder) == []
        assert len(ArrayKnowledgeBase.open(folder)) in sizes
    build(versions[0], folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [LOCK, "manifest.json", read_manifest(folder).generation]
    )


def _build_with_little_space(folder: Path) -> None:
    """Writes beyond a few kilobytes fail, as they do on a full disk."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))
    nodes = [(f"n{i:05}", "thing", f"thing {i}", [], "some words") for i in range(2_000)]
    try:
        build(tables(nodes, [("n00001", "next", "n00002", None)]), folder)
    except StorageError:
        os._exit(7)
    except ClewError:
        os._exit(8)
    os._exit(0)


def _content(folder: Path) -> dict[str, bytes]:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["created"], manifest["digest"]
    return {**_files(folder / manifest["generation"]), "manifest.json": json.dumps(manifest, sort_keys=True).encode()}


keys = st.sampled_from([f"k{i}" for i in range(6)])
node_rows = st.dictionaries(
    keys, st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "yy", "z z"])), min_size=1
)
edge_rows = st.sets(st.tuples(keys, st.sampled_from("rs"), keys), max_size=10)


@settings(max_examples=25, deadline=None)
@given(node_rows, edge_rows, node_rows, edge_rows, st.sets(keys, max_size=2))
def test_an_update_equals_a_fresh_build(nodes, edges, new_nodes, new_edges, deleted):
    edges = {edge for edge in edges if edge[0] in nodes and edge[2] in nodes}
    deleted &= nodes.keys()  # deleting what is not there is an error of its own
    kept = {key: row for key, row in nodes.items() if key not in deleted}
    after = kept | new_nodes
    new_edges = {edge for edge in new_edges if edge[0] in after and edge[2] in after}
    left = {edge for edge in edges if edge[0] in kept and edge[2] in kept}
    removed = (Piece(pa.table({"key": sorted(deleted)}), "deleted"),) if deleted else ()
    with tempfile.TemporaryDirectory() as folder:
        old = build_graph(_rows(nodes, edges), Path(folder) / "old")
        delta = Delta(_rows(new_nodes, new_edges), removed)
        updated = build_graph(apply_delta(old.to_tables(), delta), Path(folder) / "updated")
        fresh = build_graph(_rows(after, left | new_edges), Path(folder) / "fresh")
        assert updated.manifest.facts == fresh.manifest.facts
        assert _files(updated.generation) == _files(fresh.generation)


def test_an_update_keeps_the_edited_schema_and_replaces_the_base_at_once(tmp_path):
    edits = parse_schema('[types.gene]\ndescription = "makes a protein"')
    build(tables(), tmp_path / "kb", edits=edits)
    more = pa.table({"key": ["MFS2"], "type": ["disease"], "name": ["Marfan syndrome type 2"]})
    update(tmp_path / "kb", Delta(Tables((Piece(more, "more"),), ()), (Piece(pa.table({"key": ["P4"]}), "gone"),)))
    kb = ArrayKnowledgeBase.open(tmp_path / "kb")
    assert (len(kb), kb.edge_count) == (8, 5)
    assert kb.schema.node_type("gene").description == "makes a protein"
    assert check(tmp_path / "kb") == []


def _rows(nodes, edges):
    listed = [(key, kind, f"name of {key}", [], text) for key, (kind, text) in sorted(nodes.items())]
    return tables(listed, [(*edge, "w") for edge in sorted(edges)])


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
