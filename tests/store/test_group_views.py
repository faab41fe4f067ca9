"""What groups may see of a base: what is hidden changes nothing, in a folder and in PostgreSQL."""

import json
import sys
from pathlib import Path

import pytest

import clew
from clew.core.errors import InputError, NotFoundError, SourceError, StorageError
from clew.store.graph.visibility import read_rules
from clew.store.sources.files import SourceOptions
from repeats import repeats

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import permission  # noqa: E402 - the property, with its generator

NODES = "id,type,name,text,acl\nG1,gene,FBN1,A gene.,\nG2,gene,FBN2,A gene.,lab;board\nD1,disease,Marfan syndrome,,\n"
EDGES = "head,relation,tail,acl\nG1,causes,D1,\nG2,causes,D1,\nD1,seen_in,G1,board\n"
QUESTION = "Which genes cause Marfan syndrome?"


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return [tmp_path / "nodes.csv", tmp_path / "edges.csv", "--map", "groups=acl"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(repeats(10, 30)))
def test_what_is_hidden_changes_nothing(tmp_path, seed):
    assert permission.check(seed, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30, repeats(32, 34)))
def test_what_is_hidden_changes_nothing_in_postgres(tmp_path, postgres, seed):
    assert permission.check(seed, tmp_path, postgres) == []


def test_the_property_sees_a_leak(tmp_path, monkeypatch):
    """A view that leaves the edges of hidden nodes' groups in must be found out."""
    from clew.store.graph import visibility

    monkeypatch.setattr(visibility, "_seen", lambda piece, groups: piece)
    assert any(permission.check(seed, tmp_path) for seed in range(5))


@pytest.mark.parametrize("where", ["folder", "postgres"])
def test_groups_from_a_column_to_the_answer(run, tmp_path, sources, where, request):
    base = str(tmp_path / "base.kb") if where == "folder" else request.getfixturevalue("address")
    assert run("build", *sources, "-o", base, "--embed", "all")[0] == 0

    def keys(*options):
        code, shown, error = run("ask", base, QUESTION, "--json", *options)
        assert code == 0, error
        return {answer["key"] for answer in json.loads(shown)["answers"] if answer["group"] == "match"}

    assert keys() == {"G1", "G2"}
    assert keys("--groups", "lab") == {"G1", "G2"}
    assert keys("--groups", "other,sales") == {"G1"}
    assert keys("--groups", "") == {"G1"}
    assert run("show", base, "G2", "--groups", "sales")[0] == 2
    assert json.loads(run("show", base, "G2", "--json", "--groups", "lab")[1])["attributes"] == {}
    assert json.loads(run("find", base, "FBN2", "--json", "--groups", "sales")[1])[0]["key"] == "G1"
    whole = clew.open(base)
    assert whole.schema.attribute_types == {}  # who may see a node is no attribute of it
    assert "seen_in" in whole.schema.relation_names
    public, lab, board = (whole.for_groups(groups) for groups in ([], ["lab"], ["board", "lab"]))
    assert "seen_in" not in lab.schema.relation_names
    assert "seen_in" in board.schema.relation_names
    assert public.tools.vectors.is_complete  # as in the whole base
    assert public.tools.identity == whole.for_groups(["nobody"]).tools.identity
    (tmp_path / "more.csv").write_text("id,type,name\nG3,gene,FBN3\n")
    updated = whole.update([tmp_path / "more.csv"])
    assert {node.key for node in updated.for_groups([]).tools.kb.refs([0, 1, 2])} == {"D1", "G1", "G3"}


def test_documents_by_their_folders(run, tmp_path):
    files = tmp_path / "files"
    (files / "hr").mkdir(parents=True)
    (files / "tides.md").write_text("# Tides\n\nThe moon raises the tides of the sea.\n")
    (files / "hr" / "pay.md").write_text("# Pay\n\nThe director earns 9000 euros a month.\n")
    (tmp_path / "rules.toml").write_text('"hr/*" = ["hr"]\n')
    base = tmp_path / "base.kb"
    assert run("build", files, "-o", base, "--visible", tmp_path / "rules.toml")[0] == 0
    question = "How much does the director earn?"
    assert "9000" in run("ask", base, question, "--groups", "hr")[1]
    assert "9000" not in run("ask", base, question, "--groups", "staff")[1]
    assert "pay" not in run("find", base, "director", "--text", "--groups", "staff")[1]
    (tmp_path / "rules.toml").write_text('"hd/*" = ["hr"]\n')
    code, _, error = run("build", files, "-o", base, "--visible", tmp_path / "rules.toml")
    assert (code, "'hd/*' matches no file" in error) == (2, True)


def test_a_view_is_made_once_and_where_nothing_is_hidden_none_is(tmp_path, tiny_tables):
    from clew.store.building import build

    build(tiny_tables, tmp_path / "open.kb")
    base = clew.open(tmp_path / "open.kb")
    assert base.for_groups([]) is base
    clew.build(tiny_tables, tmp_path / "closed.kb", visible={"P*": ["clinic"]})
    closed = clew.open(tmp_path / "closed.kb")
    first = closed.for_groups(["sales"]).tools.local.folder
    state = (first / "manifest.json").stat().st_mtime_ns
    assert closed.for_groups([]).tools.local.folder == first
    assert (first / "manifest.json").stat().st_mtime_ns == state
    assert len(closed.for_groups(["clinic"]).tools.stored) == 8


