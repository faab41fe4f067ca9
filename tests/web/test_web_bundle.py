"""The page that ships is the page of the sources."""

import shutil
import subprocess
import sys

import pytest

from clew.core.types import Answer, Candidate, Fact, Judgement, NodeRef, Passage
from clew.core.types import Path as Walk
from clew.core.wire import AskReply
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
        fresh = (tmp_path / "src" / "clew" / "web" / "static" / name).read_bytes()
        assert fresh == (ROOT / "src" / "clew" / "web" / "static" / name).read_bytes(), f"npm run build in web/: {name}"


STEPS = """
import { Layout, MOST } from "./layout.mjs";
const layout = new Layout();
const nodes = Array.from({ length: MOST + 100 }, (_, place) => ({ key: `${place}`, name: "", type: "" }));
const edges = nodes.map((node, place) => ({ head: node.key, relation: "r", tail: `${(place * 7) % MOST}` }));
layout.add(nodes, edges);
const begun = process.cpuUsage().user;
for (let step = 0; step < 60; step++) layout.step();
console.log(layout.points.length, (process.cpuUsage().user - begun) / 1000 / 60);
"""


def test_five_hundred_nodes_move_smoothly_and_no_more_are_shown(tmp_path):
    esbuild = ROOT / "web" / "node_modules" / ".bin" / "esbuild"
    if shutil.which("node") is None or not esbuild.exists():
        pytest.skip("no node, or no `npm ci` in web/")
    bundle = [esbuild, ROOT / "web" / "src" / "layout.ts", "--format=esm", f"--outfile={tmp_path / 'layout.mjs'}"]
    subprocess.run(bundle, check=True, capture_output=True)
    (tmp_path / "steps.mjs").write_text(STEPS)
    told = subprocess.run(["node", tmp_path / "steps.mjs"], check=True, capture_output=True, text=True).stdout.split()
    assert int(told[0]) == 500
    assert float(told[1]) < 33, "milliseconds a step: less than thirty pictures a second"


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
