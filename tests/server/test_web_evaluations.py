"""The dashboard of evaluations: real runs of `clew eval`, compared, with what went wrong, for those who may see it."""

import json
from dataclasses import replace

import pytest

import clew
from browser_fixtures import flaws
from clew.server.settings import ServerSettings, named_bases
from clew.store.building import build
from conftest import tables
from team_members import app_of, make_settings, make_team, visitor
from web_server import running

QUESTIONS = [
    {"id": "1", "question": "Marfan syndrome", "answers": ["MFS"]},
    {"id": "2", "question": "Which gene is associated with Bardet-Biedl syndrome?", "answers": ["BBS2"]},
    {"id": "3", "question": "<script>alert(1)</script>", "answers": ["P1"]},
]


@pytest.fixture
def settings(run, tmp_path) -> ServerSettings:
    build(tables(), tmp_path / "tiny.kb")
    questions = tmp_path / "mine.jsonl"
    questions.write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
    command = ("eval", "--questions", questions, "--kb", tmp_path / "tiny.kb", "--out", tmp_path / "runs")
    code, _, told = run(*command, "--method", "bm25", "--method", "auto")
    assert code == 0, told
    return ServerSettings(named_bases([tmp_path / "tiny.kb"]), evaluations=tmp_path / "runs")


def test_runs_are_compared_and_failures_come_with_their_trace(settings):
    page = visitor(app_of(settings))
    [found] = page.get("/v1/evaluations").json()
    assert found["runs"] == ["auto", "bm25"]
    assert "n = 3" in found["title"]
    titles = [table["title"] for table in found["tables"]]
    assert titles[0] == found["title"]
    assert {"Paired comparison", "Time and cost"} <= set(titles)
    assert [row[:2] for row in found["tables"][0]["rows"]] == [["auto", "3"], ["bm25", "3"]]
    failed = page.get("/v1/evaluations/failures", params={"set": found["title"], "run": "auto"}).json()
    assert "3" in [one["id"] for one in failed]
    assert all(one["trace"] and one["gold"] for one in failed)
    assert page.get("/v1/evaluations/failures", params={"set": found["title"], "run": "none"}).status_code == 404


def test_a_run_that_goes_on_is_shown_as_it_is(settings):
    page = visitor(app_of(settings))
    answers = next(settings.evaluations.rglob("bm25*/answers.jsonl"))
    lines = answers.read_text().splitlines(keepends=True)
    answers.write_text("".join(lines[:1]))
    assert page.get("/v1/evaluations").json()[0]["tables"][0]["rows"][1][1] == "1 of 3"
    answers.write_text("".join(lines))
    assert page.get("/v1/evaluations").json()[0]["tables"][0]["rows"][1][1] == "3"


def test_a_server_without_evaluations_says_so(settings):
    assert (
        "--evaluations" in visitor(app_of(replace(settings, evaluations=None))).get("/v1/evaluations").json()["error"]
    )
    empty = replace(settings, evaluations=settings.evaluations / "none")
    assert visitor(app_of(empty)).get("/v1/evaluations").json() == []


def test_evaluations_are_for_those_who_may_read_all_bases(settings, tmp_path):
    app = app_of(make_settings(tmp_path, make_team(tmp_path / "team.db"), evaluations=settings.evaluations))
    statuses = {name: visitor(app, name).get("/v1/evaluations").status_code for name in ("root", "ada", "rea")}
    assert statuses == {"root": 200, "ada": 403, "rea": 403}


def test_evaluations_are_for_those_who_may_see_everything(settings, tmp_path):
    """A reader without the groups of a base sees neither its runs nor their failures."""
    clew.build(tables(), tmp_path / "tiny.kb", visible={"BBS*": ["lab"], "P*": ["clinic"]})
    for groups, status in (((), 403), (("lab",), 403), (("clinic", "lab"), 200)):
        page = visitor(app_of(replace(settings, groups=groups)))
        assert page.get("/v1/evaluations").status_code == status
        failures = page.get("/v1/evaluations/failures", params={"set": "mine", "run": "auto"})
        assert (failures.status_code == 403) == (status == 403)
        assert status == 200 or "BBS2" not in failures.text
    clew.build(tables(), tmp_path / "tiny.kb", visible={"*": ["lab"]}, widen=True)
    assert visitor(app_of(settings)).get("/v1/evaluations").status_code == 403


def test_the_page_shows_them(browser, settings):
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce", bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("dialog", lambda dialog: pytest.fail("a question was run"))
    with running(settings) as address:
        page.goto(f"{address}/#/compare?base=tiny")
        page.get_by_role("link", name="How methods did on many questions").click()
        page.get_by_role("heading", name="Paired comparison").wait_for()
        for run in ("bm25", "auto"):
            with page.expect_request(f"**/failures?*run={run}*"):  # by then the list of the other run has gone
                page.locator("#main select").last.select_option(run)
        page.get_by_role("list", name="What went wrong").get_by_text("<script>").click()
        page.locator("details[open] pre").wait_for()
        assert flaws(page) == []
    context.close()
