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
LAYERS = [
    {"core"},
    {"kb", "models"},
    {"index"},
    {"postgres"},
    {"building"},
    {"remote_bases"},
    {"toolbox"},
    {"views"},
    {"queries", "curation"},
    {"reading"},
    {"roles"},
    {"documents", "methods"},
    {"datasets"},
    {"training", "synthesis"},
    {"evaluation"},
    {"exploring", "evidence_drawing", "conversation", "diagnosis", "repairing", "joining"},
    {"api"},
    {"web", "client", "adapters"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def imported_layers(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            names = [node.module or ""]
            if node.module == "clew":
                names = [f"clew.{alias.name}" for alias in node.names if alias.name != "__version__"]
        found |= {name.split(".")[1] for name in names if name.startswith("clew.")}
    return found


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_point_down(file: Path):
    layer = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    if layer in {"__init__", "__main__"}:
        return
    assert layer in RANK, f"{layer} has no place in the layers"
    for other in imported_layers(file) - {layer}:
        assert other in RANK, f"{file}: {other} is no layer"
        assert RANK[other] < RANK[layer], f"{file}: {layer} must not import {other}"


HOMES = sorted(path.name for path in (SOURCE / "methods").iterdir() if path.is_dir() and path.name != "__pycache__")


@pytest.mark.parametrize("home", HOMES)
def test_the_homes_of_methods_do_not_import_each_other(home: str):
    """What two of them need moves down."""
    for file in (SOURCE / "methods" / home).rglob("*.py"):
        imported = set(re.findall(r"clew\.methods\.(\w+)\.", file.read_text("utf-8")))
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
        ("clew.api, clew.methods.auto, clew.methods.focus.focus_plus", {"pydantic", "importlib.metadata", "numpy.ma"}),
        (
            "clew.cli.ask, clew.methods.auto",
            {"rich", "sqlite3", "html", "clew.models.wrappers"},
        ),
        ("clew.methods.auto, clew.methods.focus.focus_plus", {"clew.kb.sparql", "clew.kb.cypher", "clew.roles.read"}),
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
