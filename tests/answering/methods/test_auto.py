"""Which method `auto` picks."""

from pathlib import Path

import pytest

import clew
from clew.answering.methods import auto
from clew.store.open_base import OpenBase

FACTS = [("Ada", "directed", "North Wind"), ("Ben", "directed", "Tin Moon"), ("Cleo", "acted_in", "Tin Moon")]


@pytest.mark.parametrize(
    ("question", "sure", "method"),
    [
        ("Who directed Tin Moon?", 1.1, "aligned_paths"),
        ("Who directed Tin Moon?", 0.0, "focus_plus"),
        ("How many films did Ada direct?", 1.1, "focus_plus"),  # paths cannot count
        ("Wer hat bei Tin Moon Regie geführt?", 1.1, "focus_plus"),
    ],
)
def test_paths_answer_uncertain_questions_over_bare_facts(
    question: str, sure: float, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "SURE", sure)
    facts = tmp_path / "facts.tsv"
    facts.write_text("".join("\t".join(fact) + "\n" for fact in (("head", "relation", "tail"), *FACTS)), "utf-8")
    clew.build([facts], tmp_path / "films.kb")
    assert auto.choose(question, OpenBase.open(tmp_path / "films.kb"))[0] == method
