"""Fits the layer that recognises the words of names in a question (answering/reading/unknown.py).

usage: python benchmarks/fit_names.py SOURCE … [-o FILE] [--questions 24]

A SOURCE is a folder with schemas.jsonl and questions.jsonl, as `clew train reader` reads it. Schemas whose names begin
with j_ or k_ are kept out of the fit and measured on. Each question is read twice by the shipped encoders: with
all its names linked, which teaches words that are no names, and with one name replaced by a name of another schema, a
made-up word or everyday words that nothing is linked to, which teaches the words of names.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from clew.answering.reading.encoders import Encoders, Floats
from clew.answering.reading.plan import Wording
from clew.answering.reading.proposals import Proposer
from clew.answering.reading.reader import BUDGET, CHOSEN_AMONG, PLANS
from clew.answering.reading.scoring import Labels, Scorer, Span, masked, shared_words
from clew.answering.reading.unknown import word_rows
from clew.lab.training.reader.examples import Example, SchemaExamples, read_sources
from clew.models.embedding.words import open_tokenizer
from clew.store.index.names import schema_words
from clew.store.index.tokens import stem

HELD_OUT = ("j_", "k_")
SYLLABLES = (
    "ka", "zu", "fli", "bro", "ste", "mon", "dra", "vi", "que", "lo", "sha", "pri", "no", "thu", "gam", "xi", "wel",
    "osk", "ur", "ynt", "alf", "ed", "mi",
)  # fmt: skip
ENDINGS = ("itis", "osis", "ine", "ium", "er", "son", "berg", "ville", "a")
PENALTY = 300.0
"""Of the squared weights, with features of unit variance."""
STEPS = 25
UNREAD = 7
"""Every so many questions are read beside no plan."""


@dataclass(frozen=True)
class Lesson:
    """A question with the spans of its linked names, and the name that is not linked, if any."""

    example: Example
    unknown: tuple[int, int] | None


def made_up(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.choice((2, 3))))
    word = "".join(rng.choice(SYLLABLES) for _ in range(rng.choice((2, 3, 3, 4))))
    word += rng.choice(ENDINGS) if rng.random() < 0.3 else ""
    return word + (" " + "".join(rng.choice(SYLLABLES) for _ in range(2)) if rng.random() < 0.3 else "")


@cache
def everyday_words() -> list[str]:
    """Whole words of the encoders' vocabulary, neither the most frequent nor the rarest ones."""
    words = open_tokenizer().get_vocab()
    return sorted(word for word, rank in words.items() if word.isascii() and word.isalpha() and 4000 < rank < 20000)


def new_name(rng: random.Random, names: Sequence[str]) -> str:
    kind = rng.randrange(3)
    if kind == 0:
        return made_up(rng)
    return rng.choice(names) if kind == 1 else " ".join(rng.sample(everyday_words(), rng.choice((1, 1, 2))))


def cased(rng: random.Random, name: str, like: str) -> str:
    if like.islower() or rng.random() < 1 / 3:
        return name.lower()
    return name.title() if like[:1].isupper() and rng.random() < 0.8 else name


def lessons(example: Example, names: Sequence[str], rng: random.Random) -> Iterator[Lesson]:
    yield Lesson(example, None)
    if example.spans:
        place = rng.randrange(len(example.spans))
        span, text = example.spans[place], example.question
        name = cased(rng, new_name(rng, names), text[span.start : span.end])
        longer = len(name) - (span.end - span.start)

        def moved(start: int) -> int:
            return start + longer if start >= span.end else start

        spans = [Span(moved(s.start), moved(s.end), s.kind) for at, s in enumerate(example.spans) if at != place]
        numbers = [replace(q, start=moved(q.start), end=moved(q.end)) for q in example.quantities]
        types = [kind for at, kind in enumerate(example.types) if at != place]
        changed = text[: span.start] + name + text[span.end :]
        renamed = replace(example, question=changed, spans=tuple(spans), types=tuple(types), quantities=tuple(numbers))
        yield Lesson(renamed, (span.start, span.start + len(name)))


