"""Text that is none, notations that no parser can hold, and terminals."""

import json
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
import formats_made
from clew.answering.methods.catalog import method_names
from clew.core.errors import ClewError, InputError
from clew.core.texts import asked_text, parse_json, parse_toml, shown_json, shown_text, whole_text
from clew.documents.building import build_documents
from clew.models.protocol import Completion
from clew.models.scripted import ScriptedModel
from clew.models.structured import find_json
from clew.store.building import build
from conftest import EDGES, NODES, tables

ANY = st.text(st.characters(exclude_categories=()), max_size=50)
OBEYED = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u202e\u2066\u200f"} - set("\t\n\r")
ESCAPES = "x\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202eevil"


@given(ANY)
def test_whatever_arrives_can_be_written_and_shown(text):
    whole_text(text).encode()
    assert len(asked_text(text)) == len(text)
    assert not OBEYED & set(asked_text(text))
    assert not OBEYED & set(shown_text(text))
    shown_text(text).encode()


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)))
def test_json_for_a_terminal_is_the_same_value(value):
    shown = shown_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps(value))
    assert not OBEYED & set(shown)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "{", "\ud800"])
def test_what_no_parser_can_hold_is_a_mistake_like_others(text):
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml(f"a = {text}")


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("texts") / "kb"
    nodes = [*NODES, (f"k{ESCAPES}", f"t{ESCAPES}", f"n{ESCAPES}", [f"a{ESCAPES}"], f"text {ESCAPES}")]
    build(tables(nodes, [*EDGES, (f"k{ESCAPES}", f"r{ESCAPES}", "MFS", "w")]), folder)
    return folder


@pytest.mark.parametrize("method", method_names())
@pytest.mark.parametrize("question", ["gene \udcff", "[$]", "\x00\x1b[2J?", "\u202eenicidem", "?" * 9_999])
def test_no_method_breaks_on_a_question_that_is_hardly_text(base, method, question):
    opened = clew.open(base, embedder="hash")
    with suppress(ClewError):
        opened.ask(question, method)


@pytest.mark.parametrize("marked", ["[$]1200null", "[BBS2] ", "[long fingers] and "])
def test_a_question_of_many_brackets_is_read_like_others(tmp_path, marked):
    build(tables(), tmp_path / "kb")
    begun = time.process_time()
    clew.open(tmp_path / "kb").ask(marked * 400, "focus_plus")
    assert time.process_time() - begun < 20


def test_a_reply_that_is_hardly_text_is_made_text(base):
    assert Completion("a\udcba").text == "a\ufffd"
    assert next(iter(find_json('{"text": "\\ud800"}'))) == {"text": "\ufffd"}
    said = '{"sentences": [{"text": "x\udcbasess \\udfff", "cites": [1]}]}'
    clew.open(base, model=ScriptedModel(lambda _: said)).ask("long fingers", "knowledge_graph_prompting")


def test_a_question_that_is_too_long_is_refused_everywhere(base):
    opened = clew.open(base)
    for call in (opened.ask, opened.find, opened.show, opened.mentions):
        with pytest.raises(InputError, match="10,001 characters"):
            call("x" * 10_001)


@pytest.mark.parametrize(
    "command", [("ask", "evil"), ("ask", "evil", "-m", "bm25"), ("find", "evil"), ("info",), ("schema",)], ids=" ".join
)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["people", "json"])
def test_a_terminal_gets_no_commands_from_a_base(base, command, form):
    arguments = [command[0], str(base), *command[1:], *form]
    done = subprocess.run([sys.executable, "-m", "clew", *arguments], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode() + done.stderr.decode()
    assert not OBEYED & set(shown)
    assert "evil" in shown


def test_what_the_system_refuses_is_no_fault_of_clew(base, tmp_path):
    full, nowhere = ("ask", base, "gene", "--trace", "/dev/full"), ("synth", base, "-n", "2", "--out", "/dev/null/x")
    for arguments in (full, nowhere):
        command = [sys.executable, "-m", "clew", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")


def test_a_question_of_many_numbers_is_read_in_time(tmp_path):
    (tmp_path / "files").mkdir()
    formats_made.make_all(tmp_path / "files")
    build_documents([tmp_path / "files" / "harbour.md"], tmp_path / "pages.kb", jobs=1)
    base = clew.open(tmp_path / "pages.kb", embedder="hash")
    begun = time.process_time()
    base.ask("price 1200 BBS2 Marfan syndrome" * 100, "four_step_focus")
    assert time.process_time() - begun < 15
