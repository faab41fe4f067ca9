"""`clew repair` restores what follows from the data, whatever part of it was damaged."""

import json
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.answering.methods.tuned import Tuned, keep_tuned, read_tuned
from clew.answering.queries.relation_paths import Move
from clew.answering.reading.fitted import Fitted
from clew.answering.reading.path_ranker import Taught, keep_taught, read_taught
from clew.core.errors import CorruptError, NotFoundError
from clew.documents.building import build_documents
from clew.documents.repairing import repair
from clew.lab.training.own_base import AskedFor, keep_asked, read_asked
from clew.models.embedding.onnx import DIMENSION
from clew.store.building import build, check, update
from clew.store.confirmed import Confirmed, keep_confirmed, read_confirmed
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import BESIDE, CONFIRMED, FITTED, LEARNED, LOCK, read_manifest
from clew.store.graph.schema_file import parse_schema
from clew.store.index.build import vectors_are_behind
from clew.store.index.vectors import rows_files
from clew.store.open_base import OpenBase
from clew.store.sources.delta import Delta
from conftest import NODES, tables

DATA = ("nodes.arrow", "edges.arrow", "types.npy", "graph/out_")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    edits = parse_schema('[types.gene]\ndescription = "makes a protein"')
    build(tables(), tmp_path / "kb", edits=edits)
    OpenBase.switch_embedder(tmp_path / "kb", "hash")
    return tmp_path / "kb"


def content(folder: Path) -> dict[str, bytes]:
    place = folder / read_manifest(folder).generation
    return {file.relative_to(place).as_posix(): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def test_every_part_that_follows_from_the_data_is_restored_byte_for_byte(folder):
    before = content(folder)
    derived = [name for name in before if not name.startswith(DATA)]
    assert len(derived) > 20
    for first in range(0, len(derived), 3):
        for turn, name in enumerate(derived[first : first + 3]):
            file = folder / read_manifest(folder).generation / name
            if turn == 0:
                file.write_bytes(before[name][:-1] + bytes([before[name][-1] ^ 1]))
            elif turn == 1:
                file.write_bytes(before[name][: len(before[name]) // 2])
            else:
                file.unlink()
            assert name in "".join(check(folder))
        assert repair(folder).problems
        assert content(folder) == before
        assert check(folder) == []
    names = {path.name for path in folder.iterdir()}
    assert names == {LOCK, "manifest.json", "vectors", read_manifest(folder).generation}
    assert ArrayKnowledgeBase.open(folder).schema.node_type("gene").description == "makes a protein"
    assert OpenBase.open(folder).vectors.is_complete


@pytest.mark.parametrize("name", ["keys.bin", "vectors.bin", "rows", "embedder.json"])
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "altered"])
def test_vectors_are_computed_anew(folder, name, cut):
    store = OpenBase.open(folder).vectors.store
    said = clew.open(folder).ask("long fingers", "vector_search", with_relations=False).candidates
    (rows,) = rows_files(store.place)
    file = {"rows": rows, "embedder.json": folder / "vectors" / name}.get(name, store.place / name)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if cut else bytes([whole[0] ^ 1]) + whole[1:])
    assert check(folder)
    repair(folder)
    assert check(folder) == []
    if name != "embedder.json":  # which embedder it was is lost with it
        assert clew.open(folder).ask("long fingers", "vector_search", with_relations=False).candidates == said


@pytest.mark.parametrize("name", ["nodes.arrow", "manifest.json"])
def test_damaged_data_need_their_sources(folder, name):
    place = folder if name == "manifest.json" else folder / read_manifest(folder).generation
    (place / name).write_bytes((place / name).read_bytes()[:-9])
    with pytest.raises(CorruptError, match="from its sources"):
        repair(folder)


@pytest.mark.parametrize("name", ["nodes.arrow", "manifest.json", "extracted"])
def test_a_base_of_documents_is_built_anew_from_them(tmp_path, name):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Alpha\n\nThe price of Beta is 1200 euro.\n")
    folder = tmp_path / "kb"
    build_documents([tmp_path / "notes"], folder)
    before = content(folder)
    if name == "extracted":
        (kept,) = (folder / "extracted").iterdir()
        kept.write_text(kept.read_text().replace("1200", "7200"))
    else:
        file = folder / name if name == "manifest.json" else folder / read_manifest(folder).generation / name
        file.write_bytes(file.read_bytes()[:-9])
    assert check(folder)
    repair(folder)
    assert check(folder) == []
    build_documents([tmp_path / "notes"], folder)
    assert content(folder) == before


def test_a_sound_base_is_left_alone_and_none_is_none(folder, tmp_path):
    created = json.loads((folder / "manifest.json").read_text())
    assert repair(folder).done == ()
    assert json.loads((folder / "manifest.json").read_text()) == created
    with pytest.raises(NotFoundError):
        repair(tmp_path / "nowhere")


