"""Over real documents the walk and the close reading find at least what plain hybrid search finds."""

import json
import re

import pytest

import clew
from clew.core.types import Passage
from clew.documents.building import build_documents
from repeats import repeats

ASKED = repeats(10, 15)
SMALLEST = repeats(16, 26)
"""Number of documents, the smallest first."""
FIRST = 10


@pytest.fixture(scope="module")
def documents(data):
    if not (data / "docs_dev").is_dir():
        pytest.skip("the documents for development are not here")
    return sorted((data / "docs_dev" / "docs").iterdir(), key=lambda file: file.stat().st_size)[:SMALLEST]


@pytest.fixture(scope="module")
def base(documents, tmp_path_factory):
    kb = tmp_path_factory.mktemp("docs") / "docs.kb"
    build_documents(documents, kb)
    return clew.open(kb)


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def shows(answer, gold):
    """Whether every gold quotation stands in a text shown among the first answers."""
    pieces = [piece for one in answer.candidates[:FIRST] for piece in one.evidence if isinstance(piece, Passage)]
    texts = [(piece.file, set(words(piece.text))) for piece in pieces]

    def is_shown(quote):
        wanted = words(quote["quote"])
        return any(
            (file or "").endswith(quote["file"]) and sum(word in text for word in wanted) >= 0.6 * len(wanted)
            for file, text in texts
        )

    return all(map(is_shown, gold))


@pytest.mark.long
@pytest.mark.parametrize(("kind", "least"), [("single", 0.7), ("multi", 0.3)])
def test_no_worse_than_plain_hybrid_search(base, documents, data, kind, least):
    lines = (data / "docs_dev" / "questions.jsonl").read_text("utf-8").splitlines()
    names = {file.name for file in documents}
    asked = [question for question in map(json.loads, lines) if question["kind"] == kind]
    asked = [question for question in asked if names.issuperset(quote["file"] for quote in question["gold"])]
    asked = asked[:: max(1, len(asked) // ASKED)][:ASKED]
    assert len(asked) > 5
    plain = clew.methods.KnowledgeGraphPrompting(traverser="none", closely=0)
    found = [shows(base.ask(question["question"]), question["gold"]) for question in asked]
    beside = [shows(base.ask(question["question"], plain), question["gold"]) for question in asked]
    assert sum(found) >= sum(beside) - 1, (found, beside)  # one may be lost by chance
    assert sum(found) >= least * len(asked), found