def rows_of(schema: SchemaExamples, taken: Sequence[Lesson], encoders: Encoders) -> Iterator[tuple[Floats, int, int]]:
    """The row of each word, whether it belongs to a name, and the number of the lesson."""
    known = schema.vocabulary
    scorer, proposer, wording = Scorer(known, encoders, Labels(known, encoders)), Proposer(known), Wording(known)
    stems = frozenset(map(stem, schema_words(known.schema)))
    for number, lesson in enumerate(taken):
        one = lesson.example
        scores = scorer.score(one.question, one.spans, one.types, one.quantities, one.categories)
        plans = proposer.propose(scores, PLANS)[:CHOSEN_AMONG]
        if not plans or number % UNREAD == 0:  # as where nothing can be proposed
            texts, shared, priors = [""], [(0.0, 0.0)], [0.0]
        else:
            texts, said = [wording.of(plan.plan) for plan in plans], masked(one.question, one.spans)
            shared, priors = [shared_words(said, text) for text in texts], [plan.score for plan in plans]
        told, read = encoders.read_options([one.asked] * len(texts), texts, priors, shared, BUDGET)
        best = int(np.argmax(told[1:]))
        spans = [(s.start, s.end) for s in (*one.spans, *one.quantities)]
        tokens, rows = word_rows(one.question, spans, read[best], texts[best], stems)
        start, end = lesson.unknown or (-1, -1)
        for token, row in zip(tokens, rows, strict=True):
            yield row, int(start <= token.start < end), number


def dataset(
    schemas: Sequence[SchemaExamples], names: Sequence[str], count: int, encoders: Encoders
) -> tuple[Floats, Floats, list[tuple[str, int]]]:
    rows, labels, owners = [], [], []
    for schema in schemas:
        rng = random.Random(schema.name)
        chosen = rng.sample(schema.examples, min(count, len(schema.examples)))
        taken = [lesson for example in chosen for lesson in lessons(example, names, rng)]
        for row, label, number in rows_of(schema, taken, encoders):
            rows.append(row)
            labels.append(label)
            owners.append((schema.name, number))
        print(schema.name, len(labels), flush=True)
    return np.array(rows, dtype=np.float32), np.array(labels, dtype=np.float32), owners


def fitted(rows: Floats, labels: Floats) -> tuple[Floats, float]:
    """Logistic regression by Newton's method, with a penalty on large weights."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-3
    scaled = np.hstack(((rows - mean) / deviation, np.ones((len(rows), 1), dtype=np.float32))).astype(np.float64)
    penalty = np.full(scaled.shape[1], PENALTY)
    penalty[-1] = 0.0
    weights = np.zeros(scaled.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        slope = scaled.T @ (likely - labels) + penalty * weights
        curve = (scaled * (likely * (1 - likely))[:, None]).T @ scaled + np.diag(penalty)
        weights -= np.linalg.solve(curve, slope)
    own = weights[:-1] / deviation
    return own, float(weights[-1] - own @ mean)


def report(likely: Floats, labels: Floats, owners: Sequence[tuple[str, int]]) -> None:
    """Share of questions with all names linked that are flagged, and of unknown names that are."""
    false: dict[tuple[str, int], float] = {}
    found: dict[tuple[str, int], float] = {}
    for value, label, owner in zip(likely, labels, owners, strict=True):
        into = found if label else false
        into[owner] = max(into.get(owner, 0.0), float(value))
    known = np.array([value for owner, value in false.items() if owner not in found])
    unknown = np.array(list(found.values()))
    for least in (0.3, 0.4, 0.5, 0.6, 0.7):
        told = {"threshold": least, "flagged of known": round(float((known >= least).mean()), 4)}
        told |= {"n": len(known), "found of unknown": round(float((unknown >= least).mean()), 4), "of": len(unknown)}
        print(json.dumps(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--questions", type=int, default=24)
    given = parser.parse_args()
    schemas, encoders = read_sources(given.sources), Encoders()
    train = [one for one in schemas if not one.name.startswith(HELD_OUT)]
    names = sorted({e.question[s.start : s.end] for one in train for e in one.examples for s in e.spans})
    held_out = [one for one in schemas if one.name.startswith(HELD_OUT)]
    rows, labels, _ = dataset(train, names, given.questions, encoders)
    weights, bias = fitted(rows, labels)
    print(f"{len(train)} schemas, {len(labels)} words, {int(labels.sum())} of names")
    tested, right, owners = dataset(held_out, names, given.questions, encoders)
    report(1 / (1 + np.exp(-(tested @ weights + bias))), right, owners)
    if given.out is not None:
        told = {"weights": [round(float(one), 4) for one in weights], "bias": round(bias, 4)}
        given.out.write_text(json.dumps(told) + "\n", "utf-8")


if __name__ == "__main__":
    main()
