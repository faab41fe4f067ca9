"""What was executed is written down in other languages and in words, and gives the same in other databases."""

import datetime
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from clew.answering.queries.certificates import certificate
from clew.answering.queries.interpretations import execute
from clew.core.query import Attribute, Compare, Order, Pattern, Value, find
from clew.core.roles import Interpretation
from clew.store.building import build
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from conftest import TESTS, asked, tables

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(TESTS))
from query_engines import DuckDB, Kuzu, Oxigraph

EDGES = [
    ("BBS2", "associated_with", "BBS", None),
    ("FBN1", "associated_with", "MFS", None),
    ("FBN1", "associated_with", "BBS", None),
    ("BBS", "has_phenotype", "P1", "80-99%"),
    ("BBS", "has_phenotype", "P2", "100%"),
    ("MFS", "has_phenotype", "P3", "80-99%"),
    ("P1", "is_a", "P4", None),
    ("P3", "is_a", "P4", None),
]
QUERIES = {
    "two hops": '(x: gene) -[associated_with]-> (d: disease) -[has_phenotype]-> "Rod-cone dystrophy": phenotype',
    "below in a hierarchy": '(x: disease) -[has_phenotype]-> "Abnormal finger": phenotype',
    "above in a hierarchy": '"Arachnodactyly": phenotype -[is_a]-> (x: phenotype)',
    "kinds of": '(x: phenotype) -[is_a]-> "Abnormal finger": phenotype',
    "without a sign": '(x: disease) and not (x) -[has_phenotype]-> "Arachnodactyly": phenotype',
    "genes of no disease with a sign": """(x: gene) and not exists {(x) -[associated_with]-> (d: disease)
        and (d) -[has_phenotype]-> "Arachnodactyly": phenotype}""",
    "at least two diseases": "(x: gene) and count(distinct d for (x) -[associated_with]-> (d: disease)) >= 2",
    "any relation": '(x: phenotype) -[any]- "BBS": disease',
    "either": '(x: gene) and ((x) -[associated_with]-> "BBS": disease or (x) -[associated_with]-> "MFS": disease)',
    "what the question names": '(x: gene) -[associated_with]-> (d: disease) and "FBN1" -[associated_with]-> (d)',
}
WORDS = {
    "two hops": "genes associated with diseases that have Rod-cone dystrophy",
    "without a sign": "diseases that do not have Arachnodactyly",
    "kinds of": "phenotypes that are a kind of Abnormal finger",
    "any relation": "phenotypes connected with Bardet-Biedl syndrome",
    "at least two diseases": "genes with at least 2 diseases",
    "above in a hierarchy": "phenotypes that Arachnodactyly is a kind of",
}


class Databases:
    """A base and its copies in other databases."""

    def __init__(self, source, folder):
        build(source, folder)
        self.tools = OpenBase.open(folder, embedder="hash")
        self.kb = self.tools.kb
        self.engines = {"sparql": Oxigraph(self.kb), "cypher": Kuzu(self.kb), "sql": DuckDB(self.kb)}

    def found(self, question, kinds=True):
        """What is found here, and that it is found everywhere."""
        result = execute(self.kb, self.tools.names, question, kinds=kinds)
        keys = {ref.key for ref in self.kb.refs(result.nodes.array)}
        written = certificate(result.executed, self.kb)
        for language, engine in self.engines.items():
            assert {row[0] for row in engine.rows(written[language])} == keys
        return keys, written


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    return Databases(tables(edges=EDGES), tmp_path_factory.mktemp("formal") / "t.kb")


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_finds_the_same_everywhere(name, databases):
    keys, _ = databases.found(asked(f"find x where {QUERIES[name]}"))
    assert keys


def test_what_the_question_names_is_left_out(databases):
    keys, _ = databases.found(asked(f"find x where {QUERIES['what the question names']}"))
    assert keys == {"BBS2"}


@pytest.mark.parametrize("name", WORDS)
def test_a_query_is_said_in_plain_words(name, databases):
    _, written = databases.found(
        asked(f"find x where {QUERIES[name]}"), kinds=name in ("kinds of", "above in a hierarchy")
    )
    assert written["text"] == WORDS[name]


def test_a_witness_shows_one_edge_per_edge_and_the_way_up_the_hierarchy(databases):
    kb = databases.kb
    pattern = '(x: gene) -[associated_with]-> (d: disease) and (d) -[has_phenotype]-> "Abnormal finger": phenotype'
    found = execute(kb, databases.tools.names, asked(f"find x where {pattern}"))
    [paths] = found.evidence(kb, [kb.find("FBN1")])
    marfan, bardet = sorted(path.in_words().split("; ") for path in paths)[::-1]
    assert bardet == [
        "FBN1 —associated_with→ Bardet-Biedl syndrome",
        "Bardet-Biedl syndrome —has_phenotype→ Polydactyly (frequency 80-99%)",
        "Polydactyly —is_a→ Abnormal finger",
    ]
    assert marfan[-1] == "Arachnodactyly —is_a→ Abnormal finger"


