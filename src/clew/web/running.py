"""A running server: uvicorn with limits."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from clew.web.app import create_app
from clew.web.http_protocol import timed_protocol
from clew.web.settings import ServerSettings

SHUTDOWN_SECONDS = 20
"""How long questions under way may go on after the server was told to stop."""


def run(settings: ServerSettings, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until told to stop."""
    with listen(host, port) as listening:
        say(f"http://{host}:{listening.getsockname()[1]}")
        uvicorn.Server(configured(settings)).run(sockets=[listening])


def configured(settings: ServerSettings) -> uvicorn.Config:
    """How uvicorn runs the application."""
    return uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whoever is believed about his address has as many as he likes
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
        http=timed_protocol(settings.limits.head_seconds),  # h11: the other parser would let headers grow without limit
        ws="none",
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where a socket says that it speaks TCP does asyncio send at once: else every reply waits 40 ms for the
    # client's acknowledgement of its first half.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host.strip("[]"), port))
    listening.listen(2048)
    return listening
