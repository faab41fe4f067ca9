"""The passage network is trained on folders of documents with questions, and written as it is opened."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.passages.examples import quoted, read_source
from clew.lab.training.passages.fitting import joined, tokenised
from clew.models.passages import PassageNetwork

PUMP = """# Pump

The pump starts when the water rises above forty litres. It stops after ten minutes.

## Care

Clean the filter of the pump once a month. A worn filter has to be replaced by a new one from the shop.
"""
LAMP = """# Lamp

The lamp is switched on by a sensor at dusk. Its bulb is a halogen bulb of fifty watts.
"""
QUESTIONS = [
    {
        "id": "1",
        "kind": "single",
        "question": "When does the pump begin to work?",
        "answer": "Above forty litres.",
        "short": "forty litres",
        "gold": [
            {"file": "pump.md", "page": None, "quote": "The pump starts when the water rises above forty litres."}
        ],
    },
    {
        "id": "2",
        "kind": "multi",
        "question": "How often is the filter cleaned, and which bulb has the lamp?",
        "answer": "Once a month; halogen.",
        "short": "",
        "gold": [
            {"file": "pump.md", "page": None, "quote": "Clean the filter of the pump once a month."},
            {"file": "lamp.md", "page": None, "quote": "Its bulb is a halogen\nbulb of fifty watts."},
        ],
    },
    {"id": "3", "kind": "unanswerable", "question": "Who made the lamp?", "answer": "", "short": "", "gold": []},
]
HOTPOT = {
    "question": "Where was the author of Dune born?",
    "answer": "Tacoma",
    "context": [
        ["Dune", ["Dune is a novel.", " It is by Frank Herbert."]],
        ["Frank Herbert", ["He was born in Tacoma."]],
        ["Sand", ["Sand is a stuff."]],
    ],
    "supporting_facts": [["Dune", 1], ["Frank Herbert", 0]],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources") / "house"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "pump.md").write_text(PUMP, "utf-8")
    (folder / "docs" / "lamp.md").write_text(LAMP, "utf-8")
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)), "utf-8")
    return folder


@pytest.fixture(scope="module")
def house(folder):
    return read_source(folder, folder.parent / "work")


def test_a_folder_becomes_passages_candidates_and_gold_spans(house):
    first, second, third = house.questions
    ((place, gold),) = first.gold.items()
    text = house.passages[place][1]
    assert text[slice(*gold.span)] == "The pump starts when the water rises above forty litres"
    assert text[slice(*gold.short)] == "forty litres"
    assert place in first.candidates
    assert {gold.part for gold in second.gold.values()} == {0, 1}
    assert second.is_answered(list(second.gold))
    assert not second.is_answered(list(second.gold)[:1])
    assert third.gold == {}


def test_a_sentence_without_a_name_or_a_number_becomes_a_question(house):
    assert house.clozes
    for cloze in house.clozes:
        ((place, gold),) = cloze.gold.items()
        text = house.passages[place][1]
        assert gold.span[0] <= gold.short[0] < gold.short[1] <= gold.span[1]
        assert all(text[slice(*gold.short)] not in house.passages[near][1] for near in cloze.candidates)
        assert place not in cloze.candidates


def test_questions_with_several_parts_are_also_asked_with_one_of_them_known(house):
    lessons = tokenised([house]).lessons
    assert [bool(lesson.known) for lesson in lessons] == [False, False, True, True, False]
    known = lessons[2]
    assert len(known.right) == 1
    assert not set(known.right) & set(known.wrong)


def test_a_file_in_the_form_of_hotpotqa_brings_its_own_paragraphs(tmp_path):
    file = tmp_path / "hotpot.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(HOTPOT).encode()))
    (question,) = read_source(file, tmp_path).questions
    assert question.quotes == ("It is by Frank Herbert.", "He was born in Tacoma.")
    assert question.candidates == (0, 1, 2)
    assert question.gold[1].short == (15, 21)


def test_a_file_of_musique_tells_the_sentence_that_answers_each_step(tmp_path):
    paragraphs = [
        {"title": "Dune", "paragraph_text": "Dune is a novel. It is by Frank Herbert."},
        {"title": "Dune", "paragraph_text": "A hill of sand."},
        {"title": "Frank Herbert", "paragraph_text": "Born on the coast. He died in 1986."},
    ]
    steps = [{"answer": "Frank Herbert", "paragraph_support_idx": 0}, {"answer": "Tacoma", "paragraph_support_idx": 2}]
    told = {"question": "Where?", "answer": "Tacoma", "paragraphs": paragraphs, "question_decomposition": steps}
    (tmp_path / "musique.json").write_text(json.dumps([told]), "utf-8")
    (question,) = read_source(tmp_path / "musique.json", tmp_path).questions
    assert question.quotes == ("It is by Frank Herbert.", "Born on the coast.")  # where none holds it, the first
    assert list(question.gold) == [0, 2]


def test_sources_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "wrong.json").write_text('[{"question": 3}]')
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="HotpotQA"):
        read_source(tmp_path / "wrong.json", tmp_path)
    with pytest.raises(NotFoundError, match=r"questions\.jsonl"):
        read_source(tmp_path / "empty", tmp_path)


def test_a_quote_is_found_whatever_its_line_breaks_and_damaged_letters():
    found = quoted(
        "vos messages seront soumis \ufffd l'approbation", {0: "Alors vos mes-\nsages seront soumis à l’approbation."}
    )
    assert found == {0: (6, 50)}
    assert quoted("of fifty watts and more than that", {1: "nothing", 2: "a bulb of fifty watts and more"}) == {
        2: (7, 30)
    }
    assert quoted("…", {0: "any text"}) == {}


@given(st.text(min_size=1), st.text(), st.text())
def test_a_quote_that_is_in_a_text_is_found_there(quote, before, after):
    found = quoted(quote, {0: before + quote + after})
    for start, end in found.values():
        assert 0 <= start < end <= len(before + quote + after)
    assert bool(found) == any(sign.isalnum() and (sign.isascii() or sign > "\u024f") for sign in quote)


@given(st.sets(st.text(max_size=3)), st.integers(1, 5), st.integers(0, 3))
def test_every_name_is_left_out_once(names, folds, seed):
    parts = [names_of_fold(names, fold, folds, seed) for fold in range(folds)]
    assert sorted(name for part in parts for name in part) == sorted(names)


@pytest.mark.parametrize("told", ["3/3", "1", "a/b", "-1/3", ""])
def test_a_part_that_does_not_exist_is_refused(told):
    with pytest.raises(InputError, match="0/3"):
        parse_fold(told)


@pytest.mark.filterwarnings("ignore")
def test_training_lowers_the_loss_and_writes_what_reads_the_same(house, tmp_path):
    for package in ("torch", "transformers", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    from clew.lab.training.networks import EncoderSize
    from clew.lab.training.passages.fitting import PassageFitting, PassageSettings, fit_passages, measure

    settings = PassageSettings(epochs=2, rate=1e-3, size=EncoderSize(1, 4, 64))
    figures = fit_passages([house], tmp_path, settings, {"seed": 0}, lambda _: None)
    assert figures["loss"] < figures["first_loss"]
    read = PassageNetwork(tmp_path)
    assert {"single in 1", "multi in 10 by search"} <= set(measure([house], read))
    fitting = PassageFitting.open(settings, tokenised([house]), lambda _: None)
    network, _ = fitting.fit(None)
    pairs = fitting.lessons.candidates[:3]
    exact = fitting.judge(network, pairs)
    asked = house.questions[0].text
    places = [fitting.lessons.passages.index(passage) for _, passage in pairs]
    seen = read.read(asked, [house.passages[place] for place in places])
    assert [one.relevance for one in seen] == pytest.approx(exact.tolist(), abs=0.1)
    assert all(len(joined(*pair)[0]) <= 384 for pair in pairs)


SHAPE = {"hidden_size": 384, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.mark.filterwarnings("ignore")
def test_training_starts_from_a_cross_encoder_with_the_same_words(house, tmp_path):
    for package in ("torch", "transformers", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    from transformers import BertConfig, BertForSequenceClassification

    from clew.lab.training.passages.fitting import PassageSettings, fit_passages

    BertForSequenceClassification(BertConfig(**SHAPE)).save_pretrained(tmp_path / "start")
    BertForSequenceClassification(BertConfig(**SHAPE | {"hidden_size": 32})).save_pretrained(tmp_path / "other")
    fit_passages([house], tmp_path / "out", PassageSettings(epochs=1), {}, print, tmp_path / "start")
    assert PassageNetwork(tmp_path / "out").read("pump?", house.passages[:1])
    with pytest.raises(InputError, match="384 dimensions"):
        fit_passages([house], tmp_path / "new", PassageSettings(epochs=1), {}, print, tmp_path / "other")


@pytest.mark.filterwarnings("ignore")
def test_an_embedder_is_trained_and_opened_by_its_folder(house, tmp_path):
    for package in ("torch", "transformers", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    from transformers import BertConfig, BertForSequenceClassification

    from clew.core.errors import ModelError
    from clew.lab.training.networks import EncoderSize
    from clew.lab.training.next_passage import EmbedderSettings, fit_next_passage, measure_next
    from clew.models.embedding.opening import open_embedder

    BertForSequenceClassification(BertConfig(**SHAPE)).save_pretrained(tmp_path / "teacher")
    settings = EmbedderSettings(epochs=3, rate=1e-3, pieces=20, teacher_epochs=1, size=EncoderSize(1, 4, 64))
    figures = fit_next_passage([house], tmp_path / "out", settings, {"seed": 0}, print, tmp_path / "teacher")
    assert figures["loss"] < figures["first_loss"]
    embedder = open_embedder(str(tmp_path / "out"))
    assert {"single in 1", "multi in 10", "next in 5"} <= set(measure_next([house], embedder))
    with (tmp_path / "out" / "encoder.onnx").open("ab") as altered:
        altered.write(b"x")
    with pytest.raises(ModelError, match="digest"):
        open_embedder(str(tmp_path / "out")).embed(["pump"], role="query")


def test_pieces_of_passages_are_asked_beside_the_questions(house):
    import random

    from clew.lab.training.next_passage import passage_tokens, query_tokens, with_pieces

    lessons = tokenised([house])
    asked = with_pieces(lessons, 5, random.Random(0))
    assert len(asked) == 4 + 5
    for piece in asked[-5:]:
        [place] = piece.right
        assert set(piece.question) <= set(lessons.passages[place].text)
    known = next(lesson for lesson in asked if lesson.known)
    assert query_tokens(known)[-len(known.known) - 2 :] == [1025, *known.known, 102]
    assert all(len(passage_tokens(passage)) <= 256 for passage in lessons.passages)
