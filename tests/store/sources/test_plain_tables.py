"""Tables that were made for nobody's graph: rows without keys, names that come twice, columns that are categories."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.core.errors import SourceError
from clew.server.examples import examples
from clew.store.sources.categories import with_categories
from clew.store.sources.columns import unique_names
from clew.store.sources.delimited import read_delimited, sniff
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources

CARS = """Name,Origin,Horsepower,Sold
skylark,USA,165,Jun 12 1998
civic,Japan,53,Jul 1 1999
civic,Japan,68,Jan 3 2001
corona,Japan,95,Feb 2 2000
beetle,Germany,46,Mar 31 1997
golf,Germany,70,
,USA,150,Apr 5 1996
"""


def build(folder: Path, **files: str) -> clew.Base:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    clew.build([folder / f"{name}.csv" for name in files], folder / "made.kb")
    return clew.open(folder / "made.kb")


def test_rows_are_named_and_numbered_and_categories_are_asked_for(tmp_path):
    base = build(tmp_path, cars=CARS)
    assert {row.name: row.count for row in base.schema.node_types} == {"car": 7, "Origin": 3}
    assert base.schema.attribute_types == {"Horsepower": "integer", "Sold": "date"}
    assert base.show("civic (2)")["name"] == "civic"
    assert base.show("car 7")["name"] == "car 7"
    answer = base.ask("Which cars have the origin Japan?")
    assert sorted(found.node.key for found in answer.matches) == ["civic", "civic (2)", "corona"]
    assert base.ask("What is the horsepower of the skylark?").value == 165


def test_the_questions_to_begin_with_are_understood(tmp_path):
    base = build(tmp_path, cars=CARS)
    [question] = examples(base.tools, 1)
    assert question.startswith("Which cars have the origin ")
    assert base.ask(question).matches


def test_a_table_says_what_the_rows_are(tmp_path):
    base = build(tmp_path, states="lon,lat,State Name,city\n1.5,2,Texas,Austin\n2.5,3,Ohio,Columbus\n")
    [kind] = base.schema.node_types
    assert kind.name == "state"
    assert base.show("Ohio")["attributes"]["city"] == "Columbus"


def test_first_and_last_names_are_a_name(tmp_path):
    base = build(tmp_path, people="first_name,last_name,age\nAda,Lovelace,36\nAlan,Turing,41\nAda,Lovelace,12\n")
    assert base.show("Ada Lovelace (2)")["name"] == "Ada Lovelace"


def test_a_column_that_names_rows_of_another_table_leads_to_them(tmp_path):
    visits = "day,hours,person,room\n1,2,Alan,7\n1,3,Grace,8\n2,2,Alan,9\n2,1,Ada,7\n"
    base = build(tmp_path, people="name,age\nAlan,25\nGrace,32\nAda,36\n", visits=visits)
    [relation] = base.schema.relations
    assert (relation.head, relation.name, relation.tail, relation.count) == ("visit", "person", "person", 4)


def test_a_text_that_names_no_row_is_not_lost(tmp_path):
    visits = "day,hours,person,room\n1,2,Alan,7\n1,3,Grace,8\n2,2,Alan,9\n2,1,a stranger,7\n"
    base = build(tmp_path, people="name,age\nAlan,25\nGrace,32\n", visits=visits)
    assert [relation.count for relation in base.schema.relations] == [3]
    assert base.show("visits/2, a stranger")["attributes"]["person"] == "a stranger"


@pytest.mark.parametrize(
    ("file", "rows", "names"),
    [
        ("zones", "zone,comment\nB1,cold store\nB2,the loading bay\n", {"B1", "B2"}),
        ("zones", "zone,country\nLondon,GB\nParis,FR\nBerlin,DE\n", {"London", "Paris", "Berlin"}),
        ("modules", "module,imports\napi,core\napi,store\nstore,core\n", {"api, core", "api, store", "store, core"}),
        (
            "links",
            "gene,disease\nFBN1,Marfan\nFBN1,Weill\nTP53,Marfan\n",
            {"FBN1, Marfan", "FBN1, Weill", "TP53, Marfan"},
        ),
    ],
)
def test_a_table_of_two_columns_is_a_table(tmp_path, file, rows, names):
    (tmp_path / f"{file}.csv").write_text(rows)
    (piece,) = read_sources([tmp_path / f"{file}.csv"]).nodes
    assert set(piece.table["name"].to_pylist()) == names
    assert set(piece.table["type"].to_pylist()) == {file.removesuffix("s")}


def test_a_column_is_the_type_only_if_the_user_says_so(tmp_path):
    (tmp_path / "orders.csv").write_text("id,category,type,price\n1,office,a,5\n2,outdoor,b,7\n3,office,a,9\n")
    (piece,) = read_sources([tmp_path / "orders.csv"]).nodes
    assert set(piece.table["type"].to_pylist()) == {"order"}
    assert piece.table["category"].to_pylist() == ["office", "outdoor", "office"]
    (piece,) = read_sources([tmp_path / "orders.csv"], SourceOptions(columns={"type": "category"})).nodes
    assert set(piece.table["type"].to_pylist()) == {"office", "outdoor"}


def test_one_column_of_words_beside_numbers_is_no_table_of_edges(tmp_path):
    base = build(tmp_path, disasters="Entity,Year,Deaths\nDrought,1900,120\nFlood,1900,7\nDrought,1901,9\n")
    assert {row.name: row.count for row in base.schema.node_types} == {"disaster": 3, "Entity": 2}


def test_an_id_that_comes_again_is_no_key_and_a_note_says_so(tmp_path):
    (tmp_path / "cars.csv").write_text("id,Name\n1,civic\n1,corona\n")
    tables = read_sources([tmp_path / "cars.csv"])
    assert tables.nodes[0].table["key"].to_pylist() == ["civic", "corona"]
    assert "id is not unique" in tables.notes[0]
    (tmp_path / "cars.csv").rename(tmp_path / "nodes.csv")
    with pytest.raises(SourceError, match="already used by another node"):
        clew.build([tmp_path / "nodes.csv"], tmp_path / "cars.kb")


def test_what_only_some_may_see_is_no_node_for_all(tmp_path):
    (tmp_path / "staff.csv").write_text("name,illness,who\nAda,flu,hr\nAlan,flu,hr\nGrace,,hr\n")
    options = SourceOptions(columns={"groups": "who"})
    tables = with_categories(read_sources([tmp_path / "staff.csv"], options))
    assert not tables.edges
    assert "illness" in tables.nodes[0].table.column_names


def test_lists_lead_to_each_of_their_items(tmp_path):
    rows = [{"name": "Jaws", "tags": ["shark", "sea"]}, {"name": "Titanic", "tags": ["sea", "ship"]}, {"name": "Lost"}]
    (tmp_path / "films.json").write_text(json.dumps(rows))
    clew.build([tmp_path / "films.json"], tmp_path / "films.kb")
    base = clew.open(tmp_path / "films.kb")
    assert {row.name: row.count for row in base.schema.node_types} == {"film": 3, "tags": 3}
    assert base.schema.relations[0].count == 4


def test_an_update_knows_the_categories_of_its_base(tmp_path):
    base = build(tmp_path, cars=CARS)
    (tmp_path / "more.csv").write_text("Name,Origin,Horsepower\ngolf,Brazil,75\nfiesta,Germany,66\n")
    base.update([tmp_path / "more.csv"])
    base = clew.open(tmp_path / "made.kb")
    assert "Origin" not in base.schema.attribute_types
    assert [node["key"] for node in base.neighbours("golf")["nodes"]] == ["golf", "Origin/Brazil"]
    assert base.ask("How many cars have the origin Germany?").value == 2


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "a (3)", ""]), max_size=12))
def test_keys_differ_and_begin_with_the_names(names):
    keys = unique_names(names, "{} ({})")
    assert len(set(keys)) == len(names)
    assert all(key.startswith(name) for key, name in zip(keys, names, strict=True))
    assert [key for key, name in zip(keys, names, strict=True) if key == name] == list(dict.fromkeys(names))


def test_a_file_of_which_every_row_was_left_out_is_refused(tmp_path):
    (tmp_path / "broken.jsonl").write_text('{"key": "k0"')
    with pytest.raises(SourceError, match=r"broken\.jsonl"):
        read_sources([tmp_path / "broken.jsonl"], SourceOptions(skip_bad=True))


def test_a_new_key_in_every_row_is_refused_before_a_column_is_made_of_each(tmp_path):
    rows = "".join(json.dumps({"key": f"k{row}", f"c{row}": "v"}) + "\n" for row in range(3000))
    (tmp_path / "sparse.jsonl").write_text(rows)
    with pytest.raises(SourceError, match="same keys"):
        read_sources([tmp_path / "sparse.jsonl"])


def test_headers_that_appear_again_are_numbered(tmp_path):
    (tmp_path / "games.csv").write_text("Game,Score,Score,Score 2,,\nfinal,1,2,3,x,y\nsemi,4,5,6,z,z\n")
    clew.build([tmp_path / "games.csv"], tmp_path / "games.kb")
    schema = clew.open(tmp_path / "games.kb").schema
    assert {"Score", "Score 2", "Score 3"} <= schema.attribute_types.keys()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["7,169", "6,260", "–", "950"], [7169, 6260, None, 950]),
        (["1,234.5", "−3", "0"], [1234.5, -3.0, 0.0]),
        (["007", "1,000"], ["007", "1,000"]),
        (["1,2", "3,4"], ["1,2", "3,4"]),
        (["80,366", "1,000[1]", "950", "N/A", "?", "n.d.", "12,004 *"], [80366, 1000, 950, None, None, None, 12004]),
        (["627\u202f848", "1\u00a0650\u00a0649", "18 520", "7"], [627848, 1650649, 18520, 7]),
        (["1.234,5", "12,5", "3"], [1234.5, 12.5, 3.0]),
        (["1.234.567", "890.123"], [1234567, 890123]),
        (["1.234", "890.123"], [1.234, 890.123]),
        (["7,4", "0,5", "11"], [7.4, 0.5, 11.0]),
        (["1.10.2", "1.9.1"], ["1.10.2", "1.9.1"]),
        (["3, 5, 12", "7"], ["3, 5, 12", "7"]),
        (["?", "n.d."], ["?", "n.d."]),
        (["-", "Blues", "--", "Hawks"], [None, "Blues", None, "Hawks"]),
        (["-", "+", "+"], ["-", "+", "+"]),
    ],
)
def test_numbers_with_commas_between_thousands_are_numbers(cells, expected):
    from clew.store.sources.pieces import typed_by_content

    assert typed_by_content(pa.chunked_array([cells])).to_pylist() == expected


def test_headers_of_several_lines_are_written_in_one():
    table = b'"Combined\ndays","Name "\n"1,000","Ann"\n'
    raw, _ = read_delimited(table, sniff(table, Path("a.csv")), "a.csv")
    assert raw.table.column_names == ["Combined days", "Name"]


def test_rows_of_a_file_without_a_telling_name_are_called_by_the_header_of_their_names(tmp_path):
    (tmp_path / "204-7.csv").write_text("Film,Year\nSukran,2005\nHeat,1995\n")
    clew.build([tmp_path / "204-7.csv"], tmp_path / "films.kb")
    assert clew.open(tmp_path / "films.kb").schema.type_names == ("Film",)


def test_a_column_with_one_unit_is_numbers_and_a_total_is_left_out(tmp_path):
    text = """name,weight,price,share,code,height
