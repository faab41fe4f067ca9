"""A base in PostgreSQL answers everything as the embedded one does."""

import datetime
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import clew
import random_queries
from clew.answering.queries.execution import execute
from clew.core.errors import NotFoundError
from clew.core.types import NodeSet
from clew.store.building import build, into
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from repeats import repeats

WORDS = [
    *[
        "marfan",
        "syndrome",
        "of",
        "the",
        "long",
        "finger",
        "red",
        "Émile",
        "gene",
        "東京",
        "naïve",
        "café",
        "polydactyly",
        "rods",
        "rod",
    ]
]
DAYS = [datetime.date(1999, 12, 31), datetime.date(2024, 2, 29), None]


def random_tables(seed: int, odd: str = "") -> Tables:
    """Nodes of several types with every kind of attribute, names that repeat, parallel edges and loops."""
    rng = random.Random(seed)

    def words(most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    nodes = [
        {
            "key": f"N{number:03d}" if rng.random() < 0.8 else f"ключ {number}",
            "type": rng.choice(["gene", "disease", "sign"]),
            "name": words(3).title() + rng.choice(["", " (rare)", f" {number}"]),
            "aliases": [words(2) for _ in range(rng.randint(0, 2))],
            "text": words(12) if rng.random() < 0.7 else "",
            "size": rng.choice([None, -1, 7, 10**12]),
            "share": rng.choice([None, 0.1, 1e300, math.inf, 3.0]),
            "known": rng.choice([None, True, False]),
            "since": rng.choice(DAYS),
            "colour": rng.choice([None, "red", "dark blue"]),
            "tags": rng.choice([None, ["a", "b"], ["c" + odd]]),
        }
        for number in range(40)
    ]
    edges = [
        {
            "head": rng.choice(nodes)["key"],
            "relation": rng.choice(["part_of", "has", "is_a"]),
            "tail": rng.choice(nodes)["key"],
            "weight": rng.choice([None, 0.5, 2.0]),
            "source": rng.choice([None, "x"]),
            "name": rng.choice([None, "edges have names too"]),
        }
        for _ in range(90)
    ]
    edges += edges[:10]  # parallel ones
    if seed % 2:
        edges = [{name: edge[name] for name in ("head", "relation", "tail")} for edge in edges]
    return Tables((Piece(pa.Table.from_pylist(nodes), "n"),), (Piece(pa.Table.from_pylist(edges), "e"),))


def zeros_replaced(value):
    """PostgreSQL has no character zero in texts."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    return [zeros_replaced(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(4))
def test_the_graph_is_the_same(tmp_path, address, seed):
    source = random_tables(seed, odd="\0")
    build(source, tmp_path / "kb")
    into(address, lambda folder: build(source, folder))
    one, other = OpenBase.open(tmp_path / "kb").stored, OpenBase.open(address).stored
    assert (one.schema, one.count, one.edge_count, one.identity) == (
        other.schema, other.count, other.edge_count, other.identity,
    )  # fmt: skip
    assert one.types.tolist() == other.types.tolist()
    rng = np.random.default_rng(seed)
    every = np.arange(one.count, dtype=np.int32)
    assert one.refs(every) == other.refs(every)
    assert one.degrees(every).tolist() == other.degrees(every).tolist()
    for node in every.tolist():
        told = one.node(node)
        assert {n: zeros_replaced(v) for n, v in told.attributes.items()} == other.node(node).attributes
        assert (told.key, told.name, told.aliases, told.text) == tuple(
            getattr(other.node(node), part) for part in ("key", "name", "aliases", "text")
        )
        assert zeros_replaced(one.text(node, relations=True)) == other.text(node, relations=True)
        assert one.find(told.key) == other.find(told.key) == node
        assert one.triples(node) == other.triples(node)
    sets = [NodeSet.of(rng.choice(every, size, replace=False)) for size in (0, 1, 1, 5, one.count)]
    for nodes in (*sets, *(one.nodes(kind) for kind in one.schema.type_names)):
        assert one.relations(nodes) == other.relations(nodes)
        for attribute in (*one.schema.attribute_types, "none such"):
            assert zeros_replaced(one.values(nodes, attribute)) == other.values(nodes, attribute)
        for relation in (None, *one.schema.relation_names):
            for direction in ("out", "in", "any"):
                assert one.neighbors(nodes, relation, direction) == other.neighbors(nodes, relation, direction)
                mine, theirs = one.edges(nodes, relation, direction), other.edges(nodes, relation, direction)
                for part in ("heads", "relations", "tails"):
                    assert getattr(mine, part).tolist() == getattr(theirs, part).tolist()
                np.testing.assert_array_equal(one.edge_numbers(mine, "weight"), other.edge_numbers(mine, "weight"))
    edges = one.edges(NodeSet.range(one.count), direction="out")
    for head, code, tail in zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True):
        relation = one.schema.relation_names[code]
        assert one.edge_attributes(head, relation, tail) == other.edge_attributes(head, relation, tail)
    for attribute in one.schema.attribute_types:
        assert set(map(str, zeros_replaced(list(one.distinct(attribute))))) - {"None"} == set(
            map(str, other.distinct(attribute))
        )
    assert one.has_texts == other.has_texts
    for kind in (None, *one.schema.type_names):
        assert one.nodes(kind) == other.nodes(kind)
        assert one.written_share(kind) == pytest.approx(other.written_share(kind))
    assert one.named_like("[MR].*") == other.named_like("[MR].*")
    for missing in ("", "N9999", "\0", "\ud800"):
        with pytest.raises(NotFoundError):
            other.find(missing)


@pytest.mark.parametrize("seed", range(repeats(3, 60)))
def test_queries_of_every_form_give_the_same_rows(tmp_path, address, seed):
    chance = random.Random(seed)
    source = random_queries.random_tables(chance)
    build(source, tmp_path / "kb")
    into(address, lambda folder: build(source, folder))
    one, other = OpenBase.open(tmp_path / "kb").stored, OpenBase.open(address).stored
    maker = random_queries.Maker(one, chance)
    for form in random_queries.FORMS * repeats(2, 20):
        query = random_queries.random_query(maker, form)
        assert execute(one, query).rows == execute(other, query).rows, query


@pytest.mark.parametrize("seed", range(3))
def test_names_words_and_vectors_are_the_same(tmp_path, address, seed):
    source = random_tables(seed)
    build(source, tmp_path / "kb")
    into(address, lambda folder: build(source, folder))
    one, other = (OpenBase.open(place, embedder="hash") for place in (tmp_path / "kb", address))
    rng = random.Random(seed)
    texts = ["", "?", "Émile", "marfan syndorme", "the Rods of 東京", "RLF", "N001", "\0", "reddish polydactily " * 30]
    texts += [
        " ".join(rng.choices([*WORDS, "xyzzy", "fingers", "syndrom"], k=rng.randint(1, 9))).title() for _ in range(30)
    ]
    for round_ in range(2):
        for text in texts:
            assert one.names.mentions(text) == other.names.mentions(text)
            assert one.names.link(text) == other.names.link(text)
            assert one.names.link(text, type="gene", k=20) == other.names.link(text, type="gene", k=20)
            for among in (None, one.stored.nodes("sign"), NodeSet.of([3, 5])):
                for mine, theirs in ((one.lexical, other.lexical), (one.vectors, other.vectors)):
                    first, second = mine.search(text, 7, among=among), theirs.search(text, 7, among=among)
                    assert first.nodes.tolist() == second.nodes.tolist()
                    np.testing.assert_allclose(first.scores, second.scores, rtol=1e-6)
            assert one.lexical.weight(text) == other.lexical.weight(text)
        assert one.lexical.having("finger") == other.lexical.having("finger")
        if round_ == 0:  # then with all vectors
            other.vectors.embed_all()
            assert other.vectors.embed_all() == 0
            one.vectors.embed_all()
            other = OpenBase.open(address, embedder="hash")
            assert other.vectors.is_complete


@pytest.mark.parametrize("method", ["auto", "focus_plus", "aligned_paths", "bm25", "vector_search", "hybrid"])
def test_questions_get_the_same_answers(both, method):
    folder, address = both
    options = {"with_relations": False} if method in ("bm25", "vector_search", "hybrid") else {}
    one, other = clew.open(folder), clew.open(address)
    for question in ("Which genes are associated with Marfan syndrome?", "What has long fingers?", "BBS signs"):
        first, second = (base.ask(question, method, **options).to_dict() for base in (one, other))
        for told in (first, second):
            told.pop("seconds")
            told.pop("trace", None)
        assert first == second


def test_documents_with_relations_are_said_to_be_missing(both):
    answer = clew.open(both[1]).ask("What has long fingers?", "bm25")
    assert answer.candidates
    assert any("only a base in a folder" in fallback.reason for fallback in answer.fallbacks)


def test_documents_are_read_the_same(tmp_path, address):
    files = tmp_path / "files"
    files.mkdir()
    (files / "tides.md").write_text(
        "# Tides\n\nThe moon raises the tides of the sea twice a day.\n\n## Neap tides\n\nAt half moon tides are low.\n"
    )
    (files / "moon.md").write_text("# Moon\n\nThe moon is 384,400 km away from the earth.\n")
    clew.build([files], tmp_path / "kb")
    clew.build([files], address)
    one, other = clew.open(tmp_path / "kb"), clew.open(address)
    for question in ("What raises the tides?", "How far away is the moon?", "How many files are there?"):
        first, second = one.ask(question), other.ask(question)
        assert (first.text, [c.node.key for c in first.candidates]) == (
            second.text,
            [c.node.key for c in second.candidates],
        )
    assert one.document("tides.md") == other.document("tides.md")
