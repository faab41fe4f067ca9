"""Fits the heads for the forms of questions on top of the first encoder, which stays as it is.

    python benchmarks/fit_forms.py SOURCE … -o WEIGHTS [--weights OLD] [--left-out 0.1]

WEIGHTS gets the files of OLD with new heads: the sketch (which form and which rare parts a question has) from the
encoder's vector and the word vectors of the question; how numbers are compared; which attribute, relation or type the
forms speak of. Schemas whose names begin with `j_` and `k_` are kept for measuring. Needs the extra `train`.
"""

import argparse
import json
import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clew.answering.reading.encoders import SHIPPED, WORD_PARTS, Encoders
from clew.answering.reading.plan import FORMS, OPERATORS
from clew.answering.reading.scoring import HEADS, SKETCHED
from clew.lab.training.reader.examples import SchemaExamples, read_sources
from clew.lab.training.reader.fitting import LABELS, WEIGHTS
from clew.models.embedding.words import DIMENSION
from clew.models.model_card import digest_of_files

HIDDEN = 128
SCALES = (1.0, 10.0, 5.0, 3.0)
"""Of the vector, and of the three parts of the word vectors: about as long as the vector is then each of them."""
PAIRS = ("value of answer", "extreme", "counted", "quantity", "counted quantity", "relating", "type")
"""Matrices that are fitted; the others stay."""
STARTS = {"counted quantity": "counted", "relating": "lacked"}
"""New matrices start from those that compare with the same."""
KEPT = ("j_", "k_")
Lessons = dict[str, tuple[Any, Any, Any]]


class Heads:
    """What is fitted: tensors by the names of the weights."""

    def __init__(self, old: dict[str, Any]) -> None:
        pairs = np.zeros((len(HEADS), DIMENSION, DIMENSION), np.float32)
        pairs[: len(old["pairs"])] = old["pairs"]
        for new, start in STARTS.items():
            if len(old["pairs"]) < len(HEADS):
                pairs[HEADS.index(new)] = pairs[HEADS.index(start)]
        operators = np.zeros((len(OPERATORS), DIMENSION), np.float32)
        operators[: len(old["operators"])] = old["operators"]
        bias = np.full(len(OPERATORS), -3.0, np.float32)
        bias[: len(old["operators_bias"])] = old["operators_bias"]
        self.pairs, self.operators, self.operators_bias = map(torch.tensor, (pairs, operators, bias))
        self.start = [part.clone() for part in self.parts]
        for part in self.parts:
            part.requires_grad_(True)
        width = (1 + WORD_PARTS) * DIMENSION
        self.sketch, self.drop = torch.nn.Linear(width, HIDDEN), torch.nn.Dropout(0.3)
        self.classes = {name: torch.nn.Linear(HIDDEN, count) for name, count in SKETCHED.items()}
        self.scales = torch.tensor(np.repeat(SCALES, DIMENSION).astype(np.float32))

    @property
    def parts(self) -> list[Any]:
        return [self.pairs, self.operators, self.operators_bias]

    def drift(self) -> Any:
        """How far the matrices are from where they started."""
        return sum(((part - before) ** 2).sum() for part, before in zip(self.parts, self.start, strict=True))

    def hidden(self, known: Any) -> Any:
        return self.drop(torch.relu(self.sketch(known * self.scales)))

    def written(self) -> dict[str, Any]:
        found = {"pairs": self.pairs, "operators": self.operators, "operators_bias": self.operators_bias}
        found |= {"sketch": self.sketch.weight * self.scales, "sketch_bias": self.sketch.bias}
        for name, layer in self.classes.items():
            found |= {name: layer.weight, f"{name}_bias": layer.bias}
        return {name: part.detach().numpy().astype(np.float32) for name, part in found.items()}


class Prepared:
    """The vectors and lessons of a schema."""

    def __init__(self, schema: SchemaExamples, encoders: Encoders, *, sketch_only: bool = False) -> None:
        vocabulary, lessons = schema.vocabulary, defaultdict(list)
        vectors: list[Any] = []
        words = []
        for example in schema.examples:
            texts, count = example.texts, len(example.spans)
            base, asked = len(vectors), texts[:1] if sketch_only else [texts[0], *texts[1 + count :]]
            vectors += list(encoders.meaning(asked))
            words.append((base, encoders.word_features(texts[0])))
            for lesson in schema.lessons(example):
                if not 0 < lesson.text <= count and (lesson.head in SKETCHED or not sketch_only):
                    row = base if lesson.text == 0 else base + lesson.text - count
                    lessons[lesson.head].append((row, lesson.right, lesson.allowed))
        self.raw = torch.tensor(np.stack(vectors))
        rows, features = zip(*words, strict=True)
        self.whole = torch.cat((self.raw[list(rows)], torch.tensor(np.stack(features))), 1)
        self.place = {row: place for place, row in enumerate(rows)}
        texts = {"hops": vocabulary.hop_texts, "attributes": vocabulary.attribute_texts, "types": vocabulary.type_texts}
        texts = {} if sketch_only else texts
        labels = {kind: torch.tensor(encoders.meaning(list(some))) for kind, some in texts.items()}
        self.labels = {kind: torch.nn.functional.normalize(some, dim=-1) for kind, some in labels.items()}
        self.lessons: Lessons = {}
        for head, told in lessons.items():
            places, right, allowed = zip(*told, strict=True)
            mask = torch.tensor(np.array(allowed, dtype=bool)) if allowed[0] else None
            self.lessons[head] = torch.tensor(places), torch.tensor(right), mask


