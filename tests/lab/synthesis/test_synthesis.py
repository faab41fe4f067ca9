"""A benchmark from any base: templates, sampling, wording, gates, files."""

import json
import random
from pathlib import Path

import pytest

import clew
from clew.answering.queries.parsing import parse
from clew.core.errors import InputError, SchemaError
from clew.core.schema import NodeType, Relation, Schema
from clew.lab.synthesis.benchmark import BenchmarkOptions, make_benchmark
from clew.lab.synthesis.enumerate import distinct_steps
from clew.lab.synthesis.forms import FORMS
from clew.lab.synthesis.grammar import active, passive, relational_question
from clew.lab.synthesis.records import violations
from clew.lab.synthesis.templates import load_templates, parse_templates
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import tables

MAG = [
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
    ("author", "affiliated_with", "institution"),
]
GENE, SIGN = "gene/protein", "effect/phenotype"
PRIME = [
    ("anatomy", "expression absent", GENE), ("anatomy", "expression present", GENE),
    ("anatomy", "parent-child", "anatomy"), ("biological_process", "interacts with", "exposure"),
    ("biological_process", "interacts with", GENE), ("cellular_component", "interacts with", GENE),
    ("disease", "associated with", GENE), ("disease", "contraindication", "drug"), ("disease", "indication", "drug"),
    ("disease", "parent-child", "disease"), ("disease", "phenotype absent", SIGN),
    ("disease", "phenotype present", SIGN), ("drug", "carrier", GENE), ("drug", "enzyme", GENE),
    ("drug", "side effect", SIGN), ("drug", "synergistic interaction", "drug"), ("drug", "target", GENE),
    ("drug", "transporter", GENE), (SIGN, "associated with", GENE), ("exposure", "interacts with", GENE),
    (GENE, "ppi", GENE), ("molecular_function", "interacts with", GENE), ("pathway", "interacts with", GENE),
    ("pathway", "parent-child", "pathway"),
]  # fmt: skip


def schema_of(rows):
    names = sorted({name for head, _, tail in rows for name in (head, tail)})
    relations = tuple(Relation(name, head, tail, 1) for head, name, tail in sorted(rows))
    return Schema(tuple(NodeType(name, 1) for name in names), relations)


@pytest.mark.parametrize(("name", "rows", "count"), [("mag", MAG, 7), ("prime", PRIME, 28)])
@pytest.mark.parametrize("doubled", [False, True])
def test_the_templates_of_stark_fit_its_schemas(name, rows, count, doubled):
    both = [*rows, *((tail, relation, head) for head, relation, tail in rows if head != tail)] if doubled else rows
    templates = load_templates(name, schema_of(both))
    assert len(templates) == count
    assert all(template.words for template in templates)
    kinds = [template.kind for template in templates]
    assert kinds.count("negation") == (name == "prime")
    assert sum(len({b.start.label for b in t.branches}) < len(t.branches) for t in templates) == (
        4 if count == 28 else 1
    )


def test_a_path_is_read_as_it_is_shown():
    text = '[[template]]\nname="x"\npaths=["gene#g -[a b]-> disease <-[c]- drug", "?sign -[!d]-> drug"]\n'
    (template,) = parse_templates(text)
    again = parse_templates(f'[[template]]\nname="x"\npaths={json.dumps(str(template).split(" & "))}\n')
    assert again == (template,)


@pytest.mark.parametrize(
    ("paths", "complaint"),
    [
        (["gene"], "is not a path"),
        (["gene -[r]-> a", "gene -[r]-> b"], "different types"),
        (["gene -[!r]-> a"], "without a forbidden edge"),
        (["gene <-[r]-> a"], "two directions"),
        (["gene -[!r]-> a -[s]-> b"], "only the last"),
        ([], "no path"),
    ],
)
def test_a_wrong_template_is_refused_with_the_reason(paths, complaint):
    with pytest.raises(InputError, match=complaint):
        parse_templates(f'[[template]]\nname="x"\npaths={json.dumps(paths)}\n')