def test_what_cannot_be_is_refused(run, tmp_path, tiny_tables):
    clew.build(tiny_tables, tmp_path / "base.kb", visible={"*": ["clinic"]})
    with pytest.raises(NotFoundError, match="nothing visible"):
        clew.open(tmp_path / "base.kb", groups=["sales"])
    with pytest.raises(StorageError, match="did not answer"):
        clew.open("sparql+http://127.0.0.1:1/query", groups=["a"])
    (tmp_path / "rules.toml").write_text('"hr/*" = "hr"\n')
    (tmp_path / "nodes.csv").write_text("id\nA\n")
    code, _, error = run("build", tmp_path / "nodes.csv", "-o", tmp_path / "b.kb", "--visible", tmp_path / "rules.toml")
    assert (code, "expected a list of groups" in error) == (2, True)
    with pytest.raises(SourceError, match="cannot be read"):
        read_rules(tmp_path / "none.toml")


@pytest.mark.parametrize("where", ["folder", "postgres"])
def test_what_was_hidden_is_not_shown_by_a_careless_build(tmp_path, tiny_tables, where, request):
    base = tmp_path / "base.kb" if where == "folder" else request.getfixturevalue("address")
    clew.build(tiny_tables, base, visible={"P*": ["clinic"]})
    with pytest.raises(
        InputError, match="4 nodes or edges would be visible to more people: node 'P1' \\(clinic → every"
    ):
        clew.build(tiny_tables, base)
    assert len(clew.open(base, groups=[]).tools.stored) == 4
    with pytest.raises(InputError, match="update the whole base"):
        clew.open(base, groups=[]).update(delete_nodes=["MFS"])
    hidden = [f"P{number}" for number in range(1, 5)]
    assert clew.open(base).update(delete_nodes=hidden).tools.stored.groups == frozenset()


def test_a_server_shows_what_its_groups_may_see(tmp_path, tiny_tables):
    pytest.importorskip("uvicorn")
    import httpx

    from clew.server.settings import ServerSettings
    from web_server import running

    clew.build(tiny_tables, tmp_path / "closed.kb", visible={"P*": ["clinic"], "FBN1": ["lab"]})
    for groups, count in (((), 3), (("lab",), 4), (("lab", "clinic"), 8)):
        for workers in (1, 2) if groups == ("lab",) else (1,):
            settings = ServerSettings({"closed": tmp_path / "closed.kb"}, groups=groups, workers=workers)
            with running(settings) as server:
                assert httpx.get(f"{server}/v1/bases", timeout=60).json()[0]["nodes"] == count
                asked = {"question": "Which genes are associated with Marfan syndrome?"}
                reply = httpx.post(f"{server}/v1/bases/closed/ask", json=asked, timeout=60).json()
                assert ("FBN1" in json.dumps(reply["answers"])) == ("lab" in groups)


def test_records_nested_in_a_hidden_record_are_hidden(tmp_path):
    deals = [
        {"id": "d1", "name": "Harbour", "groups": ["board"], "notes": [{"text": "They will sell it in May."}]},
        {"id": "d2", "name": "Mill", "groups": [], "notes": [{"text": "It was painted."}, {"text": "It is for rent."}]},
    ]
    (tmp_path / "deals.json").write_text(json.dumps(deals))
    clew.build(tmp_path / "deals.json", tmp_path / "deals.kb", options=SourceOptions(columns={"groups": "groups"}))
    kb = clew.open(tmp_path / "deals.kb").for_groups([]).tools.kb
    texts = [kb.text(node, relations=True) for node in kb.nodes().array]
    assert len(texts) == 3
    assert not any("Harbour" in text or "sell" in text for text in texts)


@pytest.mark.parametrize(
    "given",
    [{"options": SourceOptions(columns={"groups": "acl"})}, {"visible": {"products/p2": ["board"]}}],
    ids=["column", "rules"],
)
def test_rows_are_not_named_after_hidden_rows(tmp_path, given):
    (tmp_path / "products.csv").write_text("product_id,name,acl\np1,Tent,\np2,Moonshot,board\n")
    (tmp_path / "customers.csv").write_text("customer_id,name\nc1,Ada\nc2,Ben\n")
    lines = [("c1", "p1", 2), ("c1", "p2", 3), ("c2", "p2", 4), ("c2", "p2", 5)]
    rows = [f"{at},{customer},{product},2024-01-0{day}" for at, (customer, product, day) in enumerate(lines)]
    (tmp_path / "lines.csv").write_text("\n".join(["line_id,customer_id,product_id,day", *rows]))
    files = [tmp_path / f"{name}.csv" for name in ("products", "customers", "lines")]
    clew.build(files, tmp_path / "shop.kb", **given)
    kb = clew.open(tmp_path / "shop.kb").for_groups([]).tools.kb
    names = [node.name for node in kb.refs(kb.nodes().array)]
    assert any("Ada's line: Tent" in name for name in names)
    assert not any("Moonshot" in name for name in names)
