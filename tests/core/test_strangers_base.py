"""A base comes from anywhere: it never makes Clew speak to a host or touch a file outside of it."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clew.answering.queries.relation_paths import Move
from clew.answering.reading.path_ranker import Taught, keep_taught
from clew.core.errors import CorruptError, StorageError, UntrustedEmbedder
from clew.documents.building import build_documents
from clew.models.embedding.opening import HashEmbedder
from clew.store.building import build, check, update
from clew.store.confirmed import Confirmed, keep_confirmed
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.index.vector_store import VectorStore
from clew.store.open_base import OpenBase
from clew.store.sources.delta import Delta
from conftest import NODES, tables

KEY = "sk-the-users-own-key"


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str | None]]]:
    """An embeddings endpoint that keeps the key of everything it is sent."""
    seen: list[str | None] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(self.headers.get("Authorization"))
            rows = [{"index": place, "embedding": [1.0] * 8} for place in range(len(body["input"]))]
            reply = json.dumps({"data": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1#m", seen
    server.shutdown()
    server.server_close()


def poisoned(folder: Path, spec: str) -> Path:
    build(tables(), folder)
    (folder / "vectors").mkdir()
    told = {"name": f"m@{spec.removeprefix('http://').partition('#')[0]}", "dimension": 8, "spec": spec}
    (folder / "vectors" / "embedder.json").write_text(json.dumps(told))
    return folder


def clew(*arguments: str | Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "HOME": str(home), "CLEW_MODEL_KEY": KEY, "OPENAI_API_KEY": KEY, **environment}
    command = [sys.executable, "-m", "clew", *map(str, arguments)]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("command", [("ask",), ("ask", "-m", "vector_search"), ("find",)], ids=" ".join)
def test_a_host_that_only_the_base_names_is_sent_nothing(tmp_path, stranger, command):
    spec, seen = stranger
    base = poisoned(tmp_path / "kb", spec)
    done = clew(command[0], base, "What is long and slender?", *command[1:], home=tmp_path)
    assert (done.returncode, seen) == (2, [])
    assert "only the base names" in done.stderr
    assert f"--embedder {spec}" in done.stderr
    assert "CLEW_EMBEDDER" in done.stderr


def test_methods_that_need_no_vectors_answer_all_the_same(tmp_path, stranger):
    spec, seen = stranger
    done = clew("ask", poisoned(tmp_path / "kb", spec), "connective tissue", "-m", "bm25", home=tmp_path)
    assert (done.returncode, seen) == (0, [])
    assert "Marfan" in done.stdout


def test_an_embedder_that_the_user_names_is_used_and_gets_no_key_but_its_own(tmp_path, stranger):
    spec, seen = stranger
    base = poisoned(tmp_path / "kb", spec)
    for options, environment in (
        (("--embedder", spec), {}),
        ((), {"CLEW_EMBEDDER": spec}),
        ((), {"CLEW_CONFIG": str(tmp_path / "config.toml")}),
    ):
        (tmp_path / "config.toml").write_text(f'embedders = ["{spec}"]\n')
        seen.clear()
        done = clew("ask", base, "connective tissue", "-m", "vector_search", *options, home=tmp_path, **environment)
        assert done.returncode == 0, done.stderr
        assert set(seen) == {None}
    clew("ask", base, "tissue", "-m", "vector_search", "--embedder", spec, home=tmp_path, CLEW_EMBEDDER_KEY="its-own")
    assert seen[-1] == "Bearer its-own"


@pytest.mark.parametrize("spec", ["openai:text-embedding-3-small", "{folder}"])
def test_a_paid_service_or_a_folder_that_only_the_base_names_is_not_opened(tmp_path, spec):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model.onnx").write_bytes(b"not to be opened")
    base = poisoned(tmp_path / "kb", spec.format(folder=tmp_path / "folder"))
    with pytest.raises(UntrustedEmbedder):
        _ = OpenBase.open(base).vectors


def test_info_and_verify_show_what_a_base_wants(tmp_path, stranger):
    spec, seen = stranger
    base = poisoned(tmp_path / "kb", spec)
    for command in ("info", "verify"):
        assert spec in clew(command, base, home=tmp_path).stdout
        assert json.loads(clew(command, base, "--json", home=tmp_path).stdout)["embedder"] == spec
    assert seen == []


def test_an_update_of_such_a_base_sends_nothing_and_says_what_is_missing(tmp_path, stranger):
    spec, seen = stranger
    base = poisoned(tmp_path / "kb", spec)
    place = VectorStore(base / "vectors", json.loads((base / "vectors" / "embedder.json").read_text())["name"], 8, spec)
    place.place.mkdir()
    generation = ArrayKnowledgeBase.open(base).generation.name
    (place.place / f"rows-{generation}.npy").write_bytes(b"as if all vectors were there")
    report = update(base, Delta(tables(NODES[:1], [])))
    assert seen == []
    assert "no vectors" in report.notes[-1]


def test_links_in_a_base_are_not_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    build(tables(), tmp_path / "kb")
    (tmp_path / "kb" / ".clew-lock").unlink()
    (tmp_path / "kb" / ".clew-lock").symlink_to(victim)
    with pytest.raises(StorageError):
        build(tables(NODES[:2], []), tmp_path / "kb")
    (tmp_path / "kb" / "feedback.jsonl").symlink_to(victim)
    with pytest.raises(StorageError):
        keep_confirmed(tmp_path / "kb", Confirmed(question="q", answers=["a"]))
    embedder = HashEmbedder()
    store = VectorStore.open(tmp_path / "kb" / "vectors", embedder)
    store.place.mkdir(parents=True)
    (store.place / "keys.bin").symlink_to(victim)
    with pytest.raises(CorruptError, match="link"):
        VectorStore.open(tmp_path / "kb" / "vectors", embedder)
    assert victim.read_text() == "mine"


def test_a_link_in_the_place_of_a_draft_is_not_written_through(tmp_path):
    victim, folder = tmp_path / "victim", tmp_path / "kb"
    victim.write_text("mine")
    build(tables(), folder)
    OpenBase.switch_embedder(folder, "hash")
    (store,) = (place for place in (folder / "vectors").iterdir() if place.is_dir())
    for name in (".manifest.json", ".feedback_paths.json", "vectors/.embedder.json"):
        (folder / name).symlink_to(victim)
    for file in list(store.glob("rows-*")):
        (store / f".{file.name}").symlink_to(victim)
        file.unlink()
    keep_taught(folder, [Taught("q", (Move("has_phenotype", "in"),))])
    OpenBase.switch_embedder(folder, "hash")
    update(folder, Delta(tables([("N", "gene", "new", [], "text")], [])))
    assert check(folder) == []
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["vectors", "extracted"])
def test_a_folder_of_a_base_that_leads_elsewhere_is_refused_and_nothing_is_put_there(tmp_path, name):
    (tmp_path / "home").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A heading\n\nSome words about something that is written down here.\n")
    build_documents([tmp_path / "notes"], tmp_path / "kb", jobs=1)
    shutil.rmtree(tmp_path / "kb" / name, ignore_errors=True)
    (tmp_path / "kb" / name).symlink_to(tmp_path / "home")
    with pytest.raises(CorruptError, match="is a link"):
        OpenBase.switch_embedder(tmp_path / "kb", "hash") if name == "vectors" else build_documents(
            [tmp_path / "notes"], tmp_path / "kb", jobs=1
        )
    assert list((tmp_path / "home").iterdir()) == []


def test_a_generation_or_a_file_of_it_that_is_a_link_is_refused(tmp_path):
    build(tables(), tmp_path / "kb")
    generation = ArrayKnowledgeBase.open(tmp_path / "kb").generation
    generation.rename(tmp_path / "elsewhere")
    generation.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptError, match="link"):
        ArrayKnowledgeBase.open(tmp_path / "kb")
    generation.unlink()
    (tmp_path / "elsewhere").rename(generation)
    (generation / "nodes.arrow").rename(tmp_path / "nodes.arrow")
    (generation / "nodes.arrow").symlink_to(tmp_path / "nodes.arrow")
    with pytest.raises(CorruptError, match="link"):
        ArrayKnowledgeBase.open(tmp_path / "kb")
