"""The graph of the page under a real pointer: drag, zoom, pin, hide, download, and 1,000 nodes at once."""

import itertools
import json
import math
import re
from pathlib import Path

import pytest

from browser_fixtures import MANY, ask

BETWEEN = "explore?base=hpo&e=NCBIGene:2200&e=HP:0001166"
GENE = "NCBIGene:2200"
PLACE_OF_COLOR = """(canvas, type) => {
  const wanted = getComputedStyle(document.documentElement).getPropertyValue(`--type-${type}`).trim();
  const parts = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let x = 0, y = 0, count = 0;
  for (let at = 0; at < data.length; at += 4)
    if (parts.every((part, place) => Math.abs(data[at + place] - part) < 8)) {
      x += (at / 4) % width; y += Math.floor(at / 4 / width); count++;
    }
  const box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  return { x: box.x + x / count / ratio, y: box.y + y / count / ratio, count };
}"""


@pytest.fixture
def graph(page, site):
    """The graph between a gene and a phenotype, in which one node alone has the colour of genes."""
    page.set_viewport_size({"width": 1280, "height": 1500})  # all in view: a click on a download scrolls nothing
    page.goto(f"{site}/#/{BETWEEN}")
    page.wait_for_selector("section.graph[data-nodes] + *, img.drawing")
    return page.locator("section.graph")


def gene_place(page) -> tuple[float, float]:
    types = page.evaluate("async () => (await (await fetch('/v1/bases/hpo')).json()).node_types.map((one) => one.name)")
    found = page.locator("canvas").evaluate(PLACE_OF_COLOR, types.index("gene"))
    assert found["count"] > 30
    return found["x"], found["y"]


def downloaded(page, kind: str) -> bytes:
    with page.expect_download() as saved:
        page.get_by_label(f"Download the graph as {kind}").click()
    return Path(saved.value.path()).read_bytes()


def positions(page) -> dict[str, tuple[int, int]]:
    return {node["key"]: (node["x"], node["y"]) for node in json.loads(downloaded(page, "JSON"))["nodes"]}


def drag(page, start: tuple[float, float], by: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + by[0] / 2, start[1] + by[1] / 2)
    page.mouse.move(start[0] + by[0], start[1] + by[1])
    page.mouse.up()


def test_a_node_is_dragged_and_the_background_moves_all(page, graph):
    start, before = gene_place(page), positions(page)
    drag(page, start, (60, -50))
    x, y = gene_place(page)
    assert (x - start[0], y - start[1]) == pytest.approx((60, -50), abs=4)
    after = positions(page)
    assert after[GENE] != before[GENE]
    assert {key for key in before if after[key] != before[key]} == {GENE}
    box = page.locator("canvas").bounding_box()
    drag(page, (box["x"] + 8, box["y"] + 8), (40, 30))
    moved = gene_place(page)
    assert (moved[0] - x, moved[1] - y) == pytest.approx((40, 30), abs=4)
    assert positions(page) == after


def test_zooming_keeps_what_lies_under_the_pointer(page, graph):
    canvas = page.locator("canvas")
    whole = canvas.evaluate("(one) => one.toDataURL()")
    start = gene_place(page)
    page.mouse.move(*start)
    page.mouse.wheel(0, -300)
    page.wait_for_function("(was) => document.querySelector('canvas').toDataURL() !== was", arg=whole)
    assert gene_place(page) == pytest.approx(start, abs=4)
    page.get_by_role("button", name="Fit").click()
    assert canvas.evaluate("(one) => one.toDataURL()") == whole
    page.get_by_role("button", name="Zoom out").click()
    assert canvas.evaluate("(one) => one.toDataURL()") != whole


def test_a_pinned_node_stays_where_it_is_while_others_make_room(page, graph):
    page.mouse.click(*gene_place(page))
    assert page.get_by_label("Choose a node of the graph").input_value() == GENE
    page.keyboard.press("p")
    assert page.get_by_role("button", name="Unpin").is_visible()
    before = positions(page)
    page.get_by_role("button", name="Expand").click()
    page.wait_for_selector(f"section.graph[data-nodes]:not([data-nodes='{len(before)}'])")
    after = positions(page)
    assert after[GENE] == before[GENE]
    assert any(after[key] != before[key] for key in before)


