"""Duplicates are found with reasons, what only looks alike is not, and a merge can be taken back to the byte."""

import json
import shutil

import pyarrow as pa
import pytest

import clew
from clew.core.errors import CorruptError, InputError, NotFoundError
from clew.store.building import update
from clew.store.curation.duplicates import close_forms, find_duplicates, form, groups, misspelt
from clew.store.curation.merging import merge, undo
from clew.store.graph import storage
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import MANIFEST, read_manifest, seal
from clew.store.graph.tables import GROUPS, Piece, Tables
from clew.store.open_base import OpenBase
from clew.store.sources.delta import read_delta

NO_EDGES = Piece(pa.table({name: pa.array([], pa.string()) for name in ("head", "relation", "tail")}), "e")
NODES = [
    {"id": "OMIM:1", "type": "disease", "name": "Marfan syndrome", "synonyms": ["MFS"], "text": "Long fingers.",
     "year": 1896},
    {"id": "ORPHA:1", "type": "disease", "name": "Syndrome, Marfan", "synonyms": ["MFS1"], "text": "", "rare": True},
    {"id": "OMIM:2", "type": "disease", "name": "Bartter syndrome, type 1", "synonyms": [], "text": ""},
    {"id": "ORPHA:2", "type": "disease", "name": "Bartter syndrome, type 2", "synonyms": [], "text": ""},
    {"id": "OMIM:3", "type": "disease", "name": "Alzheimer disease", "synonyms": [], "text": ""},
    {"id": "ORPHA:3", "type": "disease", "name": "Alzeimer disease", "synonyms": [], "text": ""},
    {"id": "OMIM:4", "type": "disease", "name": "Ghost", "synonyms": [], "text": ""},
    {"id": "ORPHA:4", "type": "disease", "name": "Ghost", "synonyms": [], "text": ""},
    *({"id": f"HP:{number}", "type": "sign", "name": f"Sign {chr(65 + number)}"} for number in range(20)),
]  # fmt: skip


def signs(disease, *numbers):
    return [{"head": disease, "relation": "has_sign", "tail": f"HP:{number}"} for number in numbers]


