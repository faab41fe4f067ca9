"""The process that builds a document base, `python -m clew.web.document_build FILES KB CACHE`; tells how it goes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from clew.building import build
from clew.core.errors import ClewError
from clew.core.limits import limit_memory, limit_seconds
from clew.documents.folder import read_folder
from clew.documents.rows import DocumentOptions

MEMORY = 8 << 30
"""Bytes of address space after which a build fails instead of taking the machine with it."""
LONGEST = 1800
"""Seconds after which a build is given up."""


def say(**told: object) -> None:
    """One line to the server."""
    sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main(files: str, base: str, cache: str) -> int:
    """Read every file and build; what cannot be read is reported and left out."""
    limit_memory(MEMORY)
    limit_seconds(LONGEST)
    try:
        found = read_folder(
            [Path(files)],
            DocumentOptions(cache=Path(cache)),
            lambda what, done, total: say(stage=what, done=done, total=total),
        )
        build(found.tables, Path(base), edits=found.edits, say=lambda stage: say(stage=stage, done=1, total=1))
    except ClewError as error:
        say(error=str(error))
        return 1
    except MemoryError:
        say(error="a file needs more memory than a build may take")
        return 1
    say(skipped=[{"file": one.file, "reason": one.reason} for one in found.skipped])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
