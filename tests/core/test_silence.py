"""Nothing is written outside Clew's own folders, and nobody is told anything."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clew.store.building import build
from conftest import ROOT, TESTS, tables

SOURCE = ROOT / "src" / "clew"
TELEMETRY_SECONDS = 12
"""The runtime of the embedder looked its maker up some nine seconds after its import."""


@pytest.fixture(scope="module")
def socket_log(tmp_path_factory) -> Path:
    """A library that writes down every socket a process opens."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to watch sockets with")
    library = tmp_path_factory.mktemp("sockets") / "socket_log.so"
    source = TESTS.joinpath("socket_log.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def watched(folder: Path, library: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    home, log = folder / "home", folder / "sockets.txt"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_", "CLEW_"))}
    settings = {**kept, "HOME": str(home), "TMPDIR": str(home), "LD_PRELOAD": str(library), "SOCKET_LOG": str(log)}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not log.exists(), log.read_text()
    return done


def foreign(home: Path) -> list[str]:
    own = re.compile(r"\.cache/clew/.*")
    found = (file.relative_to(home).as_posix() for file in home.rglob("*") if file.is_file())
    return [name for name in found if not own.fullmatch(name)]


def test_the_watch_sees_a_socket(tmp_path, socket_log):
    with pytest.raises(AssertionError, match="AF_INET"):
        watched(tmp_path, socket_log, "-c", "import socket; socket.socket()")


@pytest.mark.parametrize(
    "command",
    [
        ("embed", "kb"),
        ("ask", "kb", "long fingers"),
        ("ask", "kb", "long fingers", "-m", "vector_search"),
        ("find", "kb", "a disorder of tissue"),
        ("build", "notes", "-o", "notes.kb", "--graph", "knn", "--embed", "all"),
        ("synth", "kb", "-n", "3", "--out", "made"),
        ("eval", "-q", "questions.jsonl", "--kb", "kb", "-m", "vector_search"),
        ("demo",),
    ],
    ids=" ".join,
)
def test_a_command_that_embeds_writes_and_asks_nothing_elsewhere(tmp_path, socket_log, command):
    build(tables(), tmp_path / "kb")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Alpha\n\nBeta is near Alpha.\n\n# Beta\n\nAlpha is far from Gamma.\n")
    (tmp_path / "questions.jsonl").write_text('{"question": "Which gene?", "answers": ["BBS2"]}\n')
    watched(tmp_path, socket_log, "-m", "clew", *command)
    assert foreign(tmp_path / "home") == []


def test_a_process_that_goes_on_after_embedding_stays_silent(tmp_path, socket_log):
    code = (
        "import time; from clew.models.embedding.opening import open_embedder\n"
        f"open_embedder().embed(['x'], role='query'); time.sleep({TELEMETRY_SECONDS})"
    )
    watched(tmp_path, socket_log, "-c", code)
    assert foreign(tmp_path / "home") == []


def test_onnxruntime_is_imported_in_one_place():
    importing = [file for file in SOURCE.rglob("*.py") if re.search(r"(import|from) onnxruntime", file.read_text())]
    assert [file.name for file in importing] == ["onnx_runtime.py"]
