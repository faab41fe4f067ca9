"""Corpora as Knowledge Graph Prompting cuts them: sentences, twelve documents a question, and IIRC."""

import json

import pytest

from clew.core.errors import InputError
from clew.lab.datasets.load import load_dataset
from conftest import TESTS

SAMPLE = TESTS / "data" / "iirc_sample"


@pytest.fixture
def hotpot(tmp_path):
    record = {
        "_id": "h1",
        "question": "q",
        "answer": "a",
        "supporting_facts": [["A", 1], ["B", 0]],
        "context": [["A", ["A one.", "A two."]], ["B", ["B one.", "B two.", "B three."]], ["C", ["C one."]]],
    }
    others = [
        {**record, "_id": f"h{n}", "context": [[f"D{n}", ["x."]]], "supporting_facts": [[f"D{n}", 0]]}
        for n in range(2, 9)
    ]
    file = tmp_path / "hotpot.json"
    file.write_text(json.dumps([record, *others]))
    return load_dataset(f"hotpotqa:{file}")


def test_sentences_become_passages_and_supporting_sentences_gold(hotpot):
    cut = hotpot.in_sentences()
    assert [one.key for one in cut.paragraphs[:6]] == ["A (1)", "A (2)", "B (1)", "B (2)", "B (3)", "C (1)"]
    assert cut.questions[0].passages == ("A (2)", "B (1)")
    assert cut.contexts["h1"] == ("A (1)", "A (2)", "B (1)", "B (2)", "B (3)", "C (1)")
    assert {one.title for one in cut.paragraphs[:2]} == {"A"}


def test_where_only_paragraphs_are_gold_any_of_their_sentences_counts(tmp_path):
    paragraphs = [
        {"title": "T", "paragraph_text": "One thing is so. Another is not.", "is_supporting": True},
        {"title": "U", "paragraph_text": "Unrelated.", "is_supporting": False},
    ]
    record = {"id": "2hop__1", "question": "q", "answer": "a", "paragraphs": paragraphs}
    (tmp_path / "m.json").write_text(json.dumps([record]))
    [question] = load_dataset(f"musique:{tmp_path / 'm.json'}").in_sentences().questions
    assert (question.passages, question.aliases) == (("T (1)",), {"T (1)": ("T (2)",)})


def test_twelve_documents_hold_the_gold_ones_and_others_by_seed(hotpot):
    drawn = hotpot.with_documents(5)
    assert drawn.contexts["h1"][:2] == ("A", "B")
    assert len(set(drawn.contexts["h1"])) == 5
    assert drawn.contexts == hotpot.with_documents(5).contexts != hotpot.with_documents(5, seed=1).contexts
    assert "5 documents each" in drawn.portion


def test_iirc_in_its_official_layout():
    dataset = load_dataset(f"iirc:{SAMPLE}:dev")
    first, second, third = dataset.questions  # the one without an answer is left out
    assert (first.answers, second.answers, third.answers) == (("10 years", "10"), ("Salem",), ("yes",))
    assert first.passages == ("George Wingfield", "great depression")
    assert first.extra["supporting_facts"] == [("George Wingfield", 1), ("great depression", 1)]
    assert "unlinked" not in dataset.contexts["q_1"]
    texts = {one.key: one.text for one in dataset.paragraphs}
    assert texts["great depression #2"] == "It began in the United States & spread."
    assert dataset.in_sentences().questions[1].passages == ("George Wingfield (1)", "oregon (2)")
    with pytest.raises(InputError, match="name of a question file"):
        load_dataset(f"iirc:{SAMPLE}")


def test_iirc_is_asked_and_judged_sentence_by_sentence(run):
    cut = ("--sentences", "--documents", 4, "-O", "knowledge_graph_prompting.closely=0")
    methods = ("-m", "knowledge_graph_prompting", "-m", "bm25")
    code, out, err = run("eval", "-q", f"iirc:{SAMPLE}:dev", *methods, *cut, "--json")
    assert code == 0, err
    walk, words = json.loads(out)["runs"]
    assert walk["metrics"]["recall@20"] == 1.0
    assert words["metrics"]["recall@20"] == 1.0


def test_sentences_of_a_graph_are_refused(run):
    code, _, err = run("eval", "-q", f"cwq:{TESTS / 'data' / 'freebase_sample' / 'cwq.json'}", "--sentences")
    assert code == 2
    assert "corpus of texts" in err
