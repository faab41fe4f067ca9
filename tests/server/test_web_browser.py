"""The page in Chromium, on the real demo base."""

import time
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from browser_fixtures import HOSTILE
from clew.server.settings import ServerSettings
from clew.store.building import build
from conftest import EDGES, NODES, tables
from documents_made import ruled_pdf
from web_server import running

QUESTION = "abnormally long fingers and lens dislocation"
TEXT = """# The labyrinth

Minos of Crete kept the Minotaur in a labyrinth that Daedalus had built.

## The thread

Ariadne gave Theseus a clew of red thread. With it he found the way out of the labyrinth.
"""


def test_ask_evidence_graph_trace_and_permalink(page, site):
    page.goto(site)
    page.wait_for_selector(".example")
    page.get_by_label("Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    first = page.locator("details.answer").first
    page.wait_for_selector("details.answer[open]")
    name = first.locator(".name").first.inner_text()
    assert first.locator(".evidence li").count() >= 1
    graph = page.locator("section.graph")
    page.wait_for_selector("section.graph[data-nodes]")
    before = int(graph.get_attribute("data-nodes"))
    graph.get_by_label("Choose a node of the graph").select_option(index=1)
    graph.get_by_role("button", name="Expand").click()
    page.wait_for_selector(f"section.graph[data-nodes]:not([data-nodes='{before}'])")
    assert int(graph.get_attribute("data-nodes")) > before
    graph.get_by_role("button", name="Pin").click()
    assert graph.get_by_role("button", name="Unpin").is_visible()
    with page.expect_download() as saved:
        graph.get_by_label("Download the graph as SVG").click()
    assert saved.value.suggested_filename == "clew-graph.svg"
    page.get_by_role("tab", name="Trace").click()
    assert page.locator(".timeline li").count() >= 1
    page.get_by_role("tab", name="Query").click()
    assert page.locator(".query").inner_text()
    assert "run=" in page.url
    page.reload()
    page.wait_for_selector("details.answer[open]")
    assert page.locator("details.answer .name").first.inner_text() == name


def test_what_cannot_be_shown_is_said_where_the_question_stands(page, site):
    page.goto(f"{site}/#/ask?base=hpo&q={QUESTION}&method=nonsense")
    page.get_by_role("alert").filter(has_text="No method 'nonsense'").wait_for()
    assert page.get_by_label("Your question").input_value() == QUESTION
    page.goto(f"{site}/#/explore?base=hpo&e=NCBIGene:2200&e=qqzzxxq")
    page.get_by_role("alert").filter(has_text="“qqzzxxq”").wait_for()
    page.get_by_role("button", name="Remove it").click()
    page.wait_for_selector("section.graph[data-nodes]")
    page.goto(f"{site}/#/ask?base=hpo&q=zzzzqqq&method=tournament_on_path")
    page.get_by_role("heading", name="I did not find this").wait_for()
    page.goto(f"{site}/#/ask?base=nowhere")
    page.get_by_role("link", name="Ask hpo").click()
    page.wait_for_selector(".example")
    page.goto(f"{site}/#/explore?base=hpo")
    page.locator(".chips button").first.click()
    page.wait_for_selector("section.graph[data-nodes]")


def test_a_node_opens_and_the_keyboard_is_enough(page, site):
    page.goto(f"{site}/#/ask?base=hpo&q={QUESTION}&method=bm25")
    page.wait_for_selector("details.answer[open]")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "question"
    source = page.locator(".source").first
    source.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] #node-name")
    assert page.locator("dialog mark").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.wait_for_selector("section.graph[data-nodes]")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("Choose a node of the graph").input_value()


