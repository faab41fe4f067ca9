"""Pictures a second of the page's graph in headless Chromium (drawn by the processor, no graphics card); prints JSON.

While the layout moves, and while the picture is dragged with everything at rest. Other work on the machine takes
pictures away, so the processor time for one picture is told, too: of all of Chromium's threads, and of the busiest,
which limits the pictures a second where nothing else runs.

usage: python benchmarks/page_frames.py [--nodes 5000]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from browser_fixtures import CHROMIUM, FLAGS
from clew.server.settings import ServerSettings
from clew.store.building import build
from conftest import tables
from web_server import running

SECONDS = 4
COUNT = f"""(isDragged) => new Promise((done) => {{
  const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect(), begun = performance.now();
  const tell = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {{
    clientX: box.x + x, clientY: box.y + 6, pointerId: 1, buttons: 1, bubbles: true }}));
  canvas.setPointerCapture = () => {{}};
  let count = 0;
  if (isDragged) tell("pointerdown", 6);
  const frame = () => {{
    if (isDragged) tell("pointermove", 6 + (count * 3) % 200);
    count++;
    const gone = performance.now() - begun;
    if (gone < {SECONDS * 1000}) requestAnimationFrame(frame);
    else {{ if (isDragged) tell("pointerup", 6); done([count, gone / 1000]); }}
  }};
  requestAnimationFrame(frame);
}})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    count = parser.parse_args().nodes
    nodes = [{"key": f"K{number}", "name": f"Node {number}", "type": "disease"} for number in range(count)]
    nodes[0] |= {"key": "MFS"}
    edges = [{"head": nodes[(n - 1) // 12]["key"], "relation": "r", "tail": nodes[n]["key"]} for n in range(1, count)]
    edges += [
        {"head": nodes[n * 7919 % count]["key"], "relation": "s", "tail": nodes[n * 104_729 % count]["key"]}
        for n in range(3 * count // 5)
    ]
    reply = {"nodes": nodes, "edges": edges, "counts": []}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        build(tables(), Path(folder) / "tiny.kb")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        with running(ServerSettings({"tiny": Path(folder) / "tiny.kb"})) as site:
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.set_default_timeout(120_000)
            page.route("**/neighbors?*", lambda route: route.fulfill(json=reply))
            page.goto(f"{site}/#/explore?base=tiny&e=MFS")
            page.wait_for_selector(f"section.graph[data-nodes='{count}']")
            moving = measured(page, is_dragged=False)
            page.emulate_media(reduced_motion="reduce")
            page.reload()
            page.wait_for_selector(f"section.graph[data-nodes='{count}']")
            dragged = measured(page, is_dragged=True)
        version = browser.version
        browser.close()
    told = {"layout_moves": moving, "dragged": dragged}
    load = [round(one, 1) for one in os.getloadavg()]
    print(json.dumps({"nodes": count, "edges": len(edges), "chromium": version, **told, "load": load}, indent=1))


def measured(page: Page, *, is_dragged: bool) -> dict[str, Any]:
    before = processor_seconds(os.getpid())
    count, seconds = page.evaluate(COUNT, is_dragged)
    spent = [after - before.get(thread, 0.0) for thread, after in processor_seconds(os.getpid()).items()]
    return {
        "frames_a_second": round(count / seconds, 1),
        "processor_ms_a_frame": round(1000 * sum(spent) / count, 1),
        "busiest_thread_ms_a_frame": round(1000 * max(spent) / count, 1),
    }


def processor_seconds(root: int) -> dict[str, float]:
    """Of every thread of all processes below this one."""
    below: dict[int, list[Path]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            below.setdefault(int(ticked(folder)[1]), []).append(folder)
    found, left = {}, [root]
    while left:
        for folder in below.get(left.pop(), []):
            left.append(int(folder.name))
            for thread in folder.glob("task/*"):
                with contextlib.suppress(OSError):
                    fields = ticked(thread)
                    found[thread.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def ticked(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(")")[2].split()


if __name__ == "__main__":
    main()