def scores(heads: Heads, one: Prepared, head: str, rows: Any) -> Any:
    if head in SKETCHED:
        return heads.classes[head](heads.hidden(one.whole[[one.place[int(row)] for row in rows]]))
    own = one.raw[rows]
    if head == "operators":
        return own @ heads.operators.T + heads.operators_bias
    own = torch.nn.functional.normalize(own, dim=-1)
    found = own @ heads.pairs[HEADS.index(head)] @ one.labels[LABELS.get(head, "attributes")].T
    if head == "quantity":
        more = own @ heads.pairs[HEADS.index("counted quantity")] @ one.labels["hops"].T
        found = torch.cat((found, more), 1)
    return found


def losses(heads: Heads, one: Prepared) -> dict[str, tuple[Any, int, int]]:
    found = {}
    for head, (rows, right, allowed) in one.lessons.items():
        if head in SKETCHED or head == "operators" or head in PAIRS:
            told = scores(heads, one, head, rows)
            told = told if allowed is None else told.masked_fill(~allowed, -1e4)
            loss = torch.nn.functional.cross_entropy(told, right, reduction="sum")
            found[head] = loss, len(rows), int((told.argmax(1) == right).sum())
    return found


def fit(heads: Heads, every: list[Prepared], epochs: int, rng: random.Random, together: int = 8) -> None:
    layers = [heads.sketch, *heads.classes.values()]
    dense = [part for layer in layers for part in layer.parameters()]
    optimizer = torch.optim.Adam([{"params": dense, "lr": 3e-3}, {"params": heads.parts, "lr": 2e-3}])
    steps = epochs * -(-len(every) // together)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.03, 1 - step / steps))
    for _ in range(epochs):
        order = rng.sample(every, len(every))
        for at in range(0, len(order), together):
            batch = order[at : at + together]
            told = [(head, *row) for one in batch for head, row in losses(heads, one).items()]
            asked = sum(len(one.whole) for one in batch)
            loss = sum((1.0 if head in SKETCHED else WEIGHTS[head]) * part for head, part, *_ in told) / asked
            loss = loss + 1e-5 * heads.drift() + 1e-4 * sum((part**2).sum() for part in dense)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def report(heads: Heads, every: list[Prepared], label: str) -> None:
    total: dict[str, list[float]] = defaultdict(lambda: [0.0, 0, 0])
    heads.drop.eval()
    with torch.no_grad():
        for one in every:
            for head, row in losses(heads, one).items():
                total[head] = [a + float(b) for a, b in zip(total[head], row, strict=True)]
    heads.drop.train()
    print(
        label, {head: (round(a / n, 3), round(100 * c / n, 1), int(n)) for head, (a, n, c) in total.items()}, flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--left-out", type=float, default=0.0, help="Share of the schemas to measure on.")
    parser.add_argument("--sketch", type=Path, nargs="*", default=[], help="Sources that only the sketch learns from.")
    parser.add_argument("--epochs", type=int, default=12)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng, encoders = random.Random(0), Encoders(given.weights)
    schemas = [one for one in read_sources(given.sources) if not one.name.startswith(KEPT)]
    old = dict(np.load(given.weights / "heads.npz"))
    heads = Heads(old)
    more = [one for one in read_sources(given.sketch) if not one.name.startswith(KEPT)]
    prepared = {one.name: Prepared(one, encoders, sketch_only=True) for one in more}
    prepared |= {one.name: Prepared(one, encoders) for one in schemas}
    left = {name for name in prepared if rng.random() < given.left_out}
    fit(heads, [one for name, one in prepared.items() if name not in left], given.epochs, rng)
    kinds: dict[str, list[Prepared]] = defaultdict(list)
    for name in sorted(left):
        start = name.split("_")[0]
        kinds[start if start in ("spider", "cypher", "wikisql") else "graph"].append(prepared[name])
    for kind, some in kinds.items():
        report(heads, some, f"left out, {kind}:")
    if given.out != given.weights:
        shutil.copytree(given.weights, given.out, dirs_exist_ok=True)
    found = old | heads.written()
    found["pairs"] = found["pairs"].astype(np.float16)
    np.savez(given.out / "heads.npz", allow_pickle=False, **found)
    card = json.loads((given.out / "card.json").read_text("utf-8"))
    card["digest"] = digest_of_files(given.out, ["meaning.onnx", "choice.onnx", "heads.npz"])
    (given.out / "card.json").write_text(json.dumps(card, indent=1) + "\n", "utf-8")
    print(
        len(prepared), "schemas,", sum(len(one.whole) for one in prepared.values()), "questions;", len(FORMS), "forms"
    )


if __name__ == "__main__":
    main()
