"""The certificates of an answer, carried out in independent databases, give what the product gave."""

import datetime
import sys

import pyarrow as pa
import pytest

from clew.answering.methods.focus.execution import execute
from clew.answering.queries.claims import Claim, as_block
from clew.answering.queries.finishing import best_of, comparable
from clew.answering.queries.grounding import Grounding, pose
from clew.answering.queries.solutions import solve
from clew.answering.queries.witnesses import witnesses
from clew.answering.queries.wording import in_words
from clew.core.query import Best, Condition, Constant, Count, Triplet, TripletQuery, Variable
from clew.store.graph.tables import Piece, Tables
from clew.store.index.protocol import Link
from conftest import NODES, ROOT, tables

pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(ROOT / "benchmarks"))
from certificates import ByName, Databases, carried_out

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
GENE, DISEASE, PHENOTYPE = Variable("g", "gene"), Variable("d", "disease"), Variable("p", "phenotype")
OTHER = Variable("e", "disease")
FINGER, DYSTROPHY = Constant("Abnormal finger", "phenotype"), Constant("Rod-cone dystrophy", "phenotype")
ARACHNO, BBS = Constant("Arachnodactyly", "phenotype"), Constant("BBS", "disease")
CAUSES = Triplet(GENE, "associated_with", DISEASE)


def query(*triplets, target=GENE, counts=()):
    return TripletQuery(triplets, target, counts=counts)


QUERIES = {
    "two hops": query(CAUSES, Triplet(DISEASE, "has_phenotype", DYSTROPHY)),
    "below in a hierarchy": query(Triplet(DISEASE, "has_phenotype", FINGER), target=DISEASE),
    "above in a hierarchy": query(Triplet(ARACHNO, "is_a", PHENOTYPE), target=PHENOTYPE),
    "kinds of": query(Triplet(PHENOTYPE, "is_a", FINGER), target=PHENOTYPE),
    "without a sign": query(Triplet(DISEASE, "has_phenotype", ARACHNO, negated=True), target=DISEASE),
    "genes of no disease with a sign": query(
        Triplet(GENE, "associated_with", DISEASE, negated=True), Triplet(DISEASE, "has_phenotype", ARACHNO)
    ),
    "at least two diseases": query(CAUSES, counts=(Count("g", "d", ">=", 2),)),
    "exactly one disease, one sign": query(
        CAUSES,
        Triplet(DISEASE, "has_phenotype", PHENOTYPE),
        counts=(Count("g", "d", "=", 1), Count("d", "p", "!=", 1)),
    ),
    "any relation": query(Triplet(PHENOTYPE, None, BBS), target=PHENOTYPE),
    "two of the same": query(CAUSES, Triplet(GENE, "associated_with", OTHER), Triplet(OTHER, "has_phenotype", ARACHNO)),
}


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    return Databases.of(tables(edges=EDGES), tmp_path_factory.mktemp("formal") / "t.kb")


@pytest.fixture(scope="module")
def base(databases):
    return databases.kb


def test_random_certificates_of_every_form_give_what_the_product_gives():
    outcomes = list(carried_out(seed=7, count=400))
    assert [wrong for _, _, wrong in outcomes if wrong] == []
    assert len({form for form, *_ in outcomes}) >= 22
    assert sum(bool(expected) for _, expected, _ in outcomes) > len(outcomes) / 2  # finding nothing shows little


def grounded(kb, query):
    keys = {name.casefold(): key for key, _, name, aliases, _ in NODES for name in (name, *aliases)}
    links = {c: (Link(kb.find(keys[c.text.casefold()]), c.text, "exact", 1.0),) for c in query.constants()}
    return {constant: Grounding(constant, found) for constant, found in links.items()}


@pytest.mark.parametrize("name", QUERIES)
def test_the_text_of_a_query_finds_what_solving_it_finds(name, databases, base):
    query = QUERIES[name]
    groundings = grounded(base, query)
    problem = pose(query, groundings, base, edge_types="strict", direction="strict", hierarchical=True)
    found = {ref.key for ref in base.refs(solve(base, problem).target.array)}
    assert found
    block = as_block(query, problem, groundings, base.schema, hierarchical=True)
    assert databases.differences(Claim((block,)), found) == []