def test_a_template_that_does_not_fit_the_schema_says_what_would(tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text('[[template]]\nname="x"\npaths=["paper -[writes]-> author"]\n')
    with pytest.raises(SchemaError, match=r"use author -\[writes\]-> paper"):
        load_templates(str(file), schema_of(MAG))


@pytest.mark.parametrize(
    ("label", "forward", "backward"),
    [
        ("has phenotype", "has phenotype X", "is a phenotype of X"),
        ("directed by", "is directed by X", "directed X"),
        ("written by", "is written by X", "wrote X"),
        ("release year", "has X as its release year", "is a release year of X"),
        ("in language", "is in language X", "is a language of X"),
        ("starred actors", "has X among its starred actors", "is among the starred actors of X"),
    ],
)
def test_relations_read_naturally_both_ways(label, forward, backward):
    assert active(label, "X").predicates[0] == forward
    assert passive(label, "X").predicates[0] == backward
    for clause in (active(label, "X", True), passive(label, "X", True)):
        assert all("not" in part.split() for part in (*clause.predicates, *clause.relatives))


def test_every_wording_of_a_template_names_its_entities():
    template = load_templates("prime", schema_of(PRIME))[1]
    names = {branch.start.label: f"Name{place}" for place, branch in enumerate(template.branches)}
    for seed in range(20):
        question = relational_question(template, names, schema_of(PRIME), random.Random(seed), ["a phrase"])
        assert all(part in question for part in ("Name0", "Name1", "“a phrase”"))
        assert "<" not in question


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> OpenBase:
    """A base with every kind of question: diseases share genes and signs, signs have texts."""
    rng = random.Random(7)
    words = [
        "curved",
        "swollen",
        "narrow",
        "pale",
        "tender",
        "rapid",
        "absent",
        "doubled",
        "hollow",
        "rigid",
        "brittle",
    ]
    parts = ["bone", "nail", "vessel", "nerve", "tendon", "lens", "valve", "gland", "joint", "membrane", "duct"]
    nodes = [(f"G{n}", "gene", f"GEN{n}", [], "") for n in range(40)]
    nodes += [(f"D{n}", "disease", f"Syndrome {n}", [], "") for n in range(60)]
    for n in range(60):
        said = " ".join(f"{rng.choice(words)} {rng.choice(parts)} near the {rng.choice(parts)}." for _ in range(4))
        nodes.append((f"S{n}", "sign", f"Sign {n}", [f"Mark {n}"], said))
    edges = []
    for n in range(60):
        edges += [(f"D{n}", "has_sign", f"S{m}", None) for m in rng.sample(range(60), 6)]
        edges += [(f"G{m}", "causes", f"D{n}", None) for m in rng.sample(range(40), 2)]
    edges += [(tail, "sign_of", head, None) for head, name, tail, _ in edges if name == "has_sign"]
    folder = tmp_path_factory.mktemp("synth") / "small.kb"
    build(tables(nodes, edges), folder)
    return OpenBase.open(folder, embedder="hash")


def read_all(folder: Path) -> dict[str, bytes]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != "progress.jsonl"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_a_benchmark_passes_its_gates_and_is_the_same_for_a_seed(small: OpenBase, tmp_path: Path):
    report = make_benchmark(small, tmp_path / "a", BenchmarkOptions(60, seed=3))
    make_benchmark(small, tmp_path / "b", BenchmarkOptions(60, seed=3))
    make_benchmark(small, tmp_path / "c", BenchmarkOptions(60, seed=4))
    assert read_all(tmp_path / "a") == read_all(tmp_path / "b")
    assert (tmp_path / "a/questions.jsonl").read_text() != (tmp_path / "c/questions.jsonl").read_text()
    rows = [json.loads(line) for line in (tmp_path / "a/questions.jsonl").read_text().splitlines()]
    assert len(rows) == 60
    assert not any(violations(small.kb, rows).values())
    assert {row["type"] for row in rows} == {"1-hop", "2-hop", "intersection", "negation", "metapath-and", "textual"}
    assert any(row["textual"] and len(row["answers"]) < len(row["relational_set"]) for row in rows)
    for row in rows:
        assert str(parse(row["query"])) == row["query"]
        assert all(row["paths"][key] for key in row["answers"])
        assert all(topic in row["question"] for topic in row["topics"])
    assert report.acceptance["gold nodes that passed"] > 0


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> OpenBase:
    """A base whose nodes have numbers, texts and truth values."""
    rng, folder = random.Random(1), tmp_path_factory.mktemp("forms")
    nodes = [{"key": f"p{n}", "type": "person", "name": f"Person {n}", "born": 1900 + n} for n in range(30)]
    nodes += [
        {
            "key": f"f{n}",
            "type": "film",
            "name": f"Film {n}",
            "minutes": rng.randint(60, 200),
            "genre": rng.choice(["drama", "comedy", "crime"]),
            "silent": rng.random() < 0.3,
        }
        for n in range(80)
    ]
    edges = [
        {"head": f"f{n}", "relation": relation, "tail": f"p{m}"}
        for n in range(80)
        for relation, most in (("directed_by", 1), ("starring", 3))
        for m in rng.sample(range(30), most)
    ]
    for name, rows in (("nodes", nodes), ("edges", edges)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    clew.build([folder / "nodes.jsonl", folder / "edges.jsonl"], folder / "films.kb")
    return OpenBase.open(folder / "films.kb", embedder="hash")


def test_questions_of_every_form_pass_their_gates(films: OpenBase, tmp_path: Path):
    make_benchmark(films, tmp_path / "a", BenchmarkOptions(52, ("1-hop", *FORMS), seed=2))
    make_benchmark(films, tmp_path / "b", BenchmarkOptions(52, ("1-hop", *FORMS), seed=2))
    assert read_all(tmp_path / "a") == read_all(tmp_path / "b")
    rows = [json.loads(line) for line in (tmp_path / "a/questions.jsonl").read_text().splitlines()]
    assert {row["type"] for row in rows} == {"1-hop", *FORMS}
    assert not any(violations(films.kb, rows).values())
    base = clew.open(films.kb.folder)
    for row in rows:
        answer = base.query(row["query"])
        if "value" in row:
            assert answer.value == pytest.approx(row["value"])
        else:
            assert {one.node.key for one in answer.matches} == set(row["answers"])
    changed = [row | {"value": -1} if "value" in row else row for row in rows]
    failed = violations(films.kb, changed)["the gold query gives exactly the relational set"]
    assert len(failed) == sum("value" in row for row in rows) > 0


def test_a_kind_that_is_none_is_refused_with_all_kinds(films: OpenBase, tmp_path: Path):
    with pytest.raises(InputError, match="textual, number"):
        make_benchmark(films, tmp_path / "a", BenchmarkOptions(5, ("numbers",)))


def naive(kb, row) -> set[str]:
    """The answers of a metapath by walking over all triples, without the library's own execution."""
    (template,) = parse_templates(f'[[template]]\nname="x"\npaths={json.dumps(row["metapath"].split(" & "))}\n')
    triples = {(t.head, t.relation, t.tail) for node in kb.nodes() for t in kb.triples(node)}
    starts = iter([kb.find(one["key"]) for one in row["entities"]])
    by_label: dict[str, int] = {}
    found = {node for node in range(kb.count) if kb.type_of(node) == template.target}
    for branch in sorted(template.branches, key=lambda branch: branch.negated):
        label = branch.start.label
        if branch.start.anything:
            here = {node for node in range(kb.count) if kb.type_of(node) == branch.start.type}
        else:
            here = {by_label[label] if label in by_label else by_label.setdefault(label, next(starts))}
        for step in branch.steps:
            pairs = [(h, t) if step.direction == "out" else (t, h) for h, r, t in triples if r == step.relation]
            here = {far for near, far in pairs if near in here and kb.type_of(far) == step.target}
        found = found - here if branch.negated else found & here
    return {kb.refs([node])[0].key for node in found}


def test_gold_sets_are_what_a_walk_over_all_triples_gives(small: OpenBase, tmp_path: Path):
    make_benchmark(small, tmp_path, BenchmarkOptions(60, seed=5))
    for line in (tmp_path / "questions.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert naive(small.kb, row) == set(row["relational_set"]), row["metapath"]


def test_templates_of_a_file_are_asked_in_its_words_and_with_its_constants(small: OpenBase, tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text(
        """[[template]]
        name = "mine"
        words = ["Which disease has <sign> beside Sign 3?"]
        paths = ["sign <-[has_sign]- disease", 'sign#fixed="Sign 3" <-[has_sign]- disease']
        """
    )
    make_benchmark(small, tmp_path / "out", BenchmarkOptions(5, templates=str(file)))
    rows = [json.loads(line) for line in (tmp_path / "out/questions.jsonl").read_text().splitlines()]
    assert rows
    assert all(row["question"].endswith("beside Sign 3?") and "Sign 3" in row["topics"] for row in rows)


def test_the_gates_catch_what_they_are_for(small: OpenBase, tmp_path: Path):
    make_benchmark(small, tmp_path, BenchmarkOptions(6))
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    name = small.kb.node(small.kb.find(rows[0]["answers"][0])).name
    spoilt = [
        {**rows[0], "question": f"Is it {name}?"},
        {**rows[1], "relational_set": rows[1]["relational_set"][1:]},
        {**rows[2], "answers": []},
        {**rows[3], "question": rows[4]["question"]},
        rows[4],
    ]
    found = list(violations(small.kb, spoilt).values())
    assert [bool(ids) for ids in found[:1]] == [True]
    assert all(found[place] for place in (0, 2, 3, 4))


def test_splits_share_no_template_and_no_entity(small: OpenBase, tmp_path: Path):
    make_benchmark(small, tmp_path, BenchmarkOptions(60))
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "questions.jsonl").read_text().splitlines())}
    for folder, members in (
        ("split", lambda row: [row["id"]]),
        ("split-by-template", lambda row: [row["template"]]),
        ("split-by-entity", lambda row: [one["key"] for one in row["entities"]]),
    ):
        parts = [(tmp_path / folder / f"{part}.index").read_text().split() for part in ("train", "val", "test")]
        assert sorted(id_ for part in parts for id_ in part) == sorted(rows)
        owned = [{member for id_ in part for member in members(rows[id_])} for part in parts]
        assert not owned[0] & owned[1]
        assert not owned[0] & owned[2]
        assert not owned[1] & owned[2]


def test_a_relation_and_its_stored_inverse_are_one(small: OpenBase):
    steps = list(distinct_steps(small.kb))
    between = {(step.source, step.target) for step in steps}
    assert len(steps) == len(between) == 4
