"""Think-on-Graph walks to the answer, with a model and without, and says which facts it walked."""

import json

import pytest

from clew.answering.methods.paths.think_on_graph import ThinkOnGraph
from clew.answering.reading.mentions import find_topics
from clew.models.protocol import Completion
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import tables


class Thinks:
    """A model that rates what holds one of its words 0.9 and all else 0.1, and answers once a name is in the facts."""

    name, context_tokens = "thinks", 4096

    def __init__(self, name, *words):
        self.answer, self.words, self.seen = name, words, []

    def complete(self, requests):
        self.seen += [request.messages[-1].content for request in requests]
        return [Completion(self._reply(request.messages[-1].content)) for request in requests]

    def _reply(self, prompt):
        asked = prompt.rpartition("\nQ: ")[2] if "\nQ: " in prompt else prompt
        options = [line for line in asked.splitlines() if line[:1].isdigit()]
        liked = [any(word in option for word in self.words) for option in options]
        if "Knowledge Triplets" in asked:
            has = self.answer in asked
            return json.dumps({"enough": has, "answers": [self.answer] if has else []})
        if '{"best"' in prompt:
            return json.dumps({"best": [n for n, is_liked in enumerate(liked, 1) if is_liked] or [1]})
        if '{"choice"' in prompt:
            return '{"choice": "A"}'
        return json.dumps({"scores": {str(n): 0.9 if is_liked else 0.1 for n, is_liked in enumerate(liked, 1)}})


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tog") / "kb"
    build(tables(), folder)
    return OpenBase.open(folder)


@pytest.mark.parametrize("prune", ["score", "choose"])
def test_the_walk_ends_at_what_was_read_with_its_facts_as_evidence(tools, prune):
    model = Thinks("BBS2", "has_phenotype", "associated_with")
    asked = "Which gene is behind the disease with [Polydactyly]?"
    answer = ThinkOnGraph(width=2, prune=prune).answer(asked, tools.with_model(model))
    [best] = answer.answer_set
    assert (best.node.name, answer.text) == ("BBS2", "BBS2")
    assert [(f.head.key, f.relation, f.tail.key) for f in best.evidence[0].facts] == [
        ("BBS", "has_phenotype", "P1"),
        ("BBS2", "associated_with", "BBS"),
    ]
    assert any("rate their contribution" in prompt for prompt in model.seen) == (prune == "score")


def test_an_entity_counts_with_its_score_times_that_of_its_relation(tools):
    model = Thinks("nothing", "has_phenotype", "Rod-cone")
    ThinkOnGraph(width=1, depth=1).answer("What goes with [Bardet-Biedl syndrome]?", tools.with_model(model))
    [entities] = [prompt for prompt in model.seen if "Please score the entities" in prompt]
    assert entities.rpartition("\nQ: ")[2].splitlines()[1:4] == [
        "Relation: has_phenotype",
        "Entities:",
        "1. Polydactyly",
    ]
    assert "Bardet-Biedl syndrome, has_phenotype, Rod-cone dystrophy" in model.seen[-1]
    assert "Polydactyly" not in model.seen[-1]


def test_it_stops_as_soon_as_the_facts_suffice(tools):
    model = Thinks("Arachnodactyly", "has_phenotype")
    ThinkOnGraph().answer("What goes with [Marfan syndrome]?", tools.with_model(model))
    assert [("enough", "answer")["you are asked to answer the question" in prompt] for prompt in model.seen[-2:]] == [
        "enough",
        "answer",
    ]
    assert len(model.seen) == 3  # relations, enough, answer: two entities need no choice


def test_memory_is_an_option_and_off_by_default(tools):
    remembers = Thinks("FBN1", "is_a")
    remembers._reply = lambda prompt: '{"scores": {"1": 1.0}, "enough": true, "answers": ["FBN1"]}'
    asked = "What goes with [Polydactyly]?"
    assert not ThinkOnGraph(depth=1).answer(asked, tools.with_model(remembers)).answer_set
    assert "with these triplets alone" in remembers.seen[-1]
    [remembered] = ThinkOnGraph(depth=1, memory=True).answer(asked, tools.with_model(remembers)).answer_set
    assert remembered.node.name == "FBN1"
    assert "and your knowledge" in remembers.seen[-1]


def test_without_a_topic_it_says_so(tools):
    answer = ThinkOnGraph().answer("why?", tools)
    assert answer.candidates == ()
    assert "no topic entity" in answer.notes[0]


def test_it_works_with_no_model_at_all(tools):
    answer = ThinkOnGraph().answer("Which phenotype does [Marfan syndrome] have?", tools)
    assert "Arachnodactyly" in {candidate.node.name for candidate in answer.candidates}


def test_topics_are_marked_given_or_found_by_name(tools):
    names = tools.names
    assert [t.text for t in find_topics("what about [MFS]?", names).topics] == ["MFS"]
    assert find_topics("what about [MFS]?", names).question == "what about MFS?"
    assert [t.text for t in find_topics("what about it?", names, ["FBN1"]).topics] == ["FBN1"]
    found = find_topics("does Marfan syndrome cause polydactyly?", names).topics
    assert [t.text for t in found] == ["Marfan syndrome", "polydactyly"]