def test_what_was_learned_is_checked(folder):
    taught = (Taught("who has § disease §", (Move("has_phenotype", "in"),)),)
    keep_taught(folder, taught)
    file = folder / LEARNED
    assert read_taught(folder) == taught
    assert check(folder) == []
    file.write_text(file.read_text().replace("who", "why"))
    assert LEARNED in check(folder)[0]
    with pytest.raises(CorruptError):
        read_taught(folder)
    repair(folder)
    assert not file.exists()
    assert read_taught(folder) == ()


CONFIRMATIONS = [Confirmed(question=f"What is {number}?", answers=["MFS"]) for number in range(3)]


@pytest.fixture
def taught(folder) -> Path:
    """A base with every file that it can be taught by."""
    for confirmed in CONFIRMATIONS:
        keep_confirmed(folder, confirmed)
    keep_taught(folder, [Taught("what is []", (Move("associated_with", "out"),))])
    keep_tuned(folder, Tuned(method="bm25", options={"k": 5}, before=0.1, after=0.2, questions=9))
    keep_asked(folder, [AskedFor(about="gene", way="reached", questions=["what is []"])])
    Fitted("1", {"gene": np.ones(DIMENSION, dtype=np.float32)}).keep(folder)
    assert {path.name for path in folder.iterdir()} >= set(BESIDE)
    assert check(folder) == []
    return folder


@pytest.mark.parametrize("name", BESIDE)
def test_any_altered_byte_of_what_a_base_was_taught_is_found(taught, name):
    whole = (taught / name).read_bytes()
    altered = [whole[:spot] + bytes([whole[spot] ^ 1]) + whole[spot + 1 :] for spot in range(min(len(whole), 300))]
    altered += [bytes([first]) + whole[1:] for first in b"{[ \n"]
    altered += [whole[:spot] for spot in {0, 1, 64, 65, len(whole) // 2, len(whole) - 1}] + [whole + b"\n"]
    for content in altered:
        (taught / name).write_bytes(content)
        assert [name in problem for problem in check(taught)] == [True], content[:80]


@pytest.mark.parametrize("name", sorted({*BESIDE} - {FITTED}))
def test_files_of_older_versions_without_checksums_still_open(taught, name):
    (taught / name).write_bytes((taught / name).read_bytes().partition(b"\n")[2])
    assert check(taught) == []
    assert (read_confirmed(taught), len(read_taught(taught)), len(read_asked(taught))) == (CONFIRMATIONS, 1, 1)
    assert read_tuned(taught) is not None


def test_altered_confirmed_answers_are_refused_and_those_that_can_be_read_are_kept(taught):
    file = taught / CONFIRMED
    file.write_bytes(file.read_bytes().replace(b'{"question":"What is 1', b'{"question:"What is 1'))
    with pytest.raises(CorruptError, match="clew repair"):
        read_confirmed(taught)
    with pytest.raises(CorruptError, match="clew repair"):
        keep_confirmed(taught, CONFIRMATIONS[0])
    report = repair(taught)
    assert report.done[0].startswith(f"{CONFIRMED}: kept 2 confirmed answers, lost 1")
    assert read_confirmed(taught) == [CONFIRMATIONS[0], CONFIRMATIONS[2]]
    assert check(taught) == []


def test_what_a_killed_repair_left_is_removed_by_the_next_one(folder):
    (folder / ".clew-stage-0123456789abcdef").mkdir()
    (folder / LOCK).write_text(".clew-stage-0123456789abcdef\n")
    assert repair(folder).done == ()
    assert not (folder / ".clew-stage-0123456789abcdef").exists()


def test_a_repair_that_was_killed_before_the_vectors_is_finished_by_the_next_one(folder):
    OpenBase.switch_embedder(folder, "hash")
    before, (rows,) = content(folder), (folder / "vectors").rglob("rows-*")
    rows.rename(rows.with_name("rows-clew-data-0123456789abcdef.npy"))
    assert vectors_are_behind(folder)
    assert "0 vectors" in repair(folder).done[0]
    assert not vectors_are_behind(folder)
    rows.with_name("rows-clew-data-0123456789abcdef.npy").write_bytes(rows.read_bytes())
    assert repair(folder).done == ()
    assert [file.name for file in (folder / "vectors").rglob("rows-*")] == [rows.name]
    assert content(folder) == before


def test_a_repaired_base_is_updated_like_any_other(folder):
    (folder / read_manifest(folder).generation / "by_type.npy").unlink()
    repair(folder)
    update(folder, Delta(tables([("N", "gene", "new", [], "text")], [])))
    assert len(ArrayKnowledgeBase.open(folder)) == len(NODES) + 1
    assert check(folder) == []
