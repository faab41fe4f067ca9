"""The surroundings of topics and the walks through them, against slow references; the network that ships."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.answering.methods.paths.qa_gnn import QaGnn
from clew.answering.reading.graph_network import (
    SHIPPED_GRAPH,
    GraphNetwork,
    Heard,
    HopPlaces,
    Surroundings,
    surroundings,
)
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.errors import ModelError
from clew.core.types import NodeSet
from clew.store.open_base import OpenBase

PEOPLE = ("Ada", "Ben", "Cleo", "Dan")
FILMS = ("North Wind", "Salt Road", "Tin Moon", "Quiet Harbour")
EDGES = [
    ("Ada", "directed", "North Wind"),
    ("Ada", "directed", "Salt Road"),
    ("Ben", "directed", "Tin Moon"),
    ("Cleo", "acted_in", "North Wind"),
    ("Cleo", "acted_in", "Tin Moon"),
    ("Dan", "acted_in", "Salt Road"),
    ("Dan", "married_to", "Cleo"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    nodes = [
        {"key": name, "name": name, "type": kind} for kind, own in (("person", PEOPLE), ("film", FILMS)) for name in own
    ]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes), "utf-8")
    rows = ["head\trelation\ttail", *("\t".join(edge) for edge in EDGES)]
    (folder / "edges.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "films.kb")
    return folder / "films.kb"


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("topic", PEOPLE + FILMS)
def test_surroundings_are_what_lies_within_so_many_hops(base: Path, topic: str, layers: int) -> None:
    kb = OpenBase.open(base).kb
    vocabulary = Vocabulary(kb.schema)
    around = surroundings(kb, HopPlaces(vocabulary), NodeSet.of([kb.find(topic)]), layers)
    walked = {(head, relation, "out", tail) for head, relation, tail in EDGES}
    walked |= {(tail, relation, "in", head) for head, relation, tail in EDGES}
    here, found = {topic}, set()
    for layer in range(layers):
        found |= {edge for edge in walked if edge[0] in here}
        here |= {end for start, _, _, end in walked if start in here}
        assert around.reached[layer] == len(found)
    names = [ref.name for ref in kb.refs(around.nodes)]
    hops = [vocabulary.hops[place] for place in around.hops]
    told = {
        (names[source], hop.relation, hop.direction, names[target])
        for source, hop, target in zip(around.sources, hops, around.targets, strict=True)
    }
    assert told == found
    assert len(around.sources) == len(found)
    assert names[0] == topic
    assert set(names) == here


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_walk_to_a_node_is_the_one_opened_furthest(data: st.DataObject) -> None:
    nodes, layers = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 3))
    place = st.integers(0, nodes - 1)
    edges = data.draw(st.lists(st.tuples(place, place, st.integers(0, 2)), min_size=1, max_size=8))
    opened = np.array(
        data.draw(
            st.lists(
                st.lists(st.sampled_from([0.0, 0.3, 0.7, 1.0]), min_size=3, max_size=3),
                min_size=layers,
                max_size=layers,
            )
        )
    )
    ordered, here, reached = [], {0}, []
    for _ in range(layers):
        ordered += [edge for edge in edges if edge[0] in here and edge not in ordered]
        here |= {edge[1] for edge in ordered}
        reached.append(len(ordered))
    columns = [np.array([edge[part] for edge in ordered], dtype=np.int64) for part in range(3)]
    around = Surroundings(np.arange(nodes), 1, np.zeros(nodes, dtype=np.int64), *columns, tuple(reached))
    walks = Heard(np.zeros(nodes, dtype=np.float32), opened.astype(np.float32)).walks(around)

    def best(node: int) -> float:
        values = {0: 0.0}
        every = [values.get(node, -np.inf)]
        for layer in range(layers):
            new: dict[int, float] = {}
            for start, end, hop in ordered[: reached[layer]]:
                if start in values:
                    new[end] = max(new.get(end, -np.inf), values[start] + np.log(opened[layer, hop] + 1e-3))
            values = new
            every.append(values.get(node, -np.inf))
        return max(every)

    for node in range(nodes):
        if np.isfinite(best(node)):
            walk = walks.to(node)
            assert all(ordered[one][1] == ordered[other][0] for one, other in pairwise(walk))
            if walk:
                assert ordered[walk[0]][0] == 0
                assert ordered[walk[-1]][1] == node
            worth = sum(np.log(opened[layer, ordered[edge][2]] + 1e-3) for layer, edge in enumerate(walk))
            assert worth == pytest.approx(best(node), abs=1e-4)


def test_plain_questions_over_a_base_it_has_not_seen(base: Path) -> None:
    opened = clew.open(base)
    told = opened.ask("Who directed Tin Moon?", method=QaGnn())
    assert told.candidates[0].node.name == "Ben"
    assert told.method == "qa_gnn"
    (path,) = told.candidates[0].evidence
    assert [(fact.head.name, fact.relation, fact.tail.name) for fact in path.facts] == [("Ben", "directed", "Tin Moon")]
    assert "directed" in told.query["sparql"]
    films = opened.ask("Which films did Ada direct?", method=QaGnn())
    assert {one.node.name for one in films.answer_set} == {"North Wind", "Salt Road"}
    assert 0 < films.certainty <= 1


def test_what_no_message_says_is_not_put_forward(base: Path) -> None:
    opened = clew.open(base)
    for question in ("How many films did Ada direct?", "Which films with Cleo were not directed by Ada?"):
        told = opened.ask(question, method=QaGnn())
        assert not told.found
        assert told.near
        assert "focus_plus" in told.notes[0]
    unsure = opened.ask("Which films did Ada direct?", method=QaGnn(sure=1.0))
    assert not unsure.found
    assert 0 < unsure.certainty < 1


def test_without_a_topic_nothing_is_put_forward(base: Path) -> None:
    told = clew.open(base).ask("Which of them is the longest?", method=QaGnn())
    assert not told.candidates
    assert "topic" in told.notes[0]


def test_a_folder_without_weights_and_altered_weights_are_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="clew train qa_gnn"):
        clew.open(base).ask("Who directed Tin Moon?", method=QaGnn(weights=str(tmp_path)))
    altered = tmp_path / "altered"
    shutil.copytree(SHIPPED_GRAPH, altered)
    content = bytearray((altered / "encoder.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (altered / "encoder.onnx").write_bytes(bytes(content))
    with pytest.raises(ModelError, match=r"do not match card\.json"):
        GraphNetwork(altered).vectors(["film"])


def test_other_weights_are_another_run(base: Path, tmp_path: Path) -> None:
    tools = OpenBase.open(base)
    assert QaGnn().learned(tools) == {"graph network": GraphNetwork(SHIPPED_GRAPH).version}
    shutil.copytree(SHIPPED_GRAPH, tmp_path / "other")
    card = json.loads((tmp_path / "other" / "card.json").read_text("utf-8"))
    (tmp_path / "other" / "card.json").write_text(json.dumps(card | {"digest": "f" * 64}), "utf-8")
    assert QaGnn(weights=str(tmp_path / "other")).learned(tools) != QaGnn().learned(tools)
