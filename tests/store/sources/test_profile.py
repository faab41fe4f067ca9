"""One profile of every column decides on keys, names, references, lists and categories."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.store.sources.profile import profile_column, profile_tables, split_lists


def column(*values):
    return pa.chunked_array([list(values)])


def tables(**contents):
    return profile_tables({name: {key: column(*cells) for key, cells in one.items()} for name, one in contents.items()})


def references(profile):
    return {key.columns[0]: (key.table, key.targets[0]) for key in profile.table.foreign}


@given(st.lists(st.none() | st.sampled_from(["", " ", "a", "b", "a ", "long text"]), min_size=1, max_size=12))
def test_counts_are_those_of_the_cells(cells):
    found = profile_column("c", pa.chunked_array([pa.array(cells, pa.string())]))
    texts = [cell.strip() for cell in cells if cell and cell.strip()]
    assert (found.rows, found.filled, found.distinct) == (len(cells), len(texts), len(set(texts)))
    assert found.empty == len(cells) - len(texts)
    assert found.is_unique == (len(texts) == len(cells) == len(set(texts)))


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["sea|ship", "sea", "ship|whale", "whale"], "|"),
        (["sea; ship", "sea", "ship; whale"], ";"),
        (["eng,fra", "eng", "fra,eng", "deu"], ","),
        (["INR,BTN", "INR", "BOB,BOV", "USD", "USD,HTG", "USD"], ","),
        (["sea, ship", "ship, sea", "sea", "whale, sea"], ","),
        (["Portland, Oregon", "Salem, Oregon", "Austin, Texas", "Dallas, Texas"], None),
        (["It rains, and it is cold.", "It rains, and it is dark.", "It rains."], None),
        (["a", "b", "c"], None),
        (["80,366", "Bye", "80,366", "1,000", "Bye", "1,366"], None),
        (["5,000m", "10,000m", "10,000m"], None),
        (["3, 5, 12", "5", "3", "12, 5"], ","),
        (["7,4", "3,4", "7", "4,3", "3,3"], None),
    ],
)
def test_lists_in_cells_are_told_from_texts_with_commas(cells, separator):
    assert profile_column("c", column(*cells)).separator == separator
    assert pa.types.is_list(split_lists({"c": column(*cells)})["c"].type) is (separator is not None)


def test_codes_and_names_of_other_tables_are_references():
    found = tables(
        airlines={"carrier": ["UA", "AA", "B6"], "name": ["United", "American", "JetBlue"]},
        airports={"faa": ["EWR", "LGA", "IAH"], "name": ["Newark", "La Guardia", "Houston"]},
        flights={
            "flight": [1545, 1714, 1141, 12],
            "carrier": ["UA", "UA", "AA", "B6"],
            "origin": ["EWR", "LGA", "LGA", "EWR"],
            "dest": ["IAH", "IAH", "EWR", "IAH"],
        },
    )
    expected = {"carrier": ("airlines", "carrier"), "origin": ("airports", "faa"), "dest": ("airports", "faa")}
    assert references(found["flights"]) == expected
    assert found["airports"].table.key == ("faa",)
    assert found["flights"].is_between
    assert found["airlines"].to_text() == "airlines: 3 airlines, named by name"


def test_other_columns_of_small_tables_are_not_referred_to():
    found = tables(
        agencies={"agency_id": ["F", "M"], "agency_name": ["Full", "Minimal"], "zone": ["Europe/Riga", "Europe/Rome"]},
        stops={"stop_id": ["a", "b", "c"], "stop_zone": ["Europe/Riga", "Europe/Rome", "Europe/Riga"]},
    )
    assert references(found["stops"]) == {}


def test_a_panel_is_named_by_the_columns_that_tell_rows_apart():
    found = tables(
        life={"country": ["Chad", "Chad", "Peru", "Peru"], "year": [1952, 1957, 1952, 1957], "age": [38, 40, 43, 46]}
    )
    assert found["life"].named_by == ("country", "year")
    assert found["life"].to_text() == "life: 4 rows, named by country and year"


def test_numbered_columns_and_an_index_beside_the_id_are_references():
    found = tables(
        buses={"uid": [0, 1, 2, 3], "idx": [1, 2, 3, 4], "name": ["Medway", "Millbury", "Walpole", "Sherman"]},
        lines={"name": ["L1", "L2", "L3"], "bus1": [1, 2, 3], "bus2": [2, 3, 4], "idx": [7, 8, 9]},
        loads={"bus": [1, 3], "power": [0.5, 0.25]},
    )
    assert references(found["lines"]) == {"bus1": ("buses", "idx"), "bus2": ("buses", "idx")}
    assert references(found["loads"]) == {"bus": ("buses", "idx")}


def test_a_key_may_leave_out_the_word_that_its_table_shares_with_the_other():
    found = tables(
        pokemon_species={"id": [1, 2, 3], "identifier": ["abra", "bulbasaur", "caterpie"]},
        pokemon={
            "id": [1, 2, 3, 4],
            "identifier": ["a", "b", "c", "d"],
            "species_id": [1, 2, 3, 3],
            "class_id": [1, 1, 2, 2],
        },
        pokemon_evolution={"id": [1, 2], "evolved_species_id": [2, 3], "level": [7, 16]},
        prices={"species_id": [1, 2, 2], "price": [3, 4, 5]},
    )
    assert references(found["pokemon"]) == {"species_id": ("pokemon_species", "id")}
    assert references(found["pokemon_evolution"]) == {"evolved_species_id": ("pokemon_species", "id")}
    assert references(found["prices"]) == {}


def test_keys_with_gaps_are_recognised_without_the_name_of_their_table():
    players = [3501, 5203, 5211, 5470, 6374, 6581, 6613, 6855, 20055]
    found = tables(
        players={"player_id": players, "player": [f"Player {letter}" for letter in "ABCDEFGHI"]},
        seasons={"season_id": [1, 2, 3], "season": ["Spring", "Summer", "Winter"]},
        passes={"pass": range(1, 7), "passer_id": players[:6], "receiver_id": players[3:], "half_id": [1, 2] * 3},
    )
    assert references(found["passes"]) == {
        "passer_id": ("players", "player_id"),
        "receiver_id": ("players", "player_id"),
    }


def test_a_number_called_like_several_rows_of_a_table_counts_them():
    found = tables(
        books={"id": [1, 2, 3], "name": ["Ruth", "Jude", "Job"], "chapters": [4, 1, 3]},
        chapters={"id": [1, 2, 3, 4], "book_id": [1, 1, 2, 3], "verses": [22, 23, 25, 22]},
    )
    assert references(found["books"]) == {}
    assert references(found["chapters"]) == {"book_id": ("books", "id")}


def test_names_of_another_table_are_references_though_each_occurs_once():
    found = tables(
        buses={"label": ["GL_gas", "GL_oil", "R1_el", "R2_el"], "active": [1, 1, 1, 0]},
        loads={"label": ["R1_load", "R2_load"], "from": ["R1_el", "R2_el"]},
        wind={"label": ["R1_wind", "R1_sun", "R2_wind"], "to": ["R1_el", "R1_el", "R2_el"]},
    )
    assert references(found["loads"]) == {"from": ("buses", "label")}
    assert references(found["wind"]) == {"to": ("buses", "label")}


def test_spoken_names_come_before_identifiers_and_others_are_further_names():
    found = tables(
        heroes={
            "name": ["npc_naga_siren", "npc_axe_one"],
            "localized_name": ["Naga Siren", "Axe"],
            "speed": [330, 310],
        },
        routes={"route_short_name": ["A", "B"], "route_long_name": ["Ada Lovelace Line", "Babbage Line"]},
    )
    assert (found["heroes"].named_by, found["heroes"].other_names) == (("localized_name",), ["name"])
    assert found["routes"].other_names == ["route_long_name"]


def test_keys_may_be_called_like_their_table_with_id_or_without():
    found = tables(
        kinds={"kind": [1, 2], "kindname": ["Drama", "Comedy"]},
        orders={"orderid": [1, 2, 3], "tax": [5, 6, 7]},
        lines={"orderid": [1, 1, 3], "kind": [2, 1, 2]},
    )
    assert references(found["lines"]) == {"orderid": ("orders", "orderid"), "kind": ("kinds", "kind")}


def test_a_key_that_two_tables_share_is_that_of_the_table_it_is_named_after():
    found = tables(
        products={"prod_id": [1, 2, 3], "title": ["Ace", "Bee", "Cat"]},
        inventory={"prod_id": [1, 2, 3], "stock": [4, 0, 4]},
        lines={"prod_id": [1, 1, 3], "quantity": [2, 1, 2]},
    )
    assert [references(found[name]) for name in ("products", "inventory")] == [{}, {"prod_id": ("products", "prod_id")}]
    assert references(found["lines"]) == {"prod_id": ("products", "prod_id")}
