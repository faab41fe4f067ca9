"""Run the server: uvicorn with limits, also for slow clients."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from clew.server.app import create_app
from clew.server.settings import ClientLimits, ServerSettings

SHUTDOWN_SECONDS = 20
"""Time for running questions after the server is told to stop, in seconds."""


def run(settings: ServerSettings, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until the process is stopped."""
    with listen(host, port) as listening:
        say(f"http://{host}:{listening.getsockname()[1]}")
        uvicorn.Server(configured(settings)).run(sockets=[listening])


def configured(settings: ServerSettings) -> uvicorn.Config:
    """Configure uvicorn for the application."""
    return uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a trusted header would let clients choose their address
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
        http=timed_protocol(settings.limits),  # h11, since the other parser does not limit headers
        ws="none",
    )


def timed_protocol(limits: ClientLimits) -> type[H11Protocol]:
    """Return a protocol that closes connections which send a request head or read a reply too slowly."""

    class TimedProtocol(H11Protocol):
        """Limits the time for a request head, from the first byte or the connection, and the time of readers."""

        _head_timer: asyncio.TimerHandle | None = None
        _reply_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Start waiting for the first head."""
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            """Start the timer with a partial head, and stop it with a complete head."""
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self._await_head()
            else:
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop all timers."""
            self._stop_waiting()
            self._stop_watching()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            """Start watching whether the client reads the buffered reply."""
            super().pause_writing()
            self._stop_watching()
            self._watch()

        def resume_writing(self) -> None:
            """Stop watching, since the client has read the buffer."""
            super().resume_writing()
            self._stop_watching()

        def _watch(self) -> None:
            left = self.transport.get_write_buffer_size()

            def check() -> None:
                if self.transport.get_write_buffer_size() < left:
                    self._watch()
                else:
                    self.transport.abort()  # close() would continue waiting for the client

            self._reply_timer = asyncio.get_running_loop().call_later(limits.reply_seconds, check)

        def _stop_watching(self) -> None:
            if self._reply_timer is not None:
                self._reply_timer.cancel()
                self._reply_timer = None

        def _await_head(self) -> None:
            if self._head_timer is None:
                self._head_timer = asyncio.get_running_loop().call_later(limits.head_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

    return TimedProtocol


def listen(host: str, port: int) -> socket.socket:
    """Create a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for sockets with an explicit TCP protocol. Otherwise every reply waits
    # 40 ms for the client's acknowledgement of its first half.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host.strip("[]"), port))
    listening.listen(2048)
    return listening
