"""What is published holds what it needs and says what it is; scripts/release.py tries it whole."""

import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import PurePosixPath

import clew
from clew.cli import COMMANDS
from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_every_file_of_the_package_is_published():
    source = ROOT / "src" / "clew"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["clew"]
    files = [
        file.relative_to(source) for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    ]
    forgotten = [
        str(file)
        for file in files
        if file.suffix != ".py" and not any(_matches(PurePosixPath(file.as_posix()), pattern) for pattern in patterns)
    ]
    assert not forgotten
    for file in files:
        assert (source / file.parent / "__init__.py").exists() or file.suffix != ".py", f"{file} is in no package"


def _matches(file: PurePosixPath, pattern: str) -> bool:
    return fnmatch(file.name, pattern.removeprefix("**/")) if pattern.startswith("**/") else str(file) == pattern


def test_name_version_and_pythons_agree():
    project = PROJECT["project"]
    assert project["name"] == "clew-kb"
    assert project["scripts"] == {"clew": "clew.cli:command", "clew-kb": "clew.cli:command"}
    assert project["version"] == clew.__version__
    pythons = [name for name in project["classifiers"] if name.startswith("Programming Language :: Python :: 3.")]
    assert [name.rpartition(" ")[2] for name in pythons] == ["3.11", "3.12", "3.13"]


def test_messages_name_the_distribution():
    assert "pip install 'clew-kb[web]'" in str(clew.errors.MissingExtraError("fastapi", "web"))


def test_the_registry_of_agents_is_told_what_the_package_is():
    told, project = json.loads((ROOT / "server.json").read_text("utf-8")), PROJECT["project"]
    (package,) = told["packages"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", told["name"])
    assert len(told["description"]) <= 100, "the registry takes no longer one"
    assert f"<!-- mcp-name: {told['name']} -->" in (ROOT / "README.md").read_text("utf-8"), "how it knows the owner"
    assert told["version"] == package["version"] == project["version"]
    assert (package["registryType"], package["identifier"]) == ("pypi", project["name"])
    assert package["identifier"] in project["scripts"], "uvx starts what is called like the package"
    (extra,) = package["runtimeArguments"]
    assert extra["value"] == f"{project['name']}[web]=={project['version']}"
    command, base = package["packageArguments"]
    assert command["value"] in COMMANDS
    assert base["isRequired"]
    assert base["isRepeated"]
