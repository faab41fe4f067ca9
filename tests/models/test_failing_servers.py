"""What a person sees, and how long it takes, when the server of a model misbehaves: `clew ask` end to end."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chat_server import (
    Behaviour,
    drips,
    drops_the_connection,
    is_silent,
    raw,
    serving,
    status,
    stops_halfway,
)
from clew.cli import main
from clew.core.trace import within
from clew.models.protocol import Completion, Message, Request
from clew.models.wrappers import Breaking
from clew.store.building import build
from conftest import tables

QUESTION = "Which genes are associated with Marfan syndrome?"
ALWAYS = 100


@contextmanager
def always(behaviour: Behaviour | None = None, **options) -> Iterator[str]:
    """The address of a server that never does anything else."""
    misbehave = [] if behaviour is None else [behaviour] * ALWAYS
    with serving(helpful, misbehave=misbehave, **options) as server:
        yield server.url


def helpful(body) -> str:
    """Reads the question as every prompt of focus_plus wants it."""
    prompt = body["messages"][-1]["content"]
    if "score" in prompt:
        return '{"score": 0.9}'
    edge = {"head": "?x", "relation": "associated_with", "tail": "Marfan syndrome"}
    parts = {"names": ["Marfan syndrome"], "answer": "?x", "variables": [{"name": "?x", "type": "gene"}]}
    return json.dumps({**parts, "triplets": [edge]})


@contextmanager
def refused() -> Iterator[str]:
    with socket.socket() as taken:  # bound and not listening: nobody else can take the port meanwhile
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@contextmanager
def no_such_host() -> Iterator[str]:
    yield "http://no-such-host.invalid/v1"


@contextmanager
def hangs() -> Iterator[str]:
    """Takes connections and never says a word, to greetings neither."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


BUSY = 8.0
"""Seconds that other work on the machine may add; what nothing bounds takes 20 and more."""


@dataclass(frozen=True)
class Case:
    """A server, what `clew ask` must do with it, and how long that may take beside the answer without a model."""

    name: str
    server: Callable[[], Iterator[str]]
    seconds: float
    says: str
    """Words at the top of the answer, or of the error."""
    exit_code: int = 0
    model_spoke: bool = False
    model: str = "qwen"
    reply_seconds: str = "120"
    """CLEW_MODEL_SECONDS."""


HTML = raw(b"<!doctype html><html><body>Sign in to the network</body></html>")
CASES = [
    Case("answers", always, 1.0, "", model_spoke=True),
    Case("nothing listens (connection refused)", refused, 1.0, "refused"),
    Case("no such host", no_such_host, 2.5, "no-such-host.invalid"),
    Case("takes the connection and hangs", hangs, 2.5, "no reply within 1.7 seconds"),
    Case(
        "lists its models, hangs when asked",
        lambda: always(is_silent(5)),
        3.0,
        "no reply within 2 seconds",
        reply_seconds="2",
    ),
    Case("drips one byte at a time", lambda: always(drips(0.05)), 3.0, "no reply within 2 seconds", reply_seconds="2"),
    Case("drops the connection", lambda: always(drops_the_connection), 3.0, "disconnected"),
    Case("breaks off in the middle", lambda: always(stops_halfway), 3.0, "closed connection"),
    Case("401, no key given", lambda: always(status(401)), 1.0, "set CLEW_MODEL_KEY", exit_code=1),
    Case("403", lambda: always(status(403)), 1.0, "set CLEW_MODEL_KEY", exit_code=1),
    Case("404, no such model", lambda: always(status(404)), 1.0, "it has: qwen, other", exit_code=1, model="gwen"),
    Case("429, Retry-After: 1, then answers", lambda: busy_once(1), 2.5, "", model_spoke=True),
    Case(
        "429, Retry-After: 99999", lambda: always(status(429, Retry_After="99999")), 1.0, "asks to wait 99999 seconds"
    ),
    Case("503, then answers", lambda: once(status(503)), 2.0, "", model_spoke=True),
    Case("500 always", lambda: always(status(500, b"oops")), 3.0, "answered 500: oops"),
    Case("HTML instead of JSON", lambda: always(HTML), 3.0, "an HTML page"),
    Case("an empty body", lambda: always(raw(b"")), 3.0, "it is empty"),
    Case("JSON that breaks off", lambda: always(raw(b'{"choices": [{"mess')), 3.0, "not a chat completion"),
    Case(
        "wrong types", lambda: always(raw(b'{"choices": [{"message": {"content": 7}}]}')), 3.0, "not a chat completion"
    ),
    Case(
        "200 with an error object",
        lambda: always(raw(b'{"error": {"message": "model crashed", "code": 500}}')),
        3.0,
        "model crashed (500)",
    ),
]