# Where the product and its certificates differed, and who was wrong


@pytest.fixture(scope="module")
def attributes(tmp_path_factory):
    """Four things with values that databases treat differently."""
    day = datetime.date(1999, 12, 31)
    rows = [
        {"key": "a", "name": "A", "dose": 3, "mass": 0.1, "day": day, "at": datetime.datetime(1999, 12, 31, 23, 30)},
        {"key": "b", "name": "B", "dose": 2, "mass": float("nan"), "colour": "Straße", "rare": True, "price": "1,200"},
        {"key": "c", "name": "C", "dose": 2, "mass": float("inf"), "colour": "red", "price": "nan"},
        {"key": "d", "name": "D", "day": datetime.date(2000, 1, 1), "price": "90", "tags": ["Red", "x"]},
    ]
    for row, born in zip(rows, ("1985", "1868-08", "1985-04-18", "1998-02"), strict=True):
        row["born"] = born
    kinds = {"dose": pa.int64(), "mass": pa.float64(), "day": pa.date32(), "at": pa.timestamp("us"), "rare": pa.bool_()}
    texts = {"born": pa.string(), "colour": pa.string(), "price": pa.string(), "tags": pa.list_(pa.string())}
    names = {"key": pa.string(), "type": pa.string(), "name": pa.string()}
    nodes = pa.Table.from_pylist([{"type": "thing", **row} for row in rows], pa.schema({**names, **kinds, **texts}))
    edges = pa.Table.from_pylist([{"head": "a", "relation": "treats", "tail": "b"}])
    return Databases(Tables((Piece(nodes, "n"),), (Piece(edges, "e"),)), tmp_path_factory.mktemp("values") / "v.kb")


def things(*formulas):
    return Interpretation(find("x", "thing", Pattern((), (), formulas)))


@pytest.mark.parametrize(
    ("attribute", "comparison", "value", "expected"),
    [
        ("dose", ">", 2.5, "a"),  # Kuzu does not compare whole numbers with broken ones
        ("dose", "=", 2.0, "bc"),
        ("dose", "!=", 2.5, "abc"),
        ("dose", "=", "2", "bc"),
        ("mass", "!=", 5, "ac"),  # not a number is no value
        ("mass", ">", 1e300, "c"),  # infinity was exported in Python's spelling
        ("day", "=", "1999", "a"),
        ("day", ">", "1999", "d"),
        ("day", "=", 1999, "a"),
        ("day", "<", "soon", ""),  # was compared letter by letter
        ("at", "<=", "1999-12-31", "a"),  # a time on the last day is on that day
        ("born", ">", "1997", "d"),  # of some only the year or the month is known, and the column was text
        ("born", "=", "1985", "ac"),
        ("born", ">=", "1985-01-01", "acd"),
        ("born", "<", "1985", "b"),
        ("born", "<=", "1985-01-31", "ab"),
        ("born", "=", "1868-08", "b"),
        ("rare", "=", "true", "b"),  # the words of a model for a truth value never held
        ("colour", "=", "STRASSE", ""),  # query languages fold no letters
        ("colour", "=", "straße", "b"),
        ("tags", "contains", "RED", "d"),
        ("tags", "!=", "x", "d"),
        ("dose", "contains", "2", "bc"),
    ],
)
def test_a_condition_means_the_same_everywhere(attributes, attribute, comparison, value, expected):
    keys, _ = attributes.found(things(Compare(Attribute("x", attribute), comparison, Value(value))))
    assert keys == set(expected)


def test_two_conditions_may_look_into_one_list(attributes):
    tags = Attribute("x", "tags")
    keys, _ = attributes.found(things(Compare(tags, "=", Value("red")), Compare(tags, "!=", Value("red"))))
    assert keys == {"d"}


def best(text, descending):
    query = things().query
    [order] = asked(f"find x where (x: thing) order by {text}").query.order
    return Interpretation(replace(query, order=(Order(order.expression, descending),), first=1, ties=True))


def test_numbers_that_are_texts_are_compared_as_numbers_where_they_are_some(attributes):
    assert attributes.found(best("number(x.price)", True))[0] == {"b"}


def test_the_earliest_date_may_be_a_month(attributes):
    kb = attributes.kb
    assert kb.schema.attribute_types["born"] == "date"
    assert attributes.found(best("x.born", False))[0] == {"b"}
    assert attributes.found(best("x.born", True))[0] == {"d"}
    assert kb.node(kb.nodes().array[0]).attributes["born"] == "1985"
