"""Relations and types are recognised in the words people use for them."""

import numpy as np
import pytest

from clew.core.schema import NodeType, Relation
from clew.models.embedding.onnx import OnnxEmbedder
from clew.reading.language.phrases import PhraseMatcher, PhraseVectors
from clew.reading.language.relation_words import relation_variants, type_variants, words

RELATIONS = [
    Relation(name, "movie", "entity", 1)
    for name in ("directed_by", "written_by", "has_genre", "in_language", "release_year")
]
TYPES = [NodeType(name, 1) for name in ("gene/protein", "drug", "disease", "biological_process", "cellular_component")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("associated_with_disease", ("associated", "with", "disease")),
        ("film.film.directedBy", ("film", "film", "directed", "by")),
        ("gene/protein", ("gene", "protein")),
    ],
)
def test_a_name_is_read_as_words(name, expected):
    assert words(name) == expected


@pytest.mark.parametrize(
    ("phrase", "relation"),
    [("director", 0), ("directed", 0), ("screenwriter", 1), ("wrote", 1), ("genres", 2), ("language", 3), ("years", 4)],
)
def test_forms_of_a_relations_words_match_it_by_their_letters(phrase, relation):
    scores = PhraseMatcher([relation_variants(r) for r in RELATIONS]).scores([phrase])[0]
    assert scores.argmax() == relation
    assert scores[relation] >= 0.5
    assert np.count_nonzero(scores) == 1


def test_a_word_that_only_names_the_type_of_an_end_says_less_than_the_relations_own_word():
    matcher = PhraseMatcher([relation_variants(Relation("associated_with_disease", "gene", "disease", 1))])
    disease, associated = matcher.by_letters(["disease", "associated"])[:, 0]
    assert disease < associated / 2


@pytest.mark.parametrize(
    ("phrase", "kind"), [("proteins", 0), ("medication", 1), ("illness", 2), ("cellular structures", 4)]
)
def test_types_are_recognised_by_meaning_where_letters_differ(phrase, kind):
    matcher = PhraseMatcher([type_variants(t) for t in TYPES], PhraseVectors(OnnxEmbedder.bundled(threads=1)))
    assert matcher.scores([phrase])[0].argmax() == kind
