"""Fits the layer that recognises the words of names in a question (answering/reading/meaning.py).

usage: python benchmarks/fit_names.py BASE.kb=QUESTIONS.jsonl … [-o FILE] [--test BASE.kb=QUESTIONS.jsonl …]

Each line of QUESTIONS has a question and its mentions. Every question is read four times over its base by the
shipped encoders: as it is, which teaches words that are no names, and with one name replaced, which teaches the words
of names: by one or two everyday nouns, by a made-up word or a name from another base, and by a word of a name that the
base has beside a word of another name ("South America" where there is a South Park). The base knows none of them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew.answering.methods.role_choice import reader_of
from clew.answering.reading import meaning
from clew.answering.reading.encoders import Floats
from clew.answering.reading.mentions import find_named
from clew.models.embedding.onnx import open_tokenizer

SYLLABLES = (
    "ka", "zu", "fli", "bro", "ste", "mon", "dra", "vi", "que", "lo", "sha", "pri", "no", "thu", "gam", "xi", "wel",
    "osk", "ur", "ynt", "alf", "ed", "mi",
)  # fmt: skip
ENDINGS = ("itis", "osis", "ine", "ium", "er", "son", "berg", "ville", "a")
PENALTY = 33.0
"""Of the squared weights, with features of unit variance."""
STEPS = 25
RANKS = (4_000, 20_000)
"""Words of the encoders' vocabulary between these ranks are neither the most frequent nor the rarest ones."""


@dataclass(frozen=True)
class Row:
    """A word: what the layer sees of it, whether it belongs to the replaced name, and of which reading it is."""

    features: Floats
    is_name: bool
    reading: tuple[str, int, str]


def made_up(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.choice((2, 3))))
    word = "".join(rng.choice(SYLLABLES) for _ in range(rng.choice((2, 3, 3, 4))))
    word += rng.choice(ENDINGS) if rng.random() < 0.3 else ""
    return word + (" " + "".join(rng.choice(SYLLABLES) for _ in range(2)) if rng.random() < 0.3 else "")


@cache
def nouns() -> list[str]:
    """Words of the encoders' vocabulary that it has in the plural, too."""
    ranks = open_tokenizer().get_vocab()
    words = {word for word, rank in ranks.items() if word.isascii() and word.isalpha() and RANKS[0] < rank < RANKS[1]}
    return sorted(word for word in words if f"{word}s" in words and not word.endswith(("ing", "ed", "ly")))


def cased(rng: random.Random, name: str, like: str) -> str:
    if like.islower() or rng.random() < 1 / 3:
        return name.lower()
    return name.title() if like[:1].isupper() and rng.random() < 0.8 else name


