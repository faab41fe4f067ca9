"""Things without a name are found by their type and key."""

import pytest

import clew

PEOPLE = "person_id,full_name,born\n1,Ada Vale,1980\n2,Ben Fell,1975\n16,Cy Dale,1990\n"
ORDERS = "order_id,person_id,amount\n1,2,40\n2,1,30\n3,1,70\n12,16,90\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orders")
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "orders.csv").write_text(ORDERS)
    clew.build(folder, folder / "orders.kb")
    return clew.open(folder / "orders.kb")


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is the amount of order 2?", 30),
        ("What is the amount of order 12?", 90),
        ("When was person 2 born?", 1975),
    ],
)
def test_a_number_after_a_type_is_a_key(base, question, value):
    assert base.ask(question).value == value


def test_a_number_that_is_no_key_is_not_linked(base):
    assert base.ask("What is the amount of order 99?").state == "not_found"