def test_a_hidden_relation_leaves_picture_and_downloads(page, graph):
    assert b"associated with disease" in downloaded(page, "SVG")
    before = downloaded(page, "PNG")
    graph.get_by_role("checkbox", name="associated with disease").uncheck()
    svg = downloaded(page, "SVG")
    assert b"associated with disease" not in svg
    assert b"has phenotype" in svg
    after = downloaded(page, "PNG")
    for picture in (before, after):
        assert picture.startswith(b"\x89PNG")
        assert int.from_bytes(picture[16:20], "big") >= 300
    assert after != before


def test_a_thousand_nodes_can_still_be_taken_hold_of(browser, site):
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    nodes = [{"key": f"K{number}", "name": f"Node {number}", "type": "disease"} for number in range(1000)]
    edges = [{"head": GENE, "relation": "r", "tail": node["key"]} for node in nodes[:80]]
    edges += [{"head": f"K{number % 80}", "relation": "s", "tail": f"K{number}"} for number in range(80, 1000)]
    center = {"key": GENE, "name": "FBN1", "type": "gene"}
    reply = {"nodes": [center, *nodes], "edges": edges, "text": ""}
    page.route("**/neighbors?*", lambda route: route.fulfill(json=reply))
    page.goto(f"{site}/#/explore?base=hpo&e={GENE}")
    page.wait_for_selector("section.graph[data-nodes='1001']")
    frames = page.evaluate(
        """() => new Promise((done) => {
          let count = 0; const begun = performance.now();
          const frame = () => {
            count++;
            performance.now() - begun < 2000 ? requestAnimationFrame(frame) : done(count / 2);
          };
          requestAnimationFrame(frame);
        })"""
    )
    assert frames > 5, f"{frames} pictures a second while the layout moves"
    page.get_by_label("Choose a node of the graph").select_option(GENE)
    start = gene_place(page)
    while (now := gene_place(page)) != pytest.approx(start, abs=3):  # it still moves
        start = now
    drag(page, start, (50, 40))
    assert gene_place(page) != pytest.approx(start, abs=10)
    context.close()


def test_all_answers_stand_in_one_picture(page, site):
    ask(page, site, MANY)
    page.get_by_role("button", name="answers in one picture").click()
    page.wait_for_function("() => Number(document.querySelector('section.graph').dataset.nodes) > 20")
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"


def around(page, site: str, nodes: list[dict], edges: list[dict], counts: tuple = (), key: str = GENE) -> None:
    """Explore a node whose neighbours are these."""
    reply = {"nodes": [{"key": GENE, "name": "FBN1", "type": "gene"}, *nodes], "edges": edges, "counts": counts}
    page.route("**/neighbors?*", lambda route: route.fulfill(json=reply))
    page.goto(f"{site}/#/explore?base=hpo&e={key}")
    page.wait_for_selector(f"section.graph[data-nodes='{len(nodes) + 1}']")


def diseases(count: int, name: str = "Node") -> list[dict]:
    return [
        {"key": f"K{number}", "name": f"{name} {number}", "type": "disease", "role": None} for number in range(count)
    ]


def edge(head: str, tail: str, relation: str = "r") -> dict:
    return {"head": head, "relation": relation, "tail": tail}


def test_eight_connected_hubs_neither_fly_apart_nor_land_on_each_other(page, site):
    hubs = [GENE, *(f"K{number}" for number in range(7))]
    leaves = [f"K{number}" for number in range(7, 67)]
    edges = [edge(one, other) for place, one in enumerate(hubs) for other in hubs[:place]]
    around(page, site, diseases(67), edges + [edge(hub, leaf) for hub in hubs for leaf in leaves])
    found = positions(page)
    assert max(math.dist((0, 0), place) for place in found.values()) < 3000
    assert min(math.dist(found[one], found[other]) for one, other in itertools.combinations(hubs, 2)) > 40


WRITTEN = """
const pen = CanvasRenderingContext2D.prototype, clear = pen.clearRect, write = pen.fillText;
window.written = [];
pen.clearRect = function (...given) { window.written = []; return clear.apply(this, given); };
pen.fillText = function (text, x, y) {
  const { a, d, e, f } = this.getTransform(), wide = this.measureText(text).width * a, high = 12;
  window.written.push([text, a * x + e - wide / 2, d * y + f - high / 2, wide, high]);
  return write.call(this, text, x, y);
};"""


