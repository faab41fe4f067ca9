"""The text form, the check against a schema, and what the executor gives on a small base."""

import json
import time

import pytest

import clew
from clew.answering.queries.columns import NumberTooLargeError
from clew.answering.queries.execution import QueryLimits, QueryTooLargeError, execute, solutions
from clew.answering.queries.kinds import check
from clew.answering.queries.lowering import CannotPrintError
from clew.answering.queries.parsing import QuerySyntaxError, parse
from clew.answering.queries.sparql import sparql
from clew.answering.queries.sql import sql
from clew.core.errors import InputError, SchemaError
from clew.core.query import Named, Nodes, constants, linked
from conftest import EDGES, build_graph, tables

TEXTS = [
    'find x where (x: gene) -[associated_with]-> (d: disease) and (d) -[has_phenotype]-> "Polydactyly": phenotype',
    "find x.name, count(distinct d) as n where (x: gene) -[associated_with]-> (d) group by x having count(*) >= 2",
    "find x where (x: gene) order by length(x.key) desc, x.name first 5 skip 1",
    'find distinct x where (x) -[is_a*]-> node("P4", "P3") and not exists {(d) -[has_phenotype]-> (x)}',
    'find p.name where (d) -[e: has_phenotype]-> (p) and e.frequency starts with "80" and e.relation != d.name',
    'find d where (d: disease) and count(p for (d) -[has_phenotype]-> (p)) > 1 and d is not node("MFS")',
    'find d.name, g.name where (d) and optional {(g: gene) -[associated_with]-> (d) and g.name contains "1"}',
    '(find x where (x: gene)) except (find x where (x) -[associated_with]-> node("BBS"))',
    "find ((find count(x) where (x: gene)) - (find count(x) where (x: disease)))",
    'find x where (x) -[any{1,2}]- (y: `gene`) and (x.name = "a" or length(x.name) > 3)',
    "find x where (x) and not x.name in (find y.name where (y: gene))",
    "find x.type, max(x.name) where (x) group by x.type order by max(x.name) desc first 1 with ties",
    'find exists(*) where (x: gene) -[associated_with]-> node("BBS") having exists(*) = true',
]


@pytest.fixture
def base(tmp_path):
    edges = [*EDGES, ("FBN1", "associated_with", "BBS", None)]
    return build_graph(tables(edges=edges), tmp_path / "small.kb")


def keys(result):
    return [tuple(getattr(cell, "key", cell) for cell in row) for row in result.rows]


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_form_round_trips_and_fits_the_schema(text, base):
    query = parse(text)
    assert parse(str(query)) == query
    check(query, base.schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("find x.name where (x: gene) and x.name is", "missing, present"),
        ("find x where (x: gene) x.name = 1", "the end"),
        ("find x where (x) -[treats- (y)", "']'"),
        ("find x where (x) and x.name ~ 3", "character"),
        ("find", "a value"),
        ("find x where (x) -[treated by]-> (y)", "backticks"),
        ("find x.full name where (x)", "backticks"),
        ("find median(x.age) where (x)", "one of the functions count"),
        ("find x where (x) limit 3", "first"),
        ("find x where " + "(" * 80 + "x.a = 1" + ")" * 80, "brackets"),
        (r'find x where (x) and x.name matches "\d+"', "two backslashes"),
        ("find " + "1+" * 4_000 + "1", "100 terms"),
        ("union".join(["(find x where (x))"] * 430), "100 terms"),
        ("find x where (x) first " + "9" * 5_000, "5000 digits"),
    ],
)
def test_errors_say_what_is_possible(text, expected):
    with pytest.raises(QuerySyntaxError, match=expected):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("find x where (x: gen)", "try gene"),
        ("find x where (x) -[has_fenotype]-> (y)", "try has_phenotype"),
        ("find x.nam where (x: gene)", "try name"),
        ("find y.name where (x: gene)", "try x"),
        ("find e.freqency where (x) -[e: has_phenotype]-> (y)", "try frequency"),
        ("find x.name, count(*) where (x: gene) -[any]-> (y) group by y", "group by"),
        ("find sum(x.name) where (x: gene)", "number"),
        ("find x where (x: gene) and x.name = x", "compares a"),
        ("(find x where (x)) union (find x, x.name where (x))", "columns"),
        ("find x where (x) and count(*) > 2", "having"),
        ("find x where (x) having max(count(x)) = 1", "sub-query"),
        ("find x.has_phenotype where (x: disease)", "is a relation"),
        ("find x where (x) and x.name > 8", r"number\(x.name\) > 8"),
        ('find x where (x) and length(x.name) = "long"', "expected a number"),
        ("find number(length(x.name)) where (x)", "without number"),
        ('find x where (x) and x.name matches "[a"', "regular expression"),
        ('find x where (x) and x.name matches "a)(b"', "regular expression"),
        ('find x where (x) and x.name matches "(?=a)b"', "regular expression"),
    ],
)
def test_a_query_that_does_not_fit_the_schema_is_refused(text, expected, base):
    with pytest.raises(SchemaError, match=expected):
        check(parse(text), base.schema)


