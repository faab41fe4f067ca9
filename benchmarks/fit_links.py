"""Fits the probability that a name of like spelling is the one that was meant (store/index/linking.py).

usage: python benchmarks/fit_links.py SOURCE …

A SOURCE is a folder with schemas.jsonl and questions.jsonl, as `clew train reader` reads it. The names that questions
over twelve schemas at a time mention are indexed. Right links: those names with one or two typing errors, in another
order, shortened, with another hyphen or plural. Wrong links: names of other schemas and made-up words. The last pools,
whose schemas begin with j_ and k_, are kept out of the fit and measured on.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from fit_names import made_up

from clew.core.schema import NodeType, Schema
from clew.lab.training.reader.examples import read_sources
from clew.store.index.linking import link_features
from clew.store.index.names import NameIndex, form_of

HELD_OUT = ("j_", "k_")
POOLED, EACH = 12, 250
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def mistyped(rng: random.Random, name: str) -> str:
    places = [place for place, letter in enumerate(name) if letter.isalpha()][1:]
    if len(places) < 3:
        return name
    at, kind = rng.choice(places), rng.randrange(4)
    if kind == 0:
        return name[:at] + name[at + 1 :]
    if kind == 1:
        return name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :]
    return name[:at] + rng.choice(LETTERS) + name[at + (kind == 2) :]


def misspelled(rng: random.Random, name: str) -> tuple[str, str]:
    """A kind of mistake, and the name with it; the same name where it cannot be made."""
    words, kind = name.split(), rng.choice(("one", "one", "two", "accents", "order", "plural", "hyphen", "short"))
    if kind in ("one", "two"):
        return kind, mistyped(rng, mistyped(rng, name) if kind == "two" else name)
    if kind == "accents":
        return kind, "".join(one for one in unicodedata.normalize("NFKD", name) if not unicodedata.combining(one))
    if kind == "order":
        return kind, " ".join((words[-1], *words[:-1]))
    if kind == "plural":
        return kind, name.removesuffix("s") if name.endswith("s") else f"{name}s"
    if kind == "short":
        return kind, " ".join(words[1:] if rng.random() < 0.5 else words[:-1]) or name
    return kind, name.replace("-", " ") if "-" in name else name.replace(" ", "-", 1)


def pool(names: Sequence[str], others: Sequence[str], rng: random.Random) -> list[tuple[list[float], int]]:
    rows = []
    schema = Schema((NodeType("thing", len(names)),), (), {})
    with tempfile.TemporaryDirectory() as folder:
        NameIndex.write(Path(folder), pa.array(names), np.arange(len(names), dtype=np.int32))
        index = NameIndex.open(Path(folder), np.zeros(len(names), dtype=np.int32), schema)
        asked = [(misspelled(rng, name)[1], name) for name in rng.sample(names, min(EACH, len(names)))]
        asked += [(name, "") for name in (*rng.sample(others, 2 * EACH), *(made_up(rng) for _ in range(EACH // 2)))]
        for text, right in asked:
            links = index.link(text, k=20)
            if links and links[0].how == "fuzzy":
                features = link_features(text, [link.alias for link in links])
                rows.append((list(features.values()), int(bool(right) and form_of(links[0].alias) == form_of(right))))
    return rows


def main() -> None:
    rng, by_schema = random.Random(0), {}
    for one in read_sources([Path(source) for source in sys.argv[1:]]):
        names = {e.question[s.start : s.end] for e in one.examples for s in e.spans}
        by_schema[one.name] = sorted(name for name in names if form_of(name))
    rows: dict[bool, list[tuple[list[float], int]]] = {True: [], False: []}
    for held_out in (False, True):
        schemas = [name for name in by_schema if name.startswith(HELD_OUT) == held_out]
        rng.shuffle(schemas)
        for at in range(0, len(schemas), POOLED):
            chosen = schemas[at : at + POOLED]
            names = sorted({name for schema in chosen for name in by_schema[schema]})
            forms = {form_of(name) for name in names}
            others = sorted({n for s, some in by_schema.items() if s not in chosen for n in some} - set(names))
            rows[held_out] += pool(names, [name for name in others if form_of(name) not in forms], rng)
    features = list(link_features("a", ["a"]))
    values, labels = (np.array(column, dtype=np.float64) for column in zip(*rows[False], strict=True))
    weights, bias = fitted(values, labels)
    print(json.dumps({name: round(float(w), 2) for name, w in zip(features, weights, strict=True)} | {"bias": bias}))
    values, labels = (np.array(column, dtype=np.float64) for column in zip(*rows[True], strict=True))
    likely = 1 / (1 + np.exp(-(values @ weights + bias)))
    for least in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
        kept = [round(float((likely[labels == is_right] >= least).mean()), 3) for is_right in (1, 0)]
        print(json.dumps({"threshold": least, "right kept": kept[0], "wrong kept": kept[1]}))
    print(json.dumps({"right": int(labels.sum()), "wrong": int((1 - labels).sum()), "fitted on": len(rows[False])}))
    for low in np.arange(0, 1, 0.2):
        inside = (likely >= low) & (likely < low + 0.2)
        if inside.any():
            print(json.dumps({"said": round(low + 0.1, 1), "n": int(inside.sum()), "is": float(labels[inside].mean())}))


def fitted(values: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton's method."""
    rows = np.hstack((values, np.ones((len(values), 1))))
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        curve = (rows * (likely * (1 - likely))[:, None]).T @ rows + 0.1 * np.eye(rows.shape[1])
        weights -= np.linalg.solve(curve, rows.T @ (likely - labels) + 0.1 * weights)
    return weights[:-1], round(float(weights[-1]), 2)


if __name__ == "__main__":
    main()
