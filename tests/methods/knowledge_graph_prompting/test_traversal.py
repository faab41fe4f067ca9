"""Algorithm 1 against a naive reference, and what a walk over real passages finds."""

from collections import deque
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.building import build
from clew.core.errors import InputError
from clew.datasets.questions import Dataset, Question
from clew.documents import EdgeOptions, corpus_tables
from clew.evaluation.golden_passages import GoldenPassages
from clew.methods.catalog import ask, create
from clew.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting
from clew.methods.knowledge_graph_prompting.passages import PassageGraph, added_share
from clew.methods.knowledge_graph_prompting.traversal import Hop, best_gains, traverse
from clew.toolbox import Toolbox

graphs = st.dictionaries(
    st.integers(0, 7), st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1)), max_size=6), max_size=8
)


@settings(max_examples=200)
@given(
    graphs,
    st.lists(st.integers(0, 7), unique=True, max_size=4),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 12),
)
def test_without_a_beam_the_walk_is_the_papers_algorithm(graph, seeds, branching, hops, budget):
    def hops_of(path):
        return [Hop(node, gain, gain) for node, gain in sorted(graph.get(path[-1], []), key=lambda edge: -edge[1])]

    # Algorithm 1 of the paper as it stands, one path at a time; passages visited twice count once.
    retrieved = [(seed,) for seed in seeds[:budget]]
    queue, visited, full = deque(retrieved), set(seeds[:budget]), False
    while queue and not full and len(visited) < budget:
        path = queue.popleft()
        if len(path) == hops:
            continue
        for hop in [hop for hop in hops_of(path) if hop.node not in path][:branching]:
            if hop.node not in visited and len(visited) >= budget:
                full = True
                break
            visited.add(hop.node)
            queue.append((*path, hop.node))
            retrieved.append((*path, hop.node))
    found = traverse(
        [Hop(seed, 1.0, 1.0) for seed in seeds],
        lambda paths: [hops_of(path.nodes) for path in paths],
        branching=branching,
        hops=hops,
        budget=budget,
    )
    complete = [path.nodes for path in found]
    if len(visited) < budget:
        assert complete == retrieved
    assert complete[: len(retrieved)] == retrieved[: len(complete)]
    assert len({node for path in complete for node in path}) <= budget
    assert len(set(complete)) == len(complete) or any(len({n for n, _ in e}) < len(e) for e in graph.values())


@given(graphs, st.integers(1, 3))
def test_a_beam_goes_on_from_the_most_promising_paths_alone(graph, beam):
    asked = []

    def rank(paths):
        asked.append([path.worth for path in paths])
        return [[Hop(node, worth, worth) for node, worth in graph.get(path.nodes[-1], [])] for path in paths]

    found = traverse([Hop(0, 1.0, 1.0)], rank, branching=5, hops=4, budget=100, beam=beam)
    assert all(len(worths) <= beam for worths in asked[1:])
    assert all(worths == sorted(worths, reverse=True) for worths in asked[1:])
    gains = best_gains(found)
    for node, gain in gains.items():
        assert gain == max(path.gain for path in found if path.nodes[-1] == node and len(path.nodes) > 1)


def test_what_a_passage_adds_is_the_weight_of_terms_the_path_lacks():
    covered = np.array([[True, False, False], [False, False, False]])
    present = np.array([[True, True, False], [True, True, False]])
    assert added_share(covered, present, np.array([1.0, 2.0, 1.0])).tolist() == [0.5, 0.75]


@dataclass
class Text:
    key: str
    title: str
    text: str


CORPUS = [
    Text("a", "The Simpsons", "The Simpsons is a series. Its music was written by Alf Clausen."),
    Text("b", "Alf Clausen", "Alf Clausen is a composer. He was born in Minneapolis in 1941."),
    Text("c", "Futurama", "Futurama is a series with music by Christopher Tyng."),
    Text("d", "Minneapolis", "Minneapolis is a city on the Mississippi."),
    Text("e", "Rain", "Rain falls from clouds."),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "kb"
    build(corpus_tables(CORPUS, EdgeOptions()), folder)
    return Toolbox.open(folder, embedder="hash")


def test_a_passage_that_shares_no_word_with_the_question_is_reached_through_the_one_that_names_it(corpus):
    question = "Where was the writer of the music of The Simpsons born?"
    walked = KnowledgeGraphPrompting().answer(question, corpus)
    assert [candidate.node.key for candidate in walked.candidates[:2]] == ["a", "b"]


def test_mentions_tie_both_ways_and_more_strongly_forward(corpus):
    graph = PassageGraph(corpus.kb, ("mentions",))
    ids = {ref.key: ref.id for ref in corpus.kb.refs(range(len(corpus.kb)))}
    forward, backward = graph.ties(ids["a"]), graph.ties(ids["b"])
    assert dict(zip(forward.nodes.tolist(), forward.strengths.tolist(), strict=True)) == {ids["b"]: 1.0}
    assert dict(zip(backward.nodes.tolist(), backward.strengths.tolist(), strict=True)) == {
        ids["a"]: 0.5,
        ids["d"]: 1.0,
    }


def test_any_graph_of_nodes_with_text_can_be_walked(tiny_tables, tmp_path):
    build(tiny_tables, tmp_path / "kb")
    tools = Toolbox.open(tmp_path / "kb", embedder="hash")
    answer = KnowledgeGraphPrompting().answer("gene of Bardet-Biedl syndrome", tools)
    assert answer.candidates


@pytest.mark.parametrize("name", ["tf_idf", "knn_passages", "dense_passages", "two_hop_dense"])
def test_baselines_find_the_passage_that_shares_the_questions_words(corpus, name):
    answer = ask(create(name), "Futurama is a series with music by whom?", corpus)
    assert answer.candidates[0].node.key == "c"
    assert answer.method == name


@pytest.mark.parametrize("name", ["iterative_passages", "no_passages"])
def test_baselines_that_need_a_model_say_so(corpus, name):
    with pytest.raises(InputError, match="needs a language model"):
        ask(create(name), "Who?", corpus)


def test_golden_passages_are_those_of_the_data_set(corpus):
    dataset = Dataset("set", (Question("1", "Who?", ("x",), passages=("b", "e")),), "documents")
    answer = GoldenPassages.of(dataset).answer("Who?", corpus)
    assert [candidate.node.key for candidate in answer.candidates] == ["b", "e"]
