"""Over real documents the walk and the close reading find at least what plain hybrid search finds."""

import json
import re

import pytest

import clew
from clew.core.types import Passage
from clew.documents.building import build_documents

ASKED = 15
FIRST = 10


@pytest.fixture(scope="module")
def base(data, tmp_path_factory):
    folder = data / "docs_dev"
    if not folder.is_dir():
        pytest.skip("the documents for development are not here")
    kb = tmp_path_factory.mktemp("docs") / "docs.kb"
    build_documents([folder / "docs"], kb)
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


@pytest.mark.parametrize(("kind", "least"), [("single", 0.7), ("multi", 0.3)])
def test_no_worse_than_plain_hybrid_search(base, data, kind, least):
    lines = (data / "docs_dev" / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [question for question in map(json.loads, lines) if question["kind"] == kind]
    asked = asked[:: len(asked) // ASKED][:ASKED]
    plain = clew.methods.KnowledgeGraphPrompting(traverser="none", closely=0)
    found = [shows(base.ask(question["question"]), question["gold"]) for question in asked]
    beside = [shows(base.ask(question["question"], plain), question["gold"]) for question in asked]
    assert sum(found) >= sum(beside) - 1  # of fifteen: one may be lost by chance
    assert sum(found) >= least * len(asked)