def test_a_name_alone_introduces_a_variable(base):
    assert parse('find x where x is "BBS"') == parse('find x where (x) and x is "BBS"')
    assert keys(execute(base, parse('find x where x is node("BBS")'))) == [("BBS",)]


def test_rows_come_in_order_and_ties_stay(base):
    most = parse(
        "find g.name, count(d) as n where (g: gene) -[associated_with]-> (d) group by g order by count(d) desc first 1"
    )
    assert keys(execute(base, most)) == [("FBN1", 2)]
    assert execute(base, most).names == ("g.name", "n")
    tied = parse("find d where (d: disease) order by length(d.key) desc first 1 with ties")
    assert keys(execute(base, tied)) == [("BBS",), ("MFS",)]


def test_yes_or_no(base):
    assert keys(execute(base, parse('find exists(*) where (g: gene) -[associated_with]-> node("BBS")'))) == [(True,)]
    assert keys(execute(base, parse('find exists(*) where (g: gene) -[associated_with]-> node("P1")'))) == [(False,)]
    each = parse("find p, exists(q for (p) -[is_a]-> (q)) where (p: phenotype) order by p.key")
    assert keys(execute(base, each)) == [("P1", True), ("P2", False), ("P3", True), ("P4", False)]


def test_a_union_has_an_order(base):
    sides = '(find g where (g: gene)) union (find d where (d: disease) and d.name contains "Marfan")'
    query = parse(f"find x where (x) and x in ({sides}) order by x.name desc first 2")
    assert keys(execute(base, query)) == [("MFS",), ("FBN1",)]


def test_a_node_column_gives_a_node_set_and_the_solutions_behind_a_row(base):
    query = parse('find distinct g where (g: gene) -[associated_with]-> (d: disease) and (d) -[any]-> node("P3")')
    result = execute(base, query)
    assert [base.refs([node])[0].key for node in result.nodes] == ["FBN1"]
    [[witness]] = solutions(base, query, result.rows[:1])
    assert {name: ref.key for name, ref in witness.items()} == {"g": "FBN1", "d": "MFS"}


def test_a_row_without_variables_has_one_empty_solution(base):
    query = parse("find (find count(g) where (g: gene)) - (find count(d) where (d: disease))")
    assert solutions(base, query, execute(base, query).rows) == [[{}]]


def test_named_constants_are_linked_before_they_are_used(base):
    query = parse('find x where (x) -[is_a]-> "Abnormal finger": phenotype')
    assert constants(query) == (Named("Abnormal finger", "phenotype"),)
    with pytest.raises(InputError, match="link"):
        execute(base, query)
    assert len(execute(base, linked(query, lambda _: ("P4",))).rows) == 2
    assert linked(query, lambda _: ("P4",)).pattern.edges[0].tail == Nodes(("P4",))


def test_a_query_with_too_many_solutions_ends_with_an_error(base):
    with pytest.raises(QueryTooLargeError, match="too many solutions"):
        execute(base, parse("find count(*) where (a) and (b) and (c)"), QueryLimits(rows=100))


RING = 300


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """Nodes in a circle, the first one with a long name."""
    nodes = [(f"k{place}", "thing", "a" * 40 if place == 0 else f"name {place}", [], "") for place in range(RING)]
    edges = [(f"k{place}", "next", f"k{(place + 1) % RING}", None) for place in range(RING)]
    return build_graph(tables(nodes, edges), tmp_path_factory.mktemp("ring"))


