"""Bases made on the page: by admins alone, described, asked by every process, deleted and restored."""

import threading
import time
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from browser_fixtures import flaws, settled
from clew.server.managed import Sources
from clew.server.settings import ClientLimits, ServerSettings, named_bases
from clew.store.building import build
from conftest import tables
from team_members import app_of, make_settings, make_team, visitor
from web_server import running

TEXT = b"# The labyrinth\n\nAriadne gave Theseus a thread. Daedalus built the labyrinth for King Minos of Crete.\n"


@pytest.fixture
def settings(tmp_path) -> ServerSettings:
    build(tables(), tmp_path / "tiny.kb")
    return ServerSettings(named_bases([tmp_path / "tiny.kb"]), made=tmp_path / "made")


def until_ready(page, base: str) -> None:
    for _ in range(600):
        if page.get(f"/v1/bases/{base}").json()["ready"]:
            return
        time.sleep(0.1)
    pytest.fail("the base was not built")


def names(page) -> list[str]:
    return [base["name"] for base in page.get("/v1/bases").json()]


def test_a_base_is_made_described_asked_deleted_and_restored(settings):
    ask = {"question": "Who gave Theseus the thread?", "method": "bm25"}
    with visitor(app_of(replace(settings, workers=2))) as page:
        assert page.get("/v1/managed").json() == {"may_make": True, "deleted": [], "sources": []}
        assert page.post("/v1/bases", json={"name": "myths", "title": "Old stories"}).status_code == 201
        assert page.put("/v1/bases/myths/documents/maze.md", content=TEXT).status_code == 202
        until_ready(page, "myths")
        run = page.post("/v1/bases/myths/ask", json=ask).json()
        assert "Ariadne" in str(run["answers"][0])
        changed = page.patch("/v1/bases/myths", json={"description": "Crete <b>and</b> its maze"}).json()
        assert (changed["title"], changed["description"]) == ("Old stories", "Crete <b>and</b> its maze")
        assert page.delete("/v1/bases/myths").status_code == 204
        assert names(page) == ["tiny"]
        assert page.post("/v1/bases/myths/ask", json=ask).status_code == 404
        assert page.get("/v1/managed").json()["deleted"] == ["myths"]
        assert page.post("/v1/managed/myths/restore").json()["title"] == "Old stories"
        assert page.post("/v1/bases/myths/ask", json=ask).json()["answers"]
        assert page.get("/v1/managed").json()["deleted"] == []
    with visitor(app_of(settings)) as page:
        assert names(page) == ["tiny", "myths"], "the next server knows it"


def test_what_was_given_to_the_server_and_bad_names_are_refused(settings):
    page = visitor(app_of(settings))
    assert page.delete("/v1/bases/tiny").status_code == 409
    assert page.patch("/v1/bases/tiny", json={"title": "mine"}).status_code == 409
    for name in ("tiny", "../up", ".hidden", "A B", "x/y", "a~b", "*", "x" * 51):
        assert page.post("/v1/bases", json={"name": name}).status_code == 422, name
    assert page.post("/v1/managed/..%2Ftiny.kb/restore").status_code == 404
    assert page.post("/v1/managed/nothing/restore").status_code == 404
    without = visitor(app_of(replace(settings, made=None)))
    assert "--bases" in without.post("/v1/bases", json={"name": "x"}).json()["error"]
    assert without.get("/v1/managed").json()["may_make"] is False


def test_only_an_admin_of_all_bases_makes_them_and_a_name_does_not_inherit_roles(tmp_path):
    team = make_team(tmp_path / "team.db")
    app = app_of(make_settings(tmp_path, team, made=tmp_path / "made", runs=tmp_path / "runs"))
    root = visitor(app, "root")
    for name in ("rea", "ed", "ada"):
        page = visitor(app, name)
        assert page.post("/v1/bases", json={"name": "mine"}).status_code == 403
        assert page.get("/v1/managed").json()["may_make"] is False
    token = root.post("/v1/me/tokens", json={"name": "x", "write": True}).json()["token"]
    assert visitor(app, authorization=f"Bearer {token}").post("/v1/bases", json={"name": "mine"}).status_code == 403
    root.post("/v1/bases", json={"name": "myths"})
    root.patch("/v1/users/rea", json={"roles": {"open": "reader", "myths": "editor"}})
    rea = visitor(app, "rea")
    assert "myths" in names(rea)
    assert rea.delete("/v1/bases/myths").status_code == 403
    assert rea.patch("/v1/bases/myths", json={"title": "x"}).status_code == 403
    root.delete("/v1/bases/myths")
    root.post("/v1/bases", json={"name": "myths"})
    assert names(rea) == ["open"], "another base of the same name is not hers"
    told = [line["what"] for line in root.get("/v1/audit").json()]
    assert told.count("base made") == 2
    assert "base deleted" in told


