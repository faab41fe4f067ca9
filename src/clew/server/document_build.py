"""Process that builds a document base and reports progress: `python -m clew.server.document_build FILES KB CACHE`.

If KB is `-`, the location is read as JSON from standard input, since an address may contain a password. Standard input
stays open while the server runs, so that an abandoned build ends and does not block the next build.
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
from clew.documents.workbooks import with_workbooks
from clew.store.building import build, into
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.visibility import restricted
from clew.store.sources.categories import with_categories
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources

MEMORY = 8 << 30
"""Maximum address space of a build, in bytes."""
LONGEST = 1800
"""Maximum duration of a build, in seconds."""
OVERTAKEN = 3
"""Exit status if another process has written the base meanwhile."""


def say(**fields: object) -> None:
    """Write one line to the server."""
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main(files: str, base: str, cache: str) -> int:
    """Read all files and build. Report and skip unreadable files."""
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
            options = SourceOptions(visible=earlier_rules(place))
            found = ReadFolder(read_sources(with_workbooks([Path(files)]), options), SchemaEdits())
        tables = restricted(found.tables, earlier_rules(place), strict=False)
        tables = tables if are_documents else with_categories(tables)
        into(place, lambda folder: build(tables, folder, edits=found.edits, say=stage), stage, replacing)
    except ClewError as error:
        say(error=str(error))
        return OVERTAKEN if isinstance(error, LockedError) else 1
    except MemoryError:
        say(error="a file exceeds the memory limit of a build")
        return 1
    say(skipped=[{"file": one.file, "reason": one.message} for one in found.skipped])
    return 0


def _end_with_the_server() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
