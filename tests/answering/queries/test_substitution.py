"""Substitution finds exactly the nodes that brute force finds, in any order of triplets."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.answering.queries.problem import Constraint, Problem, holds
from clew.answering.queries.solutions import connected, solve
from clew.core.query import Count
from clew.core.schema import NodeType, Relation, Schema
from clew.core.types import NodeSet
from clew.store.graph.protocol import Edges
from conftest import EDGES, build_graph, tables
from repeats import repeats

TYPES = ("a", "b")
RELATIONS = ("r", "s")


@dataclass(frozen=True)
class SmallGraph:
    """Nodes with a type and edges in Python sets: the naive graph."""

    types: tuple[str, ...]
    triples: frozenset[tuple[int, str, int]]

    @cached_property
    def schema(self):
        rows = [
            Relation(r, h, t, sum(1 for x, q, y in self.triples if (q, self.types[x], self.types[y]) == (r, h, t)))
            for r, h, t in product(RELATIONS, TYPES, TYPES)
        ]
        used = tuple(row for row in rows if row.count) or tuple(rows)
        missing = tuple(Relation(r, "a", "a", 0) for r in RELATIONS if r not in {row.name for row in used})
        return Schema(tuple(NodeType(t, self.types.count(t)) for t in TYPES), used + missing)

    def nodes(self, type=None):
        return NodeSet.of([n for n, t in enumerate(self.types) if type in (None, t)])

    def neighbors(self, nodes, relation=None, direction="any"):
        found = self.edges(nodes, relation, direction)
        out = found.tails[nodes.holds(found.heads)] if direction != "in" else []
        into = found.heads[nodes.holds(found.tails)] if direction != "out" else []
        return NodeSet.of([*map(int, out), *map(int, into)])

    def edges(self, nodes, relation=None, direction="any"):
        chosen = [
            (h, RELATIONS.index(r), t)
            for h, r, t in sorted(self.triples)
            if relation in (None, r) and ((direction != "in" and h in nodes) or (direction != "out" and t in nodes))
        ]
        heads, codes, tails = (
            (np.array(column, dtype=np.int32) for column in zip(*chosen, strict=True))
            if chosen
            else (np.empty(0, np.int32),) * 3
        )
        return Edges(heads, codes, tails)

    def linked(self, head, constraint, tail):
        rights = {(head, tail), (tail, head)} if constraint.any_direction else {(head, tail)}
        return any((h, t) in rights and constraint.relation in (None, r) for h, r, t in self.triples)


def brute_force(graph, problem):
    """All assignments of the variables tied to the target, by trying every one of them."""
    group = sorted(connected(problem, problem.target))
    rest = tuple(c for c in problem.constraints if not set(c.variables) & set(group))

    def members(end, assignment):
        return [assignment[end]] if isinstance(end, str) else list(end)

    def absent(constraint, assignment):
        outside = [v for v in constraint.variables if v not in group]
        if not outside:
            return not present(constraint, assignment)
        inner = brute_force(graph, replace(problem, target=outside[0], constraints=rest))
        return not any(present(constraint, {**assignment, outside[0]: one[outside[0]]}) for one in inner)

    def present(constraint, assignment):
        return any(
            graph.linked(h, constraint, t)
            for h in members(constraint.head, assignment)
            for t in members(constraint.tail, assignment)
        )

    solutions = []
    for values in product(*(graph.nodes(problem.types[v]) for v in group)):
        one = dict(zip(group, values, strict=True))
        about = [c for c in problem.constraints if set(c.variables) & set(group)]
        if all(absent(c, one) if c.negated else present(c, one) for c in about) and all(
            one[v] in keep(NodeSet.of([one[v]])) for v in group for keep in problem.filters.get(v, ())
        ):
            solutions.append(one)

    def counted(one):
        return all(
            holds(len({o[c.of] for o in solutions if o[c.variable] == one[c.variable]}), c.comparison, c.value)
            for c in problem.counts
            if {c.variable, c.of} <= set(group)
        )

    return [one for one in solutions if counted(one)]


@st.composite
def graphs(draw):
    count = draw(st.integers(2, 6))
    types = tuple(draw(st.lists(st.sampled_from(TYPES), min_size=count, max_size=count)))
    node = st.integers(0, count - 1)
    return SmallGraph(types, draw(st.frozensets(st.tuples(node, st.sampled_from(RELATIONS), node), max_size=16)))


@st.composite
def problems(draw, graph, negation=True):
    names = ["x", "y", "z"][: draw(st.integers(1, 3))]
    types = {name: draw(st.sampled_from([None, *TYPES])) for name in names}
    constants = st.frozensets(st.integers(0, len(graph.types) - 1), min_size=1, max_size=2).map(NodeSet.of)
    constraints = []
    for place in range(draw(st.integers(1, 4))):
        head, tail = draw(st.sampled_from(names) | constants), draw(st.sampled_from(names) | constants)
        if (isinstance(head, str) or isinstance(tail, str)) and not (isinstance(head, str) and head == tail):
            relation = draw(st.sampled_from([None, *RELATIONS]))
            negated = negation and draw(st.booleans()) and draw(st.booleans())
            constraints.append(Constraint(head, relation, tail, draw(st.booleans()), negated, place))
    filters = {}
    if draw(st.booleans()):
        limit = draw(st.integers(0, 5))
        filters[draw(st.sampled_from(names))] = (lambda nodes: NodeSet(nodes.array[nodes.array <= limit]),)
    counts = ()
    if len(names) > 1 and draw(st.booleans()):
        variable, of = draw(st.permutations(names))[:2]
        counts = (Count(variable, of, draw(st.sampled_from(["=", "<", ">=", "!="])), draw(st.integers(1, 3))),)
    return Problem("x", types, tuple(constraints), filters, counts)


@settings(max_examples=repeats(80, 250), deadline=None)
@given(st.data())
def test_solving_finds_what_brute_force_finds_whatever_the_order_of_triplets(data):
    graph = data.draw(graphs())
    problem = data.draw(problems(graph))
    expected = {one["x"] for one in brute_force(graph, problem)}
    shuffled = replace(problem, constraints=tuple(data.draw(st.permutations(problem.constraints))))
    for version in (problem, shuffled):
        found = solve(graph, version).target
        assert set(graph.nodes(problem.types["x"]) if found is None else found) == expected


@settings(max_examples=repeats(40, 100), deadline=None)
@given(st.permutations(range(7)), st.data())
def test_cycles_of_variables_are_solved_exactly(successors, data):
    """Along a permutation every node passes the fixpoint of a triangle; only those on a cycle of three are answers."""
    more = data.draw(st.frozensets(st.tuples(st.integers(0, 6), st.just("r"), st.integers(0, 6)), max_size=2))
    graph = SmallGraph(("a",) * 7, frozenset((n, "r", m) for n, m in enumerate(successors)) | more)
    triangle = (Constraint("x", "r", "y"), Constraint("y", "r", "z"), Constraint("z", "r", "x"))
    counts = data.draw(st.sampled_from([(), (Count("x", "y", ">=", 2),), (Count("y", "x", "=", 1),)]))
    problem = Problem("x", {"x": "a", "y": "a", "z": "a"}, data.draw(st.permutations(triangle)), {}, counts)
    assert set(solve(graph, problem).target) == {one["x"] for one in brute_force(graph, problem)}


@settings(max_examples=repeats(30, 80), deadline=None)
@given(st.data())
def test_the_papers_fixpoint_never_loses_an_answer_and_does_not_depend_on_the_order(data):
    graph = data.draw(graphs())
    problem = replace(data.draw(problems(graph, negation=False)), counts=())
    assume(problem.constraints)
    expected = {one["x"] for one in brute_force(graph, problem)}
    shuffled = replace(problem, constraints=tuple(data.draw(st.permutations(problem.constraints))))
    found, again = (solve(graph, version, exact=False).target for version in (problem, shuffled))
    assert found == again
    assert expected <= set(graph.nodes(problem.types["x"]) if found is None else found)


def test_a_types_nodes_are_not_listed_while_a_constant_narrows_the_domain():
    class Watched(SmallGraph):
        def nodes(self, type=None):
            raise AssertionError("all nodes of a type were listed")

    graph = Watched(("a", "b", "a"), frozenset({(0, "r", 1), (1, "s", 2)}))
    two_hops = (Constraint(NodeSet.of([0]), "r", "y"), Constraint("y", "s", "x"))
    assert set(solve(graph, Problem("x", {"x": "a", "y": "b"}, two_hops)).target) == {2}


def test_the_embedded_base_answers_as_the_naive_graph_does(tmp_path):
    kb = build_graph(tables(edges=EDGES), tmp_path / "t.kb")
    polydactyly, dystrophy = (NodeSet.of([kb.find(key)]) for key in ("P1", "P2"))
    problem = Problem(
        "gene",
        {"gene": "gene", "disease": "disease"},
        (
            Constraint("gene", "associated_with", "disease"),
            Constraint("disease", "has_phenotype", polydactyly),
            Constraint("disease", "has_phenotype", dystrophy),
        ),
    )
    assert [ref.key for ref in kb.refs(solve(kb, problem).target.array)] == ["BBS2"]
    without = replace(problem, constraints=(*problem.constraints[:1], replace(problem.constraints[1], negated=True)))
    assert [ref.key for ref in kb.refs(solve(kb, without).target.array)] == ["FBN1"]
