"""The API: what it answers, to whom, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from clew.answering.methods.retrievers import Bm25
from clew.server.access import Access, Grant, digest_of, read_keys
from clew.server.app import create_app
from clew.server.settings import ClientLimits, ServerSettings, named_bases, named_models
from clew.store.building import build
from conftest import tables

QUESTION = "Which disease has extra fingers?"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "tiny.kb"
    build(tables(), folder)
    return folder


@pytest.fixture
def settings(tiny) -> ServerSettings:
    return ServerSettings(named_bases([tiny]))


def client(settings: ServerSettings, **headers: str) -> TestClient:
    return TestClient(create_app(settings), base_url="http://localhost", headers=headers)


def ask(page: TestClient, base: str = "tiny", **more):
    return page.post(f"/v1/bases/{base}/ask", json={"question": QUESTION, "method": "bm25", **more})


def events(text: str) -> list[tuple[str, dict]]:
    lines = [dict(line.split(": ", 1) for line in event.split("\n")) for event in text.strip().split("\n\n")]
    return [(line["event"], json.loads(line["data"])) for line in lines]


def test_an_answer_comes_with_evidence_and_is_found_again_by_its_run(settings):
    page = client(settings)
    answer = ask(page).json()
    assert answer["answers"][0]["name"] in ("Polydactyly", "Bardet-Biedl syndrome")
    assert answer["answers"][0]["evidence"][0]["kind"] == "passage"
    assert page.get(f"/v1/bases/tiny/runs/{answer['run']}").json() == answer
    assert page.get("/v1/bases/tiny/runs/AAAAAAAAAAAA").status_code == 404


def test_a_stream_tells_answers_one_by_one_and_ends_with_the_run(settings):
    page = client(settings)
    request = {"question": "arachnodactyly in connective tissue disorders", "method": "hybrid"}
    told = events(page.post("/v1/bases/tiny/ask?stream=true", json=request).text)
    kinds = [kind for kind, _ in told]
    assert kinds[0] == "span"
    assert kinds[-1] == "run"
    assert [content["key"] for kind, content in told if kind == "answer"] == [
        one["key"] for one in told[-1][1]["answers"]
    ]


def test_nodes_names_neighbours_and_subgraphs_are_served(settings):
    page = client(settings)
    assert page.get("/v1/bases/tiny/nodes/BBS2").json()["neighbors"][0]["nodes"][0]["key"] == "BBS"
    assert page.get("/v1/bases/tiny/find", params={"text": "marfan sydrome"}).json()[0]["key"] == "MFS"
    found = page.get("/v1/bases/tiny/neighbors", params={"key": "BBS"}).json()
    assert {node["key"] for node in found["nodes"]} == {"BBS", "BBS2", "P1", "P2"}
    between = {"entity": ["BBS2", "P1"]}
    assert page.get("/v1/bases/tiny/subgraph", params=between).json()["edges"]
    svg = page.get("/v1/bases/tiny/subgraph", params={**between, "format": "svg"})
    assert svg.text.startswith("<svg")
    assert "sandbox" in svg.headers["content-security-policy"]
    assert "Polydactyly" in page.get("/v1/bases/tiny/subgraph", params={**between, "format": "text"}).text


def test_a_fixed_name_is_used_and_an_excluded_one_is_not(settings):
    from clew.store.open_base import OpenBase

    tools = OpenBase.open(settings.bases["tiny"])
    fixed = tools.corrected({"Extra Fingers": ("MFS",), "BBS": ()})
    assert [tools.kb.node(link.node).key for link in fixed.names.link("extra fingers")] == ["MFS"]
    assert fixed.names.link("BBS") == ()
    assert [mention.text for mention in fixed.names.mentions("BBS with long fingers")] == ["long fingers"]
    page = client(settings)
    assert ask(page, fixes={"extra fingers": ["MFS"]}).status_code == 200
    assert ask(page, fixes={"extra fingers": ["nothing has this key"]}).status_code == 404


def test_only_configured_models_and_plain_options_can_be_asked_for(settings):
    page = client(settings)
    for model in ("http://169.254.169.254/latest#x", "openai:gpt-4o", "scripted:/etc/passwd"):
        assert ask(page, model=model).status_code == 404
    assert ask(page, options={"k": 10**9}).status_code == 422
    assert ask(page, options={"path": "/etc/passwd"}).status_code == 422
    assert named_models(["fast=http://127.0.0.1:1/v1#qwen", "openai:gpt-4o-mini"]) == {
        "fast": "http://127.0.0.1:1/v1#qwen",
        "gpt-4o-mini": "openai:gpt-4o-mini",
    }


def test_a_token_sees_its_bases_alone(settings, tiny, tmp_path):
    keys = tmp_path / "keys.toml"
    keys.write_text(
        '[[key]]\ntoken = "first-token-0123456"\nbases = ["tiny"]\n'
        '[[key]]\ntoken = "second-token-012345"\nbases = ["other"]\n[[key]]\ntoken = "third-token-0123456"\n'
    )
    keys.chmod(0o600)
    other = tmp_path / "other.kb"
    other.symlink_to(tiny)
    closed = replace(settings, bases={"tiny": tiny, "other": other}, access=read_keys(keys))
    app = create_app(closed)

    def as_(token: str) -> TestClient:
        return TestClient(app, base_url="http://localhost", headers={"authorization": f"Bearer {token}"})

    assert TestClient(app, base_url="http://localhost").get("/v1/bases").status_code == 401
    assert as_("wrong").get("/v1/bases").status_code == 401
    first, second = as_("first-token-0123456"), as_("second-token-012345")
    assert [base["name"] for base in first.get("/v1/bases").json()] == ["tiny"]
    run = ask(first).json()["run"]
    assert second.get("/v1/bases/tiny").status_code == 404
    assert ask(second).status_code == 404
    assert second.get(f"/v1/bases/tiny/runs/{run}").status_code == 404
    assert second.get(f"/v1/bases/other/runs/{run}").status_code == 404
    chat = {"model": "tiny", "messages": [{"role": "user", "content": QUESTION}]}
    assert second.post("/v1/chat/completions", json=chat).status_code == 404
    assert {model["id"].split("/")[0] for model in second.get("/v1/models").json()["data"]} == {"other"}
    tool = {"name": "search", "arguments": {"text": "BBS", "base": "tiny"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    assert "error" in second.post("/mcp", json=call).json()
    assert second.get("/metrics").status_code == 403
    assert as_("third-token-0123456").get("/metrics").status_code == 200


def test_a_file_of_keys_that_others_can_read_is_refused(tmp_path):
    from clew.core.errors import SourceError

    keys = tmp_path / "keys.toml"
    keys.write_text('[[key]]\ntoken = "first-token-0123456"\n')
    keys.chmod(0o644)
    with pytest.raises(SourceError, match="chmod 600"):
        read_keys(keys)


def test_an_open_address_without_a_token_is_refused(tiny):
    from clew.cli.serve import serve
    from clew.core.errors import InputError

    with pytest.raises(InputError, match="--token"):
        serve([tiny], host="0.0.0.0")
    with pytest.raises(InputError, match="16 characters"):
        serve([tiny], token="short")


def test_floods_and_large_requests_are_refused(settings):
    page = client(replace(settings, limits=ClientLimits(per_minute=3, request_bytes=1000)))
    assert page.post("/v1/bases/tiny/ask", content=b"x" * 1001).status_code == 413
    pieces = iter([b"x" * 600, b"x" * 600])
    assert page.post("/v1/bases/tiny/ask", content=pieces).status_code == 413
    statuses = [page.get("/health").status_code for _ in range(4)]
    assert statuses[-1] == 429
    assert int(page.get("/health").headers["retry-after"]) >= 1


def test_other_hosts_and_other_sites_are_refused(settings):
    page = client(settings)
    assert page.get("/v1/bases", headers={"host": "evil.example"}).status_code == 421
    assert page.get("/v1/bases", headers={"origin": "https://evil.example"}).status_code == 403
    assert page.get("/v1/bases", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert page.get("/v1/bases", headers={"origin": "http://localhost"}).status_code == 200


def test_every_reply_carries_the_policy_and_the_page_needs_nothing_from_elsewhere(settings):
    page = client(settings)
    for path in ("/", "/static/main.js", "/v1/bases", "/v1/bases/none", "/nowhere"):
        headers = page.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert "http://" not in page.get("/").text
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/v1/bases/..%2f..%2fetc"):
        assert page.get(path).status_code == 404


def test_metrics_count_asks_and_requests(settings):
    page = client(settings)
    ask(page)
    text = page.get("/metrics").text
    assert 'clew_asks_total{base="tiny",method="bm25",outcome="answered"} 1' in text
    assert 'clew_requests_total{method="POST",route="/v1/bases/{base}/ask",status="200"} 1' in text


def test_runs_on_disk_outlive_the_server(settings, tmp_path):
    kept = replace(settings, runs=tmp_path / "runs")
    run = ask(client(kept)).json()["run"]
    assert client(kept).get(f"/v1/bases/tiny/runs/{run}").json()["run"] == run
    assert client(kept).get("/v1/bases/tiny/runs/..%2f..%2fkeys").status_code in (404, 422)


def test_a_model_that_is_slow_holds_nobody_up(monkeypatch, settings, tmp_path):
    import threading

    from clew.server.state import State

    app = create_app(replace(settings, models={"slow": "scripted:none"}))
    state: State = app.state.clew
    release, waiting, ended = threading.Event(), threading.Semaphore(0), []

    class Slow:
        name, context_tokens = "slow", 8192

    state.served._models["slow"] = Slow()  # type: ignore[assignment]
    answer = Bm25.answer

    def held(self, question, tools):
        if tools.model is not None:
            waiting.release()
            ended.append(release.wait(60))
        return answer(self, question, tools)

    monkeypatch.setattr(Bm25, "answer", held)
    with TestClient(app, base_url="http://localhost") as page:
        slow = [threading.Thread(target=lambda: ask(page, model="slow")) for _ in range(8)]
        for thread in slow:
            thread.start()
        waiting.acquire()
        assert ask(page).status_code == 200
        assert ended == [], "answered while the others still wait"
        release.set()
        for thread in slow:
            thread.join()


def test_grants_compare_digests():
    access = Access((Grant("one", digest_of("a-token-of-length")),))
    assert access.grant("Bearer a-token-of-length") is access.grants[0]
    assert access.grant("Basic a-token-of-length") is None
    assert access.grant(None) is None
