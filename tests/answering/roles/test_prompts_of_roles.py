"""What is sent for the prompts that are no paper's, and that every prompt file was reviewed as it is sent."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

import clew
from clew.answering.reading.vocabulary import Vocabulary
from clew.answering.roles.formulate import BaseDescription, Formulator
from clew.answering.roles.read import ModelReader
from clew.answering.roles.wordings import Exchange, rewrite, word
from clew.core.errors import ModelError
from clew.core.roles import Reading, Source
from clew.lab.training.own_base import wanted_of
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import tables
from prompts_sent import GOLDEN, Sends, matches_golden

CASES = {
    "query": lambda model, tools: Formulator(model, BaseDescription(tools.kb, tools.names)).formulate(
        "Which disease has Long fingers?"
    ),
    "read_written": lambda model, _: ModelReader(model).read(
        [Reading("How long is it?", (Source("It is 3 m long."),))]
    ),
    "rewrite": lambda model, _: rewrite(model, [Exchange("Who wrote Emma?", "Jane Austen.")], "And Persuasion?"),
    "wordings": lambda model, tools: word(
        model, "- gene", wanted_of(Vocabulary(tools.kb.schema))[:3], lambda _done, _all: None
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_sent(name, tmp_path):
    model = Sends("{}")
    build(tables(), tmp_path / "tiny.kb")
    with suppress(ModelError):  # a reply of nothing is of no use to some
        CASES[name](model, OpenBase.open(tmp_path / "tiny.kb"))
    assert matches_golden(f"roles/{name}", model.sent)


PROMPTS = [
    file
    for file in sorted(Path(clew.__file__).parent.rglob("*.txt"))
    if re.search(r"\$\{?[a-z]", file.read_text("utf-8"))
]


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda file: file.stem)
def test_every_prompt_file_of_the_package_is_found_in_a_file_of_what_is_sent(prompt):
    fixed = [part.strip() for part in re.split(r"\$\{?\w+\}?|\n", prompt.read_text("utf-8").replace("$$", "$"))]
    fixed = [part for part in fixed if len(part) > 12]
    reviewed = [file.read_text("utf-8") for file in GOLDEN.rglob("*.txt")]
    assert fixed
    assert any(all(part in sent for part in fixed) for sent in reviewed)
