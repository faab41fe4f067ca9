"""Whether every view of an answer shows exactly what its query finds.

    python tests/campaign/exact_answers.py -n 10000

Random bases with hierarchies, shared names, missing values, texts and groups, random interpretations of every form.
What each finds is computed a second time by trying everything in a base without what the caller may not see, with
hierarchies followed by hand, and once more by its SPARQL, Cypher and SQL in other databases. Compared are the matches,
the JSON and its count, the table, the sentence, the value and the state. Words that only texts could confirm make it a
maybe.
"""

import argparse
import contextlib
import random
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent))
import clew
from clew.answering.methods.catalog import ask, create
from clew.answering.queries.interpretations import names_answers
from clew.answering.queries.lowering import CannotPrintError
from clew.answering.queries.query_answers import value_text
from clew.core.query import (
    Aggregate,
    Attribute,
    Call,
    Compare,
    Edge,
    Either,
    Exists,
    Named,
    Nodes,
    Not,
    Order,
    Pattern,
    Value,
    Var,
    Variable,
    constants,
    find,
    linked,
    requiring,
    rewrite,
)
from clew.core.roles import Interpretation, Parse
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import GROUPS
from clew.store.open_base import OpenBase
from query_engines import DuckDB, Kuzu, Oxigraph
from query_reference import Reference
from random_queries import COMPARISONS, EDGE_KINDS, KINDS, LITERALS, random_tables

ROUNDS = 30
"""Interpretations for one base."""
CALLER = {"staff"}
"""The groups of whoever asks."""
ORDERED = ("dose", "mass", "approved", "seen", "price")