Alpha,12 kg,"$1,200.50[2]",45 %,12A,5 m
Beta,3.5 kg,$80,5%,13A,6 m
Gamma,0.5 kg,$1,50%,14A,7 ft
Total,16 kg,"$1,281.50",100%,,
"""
    base = build(tmp_path, parcels=text)
    assert base.schema.node_type("parcel").count == 3
    kinds = {"weight": "number", "price": "number", "share": "integer", "height": "text"}
    assert {name: base.schema.attribute_types[name] for name in kinds} == kinds
    notes = read_sources([tmp_path / "parcels.csv"]).notes
    assert {"parcels.weight is in kg.", "parcels.price is in $.", "parcels.share is in %."} <= set(notes)
    assert any("total" in note for note in notes)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (["1,Kenya,5,7", "2,Mali,3,4", "3,Peru,1,1", "Total,Total,9,12"], {"Kenya", "Mali", "Peru"}),
        (["Toplam,,9,12", "1,Kenya,5,7", "2,Mali,3,4", "3,Peru,1,1"], {"Kenya", "Mali", "Peru"}),
        (["1,Kenya,5,7", "2,Mali,3,4", "3,Peru,1,1", "4,Peru and all,9,13"], {"Kenya", "Mali", "Peru", "Peru and all"}),
        (["1,Kenya,5,7", "rank,nation,gold,silver", "2,Mali,3,4"], {"Kenya", "Mali"}),
        (
            ["1,Kenya,5,7", "2,Mali,3,4", ",Africa total,8,11", "3,Peru,1,1", "4,Cuba,2,1", ",America total,3,2"],
            {"Kenya", "Mali", "Peru", "Cuba"},
        ),
        (["1,Votes,50,7", "2,Invalid,50,4", "Total,,100,11", ",Majority,9,"], {"Votes", "Invalid", "Majority"}),
    ],
)
def test_sums_and_repeated_headers_are_no_things_and_their_columns_are_numbers(rows, names, tmp_path):
    (tmp_path / "nations.csv").write_text("\n".join(["rank,nation,gold,silver", *rows]))
    tables = read_sources([tmp_path / "nations.csv"])
    assert set(tables.nodes[0].table["name"].to_pylist()) == names
    assert any("Left out as" in note for note in tables.notes) is (len(names) < len(rows))
    assert pa.types.is_integer(tables.nodes[0].table["gold"].type)


@pytest.mark.parametrize("last", ["Total,4", "Sum of nothing else,9", "Delta,6"])
def test_a_last_row_that_sums_up_nothing_stays(last, tmp_path):
    base = build(tmp_path, parcels=f"name,weight\nAlpha,1\nBeta,2\nGamma,3\n{last}\n")
    assert base.schema.node_type("parcel").count == 4


def test_names_are_found_without_what_is_added_in_brackets(tmp_path):
    rows = ["1,Petra Chocova (CZE),Prague (Praha)", "2,Ida Moe (NOR),Oslo", "3,Ann Lee (USA),Prague (Praha)"]
    base = build(tmp_path, skiers="\n".join(["rank,skier,home", *rows]))
    for short, whole in (("petra chocova", "Petra Chocova (CZE)"), ("prague", "Prague (Praha)")):
        [link] = [link for link in base.tools.names.link(short, k=3) if link.how == "exact"]
        assert base.tools.kb.node(link.node).name == whole


def test_a_dash_is_no_value_in_a_column_of_texts_either(tmp_path):
    rows = ["a,Japan", "b,—", "c,Japan", "d,N/A", "e,–", "f,Chile", "g,Chile"]
    base = build(tmp_path, things="\n".join(["name,origin", *rows]))
    assert {match.node.name for match in base.query("find x where (x: origin)").matches} == {"Japan", "Chile"}


def test_repeated_numbers_and_dates_in_texts_are_attributes(tmp_path):
    rows = [f"Team {n},{'Oslo' if n % 2 else 'Bergen'},{n % 3 + 1} wins,{n % 2 + 1} May" for n in range(12)]
    (tmp_path / "teams.csv").write_text("\n".join(["Team,Town,Record,Played", *rows]) + "\n")
    clew.build([tmp_path / "teams.csv"], tmp_path / "teams.kb")
    schema = clew.open(tmp_path / "teams.kb").schema
    assert schema.relation_names == ("Town",)
    assert set(schema.attribute_types) == {"Record", "Played"}


@pytest.mark.parametrize("as_path", [str, Path])
def test_one_file_needs_no_list(tmp_path, as_path):
    (tmp_path / "teams.csv").write_text("id,type,name\n1,team,Reds\n2,team,Blues\n", "utf-8")
    (tmp_path / "more.csv").write_text("id,type,name\n3,team,Greens\n", "utf-8")
    clew.build(as_path(tmp_path / "teams.csv"), tmp_path / "teams.kb")
    base = clew.open(tmp_path / "teams.kb").update(as_path(tmp_path / "more.csv"))
    assert len(base.query("find x where (x: team)").matches) == 3
