"""Follow-ups in Chromium: turns stay visible and in the address, a new conversation forgets, answers can be stopped."""

import re

from browser_fixtures import MANY, ask

CLEFT = "which of them have cleft palate?"
FOUND = re.compile(r"^\d+ diseases .*Cleft palate")


def follow(page, question: str) -> None:
    before = page.url
    page.get_by_label("Follow-up question").fill(question)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: address != before and "run=" in address)
    page.locator(".answered[aria-busy=false] .follow").wait_for()


def test_a_follow_up_leans_on_what_was_found_and_the_turns_stay_visible(page, site):
    ask(page, site, MANY)
    follow(page, CLEFT)
    assert FOUND.match(page.locator(".written").inner_text())
    turns = page.get_by_role("region", name="Earlier in this conversation")
    turns.get_by_text("diseases have Polydactyly").wait_for()
    follow(page, "why?")
    assert turns.get_by_role("listitem").count() == 2
    turns.get_by_text(FOUND).wait_for()
    page.reload()
    turns.get_by_text(FOUND).wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == "why?"
    page.go_back()
    page.get_by_role("heading", level=1, name=CLEFT).wait_for()
    page.locator(".written", has_text="Cleft palate").wait_for()
    assert turns.get_by_role("listitem").count() == 1
    turns.get_by_role("link", name=f"Open again: {MANY}").click()
    page.locator(".written", has_text="diseases have Polydactyly").wait_for()
    assert turns.count() == 0


def test_what_a_follow_up_was_taken_for_is_said_and_a_whole_question_is_its_own(page, site):
    ask(page, site, "Which genes cause Marfan syndrome?")
    follow(page, "what about Noonan syndrome?")
    assert "Asked as: Which genes cause Noonan syndrome?" in page.locator(".written").inner_text()
    follow(page, MANY)
    assert "diseases have Polydactyly" in page.locator(".written").inner_text()
    assert "Asked as" not in page.locator(".written").inner_text()
    page.locator(".follow").get_by_role("button", name="New conversation").click()
    page.get_by_role("heading", name="What would you like to know?").wait_for()
    assert "h=" not in page.url
    ask(page, site, CLEFT)
    assert "found before" not in page.locator(".written").inner_text()


def test_an_answer_under_way_can_be_stopped_and_asked_again(page, site):
    page.route("**/ask?stream=true", lambda route: None)  # never answered
    page.goto(f"{site}/#/ask?base=hpo&q={MANY}")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("alert").filter(has_text="Stopped").wait_for()
    assert page.locator(".answered[aria-busy=false]").count() == 1
    page.unroute("**/ask?stream=true")
    page.get_by_role("button", name="Ask again").click()
    page.locator(".written", has_text="diseases have Polydactyly").wait_for()


def test_a_link_shows_the_question_of_its_run_whatever_else_it_says(page, site):
    ask(page, site, "Which genes cause Marfan syndrome?")
    run = page.url.rpartition("run=")[2]
    page.goto("about:blank")
    page.goto(f"{site}/#/ask?base=hpo&q=Who is the king of Spain?&h=something else&run={run}")
    page.locator(".written", has_text="FBN1").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == "Which genes cause Marfan syndrome?"
    assert page.get_by_label("Your question").input_value() == "Which genes cause Marfan syndrome?"
    assert "king" not in page.url
    assert "king" not in page.title()


def test_focus_goes_to_the_answer_after_asking(page, site):
    page.goto(f"{site}/#/ask?base=hpo")
    page.get_by_label("Your question").fill(MANY)
    page.keyboard.press("Enter")
    page.locator(".answered[aria-busy=false] .follow").wait_for()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Answer"