EDGES = [
    *signs("OMIM:1", 0, 1, 2, 3), *signs("ORPHA:1", 1, 2, 3), *signs("OMIM:2", 4, 5, 6), *signs("ORPHA:2", 4, 5, 6),
    *signs("OMIM:3", 7, 8, 9), *signs("ORPHA:3", 7, 8, 9), *signs("OMIM:4", 10, 11, 12), *signs("ORPHA:4", 13, 14, 15),
    {"head": "OMIM:1", "relation": "related_to", "tail": "OMIM:3"},
    {"head": "ORPHA:1", "relation": "related_to", "tail": "OMIM:3"},
    {"head": "OMIM:2", "relation": "related_to", "tail": "ORPHA:1"},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    clew.build(clew.from_tables(NODES, EDGES), tmp_path / "twins.kb")
    return tmp_path / "twins.kb"


def bytes_of(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def found(folder, **options):
    return {(pair.first.key, pair.second.key): pair for pair in find_duplicates(OpenBase.open(folder), **options)}


def test_pairs_are_found_by_names_and_neighbours_with_reasons(folder):
    before = bytes_of(folder)
    pairs = found(folder)
    assert pairs.keys() == {("OMIM:1", "ORPHA:1"), ("OMIM:3", "ORPHA:3")}
    marfan = pairs["OMIM:1", "ORPHA:1"]
    assert marfan.evidence[0] == "'Marfan syndrome' is 'Syndrome, Marfan'"
    assert marfan.evidence[1].startswith("4 of 5 neighbours in common: ")
    assert pairs["OMIM:3", "ORPHA:3"].evidence[0] == "names nearly the same: 'Alzeimer disease' and 'Alzheimer disease'"
    assert bytes_of(folder) == before, "looking writes nothing"


def test_a_name_alone_is_not_enough_where_the_neighbours_differ(folder):
    assert ("OMIM:4", "ORPHA:4") not in found(folder)
    pair = found(folder, least=0.1)["OMIM:4", "ORPHA:4"]
    assert pair.evidence == ("the same name: 'Ghost'", "no neighbour in common")
    assert not found(folder, type="sign")
    with pytest.raises(clew.errors.SchemaError, match="no node type 'city'"):
        found(folder, type="city")


def test_values_edges_and_sources_speak_against_a_pair(tmp_path):
    nodes = [
        {"id": f"A:{number}", "type": "person", "name": "Ann Lee", "born": 1950 + number // 2} for number in range(4)
    ]
    nodes += [{"id": "B:9", "type": "person", "name": "Bob", "born": 1950}]
    edges = [{"head": "A:2", "relation": "child_of", "tail": "A:3"}]
    clew.build(clew.from_tables(nodes, edges), tmp_path / "people.kb")
    pairs = found(tmp_path / "people.kb", least=0.0)
    assert "born differs: 1950 and 1951" in pairs["A:0", "A:2"].evidence
    assert "the same born 1950" in pairs["A:0", "A:1"].evidence
    assert "both keys are of A" in pairs["A:0", "A:1"].evidence
    assert "an edge joins them (child_of)" in pairs["A:2", "A:3"].evidence
    assert pairs["A:2", "A:3"].certainty < 0.1 < pairs["A:0", "A:1"].certainty


def test_close_documents_make_a_pair_where_all_vectors_are_there(tmp_path):
    text = "A long text about an inherited disorder of connective tissue with long fingers and a loose lens."
    nodes = [
        {"id": key, "type": "disease", "name": name, "text": text}
        for key, name in (("a", "Marfan syndrome"), ("b", "Marfan disorder"))
    ]
    clew.build(clew.from_tables(nodes), tmp_path / "texts.kb")
    assert not found(tmp_path / "texts.kb", least=0.0)
    OpenBase.open(tmp_path / "texts.kb").vectors.embed_all()
    (pair,) = found(tmp_path / "texts.kb", least=0.0).values()
    assert pair.evidence[0].startswith("documents close in meaning: ")


def test_a_merge_unites_names_texts_values_and_edges(folder):
    tools = OpenBase.open(folder)
    (twins, _) = groups(tools.local, find_duplicates(tools))
    assert [node.key for node in twins] == ["OMIM:1", "ORPHA:1"]
    report = merge(folder, [twins])
    assert (report.nodes, report.edges) == (len(NODES) - 1, len(EDGES) - 4)
    kb = ArrayKnowledgeBase.open(folder)
    node = kb.node(kb.find("OMIM:1"))
    assert (node.name, node.aliases, node.text) == (
        "Marfan syndrome",
        ("MFS", "Syndrome, Marfan", "MFS1"),
        "Long fingers.",
    )
    assert node.attributes == {"merged_keys": ["ORPHA:1"], "year": 1896, "rare": True}
    assert [
        (kb.refs([triple.head])[0].key, triple.relation) for triple in kb.triples(node.id) if triple.tail == node.id
    ] == [("OMIM:2", "related_to")]
    with pytest.raises(NotFoundError):
        kb.find("ORPHA:1")
    with pytest.raises(NotFoundError):
        merge(folder, [twins])


def test_nodes_for_different_groups_are_listed_and_never_merged(tmp_path):
    """A ~ B ~ C: B and C are for the same groups, A for others. A stays apart with its text, value and edge."""
    acl = {"A": ["board"], "B": ["hr", "legal"], "C": ["legal", "hr"], "D": None, "X": None}
    nodes = [
        {"key": key, "type": "person", "name": "Ada Lovelace", "text": f"Text {key}", GROUPS: acl[key]}
        | {"bonus": 9000 if key == "A" else None}
        for key in "ABCD"
    ]
    edges = [
        {"head": key, "relation": "knows", "tail": "X", GROUPS: ["board"] if key == "B" else None} for key in "ABCD"
    ]
    nodes.append({"key": "X", "type": "sign", "name": "Charles", GROUPS: None})
    tables = Tables((Piece(pa.Table.from_pylist(nodes), "n"),), (Piece(pa.Table.from_pylist(edges), "e"),))
    folder = tmp_path / "people.kb"
    clew.build(tables, folder)
    before = {groups: seen(folder, groups) for groups in ((), ("hr",), ("legal",), ("board",), ("board", "hr"))}
    tools = OpenBase.open(folder)
    pairs = found(folder, least=0.0)
    assert pairs["B", "C"].obstacle is None
    assert pairs["A", "B"].obstacle == "their groups differ: board and hr, legal"
    assert pairs["A", "D"].obstacle == "their groups differ: board and everybody"
    clusters = groups(tools.local, pairs.values())
    assert [{node.key for node in cluster} for cluster in clusters] == [{"B", "C"}]
    merge(folder, clusters)
    assert seen(folder, ()) == before[()]
    assert seen(folder, ("board",)) == before[("board",)]
    for reader in ("hr", "legal"):
        page = clew.open(folder, groups=[reader]).show("B")
        assert "Text A" not in page["document"]
        assert "Text C" in page["document"]
        assert "bonus" not in page["attributes"]
        assert [group["count"] for group in page["neighbors"]] == [1], "the edge for the board stays hidden"
    assert [group["count"] for group in clew.open(folder, groups=["board", "hr"]).show("B")["neighbors"]] == [2]
    undo(folder)
    assert {groups: seen(folder, groups) for groups in before} == before


def seen(folder, groups):
    base = clew.open(folder, groups=groups)
    kb = base.tools.stored
    return [(kb.node(node), kb.triples(node)) for node in range(len(kb))]


def test_a_merge_across_groups_is_refused_and_the_last_merge_can_still_be_undone(tmp_path):
    twins = [
        {"key": key, "type": "person", "name": "Ada", GROUPS: [group]} for key, group in zip("ABC", "xxy", strict=True)
    ]
    folder = tmp_path / "people.kb"
    clew.build(Tables((Piece(pa.Table.from_pylist(twins), "n"),), (NO_EDGES,)), folder)
    before = bytes_of(folder)
    refs = OpenBase.open(folder).local.refs
    merge(folder, [refs([0, 1])])
    after = bytes_of(folder)
    with pytest.raises(InputError, match="'A' and 'C' are for different groups"):
        merge(folder, [OpenBase.open(folder).local.refs([0, 1])])
    assert bytes_of(folder) == after
    undo(folder)
    assert bytes_of(folder) == before


def test_public_nodes_of_a_base_with_groups_are_merged(tmp_path):
    """The rows that are merged have no list in the column of groups."""
    nodes = [{"key": key, "type": "person", "name": "Ada", GROUPS: ["x"] if key == "C" else None} for key in "ABC"]
    clew.build(Tables((Piece(pa.Table.from_pylist(nodes), "n"),), (NO_EDGES,)), tmp_path / "people.kb")
    assert merge(tmp_path / "people.kb", [OpenBase.open(tmp_path / "people.kb").local.refs([0, 1])]).nodes == 2


@pytest.mark.parametrize("with_vectors", [False, True])
def test_undo_restores_the_bytes(folder, with_vectors):
    if with_vectors:
        OpenBase.open(folder).vectors.embed_all()
    (folder / "notes of the owner.txt").write_text("mine")
    before = bytes_of(folder)
    tools = OpenBase.open(folder)
    merge(folder, groups(tools.local, find_duplicates(tools)))
    assert clew.open(folder).verify() == []
    (folder / "another.txt").write_text("mine too")
    assert undo(folder) == "merged 2 nodes into 2"
    after = bytes_of(folder)
    assert after.pop("another.txt") == b"mine too"
    for name in before:  # vectors of the merged documents stay in the store, which only grows
        assert after.pop(name).startswith(before[name]) if name.endswith(".bin") else after.pop(name) == before[name]
    assert after == {}
    with pytest.raises(InputError, match="no merge to undo"):
        undo(folder)


def killed(*_given, **_named):
    raise KeyboardInterrupt


def test_a_merge_that_is_killed_once_it_is_in_use_can_still_be_undone(folder, monkeypatch):
    before = bytes_of(folder)
    tools = OpenBase.open(folder)
    twins = groups(tools.local, find_duplicates(tools))
    tools.local.release()
    with monkeypatch.context() as patch:
        patch.setattr(storage, "sync", lambda path: killed() if path == folder else None)
        with pytest.raises(KeyboardInterrupt):
            merge(folder, twins)
    assert clew.open(folder).verify() == []
    assert undo(folder) == "merged 2 nodes into 2"
    assert bytes_of(folder) == before


def test_an_undo_that_is_killed_at_its_end_leaves_nothing_to_the_next_one(folder, monkeypatch):
    before = bytes_of(folder)
    tools = OpenBase.open(folder)
    merge(folder, groups(tools.local, find_duplicates(tools)))
    tools.local.release()
    with monkeypatch.context() as patch:
        patch.setattr(storage.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            undo(folder)
    with pytest.raises(InputError, match="no merge to undo"):
        undo(folder)
    assert bytes_of(folder) == before


def test_an_undo_that_is_killed_once_it_is_in_use_leaves_nothing_to_the_next_one(folder, monkeypatch):
    before = bytes_of(folder)
    tools = OpenBase.open(folder)
    merge(folder, groups(tools.local, find_duplicates(tools)))
    tools.local.release()
    with monkeypatch.context() as patch:
        patch.setattr(storage, "sync", lambda path: killed() if path == folder else None)
        with pytest.raises(KeyboardInterrupt):
            undo(folder)
    with pytest.raises(InputError, match="no merge to undo"):
        undo(folder)
    assert bytes_of(folder) == before


def test_a_merge_that_is_killed_before_it_is_in_use_leaves_nothing_to_undo(folder, monkeypatch):
    tools = OpenBase.open(folder)
    twins = groups(tools.local, find_duplicates(tools))
    with monkeypatch.context() as patch:
        patch.setattr(storage.Manifest, "to_json", killed)
        with pytest.raises(KeyboardInterrupt):
            merge(folder, twins)
    with pytest.raises(InputError, match="no merge to undo"):
        undo(folder)


@pytest.mark.parametrize("damage", ["before", [], {"what": 1}, {"what": "merged", "before": {"generation": "x"}}])
def test_a_manifest_that_misdescribes_what_to_undo_is_refused(folder, damage):
    raw = json.loads((folder / MANIFEST).read_text())
    raw.pop("digest")
    raw["undo"] = damage
    (folder / MANIFEST).write_text(json.dumps({**raw, "digest": seal(raw)}))
    with pytest.raises(CorruptError, match="before its last merge"):
        undo(folder)


def test_an_undo_writes_through_no_link_that_a_stranger_put_into_a_base(folder, tmp_path):
    tools = OpenBase.open(folder)
    merge(folder, groups(tools.local, find_duplicates(tools)))
    tools.local.release()
    generation = read_manifest(folder).previous.generation
    (tmp_path / "home").mkdir()
    shutil.rmtree(folder / generation, ignore_errors=True)
    (folder / generation).symlink_to(tmp_path / "home")
    with pytest.raises(CorruptError, match="is a link"):
        undo(folder)
    assert not list((tmp_path / "home").iterdir())


def test_a_later_change_is_never_lost_by_undo(folder):
    tools = OpenBase.open(folder)
    twins = groups(tools.local, find_duplicates(tools))
    tools.local.release()
    merge(folder, twins)
    update(folder, read_delta(delete_nodes=["HP:19"]))
    with pytest.raises(InputError, match="changed since"):
        undo(folder)
    assert len(list(folder.glob("clew-data-*"))) == 1
    assert clew.open(folder).verify() == []


def test_a_damaged_state_before_a_merge_is_named_and_never_put_back(folder):
    tools = OpenBase.open(folder)
    merge(folder, groups(tools.local, find_duplicates(tools)))
    file = folder / read_manifest(folder).previous.generation / "nodes.arrow"
    file.write_bytes(file.read_bytes()[:-1])
    assert [str(file) in problem for problem in clew.open(folder).verify()] == [True]
    with pytest.raises(CorruptError, match="the state before the merge is damaged"):
        undo(folder)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Mannosidosis, beta", "Beta-mannosidosis", True),
        ("Anaemia of the newborn", "anemia newborn", True),
        ("Type 1 diabetes", "Diabetes, type 2", False),
        ("Right-to-left shunt", "Left-to-right shunt", False),
        ("alpha/beta ratio", "beta/alpha ratio", False),
        ("acuity 0.1", "acuity 1.0", False),
    ],
)
def test_names_have_one_form_but_for_order_and_spelling(one, other, same):
    assert (form(one) == form(other)) is same


def test_only_a_letter_left_out_inside_a_long_word_is_a_misspelling():
    assert misspelt("alzheimer disease", "alzeimer disease")
    for one, other in (
        ("intracardiac", "infracardiac"),
        ("clcnka", "clcnkb"),
        ("gene abc1", "gene abc12"),
        ("a b", "a"),
    ):
        assert not misspelt(one, other)
    assert close_forms(["alzheimer disease", "other", "alzeimer disease"]) == [
        ("alzeimer disease", "alzheimer disease")
    ]