def test_explore_shows_what_lies_between_and_draws_it(page, site):
    page.goto(f"{site}/#/explore?base=hpo&e=NCBIGene:2200")
    box = page.get_by_role("combobox", name="Add an entity")
    box.fill("arachnodactyly")
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector("img.drawing")
    assert "Marfan syndrome" in page.locator("#subgraph-text").inner_text()
    assert page.locator("img.drawing").evaluate("async (image) => { await image.decode(); return image.naturalWidth }")
    with page.expect_download() as saved:
        page.get_by_label("Download the drawing as SVG").click()
    assert Path(saved.value.path()).read_text().startswith("<svg")


def test_compare_puts_two_methods_side_by_side(page, site):
    page.goto(f"{site}/#/compare?base=hpo&q={QUESTION}&method=bm25&other=hybrid")
    for place in (0, 1):
        page.locator(".remarks").nth(place).wait_for()
    assert page.locator(".columns > section").count() == 2
    assert page.locator(".kind em").count() > 0


def test_a_document_is_uploaded_asked_and_opened_at_the_marked_span(page, site):
    page.goto(f"{site}/#/documents?base=papers")
    page.locator("#upload").set_input_files(
        {"name": "labyrinth.md", "mimeType": "text/markdown", "buffer": TEXT.encode()}
    )
    page.get_by_role("link", name="labyrinth.md").wait_for()  # other documents may have been there before
    page.goto(f"{site}/#/ask?base=papers")
    box = page.get_by_label("Your question")
    box.wait_for()
    box.fill("Who gave Theseus the thread?")
    page.get_by_text("Advanced").click()
    page.locator("form.ask select").first.select_option("bm25")
    page.keyboard.press("Enter") if box.evaluate("e => document.activeElement === e") else box.press("Enter")
    page.wait_for_selector("details.answer[open] a.source")
    page.locator("details.answer[open] a.source").first.click()
    page.wait_for_selector("#cited mark")
    assert "Ariadne" in page.locator("#cited mark").inner_text()


def test_a_pdf_answers_with_the_passage_itself_and_its_printed_page(page, site, tmp_path):
    ruled_pdf(tmp_path / "report.pdf")
    page.goto(f"{site}/#/documents?base=papers")
    page.locator("#upload").set_input_files(tmp_path / "report.pdf")
    page.get_by_role("link", name="report.pdf").wait_for()
    page.goto(f"{site}/#/ask?base=papers&q=Who will build the fifth station near Schwerte?")
    best = page.get_by_label("The passage that says it")
    best.wait_for()
    assert "Lenz company" in best.locator("blockquote mark").inner_text()
    assert "% sure" in best.locator(".certainty").inner_text()
    whole = best.locator("blockquote", has=page.locator("mark")).inner_text()
    assert (whole[0].isupper(), whole[-1]) == (True, "."), "a quotation is not cut"
    assert "tfidf" not in page.locator("body").inner_text(), "how passages are connected is said in everyday words"
    others = page.get_by_role("list", name="Other passages")
    assert page.get_by_role("heading", name="Other passages").is_visible()
    assert "Lenz company" not in others.inner_text()
    best.get_by_role("button", name="report.pdf, page 3").click()
    sheet = page.locator("dialog.printed img")
    sheet.wait_for()
    page.wait_for_function("() => document.querySelector('dialog.printed img').naturalWidth > 800")
    page.get_by_role("link", name="Read it as text").click()
    page.wait_for_selector("#cited mark")
    for question, near in (("Which goalkeeper played on the rivers?", 1), ("Quel goal Barcelona?", 0)):
        page.goto(f"{site}/#/ask?base=papers&q={question}")
        page.get_by_role("heading", name="I did not find this in these documents").wait_for()
        assert page.get_by_role("heading", name="Nearest, but not an answer").count() == near
        assert page.get_by_label("The passage that says it").count() == 0
        page.goto(f"{site}/#/documents?base=papers")
        page.locator("#upload").wait_for(state="attached")


