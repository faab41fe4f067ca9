"""Sources that are bombs, or no text: each is refused by name, or read with what is no text replaced."""

import gzip

import pytest

from clew.core.errors import ClewError, SourceError
from clew.store.building import build, check
from clew.store.graph import node_table
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.schema_file import parse_schema
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "nodes.jsonl",
            '{"key": "a"}\n{"key": "b", "x": ' + "[" * 100_000 + "}",
            "line 2: not JSON: nested too deeply",
        ),
        ("nodes.jsonl", '{"key": "a", "x": ' + "9" * 5000 + "}", "line 1: not JSON: a number has too many digits"),
        ("nodes.json", "[" * 100_000, "nested too deeply"),
        ("nodes.json", '[{"key": "a", "x": ' + '{"y":' * 100_000 + "}]", "nested too deeply"),
    ],
)
def test_json_that_no_parser_can_hold_is_refused_by_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=message):
        read_sources([tmp_path / name])


@pytest.mark.parametrize("key", ["1e308", "-1e200", "1e16", "1e999"])
def test_a_key_that_is_no_whole_number_of_a_float_is_a_text(tmp_path, key):
    (tmp_path / "edges.jsonl").write_text(f'{{"head": {key}, "relation": "r", "tail": 2.0}}\n')
    build(read_sources([tmp_path / "edges.jsonl"]), tmp_path / "kb")
    assert check(tmp_path / "kb") == []


def test_halves_of_surrogate_pairs_are_replaced(tmp_path):
    lines = '{"key": "a\\udc00", "type": "t\\ud800", "name": "x\\ud83d", "n\\udc01": ["\\udfff"]}\n'
    (tmp_path / "nodes.jsonl").write_text(lines)
    build(read_sources([tmp_path / "nodes.jsonl"]), tmp_path / "kb")
    kb = ArrayKnowledgeBase.open(tmp_path / "kb")
    assert kb.node(0).name == "x\ufffd"
    assert kb.find("a\ufffd") == 0
    with pytest.raises(ClewError, match="no node"):
        kb.find("a\udc00")


@pytest.mark.parametrize("encoding", ["rot13", "hex", "zlib", "undefined", "nowhere"])
def test_what_is_no_encoding_of_text_is_refused(tmp_path, encoding):
    (tmp_path / "nodes.jsonl").write_text('{"key": "a"}\n')
    with pytest.raises(SourceError, match="unknown encoding"):
        read_sources([tmp_path / "nodes.jsonl"], SourceOptions(encoding=encoding))


def test_terms_with_thousands_of_different_properties_are_refused(tmp_path):
    terms = [f'[Term]\nid: X:{at}\nname: n{at}\nproperty_value: p{at} "1" xsd:int\n\n' for at in range(5000)]
    (tmp_path / "terms.obo").write_text("format-version: 1.2\n\n" + "".join(terms))
    with pytest.raises(SourceError, match="mostly empty"):
        read_sources([tmp_path / "terms.obo"])


def test_a_gzip_bomb_is_not_unpacked(tmp_path):
    (tmp_path / "nodes.jsonl.gz").write_bytes(gzip.compress(b" " * 120_000_000, 9))
    with pytest.raises(SourceError, match="200 times its size"):
        read_sources([tmp_path / "nodes.jsonl.gz"])


RDF = """<?xml version="1.0"?><!DOCTYPE r [{entities}]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">
<rdf:Description rdf:about="http://x/a"><x:l>&{used};</x:l></rdf:Description></rdf:RDF>"""


def test_entities_are_counted_before_they_are_written_out(tmp_path):
    nested = '<!ENTITY e0 "aaaaaaaaaa">' + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    round_and_round = '<!ENTITY e0 "&e1;"><!ENTITY e1 "&e0;">'
    for entities in (nested, round_and_round):
        (tmp_path / "a.rdf").write_text(RDF.format(entities=entities, used="e0" if entities != nested else "e9"))
        with pytest.raises(SourceError):
            read_sources([tmp_path / "a.rdf"])
    (tmp_path / "a.rdf").write_text(RDF.format(entities='<!ENTITY xsd "http://x/#">', used="xsd"))
    assert read_sources([tmp_path / "a.rdf"]).nodes[0].table.num_rows == 1


def test_a_schema_file_that_is_nested_without_end_is_refused():
    with pytest.raises(ClewError, match="nested too deeply"):
        parse_schema("a = " + "[" * 100_000)


def test_a_key_repeated_thousands_of_times_is_looked_up_only_where_it_is_listed(tmp_path, monkeypatch):
    (tmp_path / "nodes.csv").write_text("id,name\n" + "1,a\n" * 3000)
    looked_up, find = [], node_table._second
    monkeypatch.setattr(node_table, "_second", lambda key, pieces: looked_up.append(key) or find(key, pieces))
    report = build(read_sources([tmp_path / "nodes.csv"], SourceOptions()), tmp_path / "kb", skip_bad=True)
    assert (report.nodes, report.skipped, len(report.problems), len(looked_up)) == (1, 2999, 1000, 1000)
