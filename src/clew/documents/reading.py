"""One file to its text, or the reason why there is none.

`python -m clew.documents.reading` is the process that reads files one by one. Each line it is given is a JSON list of
a path and a limit in seconds. Its reply is the length of a JSON text in eight bytes, then that text.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from clew.core.errors import MissingExtraError, SourceError
from clew.core.limits import limit_memory, limit_seconds
from clew.documents.extracted import Extracted, to_json
from clew.documents.formats import format_of, read_document


def check_file(file: Path, most_megabytes: int) -> None:
    """Raise for a file that need not be opened to know that it cannot be used."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise SourceError(f"the file cannot be opened: {error.strerror}", file=file) from error
    if size == 0:
        raise SourceError("the file is empty", file=file)
    if size > most_megabytes * 1_000_000:
        raise SourceError(f"the file has {size // 1_000_000} MB, more than {most_megabytes}", file=file)
    if not format_of(file):
        raise SourceError(f"no reader for files that end in {file.suffix or 'nothing'!r} and are no text", file=file)


def read_file(file: Path) -> Extracted:
    """The text of a file; every way to fail is a SourceError."""
    try:
        extracted = read_document(file)
    except MissingExtraError as error:
        raise SourceError(str(error), file=file) from error
    except OSError as error:
        raise SourceError(f"the file cannot be opened: {error.strerror or error}", file=file) from error
    except MemoryError as error:
        raise SourceError("the file needs more memory than one file may take", file=file) from error
    except RecursionError as error:
        raise SourceError("the file is damaged: it nests too deep", file=file) from error
    if not any(block.start < block.end for block in extracted.blocks):
        raise SourceError("the file holds no text", file=file)
    return extracted


def reason(error: SourceError, file: Path) -> str:
    """Why a file was left out, without its own name before it."""
    return str(error).removeprefix(f"{file}: ")


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
