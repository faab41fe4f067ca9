"""Several bases asked as one: what two of them know is one node, and questions may cross from one to the other."""

from pathlib import Path

import pyarrow as pa
import pytest

import clew
from clew.core.errors import InputError
from clew.store.base_union import joined_base
from clew.store.building import build, update
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import Piece, Tables
from clew.store.sources.delta import Delta
from conftest import tables

DRUGS = [
    {"key": "D1", "type": "drug", "name": "Losartan", "text": "Lowers blood pressure.", "icd": None},
    {"key": "D2", "type": "drug", "name": "Setmelanotide", "text": "Lowers appetite."},
    {"key": "MFS", "type": "trial", "name": "Multifactor study", "text": "A clinical trial."},
    {"key": "X7", "type": "disease", "name": "marfan syndrome", "text": "Affects the aorta.", "icd": "Q87.4"},
    {"key": "X8", "type": "disease", "name": "Bardet-Biedl syndrome", "text": "A ciliopathy with many signs."},
]
TREATS = [("D1", "treats", "X7"), ("D2", "treats", "X8"), ("MFS", "tests", "D1")]


@pytest.fixture
def bases(tmp_path: Path) -> list[Path]:
    build(tables(), tmp_path / "signs.kb")
    edges = pa.table(dict(zip(("head", "relation", "tail"), zip(*TREATS, strict=True), strict=True)))
    sources = Tables((Piece(pa.Table.from_pylist(DRUGS), "drugs"),), (Piece(edges, "treats"),))
    build(sources, tmp_path / "drugs.kb")
    return [tmp_path / "signs.kb", tmp_path / "drugs.kb"]


def test_what_two_bases_know_is_one_node_with_what_both_say(bases):
    kb = ArrayKnowledgeBase.open(joined_base(bases))
    assert len(kb) == 8 + 5 - 2
    assert kb.edge_count == 7 + 3
    disease = kb.node(kb.find("MFS"))
    assert (disease.type, disease.name) == ("disease", "Marfan syndrome")
    assert disease.text == "A disorder of connective tissue.\nAffects the aorta."
    assert disease.attributes == {"bases": ["signs", "drugs"], "icd": "Q87.4"}
    assert kb.node(kb.find("BBS")).text == "A ciliopathy with many signs."  # both say the same
    assert kb.node(kb.find("drugs:MFS")).name == "Multifactor study"  # a key that means two things
    assert "2 nodes are known to more than one" in kb.manifest.facts["notes"][-1]


def test_a_name_that_several_nodes_bear_joins_nothing(tmp_path):
    twice = [("A1", "gene", "Twin", [], ""), ("A2", "gene", "Twin", [], "")]
    build(tables(twice, []), tmp_path / "one.kb")
    build(tables([("B1", "gene", "Twin", [], "")], []), tmp_path / "two.kb")
    assert len(ArrayKnowledgeBase.open(joined_base([tmp_path / "one.kb", tmp_path / "two.kb"]))) == 3


def test_attributes_of_different_kinds_and_one_that_is_named_as_ours_are_kept(tmp_path):
    one = [{"id": "1", "type": "city", "name": "X", "year": 1990, "bases": ["Ramstein"]}, {"id": "2", "type": "city"}]
    two = [{"id": "3", "type": "city", "name": "X", "year": "unknown"}, {"id": "4", "type": "city", "year": "early"}]
    clew.build(clew.from_tables(one, [{"head": "1", "relation": "r", "tail": "2", "weight": 3}]), tmp_path / "one.kb")
    clew.build(
        clew.from_tables(two, [{"head": "3", "relation": "r", "tail": "4", "weight": "a lot"}]), tmp_path / "b.kb"
    )
    kb = ArrayKnowledgeBase.open(joined_base([tmp_path / "one.kb", tmp_path / "b.kb"]))
    assert kb.inconsistencies() == []
    assert kb.node(kb.find("1")).attributes == {"bases": ["one", "b"], "own_bases": ["Ramstein"], "year": "1990"}
    assert kb.node(kb.find("4")).attributes["year"] == "early"


def test_the_union_is_kept_until_a_base_changes(bases):
    first = joined_base(bases)
    assert joined_base(bases) == first
    update(bases[0], Delta(tables([("NEW", "gene", "A new gene", [], "")], [])))
    again = joined_base(bases)
    assert again != first
    assert ArrayKnowledgeBase.open(again).find("NEW") >= 0


def test_one_question_crosses_two_bases(bases, run):
    question = "Which drug treats a disease that has phenotype Arachnodactyly?"
    answer = clew.open(bases).ask(question, "four_step_focus")
    assert answer.candidates[0].node.name == "Losartan"
    status, shown, problems = run("ask", *bases, question, "-m", "four_step_focus")
    assert status == 0, problems
    assert "Losartan" in shown.split("\n")[0] + shown
    status, _, problems = run("ask", bases[0])
    assert status == 2
    assert "a knowledge base and a question" in problems


def test_two_bases_of_one_name_are_refused(bases, tmp_path):
    build(tables(), tmp_path / "other" / "signs.kb")
    with pytest.raises(InputError, match="different names"):
        joined_base([bases[0], tmp_path / "other" / "signs.kb"])