def test_a_witness_shows_one_edge_per_triplet_and_the_way_up_the_hierarchy(base):
    query = TripletQuery((CAUSES, Triplet(DISEASE, "has_phenotype", FINGER)), GENE)
    groundings = grounded(base, query)
    problem = pose(query, groundings, base, edge_types="strict", direction="strict", hierarchical=True)
    paths = witnesses(base, solve(base, problem), {1: groundings[FINGER].nodes}, base.find("FBN1"))
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
    return Databases.of(Tables((Piece(nodes, "n"),), (Piece(edges, "e"),)), tmp_path_factory.mktemp("values") / "v.kb")


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
    query = TripletQuery((), Variable("x", "thing"), (Condition("x", attribute, comparison, value),))
    result = execute(attributes.kb, ByName(attributes.kb), query)
    assert {ref.key for ref in attributes.kb.refs(result.nodes.array)} == set(expected)
    assert attributes.differences(result.claim, set(expected)) == []


def test_two_conditions_may_look_into_one_list(attributes):
    both = (Condition("x", "tags", "=", "red"), Condition("x", "tags", "!=", "red"))
    result = execute(attributes.kb, ByName(attributes.kb), TripletQuery((), Variable("x", "thing"), both))
    assert len(result.nodes) == 1
    assert attributes.differences(result.claim, {"d"}) == []


def test_either_or_may_be_of_two_types(databases, base):
    result = execute(base, ByName(base), TripletQuery((CAUSES,), GENE, either=(TripletQuery((), DISEASE),)))
    assert databases.differences(result.claim, {"BBS2", "FBN1", "BBS", "MFS"}) == []


def test_numbers_that_are_texts_are_compared_as_numbers_where_they_are_some(attributes):
    kb = attributes.kb
    assert [comparable(value) for value in ("1,200", "nan", "1_000", " 5 ", "x")] == [1200.0, None, None, None, None]
    result = execute(kb, ByName(kb), TripletQuery((), Variable("x", "thing"), best=Best(True, "price")))
    assert attributes.differences(result.claim, {"b"}) == []
    assert best_of(kb, Best(True, "price"), kb.nodes()) == result.nodes


def test_the_earliest_date_may_be_a_month(attributes):
    kb = attributes.kb
    assert kb.schema.attribute_types["born"] == "date"
    (first,) = kb.refs(best_of(kb, Best(False, "born"), kb.nodes()).array)
    (last,) = kb.refs(best_of(kb, Best(True, "born"), kb.nodes()).array)
    assert (first.key, last.key) == ("b", "d")
    assert kb.node(kb.nodes().array[0]).attributes["born"] == "1985"


def test_what_the_question_names_is_left_out_of_the_certificate_too(databases, base):
    query = TripletQuery(
        (Triplet(GENE, "associated_with", DISEASE), Triplet(Constant("FBN1"), "associated_with", DISEASE)), GENE
    )
    result = execute(base, ByName(base), query)
    assert {ref.key for ref in base.refs(result.nodes.array)} == {"BBS2"}
    assert databases.differences(result.claim, {"BBS2"}) == []


WORDS = {
    "two hops": "genes associated with diseases that have Rod-cone dystrophy",
    "without a sign": "diseases that do not have Arachnodactyly",
    "kinds of": "phenotypes that are a kind of Abnormal finger",
    "any relation": "phenotypes connected with Bardet-Biedl syndrome",
    "at least two diseases": "genes associated with diseases with at least 2 such diseases",
    "above in a hierarchy": "phenotypes that Arachnodactyly is a kind of",
}


@pytest.mark.parametrize("name", WORDS)
def test_a_claim_is_said_in_plain_words(name, base):
    query = QUERIES[name]
    groundings = grounded(base, query)
    wide = name in ("kinds of", "above in a hierarchy")
    direction = "any" if name == "any relation" else "strict"
    problem = pose(query, groundings, base, edge_types="strict", direction=direction, hierarchical=wide)
    block = as_block(query, problem, groundings, base.schema, hierarchical=wide)
    assert in_words(Claim((block,)), base) == WORDS[name]
