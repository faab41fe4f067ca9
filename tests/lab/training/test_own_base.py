"""The reader fitted to one base: by a model's questions, by people's own, by what was confirmed; and undone."""

import json
from pathlib import Path

import pytest

from clew.answering.methods.catalog import create
from clew.answering.methods.role_choice import reader_of
from clew.answering.reading.fitted import Fitted, forget
from clew.answering.reading.path_ranker import read_taught
from clew.answering.reading.scoring import Labels
from clew.answering.roles.wordings import usable
from clew.core.errors import CorruptError, InputError, ModelError
from clew.lab.evaluation.run_folder import identity
from clew.lab.training.feedback import confirm, learn
from clew.lab.training.own_base import ASKED, fit_to_base, lessons_of, read_asked, wanted_of
from clew.models.protocol import Completion
from clew.store.graph.manifest import FITTED, altered_texts
from clew.store.open_base import OpenBase

NODES = "id,type,name,zorp,quill\nW1,work,Emma,3,7\nW2,work,Lucky,5,2\nP1,person,Ann Lee,,\nP2,person,Bo Ray,,\n"
EDGES = "head,relation,tail\nW1,blick,P1\nW2,blick,P2\nW1,frand,P2\nW2,frand,P1\nW2,drell,P1\nW1,drell,P2\n"
WAYS = ["who {} []", "the {} of []", "[] was {} whom", "tell me the {} of []", "which person {} []"]
WORDS = {  # what the names of the relations hide
    "blick": ["wrote", "author", "written by", "writer", "penned"],
    "frand": ["translated", "translator", "translated by", "translator", "translated"],
    "drell": ["printed", "printer", "printed by", "printer", "printed"],
}


