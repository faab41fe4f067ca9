"""The team in a browser: the first sign-in, an account, what an admin does, and no rule of axe broken."""

import re

import pytest

from browser_fixtures import HOSTILE, flaws, is_problem
from clew.server.settings import ClientLimits, ServerSettings
from clew.server.team.team import Team
from clew.store.building import build
from conftest import tables
from team_members import PASSWORD
from web_server import running

OWN = "another thread in the dark"


@pytest.fixture
def started(tmp_path, hostile):
    """A server at its first start, and the password that it tells."""
    build(tables(), tmp_path / "open.kb")
    team = Team.open(tmp_path / "team.db")
    password = team.users.make_first_admin()
    bases = {"open": tmp_path / "open.kb", "hostile": hostile}
    with running(ServerSettings(bases, access=team, limits=ClientLimits(per_minute=100_000))) as address:
        yield address, password


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce", bypass_csp=True)
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    problems: list[str] = []
    opened.on("dialog", lambda dialog: problems.append(f"a text was run: {dialog.message}"))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    refused = re.compile("status of (401|429)")  # where nobody has signed in yet, and beyond a quota
    opened.on(
        "console",
        lambda one: problems.append(one.text) if is_problem(one) and not refused.search(one.text) else None,
    )
    yield opened
    context.close()
    assert not problems


def sign_in(page, name: str, password: str) -> None:
    page.get_by_role("heading", name="Sign in").wait_for()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")


def choose_password(page, old: str, new: str) -> None:
    page.get_by_label("Present password").fill(old)
    page.get_by_label("New password: at least").fill(new)
    page.get_by_label("New password, once more").fill(new)
    page.get_by_role("button", name="Change the password").click()


def check(page, view: str) -> None:
    """Nothing is wrong with it in any look."""
    assert flaws(page) == [], view


def test_from_the_first_sign_in_to_a_colleagues_question(started, page):
    address, password = started
    page.goto(address)
    sign_in(page, "admin", "not the password at all")
    page.get_by_text("wrong name or password").wait_for()
    check(page, "sign-in")
    sign_in(page, "admin", password)
    page.get_by_text("choose a password that nobody else knows").wait_for()
    assert page.get_by_role("navigation").get_by_role("link").count() == 0
    choose_password(page, password, PASSWORD)
    page.get_by_role("link", name="Team").click()
    page.get_by_label("Name").first.fill("rea")
    page.get_by_role("button", name="Make a user").click()
    first = page.locator(".told code").inner_text()
    page.get_by_role("list", name="Users").get_by_text("rea", exact=True).click()
    page.locator("details[open] label", has_text="open").locator("select").select_option("reader")
    page.locator("details[open] input[type=number]").fill("1")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("open: reader").wait_for()
    page.get_by_role("list", name="Users").get_by_text("rea", exact=True).click()
    page.get_by_text("user changed").first.wait_for(state="attached")
    check(page, "team")
    page.get_by_role("link", name="Account: admin").click()
    page.get_by_role("button", name="Sign out").click()

    sign_in(page, "rea", first)
    page.get_by_text("choose a password that nobody else knows").wait_for()
    choose_password(page, first, OWN)
    page.get_by_role("link", name="Ask", exact=True).click()
    assert page.get_by_label("Knowledge base").inner_text().strip() == "open"
    assert page.get_by_role("link", name="Team").count() == 0
    page.get_by_label("Your question").fill("Which disease has extra fingers?")
    page.keyboard.press("Enter")
    page.locator(".answered[aria-busy=false] .follow").wait_for()
    page.get_by_role("link", name="Account: rea").click()
    page.get_by_text("1 of 1 questions today").wait_for()
    page.get_by_label("What it is for").fill("notebook")
    page.get_by_role("button", name="Make a token").click()
    assert page.locator(".told code").inner_text().startswith("clew_")
    check(page, "account")
    page.get_by_role("list", name="What you asked").get_by_role("link").first.click()
    page.locator(".answered[aria-busy=false] .follow").wait_for()  # the run itself: nothing is asked again
    page.goto(f"{address}/#/team?base=open")
    page.get_by_text("You are not an admin here.").wait_for()
    page.goto(f"{address}/#/ask?base=open&q=cleft palate")
    page.get_by_text("daily limit of 1").first.wait_for()


def test_no_part_of_the_team_moves_another_away(started, page):
    address, password = started
    page.goto(f"{address}/#/ask?base=open")
    sign_in(page, "admin", password)
    choose_password(page, password, PASSWORD)
    held = []
    page.route("**/v1/users", lambda route: held.append(route))
    with page.expect_response("**/v1/bases/open/members"), page.expect_response("**/v1/audit"):
        page.get_by_role("link", name="Team").click()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.get_by_label("Name").count() == 0, "a field that the next part would push down"
    held[0].continue_()
    page.unroute("**/v1/users")
    page.get_by_label("Name").first.fill("rea")
    page.get_by_role("button", name="Make a user").click()
    page.locator(".told code").wait_for()


def test_no_field_of_a_user_is_run_as_a_program(started, page):
    address, password = started
    page.goto(address)
    sign_in(page, "admin", password)
    choose_password(page, password, PASSWORD)
    page.get_by_role("link", name="Team").click()
    page.get_by_label("Name").first.fill("eve@example.org")
    page.get_by_role("button", name="Make a user").click()
    page.get_by_role("list", name="Users").get_by_text("eve@example.org", exact=True).click()
    page.locator("details[open] input[type=text]").fill(HOSTILE[:90])
    page.get_by_role("button", name="Save").click()
    page.get_by_text("user changed").first.wait_for(state="attached")
    page.get_by_role("link", name="Account: admin").click()
    page.get_by_label("What it is for").fill(HOSTILE[:90])
    page.get_by_role("button", name="Make a token").click()
    page.locator(".told code").wait_for()
    page.goto(f"{address}/#/ask?base=open&q={HOSTILE}&method=bm25")
    page.locator(".answered[aria-busy=false]").wait_for()
    page.get_by_role("link", name="Account: admin").click()
    page.get_by_role("list", name="What you asked").get_by_role("link").first.wait_for()
    assert page.locator("#main script, #main img").count() == 0
    page.get_by_role("link", name="Team").click()
    page.get_by_text("token made").first.wait_for(state="attached")
    page.get_by_role("list", name="Users").get_by_text("eve@example.org", exact=True).click()
    assert page.locator("#main script, #main img").count() == 0
    assert page.title() == "Team · Clew"


def test_a_session_that_ended_leads_back_to_the_sign_in(started, page):
    address, password = started
    page.goto(f"{address}/#/ask?base=open")
    sign_in(page, "admin", password)
    choose_password(page, password, PASSWORD)
    page.get_by_role("link", name="Ask", exact=True).click()
    page.get_by_label("Your question").wait_for()
    assert page.evaluate("document.cookie") == "", "no script can read the session"
    page.context.clear_cookies()
    page.get_by_label("Your question").fill("extra fingers")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Sign in").wait_for()
