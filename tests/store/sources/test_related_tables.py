"""Files that are the tables of one database: a column that holds the keys of another file is a relation."""

import json
import zipfile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.core.errors import SourceError
from clew.store.sources.files import SourceOptions
from clew.store.sources.profile import profile_tables
from clew.store.sources.read import read_sources
from clew.store.sources.relational import _filled

FILES = {
    "customers.csv": "customer_id,company_name,city\n1,Around the Horn,London\n2,Bon app',Marseille\n",
    "categories.csv": "category_id,category_name\n1,Beverages\n2,Condiments\n",
    "products.csv": "product_id,product_name,category_id,price\n1,Chai,1,18\n2,Aniseed Syrup,2,10\n3,Chang,1,19\n",
    "orders.csv": "order_id,customer_id,ordered\n10248,1,2023-07-04\n10249,2,2023-07-05\n10250,1,2023-08-08\n",
    "order_details.csv": "order_id,product_id,quantity\n10248,1,12\n10248,2,10\n10249,3,5\n10250,2,9\n",
}


@pytest.fixture
def shop(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_keys_of_other_files_are_relations_and_rows_between_are_things_and_a_relation(shop):
    clew.build([shop / name for name in FILES], shop / "shop.kb")
    base = clew.open(shop / "shop.kb")
    relations = {(row.name, row.head, row.tail, row.count) for row in base.schema.relations}
    assert relations == {
        ("category", "product", "category", 3),
        ("customer", "order", "customer", 3),
        ("order_details", "order", "product", 4),
        ("order", "order_detail", "order", 4),
        ("product", "order_detail", "product", 4),
    }
    assert base.show("products/2")["name"] == "Aniseed Syrup"
    order = base.show("orders/10249")
    assert (order["name"], order["attributes"]) == ("order 10249", {"ordered": "2023-07-05"})
    line = base.show("order_details/3")
    assert (line["name"], line["attributes"]) == ("order 10249's order detail: Chang", {"quantity": 5})
    assert [match.node.name for match in base.ask("Which customers ordered Chang?").matches] == ["Bon app'"]
    assert "orders: 3 orders; customer_id → customers (100 %)" in base.tools.stored.notes


def test_a_value_that_no_row_has_is_named_and_stays_an_attribute(shop):
    (shop / "orders.csv").write_text(FILES["orders.csv"] + "10251,9,2023-09-01\n")
    report = clew.build([shop / name for name in FILES], shop / "shop.kb")
    assert any("orders.csv, line 5: no row is '9'" in note for note in report.notes)
    order = clew.open(shop / "shop.kb").show("orders/10251")
    assert order["neighbors"] == []
    assert order["attributes"]["customer_id"] == "9"


def test_an_update_knows_the_keys_and_the_attributes_of_a_table(tmp_path):
    (tmp_path / "cities.csv").write_text("id,name\n1,Riga\n2,Tartu\n")
    (tmp_path / "people.csv").write_text("id,name,type,city_id\n1,Ann,guest,1\n2,Bob,host,2\n")
    clew.build([tmp_path / "cities.csv", tmp_path / "people.csv"], tmp_path / "some.kb")
    (tmp_path / "people.csv").write_text("id,name,type\n2,Rob,guest\n3,Cid,host\n")
    base = clew.open(tmp_path / "some.kb").update([tmp_path / "people.csv"])
    assert {row.name: row.count for row in base.schema.node_types} == {"city": 2, "person": 3}
    assert (base.show("people/2")["name"], base.show("people/2")["attributes"]) == ("Rob", {"type_": "guest"})


def test_a_folder_in_a_folder_is_not_read_with_a_note(shop):
    (shop / "old").mkdir()
    (shop / "old" / "returns.csv").write_text("order_id,reason\n1,torn\n")
    assert f"Not read: folders in {shop}, which can be given as sources: old." in read_sources([shop]).notes


def test_files_of_one_name_in_several_folders_are_one_table(tmp_path):
    for season, city in (("2014-15", "Edinburgh"), ("2015-16", "Perth")):
        (tmp_path / season).mkdir()
        (tmp_path / season / "clubs.csv").write_text(f"club,city\nLeith,{city}\n")
    (tmp_path / "LICENCE").write_text("Free.")
    (clubs,) = read_sources([tmp_path]).nodes
    assert clubs.table["folder"].to_pylist() == ["2014-15", "2015-16"]
    assert clubs.table["city"].to_pylist() == ["Edinburgh", "Perth"]


def test_a_column_or_field_called_file_keeps_its_values(tmp_path):
    for folder in ("tables", "objects"):
        (tmp_path / folder).mkdir()
    for year in (2001, 2002):
        (tmp_path / "tables" / f"films{year}.csv").write_text(f"title,file\nFilm {year},reel {year}\n")
        (tmp_path / "objects" / f"{year}.json").write_text(
            json.dumps({"title": f"Film {year}", "file": f"reel {year}"})
        )
    for folder in ("tables", "objects"):
        (films,) = read_sources([tmp_path / folder]).nodes
        assert films.table["file"].to_pylist() == ["reel 2001", "reel 2002"]


def test_rules_for_files_keep_tables_of_one_name_apart(tmp_path):
    for folder, amount in (("hr", 900), ("shop", 7)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pay.csv").write_text(f"name,amount\n{folder} Ann,{amount}\n")
    clew.build([tmp_path / "hr", tmp_path / "shop"], tmp_path / "pay.kb", visible={"pay/*": ["hr"]})
    stored = clew.open(tmp_path / "pay.kb", groups=[]).tools.stored
    assert [stored.node(at).attributes["amount"] for at in range(len(stored))] == [7]


def test_documents_of_things_of_one_kind_are_their_records(tmp_path):
    folder = tmp_path / "monsters"
    folder.mkdir()
    for name, level in (("Abyssal demon", 124), ("Goblin", 2)):
        drops = [{"item": item, "quantity": level + at} for at, item in enumerate(("Bones", f"{name} whip"))]
        (folder / f"{name.lower()}.json").write_text(json.dumps({"name": name, "level": level, "drops": drops}))
    (folder / "about.json").write_text('{"version": 3, "licence": "MIT"}')
    clew.build([folder], tmp_path / "monsters.kb")
    base = clew.open(tmp_path / "monsters.kb")
    assert {row.name: row.count for row in base.schema.node_types}["monster"] == 2
    assert base.ask("What is the level of Goblin?").value == 2
    assert {row.head for row in base.schema.relations} == {"drop"}
    with zipfile.ZipFile(tmp_path / "monsters.zip", "w") as packed:
        for file in folder.iterdir():
            packed.write(file, file.name)
    (tmp_path / "packed").mkdir()
    (tmp_path / "monsters.zip").rename(tmp_path / "packed" / "monsters.zip")
    tables = read_sources([tmp_path / "packed"])
    assert sum(piece.table.num_rows for piece in tables.nodes) == 6


texts = st.lists(st.sampled_from(["", "a", "bc", None]), min_size=4, max_size=4)


@given(st.lists(texts, min_size=1, max_size=4))
def test_texts_that_are_not_empty_are_joined_row_by_row(columns):
    found = _filled([pa.array(column, pa.large_string()) for column in columns], ", ").to_pylist()
    assert found == [", ".join(text for text in row if text) for row in zip(*columns, strict=True)]


def test_a_file_without_rows_is_left_out_beside_others(shop):
    (shop / "returns.csv").write_text("order_id,reason\n")
    tables = read_sources([shop])
    assert f"Files without rows: {shop / 'returns.csv'}." in tables.notes
    assert sum(piece.table.num_rows for piece in tables.nodes) == 14
    with pytest.raises(SourceError, match="a header but no rows"):
        read_sources([shop / "returns.csv"])


def test_values_that_are_mostly_elsewhere_are_no_reference(shop):
    (shop / "products.csv").write_text("product_id,product_name,category_id\n1,Chai,7\n2,Syrup,8\n3,Chang,1\n")
    tables = read_sources([shop / "categories.csv", shop / "products.csv"])
    assert not tables.edges
    assert sum(piece.table.num_rows for piece in tables.nodes) == 5


def test_files_beside_edges_keep_their_keys(shop):
    (shop / "people.csv").write_text("id,name,city_id\np1,Ann,c1\np2,Bob,c1\n")
    (shop / "cities.csv").write_text("id,name\nc1,London\n")
    (shop / "links.csv").write_text("head,relation,tail\np1,knows,p2\n")
    tables = read_sources([shop / name for name in ("people.csv", "cities.csv", "links.csv")])
    assert [key for piece in tables.nodes for key in piece.table["key"].to_pylist()] == ["p1", "p2", "c1"]
    related = read_sources([shop / name for name in ("people.csv", "cities.csv")])
    assert [key for piece in related.nodes for key in piece.table["key"].to_pylist()][-1] == "cities/c1"


def test_an_empty_cell_refers_to_nothing(shop):
    (shop / "products.csv").write_text(FILES["products.csv"] + "4,Chartreuse,,18.0\n")
    clew.build([shop / "products.csv", shop / "categories.csv"], shop / "some.kb")
    assert clew.open(shop / "some.kb").neighbours("products/4")["edges"] == []


def test_a_first_column_called_like_a_key_is_one(shop):
    (shop / "People.csv").write_text("playerID,nameFirst,nameLast\naaronha01,Hank,Aaron\nruthba01,Babe,Ruth\n")
    (shop / "Awards.csv").write_text("playerID,award,year\nruthba01,MVP,1923\naaronha01,MVP,1957\nruthba01,HOF,1936\n")
    tables = read_sources([shop / "People.csv", shop / "Awards.csv"])
    (edges,) = tables.edges
    assert edges.table["tail"].to_pylist() == ["People/ruthba01", "People/aaronha01", "People/ruthba01"]
    assert (edges.file, edges.line(0)) == (str(shop / "Awards.csv"), 2)


def test_files_of_one_kind_for_each_year_are_one_table(shop):
    for year in (2001, 2002):
        (shop / f"films{year}.jsonl").write_text(
            f'{{"title": "Film of {year}", "country": "UK", "tag_id": ["a", "b"]}}\n'
        )
    tables = read_sources([shop / "films2001.jsonl", shop / "films2002.jsonl"])
    assert not tables.edges
    (films,) = tables.nodes
    assert films.table["type"].unique().to_pylist() == ["film"]
    assert films.table["file"].to_pylist() == ["films2001", "films2002"]
    assert [films.line(row) for row in range(2)] == [1, 1]


FAMILY = {
    "places.csv": "place_id,name,part_of_place_id\n1,Ottawa,3\n2,Worthington,3\n3,Ontario,\n",
    "people.csv": "person_id,name,birth_place_id,father_id\nI1,Ann Webb,1,I2\nI2,Bob Webb,2,I3\nI3,Carl Webb,2,\n",
    "marriages.csv": "marriage_id,husband_id,wife_id,date\nF1,I2,I1,1879-07-25\nF2,I3,I1,1868-08\n",
}


def read(folder, files, **options):
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_sources([folder / name for name in files], SourceOptions(**options))


def relations(tables):
    found = {}
    for piece in tables.edges:
        rows = piece.table.select(["head", "relation", "tail"]).to_pylist()
        found |= {row["relation"]: (row["head"].partition("/")[0], row["tail"].partition("/")[0]) for row in rows}
    return found


def named(tables):
    return [name for piece in tables.nodes for name in piece.table["name"].to_pylist()]


def test_columns_refer_to_the_key_that_their_names_end_with_or_that_their_texts_are(tmp_path):
    tables = read(tmp_path, FAMILY)
    assert relations(tables) == {
        "part_of_place": ("places", "places"),
        "birth_place": ("people", "places"),
        "father": ("people", "people"),
        "husband": ("marriages", "people"),
        "wife": ("marriages", "people"),
    }
    assert sum(piece.table.num_rows for piece in tables.edges) == 11
    assert any("father_id → people (100 %)" in note for note in tables.notes)


def test_numbers_whose_column_names_no_table_refer_to_nothing_and_a_note_says_so(tmp_path):
    numbers = {name: text.replace("I", "").replace("F", "") for name, text in FAMILY.items()}
    tables = read(tmp_path, numbers)
    assert set(relations(tables)) == {"part_of_place", "birth_place"}
    (note,) = [one for one in tables.notes if "Called like keys" in one]
    assert "people.father_id, marriages.husband_id, marriages.wife_id" in note
    *_, note = read(tmp_path, {name: numbers[name] for name in ("people.csv", "marriages.csv")}).notes
    assert "people.birth_place_id, people.father_id, marriages.husband_id" in note


def test_texts_that_are_keys_of_two_files_or_of_none_refer_to_nothing(tmp_path):
    cats = {"cats.csv": "cat_id,name\nI1,Tom\nI2,Puss\nI3,Felix\n"}
    assert "father" not in relations(read(tmp_path, FAMILY | cats))
    strange = {"people.csv": FAMILY["people.csv"].replace(",I3", ",X9")}
    assert "father" not in relations(read(tmp_path, FAMILY | strange))


def test_a_second_spelling_of_the_own_key_refers_to_nothing(tmp_path):
    people = {"people.csv": "person_id,name,site_id\nI1,Ann Webb,I1\nI2,Bob Webb,I2\nI3,Carl Webb,I2\n"}
    tables = read(tmp_path, FAMILY | people)
    assert "site" not in relations(tables)
    assert "husband" in relations(tables)


LINKS = {
    "hops.csv": "hop_id,name\n1,Cascade\n2,Citra\n",
    "recipes.csv": "recipe_id,name\n1,Pale Ale\n2,Porter\n",
}


def test_rows_with_nothing_but_two_references_and_a_number_are_edges(tmp_path):
    link = {"hop_in_recipe.csv": "id,hop_id,recipe_id\n1,1,1\n2,1,1\n3,2,1\n4,2,2\n"}
    tables = read(tmp_path, LINKS | link)
    assert relations(tables) == {"hop_in_recipe": ("hops", "recipes")}
    assert len(named(tables)) == 4


@pytest.mark.parametrize(
    "link", ["id,hop_id,recipe_id,grams\n1,1,1,20\n2,1,1,5\n", "id,hop_id,recipe_id\nFirst wort,1,1\nDry hop,1,1\n"]
)
def test_rows_between_two_others_with_more_to_ask_for_are_nodes_and_a_relation(tmp_path, link):
    tables = read(tmp_path, LINKS | {"hop_in_recipe.csv": link})
    own = {"hop": ("hop_in_recipe", "hops"), "recipe": ("hop_in_recipe", "recipes")}
    assert relations(tables) == own | {"hop_in_recipe": ("hops", "recipes")}
    things = {"brews.csv": "id,hop_id,recipe_id,day\n1,1,1,2021-03-05\n2,1,1,2021-03-06\n"}
    assert relations(read(tmp_path, LINKS | things)) == {"hop": ("brews", "hops"), "recipe": ("brews", "recipes")}


def test_a_link_within_a_table_is_called_after_its_second_column_where_that_says_more(tmp_path):
    mounts = {"mounts.csv": "mount_id,name\nM1,Fujifilm X\nM2,M42\n"}
    accepts = {"mount_compatibility.csv": "mount_id,accepts_mount_id\nM1,M2\n"}
    tables = read(tmp_path, mounts | accepts)
    assert relations(tables) == {"accepts_mount": ("mounts", "mounts")}


LENSES = {
    "makers.csv": "maker_id,name\nK1,Mamiya\n",
    "lenses.csv": "lens_id,serial,model,maker_id\nL1,X77,35mm f/3.5,K1\nL2,X78,80mm f/2.8,K1\n",
}


def test_a_column_of_short_texts_names_the_rows_and_not_their_codes(tmp_path):
    assert named(read(tmp_path, LENSES)) == ["Mamiya", "35mm f/3.5", "80mm f/2.8"]


def test_a_mapped_name_holds_where_the_column_is(tmp_path):
    tables = read(tmp_path, LENSES, columns={"name": "serial"})
    assert named(tables) == ["Mamiya", "X77", "X78"]
    assert relations(tables) == {"maker": ("lenses", "makers")}


def named_by(columns):
    content = {name: pa.chunked_array([values]) for name, values in columns.items()}
    return profile_tables({"camera": content})["camera"].named_by


@pytest.mark.parametrize(
    "others",
    [
        ["https://a.example/x", "www.b.example/y"],
        ["img/one.png", "two.jpeg"],
        ["ann@mail.example", "bob@mail.example"],
        ["2021-03-05T10:00", "2021-04-05T11:00"],
        ["Mar 5, 2021", "April 12, 2021"],
        ["A lens for portraits.", "It is good for sport."],
        ["9f86d081", "a1f0c6e8"],
        ["JFK", "LAX"],
    ],
)
def test_what_each_row_has_of_its_own_need_not_be_its_name(others):
    assert named_by({"other": others, "model": ["EOS 90D", "Z 7"]}) == ("model",)


def test_a_code_names_rows_where_nothing_else_does():
    assert named_by({"code": ["JFK", "LAX"], "size": [1, 2]}) == ("code",)
    assert named_by({"file": ["a.html", "b.html"]}) == ()


EXAMS = {
    "students.csv": "student_id,name\n1,Ada\n2,Alan\n",
    "courses.csv": "course_id,title\n1,algebra\n2,logic\n",
    "exams.csv": "exam_id,student_id,course_id,year,grade\n633,1,1,2021,1.3\n634,1,2,2021,1.0\n635,2,1,,2.0\n",
}


def test_rows_that_connect_others_are_called_after_them(tmp_path):
    tables = read(tmp_path, EXAMS)
    assert named(tables)[-3:] == ["Ada's exam: algebra, 2021", "Ada's exam: logic, 2021", "Alan's exam: algebra"]
    assert "exams: 3 exams, named by what they connect; student_id → students (100 %)" in tables.notes[-1]


def test_a_column_named_like_one_of_edges_may_have_other_values_in_each_file(tmp_path):
    (tmp_path / "shops.csv").write_text("id,name,relation\nA,Ann,1999-02-15\nB,Bo,2000-02-15\n")
    (tmp_path / "items.csv").write_text("item_id,name,relation\nI,Ink,red\nJ,Jug,blue\n")
    clew.build([tmp_path / "shops.csv", tmp_path / "items.csv"], tmp_path / "shop.kb")
    assert clew.open(tmp_path / "shop.kb").show("Ann")["attributes"]["relation"] == "1999-02-15"


RACES = (
    "season,round,race,circuit\n"
    "2007,1,Monza Cup,Monza\n2007,2,Spa Cup,Spa\n2008,1,Spa Cup,Spa\n2008,2,Monza Cup,Monza\n"
)
RESULTS = (
    "season,round,driver,position\n2007,1,Ada,1\n2007,1,Ben,2\n2007,2,Ben,1\n2008,1,Ada,1\n2008,2,Ben,1\n2008,2,Ada,2\n"
)


def test_several_columns_together_refer_to_the_row_that_they_identify(tmp_path):
    (tmp_path / "races.csv").write_text(RACES)
    (tmp_path / "results.csv").write_text(RESULTS)
    tables = read_sources([tmp_path])
    edges = [(row["head"], row["tail"]) for piece in tables.edges for row in piece.table.to_pylist()]
    assert len(edges) == 6
    assert all(f"{tail.removeprefix('races/').replace('/', ', ')}, " in head for head, tail in edges)
    races = {row["key"]: row for piece in tables.nodes for row in piece.table.to_pylist() if row["type"] == "race"}
    assert races["races/2008/2"]["name"] == "2008, Monza Cup"
    results = [row for piece in tables.nodes for row in piece.table.to_pylist() if row["type"] == "result"]
    assert [row["season"] for row in results] == [2007, 2007, 2007, 2008, 2008, 2008], "it says something itself"


def test_columns_that_two_tables_happen_to_have_are_no_reference(tmp_path):
    (tmp_path / "races.csv").write_text(RACES)
    (tmp_path / "results.csv").write_text(RESULTS.replace("2008,2", "2009,3"))
    assert not any(piece.table.num_rows for piece in read_sources([tmp_path]).edges)


def test_codes_are_no_numbers_and_refer_to_the_table_that_they_are_called_after(tmp_path):
    (tmp_path / "regencies.csv").write_text("code,name\n11.01,Lampung\n11.10,Natuna\n11.1,Sleman\n")
    (tmp_path / "islands.csv").write_text("name,regency_code,area\nRusa,11.10,2.5\nRaya,11.1,0.5\nWeh,11.10,1\n")
    tables = read_sources([tmp_path])
    edges = {(row["head"], row["tail"]) for piece in tables.edges for row in piece.table.to_pylist()}
    assert {tail for _, tail in edges} == {"regencies/11.10", "regencies/11.1"}
    assert len(edges) == 3


def test_the_name_of_a_table_s_own_noun_names_its_rows_even_if_some_share_it(tmp_path):
    stops = "1,Old Mill,N,a\n2,Old Mill,S,b\n3,Old Mill,E,c\n4,Harbour,N,d\n5,Harbour,S,e\n"
    (tmp_path / "stops.csv").write_text("stop_id,stop_name,platform,note\n" + stops)
    (piece,) = read_sources([tmp_path / "stops.csv"]).nodes
    assert [row["name"] for row in piece.table.to_pylist()] == ["Old Mill"] * 3 + ["Harbour"] * 2


def test_numbers_in_a_column_of_names_are_names(tmp_path):
    (tmp_path / "trips.csv").write_text("trip_id,trip_short_name\na1,366\na2,101\na3,329\n")
    (piece,) = read_sources([tmp_path / "trips.csv"]).nodes
    assert [row["name"] for row in piece.table.to_pylist()] == ["366", "101", "329"]


def test_a_text_that_repeats_the_name_of_its_own_row_is_no_reference(tmp_path):
    rows = "".join(
        f"{name},{name if name != 'Rocket' else 'Robot'},{name[:2]}\n" for name in ("Rocket", "Robot", "Bed")
    )
    (tmp_path / "recipes.csv").write_text("name,english,short\n" + rows)
    assert not any(piece.table.num_rows for piece in read_sources([tmp_path / "recipes.csv"]).edges)


def test_named_rows_from_and_to_others_are_things(tmp_path):
    rows = "".join(f"LX{number},{ends},{60 + number}\n" for number, ends in enumerate(("BER,ORY", "ORY,LGW") * 3))
    files = {"airports.csv": "label,city\nBER,Berlin\nORY,Paris\nLGW,London\n"}
    tables = read(tmp_path, files | {"flights.csv": f"label,from,to,minutes\n{rows}"})
    assert relations(tables) == {"from": ("flights", "airports"), "to": ("flights", "airports")}


def test_rows_that_start_and_end_on_days_are_things(tmp_path):
    people = [
        {
            "id": f"P{at}",
            "name": f"Person {at}",
            "terms": [{"start": f"200{at}-01-03", "end": f"200{at + 1}-01-03"}] * at,
        }
        for at in (1, 2)
    ]
    (tmp_path / "people.json").write_text(json.dumps(people))
    tables = read_sources([tmp_path / "people.json"])
    assert relations(tables) == {"person": ("terms", "people")}


def test_lists_under_many_keys_are_one_table(tmp_path):
    members = {f"C{at:02}": [{"name": f"Ann {at}", "rank": 1}, {"name": f"Bob {at}", "rank": 2}] for at in range(12)}
    (tmp_path / "members.json").write_text(json.dumps(members))
    committees = "".join(f"{key},Committee {key[1:]}\n" for key in members)
    (tmp_path / "committees.csv").write_text(f"code,title\n{committees}")
    tables = read_sources([tmp_path / "members.json", tmp_path / "committees.csv"])
    assert [piece.table.num_rows for piece in tables.nodes] == [24, 12]
    assert relations(tables) == {"key": ("members", "committees")}


def test_a_name_without_letters_does_not_hide_a_column_of_names(tmp_path):
    models = ["458 Spider", "911", "California", "Cayman", "Boxster", "Spyder", "Huracan", "Aventador"]
    rows = "".join(f"{key},{model},{key * 1000}\n" for key, model in enumerate(models, 1))
    (tmp_path / "cars.csv").write_text("car_id,model,price\n" + rows)
    (node,) = read_sources([tmp_path / "cars.csv"]).nodes
    assert set(node.table["name"].to_pylist()) == set(models)
