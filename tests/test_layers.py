"""Imports point down the layers."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "clew"
LAYERS = [
    {"core"},
    {"kb", "models"},
    {"index"},
    {"toolbox", "building"},
    {"queries"},
    {"reading"},
    {"roles"},
    {"documents", "methods"},
    {"datasets", "training", "synthesis"},
    {"evaluation"},
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
