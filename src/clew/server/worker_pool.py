"""Processes that answer questions without a model, to use all cores. The server stores all state.

Bases are memory-mapped, so the processes share memory. A process that ends is replaced.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from clew.core.errors import ClewError
from clew.core.limits import Process, start_module
from clew.server.answering import KINDS
from clew.server.serving import ServedBase
from clew.server.wire import AskRequest


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
