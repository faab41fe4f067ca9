"""Schemas of countless relations and types: no work is done for each where few are asked for."""

import json

import pyarrow as pa
import pytest

import clew
from clew.answering.reading.scoring import Labels
from clew.answering.reading.vocabulary import MOST_RELATIONS, MOST_TYPES
from clew.cli.inspect import info, schema
from clew.core.errors import SchemaError
from clew.store.building import build
from clew.store.graph.tables import Piece, Tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    count, many = 1_000, 6_000  # more relations than are read
    nodes = pa.table(
        {
            "key": [f"n{i}" for i in range(count)],
            "type": [f"kind {i}" for i in range(count)],
            "name": [f"name {i}" for i in range(count)],
        }
    )
    edges = pa.table(
        {
            "head": [f"n{i % count}" for i in range(many)],
            "relation": [f"rel_{i}" for i in range(many)],
            "tail": [f"n{i * 7 % count}" for i in range(many)],
        }
    )
    folder = tmp_path_factory.mktemp("many") / "kb"
    build(Tables((Piece(nodes, "nodes"),), (Piece(edges, "edges"),)), folder)
    return folder


def test_a_question_is_answered_without_reading_every_relation(folder, monkeypatch):
    base = clew.open(folder)
    looked = []
    monkeypatch.setattr("clew.answering.reading.scoring.Labels._vectors", lambda _, texts: looked.append(len(texts)))
    answer = base.ask("name 5")
    assert answer.candidates[0].node.key == "n5"
    assert looked == []
    assert "too many to read questions over" in answer.notes[0]


def test_a_question_is_read_over_what_it_touches(folder, monkeypatch):
    base, looked, read = clew.open(folder), [], Labels._vectors
    monkeypatch.setattr(Labels, "_vectors", lambda own, texts: looked.append(len(texts)) or read(own, texts))
    answer = base.ask("What does [name 5] lead to?", "focus_plus")
    assert answer.candidates
    assert 0 < sum(looked) <= 4 * MOST_RELATIONS + 4 * MOST_TYPES


def test_what_is_in_it_is_shown_in_part_and_listed_whole(folder, capsys):
    info(folder)
    shown = capsys.readouterr().out
    assert "and 5,500 more: --json lists them all" in shown
    info(folder, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["relations"]) == 6_000
    schema(folder)
    assert capsys.readouterr().out.count("\n[relations.") == 6_000


def test_an_error_names_some_of_them(folder):
    with pytest.raises(SchemaError, match="and 5900 more"):
        clew.open(folder).schema.relation_rows("nothing")
