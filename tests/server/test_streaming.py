"""An answer is seen while a model writes it, and marked as unchecked: library, server, chat, terminal and page."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import clew
from chat_server import ChatServer, Handler, chat_body, chat_events, sends, serving
from clew.core.trace import Recorder, Span

QUESTION = "Who gave Theseus a thread?"
FIRST, SECOND = "Ariadne gave Theseus a clew of red thread.", "The thread led him out at night."
UNSUPPORTED = "(its source may not say this)"
REPLY = {
    "thinking": "the first source names her",
    "sentences": [{"text": FIRST, "passages": [1]}, {"text": SECOND, "passages": [1]}],
    "found": True,
    "missing": "",
}
TEXT = """# The labyrinth

Minos of Crete kept the Minotaur in a labyrinth that Daedalus had built.

## The thread

Ariadne gave Theseus a clew of red thread. With it he found the way out of the labyrinth.
"""


@dataclass
class Writer:
    """A server that writes the first sentence and, where it is held, goes on only when somebody has seen it."""

    server: ChatServer
    held: bool
    seen: threading.Event = field(default_factory=threading.Event)
    left: int = 0
    """Streams that went on without being seen."""

    @property
    def model(self) -> str:
        return f"{self.server.url}#writer"

    @property
    def streams(self) -> int:
        return sum("stream" in body for body in self.server.bodies)

    def answer(self, handler: Handler, body: dict) -> None:
        if body.get("stream"):
            sends(self._pieces())(handler, body)
        else:
            handler.send(200, chat_body(json.dumps(REPLY)))

    def _pieces(self) -> Iterator[bytes]:
        events = chat_events(json.dumps(REPLY), step=8)
        half = len(events) * 2 // 3
        yield b"".join(events[:half])
        if self.held and not self.seen.wait(30):
            self.left += 1
        yield b"".join(events[half:])


@contextmanager
def writing(held: bool = True) -> Iterator[Writer]:
    with serving() as server:
        writer = Writer(server, held)
        server.misbehave = [writer.answer] * 100
        yield writer


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("streaming")
    (folder / "texts").mkdir()
    (folder / "texts" / "labyrinth.md").write_text(TEXT, "utf-8")
    clew.build([folder / "texts"], folder / "labyrinth.kb")
    return folder / "labyrinth.kb"


def test_a_stream_of_the_library_has_steps_then_words_then_the_checked_answer(base):
    with writing() as writer:
        events = []
        for event in clew.open(base, model=writer.model).stream(QUESTION):
            events.append(event)
            if isinstance(event, clew.Unchecked) and event.text.startswith(FIRST):
                writer.seen.set()
    assert writer.left == 0
    assert isinstance(events[0], Span)
    *_, last, answer = [event for event in events if not isinstance(event, Span)]
    assert last == clew.Unchecked(f"{FIRST} {SECOND}")
    assert isinstance(answer, clew.Answer)
    assert UNSUPPORTED in (answer.text or "")


def test_listening_changes_no_answer_and_what_is_kept_is_not_streamed(base):
    told: list[str] = []
    with writing(held=False) as writer:
        heard = clew.open(base, model=writer.model).ask(QUESTION, on_text=told.append)
        count = len(told)
        kept = clew.open(base, model=writer.model).ask(QUESTION, on_text=told.append)
        assert writer.streams == 1
    with writing() as writer:
        unheard = clew.open(base, model=writer.model).ask(QUESTION)
        assert writer.streams == 0
    assert told[-1] == f"{FIRST} {SECOND}"
    assert len(told) == count > 0
    assert heard.text == kept.text == unheard.text
    assert heard.evidence == kept.evidence == unheard.evidence


def test_a_conversation_tells_its_recorder(base):
    told: list[str] = []
    with writing(held=False) as writer:
        conversation = clew.open(base, model=writer.model).conversation()
        conversation.ask(QUESTION, Recorder(on_text=told.append))
    assert told[-1] == f"{FIRST} {SECOND}"


@contextmanager
def served(base: Path, writer: Writer) -> Iterator[str]:
    pytest.importorskip("fastapi", reason="the server needs the extra web")
    from clew.server.settings import ServerSettings
    from web_server import running

    with running(ServerSettings({"labyrinth": base}, models={"writer": writer.model})) as address:
        yield address


def test_the_events_of_the_server_tell_the_words_before_the_run(base):
    from clew.server.wire import AskReply, UncheckedReply

    with writing() as writer, served(base, writer) as address, clew.Client(address) as client:
        asked = client.base("labyrinth")
        events = []
        for event in asked.stream(QUESTION, model="writer"):
            events.append(event)
            if isinstance(event, UncheckedReply) and event.text.startswith(FIRST):
                writer.seen.set()
        assert writer.left == 0
        words = [event.text for event in events if isinstance(event, UncheckedReply)]
        assert words[-1] == f"{FIRST} {SECOND}"
        assert isinstance(events[-1], AskReply)
        assert UNSUPPORTED in (events[-1].text or "")
    with writing() as writer, served(base, writer) as address, clew.Client(address) as client:
        assert client.base("labyrinth").ask(QUESTION, model="writer").text == events[-1].text
        assert writer.streams == 0


def test_the_openai_client_gets_unchecked_words_apart_from_the_checked_answer(base):
    openai = pytest.importorskip("openai")
    asked = {"model": "labyrinth", "messages": [{"role": "user", "content": QUESTION}]}
    with (
        writing() as writer,
        served(base, writer) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="not-needed") as client,
    ):
        content, unchecked = "", ""
        stream = client.chat.completions.create(**asked, stream=True, extra_body={"language_model": "writer"})
        for chunk in stream:
            delta = chunk.choices[0].delta
            content += delta.content or ""
            unchecked += getattr(delta, "reasoning_content", None) or ""
            if FIRST in unchecked and not writer.seen.is_set():
                assert content == "", "nothing is said before it is checked"
                writer.seen.set()
        whole = client.chat.completions.create(**asked, extra_body={"language_model": "writer"})
        asked["messages"] = [{"role": "user", "content": "Who gave Theseus the red thread?"}]
        with client.chat.completions.stream(**asked, extra_body={"language_model": "writer"}) as helper:
            gathered = helper.get_final_completion().choices[0].message
        assert writer.streams == 2
    assert writer.left == 0
    assert unchecked == f"Being written, not checked yet: {FIRST} {SECOND}"
    assert content == whole.choices[0].message.content
    assert gathered.reasoning_content == unchecked
    assert UNSUPPORTED in gathered.content
    assert UNSUPPORTED in content


def test_a_chat_stream_begins_anew_where_the_model_was_asked_again():
    pytest.importorskip("fastapi", reason="the server needs the extra web")
    from clew.server.chat import UNCHECKED, _continued

    sent, shown = "", ""
    for text in ("The", "The cache", "A", "A port"):
        sent, shown = sent + _continued(shown, text), text
    assert sent == f"{UNCHECKED}The cache\n\n{UNCHECKED}A port"


def command(base: Path, writer: Writer, name: str, *more: str) -> list[str]:
    question = [QUESTION] if name == "ask" else []
    return [sys.executable, "-m", "clew", name, str(base), *question, "--model", writer.model, *more]


@pytest.mark.parametrize("name", ["ask", "chat"])
def test_a_terminal_shows_the_answer_while_it_is_written_and_then_the_checked_one(base, name):
    with writing() as writer:
        controlling, terminal = pty.openpty()
        shown = b""
        with subprocess.Popen(
            command(base, writer, name),
            stdin=subprocess.PIPE,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        ) as process:
            os.close(terminal)
            process.stdin.write(f"{QUESTION}\n".encode() if name == "chat" else b"")
            process.stdin.close()
            while piece := read_terminal(controlling):
                shown += piece
                if b"not checked yet" in shown:
                    writer.seen.set()
            assert process.wait(60) == 0
        os.close(controlling)
    assert writer.left == 0
    growing, _, checked = shown.decode().rpartition("not checked yet")
    assert FIRST in growing
    assert "\x1b[2K" in checked, "the unchecked text is taken away"
    assert UNSUPPORTED in checked


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that nobody writes to it any more
        return b""


@pytest.mark.parametrize(("name", "more"), [("ask", ()), ("chat", ("--json",))], ids=["ask piped", "chat as JSON"])
def test_nothing_is_shown_early_where_no_person_looks_on(base, name, more):
    with writing() as writer:
        told = subprocess.run(
            command(base, writer, name, *more), input=f"{QUESTION}\n", capture_output=True, text=True, check=True
        )
        assert writer.streams == 0
    assert "not checked yet" not in told.stdout + told.stderr
    assert UNSUPPORTED in told.stdout


def test_json_in_a_terminal_is_json_alone(base):
    with writing() as writer:
        controlling, terminal = pty.openpty()
        with subprocess.Popen(command(base, writer, "ask", "--json"), stdout=terminal, stderr=terminal) as process:
            os.close(terminal)
            shown = b""
            while piece := read_terminal(controlling):
                shown += piece
            assert process.wait(60) == 0
        os.close(controlling)
        assert writer.streams == 0
    assert UNSUPPORTED in json.loads(shown)["text"]


def test_the_page_marks_what_is_not_checked_and_replaces_it(page, base):
    with writing() as writer, served(base, writer) as address:
        page.goto(f"{address}/#/ask?base=labyrinth&q={QUESTION}&model=writer")
        written = page.locator(".unchecked")
        written.filter(has_text=FIRST).wait_for()
        assert "not checked yet" in written.inner_text()
        assert page.locator(".answered[aria-busy=true]").count() == 1
        writer.seen.set()
        page.locator(".answered[aria-busy=false] .written", has_text=UNSUPPORTED).wait_for()
        assert written.count() == 0
        page.close()  # before the server, which it may still ask
    assert writer.left == 0
