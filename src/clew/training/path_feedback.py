"""Learns from the confirmed answers of a base: the weights of path features, starting from those that ship."""

from __future__ import annotations

import numpy as np

from clew.core.errors import InputError
from clew.steps.paths.feedback import Confirmed, keep_confirmed, keep_weights, read_confirmed, rightness
from clew.steps.paths.path_features import FEATURES
from clew.steps.paths.path_scoring import learned_weights, standard
from clew.steps.paths.relation_aligner import RelationAligner
from clew.steps.paths.topic_mask import mask_topic
from clew.steps.paths.topics import find_topics
from clew.toolbox import Toolbox
from clew.training.path_ranker import PathExample, fit_path_weights

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
