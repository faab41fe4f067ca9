"""Think-on-Graph walks to the answer, with a model and without, and says which facts it walked."""

import pytest

from clew.building import build
from clew.core.roles import Chosen, Read
from clew.methods.paths.think_on_graph import ThinkOnGraph
from clew.reading.paths.topics import find_topics
from clew.toolbox import Toolbox
from conftest import tables


class Prefers:
    """Chooses the options that hold one of the given words, in the order of the words."""

    def __init__(self, *words):
        self.words, self.asked = words, []

    def choose(self, choices):
        self.asked += choices
        return [Chosen(tuple(self._order(choice)[: choice.keep])) for choice in choices]

    def _order(self, choice):
        def liking(place):
            return next((n for n, word in enumerate(self.words) if word in choice.options[place]), len(self.words))

        return sorted(range(len(choice.options)), key=liking)


class Reads:
    """Reads a name once it stands in the facts."""

    def __init__(self, name):
        self.name = name

    def read(self, readings):
        return [Read(self.name if any(self.name in s.text for s in r.sources) else None) for r in readings]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tog") / "kb"
    build(tables(), folder)
    return Toolbox.open(folder)


def play(monkeypatch, chooser, reader):
    """Give the two roles to these."""
    monkeypatch.setattr("clew.methods.paths.think_on_graph.chooser_for", lambda _: chooser)
    monkeypatch.setattr("clew.methods.paths.think_on_graph.reader_for", lambda _: reader)


def test_the_walk_ends_at_what_was_read_with_its_facts_as_evidence(tools, monkeypatch):
    play(monkeypatch, Prefers("has_phenotype", "associated_with"), Reads("BBS2"))
    answer = ThinkOnGraph(width=2).answer("Which gene is behind the disease with [Polydactyly]?", tools)
    best = answer.candidates[0]
    assert (best.node.name, answer.text) == ("BBS2", "BBS2")
    assert [(f.head.key, f.relation, f.tail.key) for f in best.evidence[0].facts] == [
        ("BBS", "has_phenotype", "P1"),
        ("BBS2", "associated_with", "BBS"),
    ]


def test_it_stops_as_soon_as_the_facts_suffice(tools, monkeypatch):
    chooser = Prefers("has_phenotype")
    play(monkeypatch, chooser, Reads("Arachnodactyly"))
    ThinkOnGraph().answer("What goes with [Marfan syndrome]?", tools)
    assert {choice.kind for choice in chooser.asked} == {"relation", "fact"}
    assert len(chooser.asked) == 2


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
