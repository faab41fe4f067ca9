"""What went wrong in the page once, in Chromium: each of these failed before it was mended."""

import re
from pathlib import Path

import pytest

import clew
from browser_fixtures import MARFAN, ask, settled
from clew.server.access import Access, Grant, digest_of
from clew.store.building import build
from conftest import NODES, tables

TOKEN = "0123456789abcdef"
LONG = "Pneumono" * 45
TURNED = "abc\u202efed"
ARABIC = "متلازمة مارفان"


def test_an_unknown_key_is_said_in_explore_and_not_replaced(page, site):
    page.goto(f"{site}/#/explore?base=hpo&e=OMIM:999999")
    page.get_by_role("alert").filter(has_text="Nothing in this base is called “OMIM:999999”").wait_for()
    assert page.locator("section.graph").count() == 0


def stays(page, address: str, slow: str, view: str) -> None:
    """What is chosen while a view still waits for a reply is not replaced by it."""
    page.goto(f"{address}/#/ask")
    page.get_by_role("heading", level=1).wait_for()
    held = []
    page.route(lambda asked: slow in asked, lambda route: held.append(route))
    with page.expect_request(lambda request: slow in request.url):
        page.evaluate("view => { location.hash = view }", f"#/{view}")
    page.get_by_role("link", name="Compare").click()
    chosen = page.get_by_role("heading", name="Two methods, side by side")
    chosen.wait_for()
    with page.expect_response(lambda response: slow in response.url):
        held[0].continue_()
    settled(page)
    assert chosen.count() == 1


@pytest.mark.parametrize(("view", "slow"), [("api", "/openapi.json"), ("bases", "/v1/managed"), ("explore", "/nodes/")])
def test_a_slow_view_does_not_take_the_place_of_the_one_that_was_chosen_after_it(page, site, view, slow):
    stays(page, site, slow, f"{view}?base=hpo&e={MARFAN}")


@pytest.mark.parametrize("view", ["documents?base=built", "documents?base=built&doc=maze.md"])
def test_slow_documents_do_not_take_the_place_of_the_view_that_was_chosen_after_them(papers, page, view):
    stays(page, papers, "/built/documents", view)


def test_a_question_that_is_being_typed_stays_when_a_file_has_been_read(papers, page):
    page.goto(f"{papers}/#/documents?base=desk")
    box = page.get_by_label("Your question")
    for name in TEXTS:  # where there is one, questions can be asked
        page.locator("#announcer").evaluate("one => { one.textContent = '' }")
        buffer = TEXTS[name].encode()
        page.locator("#upload").set_input_files({"name": name, "mimeType": "text/markdown", "buffer": buffer})
        box.fill(f"Who built {name}?")
        page.locator("#announcer", has_text="The documents are ready").wait_for(state="attached")
    settled(page)
    assert box.input_value() == f"Who built {name}?"


def test_a_slow_node_does_not_take_the_place_of_the_one_that_was_opened_after_it(page, site):
    ask(page, site, MARFAN)
    held = []
    page.route("**/nodes/*", lambda route: held.append(route))
    for node in page.locator("details.answer[open] .fact button").all()[:2]:
        with page.expect_request("**/nodes/*"):
            node.click()
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="hidden")
    for place in (1, 0):
        with page.expect_response("**/nodes/*"):
            held[place].continue_()
        settled(page)
        assert page.locator("#node-name").text_content() == "Marfan syndrome"


def test_files_after_a_refused_one_are_sent_and_each_says_how_it_stands(page, site):
    page.goto(f"{site}/#/documents?base=papers")
    files = [
        {"name": name, "mimeType": "application/octet-stream", "buffer": f"# {name}\n\nA text of {name}.".encode()}
        for name in ("first.md", "second.exe", "third.md")
    ]
    page.locator("#upload").set_input_files(files)
    page.get_by_role("link", name="third.md").wait_for()
    page.get_by_role("link", name="first.md").wait_for()
    refused = page.get_by_role("listitem").filter(has_text="second.exe")
    refused.get_by_text("unsupported").wait_for()
    page.get_by_text("One file is not ready").wait_for()
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
    from clew.server.settings import ServerSettings
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
    stranger.get_by_role("list", name="Chosen entities").wait_for()
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
    page.wait_for_function("() => document.title === 'hostile · Clew'")  # until the other base's view has gone
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


@pytest.fixture
def papers(tmp_path):
    """A server with a base that `clew build` made of documents, and one that takes uploads."""
    from clew.server.settings import ServerSettings
    from web_server import running

    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text)
    clew.build([tmp_path / "texts"], tmp_path / "built.kb")
    with running(ServerSettings({"built": tmp_path / "built.kb"}, {"desk": tmp_path / "desk"})) as address:
        yield address


