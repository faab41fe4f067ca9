"""Weights of path features are learned from right and wrong paths."""

import numpy as np
import pytest

from clew.core.errors import InputError
from clew.reading.paths.path_features import FEATURES
from clew.reading.paths.path_scoring import learned_weights, standard
from clew.training.paths import PathExample, fit_path_weights


def examples(count, rng):
    for _ in range(count):
        features = rng.normal(size=(6, 3))
        right = np.zeros(6)
        right[(features[:, 0] - 2 * features[:, 1]).argmax()] = 1.0
        yield PathExample(features, right)


def test_the_right_paths_come_first_and_what_says_nothing_weighs_little():
    rng = np.random.default_rng(0)
    weights = fit_path_weights(list(examples(200, rng)), ["good", "bad", "noise"])
    assert weights["good"] > 0 > weights["bad"]
    assert abs(weights["noise"]) < abs(weights["good"]) / 3
    vector = np.array(list(weights.values()))
    held_out = list(examples(200, rng))
    assert np.mean([(e.features @ vector).argmax() == e.right.argmax() for e in held_out]) > 0.95


def test_a_few_examples_move_given_weights_only_a_little():
    start = {"good": 1.0, "bad": -2.0, "noise": 0.0}
    few = list(examples(3, np.random.default_rng(1)))
    near = fit_path_weights(few, list(start), l2=10.0, start=start)
    assert all(abs(near[name] - start[name]) < 0.1 for name in start)


def test_nothing_is_learned_from_questions_without_a_right_path():
    with pytest.raises(InputError, match="nothing can be learned"):
        fit_path_weights([PathExample(np.ones((2, 3)), np.zeros(2))], ["a", "b", "c"])


def test_features_are_measured_in_spreads_and_none_goes_beyond_three():
    rows = np.vstack([np.full(len(FEATURES), 1e6), np.full(len(FEATURES), -1e6)])
    assert (standard(rows) == [[3.0] * len(FEATURES), [-3.0] * len(FEATURES)]).all()
    assert set(learned_weights()) == set(FEATURES)
