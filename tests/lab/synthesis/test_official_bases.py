"""STaRK's three bases in the layout of their releases, small: build, templates, questions, evaluation, end to end."""

import json
import re
from pathlib import Path

import pytest

from clew.core.types import NodeSet
from clew.lab.synthesis.benchmark import BenchmarkOptions, Writers, make_benchmark
from clew.lab.synthesis.judging import read_votes, unanimous
from clew.lab.synthesis.records import violations
from clew.lab.synthesis.templates import SHIPPED, load_templates
from clew.lab.synthesis.textual import Property, TextualRequirement, fields
from clew.models.protocol import Completion
from clew.models.scripted import ScriptedModel
from clew.store.building import build, update
from clew.store.open_base import OpenBase
from clew.store.sources.delta import Delta
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources
from conftest import tables
from official_stark import BASES

ANSWERS = {"amazon": ("product",), "mag": ("paper",), "prime": None}
TEMPLATES = {"amazon": 6, "mag": 7, "prime": 28}


@pytest.fixture(scope="module")
def official(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stark")
    for name, write in BASES.items():
        write(folder / name)
    return folder


@pytest.fixture(scope="module")
def bases(official: Path) -> dict[str, OpenBase]:
    for name in BASES:
        build(read_sources([official / name], SourceOptions(trust=True)), official / f"{name}.kb")
    return {name: OpenBase.open(official / f"{name}.kb", embedder="hash") for name in BASES}


@pytest.mark.parametrize("name", BASES)
def test_only_the_candidate_types_of_the_paper_are_answers(bases, name):
    schema = bases[name].kb.schema
    assert schema.answer_types == (ANSWERS[name] or schema.type_names)


def test_an_update_keeps_the_candidate_types(official, bases, tmp_path):
    folder = tmp_path / "mag.kb"
    build(read_sources([official / "mag"], SourceOptions(trust=True)), folder)
    update(folder, Delta(tables([("new", "paper", "A new paper", [], "")], [])))
    assert OpenBase.open(folder).kb.schema.answer_types == ("paper",)


@pytest.mark.parametrize("name", BASES)
def test_the_templates_of_the_paper_fit_the_official_names(bases, name):
    assert len(load_templates(name, bases[name].kb.schema)) == TEMPLATES[name]


def test_reviews_and_answered_questions_are_lists_of_sentences(bases):
    kb = bases["amazon"].kb
    said = dict(fields(kb, kb.find("0")))
    assert (
        said["review-#2"] == "overall: 1.0; summary: Disappointed; reviewText: Sadly the zipper broke after two weeks."
    )
    assert said["qa-#1"] == "question: Is it waterproof?; answer: Yes, thanks to the ripstop nylon."
    assert said["feature-#1"] == "Made of ripstop nylon"


@pytest.mark.parametrize("name", BASES)
def test_build_synth_and_eval_run_from_the_command_line(official, tmp_path, run, name):
    kb = tmp_path / f"{name}.kb"
    status, _, problems = run("build", official / name, "-o", kb, "--trust")
    assert status == 0, problems
    status, said, problems = run("synth", kb, "-n", 24, "--templates", name, "-o", tmp_path / "questions", "--json")
    assert status == 0, problems
    made = json.loads(said)
    assert made["questions"] >= 12
    assert not any(made["gates"].values())
    rows = [json.loads(line) for line in (tmp_path / "questions" / "questions.jsonl").read_text().splitlines()]
    assert {row["role"] for row in rows} <= set(SHIPPED[name])
    textual = [row["textual"]["properties"] for row in rows if row["textual"]]
    assert textual
    assert not any("zipper" in one["text"] or "leaks" in one["text"] for found in textual for one in found)
    asked = ("-q", f"stark:{official / name}:val", "--kb", kb, "-m", "bm25", "--json", "--out", tmp_path / "runs")
    status, said, problems = run("eval", *asked)
    assert status == 0, problems
    (report,) = json.loads(said)["runs"]
    assert report["n"] == 5
    assert report["metrics"]["hit@5"] >= 0.6


PRODUCT = {
    "item": "an outdoor companion",
    "negative": [{"text": "it leaks", "source": "review-#2"}],
    "hard": [{"text": "made of waxed canvas", "source": "feature-#1"}, {"text": "does not leak", "source": "text"}],
    "soft": [{"text": "perfect for beach picnics", "source": "review-#1"}],
}


def reply(request) -> str:
    """A model that extracts, leaves out what a buyer contradicts, and finds support word by word."""
    system, asked = request.messages[0].content, request.messages[-1].content
    if "customers would care about" in system:
        made = re.search(r"feature-#1: Made of (.+)", asked)[1]
        use = re.search(r"Perfect for ([^,]+),", asked)[1]
        hard = [{"text": f"made of {made}", "source": "feature-#1"}, {"text": "made to leak at no seam", "source": "x"}]
        return json.dumps(PRODUCT | {"hard": hard, "soft": [{"text": f"perfect for {use}", "source": "review-#1"}]})
    names = re.findall("“([^”]+)”", asked.split("exactly as they are written here:")[-1])
    if "what customers ask" in system:
        numbers = [int(number) for number, text in re.findall(r"^(\d+)\. (.+)$", asked, re.M) if "leak" not in text]
        return json.dumps(
            {"index": numbers, "question": f"Looking for something with {' and '.join(names)}, {len(asked)}"}
        )
    if "write questions" in system or "rephrase" in system:
        return json.dumps({"question": f"Anything for {' and '.join(names)}, {len(asked)}?"})
    if "belongs to a category" in system or "says everything" in system:
        return "yes"
    stated = re.findall(r"^(\d+)\. (.+)$", asked, re.M)
    return json.dumps({number: ["text"] if text.split()[-1] in asked.split("Requirements:")[0] else "NA"
                       for number, text in stated})  # fmt: skip


def test_products_are_asked_for_by_hard_and_soft_requirements_that_no_buyer_contradicts(bases, tmp_path):
    make_benchmark(bases["amazon"], tmp_path, BenchmarkOptions(16, templates="amazon"), Writers(ScriptedModel(reply)))
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert not any(violations(bases["amazon"].kb, rows).values())
    textual = [row for row in rows if row["textual"]]
    assert textual
    for row in textual:
        strengths = {one["text"]: one["strength"] for one in row["textual"]["properties"]}
        assert set(strengths.values()) == {"hard", "soft"}
        assert not any("leak" in text for text in strengths)
        assert row["textual"]["item"] == "an outdoor companion"
        judged_by_sources = [votes for votes in row["votes"].values() if any("sources" in name for name in votes)]
        assert judged_by_sources
        assert all(len(vote) == len(strengths) for votes in judged_by_sources for vote in votes.values())


class Says:
    def __init__(self, name, votes):
        self.name, self.votes = name, votes

    def judge(self, _requirement, nodes):
        return [self.votes[node] for node in nodes]


def test_soft_requirements_decide_only_where_there_are_no_hard_ones():
    hard, soft = Property("a", "text"), Property("b", "text", strength="soft")
    nodes, votes = NodeSet.of([1, 2, 3]), {1: (True, False), 2: (False, True), 3: (True, True)}
    both = unanimous([Says("one", votes)], TextualRequirement((hard, soft), "model"), nodes)
    assert list(both.kept) == [1, 3]
    assert both.votes[2] == {"one": (False, True)}
    alone = unanimous([Says("one", votes)], TextualRequirement((soft, soft), "model"), nodes)
    assert list(alone.kept) == [3]


@pytest.mark.parametrize(
    ("said", "votes"),
    [
        ('{"1": true, "2": false}', (True, False)),
        ('Sure: {"1": ["text", "review-#2"], "2": "NA"}', (True, False)),
        ('{"1": [], "2": ["feature-#1"]}', (False, True)),
        ('```json\n{"1": "yes", "2": "No"}\n```', (True, False)),
    ],
)
def test_votes_are_read_requirement_by_requirement(said, votes):
    assert read_votes(Completion(said), 2) == votes
