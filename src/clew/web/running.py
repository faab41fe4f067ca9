"""A running server: uvicorn with limits, one process or several."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable

import uvicorn

from clew.web.app import create_app
from clew.web.settings import ServerSettings

SHUTDOWN_SECONDS = 20
"""How long questions under way may go on after the server was told to stop."""


def run(settings: ServerSettings, host: str, port: int, workers: int, say: Callable[[str], None]) -> None:
    """Serve until told to stop."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        listening.listen(2048)
        say(f"http://{host}:{listening.getsockname()[1]}")
        others = [
            multiprocessing.get_context("fork").Process(target=serve_on, args=(settings, listening))
            for _ in range(workers - 1)
        ]
        for other in others:
            other.start()
        try:
            serve_on(settings, listening)
        finally:
            for other in others:
                other.terminate()
            for other in others:
                other.join(SHUTDOWN_SECONDS + 5)


def serve_on(settings: ServerSettings, listening: socket.socket) -> None:
    """Serve on a socket that is open already."""
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])