def test_the_page_makes_and_deletes_a_base_and_shows_what_is_in_one(browser, settings):
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce", bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    with running(replace(settings, limits=ClientLimits(per_minute=100_000))) as address:
        page.goto(f"{address}/#/ask?base=tiny")
        page.get_by_role("link", name="8 nodes").click()
        page.get_by_role("region", name="Relations").get_by_text("disease").first.wait_for()
        page.get_by_label("Name, as it stands").fill("myths")
        page.get_by_label("Title").last.fill("Old stories")
        page.get_by_role("button", name="Make a base").click()
        page.get_by_role("list", name="Bases").get_by_role("link", name="Old stories").wait_for()
        page.get_by_text("Change or delete").click()
        page.get_by_label("What it is about").fill("<img src=x onerror=alert(1)>")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("list", name="Bases").get_by_text("<img src=x").first.wait_for()
        assert flaws(page) == []
        assert page.locator("#main img").count() == 0
        page.get_by_text("Change or delete").click()
        page.get_by_role("button", name="Delete myths").click()
        page.get_by_role("button", name="Undo the deletion of myths").click()
        page.get_by_role("list", name="Bases").get_by_role("link", name="Old stories").wait_for()
    context.close()


@pytest.fixture
def elsewhere(tmp_path):
    """Another server, with a file that is allowed, one that is not, and one that leads away."""
    folder = tmp_path / "elsewhere"
    (folder / "public").mkdir(parents=True)
    (folder / "public" / "maze.md").write_bytes(TEXT)
    (folder / "public" / "large.md").write_bytes(TEXT * 200)
    (folder / "secret.md").write_bytes(TEXT)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given) -> None:
            super().__init__(*given, directory=str(folder))

        def do_GET(self) -> None:
            if self.path == "/public/away.md":
                self.send_response(302)
                self.send_header("location", "/secret.md")
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def sources(tmp_path, elsewhere) -> Sources:
    shelf = tmp_path / "shelf"
    (shelf / "old").mkdir(parents=True)
    (shelf / "old" / "maze.md").write_bytes(TEXT)
    (shelf / ".hidden.md").write_bytes(TEXT)
    (shelf / "program.exe").write_bytes(TEXT)
    (tmp_path / "secret.md").write_bytes(TEXT)
    (shelf / "link.md").symlink_to(tmp_path / "secret.md")
    return Sources((str(shelf), f"{elsewhere}/public/"))


def test_a_base_begins_with_a_file_that_the_server_may_read(settings, sources, elsewhere):
    ask = {"question": "Who gave Theseus the thread?", "method": "bm25"}
    with visitor(app_of(replace(settings, sources=sources))) as page:
        assert page.get("/v1/managed").json()["sources"] == ["shelf/old/maze.md", f"{elsewhere}/public/"]
        for name, source in (("near", "shelf/old/maze.md"), ("far", f"{elsewhere}/public/maze.md")):
            assert page.post("/v1/bases", json={"name": name, "source": source}).status_code == 201
            until_ready(page, name)
            assert "Ariadne" in str(page.post(f"/v1/bases/{name}/ask", json=ask).json()["answers"][0])


