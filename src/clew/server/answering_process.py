"""Process that answers questions without a model: `python -m clew.server.answering_process`.

It reads a line with its bases from standard input, then one question per line. It writes lines: `span` for each start
and end of a step if requested, then `run` or `error`. It ends when its input ends, so that it does not outlive its
server.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from typing import Any

from clew.core.errors import ClewError, InputError, LockedError, ModelError, NotFoundError
from clew.core.trace import Recorder, Span
from clew.server.answering import answer_run
from clew.server.examples import examples
from clew.server.serving import ServedBase
from clew.server.wire import AskRequest

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


if __name__ == "__main__":
    main()
