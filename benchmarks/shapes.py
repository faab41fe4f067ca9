"""Compare the shape of bases built without options with descriptions written before the first build.

usage: python benchmarks/shapes.py FOLDER [--only NAME] [--expected held_out.json]

FOLDER holds a folder of data for each entry of a file of descriptions in benchmarks/data/shapes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew
from clew.core.errors import ClewError
from clew.core.nouns import singular

SHAPES = Path(__file__).parent / "data" / "shapes"


def plain(name: str) -> str:
    """Compare names in the singular and in lower case."""
    return singular(name).lower()


def checks(base: clew.Base, expected: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield each expected fact and whether the base has it."""
    schema = base.schema
    types = {plain(row.name): row for row in schema.node_types}
    tables = base.tools.local.to_tables()
    names: dict[str, set[str]] = {}
    values: dict[str, set[str]] = {}
    for piece in tables.nodes:
        for row in piece.table.to_pylist():
            names.setdefault(plain(row["type"]), set()).add(row["name"])
            for name, value in row.items():
                if isinstance(value, str | list):
                    values.setdefault(name, set()).update([value] if isinstance(value, str) else value)
    for kind, name in expected["types"].items():
        yield f"type {kind}", kind in types
        if name is not None:
            yield f"{kind} called {name}", name in names.get(kind, ())
    relations = {(plain(row.head), row.name, plain(row.tail)) for row in schema.relations}
    for head, relation, tail in expected["references"]:
        yield f"{head} –{relation}→ {tail}", (head, relation, tail) in relations
    for name, kind in expected["attributes"].items():
        yield f"{name} is {kind}", schema.attribute_types.get(name) == kind
    for name, value in expected.get("values", {}).items():
        made = names.get(plain(name), set()) if name in {row.name for row in schema.relations} else set()
        yield f"{name} has {value}", value in values.get(name, set()) | made
    for kind in expected.get("absent_types", ()):
        yield f"no type {kind}", plain(kind) not in types
    for name in expected.get("names", ()):
        yield f"something called {name}", any(name in group for group in names.values())
    allowed = {*map(plain, expected["types"]), *(plain(row.name) for row in schema.relations)}
    if expected["types"]:
        strange = sorted(types.keys() - allowed)
        yield f"no other types ({', '.join(strange[:8])})", not strange


def main() -> None:
    """Build every folder and print what is as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--expected", default="expected.json", help="expected.json was developed on, held_out.json not")
    options = parser.parse_args()
    right = total = 0
    for name, expected in json.loads((SHAPES / options.expected).read_text()).items():
        if options.only not in (None, name):
            continue
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as target:
            try:
                report = clew.build([options.folder / name], Path(target) / "b.kb")
                found = list(checks(clew.open(Path(target) / "b.kb"), expected))
                notes = report.notes
            except ClewError as error:
                found, notes = [(f"refused: {error}"[:400], False)], ()
                least = 2 * len(expected["types"]) + len(expected["references"]) + len(expected["attributes"])
                found += [("", False)] * (least + len(expected.get("absent_types", ())) - 1)
        good = sum(is_right for _, is_right in found)
        right, total = right + good, total + len(found)
        print(f"{name}: {good} of {len(found)} ({time.perf_counter() - begun:.0f} s)")
        for text, is_right in found:
            if text and not is_right:
                print(f"  wrong: {text}")
        for note in notes:
            print(f"  note: {note}"[:300])
    print(f"all: {right} of {total}")


if __name__ == "__main__":
    main()