TEXTS = {
    "maze.md": "# The labyrinth of Crete\n\n## Who built the labyrinth?\n\nDaedalus built it for King Minos.\n\n"
    "## The red thread of Ariadne\n\nAriadne gave Theseus a thread. With it he found the way out again.\n",
    "wings.md": "# Wings\n\n## 2.1. Wax and feathers\n\nDaedalus made wings of wax and feathers for Icarus.\n",
}


def test_examples_of_documents_are_questions_that_they_answer(papers, page):
    page.goto(f"{papers}/#/ask?base=built")
    page.locator(".example").first.wait_for()
    asked = page.locator(".example").all_inner_texts()
    assert {"Who built the labyrinth?", "What does Wings say about Wax and feathers?"} <= set(asked)
    assert not [text for text in asked if "tfidf" in text or "entity" in text or "Which table" in text]
    page.get_by_text("Who built the labyrinth?").click()
    page.locator(".answered[aria-busy=false] .follow").wait_for()
    assert "Daedalus" in page.locator(".written").inner_text()


def test_a_base_built_of_documents_lists_its_files(papers, page):
    page.goto(f"{papers}/#/documents?base=built")
    files = page.get_by_role("list", name="Documents")
    files.wait_for()
    assert files.get_by_role("link").all_inner_texts() == ["maze.md", "wings.md"]
    assert "The labyrinth of Crete" in files.inner_text(), "with their titles"
    assert page.get_by_role("button", name="Delete").count() == 0
    files.get_by_role("link", name="maze.md").click()
    page.get_by_role("heading", name="The labyrinth of Crete").wait_for()
    page.get_by_text("Ariadne gave Theseus a thread").wait_for()


def test_a_file_on_its_way_is_cancelled_and_the_others_go_on(papers, page):
    page.goto(f"{papers}/#/documents?base=desk")
    page.route("**/documents/slow.md", lambda route: None)  # never answered
    files = [
        {"name": name, "mimeType": "text/markdown", "buffer": TEXTS["maze.md"].encode()} for name in ("slow.md", "b.md")
    ]
    page.locator("#upload").set_input_files(files)
    page.get_by_role("button", name="Cancel slow.md").click()
    page.get_by_role("link", name="b.md").wait_for()
    assert page.get_by_text("slow.md").count() == 0


def test_deleting_a_file_stops_the_build_that_reads_it(papers, page, monkeypatch):
    """The build of one line of 46 MB takes a minute; here the process would never end."""
    import subprocess

    from clew.server import documents

    started = []

    def endless(module, *arguments, **more):
        if not started:
            started.append(subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE, text=True))
            return started[0]
        return real(module, *arguments, **more)

    real = documents.start_module
    monkeypatch.setattr(documents, "start_module", endless)
    page.goto(f"{papers}/#/documents?base=desk")
    buffer = TEXTS["maze.md"].encode()
    page.locator("#upload").set_input_files({"name": "endless.md", "mimeType": "text/markdown", "buffer": buffer})
    page.get_by_role("button", name="Delete endless.md").click()
    page.get_by_role("button", name="Undo the deletion of endless.md").wait_for()
    assert started[0].wait(250) != 0, "the build was stopped"
    page.locator("#upload").set_input_files({"name": "next.md", "mimeType": "text/markdown", "buffer": buffer})
    page.get_by_role("link", name="next.md").wait_for()


def test_a_dropped_folder_gives_its_files(papers, page):
    page.goto(f"{papers}/#/documents?base=desk")
    page.locator(".drop").wait_for()
    page.evaluate(DROP)
    for name in ("one.md", "two.md"):
        page.get_by_role("link", name=name).wait_for()
    assert page.get_by_text(".hidden").count() == 0


DROP = """() => {
  const text = (name) => new File([`# ${name}\\n\\nA text of ${name}.`], name, { type: "text/markdown" });
  const file = (name) => ({ name, isFile: true, isDirectory: false, file: (done) => done(text(name)) });
  const folder = (name, some) => ({ name, isFile: false, isDirectory: true, createReader: () => {
    let left = some;
    return { readEntries: (done) => { const now = left; left = []; done(now); } };
  } });
  const tree = folder("papers", [file("one.md"), file(".hidden"), folder("more", [file("two.md")])]);
  const drop = new Event("drop", { bubbles: true, cancelable: true });
  const data = { files: [], items: [{ webkitGetAsEntry: () => tree }] };
  Object.defineProperty(drop, "dataTransfer", { value: data });
  document.querySelector(".drop").dispatchEvent(drop);
}"""
