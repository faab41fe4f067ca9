"""A name of like spelling is linked where it is likely the one that was meant; a near meaning never suffices."""

import pytest

from clew.store.index.linking import LINKED, link_probability
from clew.store.index.protocol import Link


def links(*aliases, how="fuzzy"):
    return [Link(node, alias, how, 0.9) for node, alias in enumerate(aliases)]


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("Bayrr", "Bayer"),
        ("arachnodactily", "Arachnodactyly"),
        ("Konkordia hutte", "Konkordiahütte"),
        ("Curie Marie", "Marie Curie"),
        ("Puppet Summenr", "Puppet Summer"),
        ("Denver International", "Denver International Airport"),
        ("Humphrey Davy", "Sir Humphrey Davy"),
    ],
)
def test_spelling_order_and_left_out_words_are_links(text, alias):
    assert link_probability(text, links(alias)) >= LINKED


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("Caraft", "Caraga"),
        ("red deer", "Red eye"),
        ("Florbatosis", "Lipomatosis"),
        ("Fine 2021-07", "Fine 2021-08"),
        ("Delta Survey", "Tapelin Delta"),
    ],
)
def test_other_names_are_no_links(text, alias):
    assert link_probability(text, links(alias)) < LINKED


def test_resemblance_of_vectors_alone_is_no_link():
    assert link_probability("red deer", links("Reindeer", how="vector")) == 0.0
    assert link_probability("red deer", []) == 0.0


def test_the_same_name_is_a_sure_link():
    assert link_probability("re", links("re", how="exact")) == 1.0


def test_a_word_of_many_names_is_less_likely_to_mean_the_first():
    alone = link_probability("Smith", links("Anna Smith"))
    assert link_probability("Smith", links("Anna Smith", "Ben Smith", "Cora Smith", "Dan Smith")) < alone


def test_longer_forms_of_the_nearest_name_are_no_rivals():
    alone = link_probability("Yankees", links("New York Yankees"))
    assert link_probability("Yankees", links("New York Yankees", "1978 New York Yankees")) == alone
