"""Scores do not depend on the order in which a machine adds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clew.core.scores import SIGNIFICANT_DIGITS, cosines, round_network, round_scores
from clew.core.types import Ranking

finite = st.floats(-1e30, 1e30, allow_nan=False).filter(lambda value: value == 0 or abs(value) > 1e-30)


@given(arrays(np.float64, st.integers(0, 30), elements=finite))
def test_rounding_keeps_significant_digits_and_is_done_once(scores):
    rounded = round_scores(scores)
    assert np.all(np.abs(rounded - scores) <= np.abs(scores) * 10.0 ** (1 - SIGNIFICANT_DIGITS))
    np.testing.assert_array_equal(round_scores(rounded), rounded)


@given(arrays(np.float64, st.integers(0, 30), elements=finite))
def test_rounding_never_swaps_two_scores(scores):
    assert np.all(np.diff(round_scores(np.sort(scores))) >= 0)


def test_infinities_and_zeros_stay():
    np.testing.assert_array_equal(round_scores(np.array([-np.inf, 0.0, np.inf])), [-np.inf, 0.0, np.inf])
    np.testing.assert_array_equal(round_network(np.array([-np.inf, 0.0])), [-np.inf, 0.0])


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_a_sum_changes_no_ranking(seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(50, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[25:] = vectors[:25]  # every vector twice, so that every score is a tie
    query, order = vectors[0], rng.permutation(384)
    first = Ranking.of(range(50), cosines(vectors, query))
    second = Ranking.of(range(50), cosines(vectors[:, order], query[order]))
    assert first.nodes.tolist() == second.nodes.tolist()
    np.testing.assert_array_equal(first.scores, second.scores)
