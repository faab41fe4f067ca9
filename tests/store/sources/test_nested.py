"""JSON as it is shipped: arrays, objects of objects, nested objects and lists become tables."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import clew
from clew.core.errors import SourceError
from clew.store.sources.nested import nested_tables
from clew.store.sources.read import read_sources

COUNTRIES = [
    {
        "name": {"common": "Latvia", "official": "Republic of Latvia"},
        "cca3": "LVA",
        "currencies": {"EUR": {"name": "Euro", "symbol": "€"}},
        "languages": {"lav": "Latvian"},
        "borders": ["EST", "LTU"],
        "area": 64559,
    },
    {
        "name": {"common": "Estonia", "official": "Republic of Estonia"},
        "cca3": "EST",
        "currencies": {"EUR": {"name": "Euro", "symbol": "€"}},
        "languages": {"est": "Estonian"},
        "borders": ["LVA"],
        "area": 45227,
    },
    {
        "name": {"common": "Lithuania", "official": "Republic of Lithuania"},
        "cca3": "LTU",
        "currencies": {"LTL": {"name": "Litas", "symbol": "Lt"}, "PLN": {"name": "Zloty", "symbol": "zł"}},
        "languages": {"lit": "Lithuanian", "rus": "Russian"},
        "borders": ["LVA"],
        "area": 65300,
    },
]


def written(folder, name, document):
    (folder / name).write_text(json.dumps(document))
    return folder / name


def relations(tables):
    return {relation for piece in tables.edges for relation in piece.table["relation"].to_pylist()}


def names(tables, kind):
    rows = [row for piece in tables.nodes for row in piece.table.to_pylist()]
    return [row["name"] for row in rows if row["type"] == kind]


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_nested_objects_that_come_again_are_things_and_keys_in_lists_refer_to_rows(tmp_path, ending):
    path = written(tmp_path, f"countries.{ending}", COUNTRIES)
    if ending == "jsonl":
        path.write_text("\n".join(map(json.dumps, COUNTRIES)))
    tables = read_sources([path])
    assert names(tables, "country") == ["Latvia", "Estonia", "Lithuania"]
    assert names(tables, "currency") == ["Euro", "Litas", "Zloty"]
    assert relations(tables) == {"currencies", "borders"}
    assert tables.nodes[0].table["languages"].to_pylist()[2] == ["Lithuanian", "Russian"]


def test_an_object_of_objects_is_a_table_named_by_its_keys(tmp_path):
    types = {"text/html": {"source": "iana", "extensions": ["html", "htm"]}, "image/png": {"source": "iana"}}
    tables = read_sources([written(tmp_path, "media_types.json", types)])
    assert names(tables, "media_type") == ["text/html", "image/png"]
    licences = {"MIT": {"name": "MIT License", "osi": True}, "0BSD": {"name": "BSD Zero", "osi": True}}
    (piece,) = read_sources([written(tmp_path, "licences.json", licences)]).nodes
    assert piece.table["key"].to_pylist() == ["MIT", "0BSD"]
    assert piece.table["name"].to_pylist() == ["MIT License", "BSD Zero"]


def test_many_objects_are_rows_even_if_they_hold_tables_or_differ(tmp_path):
    def held(number):
        effects = [{"effect": "slow", "strength": number}, {"effect": "stun", "strength": 2 * number}]
        return {"effects": effects} if number % 3 else {f"field_{number % 5}": number, "cost": 100 * number}

    items = {f"item {number}": held(number) for number in range(1, 31)}
    tables = nested_tables(items, "items")
    assert [row["name"] for row in tables["items"]] == list(items)
    assert len(tables["effects"]) == 40


def test_parts_of_an_object_are_tables_and_their_keys_may_repeat(tmp_path):
    shop = {
        "updated": "2024-01-02",
        "customers": [{"id": 1, "displayName": "Ann"}, {"id": 2, "displayName": "Bob"}],
        "orders": [
            {"id": 1, "customer": 2, "lines": [{"product": "tent", "amount": 2}, {"product": "rope", "amount": 1}]},
            {"id": 2, "customer": 2, "lines": [{"product": "stove", "amount": 3}]},
        ],
    }
    clew.build([written(tmp_path, "shop.json", shop)], tmp_path / "shop.kb")
    base = clew.open(tmp_path / "shop.kb")
    assert {row.name: row.count for row in base.schema.node_types} == {"customer": 2, "order": 2, "line": 3}
    found = {(row.head, row.name, row.tail, row.count) for row in base.schema.relations}
    assert found == {("order", "customer", "customer", 2), ("line", "order", "order", 3)}
    assert base.show("customers/1")["name"] == "Ann"


def test_an_empty_list_where_other_records_have_an_object_is_left():
    languages = [*({f"l{place}": f"Language {place}"} for place in range(9)), []]
    records = [{"code": place, "spoken": spoken} for place, spoken in enumerate(languages)]
    assert nested_tables(records, "lands")["lands"][8:] == [
        {"code": 8, "spoken": ["Language 8"]},
        {"code": 9, "spoken": []},
    ]


def test_fields_of_one_nested_object_are_columns():
    people = [{"name": "Ann", "home": {"city": "Riga", "zip": "LV-1"}}, {"name": "Bob", "home": {"city": "Tartu"}}]
    (records,) = nested_tables(people, "people").values()
    assert records[0] == {"name": "Ann", "home.city": "Riga", "home.zip": "LV-1"}


@pytest.mark.parametrize("document", [3, [], {}, [1, 2], {"a": 1}])
def test_what_holds_no_objects_is_refused_with_what_was_expected(tmp_path, document):
    with pytest.raises(SourceError, match="expected objects"):
        read_sources([written(tmp_path, "numbers.json", document)])


def test_records_nested_in_parquet_are_tables(tmp_path):
    orders = [{"id": 1, "lines": [{"product": "tent"}, {"product": "rope"}]}, {"id": 2, "lines": [{"product": "axe"}]}]
    parquet.write_table(pa.Table.from_pylist(orders), tmp_path / "orders.parquet")
    tables = read_sources([tmp_path / "orders.parquet"])
    assert names(tables, "line") == ["tent", "rope", "axe"]
    assert relations(tables) == {"order"}


def test_a_file_without_a_word_in_its_name_is_called_like_the_field_with_its_rows():
    rounds = [{"name": "Round 1", "day": 1}, {"name": "Round 2", "day": 2}]
    assert list(nested_tables({"name": "League", "rounds": rounds}, "en.1")) == ["rounds"]
    assert list(nested_tables({"name": "League", "rounds": rounds}, "league")) == ["league"]


def test_names_of_nested_records_may_repeat():
    parts = [{"path": f"/items/{own}/{part}", "name": part} for own in "ab" for part in ("Hull", "Sail")]
    tables = nested_tables([{"name": "Ara", "parts": parts[:2]}, {"name": "Bia", "parts": parts[2:]}], "boats")
    assert [row["name"] for row in tables["parts"]] == ["Hull", "Sail", "Hull", "Sail"]


def test_objects_of_one_kind_in_several_fields_are_things(tmp_path):
    riga, tartu, vilnius = ({"key": name.lower(), "name": name} for name in ("Riga", "Tartu", "Vilnius"))
    games = [{"team1": riga, "team2": tartu, "score": 3}, {"team1": tartu, "team2": vilnius, "score": 1}]
    tables = read_sources([written(tmp_path, "games.json", [*games, {"team1": riga, "team2": tartu, "score": 0}])])
    assert names(tables, "team") == ["Riga", "Tartu", "Vilnius"]
    assert relations(tables) == {"team1", "team2"}


inner = st.fixed_dictionaries({"id": st.integers(0, 3), "name": st.sampled_from(["Ada", "Ben", "Cy"])})
inside = st.fixed_dictionaries(
    {},
    optional={
        "boss1": inner,
        "boss2": inner,
        "notes": st.lists(inner, max_size=3),
        "texts": st.dictionaries(st.sampled_from(["en", "de", "fr", "es"]), inner, max_size=3),
        "deep": st.fixed_dictionaries({"notes": st.lists(inner, max_size=2)}),
    },
)


def marked(value, mark):
    """A value with a mark in every text."""
    if isinstance(value, dict):
        return {name: marked(one, mark) for name, one in value.items()}
    if isinstance(value, list):
        return [marked(one, mark) for one in value]
    return f"{mark} {value}" if isinstance(value, str) else value


@given(st.lists(st.tuples(st.booleans(), inside), min_size=2, max_size=6))
def test_what_is_nested_in_a_hidden_record_is_hidden(records):
    rows = [
        {"id": f"r{at}", "groups": ["staff"] if hidden else [], **marked(row, "hidden" if hidden else "open")}
        for at, (hidden, row) in enumerate(records)
    ]
    for table in nested_tables(rows, "records", "groups").values():
        for record in table:
            hidden = "hidden" in json.dumps(record)
            assert bool(record.get("groups")) >= hidden
            assert not (hidden and "open" in json.dumps(record))
