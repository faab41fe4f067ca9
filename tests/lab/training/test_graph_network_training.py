"""The graph network trained from nothing on small bases, and used."""

import json
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.answering.methods.paths.qa_gnn import QaGnn
from clew.answering.reading.graph_network import GraphNetwork, HopPlaces, surroundings
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.errors import InputError
from clew.core.types import NodeSet
from clew.lab.datasets.questions import Question
from clew.lab.evaluation.lessons import graph_base, graph_lessons, graph_questions
from clew.store.open_base import OpenBase

COUNT = 24


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> OpenBase:
    """Makers and their makes, each with a colour: one relation there, one from there."""
    folder = tmp_path_factory.mktemp("makes")
    nodes, edges = [], ["head\trelation\ttail"]
    for place in range(COUNT):
        nodes += [{"key": f"m{place}", "name": f"Maker {place}", "type": "maker"}]
        nodes += [{"key": f"c{place}", "name": f"Car {place}", "type": "car"}]
        nodes += [{"key": f"t{place}", "name": f"Town {place}", "type": "town"}]
        edges += [f"m{place}\tmakes\tc{place}", f"m{place}\tlies_in\tt{place}"]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes), "utf-8")
    (folder / "edges.tsv").write_text("\n".join(edges) + "\n", "utf-8")
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "makes.kb")
    return OpenBase.open(folder / "makes.kb")


def asked() -> list[Question]:
    cars = [
        Question(f"c{n}", f"what does [Maker {n}] make", (f"c{n}",), "one-hop", (f"Maker {n}",)) for n in range(COUNT)
    ]
    return cars + [
        Question(f"t{n}", f"where is [Maker {n}]", (f"t{n}",), "one-hop", (f"Maker {n}",)) for n in range(COUNT)
    ]


def test_lessons_hold_both_ways_of_every_edge_and_masked_questions(tools: OpenBase) -> None:
    base = graph_base(tools.local, "makes")
    assert len(base.sources) == 4 * COUNT
    assert len(base.hop_texts) == 4
    told = {(base.sources[n], base.targets[n], base.hop_texts[base.hops[n]]) for n in range(len(base.sources))}
    assert len(told) == 4 * COUNT
    for source, target, text in told:
        kinds = [ref.type for ref in tools.kb.refs([int(source), int(target)])]
        assert text.startswith(kinds[0])
        assert kinds[1] in text
    made = graph_questions(
        tools, [*asked(), Question("x", "what does [Maker 1] make", ("nothing",), None, ("Maker 1",))]
    )
    assert len(made) == 2 * COUNT
    assert made[0].text == "what does § maker § make"
    assert made[0].answers == (tools.kb.find("c0"),)


@pytest.mark.filterwarnings("ignore")
def test_what_is_trained_in_seconds_answers_and_numpy_says_what_torch_says(tools: OpenBase, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    pytest.importorskip("onnx", reason="the extra `train` is not installed")
    from clew.lab.training.networks import EncoderSize
    from clew.lab.training.qa_gnn import GraphFitting, GraphSettings, train_graph_network

    pytest.importorskip("torch").set_num_threads(1)  # several are slower where the machine is busy
    lessons = graph_lessons(tools, "makes", asked(), 0.25, 0)
    assert len(lessons.kept) == COUNT // 2
    settings = GraphSettings(layers=2, width=16, steps=30, questions=8, size=EncoderSize(1, 4, 64))
    figures = train_graph_network([lessons], tmp_path / "weights", settings, say=lambda _: None)
    assert figures["loss"] < figures["first_loss"]
    assert figures["Hit@1, same schema"] >= 0.9
    assert figures["questions, same schema"] == COUNT // 2
    card = json.loads((tmp_path / "weights" / "card.json").read_text("utf-8"))
    assert card["trained_on"] == {"makes": len(lessons.taught)}
    told = clew.open(tools.local.folder).ask("where is [Maker 3]", method=QaGnn(weights=str(tmp_path / "weights")))
    assert told.candidates[0].node.name == "Town 3"

    fitting = GraphFitting.open(settings, lambda _: None)
    fitting.network.eval()
    fitting.export(tmp_path / "fresh", {})
    network, vocabulary = GraphNetwork(tmp_path / "fresh"), Vocabulary(tools.kb.schema)
    one = lessons.taught[0]
    used, kinds, around = surroundings(tools.kb, HopPlaces(vocabulary), NodeSet.of(one.topics), 2).among_used()
    hops = network.vectors([vocabulary.hop_texts[place] for place in used])
    heard = network.hear(one.text, around, hops, network.vectors([vocabulary.type_texts[place] for place in kinds]))
    with fitting.torch.no_grad():
        said = fitting.scores(lessons.base, [one]).log_softmax(1)[0].numpy()
    assert np.allclose(heard.scores[1:], said[around.nodes[1:]], atol=0.05)


@pytest.mark.filterwarnings("ignore")
def test_nothing_to_learn_from_is_said(tools: OpenBase, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    pytest.importorskip("onnx", reason="the extra `train` is not installed")
    from clew.lab.training.networks import EncoderSize
    from clew.lab.training.qa_gnn import GraphSettings, train_graph_network

    lessons = graph_lessons(tools, "makes", [], 0.0, 0)
    settings = GraphSettings(layers=1, width=8, steps=2, size=EncoderSize(1, 4, 64))
    with pytest.raises(InputError, match="nothing to train on"):
        train_graph_network([lessons], tmp_path / "weights", settings, say=lambda _: None)
