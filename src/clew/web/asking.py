"""Asking in threads: model-free questions and those that wait for a model never wait for each other."""

from __future__ import annotations

import asyncio
import json
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from clew import catalog
from clew.errors import ClewError, InputError
from clew.kb.protocol import KnowledgeBase
from clew.presentation import answer_json, plain
from clew.trace import Recorder, Span
from clew.web.metrics import Metrics
from clew.web.runs import Runs
from clew.web.serving import Served, ServedBase, checked_options
from clew.wire import AskRequest

R = TypeVar("R")
REMEMBERED = 512
"""Answers without a model that are given again for the same question to the same generation of a base."""
LONGEST_DETAIL = 2000


class BusyError(ClewError):
    """More questions wait than the server lets wait."""


@dataclass
class Asker:
    """Runs questions and keeps their runs."""

    served: Served
    runs: Runs
    metrics: Metrics
    _few: CapacityLimiter = field(init=False)
    _many: CapacityLimiter = field(init=False)
    _remembered: OrderedDict[tuple[Any, ...], bytes] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        """Work that computes gets as many threads as there are cores, work that waits for a model many more."""
        self._few = CapacityLimiter(max(2, os.cpu_count() or 2))
        self._many = CapacityLimiter(64)

    async def in_thread(self, work: Callable[[], R], *, waits: bool = False) -> R:
        """Run in a thread; `waits` for work that spends its time waiting for a model."""
        limiter = self._many if waits else self._few
        if self.metrics.gauges["clew_asks_waiting"] >= self.served.settings.limits.waiting:
            raise BusyError("too many questions wait already: try again in a moment")
        self.metrics.change("clew_asks_waiting", 1)
        try:
            await limiter.acquire_on_behalf_of(work)
        finally:
            self.metrics.change("clew_asks_waiting", -1)
        self.metrics.change("clew_asks_running", 1)
        try:
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))
        finally:
            limiter.release_on_behalf_of(work)
            self.metrics.change("clew_asks_running", -1)

    async def ask(self, base: ServedBase, request: AskRequest) -> bytes:
        """A finished run as JSON."""
        known = self._known(base, request)
        if known is not None:
            return known
        return await self.in_thread(lambda: self.run(base, request), waits=request.model != "none")

    async def stream(self, base: ServedBase, request: AskRequest) -> AsyncIterator[tuple[str, Any]]:
        """Events as they happen: `span` when a step begins and ends, each `answer`, then the whole `run`."""
        known = self._known(base, request)
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any] | None]()

        def tell(span: Span) -> None:
            event = ("span", span_json(span, recorder.spans[0].start))
            loop.call_soon_threadsafe(events.put_nowait, event)

        recorder = Recorder(on_span=tell)

        async def work() -> bytes:
            try:
                return await self.in_thread(lambda: self.run(base, request, recorder), waits=request.model != "none")
            finally:
                events.put_nowait(None)

        if known is None:
            task = asyncio.create_task(work())
            while (event := await events.get()) is not None:
                yield event
            try:
                known = await task
            except ClewError as error:
                yield "error", {"error": str(error)}
                return
        content = json.loads(known)
        for answer in content["answers"]:
            yield "answer", answer
        yield "run", content

    def run(self, base: ServedBase, request: AskRequest, recorder: Recorder | None = None) -> bytes:
        """Ask in this thread and keep the run."""
        name = request.method or catalog.DEFAULT_METHOD
        options = checked_options(name, request.options)
        fixes = {text: tuple(keys) for text, keys in request.fixes.items()}
        recorder = recorder or Recorder()
        try:
            method = base.method(name, options, self.served.model(request.model), fixes)
            answer = catalog.ask(method, request.question, recorder)
        except InputError:
            self.metrics.count("clew_asks_total", base=base.name, method=name, outcome="refused")
            raise
        except ClewError:
            self.metrics.count("clew_asks_total", base=base.name, method=name, outcome="failed")
            raise
        self.metrics.count("clew_asks_total", base=base.name, method=name, outcome="answered")
        kb, run, shown = base.tools().kb, self.runs.new_id(), answer_json(answer)
        answers = shown["answers"][: request.k]
        for candidate in answers:
            place_passages(kb, candidate["evidence"])
        place_passages(kb, shown.get("evidence", []))
        begun = recorder.spans[0].start if recorder.spans else 0.0
        content = {
            **shown,
            "run": run,
            "base": base.name,
            "model": request.model,
            "answers": answers,
            "trace": [span_json(span, begun) for span in recorder.spans],
            "spending": asdict(recorder.spending()),
            "request": request.model_dump(),
        }
        encoded = json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "replace")
        self.runs.put(base.name, run, encoded)
        self._remember(base, request, encoded)
        return encoded

    def _known(self, base: ServedBase, request: AskRequest) -> bytes | None:
        if request.model != "none":
            return None
        with self._lock:
            return self._remembered.get(self._key(base, request))

    def _remember(self, base: ServedBase, request: AskRequest, content: bytes) -> None:
        if request.model == "none":
            with self._lock:
                self._remembered[self._key(base, request)] = content
                while len(self._remembered) > REMEMBERED:
                    self._remembered.popitem(last=False)

    @staticmethod
    def _key(base: ServedBase, request: AskRequest) -> tuple[Any, ...]:
        generation = base.tools().identity
        return base.name, generation, request.model_dump_json()


def place_passages(kb: KnowledgeBase, evidence: list[dict[str, Any]]) -> None:
    """Give quotations from a file its name and page, which the node knows."""
    if "file" not in kb.schema.attribute_types:
        return
    for piece in evidence:
        if piece["kind"] == "passage" and "file" not in piece:
            attributes = plain(kb.node(kb.find(piece["node"]["key"])).attributes)
            piece |= {name: attributes[name] for name in ("file", "page") if attributes.get(name) is not None}


def span_json(span: Span, begun: float) -> dict[str, Any]:
    """A step for the page; what it found is cut to a readable length."""
    return {
        "id": span.id,
        "parent": span.parent,
        "name": span.name,
        "start": round(span.start - begun, 6),
        "seconds": span.seconds,
        "details": _brief(span.details),
        "error": span.error,
        "calls": [asdict(call) for call in span.calls],
    }


def _brief(details: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in details.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        kept[name] = value if isinstance(value, int | float | bool | None) else text[:LONGEST_DETAIL]
    return kept
