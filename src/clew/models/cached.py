"""Nothing is paid twice: replies are kept by the whole request and the model's name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Lock

from clew.models.identity import digest
from clew.models.protocol import Completion, Request, each, in_order
from clew.models.reply_store import ReplyStore
from clew.models.wrapping import Wrapping


@dataclass(frozen=True)
class Cached(Wrapping):
    """Asks the inner model only what the store does not know, each request once, and stores replies as they come."""

    store: ReplyStore
    _asked: dict[str, Event] = field(default_factory=dict, repr=False)
    """Requests some thread is asking right now, so that no other asks them too."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Known replies from the store, the others from the inner model."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Known replies first, then the others as they come; failures are not kept."""
        places: dict[str, list[int]] = {}
        wanted: dict[str, Request] = {}
        for place, request in enumerate(requests):
            key = digest(request, self.name)
            places.setdefault(key, []).append(place)
            wanted[key] = request
        while wanted:
            known = self.store.get(list(wanted))
            for key, completion in known.items():
                del wanted[key]
                yield from ((place, completion) for place in places[key])
            mine, others = self._divide(wanted)
            try:
                for position, completion in each(self.inner, [wanted[key] for key in mine]):
                    key = mine[position]
                    if completion.error is None:
                        self.store.put(key, completion)
                    self._release(key)
                    del wanted[key]
                    yield from _shared(places[key], completion)
            finally:
                for key in mine:
                    self._release(key)
            # Another thread's requests come last, when none of ours keeps anybody waiting: no circle of waiting.
            for asked in others:
                asked.wait()

    def _divide(self, wanted: dict[str, Request]) -> tuple[list[str], list[Event]]:
        """Which requests fall to this thread, and which ones another thread is asking already."""
        with self._lock:
            mine = [key for key in wanted if key not in self._asked]
            others = [self._asked[key] for key in wanted if key in self._asked]
            self._asked.update((key, Event()) for key in mine)
        return mine, others

    def _release(self, key: str) -> None:
        with self._lock:
            asked = self._asked.pop(key, None)
        if asked is not None:
            asked.set()


def _shared(places: list[int], completion: Completion) -> Iterator[tuple[int, Completion]]:
    """One reply for several equal requests: paid once, so all but the first count as cached."""
    yield places[0], completion
    again = replace(completion, usage=replace(completion.usage, cached=True))
    yield from ((place, again) for place in places[1:])
