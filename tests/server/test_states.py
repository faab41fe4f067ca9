"""No view of an answer contradicts its state, in any combination; one table has the words of all views."""

import json

import pytest

from answer_states import ANSWERS, contradictions
from browser_fixtures import ROOT
from clew.cli.ask import show_answer
from clew.core.states import RANKED, WORDINGS, percentage

TEXTS = json.loads((ROOT / "web" / "src" / "texts" / "en.json").read_text("utf-8"))


def run_of(answer) -> dict:
    """As the server sends it."""
    spent = {"calls": 0, "cached": 0, "failed": 0, "prompt_tokens": 0, "completion_tokens": 0, "dollars": 0.0}
    request = {"question": answer.question}
    return {"run": "a" * 12, "base": "hpo", **answer.to_dict(), "trace": [], "spending": spent, "request": request}


def of_client(answer) -> str:
    wire = pytest.importorskip("clew.server.wire", reason="needs the extra web")
    return wire.AskReply.model_validate(run_of(answer))._repr_html_()


def of_chat(answer) -> str:
    chat = pytest.importorskip("clew.server.chat", reason="needs the extra web")
    return chat.written(run_of(answer))[0]


VIEWS = {"printed": str, "notebook": lambda answer: answer._repr_html_(), "client": of_client, "chat and MCP": of_chat}


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_contradicts_the_state(view):
    wrong = {name: contradictions(answer, VIEWS[view](answer)) for name, answer in ANSWERS.items()}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_command_line_does_not_contradict_the_state(capsys):
    for name, answer in ANSWERS.items():
        show_answer(answer, 5)
        assert contradictions(answer, capsys.readouterr().out) == [], name


def test_every_state_occurs():
    assert {answer.state for answer in ANSWERS.values()} == set(WORDINGS)
    assert all(answer.to_dict()["state"] == answer.state for answer in ANSWERS.values())


def test_a_value_is_an_answer_and_no_match_is_none():
    for answer in ANSWERS.values():
        assert answer.found or answer.value is None
        assert answer.state != "not_found" or not answer.matches
        assert answer.state != "found" or answer.certainty is None or answer.certainty >= 0.8


def test_the_page_has_the_words_of_the_table():
    for state, words in WORDINGS.items():
        assert TEXTS.get(f"state.{state}", "") == words.headline
        assert TEXTS.get(f"matches.{state}", "") == words.matches
        assert TEXTS[f"near.{state}"] == words.near
    assert TEXTS["list.ranked"] == RANKED


def test_a_percentage_is_never_rounded_into_another_state():
    assert percentage("maybe", 0.7999) == 79
    assert percentage("found", 0.8) == 80
    assert percentage("maybe", 0.9) is None
    assert percentage("not_found", 0.1) is None


def test_a_long_list_says_how_many_of_how_many(capsys):
    answer = next(one for one in ANSWERS.values() if len(one.matches) == 8 and one.state == "found")
    show_answer(answer, 3)
    out = capsys.readouterr().out
    assert "Matches, 3 of 8:" in out
    assert "5 more" in out
    assert "3 more are not shown." in of_chat(answer)
    assert "Matches, 5 of 8:" in str(answer)
    frame = pytest.importorskip("pandas") and answer.to_frame()
    assert list(frame.group) == ["match"] * 8
