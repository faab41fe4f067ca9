"""The dense retriever: trained from nothing in seconds, judged on questions held apart, used beside what was there."""

import json

import pytest

from clew.answering.methods import catalog
from clew.core.errors import InputError, ModelError, NotFoundError, SchemaError
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.lessons import Trial, judged, train_dense
from clew.lab.training.dense_retriever import DenseSettings
from clew.models.embedding.opening import HashEmbedder
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import EDGES, NODES, tables

COLOURS = ("amber", "beige", "coral", "denim", "ebony", "fawn", "gold", "hazel")


@pytest.fixture(scope="module")
def garden(tmp_path_factory):
    """Flowers of a colour each, which the questions call by other words than the documents do."""
    folder = tmp_path_factory.mktemp("garden")
    nodes = [(f"F{n}", "flower", f"Flower {n}", [], f"It blooms in {colour}.") for n, colour in enumerate(COLOURS)]
    build(tables(nodes, []), folder / "garden.kb")
    asked = [
        {"id": f"{n}-{way}", "question": f"{way} shines {colour[::-1]}?", "answers": [f"F{n}"]}
        for n, colour in enumerate(COLOURS)
        for way in ("Which one", "What", "Name what", "Which flower", "Tell me what")
    ]
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)), "utf-8")
    return OpenBase.open(folder / "garden.kb", embedder=HashEmbedder()), load_dataset(str(folder / "asked.jsonl"))


@pytest.fixture(scope="module")
def trained(garden, tmp_path_factory):
    for package in ("torch", "transformers", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    from clew.lab.training.networks import EncoderSize

    settings = DenseSettings(epochs=12, rate=2e-3, questions=8, wrong=4, size=EncoderSize(1, 4, 64))
    weights = tmp_path_factory.mktemp("dense") / "weights"
    return weights, train_dense(Trial(*garden, settings, say=lambda _: None), weights, "clew train")


@pytest.mark.filterwarnings("ignore")
def test_questions_held_apart_are_answered_by_what_was_learned(garden, trained):
    (tools, dataset), (weights, card) = garden, trained
    figures = card["figures"]
    assert (figures["questions"], figures["searched"]) == (8, "all 8 nodes")
    assert figures["dense retriever"]["hit@1"][0] >= 0.75 > figures["vector search"]["hit@1"][0]
    assert card["usable"]
    assert card["losses"][-1] < card["losses"][0]
    method = catalog.create("vector_search", {"weights": str(weights)})
    first = [method.answer(question.text, tools).candidates[0].node.key for question in dataset.questions]
    assert sum(key in question.answers for key, question in zip(first, dataset.questions, strict=True)) >= 32
    assert method.learned(tools) != {} == catalog.create("vector_search").learned(tools)
    assert tools.remembered_embedder == "hash-64"  # what the base uses is as it was


@pytest.mark.filterwarnings("ignore")
def test_weights_that_do_not_fit_are_refused_with_the_reason(garden, trained, tmp_path):
    (tools, _), (weights, card) = garden, trained

    def ask(where=tools, **options):
        return catalog.create("vector_search", {"weights": str(weights), **options}).answer("What shines?", where)

    build(tables(NODES, EDGES), tmp_path / "tiny.kb")
    with pytest.raises(SchemaError, match=r"another schema .*node type flower is missing"):
        ask(OpenBase.open(tmp_path / "tiny.kb", embedder=HashEmbedder()))
    with pytest.raises(InputError, match="with_relations=true"):
        ask(with_relations=False)
    with pytest.raises(NotFoundError, match="clew train dense_retriever"):
        catalog.create("vector_search", {"weights": str(tmp_path)}).answer("What shines?", tools)
    for changed, error, told in (
        ({"usable": False}, InputError, "less often than vector search"),
        ({"format": 2}, InputError, "format 2"),
        ({"questions": "0" * 64}, ModelError, "digest"),
    ):
        (weights / "card.json").write_text(json.dumps(card | changed), "utf-8")
        with pytest.raises(error, match=told):
            ask(OpenBase.open(tools.place, embedder=HashEmbedder()))
    (weights / "card.json").write_text(json.dumps(card), "utf-8")


def test_figures_have_intervals_and_a_paired_test():
    gold = [frozenset({1}), frozenset({2, 3})]
    told = judged(gold, [[5, 1], [4]], [[1], [3, 2]])
    assert told["vector search"] == {
        "hit@1": [0, 0, 0],
        "hit@5": [0.5, 0, 1],
        "recall@20": [0.5, 0, 1],
        "mrr": [0.25, 0, 0.5],
    }
    assert told["dense retriever"]["hit@1"] == [1, 1, 1]
    assert told["p of hit@1"] > 0.3


def test_too_few_questions_are_refused(garden, tmp_path):
    tools, dataset = garden
    with pytest.raises(InputError, match="1 questions with answers: add questions"):
        train_dense(Trial(tools, dataset.sample(1), DenseSettings()), tmp_path / "weights")
