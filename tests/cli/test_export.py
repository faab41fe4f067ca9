"""The SQL of an answer gives its rows in DuckDB, over what `clew export` writes."""

import json

import pytest

duckdb = pytest.importorskip("duckdb")
FILES = {
    "cities": "city_id,name,population\nC1,Graz,291000\nC2,Linz,206000\nC3,Köln,1073000\n",
    "customers": "customer_id,name,city_id,Size,size,since\n"
    "K1,Anna Weber,C1,4,S,2019-03-01\nK2,Björn D'Amico,C3,,M,2021-07-15\nK3,Eva Novak,C3,6,,2020-01-31\n",
    "orders": "order_id,customer_id,quantity,select,colours\n"
    '1,K1,3,a,red; blue\n2,K3,1,b,\n3,K3,2,"it\'s ""b""",red\n4,K3,,,blue; green\n',
}
ASKED = (
    ("Which customers have the city Köln?",),
    ("How many orders does Eva Novak have?",),
    ("Which customer has the most orders?",),
    ("Which city has the highest population?",),
    ("-m", "query", "find x, count(o) where (o: order) -[customer]-> (x: customer) group by x order by x.name"),
    ("-m", "query", "find x.Size, x.size, x.since where (x: customer) and (x.Size > 3 or x.size is missing)"),
    ("-m", "query", "find size, SIZE where (size: city) and (SIZE: customer) -[city]-> (size) and SIZE.since < 2021"),
    ("-m", "query", 'find o.`select` where (o: order) and o.colours = "red" order by o.quantity desc'),
    ("-m", "query", "find sum(o.quantity), avg(o.quantity) where (o: order)"),
    ("-m", "query", 'find exists(*) where (o: order) -[customer]-> "Björn D\'Amico": customer'),
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (folder / "files").mkdir()
    for name, text in FILES.items():
        (folder / "files" / f"{name}.csv").write_text(text, "utf-8")
    return folder


def cell(value):
    return value["key"] if isinstance(value, dict) else value


def test_an_exported_base_answers_by_sql_as_clew_does(run, shop):
    assert run("build", shop / "files", "-o", shop / "shop.kb")[0] == 0
    assert run("export", shop / "shop.kb", shop / "shop.duckdb")[0] == 0
    assert run("export", shop / "shop.kb", shop / "shop.duckdb")[0] == 2  # it exists
    assert run("export", shop / "shop.kb", shop / "shop.duckdb", "--force")[0] == 0
    with duckdb.connect(shop / "shop.duckdb") as database:
        for asked in ASKED:
            answer = json.loads(run("ask", shop / "shop.kb", *asked, "--all", "--json")[1])
            rows = [tuple(map(cell, row)) for row in answer["rows"]]
            rows = rows or [(answer["value"],)] * (answer["value"] is not None)
            rows = rows or [(one["key"],) for one in answer["answers"] if one["group"] == "match"]
            given = database.execute(answer["query"]["sql"]).fetchall()
            if answer["query"]["form"] == "value":  # the node comes first
                given = [row[-1:] for row in given]
            assert rows
            assert sorted(map(str, rows)) == sorted(str(tuple(map(plain, row))) for row in given), asked


def test_an_older_file_stays_until_the_new_one_is_complete(run, shop):
    run("build", shop / "files", "-o", shop / "more.kb")
    (shop / "old.duckdb").write_bytes(b"precious")
    draft = shop / ".old.duckdb"
    draft.mkdir()  # so that nothing can be written
    assert run("export", shop / "more.kb", shop / "old.duckdb", "--force")[0] == 2
    assert (shop / "old.duckdb").read_bytes() == b"precious"
    draft.rmdir()
    for left in (draft, shop / ".old.duckdb.wal"):  # of an export that was killed
        left.write_bytes(b"half")
    assert run("export", shop / "more.kb", shop / "old.duckdb", "--force")[0] == 0
    assert sorted(file.name for file in shop.glob("*old.duckdb*")) == ["old.duckdb"]
    with duckdb.connect(shop / "old.duckdb") as database:
        assert database.execute("SELECT count(*) FROM nodes").fetchone() == (10,)


def plain(value):
    """A cell of DuckDB as JSON has it."""
    return value.isoformat() if hasattr(value, "isoformat") else value
