"""Pictures of every view of the page: light, dark, on a phone and right to left; writes docs/images.

usage: python scripts/screenshots.py [--all FOLDER]

Needs Chromium, playwright and the demo base (`make demo`). Without --all only what the documentation shows is kept:
some views whole, and one sheet a look with every view in small.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import clew
from browser_fixtures import CHROMIUM, FLAGS, MANY, MARFAN
from clew.server.managed import Sources
from clew.server.settings import ClientLimits, ServerSettings
from clew.server.store import SERVER
from clew.server.wire_team import UserChange
from documents_made import ruled_pdf
from team_members import PASSWORD, make_team
from web_server import running

ROOT = Path(__file__).parent.parent
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (375, "light"), "right-to-left": (1280, "light")}
RIGHT_TO_LEFT = """new MutationObserver(() => { document.documentElement.dir = "rtl"; })
  .observe(document, { childList: true, subtree: true })"""
SHOWN = {
    "light": (
        *("ask", "table", "change", "conversation", "explore", "around", "printed", "documents", "bases"),
        *("evaluations", "sign-in", "account", "team", "reference", "state-found", "state-maybe", "state-not-found"),
    ),
    "dark": ("ask",),
    "phone": ("ask",),
    "right-to-left": ("ask",),
}
MAZE = """# The labyrinth

Minos of Crete kept the Minotaur in a labyrinth that Daedalus had built.

## Who gave Theseus the thread?

