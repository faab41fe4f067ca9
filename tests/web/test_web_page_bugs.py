"""What went wrong in the page once, in Chromium: each of these failed before it was mended."""

import re
from pathlib import Path

import pytest

from browser_fixtures import MARFAN, ask
from clew.building import build
from clew.web.access import Access, Grant, digest_of
from conftest import NODES, tables

TOKEN = "0123456789abcdef"
LONG = "Pneumono" * 45
TURNED = "abc\u202efed"
ARABIC = "متلازمة مارفان"


def test_an_unknown_key_is_said_in_explore_and_not_replaced(page, site):
    page.goto(f"{site}/#/explore?base=hpo&e=OMIM:999999")
    page.get_by_role("alert").filter(has_text="Nothing in this base is called “OMIM:999999”").wait_for()
    assert page.locator("section.graph").count() == 0


def test_files_after_a_refused_one_are_sent_and_each_says_how_it_stands(page, site):
    page.goto(f"{site}/#/documents?base=papers")
    files = [
        {"name": name, "mimeType": "application/octet-stream", "buffer": f"# {name}\n\nA text of {name}.".encode()}
        for name in ("first.md", "second.exe", "third.md")
    ]
    page.locator("#upload").set_input_files(files)
    page.get_by_role("link", name="third.md").wait_for()
    assert page.get_by_role("link", name="first.md").is_visible()
    refused = page.get_by_role("listitem").filter(has_text="second.exe")
    assert "cannot be read" in refused.inner_text()
    assert "One file is not ready" in page.get_by_role("main").inner_text()
    page.get_by_role("button", name="Retry second.exe").click()
    refused.get_by_text("refused: ").wait_for()
    page.get_by_role("button", name="Dismiss second.exe").click()
    assert refused.count() == 0


def test_a_deleted_file_comes_back_by_undo(page, site):
    page.goto(f"{site}/#/documents?base=papers")
    buffer = b"# Icarus\n\nIcarus flew too near to the sun."
    page.locator("#upload").set_input_files({"name": "icarus.md", "mimeType": "text/markdown", "buffer": buffer})
    page.get_by_role("link", name="icarus.md").wait_for()
    page.get_by_role("button", name="Delete icarus.md").click()
    page.get_by_role("button", name="Undo the deletion of icarus.md").click()
    page.get_by_role("link", name="icarus.md").wait_for()
    assert page.get_by_role("button", name="Undo the deletion of icarus.md").count() == 0


@pytest.fixture(scope="module")
def odd_site(tmp_path_factory):
    """A base of odd names behind a token."""
    from clew.web.settings import ServerSettings
    from web_server import running

    names = dict(zip([node[0] for node in NODES], [LONG, TURNED, ARABIC], strict=False))
    folder = tmp_path_factory.mktemp("odd") / "odd.kb"
    build(tables([(key, kind, names.get(key, name), more, text) for key, kind, name, more, text in NODES]), folder)
    access = Access((Grant("clinic", digest_of(TOKEN)),))
    with running(ServerSettings({"odd": folder}, access=access)) as address:
        yield address


