"""What is for groups stays for them through updates, merges and builds, unless somebody asks to widen it."""

import json
import sqlite3

import pytest

import clew
from clew.core.errors import CorruptError, InputError, SourceError
from clew.store.building import read_changes, update
from clew.store.graph.tables import Visibility

NODES = "id,type,name,acl\nA,person,Ada,\nB,person,Bob,hr;board\nC,person,Cid,\n"
EDGES = "head,relation,tail,since,acl\nA,knows,C,1990,board\nA,likes,C,1991,\nB,knows,A,1992,\n"


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=["folder", "postgres"])
def base(request, tmp_path, run):
    """A base whose column of groups is called acl."""
    place = str(tmp_path / "base.kb") if request.param == "folder" else request.getfixturevalue("address")
    sources = [written(tmp_path, "nodes.csv", NODES), written(tmp_path, "edges.csv", EDGES)]
    code, _, error = run("build", *sources, "--map", "groups=acl", "-o", place)
    assert code == 0, error
    return place


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def nodes(base, *groups):
    stored = clew.open(base, groups=groups).tools.stored
    return {node.key: node.attributes for node in map(stored.node, range(len(stored)))}


def edges(base, *groups):
    stored = clew.open(base, groups=groups).tools.stored
    keys = stored.column("key")
    triples = {triple for node in range(len(stored)) for triple in map(freeze, stored.triples(node))}
    return {(keys[head], relation, keys[tail], *more) for head, relation, tail, *more in triples}


def freeze(triple):
    return (triple.head, triple.relation, triple.tail, *triple.attributes.values())


def test_an_edge_keeps_its_groups_when_a_file_without_the_column_changes_it(base, tmp_path, run):
    changes = written(tmp_path, "more.csv", "head,relation,tail,since\nA,knows,C,2000\nA,likes,C,2001\n")
    code, _, error = run("update", base, changes)
    assert code == 0, error
    assert edges(base) == {("A", "likes", "C", 2001)}
    assert edges(base, "board") >= {("A", "likes", "C", 2001), ("A", "knows", "C", 2000)}


def test_a_new_node_is_read_with_the_column_of_the_base(base, tmp_path, run):
    changes = written(tmp_path, "more.csv", "id,type,name,acl\nD,person,Dora,board\nE,person,Eve,\n")
    assert run("update", base, changes)[0] == 0
    assert nodes(base) == {"A": {}, "C": {}, "E": {}}
    assert nodes(base, "board") == {"A": {}, "B": {}, "C": {}, "D": {}, "E": {}}
    updated = clew.open(base).update([written(tmp_path, "again.csv", "id,type,name,acl\nF,person,Fay,hr\n")])
    assert "F" not in nodes(base)
    assert updated.tools.stored.groups == {"board", "hr"}


def test_the_column_of_an_update_stays_with_a_base_that_had_none(tmp_path, run):
    base = tmp_path / "open.kb"
    assert run("build", written(tmp_path, "nodes.csv", "id,type,name\nA,person,Ada\n"), "-o", base)[0] == 0
    first = written(tmp_path, "b.csv", "id,type,name,team\nB,person,Bob,hr\n")
    assert run("update", base, first, "--map", "groups=team")[0] == 0
    assert run("update", base, written(tmp_path, "c.csv", "id,type,name,team\nC,person,Cid,hr\n"))[0] == 0
    assert nodes(base) == {"A": {}}
    code, _, error = run("update", base, written(tmp_path, "d.csv", "id\nA\n"), "--map", "groups=taem")
    assert (code, "no source has it" in error) == (2, True)


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ("id,acl\nB,hr;sales\n", "node 'B' (board, hr → hr, sales)"),
        ("head,relation,tail,acl\nA,knows,C,board;hr\n", "edge 'A' —knows→ 'C' (board → board, hr)"),
    ],
)
def test_what_more_people_would_see_is_refused_with_a_list(base, tmp_path, run, changes, listed):
    file = written(tmp_path, "changes.csv", changes)
    before = nodes(base), edges(base), nodes(base, "sales"), edges(base, "hr")
    code, _, error = run("update", base, file)
    assert (code, listed in error, "--widen" in error) == (2, True, True), error
    with pytest.raises(InputError, match="would be visible to more people"):
        clew.open(base).update([file])
    assert (nodes(base), edges(base), nodes(base, "sales"), edges(base, "hr")) == before
    clew.open(base).update([file], widen=True)
    assert (nodes(base), edges(base), nodes(base, "sales"), edges(base, "hr")) != before


