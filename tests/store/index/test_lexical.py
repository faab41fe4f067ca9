"""Tokens, stems and BM25."""

import math
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.types import EMPTY, NodeSet
from clew.store.index.lexical import K1, B, LexicalIndex, best
from clew.store.index.tokens import normalise, normalise_column, stem, stem_all, stop_words, terms, tokenise

WORDS = st.sampled_from(
    [
        "lens",
        "fingers",
        "finger",
        "long",
        "the",
        "of",
        "gene",
        "genes",
        "Émile",
        "ß",
        "東京",
        "京都",
        "x2",
        "dislocation",
    ]
)
DOCUMENTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=12)
SIZE = 1000
TELLING = st.characters(codec="utf-8", exclude_categories=("Cn", "Co", "Cs"))


def built(folder: Path, documents: list[str]) -> LexicalIndex:
    LexicalIndex.write(folder, pa.array(documents, pa.large_string()))
    return LexicalIndex.open(folder)


def bm25(documents: list[str], query: str) -> list[float]:
    """The formula, term by term."""
    counted = [Counter(terms(document)) for document in documents]
    lengths = [sum(counts.values()) for counts in counted]
    mean = sum(lengths) / len(lengths) or 1.0
    scores = [0.0] * len(documents)
    for term in terms(query):
        having = sum(term in counts for counts in counted)
        idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for place, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            frequency = counts[term]
            scores[place] += idf * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / mean))
    return scores


@settings(max_examples=60, deadline=None)
@given(documents=DOCUMENTS, query=st.lists(WORDS, max_size=5).map(" ".join), data=st.data())
def test_scores_follow_the_formula_and_among_is_a_filter(tmp_path_factory, documents, query, data):
    index = built(tmp_path_factory.mktemp("lexical"), documents)
    expected = bm25(documents, query)
    ranking = index.search(query, len(documents))
    assert {node: pytest.approx(score, rel=1e-4) for node, score in ranking} == {
        node: score for node, score in enumerate(expected) if score > 0
    }
    among = NodeSet.of(data.draw(st.sets(st.integers(0, len(documents) - 1))))
    inside = [(node, score) for node, score in ranking if node in among]
    assert list(index.search(query, len(documents), among=among)) == inside
    assert list(index.search(query, 2, among=among)) == inside[:2]
    assert index.scores(query, NodeSet.range(len(documents))).tolist() == pytest.approx(expected, rel=1e-4)


def test_all_ways_of_adding_agree_on_a_larger_index(tmp_path: Path):
    random = np.random.default_rng(5)
    words = np.array([f"w{i}" for i in range(300)])
    documents = [" ".join(words[random.zipf(1.3, 12) % 300]) for _ in range(SIZE)]
    index = built(tmp_path, documents)
    for query in ("w0 w1 w7", "w250", "w3 w3 w120 w299", "w1"):
        expected = np.array(bm25(documents, query))
        for among in (None, NodeSet.of(range(0, SIZE, 2)), NodeSet.of(range(0, SIZE, 100)), EMPTY):
            allowed = range(SIZE) if among is None else among.array.tolist()
            best = sorted((node for node in allowed if expected[node] > 0), key=lambda n: (-np.float32(expected[n]), n))
            ranking = index.search(query, 10, among=among)
            assert ranking.scores.tolist() == pytest.approx(expected[best[:10]].tolist(), rel=1e-4)
            assert set(ranking.nodes.tolist()) <= set(allowed)


@settings(deadline=None)
@given(st.lists(st.text(TELLING, max_size=20), max_size=5))
def test_a_column_and_a_single_text_have_the_same_tokens(texts):
    # One accent after another may be stored in two orders, of which a column keeps the canonical one.
    texts = [unicodedata.normalize("NFC", text) for text in texts]
    assert normalise_column(pa.array(texts, pa.large_string())).to_pylist() == [normalise(text) for text in texts]


@given(st.lists(st.text("abcdeginlrstuy", min_size=1, max_size=10)))
def test_a_vocabulary_and_a_single_word_have_the_same_stems(words):
    assert stem_all(pa.array(words, pa.large_string())).to_pylist() == [stem(word) for word in words]


def test_forms_of_a_word_share_a_stem():
    families = (
        "gene genes", "syndrome syndromes", "anomaly anomalies", "movie movies", "stop stopped stopping",
        "dislocate dislocated dislocation dislocations", "abnormal abnormally abnormality abnormalities",
        "infect infection infected", "diagnosis diagnoses", "class classes",
    )  # fmt: skip
    for family in families:
        assert len({stem(word) for word in family.split()}) == 1, family
    assert [stem(word) for word in ("virus", "mass", "king", "dermatitis", "東京", "p53")] == [
        "virus", "mass", "king", "dermatitis", "東京", "p53",
    ]  # fmt: skip


def test_tokens_carry_their_spans():
    text = "Is Łódź's café—Zoë’s ﬁrst—open?"
    assert [(token.text, text[token.start : token.end]) for token in tokenise(text)] == [
        ("is", "Is"), ("lodz", "Łódź"), ("s", "s"), ("cafe", "café"), ("zoe", "Zoë"), ("s", "s"), ("first", "ﬁrst"),
        ("open", "open"),
    ]  # fmt: skip


def test_scripts_without_spaces_are_found_by_any_part(tmp_path: Path):
    index = built(tmp_path, ["東京は日本の首都です", "大阪は西日本の都市", "ประเทศไทยสวยมาก", "the capital of Japan"])
    assert index.search("日本の首都", 1).nodes.tolist() == [0]
    assert index.search("大阪", 5).nodes.tolist() == [1]
    assert index.search("ไทย", 5).nodes.tolist() == [2]


def test_a_large_text_and_an_endless_word_are_no_trouble(tmp_path: Path):
    index = built(tmp_path, ["needle " + "hay stack " * 1_000_000, "x" * 10_000_000, "", "needle"])
    assert index.search("needle", 5).nodes.tolist() == [3, 0]
    assert max(map(len, (index.vocabulary[place] for place in range(len(index.vocabulary))))) <= 64


def test_two_builds_of_the_same_documents_are_the_same_bytes(tmp_path: Path):
    documents = ["long fingers", "lens dislocation of the eye", "東京"]
    for name in ("one", "two"):
        built(tmp_path / name, documents)
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert files
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_how_telling_a_term_is(tmp_path: Path):
    index = built(tmp_path, ["long fingers", "long toes", "eye"])
    assert index.idf("eye") == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert index.idf("eye") < index.idf("unheard")
    assert index.frequency("long") == 2
    assert index.having("long") == NodeSet.of([0, 1])
    assert len(index.having("unheard")) == 0
    assert "the" in stop_words()


def test_an_index_of_nothing_finds_nothing(tmp_path: Path):
    assert len(built(tmp_path / "a", []).search("lens", 5)) == 0
    assert len(built(tmp_path / "b", ["", "the"]).search("lens", 5)) == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_last_bits_do_not_decide_which_of_equal_scores_are_among_the_best(seed, k):
    rng = np.random.default_rng(seed)
    scores = rng.choice([0.1, 0.7, 3.1], 40)
    noisy = scores * (1 + rng.uniform(-1e-12, 1e-12, 40))
    assert best(noisy, k).nodes.tolist() == best(scores, k).nodes.tolist()
