"""Tournament on Path: from a question to the ends of a relation path, with and without a model."""

import random

import pytest

from clew.answering.methods.catalog import ask, create
from clew.answering.methods.paths.search import MOST_EMBEDDED, ModelPathJudge, Shown, lexical, prefilter
from clew.answering.queries.relation_paths import Move, RelationPath
from clew.answering.reading.mentions import mask_topic
from clew.answering.reading.path_ranker import read_taught
from clew.core.errors import InputError
from clew.core.types import EMPTY, Path
from clew.lab.training.feedback import confirm, learn
from clew.models.protocol import Completion
from clew.store.open_base import OpenBase
from conftest import EDGES, NODES, tables
from prompts_sent import Sends


def path(*names):
    return RelationPath(EMPTY, tuple((Move(n.lstrip("^"), "in" if n.startswith("^") else "out"),) for n in names))


def toolbox(tmp_path, edges=EDGES):
    from clew.store.building import build  # the whole base, with its names

    return OpenBase.open(build(tables(NODES, edges), tmp_path / "base.kb").folder)


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


@pytest.mark.parametrize("method", ["aligned_paths", "tournament_on_path", "think_on_graph"])
def test_a_base_without_relations_has_no_paths(tmp_path, method):
    answer = ask(create(method), "which phenotype does [MFS] have?", toolbox(tmp_path, []))
    assert not answer.matches


class Replies:
    """A model that gives the reply whose beginning of a prompt it is, and keeps the prompts."""

    name, context_tokens = "replies", 4096

    def __init__(self, *replies):
        self.replies, self.seen = replies, []

    def complete(self, requests):
        self.seen += [request.messages[-1].content for request in requests]
        return [Completion(self._reply(request.messages[-1].content)) for request in requests]

    def _reply(self, prompt):
        return next(reply for part, reply in self.replies if part in prompt)


def test_diff_prompting_gives_what_two_paths_share_and_shows_the_rest():
    model = Replies(
        ("is the candidate\n", ""), ("Candidate A", "Both fit.\n[A]"), ("Candidate:", "It adds [A].\n[RELEVANT]")
    )
    judge = ModelPathJudge(model, "who?")
    a, ab, ac = (Shown("E1", parts) for parts in (("-> a",), ("-> a", "-> b"), ("-> a", "<- c")))
    assert judge.first_is_better([(ab, ac), (a, ab), (ab, a)]) == [True, False, True]
    assert "Given conditions: -> GIVEN_TOPIC_ENTITY: E1 -> a\nCandidate A: -> b\nCandidate B: <- c\n" in model.seen[0]
    assert "Candidate: -> b\n" in model.seen[1]
    whole = ModelPathJudge(model, "who?", diff=False)
    whole.first_is_better([(ab, ac)])
    assert "GIVEN_TOPIC_ENTITY: E1\nCandidate A: -> a -> b\nCandidate B: -> a <- c" in model.seen[-1]


def test_without_a_tournament_five_paths_are_scored_per_prompt():
    model = Replies(("Score each", '{"scores": {"1": 0.2, "2": 0.9}}'))
    shown = [Shown("E1", (f"-> r{number}",)) for number in range(7)]
    scores = ModelPathJudge(model, "who?").scores(shown)
    assert len(model.seen) == 2
    assert (scores[1], scores[6], scores[3]) == (0.9, 0.9, 0.0)


def test_the_semantic_filter_embeds_whole_paths():
    seen = []

    class Embedding:
        def embed(self, phrases, *, role):
            import numpy as np

            seen.extend(phrases)
            return np.eye(2, dtype=np.float32)[[1 if "genre" in phrase else 0 for phrase in phrases]]

    texts = ["directed by has genre", "directed by"]
    assert prefilter("genre?", texts, 1, "semantic", Embedding()) == [0]
    assert "directed by has genre" in seen