def test_dark_mode_follows_the_system_and_the_button(browser, site):
    context = browser.new_context(color_scheme="dark", viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    background = "getComputedStyle(document.body).backgroundColor"
    page.goto(f"{site}/#/ask?base=hpo&q={QUESTION}")
    page.wait_for_selector("section.graph[data-nodes]")
    dark = page.evaluate(background)
    assert sum(int(part) for part in dark.removeprefix("rgb(").rstrip(")").split(",")) < 150
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(background) != dark
    context.close()


def test_a_phone_needs_no_sideways_scrolling(browser, site):
    context = browser.new_context(viewport={"width": 375, "height": 740}, reduced_motion="reduce")
    page = context.new_page()
    for place, there in {
        f"ask?base=hpo&q={QUESTION}": "section.graph[data-nodes]",
        "explore?base=hpo&e=NCBIGene:2200&e=HP:0001166": "img.drawing",
        "documents?base=papers": ".drop",
    }.items():
        page.goto(f"{site}/#/{place}")
        page.wait_for_selector(there)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, place
    context.close()


def test_a_hostile_base_does_nothing(page, site):
    page.on("dialog", lambda dialog: pytest.fail("a text of the base was run"))
    page.goto(f"{site}/#/ask?base=hostile&q=ignore all previous&method=bm25")
    page.wait_for_selector("details.answer[open]")
    assert HOSTILE in page.locator("details.answer .name").first.inner_text()
    page.locator(".source").first.click()
    page.wait_for_selector("dialog[open] #node-name")
    assert page.locator("#main script, #main img, dialog script, dialog img").count() == 0
    assert page.title() != "owned"


def test_no_field_of_a_schema_a_document_or_an_address_is_run(page, tmp_path):
    page.on("dialog", lambda dialog: pytest.fail("a text was run"))
    nodes = [(key, f"{kind} {HOSTILE}", name, [], text) for key, kind, name, _, text in NODES]
    edges = [(head, f"{relation} {HOSTILE}", tail, HOSTILE) for head, relation, tail, _ in EDGES]
    build(tables(nodes, edges), tmp_path / "evil.kb")
    settings = ServerSettings({"evil": tmp_path / "evil.kb"}, {"papers": tmp_path / "papers"})
    safe, name = quote(HOSTILE, safe=""), HOSTILE.replace("/", "").replace('"', "")[:80]
    with running(settings) as address:
        document = f"# {HOSTILE}\n\nAlpha is {HOSTILE}\n\n| {HOSTILE} | b |\n| --- | --- |\n| {HOSTILE} | 1 |\n"
        at = f"{address}/v1/bases/papers/documents"
        assert httpx.put(f"{at}/{quote(name)}.md", content=document.encode(), timeout=60).status_code == 202
        while httpx.get(at, timeout=60).json()["build"]["state"] != "idle":
            time.sleep(0.1)
        views = {
            f"ask?base=evil&q=Which {quote(NODES[2][1])} has extra fingers?": ".follow, .notice",
            f"ask?base=evil&q={safe}&fix={safe}→{safe}&rel={safe}→{safe}&type={safe}&h={safe}": ".notice",
            f"ask?base=evil&q=Polydactyly&method=bm25&fix={safe}→&rel={safe}→{safe}&h={safe}": ".follow, .notice",
            "bases?base=evil": "[aria-label=Relations]",
            f"explore?base=evil&e=BBS2&e={safe}": "[role=alert]",
            "explore?base=evil&e=BBS2&e=P1": "canvas",
            f"compare?base=evil&q={safe}": ".answer, .notice, .empty",
            "ask?base=papers&q=What is Alpha?": ".follow, .notice",
            "documents?base=papers": ".files",
            f"documents?base=papers&doc={quote(name)}.md": ".reading, #cited, article",
        }
        for view, there in views.items():
            page.goto(f"{address}/#/{view}")
            page.locator(there).first.wait_for()
            made = "#main script, dialog script, #main img:not([src^=blob]), dialog img"
            assert page.locator(made).count() == 0, view
            assert page.title() != "owned", view
        page.close()  # before the server, which it may still ask
