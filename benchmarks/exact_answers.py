"""Whether every view of an answer shows exactly what its query finds: `python benchmarks/exact_answers.py -n 10000`.

Random bases with hierarchies, shared names and missing values, random queries of every form. What a query finds is
computed a second time by trying everything (`by_hand`), and once more by its SPARQL and Cypher in other databases.
Compared are the matches, the JSON and its count, the table, the sentence, the value and the state.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from certificates import QUERIES, property_graph_of, queries, random_tables, rdf_of

from clew.answering.methods.catalog import ask, create
from clew.answering.queries.finishing import comparable
from clew.answering.queries.grounding import expansions, follows, is_usable
from clew.answering.queries.problem import holds
from clew.core.query import Best, Condition, Constant, Count, Term, Triplet, TripletQuery, Variable
from clew.core.roles import Parse
from clew.core.schema import Schema
from clew.core.types import Answer, NodeSet
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.rdf_export import node_iri
from clew.store.open_base import OpenBase

Assignment = Mapping[str, str]


@dataclass(frozen=True)
class ByHand:
    """A base as plain sets and dictionaries; every question is answered by trying all nodes."""

    types: Mapping[str, str]
    names: Mapping[str, str]
    values: Mapping[str, Mapping[str, Any]]
    edges: frozenset[tuple[str, str, str]]
    schema: Schema

    @classmethod
    def of(cls, kb: ArrayKnowledgeBase) -> ByHand:
        nodes = [kb.node(int(place)) for place in kb.nodes()]
        found = kb.edges(kb.nodes(), None, "out")
        rows = zip(found.heads, found.relations, found.tails, strict=True)
        edges = frozenset((nodes[h].key, kb.schema.relation_names[r], nodes[t].key) for h, r, t in rows)
        return cls(
            {one.key: one.type for one in nodes},
            {one.key: one.name for one in nodes},
            {one.key: one.attributes for one in nodes},
            edges,
            kb.schema,
        )

    def named(self, constant: Constant) -> set[str]:
        every = {key for key, name in self.names.items() if name == constant.text}
        return {key for key in every if constant.type in (None, self.types[key])} or every

    def stands_for(self, constant: Constant, triplet: Triplet, kinds: bool) -> set[str]:
        """What a name stands for in one place, with all that lies below it, or above it, in a hierarchy."""
        nodes = self.named(constant)
        for one in expansions(triplet, constant, self.schema) if kinds or triplet.negated else ():
            upward = follows(one.relation, upward=one.upward)
            while (
                more := {
                    head if upward else tail
                    for head, relation, tail in self.edges
                    if relation == one.relation.name and (tail if upward else head) in nodes
                }
                - nodes
            ):
                nodes = nodes | more
        return nodes

    def joined(self, head: str, relation: str | None, tail: str) -> bool:
        if relation is not None:
            return (head, relation, tail) in self.edges
        return any((h, t) in ((head, tail), (tail, head)) for h, _, t in self.edges)

    def found(self, query: TripletQuery, kinds: bool) -> set[str]:
        """Everything that satisfies a query."""
        every = set()
        for one in (query, *query.either):
            nodes = self.satisfying(one, one.target.name, one.triplets, kinds)
            if not one.among:
                for constant in one.constants():
                    nodes = nodes - self.named(constant) or nodes
            every |= nodes
        return every if query.best is None else self.best(query.best, every)

    def satisfying(self, query: TripletQuery, target: str, triplets: tuple[Triplet, ...], kinds: bool) -> set[str]:
        usable = tuple(one for one in triplets if is_usable(one, _Known()))
        group = {target}
        while (
            more := {
                end.name
                for one in usable
                if not one.negated and group & _variables(one)
                for end in (one.head, one.tail)
                if isinstance(end, Variable)
            }
            - group
        ):
            group |= more
        own = [one for one in usable if group & _variables(one)]
        rest = tuple(one for one in usable if not group & _variables(one))
        kind_of = {name: variable.type for name, variable in query.variables().items()}

        def allowed(chosen: Assignment, one: Triplet) -> bool:
            ends = [self.ends(term, one, chosen, query, rest, kinds) for term in (one.head, one.tail)]
            if None in ends:
                return True  # an end is not chosen yet
            is_there = any(self.joined(head, one.relation, tail) for head in ends[0] or () for tail in ends[1] or ())
            return is_there != one.negated

        def extend(chosen: dict[str, str], left: list[str]) -> Iterator[Assignment]:
            if not left:
                yield chosen
                return
            for key in self.types:
                if kind_of.get(left[0]) not in (None, self.types[key]):
                    continue
                if not all(self.meets(key, one) for one in query.conditions if one.variable == left[0]):
                    continue
                if left[0] == query.target.name and query.among and not any(key in self.named(c) for c in query.among):
                    continue
                wider = {**chosen, left[0]: key}
                if all(allowed(wider, one) for one in own if left[0] in _variables(one)):
                    yield from extend(wider, left[1:])

        solutions = list(extend({}, sorted(group)))
        for count in query.counts:
            if group >= {count.variable, count.of}:
                solutions = [one for one in solutions if self.counts(count, one, list(extend({}, sorted(group))))]
        return {one[target] for one in solutions}

    def counts(self, count: Count, chosen: Assignment, every: list[Assignment]) -> bool:
        partners = {one[count.of] for one in every if one[count.variable] == chosen[count.variable]}
        return holds(len(partners), count.comparison, count.value)

    def ends(
        self,
        term: Term,
        triplet: Triplet,
        chosen: Assignment,
        query: TripletQuery,
        rest: tuple[Triplet, ...],
        kinds: bool,
    ) -> set[str] | None:
        """The nodes that one end of an edge may be; None where it is to be chosen yet."""
        if isinstance(term, Constant):
            return self.stands_for(term, triplet, kinds)
        if term.name in chosen:
            return {chosen[term.name]}
        if triplet.negated and not self._is_tied(term.name, triplet, query):
            return self.satisfying(query, term.name, rest, kinds)
        return None

    def _is_tied(self, name: str, triplet: Triplet, query: TripletQuery) -> bool:
        """Whether required edges tie a variable to what the other end of a forbidden edge is tied to."""
        (other,) = _variables(triplet) - {name} or {name}
        group = {other}
        while (
            more := {
                one
                for edge in query.triplets
                if not edge.negated and group & _variables(edge) and len(_variables(edge)) == 2
                for one in _variables(edge)
            }
            - group
        ):
            group |= more
        return name in group

    def meets(self, key: str, condition: Condition) -> bool:
        return holds(self.values[key].get(condition.attribute), condition.comparison, condition.value)

    def best(self, best: Best, nodes: set[str]) -> set[str]:
        amounts: dict[str, float] = {}
        for key in nodes:
            if best.attribute is not None:
                value = comparable(self.values[key].get(best.attribute))
                amounts |= {} if value is None else {key: value}
                continue
            others = {
                tail if best.is_head else head
                for head, relation, tail in self.edges
                if (head if best.is_head else tail) == key and best.relation in (None, relation)
            }
            amounts[key] = sum(best.of in (None, self.types[other]) for other in others)
        goal = (max if best.most else min)(amounts.values(), default=None)
        return {key for key, amount in amounts.items() if amount == goal}


class _Known(dict[Constant, Any]):
    """Every name is taken for known."""

    def __missing__(self, constant: Constant) -> Any:
        return _ONE


@dataclass(frozen=True)
class _One:
    nodes = NodeSet.of([0])


_ONE = _One()


def _variables(triplet: Triplet) -> set[str]:
    return {end.name for end in (triplet.head, triplet.tail) if isinstance(end, Variable)}


@dataclass(frozen=True)
class Said:
    """A parser that says what it was told."""

    query: TripletQuery

    def parse(self, question: str, schema: Schema) -> Parse:  # noqa: ARG002
        return Parse(self.query, certainty=0.9)


def differences(tools: OpenBase, query: TripletQuery, by_hand: ByHand, run: Any, kinds: bool) -> list[str]:
    """What the views of an answer say where it is not what trying everything finds."""
    answer = ask(create("focus_plus", {"kinds": kinds}), "?", replace(tools, parser=Said(query)))
    expected = by_hand.found(query, kinds)
    if query.asks == "value" and not any(_is_known(by_hand.values[key].get(query.attribute or "")) for key in expected):
        expected = set()
    told, frame = answer.to_dict(), answer.to_frame()
    count = len(expected)
    views: dict[str, Any] = {"matches": {one.node.key for one in answer.matches}}
    wanted: dict[str, Any] = {"matches": expected}
    if query.asks in ("number", "truth"):
        views["value"] = answer.value
        wanted["value"] = count if query.asks == "number" else count > 0
        if query.asks == "truth" and query.best is not None and query.among:
            wanted["value"] = bool(expected & by_hand.named(query.among[0]))
    else:
        views["state"], wanted["state"] = answer.state, "found" if count else "not_found"
    wanted |= {"json": expected, "count": count, "frame": expected}
    views["json"] = {one["key"] for one in told["answers"] if one["group"] == "match"}
    views["count"] = told["matches"]
    views["frame"] = set(frame[frame["group"] == "match"]["key"]) if "group" in frame else set(frame["key"][:count])
    number = re.match(r"([\d,]+) ", answer.text or "")
    if number and query.asks in ("nodes", "number") and query.best is None:
        views["sentence"], wanted["sentence"] = int(number[1].replace(",", "")), count
    if query.asks != "value":
        for language in ("sparql", "cypher"):
            views[language] = run(answer, language)
            wanted[language] = wanted["value"] if query.asks in ("number", "truth") else expected
    return [f"{name}: {views[name]} instead of {wanted[name]}" for name in wanted if views[name] != wanted[name]]


def _is_known(value: Any) -> bool:
    return value is not None and value != ""


def runner(kb: ArrayKnowledgeBase) -> Any:
    """Carries out the formal queries of answers in other databases."""
    rdf, graph = rdf_of(kb), property_graph_of(kb)
    keys = {node_iri(ref.key): ref.key for ref in kb.refs(kb.nodes().array)}

    def run(answer: Answer, language: str) -> Any:
        form = answer.query["form"]
        if language == "sparql":
            rows = rdf.query(answer.query["sparql"])
            if form == "yes/no":
                return bool(rows)
            return int(next(iter(rows))[0].value) if form == "count" else {keys[row[0].value] for row in rows}
        table = list(graph.execute(answer.query["cypher"]))
        return table[0][0] if form in ("yes/no", "count") else {row[0] for row in table}

    return run


def compared(seed: int, count: int) -> Iterator[tuple[str, bool, str, list[str]]]:
    """Form, whether anything is found, the query, and what differs, of `count` random queries."""
    chance, done = random.Random(seed), 0
    while done < count:
        with tempfile.TemporaryDirectory() as folder:
            build(random_tables(chance), Path(folder) / "random.kb")
            tools = OpenBase.open(Path(folder) / "random.kb", embedder="hash")
            assert isinstance(tools.kb, ArrayKnowledgeBase)
            by_hand, run = ByHand.of(tools.kb), runner(tools.kb)
            for form, query in islice(queries(tools.kb, chance), min(QUERIES // 3, count - done)):
                done += 1
                if not all(map(by_hand.named, query.constants())):
                    continue  # a name that the base does not have is reported, not carried out
                kinds = chance.random() < 0.8
                wrong = differences(tools, query, by_hand, run, kinds)
                yield form, bool(by_hand.found(query, kinds)), f"kinds={kinds} {query}", wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5, help="how many differences to show")
    given = parser.parse_args()
    total, equal, telling = Counter[str](), Counter[str](), Counter[str]()
    shown = 0
    for form, finds, query, wrong in compared(given.seed, given.n):
        total[form] += 1
        equal[form] += not wrong
        telling[form] += finds
        if wrong and shown < given.show:
            shown += 1
            print(f"--- {form}: {query}", *wrong, sep="\n")
    for form in (*total, "all"):
        figures = [one.total() if form == "all" else one[form] for one in (total, equal, telling)]
        print(f"{form:24}{figures[0]:7}{figures[1]:7}{figures[2]:7}")


if __name__ == "__main__":
    main()
