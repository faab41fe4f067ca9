"""Bounded reading of replies from other servers."""

from __future__ import annotations

import time
from collections.abc import Iterable


class ReplyTooLongError(ValueError):
    """A reply has more bytes than the caller reads."""


def read_bounded(pieces: Iterable[bytes], most_bytes: int, seconds: float) -> bytes:
    """Return the pieces joined. Raise ReplyTooLongError, or TimeoutError if they take longer than `seconds`.

    HTTP clients apply their timeout to each piece, so a server that sends single bytes can exceed any total time.
    """
    deadline = time.monotonic() + seconds
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > most_bytes:
            raise ReplyTooLongError(f"a reply is longer than {most_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError(f"a reply takes longer than {seconds:g} seconds")
    return bytes(content)