class Maker:
    """Makes interpretations whose parts are likely to be there."""

    def __init__(self, kb, chance):
        self.kb, self.chance = kb, chance
        self.refs = kb.refs(kb.nodes().array)

    def name(self, kind=None):
        fitting = [ref for ref in self.refs if kind in (None, ref.type)] or self.refs
        ref = self.chance.choice(fitting)
        return Named(ref.name, self.chance.choice((ref.type, None)))

    def chain(self, length, mark=""):
        """Edges from the target to a name, mostly a walk that there is; the variables between them have types."""
        node = self.chance.choice(self.refs).id
        here, variables, edges = "x", [], []
        for place in range(length):
            walks = self.kb.triples(node)
            if not walks:
                break
            walk = self.chance.choice(walks)
            out = walk.head == node
            [ref] = self.kb.refs([walk.tail if out else walk.head])
            node, is_last = ref.id, place == length - 1
            there = Named(ref.name, ref.type) if is_last else f"{mark}y{place}"
            if is_last and self.chance.random() < 0.2:
                there = self.name(ref.type)
            if not is_last:
                variables.append(Variable(there, ref.type))
            relation = None if self.chance.random() < 0.05 else walk.relation
            head, tail = (here, there) if out else (there, here)
            edges.append(Edge(head, relation, tail, directed=relation is not None))
            here = there
        return Pattern(tuple(variables), tuple(edges))

    def condition(self, variable="x"):
        kinds = self.kb.schema.attribute_types
        name = self.chance.choice([name for name in KINDS if name in kinds])
        sign = self.chance.choice((*COMPARISONS, "contains"))
        return Compare(Attribute(variable, name), sign, Value(self.chance.choice(LITERALS[kinds[name]])))

    def order(self):
        known = [name for name in ORDERED if name in self.kb.schema.attribute_types]
        if known and self.chance.random() < 0.5:
            name = self.chance.choice(known)
            stored = Attribute("x", name)
            amount = Call("number", (stored,)) if name == "price" else stored
        else:
            ends = self.chance.choice((("x", "other"), ("other", "x")))
            kind = self.chance.choice((*self.kb.schema.type_names, None))
            edge = Edge(ends[0], self.chance.choice(self.kb.schema.relation_names), ends[1])
            amount = Aggregate("count", Var("other"), True, Pattern((Variable("other", kind),), (edge,)))
        return Order(amount, self.chance.random() < 0.5)

    def either(self):
        return Pattern((), (), (Either(tuple(Exists(self.chain(self.chance.randint(1, 2))) for _ in range(2))),))

    def absent(self):
        forbidden = self.chain(self.chance.randint(1, 2), "n")
        if self.chance.random() < 0.3:
            other = Variable("none", self.chance.choice(self.kb.schema.type_names))
            forbidden = Pattern((other,), (Edge("x", self.chance.choice(self.kb.schema.relation_names), "none"),))
        required = self.chain(1, "r") if self.chance.random() < 0.5 else Pattern()
        return requiring(required, Not(Exists(forbidden))) if forbidden.edges else required

    def counted(self):
        relation, out = self.chance.choice(self.kb.schema.relation_names), self.chance.random() < 0.5
        over = Pattern((), (Edge("x", relation, "z") if out else Edge("z", relation, "x"),))
        amount = Aggregate("count", Var("z"), True, over)
        return Pattern((), (), (Compare(amount, self.chance.choice(COMPARISONS), Value(self.chance.randint(0, 3))),))

    def cyclic(self):
        relations = [self.chance.choice((*self.kb.schema.relation_names, None)) for _ in range(3)]
        turned = [pair if self.chance.random() < 0.5 else pair[::-1] for pair in (("x", "a"), ("a", "b"), ("b", "x"))]
        return Pattern(
            (), tuple(Edge(h, r, t, directed=r is not None) for (h, t), r in zip(turned, relations, strict=True))
        )

    def some(self):
        return self.chance.choice((Pattern, lambda: self.chain(1), self.either, self.absent, self.counted))()

    def mixed(self):
        pattern = self.chance.choice((self.some, self.cyclic, lambda: self.chain(2)))()
        if self.chance.random() < 0.4:
            pattern = requiring(pattern, self.condition())
        return requiring(pattern, self.among(3)) if self.chance.random() < 0.3 else pattern

    def among(self, most):
        options = tuple(Compare(Var("x"), "=", self.name()) for _ in range(self.chance.randint(1, most)))
        return options[0] if len(options) == 1 else Either(options)

    def interpretations(self):
        """One interpretation of each form, again and again."""
        chance = self.chance
        while True:
            kind = chance.choice((*self.kb.schema.type_names, None))

            def asked(pattern, kind=kind, best=False, **more):
                query = find("x", kind, pattern)
                if best:
                    query = replace(query, order=(self.order(),), first=1, ties=True)
                return Interpretation(query, **more)

            for length in (1, 2, 3):
                yield f"chain of {length}", asked(self.chain(length))
            first, second = self.chain(1, "a"), self.chain(chance.randint(1, 2), "b")
            both = Pattern((*first.variables, *second.variables), (*first.edges, *second.edges))
            yield "intersection", asked(both)
            yield "either", asked(self.either())
            yield "negation", asked(self.absent())
            yield "condition", asked(requiring(Pattern(), self.condition()))
            way = self.chain(2)
            yield "condition on the way", asked(requiring(way, *(self.condition(one.name) for one in way.variables)))
            yield "count", asked(self.counted())
            yield "cycle", asked(self.cyclic())
            yield "among", asked(requiring(self.some(), self.among(3)))
            yield "best", asked(self.some(), best=True)
            yield "number", asked(self.some(), asks="number")
            yield "truth", asked(self.some(), asks="truth")
            yield "value", asked(self.some(), asks="value", attribute=chance.choice(list(KINDS)))
            names = (self.name(), self.name())
            both = Either(tuple(Compare(Var("x"), "=", name) for name in names))
            compared = asked(requiring(Pattern(), both), kind=None, best=True)
            yield "comparison", compared
            yield "comparison, truth", replace(compared, asks="truth", compared=names[0])
            for _ in range(2):
                asks = chance.choice(("nodes", "nodes", "number", "truth"))
                yield "mixed", asked(self.mixed(), best=chance.random() < 0.4, asks=asks)