def variants(
    question: dict[str, Any], own: Sequence[str], others: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """The kind, the question, and the span of the name that was put into it."""
    text = question["question"]
    yield "as it is", text, (-1, -1)
    mentions = [one["text"] for one in question.get("mentions", ()) if one["text"] in text]
    if mentions:
        old = rng.choice(mentions)
        at, kind = text.find(old), rng.choice(("other", "made up"))
        name = cased(rng, made_up(rng) if kind == "made up" else rng.choice(others), old)
        halves = [rng.choice(own).split()[0], rng.choice(others).split()[-1]]
        part = cased(rng, " ".join(rng.sample(halves, 2) if rng.random() < 1 / 3 else halves), old)
        for what, new in (("noun", " ".join(rng.sample(nouns(), rng.choice((1, 1, 2))))), (kind, name), ("part", part)):
            yield what, text[:at] + new + text[at + len(old) :], (at, at + len(new))


def rows_of(pairs: Sequence[str], count: int, seed: int) -> Iterator[Row]:
    rng = random.Random(seed)
    asked = {
        Path(base): [json.loads(line) for line in Path(questions).read_text("utf-8").splitlines()]
        for base, questions in (pair.split("=") for pair in pairs)
    }
    others = [one["text"] for some in asked.values() for question in some for one in question.get("mentions", ())]
    for base, questions in asked.items():
        tools = clew.open(base).tools
        names = [one["text"] for question in questions for one in question.get("mentions", ())]
        for number, question in enumerate(rng.sample(questions, min(count, len(questions)))):
            own = [one["text"] for one in question.get("mentions", ())]
            for kind, text, (start, end) in variants(question, names, others, rng):
                if kind != "as it is" and any(link.how == "exact" for link in tools.names.link(text[start:end], k=1)):
                    continue
                for token_start, token_end, features in read(tools, text):
                    is_linkless = kind == "as it is" and any(text[token_start:token_end] in name for name in own)
                    if not is_linkless:  # a name that the base has under another one
                        yield Row(features, start <= token_start < end, (base.stem, number, kind))
        print(base.stem, flush=True)


def read(tools: Any, text: str) -> list[tuple[int, int, Floats]]:
    """The words of a question that nothing is linked to, each with the row of features that the layer gets."""
    seen: list[tuple[int, int, Floats]] = []

    def watched(*given: Any) -> Any:
        tokens, rows = word_rows(*given)
        seen[:] = [(token.start, token.end, row) for token, row in zip(tokens, rows, strict=True)]
        return tokens, rows

    word_rows, meaning.word_rows = meaning.word_rows, watched
    try:
        understanding = reader_of(tools).understand(*find_named(text, tools.kb, tools.names))
    finally:
        meaning.word_rows = word_rows
    return seen if understanding.is_english else []


def logistic(values: Floats, labels: Floats, penalty: float) -> tuple[Floats, float]:
    """Return weights and a bias: logistic regression by Newton's method, with a penalty on large weights."""
    mean, deviation = values.mean(axis=0), values.std(axis=0) + 1e-3
    scaled = np.hstack(((values - mean) / deviation, np.ones((len(values), 1)))).astype(np.float64)
    penalties = np.full(scaled.shape[1], penalty)
    penalties[-1] = 0.0
    weights = np.zeros(scaled.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        curve = (scaled * (likely * (1 - likely))[:, None]).T @ scaled + np.diag(penalties)
        weights -= np.linalg.solve(curve, scaled.T @ (likely - labels) + penalties * weights)
    own = weights[:-1] / deviation
    return own, float(weights[-1] - own @ mean)


def fitted(rows: Sequence[Row]) -> tuple[Floats, float]:
    values, labels = np.array([row.features for row in rows]), np.array([row.is_name for row in rows], dtype=np.float64)
    return logistic(values, labels, PENALTY)


def report(rows: Sequence[Row], weights: Floats, bias: float) -> None:
    """By kind the share of readings in which a word of the name, or any word, is at least so likely."""
    best: dict[tuple[str, int, str], float] = {}
    for row in rows:
        if row.is_name or row.reading[2] == "as it is":
            likely = float(1 / (1 + np.exp(-(row.features @ weights + bias))))
            best[row.reading] = max(best.get(row.reading, 0.0), likely)
    for kind in ("as it is", "noun", "other", "made up", "part"):
        values = np.array([value for reading, value in best.items() if reading[2] == kind])
        shares = {least: round(float((values >= least).mean()), 3) for least in (0.1, 0.2, 0.3, 0.4, 0.5)}
        print(json.dumps({"kind": kind, "n": len(values)} | shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--test", nargs="*", default=())
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = list(rows_of(given.pairs, given.questions, given.seed))
    weights, bias = fitted(rows)
    print(f"{len(rows)} words, {sum(row.is_name for row in rows)} of names")
    if given.test:
        report(list(rows_of(given.test, given.questions, given.seed)), weights, bias)
    if given.out is not None:
        told = {"weights": [round(float(one), 4) for one in weights], "bias": round(bias, 4)}
        given.out.write_text(json.dumps(told) + "\n", "utf-8")


if __name__ == "__main__":
    main()
