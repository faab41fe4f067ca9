"""Algorithm 1 against a naive reference, and what a walk over real passages finds."""

from collections import deque
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.answering.evidence_drawing import draw_evidence
from clew.answering.methods.catalog import ask, create
from clew.answering.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting, search_of
from clew.answering.methods.knowledge_graph_prompting.traversal import (
    PassageGraph,
    PossibleStep,
    added_share,
    best_paths,
    traverse,
)
from clew.answering.reading.documents.search import readable_nodes, text_of, tf_idf_ranking
from clew.core.errors import InputError
from clew.core.trace import Recorder
from clew.core.types import Passage, Path
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import TitledText, corpus_tables
from clew.lab.datasets.questions import Dataset, Question
from clew.lab.evaluation.benchmark import GoldenPassages
from clew.models.embedding.onnx import asking_on
from clew.models.protocol import Completion
from clew.store.building import build
from clew.store.open_base import OpenBase

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
        return [
            PossibleStep(node, gain, gain) for node, gain in sorted(graph.get(path[-1], []), key=lambda edge: -edge[1])
        ]

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
        [PossibleStep(seed, 1.0, 1.0) for seed in seeds],
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
        return [[PossibleStep(node, worth, worth) for node, worth in graph.get(path.nodes[-1], [])] for path in paths]

    found = traverse([PossibleStep(0, 1.0, 1.0)], rank, branching=5, hops=4, budget=100, beam=beam)
    assert all(len(worths) <= beam for worths in asked[1:])
    assert all(worths == sorted(worths, reverse=True) for worths in asked[1:])
    gains = {node: path.gain for node, path in best_paths(found).items()}
    for node, gain in gains.items():
        assert gain == max(path.gain for path in found if path.nodes[-1] == node and len(path.nodes) > 1)


def test_what_a_passage_adds_is_the_weight_of_terms_the_path_lacks():
    covered = np.array([[True, False, False], [False, False, False]])
    present = np.array([[True, True, False], [True, True, False]])
    assert added_share(covered, present, np.array([1.0, 2.0, 1.0])).tolist() == [0.5, 0.75]


