"""A pronoun is read as the name it stands for, where an earlier sentence says it."""

import pytest

from clew.answering.methods import catalog
from clew.answering.reading.follow_ups import with_names
from clew.models.scripted import ScriptedModel
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import tables


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pronouns") / "tiny.kb"
    build(tables(), folder)
    return OpenBase.open(folder, embedder="hash")


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("Marfan syndrome runs in families. Which gene is associated with it?",
         "Marfan syndrome runs in families. Which gene is associated with Marfan syndrome?"),
        ("I read about FBN1. What are its diseases?", "I read about FBN1. What are FBN1's diseases?"),
        ("Which gene is associated with Marfan syndrome and what is its text?",
         "Which gene is associated with Marfan syndrome and what is its text?"),
        ("It rains. Which gene is associated with it?", "It rains. Which gene is associated with it?"),
        ("FBN1 is a gene. Does Marfan syndrome have it?", "FBN1 is a gene. Does Marfan syndrome have it?"),
    ],
)  # fmt: skip
def test_names_stand_in_for_pronouns_of_later_sentences(tools, question, read):
    assert with_names(question, tools.names.mentions) == read


@pytest.mark.parametrize(("pronouns", "sent"), [(True, "associated with Marfan syndrome?"), (False, "with it?")])
def test_four_step_focus_has_them_replaced_before_it_asks_for_triplets(tools, pronouns, sent):
    question = "I read about Marfan syndrome. Which gene is associated with it?"
    model = ScriptedModel.saying("{}")
    method = catalog.create("four_step_focus", {"pronouns": pronouns, "reranker": "none"})
    answer = catalog.ask(method, question, tools.with_model(model))
    assert sent in model.asked[0].messages[-1].content
    assert answer.question == question