def test_nothing_else_is_read_and_no_base_is_left_behind(settings, sources, elsewhere, tmp_path):
    limits = ClientLimits(upload_bytes=10_000)
    page = visitor(app_of(replace(settings, sources=sources, limits=limits)))
    host = elsewhere.removeprefix("http://")
    wrong = [
        *("shelf/link.md", "shelf/.hidden.md", "shelf/program.exe", "shelf/../secret.md", "/etc/passwd"),
        *(str(tmp_path / "secret.md"), "file:///etc/passwd", "http://127.0.0.1:1/maze.md"),
        *(f"{elsewhere}/secret.md", f"{elsewhere}/public/../secret.md", f"{elsewhere}/public/%2e%2e/secret.md"),
        *(
            f"{elsewhere}/public/..%2fsecret.md",
            f"http://user@{host}/public/maze.md",
            f"http://{host}.evil/public/maze.md",
        ),
        *(f"http://evil@{host}/public/maze.md", f"ftp://{host}/public/maze.md", f"{elsewhere}/public/away.md"),
        *(f"{elsewhere}/public/large.md", f"{elsewhere}/public/none.md", f"{elsewhere}/public/"),
    ]
    for source in wrong:
        reply = page.post("/v1/bases", json={"name": "mine", "source": source})
        assert reply.status_code == 422, source
        assert names(page) == ["tiny"], source


MODELS = {"fast": "http://127.0.0.1:9/v1#secret-name", "slow": "http://127.0.0.1:9/v1#other"}


def test_an_admin_says_which_model_answers_by_default(tmp_path):
    team = make_team(tmp_path / "team.db")
    settings = make_settings(tmp_path, team, models=MODELS)
    app = app_of(settings)
    root, ada, rea = (visitor(app, name) for name in ("root", "ada", "rea"))
    told = rea.get("/v1/bases/open").json()
    assert (told["default_model"], told["may_choose_model"]) == ("none", False)
    assert told["models"] == ["none", *MODELS]
    for page in (rea, visitor(app, "ed")):
        assert page.put("/v1/bases/open/model", json={"model": "fast"}).status_code == 403
    assert ada.put("/v1/bases/open/model", json={"model": "fast"}).status_code == 204, "the admin of the base"
    assert ada.put("/v1/bases/closed/model", json={"model": "fast"}).status_code == 404
    for model in ("http://127.0.0.1:9/v1#mine", "unknown"):
        assert root.put("/v1/bases/open/model", json={"model": model}).status_code == 404
    question = {"question": "Which gene is associated with Marfan syndrome?"}
    reply = rea.post("/v1/bases/open/ask", json=question)
    assert reply.json()["request"]["model"] == "fast"
    assert "outage" in reply.text, "it was asked"
    assert rea.post("/v1/bases/open/ask", json={**question, "model": "none"}).json()["request"]["model"] == "none"
    chat = {"model": "open", "messages": [{"role": "user", "content": question["question"]}]}
    texts = [reply.text, rea.get("/v1/bases/open").text, rea.post("/v1/chat/completions", json=chat).text]
    assert not [text for text in texts if "127.0.0.1:9" in text or "secret-name" in text]
    again = app_of(settings)
    assert visitor(again, "rea").get("/v1/bases/open").json()["default_model"] == "fast", "the next server knows it"
    fewer = app_of(replace(settings, models={"slow": MODELS["slow"]}))
    assert visitor(fewer, "rea").get("/v1/bases/open").json()["default_model"] == "none", "a model that is gone"
    assert "setting changed" in [line["what"] for line in root.get("/v1/audit").json()]


def test_the_page_chooses_a_model_and_begins_with_a_file(browser, settings, sources):
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce", bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    with running(replace(settings, models=MODELS, sources=sources, limits=ClientLimits(per_minute=100_000))) as address:
        page.goto(f"{address}/#/bases?base=tiny")
        page.get_by_label("Name, as it stands").fill("myths")
        with page.expect_response("**/v1/bases/tiny/model"):
            page.get_by_label("Model that answers by default").select_option("slow")
        settled(page)
        assert page.get_by_label("Name, as it stands").input_value() == "myths", "what was typed stays"
        page.get_by_label("Begin with a file").fill("shelf/old/maze.md")
        page.get_by_role("button", name="Make a base").click()
        page.get_by_role("list", name="Bases").get_by_role("link", name="myths").wait_for()
        assert flaws(page) == []
        assert "127.0.0.1:9" not in page.content()
        page.goto(f"{address}/#/ask?base=tiny")
        page.get_by_label("Your question").wait_for()
        assert page.get_by_label("Model").input_value() == "slow"
        page.goto(f"{address}/#/documents?base=myths")
        page.get_by_role("link", name="maze.md").wait_for()
    context.close()