def test_deleting_and_adding_in_one_update_opens_nothing(base, tmp_path, run):
    file = written(tmp_path, "again.csv", "id,type,name\nB,person,Bob\n")
    code, _, error = run("update", base, file, "--delete-nodes", "B")
    assert (code, "node 'B' (board, hr → everybody)" in error) == (2, True)
    gone = written(tmp_path, "gone.csv", "head,relation,tail\nA,knows,C\n")
    code, _, error = run("update", base, "--edges", gone, "--delete-edges", gone)
    assert (code, "edge 'A' —knows→ 'C' (board → everybody)" in error) == (2, True)
    assert run("update", base, file, "--delete-nodes", "B", "--widen")[0] == 0
    assert "B" in nodes(base)


def test_fewer_readers_need_no_word(base, tmp_path):
    clew.open(base).update([written(tmp_path, "fewer.csv", "id,acl\nB,hr\nC,hr\n")])
    assert nodes(base).keys() == {"A"}
    assert nodes(base, "board").keys() == {"A"}
    assert nodes(base, "hr").keys() == {"A", "B", "C"}


def test_parallel_edges_keep_each_their_groups(tmp_path):
    base = tmp_path / "base.kb"
    text = "head,relation,tail,since,acl\nA,knows,C,1990,board\nA,knows,C,1991,\n"
    options = clew.SourceOptions(columns={"groups": "acl"})
    clew.build([written(tmp_path, "edges.csv", text)], base, options=options)
    clew.open(base).update(
        [written(tmp_path, "same.csv", "head,relation,tail,since\nA,knows,C,1990\nA,knows,C,1991\n")]
    )
    assert edges(base) == {("A", "knows", "C", 1991)}
    with pytest.raises(SourceError, match="are for different groups: give the column of groups"):
        clew.open(base).update([written(tmp_path, "other.csv", "head,relation,tail,since\nA,knows,C,1992\n")])
    moved = written(tmp_path, "moved.csv", "head,relation,tail,since,acl\nA,knows,C,1990,sales\n")
    with pytest.raises(InputError, match=r"\('since', 1990\)\] \(board → sales\)"):
        clew.open(base).update([moved])


def test_rules_by_key_belong_to_the_base(tmp_path, run):
    base = tmp_path / "base.kb"
    (tmp_path / "rules.toml").write_text('"hr-*" = ["hr"]\n')
    nodes_file = written(tmp_path, "nodes.csv", "id,type,name\nhr-1,person,Ann\nP1,person,Bob\n")
    assert run("build", nodes_file, "-o", base, "--visible", tmp_path / "rules.toml")[0] == 0
    more = written(tmp_path, "more.csv", "id,type,name\nhr-2,person,Cid\nP2,person,Dan\n")
    assert run("update", base, more)[0] == 0
    assert nodes(base).keys() == {"P1", "P2"}
    assert nodes(base, "hr").keys() == {"P1", "P2", "hr-1", "hr-2"}


@pytest.mark.parametrize("where", ["folder", "postgres"])
def test_rules_of_documents_belong_to_the_base(tmp_path, run, where, request):
    base = str(tmp_path / "base.kb") if where == "folder" else request.getfixturevalue("address")
    files = tmp_path / "files"
    (files / "hr").mkdir(parents=True)
    (files / "tides.md").write_text("# Tides\n\nThe moon raises the tides of the sea.\n")
    (files / "hr" / "pay.md").write_text("# Pay\n\nThe director earns 9000 euros a month.\n")
    (tmp_path / "rules.toml").write_text('"hr/*" = ["hr"]\n')
    assert run("build", files, "-o", base, "--visible", tmp_path / "rules.toml")[0] == 0
    (files / "hr" / "bonus.md").write_text("# Bonus\n\nThe bonus of the year is 777 euros.\n")
    assert run("build", files, "-o", base)[0] == 0
    shown = json.dumps(
        [run("find", base, text, "--text", "--json", "--groups", "")[1] for text in ("bonus", "director")]
    )
    assert ("pay" in shown, "bonus.md" in shown) == (False, False)
    assert "777" in run("ask", base, "How much is the bonus of the year?", "--groups", "hr")[1]
    (tmp_path / "rules.toml").write_text('"hr/bonus.md" = ["hr"]\n')
    code, _, error = run("build", files, "-o", base, "--visible", tmp_path / "rules.toml")
    assert (code, "hr/pay.md" in error, "hr → everybody" in error) == (2, True, True)
    assert run("build", files, "-o", base, "--visible", tmp_path / "rules.toml", "--widen")[0] == 0
    assert "9000" in run("ask", base, "How much does the director earn?", "--groups", "")[1]


