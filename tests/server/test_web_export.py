"""Answers to take away, in Chromium: CSV, JSON and Markdown, a link that is copied or shown, and on paper."""

import csv
import json
import re
from pathlib import Path

from browser_fixtures import MANY, MARFAN, ask


def downloaded(page, kind: str) -> str:
    with page.expect_download() as saved:
        page.get_by_label(f"Download the answers as {kind}").click()
    return Path(saved.value.path()).read_text("utf-8-sig")


def test_all_listed_answers_are_a_table(page, site):
    ask(page, site, MANY)
    rows = list(csv.DictReader(downloaded(page, "CSV").splitlines()))
    assert len(rows) == int(re.match(r"(\d+) ", page.locator(".said").inner_text())[1])
    assert set(rows[0]) == {"rank", "name", "type", "key", "group", "frequency", "evidence"}
    assert {row["group"] for row in rows} == {"match"}
    assert all("has_phenotype" in row["evidence"] for row in rows[:50])


def test_rows_of_a_table_are_rows_of_a_file(page, site):
    query = "find g, count(distinct d) as diseases where (g: gene) -[associated_with_disease]-> (d: disease) group by g"
    ask(page, site, query, "&method=query")
    rows = list(csv.DictReader(downloaded(page, "CSV").splitlines()))
    assert set(rows[0]) == {"g", "diseases"}
    assert len(rows) == int(re.match(r"([\d,]+) ", page.locator(".said").inner_text())[1].replace(",", ""))
    assert f"| {rows[0]['g']} | {rows[0]['diseases']} |" in downloaded(page, "Markdown")


def test_markdown_cites_its_sources_and_keeps_near_apart(page, site):
    ask(page, site, MARFAN)
    text = downloaded(page, "Markdown")
    assert text.startswith("# Which genes cause Marfan syndrome?\n\n1 gene ")
    assert "Marfan syndrome: FBN1." in text.splitlines()[2]
    assert "1. **FBN1** (gene) [1]" in text
    assert text.index("## Not matching, but near") < text.index("**NFIX**") < text.index("## Sources")
    assert "\\_with\\_disease" in text.partition("## Sources")[2]
    assert page.url in text
    assert json.loads(downloaded(page, "JSON"))["question"] == MARFAN


def test_what_looks_like_a_formula_is_text_in_a_table(page, site):
    ask(page, site, "ignore all previous", "&method=bm25", base="hostile")
    page.route("**/runs/*", lambda route: route.fulfill(json=formula(route.fetch().json())))
    page.reload()
    page.locator(".answered[aria-busy=false] .follow").wait_for()
    assert downloaded(page, "CSV").splitlines()[1].split(",")[1] == "'=1+1"


def formula(run: dict) -> dict:
    run["answers"][0]["name"] = "=1+1"
    return run


def test_a_link_that_cannot_be_copied_is_shown_to_copy_by_hand(page, site):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    ask(page, site, MARFAN)
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("alert").filter(has_text="does not let this page copy").wait_for()
    assert page.get_by_label("To copy by hand").input_value() == page.url


def test_on_paper_the_question_and_the_answer_stand(page, site):
    ask(page, site, MARFAN)
    page.emulate_media(media="print")
    heading = page.get_by_role("heading", level=1, name=MARFAN)
    assert heading.bounding_box()["height"] > 20
    assert page.locator(".said", has_text="Marfan syndrome: FBN1.").is_visible()
    assert not page.locator("#header").is_visible()
    assert not page.locator(".follow").is_visible()
