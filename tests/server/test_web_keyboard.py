"""No mouse at all: ask, refine, open evidence, explore, export, with keys that a person presses, and the focus seen."""

from pathlib import Path

from browser_fixtures import MANY, answered

FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), name = (part) => (part ?? "").trim();
  const label = name(one.getAttribute("aria-label")) || name(one.labels?.[0]?.textContent) || name(one.textContent);
  return { label, tag: one.tagName, box: one.getBoundingClientRect().toJSON(), outline: style.outlineStyle };
}"""


def tab_to(page, label: str, tag: str | None = None, most: int = 150, key: str = "Tab") -> None:
    """Press Tab until something with this label has the focus; all on the way must be seen and have a name."""
    for _ in range(most):
        page.keyboard.press(key)
        held = page.evaluate(FOCUS)
        if held["tag"] == "BODY":
            continue
        assert held["label"], f"a {held['tag']} without a name has the focus"
        assert held["box"]["width"] > 0, f"{held['label']} has the focus and cannot be seen"
        if held["label"].startswith(label) and tag in (None, held["tag"]):
            assert held["outline"] != "none" or held["tag"] in ("TEXTAREA", "INPUT"), f"{label}: no ring around it"
            return
    raise AssertionError(f"{most} times Tab do not lead to {label!r}")


def test_ask_refine_open_evidence_explore_and_export_without_a_mouse(page, site):
    page.goto(f"{site}/#/ask?base=hpo")
    page.wait_for_selector(".example")
    page.keyboard.press("/")
    page.keyboard.type(MANY)
    page.keyboard.press("Enter")
    page.wait_for_url("**run=**")
    answered(page)
    # refine: the name means something else
    tab_to(page, "Polydactyly", "SUMMARY")
    page.keyboard.press("Enter")
    tab_to(page, "Preaxial hand polydactyly", "BUTTON", 20)
    page.keyboard.press("Enter")
    page.wait_for_url("**fix=**run=**")
    answered(page)
    assert "changed by you" in page.locator(".written").inner_text()
    # open the evidence of the second answer, and a node in it
    second = page.locator("details.answer").nth(1)
    tab_to(page, "", "SUMMARY")
    while not second.locator("summary").first.evaluate("(one) => one === document.activeElement"):
        tab_to(page, "", "SUMMARY")
    page.keyboard.press("Enter")
    assert second.get_attribute("open") is not None
    name = second.locator(".fact button").first.inner_text()
    tab_to(page, name, "BUTTON", 20)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] #node-name")
    page.keyboard.press("Escape")
    assert page.evaluate(FOCUS)["label"].startswith(name), "the focus comes back"
    # take it away
    tab_to(page, "Download the answers as CSV")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert "Preaxial" in Path(saved.value.path()).read_text("utf-8-sig")
    # the graph: choose a node, expand it, dismiss it, and take the picture
    tab_to(page, "The graph around", "CANVAS")
    graph = page.locator("section.graph")
    before = int(graph.get_attribute("data-nodes"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"section.graph[data-nodes]:not([data-nodes='{before}'])")
    grown = int(graph.get_attribute("data-nodes"))
    page.keyboard.press("Delete")
    page.wait_for_selector(f"section.graph[data-nodes='{grown - 1}']")
    tab_to(page, "Download the graph as SVG")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert Path(saved.value.path()).read_text("utf-8").startswith("<svg")


def test_explore_without_a_mouse(page, site):
    page.goto(f"{site}/#/ask?base=hpo")
    page.wait_for_selector(".example")
    tab_to(page, "Explore", "A", 40, key="Shift+Tab")
    page.keyboard.press("Enter")
    for text, chosen in (("FBN1", 1), ("arachnodactyly", 2)):
        page.wait_for_function("() => document.activeElement.getAttribute('role') === 'combobox'")
        page.keyboard.press("Escape")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("/")
        page.keyboard.type(text)
        page.wait_for_selector("[role=option]")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.locator(".entities > li").nth(chosen - 1).wait_for()
    page.wait_for_selector("img.drawing")
    tab_to(page, "Download the drawing as SVG")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert Path(saved.value.path()).read_text("utf-8").startswith("<svg")
