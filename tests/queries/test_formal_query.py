"""The SPARQL and Cypher text of a solved query finds the same nodes in independent databases."""

import pytest

from clew.core.query import Constant, Count, Triplet, TripletQuery, Variable
from clew.index.protocol import Link
from clew.kb.iris import node_iri, relation_iri, type_iri
from clew.queries.formal import as_block, cypher, sparql
from clew.queries.grounding import Grounding, pose
from clew.queries.solutions import solve
from clew.queries.witnesses import witnesses
from conftest import NODES, build_graph, tables

kuzu = pytest.importorskip("kuzu")
ox = pytest.importorskip("pyoxigraph")

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
def base(tmp_path_factory):
    return build_graph(tables(edges=EDGES), tmp_path_factory.mktemp("formal") / "t.kb")


@pytest.fixture(scope="module")
def rdf():
    store = ox.Store()
    node = {key: ox.NamedNode(node_iri(key)) for key, *_ in NODES}
    a = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    store.extend(ox.Quad(node[key], a, ox.NamedNode(type_iri(kind))) for key, kind, *_ in NODES)
    store.extend(ox.Quad(node[h], ox.NamedNode(relation_iri(r)), node[t]) for h, r, t, _ in EDGES)
    return store


@pytest.fixture(scope="module")
def property_graph():
    database = kuzu.Connection(kuzu.Database(":memory:"))
    kinds = {key: kind for key, kind, *_ in NODES}
    for kind in sorted(set(kinds.values())):
        database.execute(f"CREATE NODE TABLE {kind}(key STRING PRIMARY KEY)")
    for relation, head, tail in sorted({(r, kinds[h], kinds[t]) for h, r, t, _ in EDGES}):
        database.execute(f"CREATE REL TABLE {relation}(FROM {head} TO {tail})")
    for key, kind in kinds.items():
        database.execute(f"CREATE (:{kind} {{key: '{key}'}})")
    for head, relation, tail, _ in EDGES:
        ends = f"(a:{kinds[head]} {{key: '{head}'}}), (b:{kinds[tail]} {{key: '{tail}'}})"
        database.execute(f"MATCH {ends} CREATE (a)-[:{relation}]->(b)")
    return database


def grounded(kb, query):
    keys = {name.casefold(): key for key, _, name, aliases, _ in NODES for name in (name, *aliases)}
    links = {c: (Link(kb.find(keys[c.text.casefold()]), c.text, "exact", 1.0),) for c in query.constants()}
    return {constant: Grounding(constant, found) for constant, found in links.items()}


@pytest.mark.parametrize("name", QUERIES)
def test_the_text_of_a_query_finds_what_solving_it_finds(name, base, rdf, property_graph):
    query = QUERIES[name]
    groundings = grounded(base, query)
    problem = pose(query, groundings, base, edge_types="strict", direction="strict", hierarchical=True)
    found = {ref.key for ref in base.refs(solve(base, problem).target.array)}
    assert found
    block = as_block(query, problem, groundings, base.schema, hierarchical=True)
    target = query.target.name
    rows = rdf.query(sparql(block, target, base))
    assert {row[0].value for row in rows} == {node_iri(key) for key in found}
    assert {row[0] for row in property_graph.execute(cypher(block, target, base))} == found


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