class ByHand:
    """What interpretations find by trying everything; hierarchies are followed by hand."""

    def __init__(self, kb):
        self.reference, self.kb = Reference(kb), kb
        self.nodes = [kb.node(int(place)) for place in kb.nodes()]
        self.triples = {(t.head, t.relation, t.tail) for node in range(len(kb)) for t in kb.triples(node)}
        self.keys = [node.key for node in self.nodes]
        self.upward = {row.name for row in kb.schema.relations if row.transitive}

    def named(self, constant):
        every = {node.id for node in self.nodes if node.name == constant.text}
        return {node for node in every if constant.type in (None, self.nodes[node].type)} or every

    def closure(self, nodes, relation, up):
        nodes = set(nodes)
        while (
            more := {(t if up else h) for h, r, t in self.triples if r == relation and (h if up else t) in nodes}
            - nodes
        ):
            nodes |= more
        return nodes

    def widened(self, query):
        """The query in which a name is a list of what it stands for in its place."""

        def end(edge, constant):
            nodes, row = self.named(constant), edge.relation
            if row in self.upward:
                nodes = self.closure(nodes, row, up=constant is edge.head)
            else:
                rows = self.kb.schema.relations
                for one in dict.fromkeys(
                    r.name for r in rows if r.transitive and constant.type in (None, r.head, r.tail)
                ):
                    nodes = self.closure(nodes, one, up=False)
            return Nodes(tuple(self.keys[node] for node in nodes))

        def changed(part):
            if not isinstance(part, Edge):
                return part
            head, tail = (one if isinstance(one, str) else end(part, one) for one in (part.head, part.tail))
            return replace(part, head=head, tail=tail)

        # `rewrite` changes inner parts first, so names inside edges are still names when their edge is changed.
        return rewrite(query, changed)

    def found(self, asked, kinds):
        query = self.widened(asked.query) if kinds else asked.query
        query = linked(query, lambda one: tuple(self.keys[node] for node in self.named(one)))
        plain = replace(query, order=(), first=None, ties=False)
        left = nodes = {row[0][1] for row in self.reference.rows(plain)}
        if not names_answers(asked):
            for constant in constants(asked.query):
                others = left - self.named(constant)
                left = others if others or repeated(asked.query.pattern.edges, constant) else left
        if query.order:
            among = Compare(Var("x"), "=", Nodes(tuple(self.keys[node] for node in left)))
            best = replace(query, pattern=requiring(query.pattern, among))
            return {self.keys[row[0][1]] for row in self.reference.rows(best)} if left else set()
        return {self.keys[node] for node in left & nodes}


def repeated(edges, constant):
    """Whether the answer and a name stand at the same end of the same relation of the same thing."""
    places = {(edge.relation, edge.tail, "head") for edge in edges if edge.head == constant}
    places |= {(edge.relation, edge.head, "tail") for edge in edges if edge.tail == constant}
    asked = {(edge.relation, edge.tail, "head") for edge in edges if edge.head == "x"}
    return bool(places & (asked | {(edge.relation, edge.head, "tail") for edge in edges if edge.tail == "x"}))


@dataclass(frozen=True)
class Said:
    """A parser that says what it was told."""

    asked: Interpretation

    def parse(self, question, schema):
        return Parse(self.asked, certainty=0.9)


def differences(tools, asked, by_hand, engines, kinds):
    """What the views of an answer say if it is not what trying everything finds."""
    answer = ask(create("focus_plus", {"kinds": kinds}), "?", replace(tools, parser=Said(asked)))
    expected = by_hand.found(asked, kinds)
    values = {node.key: node.attributes.get(asked.attribute or "") for node in by_hand.nodes}
    values = {key: value if value == value else None for key, value in values.items()}  # NaN is missing in queries
    if asked.asks == "value" and not any(values[key] not in (None, "") for key in expected):
        expected = set()
    told, frame, count = answer.to_dict(), answer.to_frame(), len(expected)
    views, wanted = {"matches": {one.node.key for one in answer.matches}}, {"matches": expected}
    if asked.asks in ("number", "truth"):
        views["value"], wanted["value"] = answer.value, count if asked.asks == "number" else count > 0
        if asked.compared is not None:
            wanted["value"] = any(by_hand.keys[node] in expected for node in by_hand.named(asked.compared))
    else:
        unsure = bool(asked.unexplained) and count > 0
        views["state"], wanted["state"] = answer.state, "maybe" if unsure else "found" if count else "not_found"
    wanted |= {"json": expected, "count": count, "frame": expected}
    views["json"] = {one["key"] for one in told["answers"] if one["group"] == "match"}
    views["count"] = told["matches"]
    if answer.rows:  # one for each node with a value
        views["frame"] = {row[0].key: str(row[1]) for row in answer.rows}
        wanted["frame"] = {key: value_text(values[key]) for key in expected if values[key] not in (None, "")}
    else:
        views["frame"] = set(frame[frame["group"] == "match"]["key"]) if "group" in frame else set(frame["key"][:count])
    number = re.match(r"([\d,]+) ", answer.text or "")
    if number and asked.asks in ("nodes", "number") and not asked.query.order:
        views["sentence"], wanted["sentence"] = int(number[1].replace(",", "")), count
    if asked.asks != "value":
        for language, engine in engines.items():
            if language not in answer.query:
                continue
            with contextlib.suppress(CannotPrintError):  # the other database takes too long
                views[language] = executed(engine, answer.query[language], asked)
            wanted[language] = wanted["value"] if asked.asks in ("number", "truth") else expected
    return [f"{name}: {views[name]} instead of {wanted[name]}" for name in views if views[name] != wanted[name]]


