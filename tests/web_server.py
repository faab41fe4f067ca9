"""A real server on loopback, in a thread of the test."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import uvicorn

from clew.server.running import configured, listen
from clew.server.settings import ServerSettings


@contextlib.contextmanager
def running(settings: ServerSettings, own: socket.socket | None = None) -> Iterator[str]:
    """The address of a server that runs as long as the block."""
    with own or listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(configured(settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
