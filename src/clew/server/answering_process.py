"""The process that answers questions without a model, `python -m clew.server.answering_process`.

It reads a line with its bases from standard input, then one question a line, and writes lines back: `span` as steps
begin and end where they were asked for, then `run` or `error`. It ends when its input does, so that it never outlives
its server.
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
"""What a caller tells errors apart by, the narrower ones first."""


def main() -> None:
    """Answer until there is no more to read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group, and the server decides when to end
    told = json.loads(sys.stdin.buffer.readline() or "{}")
    served = {
        name: ServedBase(name, place, None, tuple(told["groups"])) for name, place in told.get("bases", {}).items()
    }
    for base in served.values():
        with contextlib.suppress(ClewError):  # a question will be told what is wrong
            base.warm()
            rehearse(base)
    for line in sys.stdin.buffer:
        answer(served, json.loads(line))


def rehearse(base: ServedBase) -> None:
    """Ask an example, so that nobody's first question waits for models to load; where the embedder is paid, not."""
    opened = base.base_if_ready()
    if opened is None:
        return
    for question in examples(opened.tools, 1) if opened.tools.embeds_here else ():
        opened.ask(question)


def answer(served: dict[str, ServedBase], job: dict[str, Any]) -> None:
    """One question; anything but an error of ours ends the process, which the server replaces."""

    def tell(span: Span) -> None:
        say("span", json.dumps(span.to_dict(recorder.spans[0].start), ensure_ascii=False, default=str).encode())

    recorder = Recorder(on_span=tell if job["spans"] else None)
    request = AskRequest.model_validate(job["request"])
    try:
        name = job["base"]
        if name not in served:  # made since this process began
            served[name] = ServedBase(name, job["place"])
        base = served[name].for_groups(tuple(job["groups"]))
        say("run", answer_run(base, request, job["run"], None, recorder))
    except ClewError as error:
        kind = next(kind for kind in KINDS if isinstance(error, kind))
        say("error", json.dumps([kind.__name__, str(error)]).encode())


def say(kind: str, content: bytes) -> None:
    """One line to the server."""
    sys.stdout.buffer.write(kind.encode() + b" " + content + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
