"""HTTP over uvicorn, for clients that take their time: the head of a request must come whole within some seconds."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def timed_protocol(seconds: float) -> type[H11Protocol]:
    """A protocol that closes connections which do not send the head of a request within these seconds."""

    class TimedProtocol(H11Protocol):
        """Waits for a head no longer than that, from its first byte or from the beginning of the connection."""

        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """The first head is awaited from here on."""
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            """Part of a head starts the clock and does not turn it back; a whole one stops it."""
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self._await_head()
            else:
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            """Nothing is awaited any more."""
            self._stop_waiting()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            if self._head_timer is None:
                self._head_timer = asyncio.get_running_loop().call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

    return TimedProtocol