def test_a_regular_expression_takes_time_in_proportion_to_the_texts(ring):
    begun = time.process_time()
    assert execute(ring, parse('find x where (x: thing) and x.name matches "(a+)+b"')).rows == []
    assert keys(execute(ring, parse('find x where (x: thing) and x.name matches "(a+)+|name 7"'))) == [("k0",), ("k7",)]
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(("walk", "count"), [("{1000000000,}", RING), ("{1000000000,1000000001}", 2), ("*", RING)])
def test_a_walk_of_any_length_ends(walk, count, ring):
    begun = time.process_time()
    assert len(execute(ring, parse(f"find x, y where (x) -[next{walk}]-> (y)")).rows) == RING * count
    found = keys(execute(ring, parse(f'find y where node("k0") -[next{walk}]-> (y)')))
    assert len(found) == count
    if count == 2:
        assert found == [(f"k{10**9 % RING}",), (f"k{10**9 % RING + 1}",)]
    assert time.process_time() - begun < 20


def test_a_walk_that_takes_too_many_steps_is_refused(tmp_path):
    """Circles of 2, 3, 5, … nodes come back to where they began only after their product of steps."""
    sizes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
    nodes = [(f"{size}-{place}", "thing", "", [], "") for size in sizes for place in range(size)]
    edges = [
        (f"{size}-{place}", "next", f"{size}-{(place + 1) % size}", None) for size in sizes for place in range(size)
    ]
    circles = build_graph(tables(nodes, edges), tmp_path / "circles.kb")
    query = parse(
        "find y where node({}) -[next{{6469693231}}]-> (y)".format(", ".join(f'"{size}-0"' for size in sizes))
    )
    with pytest.raises(QueryTooLargeError, match="too many"):
        execute(circles, query, QueryLimits(work=20_000_000))


@pytest.mark.parametrize(
    "text",
    [
        "find 9999999999999999999999",
        "find (9223372036854775807 + 1)",
        "find length(x.name) * 9223372036854775807 where (x: thing)",
        "find sum(length(x.name) * 40000000000000000) where (x: thing)",
        "find abs(-9223372036854775808)",
        "find round(1e308)",
        "find 1e308 + 1e308",
    ],
)
def test_a_number_that_cannot_be_held_is_refused(text, ring):
    with pytest.raises(NumberTooLargeError, match="smaller"):
        execute(ring, parse(text))


def test_sums_of_whole_numbers_are_exact(ring):
    query = "find sum(length(x.name) * 0 + 9007199254740993) where (x: thing)"
    assert keys(execute(ring, parse(query))) == [(RING * 9007199254740993,)]


def test_a_long_walk_is_not_written_out_in_other_languages(ring):
    query = parse("find x where (x) -[next{1,99999999999}]-> (x)")
    for print_query in (sparql, sql):
        with pytest.raises(CannotPrintError, match="30 steps"):
            print_query(query, ring.schema)


def test_a_result_with_too_many_cells_is_refused_before_it_is_made(ring):
    with pytest.raises(QueryTooLargeError, match="90,000 rows"):
        execute(ring, parse("find x, y where (x) and (y)"), QueryLimits(cells=100_000))
    assert len(execute(ring, parse("find x, y where (x) and (y) first 5"), QueryLimits(cells=100_000)).rows) == 5


def test_next_previous_and_differences_need_no_form_of_their_own(base):
    def after(sign, word):
        given = '(find x.key where (x) and x is node("P2"))'
        return parse(f"find y where (y: phenotype) and y.key {sign} {given} order by y.key {word} first 1")

    assert keys(execute(base, after(">", ""))) == [("P3",)]
    assert keys(execute(base, after("<", "desc"))) == [("P1",)]
    longer = parse('find length(a.name) - length(b.name) where (a) and (b) and a is node("BBS") and b is node("MFS")')
    assert keys(execute(base, longer)) == [(len("Bardet-Biedl syndrome") - len("Marfan syndrome"),)]


def test_a_shortened_name_stands_for_all_that_it_fits_and_the_answer_says_so(tmp_path):
    (tmp_path / "drivers.jsonl").write_text(
        "".join(
            json.dumps({"id": name, "name": name, "type": "driver"}) + "\n"
            for name in ("Bobby Labonte", "Terry Labonte", "Jeff Gordon")
        )
    )
    clew.build([tmp_path / "drivers.jsonl"], tmp_path / "drivers.kb")
    answer = clew.open(tmp_path / "drivers.kb").query('find x where x is "Labonte": driver')
    assert {match.node.name for match in answer.matches} == {"Bobby Labonte", "Terry Labonte"}
    assert any("Terry Labonte" in note for note in answer.notes)