def overlapping(labels: list[list]) -> list[tuple[str, str]]:
    return [
        (one[0], other[0])
        for one, other in itertools.combinations(labels, 2)
        if one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
        and one[2] < other[2] + other[4]
        and other[2] < one[2] + one[4]
    ]


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("count", [5, 16, 200])
def test_names_in_the_picture_do_not_lie_on_each_other(page, site, count, width):
    page.set_viewport_size({"width": width, "height": 860})
    page.add_init_script(WRITTEN)
    around(page, site, diseases(count, "A rather long name"), [edge(GENE, f"K{number}") for number in range(count)])
    labels = page.evaluate("window.written")
    assert len(labels) >= 3
    assert overlapping(labels) == []


def test_what_is_pointed_at_is_named_with_its_neighbours(page, graph):
    page.add_init_script(WRITTEN)
    page.reload()
    page.wait_for_selector("img.drawing")
    page.get_by_role("button", name="Zoom out").click(click_count=8)
    assert page.locator("canvas").evaluate("(one) => one.style.cursor") == ""
    before = page.locator("canvas").evaluate("(one) => one.toDataURL()")
    page.mouse.move(*gene_place(page))
    assert page.locator("canvas").evaluate("(one) => one.style.cursor") == "pointer"
    assert "FBN1" in [text for text, *_ in page.evaluate("window.written")]
    assert page.locator("canvas").evaluate("(one) => one.toDataURL()") != before
    assert page.get_by_label("Choose a node of the graph").input_value() == "", "pointing chooses nothing"
    page.mouse.move(2, 2)
    assert page.locator("canvas").evaluate("(one) => one.toDataURL()") == before


def test_a_node_is_dismissed_and_comes_back(page, graph):
    keys = positions(page).keys()
    page.mouse.click(*gene_place(page))
    graph.get_by_role("button", name="Dismiss FBN1").click()
    page.wait_for_selector(f"section.graph[data-nodes='{len(keys) - 1}']")
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"
    assert b"FBN1" not in downloaded(page, "SVG")
    graph.get_by_role("button", name="Bring back 1").click()
    assert b"FBN1" in downloaded(page, "SVG")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Delete")
    page.wait_for_selector(f"section.graph[data-nodes='{len(keys) - 1}']")


def test_one_relation_is_expanded_alone_with_how_many_more_there_are(page, site):
    page.goto(f"{site}/#/explore?base=hpo&e=HP:0010442")
    graph = page.locator("section.graph[data-nodes]")
    more = graph.get_by_role("button", name=re.compile(r"^(?!Expand).* \+\d+ more around Polydactyly"))
    more.first.wait_for()
    before = int(graph.get_attribute("data-nodes"))
    left = int(re.search(r"\+(\d+)", more.first.inner_text()).group(1))
    kind = re.sub(r" \+\d+$", "", more.first.inner_text())
    with page.expect_response("**/neighbors?*relation=*"):
        more.first.click()
    page.wait_for_selector(f"section.graph[data-nodes]:not([data-nodes='{before}'])")
    after = graph.get_by_role("button", name=re.compile(f"^{re.escape(kind)} ")).all_inner_texts()
    assert not after or int(re.search(r"\+(\d+)", after[0]).group(1)) < left


def test_a_path_of_the_evidence_is_shown_in_the_picture(page, site):
    ask(page, site, MANY)
    page.get_by_role("button", name="answers in one picture").click()
    page.wait_for_function("() => Number(document.querySelector('section.graph').dataset.nodes) > 20")
    picture = page.locator("canvas")
    before = picture.evaluate("(one) => one.toDataURL()")
    path = page.locator("details.answer[open] .path").first
    path.hover()
    assert picture.evaluate("(one) => one.toDataURL()") != before
    page.mouse.move(2, 2)
    assert picture.evaluate("(one) => one.toDataURL()") == before
    path.get_by_role("button").first.focus()
    assert picture.evaluate("(one) => one.toDataURL()") != before, "the keyboard points, too"
