"""No view breaks a rule of axe (WCAG 2.2 A and AA, and its best practices), light and dark, wide and on a phone."""

import pytest

from browser_fixtures import AXE, LOOKS, MANY, MARFAN, answered, violations

VIEWS = {
    "start": ("ask?base=hpo", ".example"),
    "answer": (f"ask?base=hpo&q={MARFAN}", ".follow"),
    "table": (f"ask?base=hpo&q={MANY}&as=table", ".answer-table"),
    "changed": (f"ask?base=hpo&q={MANY}&fix=polydactyly→HP:0001177&type=gene", ".changed"),
    "nothing found": ("ask?base=hpo&q=zzzzqqq blorp", ".written.not_found"),
    "ranked only": (f"ask?base=hpo&q={MARFAN}&method=bm25", ".follow"),
    "conversation": (f"ask?base=hpo&q=which of them have cleft palate?&h={MANY}", ".turns"),
    "refused": (f"ask?base=hpo&q={MARFAN}&method=nonsense", ".notice"),
    "explore": ("explore?base=hpo", "[role=combobox]"),
    "around": ("explore?base=hpo&e=HP:0010442", "section.graph[data-nodes]"),
    "between": ("explore?base=hpo&e=NCBIGene:2200&e=HP:0001166", "img.drawing"),
    "compare": (f"compare?base=hpo&q={MARFAN}&method=bm25&other=hybrid", ".remarks"),
    "documents": ("documents?base=papers", ".drop"),
    "no documents": ("documents?base=hpo", "h1"),
    "reference": ("api", ".reference"),
}


@pytest.fixture(scope="module")
def seen(browser):
    """One context for each look, since axe takes long enough."""
    if not AXE.is_file():
        pytest.skip("no `npm ci` in web/: axe is not there")
    contexts = {
        (scheme, width): browser.new_context(
            viewport={"width": width, "height": 860}, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True
        )
        for scheme, width in LOOKS
    }
    yield contexts
    for context in contexts.values():
        context.close()


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: f"{look[0]} {look[1]}")
@pytest.mark.parametrize("view", VIEWS)
def test_no_view_breaks_a_rule(site, seen, view, look):
    address, there = VIEWS[view]
    page = seen[look].new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{site}/#/{address}")
    page.locator(there).first.wait_for(state="attached")
    if "&q=" in address and there != ".notice" and not address.startswith("compare"):
        answered(page)
    assert violations(page) == []
    for tab in ("Query", "Trace"):
        if page.get_by_role("tab", name=tab).count():
            page.get_by_role("tab", name=tab).click()
            assert violations(page) == [], tab
    page.close()


def test_an_open_menu_suggestions_and_a_dialog_break_none(site, seen):
    page = seen[LOOKS[0]].new_page()
    page.goto(f"{site}/#/ask?base=hpo&q={MANY}")
    answered(page)
    for chip in ("asked for: disease", "has phenotype", "Polydactyly"):
        page.locator(".menu summary", has_text=chip).click()
        assert violations(page) == []
    page.get_by_role("button", name="Something else …").click()
    page.locator("input[role=combobox]").fill("arachnodactyly")
    page.wait_for_selector("[role=option]")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator("details.answer[open] .source").first.click()
    page.wait_for_selector("dialog[open] #node-name")
    assert violations(page) == []
    page.close()
