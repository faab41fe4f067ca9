"""Metrics against hand-computed cases, a naive reference and an independent implementation."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clew.core.types import Answer, Candidate, NodeRef, Ranking
from clew.lab.datasets.questions import Question
from clew.lab.evaluation import metrics
from clew.lab.evaluation.comparison import bootstrap, holm, randomisation_test
from clew.lab.evaluation.judging import GoldAnswers, first_places, score


def candidate(key, score=0.0, name=None):
    return Candidate(NodeRef(0, key, name or key, "thing"), score)


def answer(*candidates, **more):
    return Answer("q", method="m", candidates=tuple(candidates), **more)


def no_aliases(node):
    return ()


def random_cases(count=1000, seed=7):
    """Rankings with tied scores, gold answers that are never ranked, empty rankings and gold lists longer than k."""
    dice = random.Random(seed)
    for _ in range(count):
        pool = list(range(dice.choice([3, 30, 400])))
        ranked = dice.sample(pool, dice.randint(0, min(len(pool), 60)))
        scores = [dice.choice([0.0, 0.5, 1.0, dice.uniform(-1, 1)]) for _ in ranked]
        gold = dice.sample(pool, dice.randint(1, min(len(pool), dice.choice([1, 5, 120]))))
        yield Ranking.of(ranked, scores), {str(node) for node in gold}


def naive(ranked: list[str], gold: set[str]) -> dict[str, float]:
    first = [place for place in range(len(ranked)) if ranked[place] in gold]
    return {
        "hit@1": 1.0 if ranked[:1] and ranked[0] in gold else 0.0,
        "hit@5": 1.0 if set(ranked[:5]) & gold else 0.0,
        "recall@20": len(set(ranked[:20]) & gold) / len(gold),
        "recall@20/min": len(set(ranked[:20]) & gold) / min(20, len(gold)),
        "mrr": 1 / (first[0] + 1) if first else 0.0,
    }


def ours(ranking: Ranking, gold: set[str]) -> dict[str, float]:
    found = answer(*(candidate(str(node), value) for node, value in ranking))
    question = Question("1", "q", tuple(sorted(gold)))
    return dict(score(question, found, "retrieval", "key", no_aliases).metrics)


def test_metrics_agree_with_a_naive_reference_on_1000_random_rankings():
    for ranking, gold in random_cases():
        assert ours(ranking, gold) == pytest.approx(naive([str(node) for node in ranking.nodes], gold))


@pytest.mark.filterwarnings("ignore:unsafe cast")
def test_metrics_agree_with_ranx_on_1000_random_rankings():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: pip install --group measures")
    cases = {str(place): case for place, case in enumerate(random_cases())}
    # ranx orders by score; ours are ordered already, ties broken by id: hand the places over as scores.
    run = {id: {str(n): 1000.0 - p for p, n in enumerate(r.nodes)} or {"?": 0.0} for id, (r, _) in cases.items()}
    qrels = {id: dict.fromkeys(gold, 1) for id, (_, gold) in cases.items()}
    names = {"hit_rate@1": "hit@1", "hit_rate@5": "hit@5", "recall@20": "recall@20", "mrr": "mrr"}
    theirs = ranx.Run(run)
    ranx.evaluate(ranx.Qrels(qrels), theirs, list(names))
    for id, (ranking, gold) in cases.items():
        mine = ours(ranking, gold)
        for their_name, name in names.items():
            assert mine[name] == pytest.approx(theirs.scores[their_name][id])


def test_a_gold_answer_found_twice_counts_once():
    found = [frozenset({0}), frozenset({0}), frozenset(), frozenset({1})]
    assert metrics.recall(found, 4, 20) == 0.5
    assert first_places(found) == (1, 4)


def test_answer_sets_by_hand():
    question = Question("1", "q", ("Paris", "Lyon", "Nice"))
    proposed = answer(candidate("a", 1.0, "paris"), candidate("b", 1.0, "Oslo"), candidate("c", 0.5, "Lyon"))
    values = score(question, proposed, "graph", "strict", no_aliases).metrics
    assert values["f1"] == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert values["hits@1"] == 1.0
    assert values["exact"] == 0.0
    counted = answer(*proposed.candidates, answer_count=3)
    assert score(question, counted, "graph", "strict", no_aliases).metrics["f1"] == pytest.approx(2 / 3)


def test_a_question_without_an_answer_scores_zero_on_every_metric():
    for kind in ("retrieval", "graph", "documents"):
        question = Question("1", "q", ("a",), passages=("p",), structures=("t",))
        empty = score(question, None, kind, "strict", no_aliases)
        assert empty.metrics
        assert set(empty.metrics.values()) == {0.0}
        assert score(question, answer(), kind, "strict", no_aliases).metrics == empty.metrics


def test_documents_by_hand():
    question = Question("1", "q", ("The Beatles", "Beatles"), passages=("A", "B"), structures=("page 3",))
    found = answer(*map(candidate, ["x", "A", "y", "z", "B"]), text="the beatles!")
    values = score(question, found, "documents", "key", no_aliases).metrics
    assert values == {
        "recall@2": 0.5,
        "recall@5": 1.0,
        "recall@20": 1.0,
        "sf-em": 1.0,
        "precision": 0.4,
        "em": 1.0,
        "f1": 1.0,
        "struct-em": 0.0,
    }


@pytest.mark.parametrize(
    ("text", "gold", "expected"),
    [
        ("the Eiffel tower in Paris", "Eiffel Tower", 2 * 2 / (4 + 2)),
        ("yes", "yes it is", 0.0),
        ("no", "no", 1.0),
        ("", "Paris", 0.0),
        ("a cat cat", "cat dog", 0.5),
    ],
)
def test_token_f1_by_hand(text, gold, expected):
    assert metrics.text_f1(text, [gold]) == pytest.approx(expected)


def test_strict_match_forgives_case_width_and_underscores_but_no_other_character():
    gold = GoldAnswers(["United_Kingdom", "$9.99"], {}, "strict")

    def named(name):
        return gold.named_by(NodeRef(0, "k", name, "t"), no_aliases)

    assert named("united  kingdom") == {0}
    assert named("$9.99") == {1}
    assert named("999") == frozenset()
    assert named("kingdom") == frozenset()
    assert gold.named_by(NodeRef(0, "k", "UK", "t"), lambda node: ["United Kingdom"]) == {0}
    assert gold.named_by(NodeRef(0, "united_kingdom", "UK", "t"), no_aliases) == {0}


def test_lenient_match_takes_parts_of_names_but_never_the_empty_one():
    gold = GoldAnswers(["New York City"], {}, "lenient")
    assert gold.named_by(NodeRef(0, "k1", "new york", "t"), no_aliases) == {0}
    assert gold.named_by(NodeRef(0, "", " ", "t"), no_aliases) == frozenset()
    assert not len(GoldAnswers(["", " "], {}, "lenient"))
    unnamed = GoldAnswers(["Oslo"], {"Oslo": ("",)}, "lenient")
    assert unnamed.named_by(NodeRef(0, "k1", "Bern", "t"), no_aliases) == frozenset()


def test_spellings_of_one_gold_answer_are_one_answer():
    gold = GoldAnswers(["Oliver Twist", "oliver twist", "Q1"], {"Q1": ("Hard Times",)}, "strict")
    assert len(gold) == 2
    assert gold.named_by(NodeRef(0, "k", "hard times", "t"), no_aliases) == {1}


@given(st.lists(st.sets(st.integers(0, 6)).map(frozenset), max_size=30), st.integers(7, 9))
def test_metrics_stay_in_bounds_and_grow_with_k(found, gold):
    curves = [[metrics.hit(found, k) for k in range(1, 9)], [metrics.recall(found, gold, k) for k in range(1, 9)]]
    for curve in curves:
        assert all(0 <= value <= 1 for value in curve)
        assert all(before <= after for before, after in pairwise(curve))
    assert metrics.capped_recall(found, gold, 5) >= metrics.recall(found, gold, 5)
    assert 0 <= metrics.f1(found, gold) <= 1
    assert metrics.covered(found, gold, 30) == float(len(first_places(found)) == gold)


def test_the_bootstrap_interval_agrees_with_scipys():
    values = np.random.default_rng(3).choice([0.0, 0.2, 0.5, 1.0], size=300).tolist()
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=9999, rng=1).confidence_interval
    mine = bootstrap(values)
    assert mine.low == pytest.approx(theirs.low, abs=0.005)
    assert mine.high == pytest.approx(theirs.high, abs=0.005)


def test_the_randomisation_test_agrees_with_scipys():
    dice = np.random.default_rng(5)
    ours, theirs = dice.random(80).round(1), (dice.random(80) * 0.9).round(1)

    def difference(x, y, axis):
        return np.mean(x - y, axis=axis)

    expected = stats.permutation_test((ours, theirs), difference, permutation_type="samples", n_resamples=9999, rng=2)
    assert randomisation_test(ours.tolist(), theirs.tolist()) == pytest.approx(expected.pvalue, abs=0.02)


def test_two_equal_systems_do_not_differ_and_two_opposite_ones_do():
    assert randomisation_test([1.0, 0.0, 1.0], [1.0, 0.0, 1.0]) == 1.0
    assert randomisation_test([1.0] * 50, [0.0] * 50) < 0.001


def test_holm_corrects_in_steps():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_percentiles_are_values_that_occurred():
    assert metrics.percentile([], 0.5) == 0.0
    assert metrics.percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert metrics.percentile(list(range(1, 101)), 0.95) == 95