@contextmanager
def once(behaviour: Behaviour) -> Iterator[str]:
    with serving(helpful, misbehave=[behaviour]) as server:
        yield server.url


def busy_once(seconds: int):
    return once(status(429, Retry_After=str(seconds)))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failing") / "tiny.kb"
    build(tables(), folder)
    return folder


@pytest.fixture(autouse=True)
def places(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CLEW_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("CLEW_MODEL_SECONDS", "1")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CLEW_MODEL_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clew(monkeypatch, capsys):
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


ALONE: dict[str, float] = {}
"""How long the answer takes without a model."""
ROLES = ("-m", "focus_plus", "-O", "parser=model", "-O", "reranker=pointwise")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_person_sees_and_how_long_it_takes(case, clew, base, monkeypatch):
    monkeypatch.setenv("CLEW_MODEL_SECONDS", case.reply_seconds)
    if "seconds" not in ALONE:
        clew("ask", base, QUESTION, "-m", "focus_plus")  # imports
        begun = time.perf_counter()
        clew("ask", base, QUESTION, "-m", "focus_plus")
        ALONE["seconds"] = time.perf_counter() - begun
    alone = ALONE["seconds"]
    with case.server() as url:
        begun = time.perf_counter()
        code, out, err = clew("ask", base, QUESTION, *ROLES, "--model", f"{url}#{case.model}")
        extra = time.perf_counter() - begun - alone
    first, last = (out or err).splitlines()[0], (out or err).splitlines()[-1]
    if "CLEW_TABLE" in os.environ:  # the table of docs/guides/models.md
        with Path(os.environ["CLEW_TABLE"]).open("a") as table:
            table.write(f"| {case.name} | {first} | {max(0, extra):.1f} s | {code} |\n")
    assert code == case.exit_code, err
    assert case.says in first
    assert extra < case.seconds + BUSY
    if case.exit_code:
        assert out == ""
        return
    assert "FBN1" in out
    assert (", model qwen@" in last) == case.model_spoke
    assert (", model none," in last) == (not case.model_spoke)
    assert out.count(case.says) <= 2 or not case.says  # at the top, and where the fallback is listed


def test_json_says_an_outage_first_and_once(clew, base):
    with refused() as url:
        code, out, _ = clew("ask", base, QUESTION, *ROLES, "--model", f"{url}#qwen", "--json")
    answer = json.loads(out)
    assert (code, answer["model"]) == (0, "none")
    assert answer["notes"][0].startswith("answered without the model: http://127.0.0.1")
    assert answer["fallbacks"][0]["step"] == "model"
    assert sum("refused" in fallback["reason"] for fallback in answer["fallbacks"]) == 1


def test_a_model_that_stops_answering_is_named_and_the_rest_is_done_without_it(clew, base):
    def speaks_once(handler, body):
        handler.send(200, helpful_body(body))

    with serving(misbehave=[speaks_once, *[is_silent(5)] * ALWAYS]) as server:
        code, out, _ = clew("ask", base, QUESTION, *ROLES, "--model", f"{server.url}#qwen")
    assert code == 0
    assert out.startswith("partly answered without the model: ")
    assert ", model qwen@" in out.splitlines()[-1]


def helpful_body(body) -> bytes:
    from chat_server import chat_body

    return chat_body(helpful(body))


@pytest.mark.parametrize("spec", ["openai:gpt-4o-mini", "ollama:", "lmstudio:"])
def test_what_is_missing_is_said_before_anything_is_asked(spec, clew, base, monkeypatch):
    with refused() as url:
        monkeypatch.setenv("OLLAMA_HOST", url)
        monkeypatch.setenv("LMSTUDIO_HOST", url)
        code, _, err = clew("ask", base, QUESTION, "--model", spec)
    assert code == 1
    assert {"openai:gpt-4o-mini": "set OPENAI_API_KEY", "ollama:": "`ollama serve`", "lmstudio:": "`lms server start`"}[
        spec
    ] in err


def test_the_budget_bounds_a_reply_that_takes_long(clew, base, monkeypatch):
    monkeypatch.setenv("CLEW_MODEL_SECONDS", "60")
    with always(is_silent(20)) as url:
        begun = time.perf_counter()
        code, out, _ = clew("ask", base, QUESTION, *ROLES, "--model", f"{url}#qwen", "--max-seconds", "2")
        assert time.perf_counter() - begun < 15  # of the server's 20, and of the 60 that a reply may take
    assert code == 0
    assert "cut short" in out


def test_an_evaluation_stops_at_an_outage_and_goes_on_later(clew, base, tmp_path):
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"question": QUESTION, "answers": ["FBN1"]}) + "\n")
    run = ("eval", "-q", file, "--kb", base, "-m", "focus_plus", "-O", "parser=model", "--out", tmp_path / "runs")
    with refused() as url:
        code, _, err = clew(*run, "--model", f"{url}#qwen")
    assert code == 1
    assert "run again to continue" in err
    with always(status(401)) as url:
        code, _, err = clew(*run, "--model", f"{url}#qwen")
    assert code == 1
    assert "CLEW_MODEL_KEY" in err


