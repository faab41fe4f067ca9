"""The answer first, in Chromium: the sentence, matches apart from what is near, what was not found, and no jargon."""

import re

import pytest

from browser_fixtures import MANY, MARFAN, ask
from clew.store.building import build
from conftest import tables

JARGON = ("substitution", "strand", "tfidf", "satisfies the query", "document 0.")


def test_the_sentence_its_certainty_and_what_was_understood_come_first(page, site):
    ask(page, site, MARFAN)
    head = page.get_by_role("region", name="Answer", exact=True)
    assert re.match(r"1 gene .*Marfan syndrome: FBN1\.", head.locator(".said").inner_text())
    assert re.search(r"\d\d % sure", head.inner_text())
    assert re.search(r"I understood: genes .*Marfan syndrome", head.inner_text())
    assert page.get_by_role("list", name="Matches", exact=True).locator("details.answer").count() == 1
    near = page.get_by_role("region", name="Not matching, but near")
    assert near.locator("details.answer").count() == 4
    assert "FBN1" not in near.locator(".name").all_inner_texts()
    shown = page.locator(".main").inner_text()
    assert not [word for word in JARGON if word in shown]
    assert "It fits a similar name" in near.inner_text()


def test_scores_stay_under_details(page, site):
    ask(page, site, MARFAN)
    card = page.locator("details.answer[open]").first
    assert "score" not in card.inner_text()
    card.locator(".raw summary").click()
    assert re.search(r"score \d", card.inner_text())
    assert "satisfies the query" in card.inner_text()


def test_ten_are_shown_of_all_and_then_more(page, site):
    ask(page, site, MANY)
    matches = page.get_by_role("region", name="Matches", exact=True)
    said = page.locator(".said").inner_text()
    total = int(re.match(r"(\d+) ", said)[1])
    assert matches.locator("details.answer").count() == 10
    assert matches.locator(".count").inner_text() == f"10 of {total}"
    matches.get_by_role("button", name="Show 10 more").click()
    assert matches.locator(".count").inner_text() == f"20 of {total}"
    matches.get_by_role("button", name=f"Show all {total}").click()
    assert matches.locator("details.answer").count() == total
    assert matches.get_by_role("button", name="Show").count() == 0


def test_what_is_counted_is_listed_whole(page, site):
    ask(page, site, "How many diseases present with polydactyly?")
    total = int(re.match(r"(\d+) ", page.locator(".said").inner_text())[1])
    matches = page.get_by_role("region", name="Matches", exact=True)
    assert matches.locator(".count").inner_text() == f"10 of {total}"
    matches.get_by_role("button", name=f"Show all {total}").click()
    assert matches.locator("details.answer").count() == total


def test_answers_are_a_table_that_can_be_sorted_and_has_an_address(page, site):
    ask(page, site, MANY)
    page.get_by_role("button", name="Table").click()
    names = page.locator(".answer-table tbody td:nth-child(2)")
    before = names.all_inner_texts()
    assert len(before) == 10
    page.get_by_role("button", name="Sort by Name").click()
    by_name = names.all_inner_texts()
    assert sorted(by_name) == sorted(before)
    assert (
        by_name.index("Meckel syndrome 3")
        < by_name.index("Meckel syndrome 11")
        < by_name.index("Rabson-Mendenhall syndrome")
    )
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Name")
    page.get_by_role("button", name="Sort by Name").click()
    assert names.all_inner_texts() == by_name[::-1]
    page.get_by_role("button", name="Sort by frequency").click()
    assert "as=table" in page.url
    page.reload()
    page.locator(".answer-table").first.wait_for()


def test_what_is_not_found_is_a_state_of_its_own(page, site):
    ask(page, site, "zzzzqqq blorp")
    page.get_by_role("heading", name="I do not know “zzzzqqq").wait_for()
    head = page.get_by_role("region", name="Answer", exact=True)
    assert "sure" not in head.inner_text()
    assert page.locator("details.answer").count() == 0


def test_a_method_that_only_ranks_does_not_claim_matches(page, site):
    ask(page, site, MARFAN, "&method=bm25")
    assert "only ranks what is written" in page.get_by_role("region", name="Answer", exact=True).inner_text()
    assert page.get_by_role("heading", name="Not matching, but near").count() == 0


@pytest.fixture(scope="module")
def site_with_a_dead_model(tmp_path_factory):
    pytest.importorskip("fastapi", reason="the page needs the extra web")
    from clew.server.settings import ServerSettings
    from web_server import running

    folder = tmp_path_factory.mktemp("dead") / "tiny.kb"
    build(tables(), folder)
    with running(ServerSettings({"tiny": folder}, models={"fast": "http://127.0.0.1:9/v1#secret-name"})) as address:
        yield address


def test_a_model_that_was_given_up_is_said_at_the_very_top_without_its_address(page, site_with_a_dead_model):
    ask(page, site_with_a_dead_model, "Which genes cause Marfan syndrome?", "&model=fast", base="tiny")
    first = page.locator(".answered > *").first
    assert "The model did not answer" in first.inner_text()
    kept = page.request.get(f"{site_with_a_dead_model}/v1/bases/tiny/runs/{page.url.rpartition('run=')[2]}").text()
    assert '"failure": "outage"' in kept
    assert "127.0.0.1:9" not in kept
    assert "127.0.0.1:9" not in page.content()


def test_plain_questions_are_answered_as_they_are_meant(page, site):
    ask(page, site, "What are the symptoms of Marfan syndrome?")
    head = page.get_by_role("region", name="Answer", exact=True)
    assert re.match(r"\d+ phenotypes ", head.locator(".said").inner_text())
    page.get_by_role("button", name="Show all").click()
    assert "Arachnodactyly" in page.get_by_role("list", name=re.compile("(M|Possible m)atches")).inner_text()
    ask(page, site, "What is Marfan syndrome?")
    head.locator(".said", has_text="Marfan syndrome is ").wait_for()
    ask(page, site, "Does Marfan syndrome present with arachnodactyly?")
    head.locator(".said", has_text=re.compile("^Yes")).wait_for()


def test_a_thumb_confirms_for_learning_and_another_withdraws(page, tmp_path):
    from clew.server.settings import ServerSettings
    from clew.store.confirmed import read_confirmed
    from web_server import running

    build(tables(), tmp_path / "tiny.kb")
    with running(ServerSettings({"tiny": tmp_path / "tiny.kb"})) as address:
        ask(page, address, MARFAN, base="tiny")
        page.get_by_role("button", name="This is right").click()
        page.get_by_text("Kept, to learn from").wait_for()
        [confirmed] = read_confirmed(tmp_path / "tiny.kb")
        assert (confirmed.question, confirmed.answers) == (MARFAN, ["FBN1"])
        page.get_by_role("button", name="This is wrong").click()
        page.get_by_text("nothing is learned from it").wait_for()
        assert page.get_by_role("button", name="This is wrong").get_attribute("aria-pressed") == "true"
        assert read_confirmed(tmp_path / "tiny.kb") == []
        ask(page, address, "zzzzqqq blorp", base="tiny")
        page.get_by_role("heading", name="I do not know “zzzzqqq").wait_for()
        assert page.get_by_role("button", name="This is right").count() == 0
        page.close()  # before the server, which it may still ask
