"""What was understood can be changed, in Chromium: names and relations as chips, shown as changed, with undo."""

from urllib.parse import quote

import pytest

from browser_fixtures import MANY, answered

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


def test_a_change_that_leaves_nothing_required_is_said(asked):
    page = asked
    page.get_by_role("list", name=CHIPS).locator("summary", has_text="Polydactyly").click()
    page.get_by_role("button", name="Nothing: leave it out").click()
    changed(page, "polydactyly→")
    assert "nothing in the question is required any more" in page.locator(".effect").inner_text()
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
