"""Random queries of every form over random graphs: the product, SPARQL on Oxigraph and Cypher on Kuzu must agree.

    python benchmarks/certificates.py -n 10000 --seed 0

Prints for each form how many certificates were carried out, how many gave what the product gave, and how many gave
something at all; those that differ are shown. Needs pyoxigraph and kuzu, which the development group has.
"""

import argparse
import datetime
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from operator import and_
from pathlib import Path
from typing import Any

import kuzu
import pyarrow as pa
import pyoxigraph as ox

from clew.answering.methods.focus.execution import execute
from clew.answering.queries.certificates import certificate
from clew.answering.queries.claims import Claim, as_block, claim_of_paths
from clew.answering.queries.grounding import ground, pose
from clew.answering.queries.problem import as_days
from clew.answering.queries.relation_paths import Explorer, RelationPath
from clew.answering.queries.solutions import solve
from clew.core.query import Best, Condition, Constant, Count, Triplet, TripletQuery, Variable
from clew.core.types import NodeSet
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.rdf_export import node_iri, statements
from clew.store.graph.tables import Piece, Problems, Tables
from clew.store.index.protocol import Link

TYPES = ("drug", "disease", "side effect")
RELATIONS = ("treats", "associated_with", "is_a", "author")
NODES, QUERIES = 14, 90
"""How many nodes a graph has at most, and how many queries are made for each."""
KINDS = {
    "dose": pa.int64(),
    "mass": pa.float64(),
    "approved": pa.date32(),
    "seen": pa.timestamp("us"),
    "rare": pa.bool_(),
    "colour": pa.string(),
    "trade names": pa.list_(pa.string()),
    "price": pa.string(),
}
ORDERED = ("dose", "mass", "approved", "seen", "price")
COLOURS = ("red", "Red", "blue", 'gr"een\\', "ÄÖ", "dark blue")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


# Graphs