def enter(page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")


@pytest.fixture
def stranger(browser):
    """A page whose console may speak of refusals."""
    context = browser.new_context(viewport={"width": 375, "height": 740}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_a_wrong_token_is_said_and_the_right_one_lets_in(stranger, odd_site):
    stranger.goto(odd_site)
    stranger.get_by_role("heading", name="This server asks for a token").wait_for()
    assert stranger.get_by_role("alert").count() == 0
    enter(stranger, "wrong-wrong-wrong")
    stranger.get_by_role("alert").filter(has_text="does not know this token").wait_for()
    enter(stranger, TOKEN)
    stranger.get_by_label("Your question").wait_for()


def test_unbroken_and_turned_names_stay_in_their_place(stranger, odd_site):
    stranger.goto(f"{odd_site}/#/ask?base=odd&q=Pneumono abc {ARABIC}&method=hybrid")
    enter(stranger, TOKEN)
    stranger.locator(".answered[aria-busy=false] .follow").wait_for()
    for look in ("Cards", "Table"):
        stranger.get_by_role("button", name=look).click()
        assert stranger.evaluate("document.documentElement.scrollWidth") <= 375, look
        for name in (LONG, TURNED, ARABIC):
            assert stranger.locator(".listing bdi", has_text=re.compile(f"^{re.escape(name)}$")).count() >= 1
    stranger.goto(f"{odd_site}/#/explore?base=odd&e={NODES[0][0]}")
    stranger.locator("section.graph[data-nodes]").wait_for()
    assert stranger.evaluate("document.documentElement.scrollWidth") <= 375


def test_enter_before_the_suggestions_arrive_is_not_lost(page, site):
    page.goto(f"{site}/#/explore?base=hpo")
    page.get_by_role("combobox", name="Add an entity").fill("arachnodactyly")
    page.keyboard.press("Enter")  # long before anything is suggested
    page.get_by_role("list", name="Chosen entities").get_by_text("Arachnodactyly").wait_for()


def test_a_name_that_nothing_bears_is_said_on_enter(page, site):
    page.goto(f"{site}/#/explore?base=papers")
    page.get_by_role("combobox", name="Add an entity").wait_for()
    page.goto(f"{site}/#/explore?base=hostile")
    page.wait_for_load_state("networkidle")  # until the other base's view has gone
    box = page.get_by_role("combobox", name="Add an entity")
    page.route("**/find?**", lambda route: route.fulfill(json=[]))
    box.fill("nobody")
    box.press("Enter")
    page.get_by_role("status").filter(has_text="Nothing in this base is called “nobody”").wait_for()


def test_steps_are_a_list_of_lists(page, site):
    ask(page, site, MARFAN)
    page.get_by_role("tab", name="Trace").click()
    outer = page.get_by_role("list", name="Steps of the answer")
    assert outer.evaluate("list => list.getAttribute('role')") is None
    assert outer.evaluate("list => [...list.querySelectorAll('ol')].every((one) => one.parentElement.tagName === 'LI')")
    assert outer.evaluate("list => [...list.querySelectorAll('ol, ol > li')].length") >= 1


def test_methods_are_advanced_and_only_those_that_can_run(page, site):
    page.goto(f"{site}/#/ask?base=hpo")
    menu = page.locator("form.ask select[name=method]")
    menu.wait_for(state="attached")
    assert not menu.is_visible()
    page.get_by_text("Advanced").click()
    offered = menu.locator("option").evaluate_all("options => options.map((one) => one.value)")
    assert {"auto", "focus_plus", "bm25"} <= set(offered)
    assert not {"no_passages", "iterative_passages", "knowledge_graph_prompting", "tf_idf"} & set(offered)


def test_explore_says_how_many_paths_it_shows_of_how_many(page, site):
    page.goto(f"{site}/#/explore?base=hpo&e=HP:0001250&e=HP:0001249")
    told = page.locator("#path-count")
    told.wait_for()
    found = re.match(r"([\d,]+) of ([\d,]+) shortest paths", told.inner_text())
    assert found is not None
    assert found[1] == "50"
    assert int(found[2].replace(",", "")) > 50


def test_expanding_says_how_many_more_there_are_and_shows_them(page, site):
    page.goto(f"{site}/#/explore?base=hpo&e=HP:0010442")
    graph = page.locator("section.graph[data-nodes]")
    more = graph.get_by_role("button", name=re.compile(r"Expand: \+\d+ more around Polydactyly"))
    more.wait_for()
    before, left = int(graph.get_attribute("data-nodes")), int(re.search(r"\+(\d+) more", more.inner_text()).group(1))
    more.click()
    page.wait_for_selector(f"section.graph[data-nodes]:not([data-nodes='{before}'])")
    after = graph.get_by_role("button", name=re.compile("Expand.* Polydactyly")).inner_text()
    assert int((re.search(r"\+(\d+) more", after) or re.match("(0)?", "0")).group(1) or 0) < left


def test_a_downloaded_picture_keeps_its_arrowheads(page, site):
    ask(page, site, MARFAN)
    page.wait_for_selector("section.graph[data-nodes]")
    with page.expect_download() as saved:
        page.get_by_label("Download the graph as SVG").click()
    svg = Path(saved.value.path()).read_text("utf-8")
    assert "<marker " in svg
    assert svg.count('marker-end="url(#arrow)"') == svg.count("<line ")
