"""Tournament on Path: from a question to the ends of a relation path, with and without a model."""

import random

import pytest

from clew.core.roles import Chosen
from clew.core.types import EMPTY, Path
from clew.methods.catalog import ask, create
from clew.methods.paths.feedback import read_weights
from clew.methods.paths.search import ChoosingJudge, lexical
from clew.models.protocol import Completion
from clew.queries.relation_paths import Move, RelationPath
from clew.reading.paths.question_reading import Knowledge, read_question
from clew.reading.paths.topic_mask import mask_topic
from clew.toolbox import Toolbox
from clew.training.paths import confirm, learn
from conftest import EDGES, NODES, tables

NOTHING = Knowledge(lambda _: None, lambda *_: False)


def path(*names):
    return RelationPath(EMPTY, tuple((Move(n.lstrip("^"), "in" if n.startswith("^") else "out"),) for n in names))


def toolbox(tmp_path, edges=EDGES):
    from clew.building import build  # the whole base, with its names

    return Toolbox.open(build(tables(NODES, edges), tmp_path / "base.kb").folder)


@pytest.mark.parametrize(
    ("question", "names", "expected"),
    [
        ("who directed [Alien]", [], "who directed []"),
        ("where did crabtree go to college [Michael Crabtree]", [], "where did [] go to college"),
        ("what else did ben franklin invent", ["Benjamin Franklin"], "what else did [] invent"),
        ("who are the actors in the films of [The Mask]", [], "who are the actors in the films of []"),
        ("what does [England] use now [United Kingdom]", ["England"], "what does [] use now"),
        ("did [Ang Lee] act in [Hulk]", ["Hulk"], "did Ang Lee act in []"),
    ],
)
def test_the_topic_is_masked_where_it_is_named(question, names, expected):
    assert mask_topic(question, names) == expected


def test_words_that_stand_together_are_one_chunk_and_possessives_link_them():
    together = read_question("what is the time zone of []", NOTHING)
    assert together.chunks == together.linked == 1
    chained = read_question("[] 's wife 's father ?", NOTHING)
    assert (chained.chunks, chained.linked) == (2, 2)
    assert read_question("who directed []", NOTHING).kind == "person"
    assert read_question("in which languages are films by []", NOTHING).focus == ("languages",)


def test_diff_prompting_gives_what_two_paths_share_and_shows_the_rest():
    asked = []

    class Chooser:
        def choose(self, choices):
            asked.extend(choices)
            return [Chosen((0,)) for _ in choices]

    judge = ChoosingJudge(Chooser(), "who?", "m.1")
    pairs = [(path("a", "b"), path("a", "^c")), (path("a"), path("a", "b")), (path("a", "b"), path("a"))]
    assert judge.first_is_better(pairs) == [True, False, True]
    assert asked[0].given == "m.1 -> a"
    assert asked[0].options == ("-> b", "<- c")
    assert asked[1].options[0].startswith("[RELEVANT] -> b")


def test_bm25_over_paths_prefers_the_words_of_the_question():
    scores = lexical("who directed it", ["directed by", "written by"])
    assert scores[0] > scores[1] == 0


def test_a_path_of_two_hops_is_found_without_a_model_and_carries_its_walk(tmp_path):
    asked = "which phenotypes do the diseases associated with [BBS2] have?"
    answer = ask(create("aligned_paths"), asked, toolbox(tmp_path))
    assert {candidate.node.key for candidate in answer.answer_set} == {"P1", "P2"}
    (walk,) = answer.candidates[0].evidence
    assert isinstance(walk, Path)
    assert [fact.relation for fact in walk.facts] == ["associated_with", "has_phenotype"]
    assert "urn:clew:relation:has_phenotype" in answer.query["sparql"]


def test_a_question_without_a_topic_says_so(tmp_path):
    answer = ask(create("aligned_paths"), "what is it?", toolbox(tmp_path))
    assert not answer.candidates
    assert "no topic entity" in answer.notes[0]


def test_facts_that_change_places_change_the_answer(tmp_path):
    tails = [edge[2] for edge in EDGES if edge[1] == "has_phenotype"]
    random.Random(3).shuffle(tails)
    left = iter(tails)
    fictional = [(h, r, next(left) if r == "has_phenotype" else t, a) for h, r, t, a in EDGES]
    answer = ask(create("aligned_paths"), "which phenotype does [MFS] have?", toolbox(tmp_path, fictional))
    expected = {tail for head, relation, tail, _ in fictional if (head, relation) == ("MFS", "has_phenotype")}
    assert {candidate.node.key for candidate in answer.answer_set} == expected


def test_confirmed_answers_are_kept_beside_the_base_and_learned_from(tmp_path):
    tools = toolbox(tmp_path)
    question = "which phenotype does [MFS] have?"
    assert confirm(tools, question, ["Arachnodactyly"]) == 1
    assert confirm(tools, question, ["P3"]) == 1  # the same question again replaces what was said before
    count, weights = learn(tools)
    assert count == 1
    assert read_weights(tools.local.folder) == weights
    assert ask(create("aligned_paths"), question, tools).candidates[0].node.key == "P3"


class FirstOption:
    """A model that always takes the first of what it is shown, and keeps the prompts."""

    name, context_tokens = "first", 4096

    def __init__(self):
        self.seen = []

    def complete(self, requests):
        self.seen += [request.messages[-1].content for request in requests]
        return [Completion('{"choice": "A", "best": [1]}') for _ in requests]


@pytest.mark.parametrize(("system", "hidden"), [("1", False), ("2", True)])
def test_a_model_chooses_paths_and_system_2_never_shows_it_the_topic(tmp_path, system, hidden):
    model = FirstOption()
    method = create("tournament_on_path", {"system": system})
    answer = ask(method, "which phenotypes does [Bardet-Biedl syndrome] have?", toolbox(tmp_path).with_model(model))
    assert answer.candidates
    assert model.seen
    assert any("Bardet-Biedl" in prompt for prompt in model.seen) != hidden


def test_a_model_may_decide_among_the_paths_that_are_aligned_best(tmp_path):
    model = FirstOption()
    options = {"prefilter": "aligned", "filtered": "2"}
    tools = toolbox(tmp_path).with_model(model)
    asked = "which phenotypes do the diseases associated with [BBS2] have?"
    answer = ask(create("tournament_on_path", options), asked, tools)
    assert len(model.seen) == 2  # one pair, in both orders
    assert answer.candidates  # which of the two wins is for the model to say


def test_no_tournament_and_no_filter_can_be_asked_for_by_name():
    method = create("tournament_on_path", {"tournament": "none", "prefilter": "none"})
    assert (method.tournament, method.prefilter) == ("none", "none")


@pytest.mark.parametrize("system", ["1", "2"])
def test_without_a_model_the_embedder_judges_the_matches(tmp_path, system):
    asked = "which phenotypes does [Bardet-Biedl syndrome] have?"
    answer = ask(create("tournament_on_path", {"system": system}), asked, toolbox(tmp_path))
    assert {candidate.node.key for candidate in answer.answer_set} == {"P1", "P2"}
