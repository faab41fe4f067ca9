"""The page that ships is the page of the sources."""

import shutil
import subprocess
import sys

import pytest

from clew.core.types import Answer, Candidate, Fact, Judgement, NodeRef, Passage
from clew.core.types import Path as Walk
from clew.server.wire import AskReply
from conftest import ROOT


def test_the_shipped_bundle_equals_a_fresh_build(tmp_path):
    esbuild = ROOT / "web" / "node_modules" / ".bin" / "esbuild"
    if shutil.which("node") is None or not esbuild.exists():
        pytest.skip("no node, or no `npm ci` in web/: the bundle cannot be built here")
    shutil.copytree(ROOT / "web" / "src", tmp_path / "web" / "src")
    shutil.copy(ROOT / "web" / "package.json", tmp_path / "web" / "package.json")
    (tmp_path / "web" / "node_modules").symlink_to(ROOT / "web" / "node_modules")
    subprocess.run(["npm", "run", "--silent", "build"], cwd=tmp_path / "web", check=True, capture_output=True)
    for name in ("main.js", "style.css"):
        fresh = (tmp_path / "src" / "clew" / "server" / "static" / name).read_bytes()
        assert fresh == (ROOT / "src" / "clew" / "server" / "static" / name).read_bytes(), (
            f"npm run build in web/: {name}"
        )


STEPS = """
import { Layout, MOST } from "./layout.mjs";
const layout = new Layout();
const nodes = Array.from({ length: MOST + 100 }, (_, place) => ({ key: `${place}`, name: "", type: "" }));
const edges = nodes.map((node, place) => ({ head: node.key, relation: "r", tail: `${(place * 7) % MOST}` }));
layout.add(nodes, edges);
const taken = (times, work) => {
  const begun = process.cpuUsage().user;
  for (let turn = 0; turn < times; turn++) work();
  return (process.cpuUsage().user - begun) / times;
};
const step = taken(60, () => layout.step());
const x = Float64Array.from(layout.points, (one) => one.x), y = Float64Array.from(layout.points, (one) => one.y);
const pairs = taken(6, () => {
  for (let i = 0; i < x.length; i++) for (let j = 0; j < i; j++) {
    const dx = x[i] - x[j], dy = y[i] - y[j], square = 1 + dx * dx + dy * dy, force = 1e-9 / square / Math.sqrt(square);
    x[i] += dx * force; y[i] += dy * force; x[j] -= dx * force; y[j] -= dy * force;
  }
});
console.log(layout.points.length, pairs / step);
"""


def test_five_thousand_nodes_move_smoothly_and_no_more_are_shown(tmp_path):
    """Smoothly: thirty pictures a second, where as many pairs, one by one, give four."""
    shown, faster = told_by(tmp_path, "layout", STEPS)
    assert int(shown) == 5000
    assert float(faster) > 5, "a step takes much less than all pairs would, on a machine of any speed"


HUBS = """
import { Layout } from "./layout.mjs";
const layout = new Layout(), nodes = [], edges = [];
for (let hub = 0; hub < 8; hub++) {
  nodes.push({ key: `${hub}`, name: "", type: "" });
  for (let other = 0; other < hub; other++) edges.push({ head: `${hub}`, relation: "r", tail: `${other}` });
}
for (let leaf = 0; leaf < 60; leaf++) {
  nodes.push({ key: `leaf ${leaf}`, name: "", type: "" });
  for (let hub = 0; hub < 8; hub++) edges.push({ head: `${hub}`, relation: "r", tail: `leaf ${leaf}` });
}
layout.add(nodes, edges);
layout.settle(400);
const { points } = layout, apart = [];
for (let one = 0; one < 8; one++) for (let other = 0; other < one; other++)
  apart.push(Math.hypot(points[one].x - points[other].x, points[one].y - points[other].y));
console.log(Math.max(...points.map((point) => Math.hypot(point.x, point.y))), Math.min(...apart));
"""
LABELS = """
import { placed } from "./labels.mjs";
let seed = 7;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
const label = (x, y, width) => ({ x, y, radius: 7, width, height: 15 });
const labels = Array.from({ length: 300 }, () => label(900 * random(), 600 * random(), 40 + 120 * random()));
const boxes = placed(labels).flatMap((at, place) => (at ? [[at.x, at.y, labels[place].width, 15]] : []));
let over = 0;
boxes.forEach(([x, y, w, h], one) => boxes.slice(0, one).forEach(([a, b, c, d]) => {
  if (Math.abs(x - a) < (w + c) / 2 - 1e-6 && Math.abs(y - b) < (h + d) / 2 - 1e-6) over++;
}));
const pair = placed([label(0, 0, 90), label(10, 0, 90)]);
console.log(boxes.length, over, pair.every((one) => one !== null));
"""


