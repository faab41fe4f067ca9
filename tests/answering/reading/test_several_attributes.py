"""Readings take all attributes that a question names."""

import clew

NAMES = ("Abbing", "Allen", "Baclini", "Becker", "Cumings", "Davies", "Eustis", "Fortune", "Hays", "Kelly")


def test_several_attributes_are_columns_of_the_answer(tmp_path):
    file = tmp_path / "towers.csv"
    rows = ["Eiffel Tower,300,48.86,2.29", "Fernsehturm,368,52.52,13.41", "Torre de Belém,30,38.69,-9.22"]
    file.write_text("\n".join(["name,height,latitude,longitude", *rows]) + "\n", "utf-8")
    clew.build([file], tmp_path / "towers.kb")
    base = clew.open(tmp_path / "towers.kb")
    assert base.ask("What is the height of the Eiffel Tower?").value == 300
    answer = base.ask("What are the latitude and longitude of the Eiffel Tower?")
    [(tower, *values)] = answer.rows
    assert (tower.name, values) == ("Eiffel Tower", [48.86, 2.29])
    assert base.query(answer.query["query"]).rows == answer.rows


def test_different_values_of_several_rows_are_rows_of_the_answer(tmp_path):
    file = tmp_path / "games.csv"
    lines = [f"Team {number},{place},{number}0" for number, place in enumerate(["Oslo", "Bergen", "Oslo"] * 4, start=1)]
    file.write_text("\n".join(["Opponent,Site,Points", *lines]) + "\n", "utf-8")
    clew.build([file], tmp_path / "games.kb")
    answer = clew.open(tmp_path / "games.kb").ask("What are the points at the site Oslo?")
    assert sorted(row[-1] for row in answer.rows) == [10, 30, 40, 60, 70, 90, 100, 120]
    assert answer.value is None


def test_dates_are_not_added_up(tmp_path):
    file = tmp_path / "places.csv"
    rows = [
        "Bronson Library,Bronson,2000-09-28",
        "Branch Courthouse,Coldwater,1989-03-16",
        "Old Mill,Bronson,1990-01-05",
    ]
    file.write_text("\n".join(["Name,City,Listing date", *rows]) + "\n", "utf-8")
    clew.build([file], tmp_path / "places.kb")
    base = clew.open(tmp_path / "places.kb")
    for question in ("what is the total listing date of names on this chart?", "What is the sum of the listing dates?"):
        assert "sum(" not in base.ask(question).query.get("query", "")


def test_what_comes_before_or_after_a_row_is_in_the_row_beside_it(tmp_path):
    file = tmp_path / "winners.csv"
    rows = ["Hong Kong,Victor Espiritu,Philippines", "Korea,Wong Kam-po,Hong Kong", "Japan,Tang Xuezhong,China"]
    rows += ["China,Wong Kam-po,Hong Kong", "Iran,Ghader Mizbani,Iran"]
    lines = [f"{year},Tour of {row}" for year, row in enumerate(rows, start=2001)]
    file.write_text("\n".join(["Year,Race,Winner,Country", *lines]) + "\n", "utf-8")
    clew.build([file], tmp_path / "winners.kb")
    base = clew.open(tmp_path / "winners.kb")
    for question, names in (
        ("Which race comes after the Tour of Japan?", {"Tour of China"}),
        ("what country is below China?", {"Hong Kong"}),
    ):
        assert {one.node.name for one in base.ask(question).matches} == names


def test_a_column_of_zeros_and_ones_says_yes_or_no(tmp_path):
    file = tmp_path / "passengers.csv"
    people = [(name, at, place) for at, name in enumerate(NAMES) for place in (1, 2)]
    rows = [f"{name} {place},{20 + 3 * at + place},{(at + place) % 2}" for name, at, place in people]
    file.write_text("\n".join(["name,age,survived", *rows]) + "\n", "utf-8")
    clew.build([file], tmp_path / "passengers.kb")
    base = clew.open(tmp_path / "passengers.kb")
    assert base.schema.attribute_types["survived"] == "integer"
    assert base.ask("How many passengers survived?").value == len(NAMES)
    assert base.ask("Did Allen 2 survive?").value == 1
