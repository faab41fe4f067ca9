"""What was understood can be changed, in Chromium: names, relations, direction, type; shown as changed, with undo."""

from urllib.parse import quote

import pytest

from browser_fixtures import MANY, answered, ask

CHIPS = "What was understood; each can be changed"


@pytest.fixture
def asked(page, site):
    page.goto(f"{site}/#/ask?base=hpo&q={MANY}")
    answered(page)
    return page


def changed(page, part: str) -> None:
    page.wait_for_url(f"**{quote(part, safe='')}**run=**")
    answered(page)


def test_a_name_is_given_another_meaning_shown_as_changed_and_undone(asked):
    page = asked
    chips = page.get_by_role("list", name=CHIPS)
    assert "changed by you" not in chips.inner_text()
    chips.locator("summary", has_text="Polydactyly").click()
    page.get_by_role("button", name="Preaxial hand polydactyly").click()
    changed(page, "polydactyly→HP:0001177")
    assert "Preaxial hand polydactyly" in page.locator(".understood").inner_text()
    assert "changed by you" in chips.inner_text()
    chips.locator("summary", has_text="polydactyly").click()
    page.get_by_role("button", name="Something else …").click()
    page.get_by_role("combobox", name="What “polydactyly” means").fill("arachnodactyly")
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Enter")
    changed(page, "polydactyly→HP:0001166")
    page.reload()
    answered(page)
    assert "Arachnodactyly" in page.locator(".understood").inner_text()
    assert "changed by you" in chips.inner_text()
    page.get_by_role("button", name="Undo the change of “polydactyly”").click()
    page.wait_for_url(lambda address: "fix=" not in address and "run=" in address)


def test_a_relation_is_changed_and_undone(asked):
    page = asked
    chips = page.get_by_role("list", name=CHIPS)
    chips.locator("summary", has_text="has phenotype").click()
    page.get_by_label("What “has phenotype” should be").select_option("excludes_phenotype")
    changed(page, "has_phenotype→excludes_phenotype")
    assert "changed by you" in chips.inner_text()
    page.get_by_role("button", name="Undo the change of the relation “has phenotype”").click()
    page.wait_for_url(lambda address: "rel=" not in address and "run=" in address)


def test_a_relation_is_turned_round_and_back(page, site):
    ask(page, site, "Which phenotypes are kinds of polydactyly?")
    chips, understood = page.get_by_role("list", name=CHIPS), page.locator(".understood")
    before = understood.inner_text()
    chips.locator("summary", has_text="is a kind of").click()
    page.get_by_role("button", name="The other way round").click()
    changed(page, "is_a→^is_a")
    assert understood.inner_text() != before
    assert "changed by you" in chips.locator("li", has_text="is a kind of").inner_text()
    page.reload()
    answered(page)
    chips.locator("summary", has_text="is a kind of").click()
    page.get_by_role("button", name="The other way round").click()
    page.wait_for_url(lambda address: "rel=" not in address and "run=" in address)
    answered(page)
    assert understood.inner_text() == before


def test_a_relation_between_two_types_offers_no_turn(asked):
    asked.get_by_role("list", name=CHIPS).locator("summary", has_text="has phenotype").click()
    assert asked.get_by_role("button", name="The other way round").count() == 0


def test_another_type_is_asked_for_and_its_relation_is_a_chip_too(asked):
    page = asked
    chips = page.get_by_role("list", name=CHIPS)
    chips.locator("summary", has_text="asked for: disease").click()
    page.get_by_label("What should be asked for").select_option("gene")
    page.wait_for_url("**type=gene**run=**")
    answered(page)
    assert "genes associated with diseases that have Polydactyly" in page.content()
    assert page.locator(".answer").first.get_by_text("gene", exact=True).count()
    assert "changed by you" in chips.locator("li", has_text="asked for: gene").inner_text()
    assert chips.locator("summary", has_text="is associated with disease").count() == 1
    page.get_by_role("button", name="Undo the change of what is asked for").click()
    page.wait_for_url(lambda address: "type=" not in address and "run=" in address)


def test_a_change_that_cannot_be_asked_says_why_and_stays_there_to_undo(page, site):
    page.goto(f"{site}/#/ask?base=hpo&q={MANY}&rel=has_phenotype→^has_phenotype&type=gene&fix=polydactyly→HP:0001177")
    page.get_by_role("alert").wait_for()
    assert "cannot be meant the other way round" in page.get_by_role("alert").inner_text()
    chips = page.get_by_role("list", name=CHIPS)
    assert chips.get_by_text("changed by you").count() == 3
    page.get_by_role("button", name="Undo the change of the relation “has phenotype”").click()
    page.wait_for_url(lambda address: "rel=" not in address and "run=" in address)
    answered(page)
    assert chips.get_by_text("changed by you").count() == 2
    page.get_by_role("button", name="Undo the change of what is asked for").click()
    page.wait_for_url(lambda address: "type=" not in address and "run=" in address)


def test_a_name_that_is_left_out_is_not_required(asked):
    page = asked
    page.get_by_role("list", name=CHIPS).locator("summary", has_text="Polydactyly").click()
    page.get_by_role("button", name="Nothing: leave it out").click()
    changed(page, "polydactyly→")
    assert "Polydactyly" not in page.locator(".understood").inner_text()
    assert "left out" in page.get_by_role("list", name=CHIPS).inner_text()
    page.get_by_role("button", name="Undo the change of “polydactyly”").click()
    page.wait_for_url(lambda address: "fix=" not in address and "run=" in address)


def test_a_change_has_no_effect_on_a_method_that_reads_no_names_and_that_is_said(page, site):
    page.goto(f"{site}/#/ask?base=hpo&q={MANY}&method=bm25&fix=polydactyly→")
    answered(page)
    assert "your change has no effect" in page.locator(".effect").inner_text()


def test_a_change_in_a_conversation_is_asked_as_the_whole_question(page, site):
    history = "h=Which diseases present with cleft palate?"
    page.goto(f"{site}/#/ask?base=hpo&q=what about polydactyly?&{history}&fix=polydactyly→HP:0001177")
    answered(page)
    assert "Preaxial hand polydactyly" in page.locator(".understood").inner_text()
    assert "Asked as: Which diseases present with polydactyly?" in page.locator(".written").inner_text()
