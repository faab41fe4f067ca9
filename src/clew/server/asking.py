"""Run questions in threads and processes. Questions with and without a model do not wait for each other."""

from __future__ import annotations

import asyncio
import json
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from clew.answering.methods import catalog
from clew.core.errors import ClewError, InputError
from clew.core.trace import Recorder
from clew.server.answering import WorkerPool, answer_run
from clew.server.runs import Metrics, Runs
from clew.server.serving import Served, ServedBase
from clew.server.wire import AskRequest

R = TypeVar("R")
REMEMBERED = 512
"""Number of cached answers without a model, per question and generation of a base."""
MAX_REMEMBERED_BYTES = 1_000_000
"""Maximum size of a cached answer."""
STREAMED = 200
"""Maximum number of answers sent one by one before the complete run."""
Tell = Callable[[str, dict[str, Any]], None]
"""Callback with the kind and content of an event: `span`, `unchecked`."""
Key = tuple[str, str, str]


class BusyError(ClewError):
    """The question queue is full."""


@dataclass
class Asker:
    """Runs questions and stores their runs."""

    served: Served
    runs: Runs
    metrics: Metrics
    workers: WorkerPool | None = None
    """Processes for questions without a model. None answers them in threads of this process."""
    _few: CapacityLimiter = field(init=False)
    _many: CapacityLimiter = field(init=False)
    _computing: CapacityLimiter = field(init=False)
    _remembered: OrderedDict[Key, bytes] = field(default_factory=OrderedDict, repr=False)
    _under_way: dict[Key, asyncio.Task[bytes]] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        """Use as many threads as cores for computation, and more threads for waiting on models."""
        self._few = CapacityLimiter(max(2, os.cpu_count() or 2))
        self._many = CapacityLimiter(64)
        self._computing = self._few if self.workers is None else CapacityLimiter(self.workers.count)

    async def in_thread(self, work: Callable[[], R], limiter: CapacityLimiter | None = None) -> R:
        """Run work in a thread, by default a thread for short work."""
        limiter, own = limiter or self._few, object()
        if self.metrics.gauges["clew_asks_waiting"] >= self.served.settings.limits.waiting:
            raise BusyError("the question queue is full: try again shortly")
        self.metrics.change("clew_asks_waiting", 1)
        try:
            await limiter.acquire_on_behalf_of(own)
        finally:
            self.metrics.change("clew_asks_waiting", -1)
        self.metrics.change("clew_asks_running", 1)
        try:
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))
        finally:
            limiter.release_on_behalf_of(own)
            self.metrics.change("clew_asks_running", -1)

    async def ask(self, base: ServedBase, request: AskRequest, tell: Tell | None = None) -> bytes:
        """Return a finished run as JSON.

        A question that is already running is shared, and reports steps to the first caller.
        """
        if not request.model:
            request = await to_thread.run_sync(self.served.settled, base, request)
        if request.model != "none":
            return await self._compute(base, request, tell)
        if not base.is_opened:
            await self.in_thread(lambda: base.base())  # builds the view for groups first
        key = self._key(base, request)
        known = self._recalled(key)
        if known is not None:
            return known
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._compute(base, request, tell))
            task.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(task)  # a cancelled request must not cancel the shared answer

    async def stream(self, base: ServedBase, request: AskRequest) -> AsyncIterator[tuple[str, Any]]:
        """Yield events: `span` when a step starts and ends, `unchecked` with the text a model has written so far,
        the first answers as `answer`, then the complete `run`.
        """
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any] | None]()

        def tell(kind: str, content: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, (kind, content))

        async def work() -> bytes:
            try:
                return await self.ask(base, request, tell)
            finally:
                events.put_nowait(None)

        task = asyncio.create_task(work())
        while (event := await events.get()) is not None:
            yield event
        try:
            content = json.loads(await task)
        except ClewError as error:
            yield "error", {"error": self.served.addresses.hidden(str(error))}
            return
        for answer in content["answers"][:STREAMED]:
            yield "answer", answer
        yield "run", content

    def run(self, base: ServedBase, request: AskRequest, tell: Tell | None = None) -> bytes:
        """Answer a question in this thread and store the run."""
        request = self.served.settled(base, request)
        name, run = request.method or catalog.DEFAULT_METHOD, self.runs.new_id()
        try:
            content = self._answer(base, request, run, tell)
        except InputError:
            self.metrics.count("clew_asks_total", base=base.name, method=name, outcome="refused")
            raise
        except ClewError:
            self.metrics.count("clew_asks_total", base=base.name, method=name, outcome="failed")
            raise
        self.metrics.count("clew_asks_total", base=base.name, method=name, outcome="answered")
        self.runs.put(base.runs_name, run, content)
        if request.model == "none":
            self._remember(self._key(base, request), content)
        return content

    def _answer(self, base: ServedBase, request: AskRequest, run: str, tell: Tell | None) -> bytes:
        model = self.served.model(request.model)
        if model is None and self.workers is not None:
            return self.workers.answer(base, request, run, None if tell is None else partial(tell, "span"))
        hidden = self.served.addresses.hidden
        recorder = Recorder()
        if tell is not None:
            recorder = Recorder(
                on_span=lambda span: tell("span", hidden(span.to_dict(recorder.spans[0].start))),
                on_text=lambda text: tell("unchecked", hidden({"text": text})),
            )
        return answer_run(base, request, run, model, recorder, hidden)

    async def _compute(self, base: ServedBase, request: AskRequest, tell: Tell | None = None) -> bytes:
        limiter = self._computing if request.model == "none" else self._many
        return await self.in_thread(lambda: self.run(base, request, tell), limiter)

    def _recalled(self, key: Key) -> bytes | None:
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)  # least recently used entries are removed first
            return self._remembered.get(key)

    def _remember(self, key: Key, content: bytes) -> None:
        if len(content) > MAX_REMEMBERED_BYTES:
            return
        with self._lock:
            self._remembered[key] = content
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)

    @staticmethod
    def _key(base: ServedBase, request: AskRequest) -> Key:
        return base.runs_name, base.base().tools.identity, request.model_dump_json()
