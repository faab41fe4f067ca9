"""A base that was altered never answers, whoever altered it and however it was sealed again."""

import json
import os
import random
from contextlib import suppress
from pathlib import Path
from shutil import copytree, rmtree

import pytest

import clew
from clew.core.errors import CorruptError
from clew.store.building import build, check
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import seal
from conftest import tables

QUESTION = "Which disease has long fingers?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tables(), tmp_path / "kb")
    return tmp_path / "kb"


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(folder):
    said = str(clew.open(folder).ask(QUESTION).candidates)
    pick = random.Random(5)
    sound = folder.with_name("sound")
    copytree(folder, sound)
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size):
        whole = file.read_bytes()
        for place in {0, pick.randrange(len(whole))}:
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << pick.randrange(8)]) + whole[place + 1 :])
            assert check(folder), file
            with suppress(CorruptError):
                assert str(clew.open(folder).ask(QUESTION).candidates) == said
            rmtree(folder)  # what was found altered may have been computed anew
            copytree(sound, folder)


def test_a_file_is_read_whole_once_as_long_as_nobody_writes_to_it(folder, monkeypatch):
    kb = ArrayKnowledgeBase.open(folder)
    monkeypatch.setattr("clew.store.graph.manifest.file_sha256", lambda file: pytest.fail(f"{file} was read again"))
    ArrayKnowledgeBase.open(folder)
    monkeypatch.undo()
    file = kb.generation / "nodes.arrow"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    os.utime(file, ns=(0, 0))
    with pytest.raises(CorruptError, match=r"nodes\.arrow was altered"):
        ArrayKnowledgeBase.open(folder)


GONE = "(nothing at all)"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *(("format", value) for value in (0, -1, True, 1.0, "1", None)),
        *(("generation", value) for value in (GONE, 3, [])),
        *(("files", value) for value in (GONE, [], {}, {"nodes.arrow": 3}, {"a": {}}, {"a": {"size": True}})),
        *(("facts", value) for value in (GONE, [], {}, 7)),
        *(("created", value) for value in (GONE, 4)),
        *(("facts nodes", value) for value in (GONE, 99_999, -1, "8", 8.0, True)),
        *(("facts edges", value) for value in (GONE, 77, -1)),
        *(("facts schema", value) for value in (GONE, {}, [])),
        *(("facts schema node_types", value) for value in ([], [{}], [{"name": "x", "count": 8, "attributes": []}], 3)),
        *(("facts schema relations", value) for value in ([], [{}], [1], None)),
        *(("facts schema attribute_types", value) for value in (GONE, 3)),
        *(("facts notes", value) for value in (GONE, 5)),
    ],
    ids=str,
)
def test_a_manifest_that_somebody_sealed_again_is_refused_in_plain_words(folder, place, value):
    file = folder / "manifest.json"
    raw = json.loads(file.read_text())
    raw.pop("digest")
    *path, last = place.split()
    part = raw
    for name in path:
        part = part[name]
    if value is GONE:
        del part[last]
    else:
        part[last] = value
    file.write_text(json.dumps({**raw, "digest": seal(raw)}))
    assert len(check(folder)) == 1
    with pytest.raises(CorruptError):
        clew.open(folder).ask(QUESTION, "bm25")


def test_arrays_that_somebody_sealed_again_never_end_the_process(folder):
    """Offsets of texts that lead out of their file, and arrays that are too short."""
    kb = ArrayKnowledgeBase.open(folder)
    pick = random.Random(2)
    names = [name for name in kb.manifest.files if name.startswith(("nodes", "types", "graph/out"))]
    whole = {name: (kb.generation / name).read_bytes() for name in names}
    manifest = (folder / "manifest.json").read_text()
    for name in names:
        for _ in range(6):
            content = bytearray(whole[name])
            for _ in range(4):
                content[pick.randrange(len(content))] = pick.randrange(256)
            (kb.generation / name).write_bytes(content)
            _sealed_again(folder, name, bytes(content))
            assert os.waitstatus_to_exitcode(_asked_apart(folder)) == 0, name
        (kb.generation / name).write_bytes(whole[name])
        (folder / "manifest.json").write_text(manifest)


def _sealed_again(folder: Path, name: str, content: bytes) -> None:
    import hashlib

    raw = json.loads((folder / "manifest.json").read_text())
    raw.pop("digest")
    raw["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps({**raw, "digest": seal(raw)}))


def _asked_apart(folder: Path) -> int:
    """How a process ends that asks the base; an error of Python is no end of the process."""
    child = os.fork()
    if not child:
        try:
            clew.open(folder).ask(QUESTION, "bm25")
            check(folder)
        except Exception:
            pass
        os._exit(0)
    return os.waitpid(child, 0)[1]