Ariadne gave Theseus a clew of red thread. With it he found the way out of the labyrinth.
"""
Step = Callable[[Page], None]


def wait(selector: str) -> Step:
    """Until something is there."""
    return lambda page: page.locator(selector).first.wait_for(state="attached")


def answered(page: Page) -> None:
    """Until the answer is there."""
    page.locator(".answered[aria-busy=false] .follow").wait_for()


def changing(page: Page) -> None:
    """Open what a name may mean."""
    answered(page)
    page.locator(".understood-chips summary", has_text="Polydactyly").click()


def printed(page: Page) -> None:
    """Open the printed page."""
    answered(page)
    page.locator(".written button.source").last.click()
    page.locator("dialog.printed img").wait_for()
    page.wait_for_timeout(1500)


def failing(page: Page) -> None:
    """Open what went wrong."""
    page.locator("#main details summary").first.click()


def trying(page: Page) -> None:
    """Ask by the first form of the API."""
    page.locator(".reference summary").first.click()
    page.locator("form.try button.primary").first.click()
    page.locator(".status-line").wait_for()
    page.locator("h2", has_text="Questions").scroll_into_view_if_needed()


VIEWS: dict[str, tuple[str, Step]] = {
    "start": ("ask?base=hpo", wait(".example")),
    "ask": (f"ask?base=hpo&q={MARFAN}", answered),
    "table": (f"ask?base=hpo&q={MANY}&as=table", answered),
    "change": (f"ask?base=hpo&q={MANY}", changing),
    "conversation": (f"ask?base=hpo&q=which of them have cleft palate?&h={MANY}", answered),
    "state-found": ("ask?base=hpo&q=Which diseases have Abnormal thumb morphology?", answered),
    "state-maybe": ("ask?base=hpo&q=Which phenotype means abnormally long and slender fingers?", answered),
    "state-not-found": ("ask?base=hpo&q=Which disease was discovered on Mars?", answered),
    "explore": ("explore?base=hpo&e=NCBIGene:2200&e=HP:0001166", wait("img.drawing")),
    "around": ("explore?base=hpo&e=HP:0010442", wait(".kinds button")),
    "compare": (f"compare?base=hpo&q={MARFAN}&method=bm25&other=hybrid", wait(".remarks")),
    "passage": ("ask?base=papers&q=Who will build the fifth station near Schwerte?", answered),
    "printed": ("ask?base=papers&q=Who will build the fifth station near Schwerte?", printed),
    "documents": ("documents?base=papers", wait("a[href*='maze.md']")),
    "reading": ("documents?base=papers&doc=maze.md", wait("article.reading")),
    "bases": ("bases?base=hpo", wait(".answer-table")),
    "evaluations": ("evaluations?base=hpo", failing),
    "reference": ("api?base=hpo", trying),
}
TEAM_VIEWS: dict[str, tuple[str, Step]] = {
    "account": ("account?base=hpo", wait("ul[aria-label='What you asked'] a, .account")),
    "team": ("team?base=hpo", wait(".log td")),
}


def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, help="keep every picture here")
    everything = parser.parse_args().all
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = everything or Path(made) / "pictures"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        with served(Path(made)) as (plain, team):
            for look in LOOKS:
                take(browser, look, plain, team, folder)
        keep(browser, folder)
        browser.close()


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """Start a server with every kind of base, and one with users."""
    base = ROOT / ".demo" / "hpo.kb"
    asked = [(MARFAN, "NCBIGene:2200"), ("What is Noonan syndrome?", "OMIM:163950")]
    lines = [json.dumps({"id": text, "question": text, "answers": [key]}) for text, key in asked]
    questions = folder / "syndromes" / "questions.jsonl"
    questions.parent.mkdir()
    questions.write_text("\n".join(lines) + "\n")
    (folder / "maze.md").write_text(MAZE)
    clew.evaluate(clew.open(base), questions, methods=["auto", "bm25"], out=folder / "runs")
    limits = ClientLimits(per_minute=100_000)
    settings = ServerSettings(
        {"hpo": base},
        {"papers": folder / "papers"},
        {"fast": "http://127.0.0.1:9/v1#fast"},
        limits=limits,
        evaluations=folder / "runs",
        made=folder / "made",
        sources=Sources((str(folder / "maze.md"),)),
    )
    team = make_team(folder / "team.db")
    team.users.make(SERVER, "anna@example.org", UserChange(roles={"hpo": "editor"}, asks_per_day=100))
    with running(settings) as plain, running(ServerSettings({"hpo": base}, access=team, limits=limits)) as with_users:
        yield plain, with_users


def take(browser: Browser, look: str, plain: str, team: str, folder: Path) -> None:
    """Every view in one look."""
    (folder / look).mkdir(parents=True, exist_ok=True)
    context = opened(browser, look)
    page = context.new_page()
    page.set_default_timeout(120_000)
    fill_papers(page, plain)
    for name, (address, step) in VIEWS.items():
        shoot(page, plain, address, step, folder / look / f"{name}.png")
    page.goto(team)
    page.get_by_label("Name").wait_for()
    page.screenshot(path=folder / look / "sign-in.png")
    page.get_by_label("Name").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Account: root").wait_for()
    shoot(page, team, f"ask?base=hpo&q={MARFAN}", answered, folder / look / "signed-in.png")
    for name, (address, step) in TEAM_VIEWS.items():
        shoot(page, team, address, step, folder / look / f"{name}.png")
    context.close()


def opened(browser: Browser, look: str) -> BrowserContext:
    """Open a browser with this appearance."""
    width, scheme = LOOKS[look]
    context = browser.new_context(
        viewport={"width": width, "height": 860}, color_scheme=scheme, reduced_motion="reduce", locale="en"
    )
    if look == "right-to-left":
        context.add_init_script(RIGHT_TO_LEFT)
    return context


def fill_papers(page: Page, site: str) -> None:
    """Two documents, once."""
    page.goto(f"{site}/#/documents?base=papers")
    page.locator("#upload").wait_for(state="attached")
    if page.get_by_role("link", name="maze.md").count() == 0:
        with tempfile.TemporaryDirectory() as folder:
            ruled_pdf(Path(folder) / "report.pdf")
            (Path(folder) / "maze.md").write_text(MAZE)
            page.locator("#upload").set_input_files([Path(folder) / "report.pdf", Path(folder) / "maze.md"])
            page.get_by_role("link", name="maze.md").wait_for()
            page.get_by_role("link", name="report.pdf").wait_for()


def shoot(page: Page, site: str, address: str, step: Step, file: Path) -> None:
    """One picture."""
    page.goto("about:blank")
    page.goto(f"{site}/#/{quote(address, safe='/?=&:')}")
    step(page)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(200)
    page.screenshot(path=file)


def keep(browser: Browser, folder: Path) -> None:
    """Take the screenshots of the documentation."""
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    for look, names in SHOWN.items():
        for name in names:
            kept = f"{name}.png" if look == "light" else f"{look}.png"
            (images / kept).write_bytes((folder / look / f"{name}.png").read_bytes())
    for look, (width, _) in LOOKS.items():
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        small = 312 if width > 400 else 152
        shown = "".join(
            f"<figure><img src='file://{file}' width='{small}'><figcaption>{file.stem}</figcaption></figure>"
            for file in sorted((folder / look).glob("*.png"))
        )
        style = "body{display:flex;flex-wrap:wrap;gap:4px;font:12px sans-serif}figure{margin:0}img{outline:1px solid}"
        (folder / f"{look}.html").write_text(f"<style>{style}</style>{shown}")
        page.goto(f"file://{folder / look}.html")
        page.screenshot(path=images / f"views-{look}.jpg", full_page=True, type="jpeg", quality=70)
        page.close()


if __name__ == "__main__":
    main()
