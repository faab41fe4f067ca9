"""Tournaments against sorting, with consistent and with arbitrary judges."""

import random

from hypothesis import given
from hypothesis import strategies as st

from clew.answering.methods.paths.search import chunked, pairwise

CANDIDATES = st.lists(st.integers(), unique=True, max_size=60)
PLACES = st.integers(1, 8)


def most_comparisons(n, k):
    """The most comparisons that merging n candidates for k places can need."""
    total, runs = 0, [1] * n
    while len(runs) > 1:
        pairs = [(runs[place], runs[place + 1]) for place in range(0, len(runs) - 1, 2)]
        total += sum(min(k, a + b - 1) for a, b in pairs)
        runs = [min(k, a + b) for a, b in pairs] + runs[len(pairs) * 2 :]
    return total


class Judge:
    """Prefers larger numbers and counts what it is asked."""

    def __init__(self, prefers=lambda a, b: a > b):
        self.prefers = prefers
        self.asked = 0

    def first_is_better(self, pairs):
        self.asked += len(pairs)
        return [self.prefers(a, b) for a, b in pairs]

    def keep_best(self, chunks, counts):
        self.asked += len(chunks)
        return [
            sorted(range(len(chunk)), key=lambda place: -chunk[place])[:count]
            for chunk, count in zip(chunks, counts, strict=True)
        ]


@given(CANDIDATES, PLACES)
def test_a_pairwise_tournament_equals_sorting_when_the_judge_is_consistent(candidates, k):
    judge = Judge()
    assert pairwise(candidates, judge.first_is_better, k) == sorted(candidates, reverse=True)[:k]
    assert judge.asked <= most_comparisons(len(candidates), k)


@given(CANDIDATES, PLACES)
def test_a_pairwise_tournament_never_compares_more_than_a_full_sort(candidates, k):
    few, all_of_them = Judge(), Judge()
    pairwise(candidates, few.first_is_better, k)
    pairwise(candidates, all_of_them.first_is_better, max(len(candidates), 1))
    assert few.asked <= all_of_them.asked


@given(CANDIDATES, PLACES, st.integers(0, 10_000))
def test_tournaments_end_with_k_different_candidates_whatever_the_judge_says(candidates, k, seed):
    rng = random.Random(seed)
    kept = pairwise(candidates, lambda pairs: [rng.random() < 0.5 for _ in pairs], k)
    rambling = chunked(
        candidates, lambda chunks, _: [[rng.randint(-2, 9) for _ in range(rng.randint(0, 6))] for _ in chunks], k
    )
    for outcome in (kept, rambling):
        assert len(outcome) == len(set(outcome)) == min(k, len(candidates))
        assert set(outcome) <= set(candidates)


@given(CANDIDATES, PLACES, st.integers(2, 8))
def test_a_chunked_tournament_always_keeps_the_best_and_orders_its_final(candidates, k, chunk):
    kept = chunked(candidates, Judge().keep_best, k, chunk)
    assert kept == sorted(kept, reverse=True)
    assert kept[:1] == sorted(candidates, reverse=True)[:1]


@given(CANDIDATES)
def test_a_chunked_tournament_with_one_chunk_for_all_equals_sorting(candidates):
    kept = chunked(candidates, Judge().keep_best, 3, 60)
    assert kept == sorted(candidates, reverse=True)[:3]


@given(st.permutations(range(30)))
def test_the_best_three_of_thirty_cost_at_most_fifty_seven_comparisons(candidates):
    judge = Judge()
    pairwise(candidates, judge.first_is_better, 3)
    assert judge.asked <= most_comparisons(30, 3) == 57


def test_a_round_is_asked_as_one_batch():
    batches = []

    def judge(pairs):
        batches.append(len(pairs))
        return [a > b for a, b in pairs]

    pairwise(range(16), judge, 2)
    assert batches[0] == 8
    assert len(batches) <= 1 + 2 * 3
