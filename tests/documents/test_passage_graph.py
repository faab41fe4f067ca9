"""Edges between passages: exact against a naive reference, and what they join in real text."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.proper_names import acronyms, matcher, proper_names, subject, title_forms, unmentioned_names
from clew.documents.passage_graph import (
    EdgeOptions,
    entity_edges,
    mention_edges,
    most_shared,
    nearest_edges,
    subjects,
    tfidf_edges,
)


def as_triples(edges):
    return {
        (h, t, because) for h, t, because in zip(edges.heads.tolist(), edges.tails.tolist(), edges.because, strict=True)
    }


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=12), st.integers(1, 4))
def test_most_shared_equals_comparing_all_pairs(features, most):
    weights = np.array([1.0, 0.5, 0.25, 2.0, 0.75, 1.5, 3.0], dtype=np.float32)
    pairs = [(place, feature) for place, own in enumerate(features) for feature in sorted(own)]
    columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    heads, tails, totals, heaviest = most_shared(columns[:, 0], columns[:, 1], weights, len(features), most)
    shared = {(a, b): features[a] & features[b] for a in range(len(features)) for b in range(len(features)) if a != b}
    expected = set()
    for a in range(len(features)):
        ranked = sorted((-sum(weights[list(shared[a, b])]), b) for b in range(len(features)) if b != a and shared[a, b])
        expected |= {(min(a, b), max(a, b)) for _, b in ranked[:most]}
    assert set(zip(heads.tolist(), tails.tolist(), strict=True)) == expected
    for a, b, total, feature in zip(heads, tails, totals, heaviest, strict=True):
        assert math.isclose(total, sum(weights[list(shared[a, b])]), rel_tol=1e-5)
        assert feature in shared[a, b]
        assert weights[feature] == max(weights[list(shared[a, b])])


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 1000), st.booleans())
def test_nearest_edges_equal_sorting_all_similarities(count, neighbours, seed, is_asked):
    both = np.random.default_rng(seed).standard_normal((2, count, 8)).astype(np.float32)
    vectors, asking = both / np.linalg.norm(both, axis=2, keepdims=True)
    edges = nearest_edges(vectors, "knn", neighbours, asking if is_asked else None)
    near = (asking if is_asked else vectors) @ vectors.T
    expected = set()
    for a in range(count):
        best = sorted((b for b in range(count) if b != a), key=lambda b: -near[a, b])[:neighbours]
        expected |= {(min(a, b), max(a, b)) for b in best}
    assert set(zip(edges.heads.tolist(), edges.tails.tolist(), strict=True)) == expected


def test_keywords_of_several_words_join_passages_and_everyday_words_do_not():
    texts = [
        "The Lenz company builds weather stations.",
        "A weather station near Hagen.",
        "The cat sat.",
        "The dog ran.",
    ]
    edges = tfidf_edges(pa.array(texts, pa.large_string()), np.arange(4, dtype=np.int32), EdgeOptions())
    assert as_triples(edges) == {(0, 1, "weather stations")}


def test_a_keyword_in_too_many_passages_joins_none():
    texts = pa.array(["pump"] * 6 + ["valve"] * 2, pa.large_string())
    assert as_triples(tfidf_edges(texts, np.arange(8, dtype=np.int32), EdgeOptions(most_passages=5))) == {
        (6, 7, "valve")
    }


def test_names_join_passages_also_by_acronym():
    texts = [
        "The World Health Organization (WHO) is in Geneva.",
        "In 1948 the World Health Organization was founded.",
        "Later, WHO moved.",
    ]
    joined = as_triples(entity_edges(texts, [0, 1, 0], EdgeOptions()))
    assert joined == {
        (0, 1, "World Health Organization"),
        (0, 2, "World Health Organization"),
        (1, 2, "World Health Organization"),
    }


def test_mentions_point_to_the_longest_title_and_never_to_their_own():
    titles = [("York", 0), ("New York City", 1), ("Alf Clausen (composer)", 2)]
    texts = ["York is old.", "Music by Alf Clausen of New York City.", "alf clausen"]
    edges = mention_edges(texts, [(0,), (1,), (2,)], titles)
    assert as_triples(edges) == {(1, 2, "Alf Clausen")}
    assert as_triples(mention_edges(texts[:2], [(0,), ()], titles)) == {(1, 1, "New York City"), (1, 2, "Alf Clausen")}


def test_without_usable_titles_the_first_words_tell_what_a_text_is_about():
    texts = ["Alf Clausen (born 1941) is a composer.", "It rains.", "The Blue Danube is a waltz."]
    assert subjects(["doc 1", "doc 2", "doc 3"], texts) == [("Alf Clausen", 0), ("The Blue Danube", 2)]
    assert subjects(["Alf Clausen", "x", "y"], texts) == []


def test_names_are_found_without_the_openers_of_sentences():
    text = "In May 2001 the University of Oxford's Anne O'Brien met J. R. R. Tolkien. However Élodie left."
    assert [name.text for name in proper_names(text)] == [
        "University of Oxford's Anne O'Brien",
        "J. R. R. Tolkien",
        "Élodie",
    ]
    assert all(text[name.start : name.end] == name.text for name in proper_names(text))
    assert acronyms("the European Space Agency (ESA) and nothing (XYZ)") == {"ESA": "European Space Agency"}
    assert title_forms("Get Low (song)") == ["Get Low (song)", "Get Low"]
    assert subject("he was there") is None


@given(st.lists(st.text(alphabet="ab ", max_size=5), max_size=5), st.text(alphabet="ab ", max_size=30))
def test_matches_are_the_longest_known_phrase_at_each_place(phrases, text):
    known = {tuple(phrase.split()) for phrase in phrases if phrase.split()}
    words = text.split()
    expected, place = [], 0
    while place < len(words):
        lengths = [n for n in range(len(words) - place, 0, -1) if tuple(words[place : place + n]) in known]
        expected += [tuple(words[place : place + lengths[0]])] if lengths else []
        place += lengths[0] if lengths else 1
    found = [tuple(text[m.start : m.end].split()) for m in matcher((p, p) for p in phrases).find(text)]
    assert Counter(found) == Counter(expected)


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("How do I make it write to InfluxDB?", ["InfluxDB"]),
        ("How do I send it to Amazon S3?", ["Amazon", "S3"]),
        ("Summarise what the World Bank says.", []),
        ("Which HobbyBoards sensors are known in January?", []),
        ("Which Git command counts the digits?", ["Git"]),
        ("¿Cuándo suena? Why does it ring?", []),
        ("does it write to influxdb?", []),
        ("Does it ring on an iPhone?", ["iPhone"]),
    ],
)
def test_names_that_no_text_mentions_are_told(question, missing):
    texts = ["worldbank.csv has digits.", "Sensors of Hobby Boards count digits."]
    assert unmentioned_names(question, texts) == missing