def test_of_thousands_of_candidates_only_those_that_share_words_are_embedded():
    embedded = []

    class Embedding:
        def embed(self, phrases, *, role):
            import numpy as np

            embedded.extend(phrases)
            return np.ones((len(phrases), 1), dtype=np.float32)

    texts = [f"thing {number}" for number in range(MOST_EMBEDDED + 50)] + ["the genre of it"]
    kept = prefilter("which genre?", texts, MOST_EMBEDDED, "semantic", Embedding())
    assert len(texts) - 1 in kept  # the last of all, and yet among those that are embedded
    assert len(embedded) == MOST_EMBEDDED + 1


@pytest.mark.parametrize(
    "options",
    [
        {"system": 1, "diff": True},
        {"system": 2, "chunk": 5},
        {"system": 2, "shots": "few"},
        {"system": 2, "memory": True},
        {"prefilter": "none", "filtered": 7},
        {"prefilter": "aligned", "stop": "depth"},
        {"system": 1, "stop": "converged"},
        {"prefilter": "aligned", "explore": "entities"},
        {"seed": 1},
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(options):
    with pytest.raises(InputError, match="has no effect"):
        create("tournament_on_path", options)


@pytest.mark.parametrize(
    "options", [{"system": 1, "memory": True}, {"stop": "answered"}, {"mask": True}, {"diff": False}]
)
def test_what_is_about_a_model_is_refused_without_one(tmp_path, options):
    with pytest.raises(InputError, match="language model"):
        ask(create("tournament_on_path", options), "what has [BBS]?", toolbox(tmp_path))


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
    taught = learn(tools)
    assert [one.moves for one in taught] == [(Move("has_phenotype", "out"),)]
    assert read_taught(tools.local.folder) == tuple(taught)
    assert ask(create("aligned_paths"), question, tools).candidates[0].node.key == "P3"


def thesis(prefers, answers):
    """A model that takes what holds a word, and answers from the facts."""

    class Model:
        name, context_tokens = "thesis", 4096

        def __init__(self):
            self.seen = []

        def complete(self, requests):
            self.seen += [request.messages[-1].content for request in requests]
            return [Completion(self._reply(request.messages[-1].content)) for request in requests]

        def _reply(self, prompt):
            lines = prompt.splitlines()
            if "[A] or [B]" in prompt:
                return "[A]" if prefers in next(line for line in lines if line.startswith("Candidate A")) else "[B]"
            if "[RELEVANT]" in prompt:
                return "[NOT RELEVANT]"
            if "[ANSWERED]" in prompt:
                return "[ANSWERED]"
            if "Knowledge Triplets" in prompt:
                return answers
            last = prompt.rpartition("\nQ: ")[2].splitlines()
            options = [line for line in last if line.startswith("[") and line[1].isdigit()]
            liked = [number for number, line in enumerate(options) if prefers in line]
            return str((liked + [n for n in range(len(options)) if n not in liked])[:3])

    return Model()


def test_system_2_masks_every_topic_and_answers_with_all_ends_of_the_path(tmp_path):
    model = thesis("-> has_phenotype", "")
    method = create("tournament_on_path", {"system": "2"})
    asked = "which phenotypes does [Bardet-Biedl syndrome] have, and [Marfan syndrome]?"
    answer = ask(method, asked, toolbox(tmp_path).with_model(model))
    assert model.seen
    assert not [prompt for prompt in model.seen if "Bardet" in prompt or "Marfan" in prompt]
    assert {candidate.node.key for candidate in answer.answer_set} <= {"P1", "P2", "P3"}
    assert any(
        "= Polydactyly, Rod-cone dystrophy" in prompt for prompt in model.seen
    )  # the final, entity-aware ranking


def test_system_1_prunes_entities_in_groups_and_reads_all_kept_walks(tmp_path):
    model = thesis("has_phenotype", '{"answers": ["Polydactyly", "Atlantis"]}')
    method = create("tournament_on_path", {"system": "1", "width": "1", "depth": "2"})
    answer = ask(method, "which phenotype does [Bardet-Biedl syndrome] have?", toolbox(tmp_path).with_model(model))
    [entities] = [prompt for prompt in model.seen if "Candidate-Entities" in prompt.rpartition("\nQ: ")[2]][:1]
    shown = "Explored Path: [Entity] Bardet-Biedl syndrome -> [Relation] has_phenotype\nCandidate-Entities:\n"
    assert shown + "[0] Polydactyly\n[1] Rod-cone dystrophy" in entities
    assert [candidate.node.key for candidate in answer.answer_set] == ["P1"]
    assert len(answer.matches) == 1
    read = model.seen[-1]
    assert "Bardet-Biedl syndrome, has_phenotype, Polydactyly" in read
    assert "Polydactyly, is_a, Abnormal finger" in read


def test_what_a_model_remembers_counts_only_with_memory(tmp_path):
    tools = toolbox(tmp_path).with_model(thesis("has_phenotype", '{"answers": ["FBN1"]}'))
    asked, options = "which phenotype does [Bardet-Biedl syndrome] have?", {"system": 1, "depth": 1}
    assert not ask(create("tournament_on_path", options), asked, tools).answer_set
    [remembered] = ask(create("tournament_on_path", {**options, "memory": True}), asked, tools).answer_set
    assert remembered.node.key == "FBN1"
    assert "memory" in remembered.evidence[0].reason


def test_only_the_last_relation_is_shown_without_path_pruning(tmp_path):
    model = thesis("has_phenotype", "")
    options = {"path_pruning": "false", "stop": "depth", "depth": "2"}
    ask(create("tournament_on_path", options), "which phenotypes has [BBS2]?", toolbox(tmp_path).with_model(model))
    pairs = [
        line
        for prompt in model.seen
        if "= " not in prompt
        for line in prompt.splitlines()
        if line[:11] == "Candidate A"
    ]
    assert pairs
    assert all(line.count("->") + line.count("<-") == 1 for line in pairs)


def test_two_paths_that_look_the_same_are_not_asked_about():
    model = Sends("[B]")
    same, other = Shown("BBS2", ("-> has_phenotype",)), Shown("BBS2", ("<- is_a",))
    for diff in (True, False):
        assert ModelPathJudge(model, "q", diff=diff).first_is_better([(same, same), (same, other)]) == [True, False]
    assert len(model.sent) == 2


def test_a_model_may_decide_among_the_paths_that_are_aligned_best(tmp_path):
    model = thesis("has_phenotype", "")
    options = {"prefilter": "aligned", "filtered": "2"}
    tools = toolbox(tmp_path).with_model(model)
    asked = "which phenotypes do the diseases associated with [BBS2] have?"
    answer = ask(create("tournament_on_path", options), asked, tools)
    assert len(model.seen) == 1  # one pair
    assert answer.candidates  # which of the two wins is for the model to say


def test_no_tournament_and_no_filter_can_be_asked_for_by_name():
    method = create("tournament_on_path", {"tournament": "none", "prefilter": "none"})
    assert (method.tournament, method.prefilter) == ("none", "none")


@pytest.mark.parametrize("system", ["1", "2"])
def test_without_a_model_the_embedder_judges_the_matches(tmp_path, system):
    asked = "which phenotypes does [Bardet-Biedl syndrome] have?"
    answer = ask(create("tournament_on_path", {"system": system}), asked, toolbox(tmp_path))
    assert {candidate.node.key for candidate in answer.answer_set} == {"P1", "P2"}


def test_the_paths_behind_an_answer_are_drawn_from_the_command_line(run, tmp_path):
    folder = toolbox(tmp_path).local.folder
    asked = "which phenotypes do the diseases associated with [BBS2] have?"
    code, _, err = run("ask", folder, asked, "-m", "aligned_paths", "--svg", tmp_path / "paths.svg")
    assert code == 0, err
    picture = (tmp_path / "paths.svg").read_text()
    assert picture.count('<g class="node candidate"><title>') == 2
    assert all(f">{name}</text>" in picture for name in ("BBS2", "Polydactyly", "has_phenotype", "associated_with"))