def random_tables(chance: random.Random) -> Tables:
    """A small typed graph: parallel edges, shared names, values that are missing."""
    size = chance.randint(4, NODES)
    nodes = [_node(chance, place) for place in range(size)]
    edges = []
    for _ in range(chance.randint(size // 2, 3 * size)):
        head, tail = (chance.randrange(size) for _ in range(2))
        relation = chance.choice(RELATIONS)
        if relation == "is_a" and head <= tail:  # a hierarchy has no cycles
            continue
        edges.append({"head": nodes[head]["key"], "relation": relation, "tail": nodes[tail]["key"]})
    edges.append({"head": nodes[1]["key"], "relation": "treats", "tail": nodes[0]["key"]})
    schema = pa.schema([("key", pa.string()), ("type", pa.string()), ("name", pa.string()), *KINDS.items()])
    text = pa.schema([(name, pa.string()) for name in ("head", "relation", "tail")])
    pieces = pa.Table.from_pylist(nodes, schema), pa.Table.from_pylist(edges, text)
    return Tables((Piece(pieces[0], "nodes"),), (Piece(pieces[1], "edges"),))


def _node(chance: random.Random, place: int) -> dict[str, Any]:
    day = datetime.date(chance.randint(1998, 2001), chance.choice((1, 2, 12)), chance.choice((1, 15, 31, 28)) % 28 + 1)
    values: dict[str, Any] = {
        "dose": chance.randint(-1, 4),
        "mass": chance.choice((0.1, 0.5, 2.0, 3.25, float("nan"), float("inf"))),
        "approved": day,
        "seen": datetime.datetime.combine(day, datetime.time(chance.choice((0, 12)), 30)),
        "rare": chance.random() < 0.5,
        "colour": chance.choice(COLOURS),
        "trade names": chance.sample(COLOURS, chance.randint(1, 2)),
        "price": chance.choice(("1,200", "90", "9.5", "free", "-3")),
    }
    kept = {name: value for name, value in values.items() if chance.random() < 0.7}
    key = chance.choice(("n{}", "http://x.org/n{}", "n {}'s", 'n"{}\\')).format(place)
    name = f"m.0ab{place}" if chance.random() < 0.15 else f"name{chance.randint(0, place)}"
    return {"key": key, "type": chance.choice(TYPES), "name": name, **kept}


class ByName:
    """Finds nodes by their exact name: what a name index does first."""

    def __init__(self, kb: ArrayKnowledgeBase) -> None:
        self.refs = kb.refs(kb.nodes().array)

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        found = [ref for ref in self.refs if ref.name == text and type in (None, ref.type)]
        return tuple(Link(ref.id, text, "exact", 1.0) for ref in found[:k])

    spelled = link

    def mentions(self, text: str, *, fuzzy: bool = True) -> tuple[()]:  # noqa: ARG002 - nothing is mentioned
        return ()

    def has_word(self, word: str) -> bool:  # noqa: ARG002 - no texts are read
        return False


# Queries


@dataclass
class Maker:
    """Makes queries whose parts are likely to be there."""

    kb: ArrayKnowledgeBase
    chance: random.Random
    stands_for: dict[str, int] = field(default_factory=dict)
    """Variable → a node that it could stand for: what starts at it likely has an answer."""

    def constant(self, kind: str | None = None) -> Constant:
        refs = [ref for ref in self.kb.refs(self.kb.nodes().array) if kind in (None, ref.type)]
        if not refs:
            return Constant("nothing", kind)
        ref = self.chance.choice(refs)
        return Constant(ref.name, self.chance.choice((ref.type, None)))

    def variable(self, name: str, kind: str | None = None) -> Variable:
        return Variable(name, kind if kind is not None and self.chance.random() < 0.8 else None)

    def chain(self, start: Variable, length: int, mark: str = "") -> list[Triplet]:
        """Edges from a variable, each in either direction, that end in a constant; mostly a walk that there is."""
        if start.name not in self.stands_for:
            nodes = [int(node) for node in self.kb.nodes(start.type)]
            self.stands_for[start.name] = self.chance.choice(nodes)
        triplets, here, node = [], start, self.stands_for[start.name]
        for place in range(length):
            walks = self.kb.triples(node)
            if not walks:
                break
            walk = self.chance.choice(walks)
            out = walk.head == node
            [ref] = self.kb.refs([walk.tail if out else walk.head])
            node = ref.id
            last = place == length - 1
            other = self.variable(f"{mark}{place} node", ref.type) if not last else Constant(ref.name, ref.type)
            if last and self.chance.random() < 0.2:
                other = self.constant(ref.type)
            relation = None if self.chance.random() < 0.05 else walk.relation
            triplets.append(Triplet(here, relation, other) if out else Triplet(other, relation, here))
            here = other if isinstance(other, Variable) else here
        return triplets

    def target(self) -> Variable:
        return Variable("the answer", self.chance.choice((*(one.name for one in self.kb.schema.node_types), None)))

    def typed(self) -> Variable:
        return Variable("the answer", self.chance.choice([one.name for one in self.kb.schema.node_types]))

    def condition(self, variable: Variable) -> Condition:
        attribute = self.chance.choice(list(KINDS))
        wanted = {
            "dose": (0, 2, 2.0, 1.5, "3", "many"),
            "mass": (0.1, 2, "0.5", 3.25),
            "approved": ("1999", "2000-02", "1999-12-15", 2000, datetime.date(1999, 1, 2), "soon"),
            "seen": ("1999", "2000-12", "2000-02-16"),
            "rare": (True, False, "true", "no"),
        }.get(attribute, (*COLOURS, "e", 90, 9.5))
        comparisons = (*COMPARISONS, "contains")
        return Condition(variable.name, attribute, self.chance.choice(comparisons), self.chance.choice(wanted))  # type: ignore[arg-type]

    def best(self) -> Best:
        most = self.chance.random() < 0.5
        if self.chance.random() < 0.5:
            return Best(most, self.chance.choice(ORDERED))
        relation, of = self.chance.choice(self.kb.schema.relation_names), self.chance.choice(self.kb.schema.type_names)
        is_head, is_typed = self.chance.random() < 0.5, self.chance.random() < 0.5
        return Best(most, relation=relation, is_head=is_head, of=of if is_typed else None)

    def some(self, target: Variable) -> TripletQuery:
        """A query that likely has several answers."""
        match self.chance.randrange(4):
            case 0:
                return TripletQuery((), target)
            case 1:
                return TripletQuery(tuple(self.chain(target, 1)), target)
            case 2:
                return TripletQuery((), target, (self.condition(target),))
            case _:
                return self.either()

    def either(self) -> TripletQuery:
        target = self.typed()
        first, *others = (TripletQuery(tuple(self.chain(target, self.chance.randint(1, 2))), target) for _ in range(2))
        return replace(first, either=tuple(others))

    def absent(self, target: Variable) -> TripletQuery:
        match self.chance.randrange(4):
            case 0:
                forbidden = self.chain(target, 1)
            case 1:
                forbidden = self.chain(target, 2)
            case 2:
                other = self.variable("none", self.typed().type)
                forbidden = [Triplet(target, self.chance.choice(self.kb.schema.relation_names), other)]
            case _:
                first, *rest = self.chain(target, 2, "n") or [Triplet(target, None, Variable("n0 node"))]
                more = self.chain(self.variable("n0 node"), 1)
                counts = (Count("n0 node", "m", self.chance.choice(COMPARISONS), 1),)  # type: ignore[arg-type]
                rows = [Triplet(self.variable("n0 node"), None, Variable("m"))]
                return TripletQuery((replace(first, negated=True), *rest, *more, *rows), target, counts=counts)
        required = self.chain(target, 1, "r") if self.chance.random() < 0.5 else []
        return TripletQuery((*required, *(replace(one, negated=True) for one in forbidden)), target)

    def counted(self, target: Variable) -> TripletQuery:
        triplets = self.chain(target, self.chance.randint(2, 3)) or [Triplet(target, None, self.constant())]
        triplets[-1] = self._open(triplets[-1])
        names = [name for name in TripletQuery(tuple(triplets), target).variables() if name != target.name]
        pair = self.chance.sample([target.name, *names], 2)
        more = self.chain(target, 1) if self.chance.random() < 0.3 else []
        counts = (Count(*pair, self.chance.choice(COMPARISONS), self.chance.randint(1, 3)),)  # type: ignore[arg-type]
        return TripletQuery((*triplets, *more), target, counts=counts)

    def _open(self, triplet: Triplet) -> Triplet:
        """The same edge to anything."""
        if isinstance(triplet.head, Constant):
            return replace(triplet, head=Variable("end"))
        return replace(triplet, tail=Variable("end"))

    def cyclic(self, target: Variable) -> TripletQuery:
        one, two = Variable("a"), Variable("b")
        relations = [self.chance.choice((*self.kb.schema.relation_names, None)) for _ in range(3)]
        ends = [(target, one), (one, two), (two, target)]
        turned = [pair if self.chance.random() < 0.5 else pair[::-1] for pair in ends]
        return TripletQuery(tuple(Triplet(h, r, t) for (h, t), r in zip(turned, relations, strict=True)), target)

    def mixed(self) -> TripletQuery:
        """Anything with anything."""
        target, chance = self.target(), self.chance
        query = chance.choice((self.some, self.absent, self.counted, self.cyclic))(target)
        if chance.random() < 0.4:
            query = replace(query, conditions=(*query.conditions, self.condition(query.target)))
        if chance.random() < 0.3:
            query = replace(query, among=tuple(self.constant(target.type) for _ in range(3)))
        if chance.random() < 0.3:
            other = query.target if chance.random() < 0.5 else self.target()
            others = (self.absent(other), self.counted(query.target))
            query = replace(query, either=others[: chance.randint(1, 2)])
        if chance.random() < 0.4:
            query = replace(query, best=self.best())
        return replace(query, asks=chance.choice(("nodes", "nodes", "number", "truth")))


def queries(kb: ArrayKnowledgeBase, chance: random.Random) -> Iterator[tuple[str, TripletQuery]]:
    """One query of each form, again and again."""
    make = Maker(kb, chance)
    while True:
        make.stands_for.clear()
        target = make.target()
        for length in (1, 2, 3):
            yield f"chain of {length}", TripletQuery(tuple(make.chain(target, length)), target)
        both = (*make.chain(target, 1, "a"), *make.chain(target, chance.randint(1, 2), "b"))
        yield "intersection", TripletQuery(both, target)
        yield "either, or", make.either()
        yield "negation", make.absent(target)
        yield "condition", TripletQuery((), target, (make.condition(target),))
        chain = make.chain(target, 2)
        far = list(TripletQuery(tuple(chain), target).variables().values())[-1]
        yield "condition on the way", TripletQuery(tuple(chain), target, (make.condition(far),))
        low, high = (Condition("the answer", "dose", sign, chance.randint(0, 3)) for sign in (">=", "<="))
        yield "between", TripletQuery((), target, (low, high))
        yield "count of partners", make.counted(target)
        yield "cycle", make.cyclic(target)
        among = tuple(make.constant(target.type) for _ in range(chance.randint(1, 3)))
        yield "among", replace(make.some(target), among=among)
        yield "best", replace(make.some(target), best=make.best())
        yield "number", replace(make.some(target), asks="number")
        yield "truth", replace(make.some(target), asks="truth")
        valued = chance.choice(list(KINDS))
        yield "value", replace(make.some(target), asks="value", attribute=valued)
        among = tuple(make.constant() for _ in range(2))
        compared = TripletQuery(
            (), Variable("x"), among=among, best=Best(chance.random() < 0.5, chance.choice(ORDERED))
        )
        yield "comparison", compared
        yield "comparison, truth", replace(compared, asks="truth")
        yield "mixed", make.mixed()
        yield "mixed", make.mixed()


def paths(kb: ArrayKnowledgeBase, chance: random.Random) -> Iterator[tuple[str, list[RelationPath]]]:
    """Relation paths, and pairs of them that may lead to the same nodes."""
    explorer = Explorer(kb)

    def path(longest: int) -> RelationPath | None:
        named = kb.refs([chance.randrange(len(kb))])[0].name
        found = RelationPath(NodeSet.of([ref.id for ref in kb.refs(kb.nodes().array) if ref.name == named]))
        for _ in range(chance.randint(1, longest)):
            leads = explorer.leads(explorer.execute(found))
            found = found.then(chance.choice(leads).hop) if leads else found
        return found if found.hops else None

    while True:
        drawn = [one for one in (path(3), path(2), path(2)) if one is not None]
        yield from (("relation path", [one]) for one in drawn[:1])
        yield from (("two relation paths", drawn[1:]) for _ in range(len(drawn) > 2))


# Databases


def rdf_of(kb: ArrayKnowledgeBase) -> ox.Store:
    """The base's RDF export in a store."""
    store = ox.Store()
    store.load("\n".join(f"{one} ." for one in statements(kb)).encode(), format=ox.RdfFormat.N_TRIPLES)
    return store


COLUMNS = {"integer": "INT64", "number": "DOUBLE", "boolean": "BOOLEAN", "list": "STRING[]", "text": "STRING"}


def property_graph_of(kb: ArrayKnowledgeBase) -> kuzu.Connection:
    """A table for each type, with the attributes it has, and one for each relation."""
    database = kuzu.Connection(kuzu.Database(":memory:", buffer_pool_size=64 << 20, max_num_threads=1))
    schema = kb.schema
    for kind in schema.node_types:
        columns = "".join(f", `{name}` {_column(kb, name)}" for name in kind.attributes)
        database.execute(f"CREATE NODE TABLE `{kind.name}`(key STRING PRIMARY KEY, name STRING{columns})")
    pairs = ", ".join(f"FROM `{a}` TO `{b}`" for a in schema.type_names for b in schema.type_names)
    for relation in schema.relation_names:
        database.execute(f"CREATE REL TABLE `{relation}`({pairs})")
    nodes = [kb.node(int(place)) for place in kb.nodes()]
    for node in nodes:
        values = {"key": node.key, "name": node.name}
        values |= {name: _held(value, schema.attribute_types[name]) for name, value in node.attributes.items()}
        values = {name: value for name, value in values.items() if value == value}
        given = ", ".join(f"`{name}`: $p{place}" for place, name in enumerate(values))
        database.execute(f"CREATE (:`{node.type}` {{{given}}})", {f"p{n}": v for n, v in enumerate(values.values())})
    edges = kb.edges(kb.nodes(), None, "out")
    for head, code, tail in zip(edges.heads, edges.relations, edges.tails, strict=True):
        a, b, relation = nodes[head], nodes[tail], schema.relation_names[code]
        ends = f"(a:`{a.type}` {{key: $a}}), (b:`{b.type}` {{key: $b}})"
        database.execute(f"MATCH {ends} CREATE (a)-[:`{relation}`]->(b)", {"a": a.key, "b": b.key})
    return database


def _held(value: Any, kind: str) -> Any:
    """A value as a property graph holds it: it has no dates of which only the year is known."""
    days = as_days(value) if kind == "date" and isinstance(value, str) else None
    return value if days is None else days[0]


def _column(kb: ArrayKnowledgeBase, name: str) -> str:
    kind = kb.schema.attribute_types[name]
    if kind == "date":
        return "TIMESTAMP" if pa.types.is_timestamp(kb.columns().schema.field(name).type) else "DATE"
    return COLUMNS[kind]


# Agreement


@dataclass(frozen=True)
class Databases:
    kb: ArrayKnowledgeBase
    rdf: ox.Store
    graph: kuzu.Connection

    @classmethod
    def of(cls, tables: Tables, folder: Path) -> "Databases":
        folder.mkdir(exist_ok=True)
        kb = ArrayKnowledgeBase.staged(folder, write_graph(tables, folder, Problems(False)).to_json())
        return cls(kb, rdf_of(kb), property_graph_of(kb))

    def differences(self, claim: Claim, expected: Any) -> list[str]:
        """What the two certificates of a claim give where it is not what is expected."""
        written = certificate(claim, self.kb)
        found = []
        for language, run in (("sparql", self._sparql), ("cypher", self._cypher)):
            try:
                given: Any = run(written[language], claim)
            except Exception as error:
                given = f"{type(error).__name__}: {error}"
            if given != expected:
                found.append(f"{written['text']}\n{written[language]}\ngives {given}, expected {expected}")
        return found

    def _sparql(self, text: str, claim: Claim) -> Any:
        rows = self.rdf.query(text)
        if claim.asks == "truth":
            return bool(rows)
        if claim.asks == "number":
            return int(next(iter(rows))[0].value)
        keys = {node_iri(ref.key): ref.key for ref in self.kb.refs(self.kb.nodes().array)}
        if claim.asks == "value":
            return {(keys[row[0].value], _plain(row[1].value)) for row in rows}
        return {keys[row[0].value] for row in rows}

    def _cypher(self, text: str, claim: Claim) -> Any:
        rows = list(self.graph.execute(text))
        if claim.asks in ("truth", "number"):
            return rows[0][0]
        if claim.asks == "value":
            return {
                (key, _plain(part)) for key, value in rows for part in (value if isinstance(value, list) else [value])
            }
        return {row[0] for row in rows}

    def expected(self, claim: Claim, nodes: Any, value: Any) -> Any:
        """What the product gives, in the form in which databases give it."""
        if claim.asks in ("truth", "number"):
            return value
        keys = [ref.key for ref in self.kb.refs(nodes.array)]
        if claim.asks == "value":
            stored = zip(keys, self.kb.values(nodes, claim.attribute or ""), strict=True)
            pairs = ((key, part) for key, value in stored for part in _parts(value))
            return {(key, _plain(part)) for key, part in pairs if part is not None and part == part}
        return set(keys)


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _plain(value: Any) -> str:
    """A value as text, the same from every database."""
    if isinstance(value, datetime.date):
        value = value.isoformat()
    try:
        return repr(float(value)) if not isinstance(value, bool) else str(value).lower()
    except ValueError:
        return str(value)


def carried_out(seed: int, count: int) -> Iterator[tuple[str, Any, list[str]]]:
    """`count` certificates over random graphs: their form, what is right, and what is wrong."""
    chance, done = random.Random(seed), 0
    while done < count:
        with tempfile.TemporaryDirectory() as folder:
            databases = Databases.of(random_tables(chance), Path(folder) / "random.kb")
            for form, claim, expected in islice(claims(databases, chance), min(QUERIES, count - done)):
                yield form, expected, databases.differences(claim, expected)
                done += 1


def claims(databases: Databases, chance: random.Random) -> Iterator[tuple[str, Claim, Any]]:
    """What the product claims, and what it gives: queries of every form, and paths among them."""
    kb, names, explorer = databases.kb, ByName(databases.kb), Explorer(databases.kb)
    walks = paths(kb, chance)
    for place, (form, query) in enumerate(queries(kb, chance)):
        for kinds in (True, False):
            result = execute(kb, names, query, kinds=kinds)
            wide = "" if result.nodes == result.direct else ", with kinds"
            yield f"{form}{wide}", result.claim, databases.expected(result.claim, result.nodes, result.value)
        if place % 4 == 3:
            yield "direction ignored", *undirected(databases, names, query, chance)
        if place % 8 == 0:
            kind, walked = next(walks)
            ends = reduce(and_, map(explorer.execute, walked))
            if chance.random() < 0.2:  # where single walks are followed, not all ends are looked at
                ends = NodeSet(ends.array[::2])
            claim = claim_of_paths(explorer, walked, ends)
            yield kind, claim, databases.expected(claim, ends, None)


def undirected(databases: Databases, names: ByName, query: TripletQuery, chance: random.Random) -> tuple[Claim, Any]:
    """A query as 4StepFocus solves it: edges in any direction, mostly of any relation."""
    kb, groundings = databases.kb, ground(query, names)
    problem = pose(query, groundings, kb, edge_types=chance.choice(("ignore", "prefer")), direction="any")
    solved = solve(kb, problem)
    claim = Claim((as_block(query, problem, groundings, kb.schema, hierarchical=False),))
    nodes = kb.nodes(query.target.type) if solved.target is None else solved.target
    return claim, databases.expected(claim, nodes, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5, help="how many differences to show")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    telling: Counter[str] = Counter()
    shown = 0
    for form, expected, wrong in carried_out(given.seed, given.n):
        total[form] += 1
        equal[form] += not wrong
        telling[form] += bool(expected)
        if wrong and shown < given.show:
            shown += 1
            print(f"--- {form}", *wrong, sep="\n")
    for form in total:
        print(f"{form:24}{total[form]:7}{equal[form]:7}{telling[form]:7}")
    print(f"{'all':24}{total.total():7}{equal.total():7}{telling.total():7}")


if __name__ == "__main__":
    main()
