"""The page of the API, in Chromium: drawn from the server's own description, and every address can be tried there."""

import json
import shutil
import subprocess

import pytest

from browser_fixtures import flaws
from clew.server.access import Access, Grant, digest_of
from clew.server.app import create_app
from clew.server.settings import ServerSettings
from web_server import running


@pytest.fixture
def reference(page, site):
    page.goto(f"{site}/#/api?base=hpo")
    page.locator(".reference").first.wait_for()
    return page


def opened(page, method: str, path: str):
    """One address, opened."""
    row = page.locator(".reference > li").filter(
        has=page.locator("summary").filter(has_text=method).filter(has=page.get_by_text(path, exact=True))
    )
    row.locator("summary").first.click()
    row.locator("form.try").wait_for()
    return row


def reply(row):
    row.get_by_role("button", name="Send").click()
    row.locator(".status-line").wait_for()
    return row.locator(".reply")


def test_every_address_is_there_and_nothing_is_loaded_from_elsewhere(page, site):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site}/#/api?base=hpo")
    page.locator(".reference").first.wait_for()
    described = page.evaluate("fetch('/openapi.json').then((reply) => reply.json())")
    count = sum(len(methods) for methods in described["paths"].values())
    assert page.locator(".reference > li").count() == count > 40
    for place in range(count):
        page.locator(".reference > li > details > summary").nth(place).click()
    page.locator("form.try").nth(count - 1).wait_for(state="attached")  # drawn a moment after it is opened
    assert page.locator("form.try").count() == count
    assert all(one.startswith(f"{site}/") for one in asked), asked
    for scheme in described["components"]["securitySchemes"].values():
        assert page.locator(".schemes").get_by_text(scheme["description"]).count() == 1


def test_a_question_is_asked_by_its_example_and_the_reply_is_shown(reference):
    row = opened(reference, "POST", "/v1/bases/{base}/ask")
    shown = reply(row)
    assert shown.locator(".status-line").inner_text().startswith("200 OK")
    assert json.loads(shown.locator("pre").inner_text())["answers"][0]["name"] == "FBN1"
    row.get_by_label("Example", exact=True).select_option(label="A follow-up that leans on an earlier question")
    assert json.loads(row.get_by_label("What is sent").input_value())["history"]
    row.get_by_text("What it takes").click()
    assert "Earlier questions of the conversation" in row.inner_text()


def test_an_open_form_and_its_reply_break_no_rule(browser, site):
    page = browser.new_context(bypass_csp=True, reduced_motion="reduce").new_page()
    page.goto(f"{site}/#/api?base=hpo")
    reply(opened(page, "POST", "/v1/bases/{base}/ask"))
    opened(page, "GET", "/v1/bases/{base}/subgraph")
    assert flaws(page) == []
    page.context.close()


def test_parameters_are_filled_in_and_a_refusal_is_shown(reference):
    row = opened(reference, "GET", "/v1/bases/{base}/subgraph")
    row.get_by_role("button", name="Send").click()
    assert row.locator(".status-line").count() == 0  # entities are needed
    row.locator("label", has_text="entity").locator("textarea").fill("FBN1\nOMIM:154700")
    row.locator("label", has_text="format").locator("select").select_option("text")
    assert "FBN1" in reply(row).locator("pre").inner_text()
    row = opened(reference, "GET", "/v1/bases/{base}/nodes/{key}")
    row.locator("label", has_text="key").locator("input").fill("no/such key")
    shown = reply(row)
    assert shown.locator(".status-line").inner_text().startswith("404")
    assert "no/such key" in shown.locator("pre").inner_text()


def test_a_file_is_uploaded(reference):
    row = opened(reference, "PUT", "/v1/bases/{base}/documents/{name}")
    row.locator("label", has_text="name").locator("input").fill("tried.md")
    row.locator("label", has_text="base").locator("input").fill("papers")
    row.get_by_label("The file").set_input_files({"name": "a.md", "mimeType": "text/markdown", "buffer": b"# Alpha"})
    assert reply(row).locator(".status-line").inner_text().startswith("202")
    row = opened(reference, "GET", "/v1/bases/{base}/documents")
    row.locator("label", has_text="base").locator("input").fill("papers")
    assert "tried.md" in reply(row).locator("pre").inner_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="what is copied is run by curl")
def test_what_is_copied_for_a_shell_does_the_same(reference):
    reference.context.grant_permissions(["clipboard-read", "clipboard-write"])
    row = opened(reference, "POST", "/v1/bases/{base}/ask")
    row.get_by_label("What is sent").fill('{"question": "What does \'FBN1\' cause; echo $HOME?", "k": 1}')
    row.get_by_role("button", name="Copy for a shell").click()
    row.get_by_role("button", name="Copied").wait_for()
    command = reference.evaluate("navigator.clipboard.readText()")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["question"] == "What does 'FBN1' cause; echo $HOME?"


def test_another_token_is_tried_in_the_place_of_ones_own(page, hostile, tmp_path):
    own, other = "the-token-of-this-page", "the-token-of-a-program"
    grants = (
        Grant("all", digest_of(own), {"*": "editor"}),
        Grant("one", digest_of(other), {"second": "reader"}),
    )
    settings = ServerSettings({"first": hostile, "second": hostile}, access=Access(grants))
    with running(settings) as address:
        page.add_init_script(f"sessionStorage.setItem('clew-token', '{own}')")
        page.goto(f"{address}/#/api")
        page.locator(".reference").first.wait_for()
        row = opened(page, "GET", "/v1/bases")
        assert [one["name"] for one in json.loads(reply(row).locator("pre").inner_text())] == ["first", "second"]
        page.get_by_label("Try it with another token").fill(other)
        row.get_by_role("button", name="Send").click()
        row.locator("pre", has_not_text='"first"').wait_for()
        assert [one["name"] for one in json.loads(row.locator(".reply pre").inner_text())] == ["second"]
        page.close()  # before the server, which it may still ask


def test_every_body_has_examples_that_fit_its_description():
    jsonschema = pytest.importorskip("jsonschema")
    described = create_app(ServerSettings({})).openapi()
    assert {one["type"] for one in described["components"]["securitySchemes"].values()} == {"http", "apiKey"}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            assert content.get("examples"), f"{method} {path}"
            for example in content["examples"].values():
                jsonschema.validate(example["value"], {**content["schema"], "components": described["components"]})