def test_a_damaged_base_of_documents_is_repaired_with_its_rules(tmp_path, run):
    files, base = tmp_path / "files", tmp_path / "base.kb"
    (files / "hr").mkdir(parents=True)
    (files / "tides.md").write_text("# Tides\n\nThe moon raises the tides of the sea.\n")
    (files / "hr" / "pay.md").write_text("# Pay\n\nThe director earns 9000 euros a month.\n")
    clew.build([files], base, visible={"hr/*": ["hr"]})
    for damaged in ("manifest.json", None):
        file = base / damaged if damaged else next(base.glob("clew-data-*/nodes.arrow"))
        file.write_bytes(file.read_bytes()[:-100])
        code, _, error = run("repair", base)
        assert code == 0, error
        assert "pay" not in json.dumps(list(nodes(base)))
        assert "pay" in json.dumps(list(nodes(base, "hr")))


def test_a_category_of_a_hidden_row_is_no_public_node(tmp_path):
    base = tmp_path / "cars.kb"
    rows = "".join(f"car{number},{('Japan', 'Italy')[number % 2]}\n" for number in range(8))
    clew.build([written(tmp_path, "cars.csv", f"id,origin\n{rows}")], base)
    assert "origin/Japan" in nodes(base)
    hidden = written(tmp_path, "more.csv", "id,origin,acl\ncarX,Atlantis,board\n")
    options = clew.SourceOptions(columns={"groups": "acl"})
    update(base, read_changes(base, [hidden], options))
    clew.open(base).update([written(tmp_path, "again.csv", "id,origin\ncarX,Lemuria\ncar1,Japan\n")])
    assert not {"Atlantis", "Lemuria"} & {name.rpartition("/")[2] for name in nodes(base)}
    assert nodes(base)["car1"] == {"origin": "Japan"}
    assert ("car1", "origin", "origin/Italy") not in edges(base)


def test_a_column_of_groups_is_read_from_every_table_of_a_database(tmp_path):
    """Also from tables that only link others, and where the column refers to a table of its own."""
    with sqlite3.connect(tmp_path / "staff.db") as made:
        made.executescript(
            """CREATE TABLE team (id TEXT PRIMARY KEY, title TEXT);
            CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, acl TEXT REFERENCES team (id));
            CREATE TABLE project (id INTEGER PRIMARY KEY, name TEXT, acl TEXT);
            CREATE TABLE works_on (person_id INTEGER REFERENCES person (id), project_id INTEGER REFERENCES project (id),
                acl TEXT, PRIMARY KEY (person_id, project_id));
            INSERT INTO team VALUES ('hr', 'People'), ('board', 'Board');
            INSERT INTO person VALUES (1, 'Ada', NULL), (2, 'Bob', 'hr');
            INSERT INTO project VALUES (1, 'Engine', NULL), (2, 'Secret', 'board');
            INSERT INTO works_on VALUES (1, 1, 'board'), (2, 1, NULL);"""
        )
    base, options = tmp_path / "staff.kb", clew.SourceOptions(columns={"groups": "acl"})
    clew.build([f"sqlite:///{tmp_path / 'staff.db'}"], base, options=options)
    assert {key for key in nodes(base) if not key.startswith("team/")} == {"person/1", "project/1"}
    assert {key for key in nodes(base, "hr") if not key.startswith("team/")} == {"person/1", "person/2", "project/1"}
    assert ("person/1", "works_on", "project/1") not in edges(base, "hr")
    assert ("person/1", "works_on", "project/1") in edges(base, "board")


def test_rows_that_connect_a_hidden_row_are_hidden_with_it(tmp_path):
    files = tmp_path / "sport"
    files.mkdir()
    written(files, "athlete.csv", "athlete_id,name\na1,Ada Long\na2,Bob Short\na3,Eve Dunn\n")
    written(files, "event.csv", "event_id,name\ne1,Shot put\ne2,High jump\n")
    written(files, "result.csv", "athlete_id,event_id,mark\na1,e1,12.5\na2,e1,11.25\na3,e2,1.75\na3,e1,9.5\n")
    clew.build([files], tmp_path / "open.kb")
    assert "12.5" in json.dumps(list(nodes(tmp_path / "open.kb").values()), default=str)
    clew.build([files], tmp_path / "some.kb", visible={"athlete/a3": ["staff"]})
    assert "9.5" not in json.dumps([*nodes(tmp_path / "some.kb").values()], default=str)
    assert not any("a3" in str(part) for edge in edges(tmp_path / "some.kb") for part in edge)
    assert ("athlete/a3", "result", "event/e1", 9.5) in edges(tmp_path / "some.kb", "staff")


