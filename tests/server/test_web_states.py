"""The page says the state of an answer and nothing else, in Chromium: headline, heading, percentage and colour."""

import json
import re
from pathlib import Path

from answer_states import ANSWERS, contradictions
from browser_fixtures import answered, ask

LIST = "Which diseases have Abnormal thumb morphology?"


def run_of(answer) -> dict:
    """As the server sends it."""
    spent = {"calls": 0, "cached": 0, "failed": 0, "prompt_tokens": 0, "completion_tokens": 0, "dollars": 0.0}
    request = {"question": answer.question, "model": "none", "k": 10_000, "history": []}
    return {"run": "a" * 12, "base": "hpo", **answer.to_dict(), "trace": [], "spending": spent, "request": request}


def telling() -> dict:
    """One answer of each kind that the page could show in another way."""
    kinds = {}
    for name, answer in ANSWERS.items():
        shown = answer.to_dict()
        counts = (bool(answer.matches), bool(answer.near), shown["percent"] is None, bool(answer.query.get("relaxed")))
        kinds.setdefault((answer.state, type(answer.value), *counts, (answer.text or "")[:12]), (name, answer))
    return dict(kinds.values())


def test_the_page_does_not_contradict_the_state(page, site):
    runs, errors = {}, []
    for number, (name, answer) in enumerate(telling().items()):
        runs[f"q{number:03}"] = (name, answer, run_of(answer))

    def sent(route):
        run = runs[json.loads(route.request.post_data)["question"]][2]
        route.fulfill(body=f"event: run\ndata: {json.dumps(run)}\n\n", headers={"content-type": "text/event-stream"})

    page.route("**/v1/bases/hpo/ask*", sent)
    page.route("**/mentions*", lambda route: route.fulfill(json=[]))
    page.route(
        "**/neighbors*", lambda route: route.fulfill(json={"nodes": [], "edges": [], "counts": [], "left_out": 0})
    )
    seen = set()
    for question, (name, answer, _) in runs.items():
        ask(page, site, question)
        errors += [
            (name, *found) for found in [contradictions(answer, page.locator(".answered").inner_text())] if found
        ]
        seen.add((answer.state, page.locator(".written").first.get_attribute("class").split()[1]))
        sure = page.locator(".certainty")
        if sure.count():
            seen.add((answer.state, sure.first.evaluate("one => getComputedStyle(one).color")))
    assert errors == []
    assert {(one, other) for one, other in seen if not other.startswith("rgb")} == {
        (s, s) for s in ("found", "maybe", "not_found")
    }
    colours = {state: {other for one, other in seen if one == state and other.startswith("rgb")} for state, _ in seen}
    assert len(colours["found"]) == len(colours["maybe"]) == 1
    assert colours["found"] != colours["maybe"]
    assert not colours["not_found"]
    red = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--error')").strip()
    assert red not in {*colours["found"], *colours["maybe"]}


def test_all_of_a_long_list_is_shown_filtered_and_exported(page, site):
    ask(page, site, LIST)
    head = page.get_by_role("region", name="Answer", exact=True)
    total = int(re.match(r"([\d,]+) diseases have ", head.locator(".said").inner_text())[1].replace(",", ""))
    assert total > 200
    matches = page.get_by_role("region", name="Matches", exact=True)
    assert matches.locator(".count").inner_text() == f"10 of {total}"
    matches.get_by_role("button", name=f"Show all {total}").click()
    assert matches.locator("details.answer").count() == total
    last = matches.locator("details.answer").last
    last.locator("summary").first.click()
    assert "No evidence was collected for this one" in last.inner_text()
    matches.get_by_label("Filter these answers").fill("trigger thumb")
    assert "Trigger thumb" in matches.locator(".name").all_inner_texts()
    assert matches.locator("details.answer").count() < 10
    matches.get_by_label("Filter these answers").fill("zzzz")
    assert "None of them fits" in matches.inner_text()
    with page.expect_download() as saved:
        page.get_by_label("Download the answers as CSV").click()
    rows = Path(saved.value.path()).read_text("utf-8-sig").splitlines()
    assert sum(",match," in row for row in rows) == total


def test_a_hierarchy_is_a_chip_that_can_be_turned_off_and_on_again(page, site):
    ask(page, site, LIST)
    said = page.get_by_role("region", name="Answer", exact=True).locator(".said")
    assert "or a kind of it" in said.inner_text()
    assert "directly)" in said.inner_text()
    page.locator(".understood-chips summary", has_text="or a kind of it").click()
    page.get_by_role("button", name="Only what was named").click()
    page.locator(".chip", has_text="Only what was named").wait_for()
    answered(page)
    assert "a kind of it" not in said.inner_text()
    assert "kinds=no" in page.url
    page.get_by_role("button", name="Undo the change of what lies below a name").click()
    page.locator(".understood-chips summary", has_text="or a kind of it").wait_for()


def test_a_list_too_long_for_one_reply_is_loaded_and_exported_in_parts(page, site):
    ask(page, site, LIST)
    sizes = []

    def cut(route):
        asked = json.loads(route.request.post_data)
        reply = route.fetch(post_data=json.dumps({**asked, "k": 250}))
        sizes.append(asked.get("offset", 0))
        route.fulfill(response=reply)

    page.route("**/v1/bases/hpo/ask*", cut)
    page.goto("about:blank")
    page.goto(f"{site}/#/ask?base=hpo&q={LIST}")
    answered(page)
    matches = page.get_by_role("region", name="Matches", exact=True)
    matches.get_by_role("button", name="Show all 250").click()
    assert matches.locator(".count").inner_text().startswith("250 of ")
    with page.expect_download() as saved:
        page.get_by_label("Download the answers as JSON").click()
    run = json.loads(Path(saved.value.path()).read_text("utf-8"))
    assert len(run["answers"]) == run["matches"] > 500
    assert len({one["key"] for one in run["answers"]}) == run["matches"]
    assert sizes[:3] == [0, 250, 500]