class TestBreaking:
    REQUEST = (Request((Message("user", "hello"),)),)

    def breaking(self, completions, greetings=(), **options) -> tuple[Breaking, list[str]]:
        heard: list[str] = []
        now = [0.0]
        greet = iter(greetings)

        class Inner:
            name, context_tokens = "inner", 8192

            def complete(self, requests):
                heard.append("asked")
                return [completions.pop(0) for _ in requests]

        def greeting() -> str | None:
            heard.append("greeted")
            return next(greet, None)

        model = Breaking(Inner(), greeting, clock=lambda: now[0], **options)
        object.__setattr__(model, "at", lambda when: now.__setitem__(0, when))
        return model, heard

    def ask(self, model: Breaking) -> Completion:
        return model.complete(self.REQUEST)[0]

    def test_a_server_is_greeted_once_and_given_up_at_its_first_outage(self):
        down = Completion("", error="down", failure="outage")
        model, heard = self.breaking([Completion("a"), down, Completion("b")])
        said = [self.ask(model) for _ in range(4)]
        assert [done.text or done.error for done in said] == ["a", "down", "down", "down"]
        assert heard == ["greeted", "asked", "asked"]
        model.at(31.0)
        assert self.ask(model).text == "b"
        assert heard[3:] == ["greeted", "asked"]

    def test_it_is_tried_again_later_and_later(self):
        model, heard = self.breaking([Completion("back")], greetings=["down"] * 3)
        tries = []
        for second in range(400):
            model.at(float(second))
            before = len(heard)
            done = self.ask(model)
            if len(heard) > before:
                tries.append(second)
            if done.error is None:
                break
        assert tries == [0, 30, 90, 210]
        assert done.text == "back"

    def test_one_request_that_fails_does_not_give_up_a_server_that_answers(self):
        failed = Completion("", error="500", retry_after=0.0)
        model, _ = self.breaking([Completion("a"), failed, Completion("b"), failed, failed])
        assert [self.ask(model).failure for _ in range(6)] == [None, "failing", None, "failing", "failing", "outage"]

    def test_a_server_that_never_replied_is_given_up_at_the_first_failure(self):
        model, heard = self.breaking([Completion("", error="500", retry_after=0.0)])
        assert [self.ask(model).failure for _ in range(3)] == ["failing", "outage", "outage"]
        assert heard == ["greeted", "asked"]

    def test_a_wrong_key_is_not_tried_again_and_again(self):
        model, heard = self.breaking([Completion("", error="no key", failure="access")])
        assert [self.ask(model).failure for _ in range(3)] == ["access"] * 3
        assert heard == ["greeted", "asked"]


def test_a_server_in_use_recovers_by_itself(base):
    """One process that goes on asking, as a server does."""
    import clew

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    opened = clew.open(base, model=f"http://127.0.0.1:{port}/v1#qwen")
    method = clew.methods.FocusPlus(parser="model")
    assert opened.ask(QUESTION, method=method).model == "none"
    breaking = opened.tools.model
    while not isinstance(breaking, Breaking):
        breaking = breaking.inner
    breaking.circuit.until = 0.0  # a while later
    with serving(helpful, port=port):
        answer = opened.ask(QUESTION, method=method)
    assert answer.model.startswith("qwen@")
    assert answer.outage is None


def test_work_that_cannot_be_stopped_is_left_behind():
    with pytest.raises(TimeoutError):
        within(0.05, lambda: time.sleep(1))
    assert within(60, lambda: "done") == "done"
    with pytest.raises(KeyError):
        within(60, lambda: {}["x"])


def test_a_process_ends_while_a_server_still_hangs(base, tmp_path):
    with hangs() as url:  # for as long as the process runs
        command = [sys.executable, "-m", "clew", "ask", str(base), QUESTION, *ROLES, "--model", f"{url}#qwen"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("answered without the model")
