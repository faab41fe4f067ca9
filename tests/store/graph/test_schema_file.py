"""The schema file: what a user writes is laid over what was inferred, and mistakes are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.errors import NotFoundError, SchemaError
from clew.core.schema import NodeType, Relation, Schema
from clew.store.graph.schema_file import SchemaEdits, find_schema_file, parse_schema, read_schema_file, write_schema

SCHEMA = Schema(
    (NodeType("disease", 2, attributes=("onset", "code")), NodeType("gene/protein", 1)),
    (
        Relation("has phenotype", "disease", "gene/protein", 3),
        Relation("is_a", "disease", "disease", 1, transitive=True),
    ),
    {"onset": "text", "code": "integer"},
)


def test_edits_are_laid_over_the_inferred_schema():
    edits = parse_schema(
        """
        [types.disease]
        display = "rare disease"
        answer = false
        show = ["code"]
        [types."gene/protein"]
        description = "A gene."
        [relations."has phenotype"]
        display = "shows"
        inverse = "is shown by"
        [relations.is_a]
        transitive = false
        """
    )
    edited = edits.apply(SCHEMA)
    disease, gene = edited.node_types
    assert (disease.label, disease.answer, disease.attributes, disease.count) == ("rare disease", False, ("code",), 2)
    assert (gene.label, gene.description, gene.answer) == ("gene/protein", "A gene.", True)
    assert edited.answer_types == ("gene/protein",)
    assert (edited.relations[0].label, edited.relations[0].inverse) == ("shows", "is shown by")
    assert not edited.relations[1].transitive


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[types.illness]\nanswer = true", "node type 'illness': use disease, gene/protein"),
        ("[relations.causes]\ndisplay = 'x'", "relation 'causes': use has phenotype, is_a"),
        ("[types.disease]\nshow = ['age']", "'age': use onset, code"),
        ("[types.disease]\ncolour = 'red'", "types.disease.colour: .*display, description, answer, show"),
        ("[types.disease]\nanswer = 'yes'", "types.disease.answer: .*boolean"),
        ("[kinds.disease]\nanswer = true", "kinds: .*types, relations"),
        ("[types.disease\n", "not TOML"),
    ],
)
def test_mistakes_in_a_schema_file_are_named(text, message):
    with pytest.raises(SchemaError, match=message):
        parse_schema(text).apply(SCHEMA)


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)


@given(
    st.lists(NAME, min_size=1, max_size=3, unique=True), st.lists(NAME, max_size=3, unique=True), NAME, st.booleans()
)
def test_a_written_schema_changes_nothing_when_applied(types, relations, words, flag):
    schema = Schema(
        tuple(NodeType(name, 1, words, words, flag, ("a",)) for name in types),
        tuple(Relation(name, types[0], types[-1], 1, words, words, words, flag) for name in relations),
        {"a": "text"},
    )
    assert parse_schema(write_schema(schema)).apply(schema) == schema


def test_the_schema_file_beside_the_sources_is_found(tmp_path):
    assert find_schema_file([tmp_path / "nodes.csv"]) is None
    (tmp_path / "schema.toml").write_text("[types.disease]\nanswer = false\n")
    assert find_schema_file([tmp_path / "nodes.csv.gz"]) == find_schema_file([tmp_path]) == tmp_path / "schema.toml"
    (tmp_path / "nodes.schema.toml").write_text("")
    assert find_schema_file([tmp_path / "nodes.csv.gz"]) == tmp_path / "nodes.schema.toml"
    assert read_schema_file(tmp_path / "nodes.schema.toml") == SchemaEdits()
    with pytest.raises(NotFoundError, match="no such schema file"):
        read_schema_file(tmp_path / "absent.toml")
