"""The model-free parser on 50 hand-written questions over the Human Phenotype Ontology, each with its gold query."""

import json
import sys

import pytest

from clew.answering.methods.role_choice import reader_parser
from clew.store.building import build
from clew.store.open_base import OpenBase
from clew.store.sources.read import read_sources
from conftest import ROOT, TESTS

sys.path.insert(0, str(ROOT / "benchmarks"))
from parsing import canonical, is_right, metaqa_gold

QUERIES = TESTS / "data" / "hpo_queries.jsonl"


def test_most_hand_written_questions_are_read_exactly_right(data, tmp_path):
    if not (data / "hpo").is_dir():
        pytest.skip("no Human Phenotype Ontology among the data sets")
    build(read_sources([data / "hpo"]), tmp_path / "hpo.kb")
    toolbox = OpenBase.open(tmp_path / "hpo.kb")
    parser = reader_parser(toolbox)
    records = [json.loads(line) for line in QUERIES.read_text("utf-8").splitlines()]
    right = [is_right(parser.parse(r["question"], toolbox.kb.schema).interpretation, r, toolbox) for r in records]
    assert len(records) == 50
    assert sum(right) >= 33  # a schema it never saw


def test_queries_are_compared_up_to_the_names_of_their_variables():
    chain = [(False, "?a", "r", "?"), (False, "?b", "s", "?a")]
    renamed = [(False, "?x", "s", "?y"), (False, "?y", "r", "?")]
    assert canonical(chain) == canonical(renamed)
    assert canonical(chain) != canonical([*chain[:1], (True, "?b", "s", "?a")])
    assert metaqa_gold("actor_to_movie_to_year", "Ann") == canonical(
        [(False, "?m", "starred_actors", "Ann"), (False, "?m", "release_year", "?")]
    )
