"""Answer one question over one base, as the run that is stored and sent, in any process.

`python -m clew.server.answering` answers questions without a model. It reads a line with its bases from standard input,
then one question per line. It writes lines: `span` for each start and end of a step if requested, then `run` or
`error`. It ends when its input ends, so that it does not outlive its server. `WorkerPool` runs several such
processes, to use all cores. Bases are memory-mapped, so the processes share memory. The server stores all state.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from clew.answering.methods.protocol import Method
from clew.answering.queries.corrections import Corrections
from clew.api import Base
from clew.core.errors import ClewError, InputError, LockedError, ModelError, NotFoundError
from clew.core.limits import Process, start_module
from clew.core.trace import Recorder, Span
from clew.core.types import Answer, plain
from clew.models.protocol import LanguageModel
from clew.server.examples import examples
from clew.server.serving import ServedBase, checked_method
from clew.server.wire import AskRequest
from clew.store.graph.protocol import KnowledgeBase

FIRST = re.compile(rb'\{"run": "([\w-]+)"')
LONGEST_ATTRIBUTE = 200
"""Maximum length of a value in a table, in characters."""


def answer_run(
    served: ServedBase,
    request: AskRequest,
    run: str,
    model: LanguageModel | None,
    recorder: Recorder,
    hidden: Callable[[Any], Any] = lambda reply: reply,
) -> bytes:
    """Answer a question, and encode the answer with its trace as one line of JSON. `hidden` removes model addresses."""
    base = served.base().with_model(model)
    method = checked_method(request.method, request.options)
    shown = _answer(base, method, request, recorder).to_dict()
    answers = shown["answers"][request.offset : request.offset + request.k]
    for candidate in answers:
        place_passages(base.tools.kb, candidate["evidence"])
    add_attributes(base.tools.kb, answers)
    place_passages(base.tools.kb, shown.get("evidence", []))
    begun = recorder.spans[0].start if recorder.spans else 0.0
    content = {
        "run": run,  # first, since `run_of` reads it there
        **shown,
        "base": served.name,
        "model": request.model,
        "answers": answers,
        **{name: hidden(shown[name]) for name in ("notes", "fallbacks")},
        "trace": hidden([span.to_dict(begun) for span in recorder.spans]),
        "spending": asdict(recorder.spending()),
        "request": request.model_dump(),
    }
    return json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "replace")


def run_of(content: bytes) -> str:
    """Return the id of a run from its JSON, without parsing it."""
    found = FIRST.match(content)
    assert found is not None, content[:50]
    return found[1].decode()


def _answer(base: Base, method: Method, request: AskRequest, recorder: Recorder) -> Answer:
    """Answer a question, alone or in its conversation."""
    fixes, relations, kind = request.fixes, request.relations, request.type
    if not request.history:
        return base.ask(request.question, method, fixes=fixes, relations=relations, type=kind, recorder=recorder)
    conversation = base.conversation(method).after(request.history)
    return conversation.corrected(fixes, Corrections(relations, kind)).ask(request.question, recorder)


def add_attributes(kb: KnowledgeBase, answers: list[dict[str, Any]]) -> None:
    """Add the attributes that a table of answers shows, except for passages and remote graphs."""
    if kb.stored is None or "file" in kb.schema.attribute_types:
        return
    for answer in answers:
        if kb.schema.node_type(answer["type"]).attributes:
            attributes = plain(kb.node(kb.find(answer["key"])).attributes)
            answer["attributes"] = {name: value for name, value in attributes.items() if _is_short(value)}


def _is_short(value: object) -> bool:
    return value is not None and value != "" and len(str(value)) <= LONGEST_ATTRIBUTE


def place_passages(kb: KnowledgeBase, evidence: list[dict[str, Any]]) -> None:
    """Add file name and page to quotations from files."""
    if "file" not in kb.schema.attribute_types:
        return
    for piece in evidence:
        if piece["kind"] == "passage" and "file" not in piece:
            attributes = plain(kb.node(kb.find(piece["node"]["key"])).attributes)
            piece |= {name: attributes[name] for name in ("file", "page") if attributes.get(name) is not None}


KINDS: tuple[type[ClewError], ...] = (NotFoundError, InputError, LockedError, ModelError, ClewError)
"""Error types that a caller distinguishes, narrower types first."""


def main() -> None:
    """Answer questions until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes, and the server decides when to end
    request = json.loads(sys.stdin.buffer.readline() or "{}")
    served = {
        name: ServedBase(name, place, None, tuple(request["groups"]))
        for name, place in request.get("bases", {}).items()
    }
    for base in served.values():
        with contextlib.suppress(ClewError):  # the first question will report the error
            base.warm()
            rehearse(base)
    for line in sys.stdin.buffer:
        answer(served, json.loads(line))


