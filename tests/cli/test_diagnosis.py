"""`clew doctor` tells how an installation is, and what it tells is what the project says."""

import json
import re
import tomllib

import pytest

from clew.cli import diagnosis
from clew.cli.diagnosis import EXTRAS, NEEDED, diagnose
from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def names(requirements):
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch, tmp_path):
    """No server, key or file of whoever runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CLEW_EMBEDDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLEW_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    for name in ("OLLAMA_HOST", "LMSTUDIO_HOST"):
        monkeypatch.setenv(name, "127.0.0.1:9")


def test_it_knows_every_dependency_and_every_extra():
    assert set(NEEDED) == names(PROJECT["dependencies"])
    assert {name: set(packages) for name, (_, packages) in EXTRAS.items()} == {
        name: names(packages) for name, packages in PROJECT["optional-dependencies"].items()
    }


def test_a_sound_installation_is_offline_and_well(run, tmp_path):
    (tmp_path / "cache" / "reader").mkdir(parents=True)
    (tmp_path / "cache" / "reader" / "kept").write_bytes(b"x" * 10)
    code, out, _ = run("doctor", "--json")
    told = json.loads(out)
    assert (code, told["problems"], told["offline"], told["models"]) == (0, [], True, {})
    assert told["embedder"]
    assert [(kept["what"], kept["bytes"]) for kept in told["caches"]] == [("reader", 10)]
    code, out, _ = run("doctor")
    assert (code, out.splitlines()[-2:]) == (0, ["nothing leaves this machine", "all is well"])


def test_what_leaves_the_machine_is_named_without_its_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("CLEW_EMBEDDER", "https://vectors.example.org/v1#nomic")
    found = diagnose()
    assert found.leaves == (
        "model openai:gpt-4o-mini: api.openai.com",
        "embedder https://vectors.example.org/v1#nomic: vectors.example.org",
    )
    assert "secret" not in str(found)


def test_what_does_not_work_is_a_problem(run, monkeypatch, tmp_path):
    monkeypatch.setattr(diagnosis, "_version", lambda package: None if package in ("rapidfuzz", "fastapi") else "1")
    monkeypatch.setattr(diagnosis, "LEAST_SPACE", 10**18)
    (tmp_path / "config.toml").write_text("[models\n")
    code, out, _ = run("doctor")
    assert code == 1
    assert "PROBLEM: rapidfuzz is missing" in out
    assert "config.toml: invalid TOML" in out
    assert "pip install 'clew-kb[web]'" in out
    (tmp_path / "config.toml").unlink()
    assert any("MB are free" in problem for problem in diagnose().problems)
