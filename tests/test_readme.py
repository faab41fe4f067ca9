"""README's library example runs as it stands."""

import json
import re
from pathlib import Path

import clew
from clew.answering.methods.catalog import METHODS, method_class
from clew.models.scripted import ScriptedModel

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_the_ten_lines_work(tmp_path, monkeypatch, capsys, tiny_tables):
    code, with_model = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(code.strip().splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    nodes, edges = tiny_tables.nodes[0].table.to_pylist(), tiny_tables.edges[0].table.to_pylist()
    Path("nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    lines = ["\t".join(edges[0]), *("\t".join(value or "" for value in edge.values()) for edge in edges)]
    Path("edges.tsv").write_text("\n".join(lines) + "\n")
    names = {"scripted": ScriptedModel.saying("1")}
    exec(compile(code, str(README), "exec"), names)
    assert "BBS2" in capsys.readouterr().out
    exec(compile(with_model.replace('"openai:gpt-4.1-mini"', "scripted"), str(README), "exec"), names)
    assert "calls" in capsys.readouterr().out


def test_every_method_of_the_catalogue_is_in_the_table():
    listed = set(
        re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "reference" / "methods.md").read_text("utf-8"), re.MULTILINE)
    )
    assert listed == set(METHODS), "the table of docs/reference/methods.md has one row for each method"


def test_every_method_of_the_catalogue_is_public():
    classes = {"Method", *(method_class(name).__name__ for name in METHODS)}
    assert {*clew.methods.__all__} == classes, "methods/__init__.py names each class in __all__ and imports it"
    assert all(getattr(clew.answering.methods, method_class(name).__name__) is method_class(name) for name in METHODS)