@pytest.fixture
def base(run, tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    assert run("build", tmp_path / "nodes.csv", tmp_path / "edges.csv", "-o", tmp_path / "works.kb")[0] == 0
    return tmp_path / "works.kb"


class Words:
    """A model that knows what the relations are about."""

    name, context_tokens = "words", 8192

    def __init__(self, reply=None):
        self.asked, self.reply = [], reply

    def complete(self, requests):
        self.asked += [request.messages[-1].content for request in requests]
        answer = self._reply if self.reply is None else lambda _: self.reply
        return [Completion(answer(content)) for content in self.asked[-len(requests) :]]

    def _reply(self, content):
        told = []
        for line in content.splitlines():
            number, _, wanted = line.partition(". ")
            for relation, words in WORDS.items():
                if number.isdigit() and f"work → {relation}" in wanted and "given a work" in wanted:
                    questions = [way.format(word) for way, word in zip(WAYS, words, strict=True)]
                    told.append({"number": int(number), "questions": [*questions, "no name in this one"]})
        return json.dumps({"asked": told})


def write_questions(folder):
    lines = [
        {
            "about": f"work → {name} → person",
            "way": "reached",
            "questions": [w.format(x) for w, x in zip(WAYS, words, strict=True)],
        }
        for name, words in WORDS.items()
    ]
    (folder / ASKED).write_text("".join(json.dumps(line) + "\n" for line in lines))


def learned(folder):
    """Return the stored paths and the names of the vectors that a fit moves."""
    tools = OpenBase.open(folder)
    fitted = Fitted.beside(tools.kb, reader_of(tools).encoders.version)
    return [path.question for path in read_taught(folder)], None if fitted is None else sorted(fitted.moves)


def first_path(folder, question):
    return reader_of(OpenBase.open(folder)).read(question).meanings[0].text


def test_a_models_words_are_kept_learned_and_used_by_every_reading(base):
    tools = OpenBase.open(base)
    before = identity(create("auto"), tools)
    found = fit_to_base(tools, Words())
    assert found.taken
    assert found.by_way["reached"][2] > found.by_way["reached"][1]
    assert {line.about.split(" ← ")[0] for line in read_asked(base)} == {
        f"work → {relation} → person" for relation in WORDS
    }
    assert all("no name in this one" not in line.questions for line in read_asked(base))
    assert "blick" in first_path(base, "who is the author of Emma")
    assert "drell" in first_path(base, "who is the printer of Emma")
    assert identity(create("auto"), OpenBase.open(base)) != before


def test_what_is_known_is_not_asked_for_again(base):
    tools, model = OpenBase.open(base), Words()
    fit_to_base(tools, model)
    known = len(read_asked(base))
    again = Words()
    fit_to_base(OpenBase.open(base), again)
    listed = sum(line.partition(". ")[0].isdigit() for content in again.asked for line in content.splitlines())
    assert listed == len(wanted_of(reader_of(tools).vocabulary)) - known


@pytest.mark.parametrize(
    "reply", ["", "[]", '{"asked": [{"number": "one"}]}', '{"asked": [{"number": 99, "questions": ["[]"]}]}']
)
def test_replies_that_cannot_be_used_change_nothing(base, reply):
    with pytest.raises((InputError, ModelError), match=r"no example questions|words worded no question"):
        fit_to_base(OpenBase.open(base), Words(reply))
    assert not {FITTED, ASKED} & {file.name for file in base.iterdir()}


def test_a_model_that_cannot_be_reached_is_named(base, run):
    code, _, error = run("train", "reader", base, "--model", "http://127.0.0.1:9/v1#none")
    assert code != 0
    assert "worded no question: http://127.0.0.1:9" in error
    assert not (base / ASKED).exists()


def test_people_write_their_own_questions_from_the_command_line_and_undo(base, run):
    code, _, error = run("train", "reader", base)
    assert code == 2
    assert "--model" in error
    write_questions(base)
    code, shown, _ = run("train", "reader", base, "--json")
    told = json.loads(shown)
    assert code == 0
    assert told["taken"]
    assert (base / FITTED).is_file()
    assert "blick" in first_path(base, "who is the author of Emma")
    code, shown, _ = run("train", "reader", base, "--undo", "--json")
    assert (code, json.loads(shown)) == (0, {"undone": True})
    assert not (base / FITTED).exists()
    assert json.loads(run("train", "reader", base, "--undo", "--json")[1]) == {"undone": False}


def test_questions_that_say_nothing_new_are_not_taken_into_use(base):
    lines = [
        {"about": f"work → {name} → person", "way": "reached", "questions": [f"{name} of []"] * 2} for name in WORDS
    ]
    (base / ASKED).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = fit_to_base(OpenBase.open(base), None)
    assert not found.taken
    assert not (base / FITTED).exists()


def test_a_damaged_or_foreign_fit_is_named_with_its_remedy(base):
    fit_to_base(OpenBase.open(base), Words())
    content = (base / FITTED).read_bytes()
    (base / FITTED).write_bytes(content.replace(b"work", b"worm", 1))
    assert altered_texts(base) == [base / FITTED]
    with pytest.raises(CorruptError, match="--undo"):
        first_path(base, "who wrote Emma")
    (base / FITTED).write_bytes(content)
    reader = reader_of(OpenBase.open(base))
    reader.encoders.__dict__["version"] = "of another time"
    try:
        with pytest.raises(ModelError, match="fit it again"):
            reader.read("who wrote Emma")
    finally:
        del reader.encoders.__dict__["version"]
    (base / ASKED).write_text('{"about": 1}\n')
    with pytest.raises(CorruptError, match=r"line 1 is not of the form"):
        fit_to_base(OpenBase.open(base), None)


def test_confirmed_answers_teach_every_reading(base):
    tools = OpenBase.open(base)
    for name, person in (("Emma", "Bo Ray"), ("Lucky", "Ann Lee")):
        for words in ("who translated [{}]", "the translator of [{}]", "[{}] was translated by whom"):
            confirm(tools, words.format(name), [person])
    taught = learn(tools)
    assert len(taught) == 6
    lessons = lessons_of(Labels(reader_of(tools).vocabulary, reader_of(tools).encoders), [], taught)
    assert lessons is not None
    assert set(lessons.ways) == {"reached"}
    assert (base / FITTED).exists() == fit_to_base(OpenBase.open(base), None).taken


def test_learning_from_feedback_stores_paths_and_fit_in_one_step(base, monkeypatch):
    write_questions(base)
    confirm(OpenBase.open(base), "who translated [Emma]", ["Bo Ray"])
    before, replaced = learned(base), []
    replace = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda draft, file: replaced.append(learned(base)) or replace(draft, file))
        learn(OpenBase.open(base))
    after = learned(base)
    assert before == ([], None)
    assert after[0]
    assert after[1]
    assert [state for state in replaced if state not in (before, after)] == []
    fit_to_base(OpenBase.open(base), None)
    assert learned(base) == after
    learn(OpenBase.open(base))
    assert learned(base) == after
    assert forget(base)
    assert learned(base) == (after[0], None)
    learn(OpenBase.open(base))
    (base / FITTED).write_bytes((base / FITTED).read_bytes().replace(b"translated", b"translates", 1))
    with pytest.raises(CorruptError, match="--undo"):
        read_taught(base)
    assert forget(base)
    assert learned(base) == before


def test_options_of_the_two_trainings_are_not_mixed(base, run, tmp_path):
    assert "one base" in run("train", "reader", base, "--out", tmp_path / "w")[2]
    assert "give --out" in run("train", "reader", tmp_path)[2]


def test_only_questions_with_the_name_in_its_place_are_used():
    assert usable("reached", ["who wrote []", "who  wrote []", "[] or []", "who wrote it", ""]) == ("who wrote []",)
    assert usable("compared", ["more than #", "more than 3"]) == ("more than #",)
    assert usable("most", ["the longest"]) == ("the longest",)