CORPUS = [
    TitledText("a", "The Simpsons", "The Simpsons is a series. Its music was written by Alf Clausen."),
    TitledText("b", "Alf Clausen", "Alf Clausen is a composer. He was born in Minneapolis in 1941."),
    TitledText("c", "Futurama", "Futurama is a series with music by Christopher Tyng."),
    TitledText("d", "Minneapolis", "Minneapolis is a city on the Mississippi."),
    TitledText("e", "Rain", "Rain falls from clouds."),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "kb"
    build(corpus_tables(CORPUS, EdgeOptions()), folder)
    return OpenBase.open(folder, embedder="hash")


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
    tools = OpenBase.open(tmp_path / "kb", embedder="hash")
    answer = KnowledgeGraphPrompting().answer("gene of Bardet-Biedl syndrome", tools)
    assert answer.candidates


@pytest.mark.parametrize("name", ["tf_idf", "knn_passages", "dense_passages", "two_hop_dense"])
def test_baselines_find_the_passage_that_shares_the_questions_words(corpus, name):
    answer = ask(create(name), "Futurama is a series with music by whom?", corpus)
    assert answer.candidates[0].node.key == "c"
    assert answer.method == name


class Thinks:
    """A model that thinks one sentence, then concludes, and reads nothing."""

    name, context_tokens = "thinks", 8192

    def __init__(self, *thoughts):
        self.thoughts, self.seen = list(thoughts), []

    def complete(self, requests):
        self.seen += [request.messages[-1].content for request in requests]
        thinking = "one sentence at a time" in requests[0].messages[0].content
        return [
            Completion(self.thoughts.pop(0) if thinking else '{"answer": "Ann", "passages": [1]}') for _ in requests
        ]


def test_a_chain_of_thought_is_searched_for_sentence_by_sentence(corpus):
    model = Thinks("Futurama has music by somebody. And more.", "So the answer is: somebody.")
    answer = ask(create("iterative_passages", {"each": 1}), "Who wrote it?", corpus.with_model(model))
    assert "A: Futurama has music by somebody." in model.seen[1]  # one sentence, and the chain so far
    assert "Title: Futurama" in model.seen[1]
    assert len(model.seen) == 3  # two thoughts, then the reader
    assert answer.text == "Ann"


def test_mdr_multiplies_the_scores_of_its_two_hops(corpus):
    method = create("two_hop_dense")
    pairs = method._pairs("Futurama is a series with music by whom?", corpus)
    vectors, passages = corpus.vectors, readable_nodes(corpus.local)
    (first, second), score = next(iter(pairs.items()))
    one = dict(vectors.search("Futurama is a series with music by whom?", 15, among=passages))[first]
    asked = asking_on("Futurama is a series with music by whom?", text_of(corpus.local, first))
    assert score == pytest.approx(one * dict(vectors.search(asked, 4, among=passages))[second])
    assert list(pairs.values()) == sorted(pairs.values(), reverse=True)


def test_the_reader_is_given_pairs_as_one_source_each(corpus):
    model = Thinks()
    options = {"short": True, "pairs": True, "read": 3, "closely": 0, "hops": 2}
    answer = ask(
        create("knowledge_graph_prompting", options), "Who made the music of Futurama?", corpus.with_model(model)
    )
    sources = model.seen[-1].partition("\n\nQuestion:")[0].split("\n\n")
    assert len(sources) == 3
    assert all(len(source.splitlines()) == 3 for source in sources)  # both titles, then one passage and the other
    assert answer.text == "Ann"
    with pytest.raises(InputError, match="short=true"):
        create("knowledge_graph_prompting", {"pairs": True})


def test_which_passage_led_to_which_and_by_what_is_evidence_trace_and_picture(corpus):
    recorder = Recorder()
    answer = ask(KnowledgeGraphPrompting(hops=2), "Who made the music of Futurama?", corpus, recorder)
    led = [piece for one in answer.candidates for piece in one.evidence if isinstance(piece, Path)]
    kinds = set(corpus.kb.schema.relation_names)
    assert led
    assert all(fact.relation in kinds for path in led for fact in path.facts)
    for one in answer.candidates:
        for path in one.evidence[1:]:
            assert path.facts[-1].tail == one.node
            assert isinstance(one.evidence[0], Passage)
    [traced] = [span for span in recorder.spans if span.name == "reasoning paths"]
    assert traced.details["paths"][0] == led[0].in_words()
    assert {"kind": "path"}.items() <= led[0].to_dict().items()
    picture = draw_evidence(answer)
    ends = {ref.name for path in led for fact in path.facts for ref in (fact.head, fact.tail)}
    drawn = ElementTree.fromstring(picture).iterfind("{*}g[{*}text]/{*}title")
    assert {title.text for title in drawn} == ends
    assert f">{led[0].facts[0].relation}</text>" in picture
    assert ">answer</text>" in picture


def test_seeds_may_be_found_as_in_the_paper(corpus):
    question = "Futurama is a series with music by whom?"
    seeds = tf_idf_ranking(corpus.local, corpus.lexical, question, 1)
    method = KnowledgeGraphPrompting(seeds_by="tfidf", seeds=1)
    _, paths = method._walked(search_of(corpus).about(question), method._graph(corpus), corpus)
    assert paths[0].nodes == tuple(seeds.nodes.tolist())
    with pytest.raises(InputError, match="no effect"):
        KnowledgeGraphPrompting(seeds_by="tfidf", traverser="none")
    with pytest.raises(InputError, match="hops=2 has no effect with traverser=none"):
        KnowledgeGraphPrompting(hops=2, traverser="none")


@pytest.mark.parametrize("name", ["iterative_passages", "no_passages"])
def test_baselines_that_need_a_model_say_so(corpus, name):
    with pytest.raises(InputError, match="needs a language model"):
        ask(create(name), "Who?", corpus)


def test_golden_passages_are_those_of_the_data_set(corpus):
    dataset = Dataset("set", (Question("1", "Who?", ("x",), passages=("b", "e")),), "documents")
    answer = GoldenPassages.of(dataset).answer("Who?", corpus)
    assert [candidate.node.key for candidate in answer.candidates] == ["b", "e"]
