"""A small model writes no answers over documents: they are those without a model."""

import json

import pytest

import clew
from clew.models.scripted import ScriptedModel

QUESTION = "What raises the tides of the sea?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    files = tmp_path_factory.mktemp("tides")
    (files / "tides.md").write_text("# Tides\n\nThe moon raises the tides of the sea twice a day.\n")
    (files / "moon.md").write_text("# Moon\n\nThe moon is 384,400 km away from the earth.\n")
    clew.build([files], files / "tides.kb")
    return files / "tides.kb"


def said(text, found=True):
    sentences = [{"text": text, "passages": [1]}] if found else []
    return json.dumps({"thinking": "", "sentences": sentences, "found": found, "missing": "" if found else text})


def asked(folder, name, reply):
    return clew.open(folder, model=ScriptedModel(lambda _: reply, name)).ask(QUESTION)


def test_a_small_model_is_not_asked_to_write(folder):
    plain, small = clew.open(folder).ask(QUESTION), asked(folder, "tiny-1.5b", said("The wind raises them."))
    assert (small.text, small.certainty, small.evidence) == (plain.text, plain.certainty, plain.evidence)


def test_a_large_model_may_say_what_is_only_marked(folder):
    large = asked(folder, "huge-70b", said("The wind raises the waves of lakes in autumn."))
    assert "its source may not say this" in large.text