def test_a_column_of_groups_that_could_name_the_rows_hides_them(tmp_path):
    rows = written(tmp_path, "cars.csv", "weight,doors,acl\n1.5,2,Alpha\n1.5,4,Beta\n2.5,4,\n")
    clew.build([rows], tmp_path / "cars.kb", options=clew.SourceOptions(columns={"groups": "acl"}))
    assert len(nodes(tmp_path / "cars.kb")) == 1
    assert len(nodes(tmp_path / "cars.kb", "Alpha")) == 2


def test_a_node_that_only_hidden_edges_name_is_hidden(tmp_path):
    text = "head,relation,tail,acl\nAda,knows,Bob,\nAda,pays,Eve,board\nBob,pays,Eve,hr\n"
    text += "Bob,knows,Dan,board\nDan,likes,Ada,\n"
    base = tmp_path / "facts.kb"
    clew.build([written(tmp_path, "edges.csv", text)], base, options=clew.SourceOptions(columns={"groups": "acl"}))
    assert nodes(base).keys() == {"Ada", "Bob", "Dan"}
    assert nodes(base, "hr").keys() == {"Ada", "Bob", "Dan", "Eve"}
    wide = "source,source_name,target,target_name,acl\nA,Ada,B,Bob,\nA,Ada,E,Eve,board\n"
    options = clew.SourceOptions(columns={"groups": "acl"})
    clew.build([written(tmp_path, "wide.csv", wide)], tmp_path / "wide.kb", options=options)
    assert nodes(tmp_path / "wide.kb").keys() == {"A", "B"}


def test_bases_asked_as_one_keep_their_groups_apart(tmp_path):
    for name, groups in (("one", "hr"), ("two", "board"), ("three", "")):
        text = f"id,type,name,text,acl\nA,person,Ada,Known to {name},{groups}\nB,person,Bob,,\n"
        options = clew.SourceOptions(columns={"groups": "acl"})
        clew.build([written(tmp_path, "nodes.csv", text)], tmp_path / f"{name}.kb", options=options)
    bases = [tmp_path / f"{name}.kb" for name in ("one", "two", "three")]
    for caller, seen in (([], {"three"}), (["hr"], {"one", "three"}), (["board"], {"two", "three"})):
        opened = clew.open(bases, groups=caller).tools.stored
        shown = " ".join(opened.node(node).text for node in range(len(opened)))
        assert {name for name in ("one", "two", "three") if f"Known to {name}" in shown} == seen


def test_documents_take_over_no_entities_that_are_for_groups(tmp_path):
    text = "id,type,name,text,acl\nA,person,Ada Lovelace,Wrote notes,\nB,person,Charles Babbage,Owes 9000,board\n"
    options = clew.SourceOptions(columns={"groups": "acl"})
    clew.build([written(tmp_path, "nodes.csv", text)], tmp_path / "people.kb", options=options)
    letter = written(tmp_path, "letter.md", "# Letter\n\nAda Lovelace wrote to Charles Babbage.\n")
    clew.build([letter], tmp_path / "letters.kb", options=clew.DocumentOptions(entities=tmp_path / "people.kb"))
    stored = clew.open(tmp_path / "letters.kb").tools.stored
    shown = [stored.node(node).text for node in range(len(stored))]
    assert "Wrote notes" in shown
    assert "Owes 9000" not in shown


def test_python_objects_keep_their_column_of_groups(tmp_path):
    options = clew.SourceOptions(columns={"groups": "acl"})
    made = [{"id": "A", "type": "person", "acl": ""}, {"id": "B", "type": "person", "acl": "hr"}]
    clew.build(clew.from_tables(made, options=options), tmp_path / "made.kb")
    clew.open(tmp_path / "made.kb").update([written(tmp_path, "c.csv", "id,type,acl\nC,person,hr\n")])
    assert nodes(tmp_path / "made.kb").keys() == {"A"}


@pytest.mark.parametrize("wrong", [3, {"rules": ["a"]}, {"rules": {"a": 3}}])
def test_a_manifest_that_says_nonsense_about_groups_is_refused(wrong):
    with pytest.raises(CorruptError, match="visibility in the manifest"):
        Visibility.from_facts({"visibility": wrong})
