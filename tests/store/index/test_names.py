"""Names: exact, misspelt, in another order, by meaning; and names inside running text."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import SchemaError
from clew.core.schema import NodeType, Relation, Schema
from clew.core.types import NodeSet, Ranking
from clew.store.index.fusion import GroupedMembers, join_groups
from clew.store.index.names import NameIndex, NameTable, form_of
from clew.store.index.strings import SortedStrings, TrigramIndex, common_words, sorted_codes
from clew.store.index.tokens import normalise

SCHEMA = Schema(
    (NodeType("disease", 1), NodeType("film", 1), NodeType("gene", 1)), (Relation("has_director", "film", "gene", 1),)
)
NODES = [
    ("Marfan syndrome", "disease", ["MFS"]),
    ("Ehlers-Danlos syndrome, classic type", "disease", []),
    ("FBN1", "gene", ["fibrillin 1", "MFS"]),
    ("It", "film", []),
    ("The Man Who Wasn't There", "film", []),
    ("Titanic (1997 film)", "film", []),
    ("Titanic (1953 film)", "film", []),
    ("Amélie", "film", ["Le Fabuleux Destin d'Amélie Poulain"]),
    ("Director", "film", []),
    ("9", "film", []),
    ("1984", "film", []),
    ("$", "film", []),
    ("東京物語", "film", []),
    ("Paris, Texas", "film", []),
    ("Paris", "film", []),
]
ID = {name: node for node, (name, _, _) in enumerate(NODES)}


def opened(folder: Path, nodes=NODES, **options) -> NameIndex:
    rows = [(alias, node, alias == name) for node, (name, _, others) in enumerate(nodes) for alias in (name, *others)]
    aliases, owners, own = zip(*rows, strict=True)
    NameIndex.write(folder, pa.array(aliases, pa.large_string()), np.array(owners, np.int32), np.array(own))
    types = np.array([SCHEMA.type_code[kind] for _, kind, _ in nodes], dtype=np.int32)
    table, trigrams = NameTable.open(folder), TrigramIndex.open(folder)
    return NameIndex(table, trigrams, types, SCHEMA, name_of=lambda node: nodes[node][0], **options)


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> NameIndex:
    return opened(tmp_path_factory.mktemp("names"))


@pytest.mark.parametrize(
    ("text", "expected", "how"),
    [
        ("Marfan syndrome", "Marfan syndrome", "exact"),
        ("marfan_SYNDROME", "Marfan syndrome", "exact"),
        ("Amelie", "Amélie", "exact"),
        ("ehlers danlos syndrome classic type", "Ehlers-Danlos syndrome, classic type", "exact"),
        ("$", "$", "exact"),
        ("東京物語", "東京物語", "exact"),
        ("Marfn syndrme", "Marfan syndrome", "fuzzy"),
        ("syndrome, Marfan", "Marfan syndrome", "fuzzy"),
        ("Ehlers-Danlos", "Ehlers-Danlos syndrome, classic type", "fuzzy"),
        ("Le Fabuleux Destin d'Amelie Poulin", "Amélie", "fuzzy"),
    ],
)
def test_a_name_is_found_however_it_is_written(names: NameIndex, text: str, expected: str, how: str):
    best = names.link(text)[0]
    assert (best.node, best.how) == (ID[expected], how)
    assert best.score > 0.7


def test_an_alias_of_many_nodes_gives_them_all_own_names_first(names: NameIndex):
    assert {link.node for link in names.link("MFS")} == {ID["Marfan syndrome"], ID["FBN1"]}
    assert [link.node for link in names.link("MFS", type="gene")] == [ID["FBN1"]]
    assert [link.node for link in names.link("MFS", k=1)] == [ID["Marfan syndrome"]]
    with pytest.raises(SchemaError, match="no node type"):
        names.link("MFS", type="planet")


def test_the_better_connected_of_two_equal_names_comes_first(tmp_path: Path):
    twins = [("Paris", "film", []), ("Paris", "film", []), ("Lyon", "film", ["Paris"])]
    index = opened(tmp_path, twins, prominence=lambda nodes: nodes)
    assert [link.node for link in index.link("paris")] == [1, 0, 2]


def test_brackets_may_be_left_out_unless_they_tell_names_apart(names: NameIndex, tmp_path: Path):
    assert {link.alias for link in names.link("Titanic")} == {"Titanic (1997 film)", "Titanic (1953 film)"}
    assert names.link("Titanic (1953 film)")[0].node == ID["Titanic (1953 film)"]
    ship = opened(tmp_path, [*NODES, ("Titanic", "gene", [])])
    assert [link.node for link in ship.link("Titanic") if link.how == "exact"] == [len(NODES)]


def test_short_and_strange_names_are_not_guessed_at(names: NameIndex):
    assert names.link("It's") == () or names.link("It's")[0].how != "exact"
    assert names.link("FB") == ()
    assert names.link("") == ()
    assert names.link("zzzzqqqq") == ()


def test_meaning_is_asked_only_where_spelling_fails(tmp_path: Path):
    asked: list[tuple[str, NodeSet | None]] = []

    class Vectors:
        def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
            asked.append((query, among))
            return Ranking.of([2, 0], [0.6, 0.5], k)

    index = opened(tmp_path, vectors=Vectors)
    assert index.link("Marfan Syndrom")[0].how == "fuzzy"
    assert asked == []
    (best, second) = index.link("connective tissue disorder", type="gene")
    assert (best.node, best.alias, best.how, best.score) == (2, "FBN1", "vector", pytest.approx(0.6))
    assert second.node == 0
    assert asked == [("connective tissue disorder", NodeSet.of([2]))]


def spans(names: NameIndex, text: str) -> list[tuple[str, str]]:
    return [(text[m.start : m.end], names.name_of(m.links[0].node)) for m in names.mentions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is Marfan syndrome's gene FBN1?", [("Marfan syndrome", "Marfan syndrome"), ("FBN1", "FBN1")]),
        ("two MARFAN SYNDROMES?", [("MARFAN SYNDROMES", "Marfan syndrome")]),
        ("who made paris, texas in 1984", [("paris, texas", "Paris, Texas"), ("1984", "1984")]),
        ("who starred in The Man Who Wasn't There", [("The Man Who Wasn't There", "The Man Who Wasn't There")]),
        ("the man who wasn't there", []),
        ("is it an actor who directed it?", []),
        ("who directed It?", [("It", "It")]),
        ("It has a director", []),
        ("what causes Marfn syndrme, please", [("Marfn syndrme", "Marfan syndrome")]),
        ("who wrote AMÉLIE", [("AMÉLIE", "Amélie")]),
        ("東京物語の監督は誰ですか", [("東京物語", "東京物語")]),
        ("who has ehlers danlos", [("ehlers danlos", "Ehlers-Danlos syndrome, classic type")]),
        ("poulain and Paris", [("poulain", "Amélie"), ("Paris", "Paris")]),
        ("who directed 9", [("9", "9")]),
        ("who directed 9 and Paris", [("Paris", "Paris")]),
        ("which Ehlers-Danlos syndrome, classic type?", [("Ehlers-Danlos syndrome, classic type",) * 2]),
        ("", []),
    ],
)
def test_names_in_a_text_are_found_and_everyday_words_are_not(names: NameIndex, text: str, expected):
    assert spans(names, text) == expected


def test_words_of_the_texts_are_no_misspelt_names(tmp_path: Path):
    text = "a marfin syndrome"
    assert spans(opened(tmp_path / "a"), text) == [("marfin syndrome", "Marfan syndrome")]
    known = opened(tmp_path / "b", frequency=lambda word: int(word == "marfin"))
    assert "marfin syndrome" not in [mention.text for mention in known.mentions(text)]
    assert opened(tmp_path / "c").mentions(text, fuzzy=False) == []


GROUPS = [
    ("Night Photographers", "film", []),
    ("Wawel Cathedral", "film", []),
    ("Kraków", "film", []),
    ("Paradise, California", "film", []),
    ("Ward 4B", "film", []),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who is in Night Photograpers in Kraków", [("Night Photograpers", "Night Photographers"), ("Kraków",) * 2]),
        ("who is in night photograpers by now", [("night photograpers", "Night Photographers")]),
        ("born in kraków and buried at wawel", [("kraków", "Kraków"), ("wawel", "Wawel Cathedral")]),
    ],
)
def test_names_of_several_words_may_be_misspelt_or_cut_short(tmp_path: Path, text: str, expected):
    assert spans(opened(tmp_path / "names", GROUPS, frequency=lambda word: int(word == "wawel")), text) == expected


def test_a_part_of_a_name_is_not_the_name_of_a_row_that_connects_it(tmp_path: Path):
    rows = [
        ("Acme Air's flight: Honolulu Intl, 2013", "gene", []),
        ("Bolt Air's flight: Honolulu Intl, 2014", "gene", []),
    ]
    names = opened(tmp_path, [("Honolulu Intl", "disease", []), ("Honolulu Intl North", "disease", []), *rows])
    [mention] = names.mentions("Who goes to Honolulu?")
    assert [link.alias for link in mention.links] == ["Honolulu Intl", "Honolulu Intl North"]
    names = opened(tmp_path / "part", [("Zorba York", "disease", []), ("Zorba Yorker", "gene", [])])
    assert {link.alias for link in names.mentions("Who reads Zorba?")[0].links} == {"Zorba York", "Zorba Yorker"}


def test_a_word_that_texts_use_as_well_stands_beside_other_names_for_none(tmp_path: Path):
    known = opened(tmp_path / "names", GROUPS, frequency=lambda _: 20)
    assert spans(known, "born in kraków and buried at wawel") == [("kraków", "Kraków")]


ALPHABET = st.text("abc é_", max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(ALPHABET.filter(form_of), min_size=1, max_size=12), ALPHABET)
def test_exact_links_are_those_of_equal_form(tmp_path_factory, aliases, wanted):
    index = opened(tmp_path_factory.mktemp("names"), [(alias, "film", []) for alias in aliases])
    expected = {node for node, alias in enumerate(aliases) if form_of(alias) == form_of(wanted)}
    assert {link.node for link in index.link(wanted, k=99) if link.how == "exact"} == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(ALPHABET.filter(normalise), min_size=1, max_size=8), st.lists(ALPHABET, max_size=6))
def test_mentions_never_overlap_and_each_is_an_alias(tmp_path_factory, aliases, words):
    index = opened(tmp_path_factory.mktemp("names"), [(alias, "film", []) for alias in aliases])
    text = "Zürich " + " ".join(words)
    end = 0
    for mention in index.mentions(text, fuzzy=False):
        assert end <= mention.start < mention.end <= len(text)
        assert mention.text == text[mention.start : mention.end]
        assert normalise(mention.text) in {form_of(alias) for alias in aliases}
        end = mention.end


def test_swapped_letters_are_forgiven_in_short_names(tmp_path: Path):
    index = opened(tmp_path, [("China", "film", []), ("Chad", "film", []), ("Chile", "gene", [])])
    assert [link.alias for link in index.spelled("Chnia", k=1)] == ["China"]
    assert [link.alias for link in index.spelled("chlie", k=1)] == ["Chile"]
    assert "Chile" not in [link.alias for link in index.spelled("chlie", type="film")]


def test_two_typos_are_forgiven_among_many_names(tmp_path: Path):
    chooser = random.Random(3)
    words = [word for word in sorted(common_words()) if len(word) > 3]
    many = sorted({" ".join(chooser.sample(words, 3)) for _ in range(5000)})
    index = opened(tmp_path, [(name, "film", []) for name in many])
    found = 0
    for name in chooser.sample(many, 60):
        letters = list(name)
        for place in chooser.sample(range(1, len(letters) - 1), 2):
            letters[place] = chooser.choice("abcdefghijklmnopqrstuvwxyz")
        found += many[index.link("".join(letters))[0].node] == name
    assert found >= 58


@settings(max_examples=80, deadline=None)
@given(st.sets(st.text("ab é", max_size=12), max_size=20), st.text("ab é", max_size=12))
def test_a_string_is_found_where_it_stands(tmp_path_factory, strings, wanted):
    folder = tmp_path_factory.mktemp("strings")
    ordered = sorted(string.encode() for string in strings)
    SortedStrings.write(folder, "s", pa.array([string.decode() for string in ordered], pa.large_string()))
    table = SortedStrings.open(folder, "s")
    key = wanted.encode()
    assert table.find(key) == (ordered.index(key) if key in ordered else None)
    assert table.place(key) == sum(string < key for string in ordered)
    assert [table[place] for place in range(len(table))] == ordered


def test_two_builds_of_the_same_names_are_the_same_bytes(tmp_path: Path):
    for name in ("one", "two"):
        opened(tmp_path / name)
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert files
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("programs written in C++", "C++"),
        ("programs written in C", "C"),
        ("is mercury a transition metal", "Transition metals"),
        ("which lanthanide melts first", "Lanthanides"),
        ("who managed the 1986 Mets?", "1986 New York Mets"),
        ("did the Mets of 1986 win?", "New York Mets"),
        ("who made Ubuntu 20.04?", "Ubuntu 20.04 LTS"),
        ("who made ubuntu 20", "Ubuntu"),
    ],
)
def test_punctuation_and_numbers_tell_names_apart(tmp_path: Path, text: str, expected: str):
    nodes = [
        ("C", "film", []),
        ("C++", "film", []),
        ("Transition metals", "film", []),
        ("Lanthanides", "film", []),
        ("New York Mets", "film", ["Mets"]),
        ("1986 New York Mets", "film", []),
        ("1987 New York Mets", "film", []),
        ("Ubuntu", "film", []),
        *((f"Ubuntu {version} LTS", "film", []) for version in ("20.04", "20.10", "20.11", "20.12", "22.04")),
    ]
    found = opened(tmp_path, nodes).mentions(text)
    assert expected in [nodes[mention.links[0].node][0] for mention in found]


@given(st.lists(st.none() | st.text("ab\0é", max_size=12)))
def test_distinct_strings_are_sorted_by_their_bytes(strings):
    distinct, codes = sorted_codes(pa.array(strings, pa.large_string()))
    assert distinct.to_pylist() == sorted({text for text in strings if text is not None}, key=str.encode)
    assert [None if code < 0 else distinct[code].as_py() for code in codes.tolist()] == strings


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)))))
def test_members_of_a_group_are_joined_in_the_order_of_the_portions(portions):
    portions = [sorted(rows, key=lambda row: row[0]) for rows in portions]
    grouped = [GroupedMembers.of(*np.array(rows, np.int32).reshape(-1, 2).T) for rows in portions]
    offsets, (members,) = join_groups(grouped, 6, (np.int32,))
    every = sorted((row for rows in portions for row in rows), key=lambda row: row[0])
    assert members.tolist() == [member for _, member in every]
    assert np.diff(offsets).tolist() == [sum(group == row[0] for row in every) for group in range(6)]


@given(
    st.lists(st.text("abc ", min_size=1, max_size=6), min_size=1, max_size=60, unique=True), st.sets(st.integers(0, 59))
)
def test_the_nearest_that_are_kept_are_the_first_of_all_that_are(tmp_path_factory, strings, kept):
    folder = tmp_path_factory.mktemp("trigrams")
    TrigramIndex.write(folder, pa.array(strings))
    index = TrigramIndex.open(folder)
    asked = []

    def keep(places):
        asked.append(len(places))
        return np.isin(places, list(kept))

    everything = index.nearest("abca", 1000).tolist()
    assert index.nearest("abca", 2).tolist() == everything[:2]
    assert index.nearest("abca", 2, keep=keep).tolist() == [place for place in everything if place in kept][:2]
    if set(everything[:2]) <= kept:
        assert len(asked) == 1, "no more are looked at than it takes"
