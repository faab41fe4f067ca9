"""The Python of README and docs/ runs as it stands; what cannot run here says why.

A block that needs a language model, a network or a large data set has `<!-- not run: reason -->` on the line before it.
Blocks of one document run in order and share their names, in a folder with the sources and the base of the tiny graph.
"""

import ast
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import clew
from conftest import EDGE_SCHEMA, EDGES, NODE_SCHEMA, NODES, ROOT

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)")
MARK = re.compile(r"<!-- *not run\b.*")
REASON = re.compile(r"<!-- not run: (\w[^<>]*\w) -->")
QUESTIONS = [
    {"id": "1", "question": "Which gene is associated with Marfan syndrome?", "answers": ["FBN1"]},
    {"id": "2", "question": "Which disease has more than five digits on a hand?", "answers": ["BBS"]},
]


@dataclass(frozen=True)
class Block:
    """A fenced block of Python, the number of its first line, and the mark before it."""

    document: Path
    line: int
    code: str
    mark: str = ""

    def compiled(self):
        """With the line numbers of the document, so that an error says where it is."""
        return compile("\n" * (self.line - 1) + self.code, str(self.document), "exec")


def blocks(document: Path) -> list[Block]:
    found, before, lines = [], "", iter(enumerate(document.read_text("utf-8").splitlines(), start=1))
    for number, line in lines:
        if fence := FENCE.match(line):
            indent, held = fence["indent"], []
            for _, inside in lines:
                if inside.startswith(f"{indent}```"):
                    break
                held.append(inside.removeprefix(indent))
            if fence["language"] == "python":
                found.append(Block(document, number + 1, "\n".join(held) + "\n", before if MARK.match(before) else ""))
            else:
                assert not MARK.match(before), f"{document}:{number}: a mark stands before a block that is not Python"
            before = ""
        elif line.strip():
            assert not MARK.match(before), f"{document}:{number}: a mark stands before something that is no block"
            before = line.strip()
    assert not MARK.match(before), f"{document}: a mark stands at the end"
    return found


def to_run(document: Path) -> list[Block]:
    return [block for block in blocks(document) if not block.mark]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """What the documents take as given: nodes.jsonl, edges.tsv, medicine.kb and questions.jsonl."""
    folder = tmp_path_factory.mktemp("documentation")
    nodes = [dict(zip(NODE_SCHEMA.names, node, strict=True)) for node in NODES]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    edges = [EDGE_SCHEMA.names, *([value or "" for value in edge] for edge in EDGES)]
    (folder / "edges.tsv").write_text("".join("\t".join(edge) + "\n" for edge in edges))
    (folder / "questions.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "medicine.kb")
    return folder


def named(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if to_run(document)], ids=named)
def test_python_in_the_documents_runs(document, prepared, tmp_path, monkeypatch):
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    names: dict[str, object] = {"__name__": "documentation"}
    for block in to_run(document):
        exec(block.compiled(), names)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_python_that_is_not_run_says_why_and_names_what_exists(document):
    for block in blocks(document):
        if block.mark:
            where = f"{document}:{block.line}"
            assert REASON.fullmatch(block.mark), f"{where}: write <!-- not run: reason -->, not {block.mark}"
            block.compiled()
            for name in public_names(block.code):
                assert name in clew.__all__, f"{where}: there is no clew.{name}"


def public_names(code: str) -> set[str]:
    """What a block takes from `clew` itself."""
    return {
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "clew"
    }


def test_the_documents_have_python_that_runs():
    assert {document.name for document in DOCUMENTS if to_run(document)} >= {
        "README.md",
        "architecture.md",
        "evaluation.md",
        "sources.md",
    }


@pytest.mark.parametrize("mark", ["<!-- not run -->", "<!-- not run: -->", "<!-- not run: ? -->"])
def test_a_mark_without_a_reason_is_none(mark):
    assert MARK.match(mark)
    assert not REASON.fullmatch(mark)


def test_a_block_is_found_with_its_line_its_mark_and_without_its_indent(tmp_path):
    document = tmp_path / "some.md"
    document.write_text(
        "Text\n\n```sh\nclew\n```\n\n- item\n\n  ```python\n  if 1:\n      pass\n  ```\n\n"
        "<!-- not run: needs a network -->\n```python\nx\n```\n"
    )
    first, second = blocks(document)
    assert (first.line, first.code, first.mark) == (10, "if 1:\n    pass\n", "")
    assert (second.line, second.mark) == (16, "<!-- not run: needs a network -->")


def test_every_test_that_a_document_names_is_there():
    named = [
        (file, test)
        for document in ROOT.glob("docs/**/*.md")
        for file, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", document.read_text("utf-8"))
    ]
    assert named
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file() or f"def {test}" not in (ROOT / file).read_text("utf-8")
    ]
    assert missing == []


def test_every_python_file_that_a_document_names_is_there():
    files = {file.relative_to(ROOT).as_posix() for file in ROOT.glob("*/**/*.py") if ".venv" not in file.parts}
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for named in re.findall(r"`([a-z_]+/[a-z_/]*\.py)`", document.read_text("utf-8")):
            assert any(f"/{file}".endswith(f"/{named}") for file in files), f"{document.name} names {named}"
