"""Permission as a property: what a caller may not see changes nothing, as if it had been deleted; prints JSON.

Random graphs whose nodes and edges are for random groups, random callers, random questions that name hidden nodes among
others. What the caller gets (answers, scores, evidence, counts, suggestions, errors, traces) must equal what a base
gives from which everything hidden was deleted before it was built, by other code than the one under test.

usage: python benchmarks/permission.py [--graphs 10000] [--first 0] [--seconds 3600] [--url postgresql://…]

What the reader's networks make of the same tokens is kept: half of the time would go into working it out again. A
folder in memory (TMPDIR=/dev/shm) saves another part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import clew
from clew.answering.reading.encoders import Encoders
from clew.core.errors import ClewError
from clew.store.building import build, into
from clew.store.graph.tables import GROUPS, Piece, Tables

NAMES = ("marfan", "ehlers", "noonan", "fibrillin", "collagen", "scoliosis", "myopia", "stroke", "anna", "bela")
KINDS = ("gene", "disease", "sign")
RELATIONS = ("causes", "has sign", "is_a")
GROUPS_THERE = ("hr", "board", "clinic")
METHODS = ("bm25", "hybrid", "vector_search", "focus_plus", "aligned_paths", "subgraph_reranking")
OF_TEXTS = 3
"""So many of them need no edges."""
MOST_KEPT = 50_000
Row = dict[str, Any]


def random_rows(rng: random.Random) -> tuple[list[Row], list[Row]]:
    """Nodes and edges, a third of them for some groups."""

    def groups() -> list[str] | None:
        return rng.sample(GROUPS_THERE, rng.randint(1, 2)) if rng.random() < 0.35 else None

    nodes = []
    for number in range(rng.randint(3, 14)):
        name = " ".join(rng.sample(NAMES, rng.randint(1, 2))).title() + rng.choice(["", "", f" {number}"])
        text = " ".join(rng.choices(NAMES, k=rng.randint(0, 6)))
        aliases = [" ".join(rng.sample(NAMES, 2))] if rng.random() < 0.3 else []
        colour = rng.choice([None, "red", "blue"]) if rng.random() < 0.5 else None
        row = {"key": f"K{number}", "type": rng.choice(KINDS), "name": name, "aliases": aliases, "text": text}
        nodes.append({**row, "colour": colour, "age": rng.choice([None, 3, 40]), GROUPS: groups()})
    edges = []
    for _ in range(rng.randint(2, 24)):
        head, tail = rng.choice(nodes)["key"], rng.choice(nodes)["key"]
        share = rng.choice([None, "often", "seldom"])
        edges.append({"head": head, "relation": rng.choice(RELATIONS), "tail": tail, "share": share, GROUPS: groups()})
    return nodes, edges


def deleted(nodes: list[Row], edges: list[Row], caller: set[str]) -> tuple[list[Row], list[Row]]:
    """What is left when everything is deleted that the caller may not see, and no row says for whom it is."""

    def left(rows: list[Row]) -> list[Row]:
        return [row for row in rows if not row[GROUPS] or caller & set(row[GROUPS])]

    nodes = left(nodes)
    keys = {row["key"] for row in nodes}
    edges = [row for row in left(edges) if row["head"] in keys and row["tail"] in keys]
    return [_without_groups(row) for row in nodes], [_without_groups(row) for row in edges]


def _without_groups(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != GROUPS}


def tables(nodes: list[Row], edges: list[Row]) -> Tables:
    text, texts = pa.string(), pa.list_(pa.string())
    kinds = {"aliases": texts, GROUPS: texts, "age": pa.int64()}

    def piece(rows: list[Row], fixed: tuple[str, ...], name: str) -> Piece:
        told = list(dict.fromkeys(column for row in rows for column in row))
        kept = [column for column in told if column in fixed or any(row[column] is not None for row in rows)]
        schema = pa.schema([(column, kinds.get(column, text)) for column in (kept or fixed)])
        return Piece(pa.Table.from_pylist([{column: row[column] for column in kept} for row in rows], schema), name)

    ends = ("head", "relation", "tail")
    return Tables((piece(nodes, ("key", "type", "name", "aliases", "text"), "n"),), (piece(edges, ends, "e"),))


def questions(rng: random.Random, nodes: list[Row]) -> list[str]:
    """About anything that is there, hidden or not."""
    first, second = (rng.choice(nodes)["name"] for _ in range(2))
    kind = rng.choice(KINDS)
    return [
        f"Which {kind}s {rng.choice(['cause', 'have'])} {first}?",
        f"How many {kind}s are there with {second}?",
        rng.choice([f"{first} and {second}", f"red {kind} of {first}", first.lower()[:-1], rng.choice(NAMES)]),
    ]


def heard(base: clew.Base | ClewError, question: str, method: str, key: str) -> list[Any]:
    """Everything that a caller gets to see."""
    if isinstance(base, ClewError):
        return [str(base)]
    told: list[Any] = [base.schema]
    options = {"with_relations": False} if method in METHODS[:OF_TEXTS] else {}  # a database holds none with them
    for call in (
        lambda: _plain(base.ask(question, method, **options)),
        lambda: base.find(question),
        lambda: base.find(question, in_text=True),
        lambda: base.show(key),
        lambda: base.neighbours(key),
        lambda: base.mentions(question),
    ):
        try:
            told.append(call())
        except ClewError as error:
            told.append(f"{type(error).__name__}: {error}")
    return told


def _plain(answer: clew.Answer) -> str:
    shown = answer.to_dict()
    shown.pop("seconds")
    steps = [(span.name, span.details, span.error, span.fallbacks) for span in answer.trace]
    return re.sub(r"0\.\d+(e-\d+)? s\b", "", json.dumps([shown, steps], default=str, sort_keys=True))


def differing(one: str, other: str) -> str:
    """Where two texts part."""
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(0, place - 80) : place + 80]!r} instead of {other[max(0, place - 80) : place + 80]!r}"


def opened(make: Any) -> Any:
    try:
        return make()
    except ClewError as error:
        return error


def check(seed: int, scratch: Path, url: str | None = None) -> list[str]:
    """The differences between what a caller sees and what the base of the rest shows; empty where there are none."""
    rng = random.Random(seed)
    nodes, edges = random_rows(rng)
    caller = set(rng.sample((*GROUPS_THERE, "nobody"), rng.randint(0, 3)))
    whole = f"{url}#permission" if url else scratch / f"{seed}.kb"
    into(whole, lambda folder: build(tables(nodes, edges), folder), widen=True)
    seen = opened(lambda: clew.open(whole, embedder="hash").for_groups(caller))
    rest_nodes, rest_edges = deleted(nodes, edges, caller)
    if not rest_nodes:
        return [] if isinstance(seen, ClewError) else [f"{seed}: something is seen where nothing may be"]
    rest = scratch / f"{seed} rest.kb"
    build(tables(rest_nodes, rest_edges), rest)
    reference = clew.open(rest, embedder="hash")
    problems = []
    for question in questions(rng, nodes):
        method = rng.choice(METHODS if rest_edges else METHODS[:OF_TEXTS])
        key = rng.choice(nodes)["key"]
        mine, theirs = (heard(base, question, method, key) for base in (seen, reference))
        for place, (one, other) in enumerate(zip(mine, theirs, strict=False)):
            if one != other:
                problems.append(
                    f"{seed}, {sorted(caller)}, {method}, {question!r}, part {place}: {differing(str(one), str(other))}"
                )
    for opened_base in (seen, reference):
        if isinstance(opened_base, clew.Base) and hasattr(opened_base.tools.kb, "release"):
            opened_base.tools.kb.release()
    return problems


def keep_encoded() -> None:
    """Networks give the same for the same tokens, whatever base is asked; what reaches them is what could leak."""
    encode: Any = Encoders._encoded
    known: dict[tuple[int, bytes, bytes], Any] = {}

    def encoded(self: Encoders, session: Any, ids: Any, second: Any = None) -> Any:
        key = id(session), np.asarray(ids, dtype=np.int64).tobytes(), b"" if second is None else second.tobytes()
        if key not in known:
            if len(known) >= MOST_KEPT:
                known.clear()
            known[key] = encode(self, session, ids, second)
        return known[key]

    Encoders._encoded = encoded  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--url")
    given = parser.parse_args()
    keep_encoded()
    begun, done, problems = time.monotonic(), 0, []
    while done < given.graphs and time.monotonic() - begun < given.seconds:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["CLEW_CACHE"] = str(Path(scratch) / "cache")  # a view of another run has its vectors already
            for _ in range(min(20, given.graphs - done)):
                problems += check(given.first + done, Path(scratch), given.url)
                done += 1
        if done % 500 == 0 or problems:
            print(done, "graphs,", len(problems), "leaks", file=sys.stderr, flush=True)
    seconds = round(time.monotonic() - begun)
    print(json.dumps({"graphs": done, "questions": 3 * done, "seconds": seconds, "leaks": problems[:20]}, indent=1))


if __name__ == "__main__":
    main()