def executed(engine, text, asked):
    """What a printed query gives in another database."""
    if text.startswith("ASK"):
        return bool(engine.base.query(text))
    rows = engine.rows(text)
    if asked.asks == "nodes":
        return {row[0] for row in rows}
    return int(rows[0][0]) if asked.asks == "number" else rows[0][0] > 0


def with_texts(tables, chance):
    """The tables with a text for every node."""
    [nodes] = tables.nodes
    words = ("sold", "in", "small", "boxes", "to", "people", "who", "live", "near", "water", "and", "trees")
    texts = [" ".join(chance.choices(words, k=30)) for _ in range(nodes.table.num_rows)]
    return replace(tables, nodes=(replace(nodes, table=nodes.table.append_column("text", pa.array(texts))),))


def with_groups(tables, chance):
    """The tables with groups of nodes and edges, and what the caller may see: at least two nodes and an edge."""
    [nodes], [edges] = tables.nodes, tables.edges
    if chance.random() < 0.5:
        return tables, tables
    while True:
        given = [
            [chance.choice(([], [], [], ["staff"], ["board"], ["staff", "board"])) for _ in range(piece.table.num_rows)]
            for piece in (nodes, edges)
        ]
        allowed = [[not one or bool(CALLER & set(one)) for one in some] for some in given]
        keys = {key for key, seen in zip(nodes.table["key"].to_pylist(), allowed[0], strict=True) if seen}
        ends = zip(edges.table["head"].to_pylist(), edges.table["tail"].to_pylist(), allowed[1], strict=True)
        joined = [seen and head in keys and tail in keys for head, tail, seen in ends]
        if len(keys) > 1 and any(joined):
            break

    def marked(piece, groups):
        return replace(piece, table=piece.table.append_column(GROUPS, pa.array(groups, pa.list_(pa.string()))))

    def kept(piece, mask):
        table = piece.table.filter(pa.array(mask))
        empty = [
            name
            for name in (*KINDS, *EDGE_KINDS)
            if name in table.column_names and not table[name].is_valid().to_numpy().any()
        ]
        return replace(piece, table=table.drop_columns(empty))

    whole = replace(tables, nodes=(marked(nodes, given[0]),), edges=(marked(edges, given[1]),))
    return whole, replace(tables, nodes=(kept(nodes, allowed[0]),), edges=(kept(edges, joined),))


def compared(seed, count):
    """Yield form, whether anything is found, the query, and what differs, of `count` random interpretations."""
    chance, done = random.Random(seed), 0
    while done < count:
        with tempfile.TemporaryDirectory() as folder:
            whole, seen = with_groups(with_texts(random_tables(chance), chance), chance)
            build(whole, Path(folder) / "random.kb")
            build(seen, Path(folder) / "seen.kb")
            tools = clew.open(Path(folder) / "random.kb", embedder="hash", groups=CALLER).tools
            kb = OpenBase.open(Path(folder) / "seen.kb", embedder="hash").kb
            assert isinstance(kb, ArrayKnowledgeBase)
            by_hand = ByHand(kb)
            engines = {"sparql": Oxigraph(kb), "cypher": Kuzu(kb), "sql": DuckDB(kb)}
            for form, asked in islice(Maker(kb, chance).interpretations(), min(ROUNDS, count - done)):
                done += 1
                kinds = chance.random() < 0.8
                if asked.is_restricted and asked.asks == "nodes" and chance.random() < 0.2:
                    form, asked = "words for texts", replace(asked, unexplained=("sold in small boxes",))
                wrong = differences(tools, asked, by_hand, engines, kinds)
                yield form, bool(by_hand.found(asked, kinds)), f"kinds={kinds} {asked.asks} {asked.query}", wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5, help="how many differences to show")
    given = parser.parse_args()
    total, equal, telling = Counter(), Counter(), Counter()
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
