"""What is learned about relation paths: weights of their features, also from confirmed answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import InputError
from clew.methods.paths.feedback import Confirmed, keep_confirmed, keep_weights, read_confirmed, rightness
from clew.reading.paths.path_features import FEATURES
from clew.reading.paths.path_scoring import learned_weights, standard
from clew.reading.paths.relation_aligner import RelationAligner
from clew.reading.paths.topic_mask import mask_topic
from clew.reading.paths.topics import find_topics
from clew.toolbox import Toolbox
from clew.training.descent import minimize

Doubles = NDArray[np.float64]
TOLERANCE = 0.15
"""The mass that even a hopeless question is granted."""


@dataclass(frozen=True)
class PathExample:
    """The features of a question's paths, one row each, and how right each path is, 0..1."""

    features: Doubles
    right: Doubles
    weight: float = 1.0


def fit_path_weights(
    examples: Sequence[PathExample],
    names: Sequence[str],
    l2: float = 0.0007,
    start: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """A weight for each feature; with `start`, the weights stay close to those it gives."""
    useful = [example for example in examples if example.right.max(initial=0.0) > 0]
    if not useful:
        raise InputError("no question has a path that leads to its answer: nothing can be learned")
    rows = np.concatenate([example.features for example in useful])
    spread = rows.std(axis=0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    anchor = np.array([0.0 if start is None else start.get(name, 0.0) for name in names]) * scale
    padded, right, there = _padded(useful, scale)
    weight = np.array([example.weight for example in useful])
    weight /= weight.sum()

    def loss(parameters: Doubles, grant: float) -> tuple[float, Doubles]:
        values = np.where(there, padded @ parameters, -np.inf)
        shares = np.exp(values - values.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        mass = (shares * right).sum(axis=1)
        pull = (shares * right - shares * mass[:, None]) / (mass + grant)[:, None] * weight[:, None]
        away = parameters - anchor
        value = -float(weight @ np.log(mass + grant)) + l2 * float(away @ away)
        return value, 2 * l2 * away - np.einsum("qp,qpf->f", pull, padded)

    found = anchor
    for grant in (1e-6, TOLERANCE):
        found = minimize(partial(loss, grant=grant), found)
    return {name: round(float(value), 4) for name, value in zip(names, found / scale, strict=True)}


def _padded(examples: Sequence[PathExample], scale: Doubles) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
    most = max(len(example.right) for example in examples)
    features = np.zeros((len(examples), most, len(scale)))
    right = np.zeros((len(examples), most))
    there = np.zeros((len(examples), most), dtype=np.bool_)
    for place, example in enumerate(examples):
        count = len(example.right)
        features[place, :count] = example.features / scale
        right[place, :count] = example.right
        there[place, :count] = True
    return features, right, there


CLOSE = 0.5
"""How strongly the weights are held to those that ship, divided by the number of confirmed questions."""


def confirm(toolbox: Toolbox, question: str, answers: list[str]) -> int:
    """Keep a confirmed answer, given by keys or names; returns how many there are."""
    if not answers:
        raise InputError("no answer was given: name at least one with --answer")
    keys = [ref.key for ref in toolbox.kb.refs([toolbox.find_node(answer) for answer in answers])]
    return keep_confirmed(toolbox.local.folder, Confirmed(question=question, answers=keys))


def learn(toolbox: Toolbox, depth: int = 3) -> tuple[int, dict[str, float]]:
    """Fit the weights to all confirmed answers and keep them beside the base; returns how many questions taught."""
    aligner = RelationAligner(toolbox.kb, toolbox.embedder)
    examples = []
    for confirmed in read_confirmed(toolbox.local.folder):
        for topic in find_topics(confirmed.question, toolbox.names).topics[:1]:
            ranked = aligner.rank(mask_topic(confirmed.question, [topic.text]), topic.nodes, depth)
            if ranked:
                keys = [[ref.key for ref in toolbox.kb.refs(one.ends.array[:1000])] for one in ranked]
                right = np.array([rightness(some, confirmed.answers) for some in keys])
                examples.append(PathExample(standard(np.array([one.features for one in ranked])), right))
    if not examples:
        raise InputError("nothing is confirmed yet: `clew feedback KB --question … --answer …`")
    weights = fit_path_weights(examples, FEATURES, l2=CLOSE / len(examples), start=learned_weights())
    keep_weights(toolbox.local.folder, weights)
    return len(examples), weights
