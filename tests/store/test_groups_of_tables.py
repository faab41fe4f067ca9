"""Nothing of a hidden row is in what others see, whatever tables a base is made of."""

import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.core.errors import NotFoundError
from clew.store.sources.files import SourceOptions
from repeats import repeats

WORDS = ["Tent", "Stove", "Rope", "Lamp", "Boat", "Map"]
thing = st.tuples(st.sampled_from(WORDS), st.booleans())
line = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 3), st.booleans())


def text(word, number, hidden):
    """A name that says whether it is hidden."""
    return f"{'hidden' if hidden else 'open'}{word} {number}"


def write(folder, products, customers, lines, nested):
    """Four tables that refer to each other, or two with the lines of each customer inside."""
    rows = [
        {"product_id": f"p{at}", "name": text(word, at, hidden), "kind": text(word, "", hidden), "acl": hidden}
        for at, (word, hidden) in enumerate(products)
    ]
    people = [
        {"customer_id": f"c{at}", "name": text(word, at, hidden), "town": text(word, "", hidden), "acl": hidden}
        for at, (word, hidden) in enumerate(customers)
    ]
    sold = [
        {
            "line_id": f"l{at}",
            "customer_id": f"c{customer % len(customers)}",
            "product_id": f"p{product % len(products)}",
            "day": f"2024-01-0{day}",
            "comment": text("note", at, hidden),
            "acl": hidden,
        }
        for at, (customer, product, day, hidden) in enumerate(lines)
    ]
    visits = {(one["customer_id"], one["day"]): one["day"].endswith("3") for one in sold}  # referred to by two columns
    days = [
        {"customer_id": customer, "day": day, "place": text("place", f"{customer} {day}", hidden), "acl": hidden}
        for (customer, day), hidden in visits.items()
    ]
    for row in (*rows, *people, *sold, *days):
        row["acl"] = "board" if row["acl"] else ""
    if nested:
        for person in people:
            own = [one for one in sold if one["customer_id"] == person["customer_id"]]
            person["lines"] = [
                {"product_id": one["product_id"], "comment": text("note", one["line_id"], bool(person["acl"]))}
                for one in own
            ]
    tables = {"products": rows, "customers": people} | ({} if nested else {"lines": sold, "visits": days})
    for name, table in tables.items():
        (folder / f"{name}.json").write_text(json.dumps(table))
    return [folder / f"{name}.json" for name in tables]


@given(
    st.lists(thing, min_size=2, max_size=6),
    st.lists(thing, min_size=2, max_size=6),
    st.lists(line, min_size=2, max_size=8),
    st.booleans(),
)
@settings(max_examples=repeats(40, 4_000))
def test_no_text_of_a_hidden_row_is_in_what_others_see(products, customers, lines, nested):
    folder = Path(tempfile.mkdtemp())
    try:
        files = write(folder, products, customers, lines, nested)
        clew.build(files, folder / "shop.kb", options=SourceOptions(columns={"groups": "acl"}))
        try:
            kb = clew.open(folder / "shop.kb").for_groups([]).tools.kb
        except NotFoundError:  # everything is hidden
            return
        shown = [kb.text(node, relations=True) for node in kb.nodes().array.tolist()]
        shown += [f"{ref.name} {ref.key}" for ref in kb.refs(kb.nodes().array)]
        shown += [str(kb.distinct(name)) for name in kb.schema.attribute_types]
        assert not any("hidden" in one for one in shown)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
