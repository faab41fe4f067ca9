"""Read the text of one file, or the reason for a failure.

`python -m clew.documents.reading` reads files one by one. Each input line is a JSON list of a path and a time limit in
seconds. Each reply is the length of a JSON text in eight bytes, followed by the text.
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
    """Raise SourceError for a file that is unusable by size or format."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise SourceError(f"the file cannot be opened: {error.strerror}", file=file) from error
    if size == 0:
        raise SourceError("the file is empty", file=file)
    if size > most_megabytes * 1_000_000:
        raise SourceError(f"the file has {size // 1_000_000} MB, more than the limit of {most_megabytes} MB", file=file)
    if not format_of(file):
        raise SourceError(f"unsupported format {file.suffix or file.name!r}, and not a text file", file=file)


def read_file(file: Path) -> Extracted:
    """Read the text of a file. Raise SourceError for any failure."""
    try:
        extracted = read_document(file)
    except MissingExtraError as error:
        raise SourceError(str(error), file=file) from error
    except OSError as error:
        raise SourceError(f"the file cannot be opened: {error.strerror or error}", file=file) from error
    except MemoryError as error:
        raise SourceError("the file exceeds the memory limit", file=file) from error
    except RecursionError as error:
        raise SourceError("the file is damaged: it is nested too deeply", file=file) from error
    if not any(block.start < block.end for block in extracted.blocks):
        raise SourceError("the file contains no text", file=file)
    return extracted


def reason(error: SourceError, file: Path) -> str:
    """Return the message of an error without the file name."""
    return str(error).removeprefix(f"{file}: ")


MEMORY = 4 << 30
"""Maximum address space of the process, in bytes."""
LENGTH = 8
"""Bytes before each reply that tell its length."""


def main() -> None:
    """Read files until the input ends or the output is closed."""
    limit_memory(MEMORY)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the output of libraries out of the replies
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
    """Read a file and return the text or an error as JSON."""
    try:
        return to_json(read_file(file))
    except SourceError as error:
        return json.dumps({"error": reason(error, file)}).encode()
    except MemoryError:
        return json.dumps({"error": "the file exceeds the memory limit"}).encode()


if __name__ == "__main__":
    main()