def rehearse(base: ServedBase) -> None:
    """Ask an example question, so that models are loaded before the first user. Skip it if the embedder costs money."""
    opened = base.base_if_ready()
    if opened is None:
        return
    for question in examples(opened.tools, 1) if opened.tools.embeds_here else ():
        opened.ask(question)


def answer(served: dict[str, ServedBase], job: dict[str, Any]) -> None:
    """Answer one question. An unexpected error ends the process, and the server restarts it."""

    def tell(span: Span) -> None:
        say("span", json.dumps(span.to_dict(recorder.spans[0].start), ensure_ascii=False, default=str).encode())

    recorder = Recorder(on_span=tell if job["spans"] else None)
    request = AskRequest.model_validate(job["request"])
    try:
        name = job["base"]
        if name not in served:  # created after this process started
            served[name] = ServedBase(name, job["place"])
        base = served[name].for_groups(tuple(job["groups"]))
        say("run", answer_run(base, request, job["run"], None, recorder))
    except ClewError as error:
        kind = next(kind for kind in KINDS if isinstance(error, kind))
        say("error", json.dumps([kind.__name__, str(error)]).encode())


def say(kind: str, content: bytes) -> None:
    """Write one line to the server."""
    sys.stdout.buffer.write(kind.encode() + b" " + content + b"\n")
    sys.stdout.buffer.flush()


class WorkerEndedError(ClewError):
    """The answering process has ended: it was killed, or failed with an error on standard error."""


class WorkerPool:
    """A number of processes, each with one question at a time, safe for threads."""

    def __init__(self, bases: Mapping[str, str | Path], groups: Sequence[str], count: int) -> None:
        """Prepare the pool without starting processes."""
        self.count = count
        places = {name: str(place) for name, place in bases.items()}
        self._served = json.dumps({"bases": places, "groups": groups}).encode() + b"\n"
        self._idle: SimpleQueue[Process] = SimpleQueue()
        self._all: set[Process] = set()
        self._lock = Lock()
        self._closed = False

    def start(self) -> None:
        """Start all processes. Questions wait meanwhile."""
        for _ in range(self.count):
            self._start_one()

    def answer(
        self, base: ServedBase, request: AskRequest, run: str, on_span: Callable[[dict[str, Any]], None] | None = None
    ) -> bytes:
        """Return a run as JSON from the next idle process. Raise the errors of a question here."""
        job = {
            "base": base.name,
            "place": str(base.place),
            "groups": base.groups,
            "request": request.model_dump(),
            "run": run,
            "spans": on_span is not None,
        }
        worker = self._idle.get()
        kind, content = "", b""
        try:
            kind, content = _converse(worker, json.dumps(job).encode() + b"\n", on_span)
        except OSError:
            raise WorkerEndedError("the answering process has ended: ask again") from None
        finally:
            if kind:
                self._idle.put(worker)
            else:
                self._replace(worker)
        if kind == "error":
            name, text = json.loads(content)
            raise next(kind for kind in KINDS if kind.__name__ == name)(text)
        return content

    def close(self, patience: float = 5.0) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            _end(worker, patience)

    def _start_one(self) -> None:
        with self._lock:
            if self._closed:
                return
            worker = start_module("clew.server.answering", stdin=subprocess.PIPE)
            self._all.add(worker)
        assert worker.stdin is not None
        with contextlib.suppress(OSError):  # it has ended: its first question will notice
            worker.stdin.write(self._served)  # not an argument, since an address may contain a password
            worker.stdin.flush()
        self._idle.put(worker)

    def _replace(self, worker: Process) -> None:
        """Replace a process that has ended, or whose question was abandoned."""
        worker.kill()
        _end(worker, 5.0)
        with self._lock:
            self._all.discard(worker)
        self._start_one()


def _converse(worker: Process, job: bytes, on_span: Callable[[dict[str, Any]], None] | None) -> tuple[str, bytes]:
    """Send a question and read its result. Raise ConnectionError if the process ends before."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(job)
    worker.stdin.flush()
    for line in worker.stdout:
        kind, _, content = line.rstrip(b"\n").partition(b" ")
        if kind != b"span":
            return kind.decode(), content
        if on_span is not None:
            on_span(json.loads(content))
    raise ConnectionError("the process has ended")


def _end(worker: Process, patience: float) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    with contextlib.suppress(OSError):  # unwritten data
        worker.stdin.close()
    try:
        worker.wait(patience)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    worker.stdout.close()


if __name__ == "__main__":
    main()
