"""Imports point down the layers."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.cli import COMMANDS

SOURCE = Path(__file__).parent.parent / "src" / "clew"
ROOMS = {
    "core": [],
    "models": [],
    "store": [
        {"graph", "sources", "remote"},
        {"index"},
        {"postgres"},
        {"building", "confirmed"},
        {"remote_bases"},
        {"open_base"},
        {"group_views", "curation", "base_union"},
    ],
    "documents": [],
    "answering": [
        {"queries"},
        {"reading"},
        {"roles"},
        {"methods"},
        {"exploring", "evidence_drawing", "follow_ups", "conversation"},
    ],
    "lab": [{"datasets"}, {"training", "synthesis"}, {"evaluation"}],
    "api": [],
    "server": [],
    "cli": [],
}
"""Rooms from the bottom to the top, and the layers inside those that have several."""


def rank(module: str) -> tuple[int, int]:
    """Return the position of a module's room, and of its layer in the room."""
    room, _, inside = module.removeprefix("clew.").partition(".")
    assert room in ROOMS, f"{module}: {room} is not a room"
    layers = ROOMS[room]
    if not layers or not inside:
        return list(ROOMS).index(room), 0
    found = [place for place, layer in enumerate(layers) if inside.split(".")[0] in layer]
    assert found, f"{module} has no layer in {room}"
    return list(ROOMS).index(room), found[0]


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            is_package = (SOURCE.parent / (node.module or "").replace(".", "/")).is_dir()
            names |= {f"{node.module}.{alias.name}" if is_package else node.module or "" for alias in node.names}
    return {name for name in names if name.startswith("clew.")}


def test_there_are_eight_rooms_and_the_api():
    inside = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert inside == {*ROOMS, "__init__", "__main__", "py.typed"}


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_point_down(file: Path):
    module = ".".join(("clew", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    if module in {"clew", "clew.__main__"}:
        return
    for other in imported(file):
        assert rank(other) <= rank(module), f"{file}: {module} must not import {other}"


HOMES = sorted(
    path.name for path in (SOURCE / "answering" / "methods").iterdir() if path.is_dir() and path.name != "__pycache__"
)


@pytest.mark.parametrize("home", HOMES)
def test_the_homes_of_methods_do_not_import_each_other(home: str):
    """What two of them need moves down."""
    for file in (SOURCE / "answering" / "methods" / home).rglob("*.py"):
        imported = set(re.findall(r"clew\.answering\.methods\.(\w+)\.", file.read_text("utf-8")))
        assert not imported & (set(HOMES) - {home}), f"{file} imports from the home of another method"


def test_there_are_no_cycles_between_modules():
    graph = {}
    for file in SOURCE.rglob("*.py"):
        name = ".".join(("clew", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        graph[name] = {
            target
            for node in ast.parse(file.read_text("utf-8")).body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("clew")
            for alias in node.names
            for target in (f"{node.module}.{alias.name}", str(node.module))
        }
    state: dict[str, int] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        state[name] = 1
        for other in sorted(graph[name] & graph.keys() - {name}):
            assert state.get(other) != 1, " → ".join((*path, name, other))
            if other not in state:
                visit(other, (*path, name))
        state[name] = 2

    for name in sorted(graph):
        if name not in state:
            visit(name, ())


@pytest.mark.parametrize(
    ("modules", "spared"),
    [
        ("clew", {"numpy", "pyarrow", "typer", "dataclasses"}),
        (
            "clew.api, clew.answering.methods.auto, clew.answering.methods.focus.focus_plus",
            {"pydantic", "importlib.metadata", "numpy.ma"},
        ),
        (
            "clew.cli.ask, clew.answering.methods.auto",
            {"rich", "sqlite3", "html", "clew.models.wrappers"},
        ),
        (
            "clew.answering.methods.auto, clew.answering.methods.focus.focus_plus",
            {"clew.store.remote.sparql", "clew.store.remote.cypher", "clew.answering.roles.read"},
        ),
    ],
)
def test_a_question_imports_only_what_it_needs(modules: str, spared: set[str]):
    """Imports cost more than most questions: see benchmarks/cold_start.py."""
    command = [sys.executable, "-c", f"import sys, {modules}; print(*sys.modules)"]
    assert not spared & set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_question_does_not_import_pandas(tmp_path: Path):
    """Where it is installed, as here, pyarrow imports it for little things, which takes a fifth of a second."""
    nodes = [{"key": "emma", "name": "Emma", "type": "novel", "text": "A novel of manners."}]
    nodes.append({"key": "austen", "name": "Jane Austen", "type": "person"})
    clew.build(clew.from_tables(nodes, [{"head": "austen", "relation": "wrote", "tail": "emma"}]), tmp_path / "b.kb")
    program = (
        f"import sys, clew; print(clew.open({str(tmp_path / 'b.kb')!r}).ask('Who wrote Emma?').text, *sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "Jane Austen" in said
    assert "pandas" not in said.split()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], *([*names.split(), "--help"] for names in COMMANDS)])
def test_help_imports_no_library(arguments: list[str]):
    """Help must not cost more than `import numpy`; what a command needs is imported when it runs."""
    program = f"import sys; from clew import cli; sys.argv = ['clew', *{arguments}]"
    program += "\ntry: cli.main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "pyarrow", "rich", "httpx", "onnxruntime"} & set(shown.split())
