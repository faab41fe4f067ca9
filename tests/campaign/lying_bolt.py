"""A server that says it speaks Bolt and then sends anything."""

import random
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from trials import SECONDS

from clew.core.errors import ClewError
from clew.store.remote.bolt import BoltServer, DatabaseLimits, GraphAddress

VERSIONS = (b"\0\0\4\4", b"\0\0\0\5", b"\0\0\2\5", b"\0\0\3\5", b"HTTP")


def message(content: bytes) -> bytes:
    """Return a message in one chunk."""
    return struct.pack(">H", len(content)) + content + b"\0\0"


SOUND = message(b"\xb1\x70\xa2\x86server\x8bNeo4j/5.0.0\x8dconnection_id\x82b1")
LIES = (
    message(b"\xb1\x71\xd6\xff\xff\xff\xff"),  # a list of four billion
    message(b"\xb1\x7f\xa2\x84code\x84evil\x87message\xd2\xff\xff\xff\xff"),  # a text of four gigabytes
    message(b"\xb1\x70\xda\xff\xff\xff\xff"),
    message(b"\x91" * 500),  # lists in lists
    b"\xff\xff" + b"\xd6" * 65535,
    b"\0\0" * 100,
)


SERVERS = 20
"""Servers that are asked at the same time: most of the time is waiting."""


def together(seed: int) -> list[str]:
    """Ask many such servers at once."""
    with ThreadPoolExecutor(SERVERS) as threads:
        seeds = range(seed * SERVERS, (seed + 1) * SERVERS)
        faults = zip(seeds, threads.map(replies, seeds), strict=True)
        return [f"server {number}: {fault}" for number, found in faults for fault in found]


def replies(seed: int) -> list[str]:
    """Ask such a server. It has to be refused with a message, and soon."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(listening, random.Random(seed)), daemon=True).start()
        address = GraphAddress(f"bolt://user:secret@127.0.0.1:{listening.getsockname()[1]}/x")
        server = BoltServer(address, DatabaseLimits(seconds=3, connect_seconds=1))
        begun = time.monotonic()
        try:
            server.rows("RETURN 1")
        except ClewError as error:
            if "secret" in str(error):
                return ["the password is shown"]
        except Exception as error:
            return [f"internal: {type(error).__name__}: {error}"]
        return ["slow"] if time.monotonic() - begun > SECONDS else []


def _serve(listening: socket.socket, pick: random.Random) -> None:
    while True:
        try:
            caller, _ = listening.accept()
            with caller:
                caller.settimeout(5)
                caller.recv(20)
                caller.sendall(pick.choice((*VERSIONS, pick.randbytes(4))))
                for _ in range(pick.randrange(1, 12)):
                    caller.recv(4096)
                    lie = pick.choice((*LIES, pick.randbytes(pick.randrange(200)), message(pick.randbytes(20))))
                    caller.sendall(SOUND if pick.random() < 0.5 else lie)
        except OSError:
            if listening.fileno() < 0:
                return