def told_by(tmp_path, module: str, program: str) -> list[str]:
    """What a program says that imports a module of the page."""
    esbuild = ROOT / "web" / "node_modules" / ".bin" / "esbuild"
    if shutil.which("node") is None or not esbuild.exists():
        pytest.skip("no node, or no `npm ci` in web/")
    source = ROOT / "web" / "src" / f"{module}.ts"
    bundle = [esbuild, source, "--bundle", "--format=esm", f"--outfile={tmp_path / module}.mjs"]
    subprocess.run(bundle, check=True, capture_output=True)
    (tmp_path / "program.mjs").write_text(program)
    return subprocess.run(["node", tmp_path / "program.mjs"], check=True, capture_output=True, text=True).stdout.split()


GRID = """
import { repel } from "./repulsion.mjs";
let seed = 11, wrong = 0, all = 0;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
const count = 2000, x = new Float64Array(count), y = new Float64Array(count), weight = new Float64Array(count);
for (let i = 0; i < count; i++) {
  x[i] = 3000 * random() ** 2; y[i] = 2000 * random(); weight[i] = i % 50 ? 1 : 3.3;
}
const forces = [true, false].map((isExact) => {
  const fx = new Float64Array(count), fy = new Float64Array(count);
  repel(x, y, weight, 9000, fx, fy, isExact);
  return [fx, fy];
});
for (let i = 0; i < count; i++) {
  wrong += Math.hypot(forces[0][0][i] - forces[1][0][i], forces[0][1][i] - forces[1][1][i]) ** 2;
  all += Math.hypot(forces[0][0][i], forces[0][1][i]) ** 2;
}
console.log(Math.sqrt(wrong / all));
"""


def test_the_grid_pushes_nearly_as_all_pairs_do(tmp_path):
    [error] = told_by(tmp_path, "repulsion", GRID)
    assert float(error) < 0.05


def test_connected_hubs_neither_fly_apart_nor_land_on_each_other(tmp_path):
    farthest, nearest = map(float, told_by(tmp_path, "layout", HUBS))
    assert farthest < 3000
    assert nearest > 40


def test_names_are_never_written_over_each_other(tmp_path):
    shown, over, both = told_by(tmp_path, "labels", LABELS)
    assert int(over) == 0
    assert int(shown) > 60
    assert both == "true", "of two that would collide one goes to another side"


def test_the_pages_types_are_those_of_the_server():
    code = "import runpy; print(runpy.run_path('scripts/generate_types.py')['typescript'](), end='')"
    written = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert written == (ROOT / "web" / "src" / "types.ts").read_text("utf-8"), "python scripts/generate_types.py"


def test_an_answer_is_sent_in_the_form_that_is_declared():
    """What `to_dict` writes is read by the types of the wire, and nothing is lost on the way."""
    node = NodeRef(0, "k", "N", "t")
    fact = Fact(node, "r", node, {"since": 3})
    evidence = (fact, Walk((fact,)), Passage(node, "words", "a.pdf", 2, 0, 5), Judgement("eye", 0.5, "why"))
    answer = Answer("q", (Candidate(node, 1.0, evidence),), "m", text="t", evidence=evidence, notes=("n",))
    sent = {**answer.to_dict(), "run": "r", "base": "b", "request": {"question": "q"}}
    read = AskReply.model_validate(sent).model_dump(exclude_unset=True, mode="json")
    assert read == sent | {"request": {"question": "q"}}
