"""The process that reads files one by one, `python -m clew.documents.reading_process`.

Each line it is given is a JSON list of a path and a limit in seconds. Its reply is the length of a JSON text in
eight bytes, then that text: what was extracted, or why nothing was.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from clew.core.errors import SourceError
from clew.core.limits import limit_memory, limit_seconds
from clew.documents.cache import to_json
from clew.documents.reading import read_file, reason

MEMORY = 4 << 30
"""Bytes of address space that reading may take."""
LENGTH = 8


def main() -> None:
    """Read until there is nothing more to read, or nobody listens."""
    limit_memory(MEMORY)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the replies
    for line in sys.stdin.buffer:
        path, seconds = json.loads(line)
        limit_seconds(int(seconds) + 5)
        reply = replied(Path(path))
        try:
            replies.write(len(reply).to_bytes(LENGTH, "big") + reply)
            replies.flush()
        except BrokenPipeError:
            return


def replied(file: Path) -> bytes:
    """What was extracted, or why nothing was, as JSON."""
    try:
        return to_json(read_file(file))
    except SourceError as error:
        return json.dumps({"error": reason(error, file)}).encode()
    except MemoryError:
        return json.dumps({"error": "the file needs more memory than one file may take"}).encode()


if __name__ == "__main__":
    main()
