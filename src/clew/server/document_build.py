"""The process that builds a document base, `python -m clew.server.document_build FILES KB CACHE`; tells how it goes.

Where KB is `-`, standard input tells in JSON where the base is to be, since an address may hold a password; it stays
open as long as the server lives: a build that nobody waits for would be in the way of the next one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Thread

from clew.core.errors import ClewError, LockedError
from clew.core.limits import limit_memory, limit_seconds
from clew.documents.building import ReadFolder, earlier_rules, hold_documents, read_folder
from clew.documents.rows import DocumentOptions
from clew.store.building import build, into
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.visibility import restricted
from clew.store.sources.categories import with_categories
from clew.store.sources.read import read_sources

MEMORY = 8 << 30
"""Bytes of address space after which a build fails instead of taking the machine with it."""
LONGEST = 1800
"""Seconds after which a build is given up."""
OVERTAKEN = 3
"""The status where somebody else has written the base meanwhile."""


def say(**told: object) -> None:
    """One line to the server."""
    sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main(files: str, base: str, cache: str) -> int:
    """Read every file and build; what cannot be read is reported and left out."""
    place, replacing = (base, None) if base != "-" else json.loads(sys.stdin.readline())
    if base == "-":
        Thread(target=_end_with_the_server, daemon=True).start()
    limit_memory(MEMORY)
    limit_seconds(LONGEST)

    def stage(name: str) -> None:
        say(stage=name, done=1, total=1)

    try:
        are_documents = hold_documents([Path(files)])
        if are_documents:
            found = read_folder(
                [Path(files)],
                DocumentOptions(cache=Path(cache)),
                lambda what, done, total: say(stage=what, done=done, total=total),
            )
        else:
            found = ReadFolder(read_sources([Path(files)]), SchemaEdits())
        tables = restricted(found.tables, earlier_rules(place), strict=False)
        tables = tables if are_documents else with_categories(tables)
        into(place, lambda folder: build(tables, folder, edits=found.edits, say=stage), stage, replacing)
    except ClewError as error:
        say(error=str(error))
        return OVERTAKEN if isinstance(error, LockedError) else 1
    except MemoryError:
        say(error="a file needs more memory than a build may take")
        return 1
    say(skipped=[{"file": one.file, "reason": one.reason} for one in found.skipped])
    return 0


def _end_with_the_server() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
