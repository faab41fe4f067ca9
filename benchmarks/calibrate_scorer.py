"""Fits the weights of the model-free scorer to one right candidate among five, equally over three data sets.

    python benchmarks/calibrate_scorer.py

Data: the folder CLEW_DATA. Prints the weights, and for each data set the area under the ROC curve and the calibration
error of weights fitted without it.
"""

import gzip
import json
import random

import numpy as np
from role_cases import DATA
from scipy.optimize import minimize

from clew.answering.roles.score import FusedScorer
from clew.core.roles import Claim
from clew.lab.datasets.load import load_dataset
from clew.models.embedding.onnx import OnnxEmbedder, bundled_card

WRONG = 4
RIDGE = 0.0005


def from_paragraphs(spec: str, n: int, chance: random.Random) -> list[tuple[Claim, bool]]:
    dataset = load_dataset(spec)
    paragraphs = {paragraph.key: paragraph for paragraph in dataset.paragraphs}
    claims = []
    for question in chance.sample(dataset.questions, min(n, len(dataset.questions))):
        wrong = [key for key in dataset.contexts[question.id] if key not in question.passages]
        for right in question.passages:
            chosen = chance.sample(wrong, min(WRONG, len(wrong)))
            for key in (right, *chosen):
                claims.append((Claim(question.text, paragraphs[key].title, paragraphs[key].text), key == right))
    return claims


def from_stark(n: int, chance: random.Random) -> list[tuple[Claim, bool]]:
    folder = DATA / "stark_prime_mini"
    with gzip.open(folder / "nodes.jsonl.gz", "rt", encoding="utf-8") as file:
        nodes = {node["id"]: node for node in map(json.loads, file)}
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        queries = [query for query in map(json.loads, file) if query["split"] == "train"]
    claims = []
    for query in chance.sample(queries, min(n, len(queries))):
        right = [answer for answer in query["answer_ids"] if answer in nodes]
        if right:
            gold = nodes[chance.choice(right)]
            others = [x for x in nodes.values() if x["type"] == gold["type"] and x["id"] not in query["answer_ids"]]
            for node in (gold, *chance.sample(others, min(WRONG, len(others)))):
                claims.append((Claim(query["query"], node["name"], node.get("text") or ""), node is gold))
    return claims


def fit(features: list[np.ndarray], gold: list[np.ndarray]) -> np.ndarray:
    def loss(weights: np.ndarray) -> float:
        total = RIDGE * float((weights[1:] ** 2).sum())
        for x, y in zip(features, gold, strict=True):
            total += float(np.mean(np.logaddexp(0, x @ weights) - y * (x @ weights)))
        return total

    return np.asarray(minimize(loss, np.zeros(4)).x)


def main() -> None:
    chance = random.Random(1)
    sets = {
        "HotpotQA train": from_paragraphs(f"hotpotqa:{DATA / 'hotpotqa' / 'hotpotqa_train.json.gz'}", 100, chance),
        "2Wiki train": from_paragraphs(f"2wiki:{DATA / '2wiki' / 'train_500.jsonl.gz'}", 120, chance),
        "STaRK-PRIME reduced, train": from_stark(160, chance),
    }
    scorer = FusedScorer(OnnxEmbedder(bundled_card()))
    features, gold = {}, {}
    for name, claims in sets.items():
        like = scorer.compare([claim for claim, _ in claims])
        features[name] = np.array([[1.0, one.document_cosine, one.name_cosine, one.coverage] for one in like])
        gold[name] = np.array([float(right) for _, right in claims])
    weights = fit(list(features.values()), list(gold.values()))
    print("constant, document_cosine, name_cosine, coverage:", weights.round(2).tolist())
    for name in sets:
        others = [other for other in sets if other != name]
        held_out = fit([features[other] for other in others], [gold[other] for other in others])
        for label, used in (("held out", held_out), ("fitted", weights)):
            p, y = 1 / (1 + np.exp(-features[name] @ used)), gold[name]
            area = np.mean([(p[y == 0] < one).mean() for one in p[y == 1]])
            bins = np.minimum((p * 10).astype(int), 9)
            error = sum(abs(p[bins == b].mean() - y[bins == b].mean()) * (bins == b).mean() for b in set(bins.tolist()))
            print(f"{name}, {label}: n = {len(y)}, AUC {area:.3f}, calibration error {error:.3f}")


if __name__ == "__main__":
    main()
