"""Fits the matrix by which questions in other languages reach the reader (reading/weights/languages.npz).

    python benchmarks/fit_languages.py MINTAKA.json.gz SOURCE…     SOURCE as for `clew train reader`

Pairs of a text for the multilingual embedder and the English one whose vector it should get: questions of Mintaka's
development set beside their eight translations (CC BY 4.0), names masked where a translation keeps them; 33 questions
written in nine languages (data/languages/templates.txt); masked English questions over invented schemas beside
themselves. Ridge regression; cosines with templates left out are printed. The embedder takes an hour on two cores.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from clew.answering.reading.encoders import SHIPPED, Encoders
from clew.answering.reading.other_languages import BRIDGE
from clew.answering.reading.scoring import TypedSpan, masked
from clew.lab.training.reader.examples import read_sources
from clew.models.embedding.multilingual import MultilingualEmbedder

parser = argparse.ArgumentParser()
parser.add_argument("mintaka", type=Path)
parser.add_argument("sources", type=Path, nargs="+")
parser.add_argument("--english", type=int, default=4000)
parser.add_argument("--translated", type=int, default=350, help="of each language")
parser.add_argument("--out", type=Path, default=SHIPPED / BRIDGE)
KINDS = {"movies": "film", "books": "book", "music": "artist", "history": "person", "politics": "country"}
KINDS |= {"geography": "place", "sports": "team", "videogames": "game"}
CODES = ("en", "de", "es", "fr", "it", "pt", "ja", "ar", "hi")
NAME = re.compile(r"(?<![A-Za-zÀ-ÿ])[AB](?![A-Za-zÀ-ÿ])")
FOLDS, STRENGTH = 4, 3.0
Pair = tuple[str, str]


def translated(file: Path, most: int, rng: random.Random) -> Iterator[Pair]:
    found: dict[str, list[Pair]] = {}
    for question in json.loads(gzip.decompress(file.read_bytes())):
        kind, text = KINDS[question["category"]], question["question"]
        every = [one for one in question["questionEntity"] if one.get("span") and one["entityType"] == "entity"]
        spans = [(TypedSpan(*one["span"], kind), one["mention"]) for one in sorted(every, key=lambda one: one["span"])]
        if any(one[0].end > other[0].start for one, other in pairwise(spans)):
            continue
        for code, said in question["translations"].items():
            places = [said.find(name) for _, name in spans] if said else [-1]
            if spans and min(places) >= 0:
                own = [
                    TypedSpan(place, place + len(name), kind) for place, (_, name) in zip(places, spans, strict=True)
                ]
                focus = rng.choice([None, *range(len(own))])
                pair = (masked(said, own, focus), masked(text, [span for span, _ in spans], focus))
            else:
                pair = (said or text, text)
            found.setdefault(code, []).append(pair)
    for pairs in found.values():
        yield from rng.sample(pairs, min(most, len(pairs)))


def templates(file: Path) -> Iterator[tuple[int, str, str, str]]:
    """Number, language, text and English text, without a focus and with each name in it."""
    for number, line in enumerate(file.read_text("utf-8").splitlines()[1:]):
        types, *said = line.split("|")
        first, second = types.split(",")
        kinds = {"A": first, "B": second or first}
        for focus in (None, *sorted(set(NAME.findall(said[0])))):
            texts = [_marked(text, kinds, focus) for text in said]
            yield from ((number, code, text, texts[0]) for code, text in zip(CODES, texts, strict=True))


def _marked(text: str, kinds: dict[str, str], focus: str | None) -> str:
    found = list(NAME.finditer(text))
    names = [one[0] for one in found]
    return masked(text, [TypedSpan(*one.span(), kinds[one[0]]) for one in found], names.index(focus) if focus else None)


def solved(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = x.mean(axis=0)
    own = np.c_[x - mean, np.ones(len(x))]
    return mean, np.linalg.solve(own.T @ own + STRENGTH * np.eye(own.shape[1]), own.T @ y)


def main() -> None:
    given, rng = parser.parse_args(), random.Random(0)
    english = sorted({text for one in read_sources(given.sources) for ex in one.examples for text in ex.texts})
    pairs = [(text, text) for text in rng.sample(english, given.english)]
    pairs += translated(given.mintaka, given.translated, rng)
    told = list(templates(Path(__file__).parent / "data" / "languages" / "templates.txt"))
    every = [*pairs, *((text, same) for _, _, text, same in told)]
    encoders, embedder = Encoders(), MultilingualEmbedder()
    x = embedder.embed([text for text, _ in every], role="query")
    y = encoders.meaning([same for _, same in every])
    numbers = np.array([-1] * len(pairs) + [number for number, *_ in told])
    cosines: dict[str, list[float]] = {}
    for fold in range(FOLDS):
        out = (numbers >= 0) & (numbers % FOLDS == fold)
        mean, matrix = solved(x[~out], y[~out])
        found = np.c_[x[out] - mean, np.ones(out.sum())] @ matrix
        alike = (found * y[out]).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(y[out], axis=1)
        codes = [code for number, code, *_ in told if number % FOLDS == fold]
        for code, one in zip(codes, alike, strict=True):
            cosines.setdefault(code, []).append(float(one))
    print({code: round(sum(own) / len(own), 3) for code, own in cosines.items()}, len(every))
    mean, matrix = solved(x, y)
    parts = {"mean": mean, "matrix": matrix[:-1], "offset": matrix[-1]}
    np.savez(given.out, **{name: part.astype(np.float16) for name, part in parts.items()})


main()
