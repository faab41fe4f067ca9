"""Python people: the client, notebooks, and the retrievers of other libraries."""

import json
import re
import subprocess
from pathlib import Path

import pytest

import clew
from clew.core.errors import ClewError, InputError, NotFoundError
from clew.server.access import Access, Grant, digest_of
from clew.server.client import Client
from clew.server.settings import ServerSettings
from clew.server.wire import AnswerReply, AskReply
from clew.store.building import build
from conftest import ROOT, tables
from web_server import running

QUESTION = "Which disease has extra fingers?"
TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("python") / "tiny.kb"
    build(tables(), folder)
    return folder


def test_the_client_asks_finds_shows_and_streams(base):
    access = Access((Grant("all", digest_of(TOKEN), {"*": "editor"}),))
    with running(ServerSettings({"tiny": base}, access=access)) as address, Client(address, TOKEN) as client:
        assert [one.name for one in client.bases()] == ["tiny"]
        tiny = client.base("tiny")
        assert "bm25" in {method.name for method in tiny.details().methods}
        answer = tiny.ask(QUESTION, method="bm25", k=3)
        assert answer.answers[0].evidence[0].kind == "passage"
        assert tiny.run(answer.run) == answer
        told = list(tiny.stream(QUESTION, method="bm25", k=3))
        assert isinstance(told[-1], AskReply)
        assert [one.key for one in told if isinstance(one, AnswerReply)] == [one.key for one in answer.answers]
        assert tiny.find("marfan")[0].key == "MFS"
        assert tiny.node("BBS").name == "Bardet-Biedl syndrome"
        assert tiny.mentions("long fingers")[0].nodes[0].key == "P3"
        assert len(tiny.neighbors("BBS").nodes) == 4
        assert tiny.subgraph(["BBS2", "P1"]).edges
        assert tiny.drawing(["BBS2", "P1"]).startswith("<svg")
        assert tiny.estimate(QUESTION, method="bm25").dollars == 0
        with pytest.raises(NotFoundError, match="nobody"):
            tiny.node("nobody has this name")
        with pytest.raises(InputError):
            tiny.ask(QUESTION, method="bm25", options={"no_such": 1})
        with Client(address, "wrong") as stranger, pytest.raises(ClewError, match="token"):
            stranger.bases()


def test_answers_and_subgraphs_show_themselves_in_a_notebook(base):
    opened = clew.open(base)
    html = opened.ask(QUESTION, method="bm25")._repr_html_()
    assert "<summary>" in html
    assert "Polydactyly" in html
    shown = opened.subgraph("BBS2", "P1")
    assert shown._repr_html_().startswith("<svg")
    assert "Polydactyly" in str(shown)


def test_a_report_shows_itself_in_a_frame_that_runs_nothing():
    from clew.lab.evaluation.page import Evaluation

    html = Evaluation(())._repr_html_()
    assert html.startswith('<iframe sandbox=""')
    assert "<script" not in html


def test_a_notebook_escapes_what_a_base_says():
    from clew.core.types import Answer, Candidate, NodeRef, Passage

    node = NodeRef(0, "k", "<script>x</script>", "<b>")
    html = Answer("<i>", method="m", candidates=(Candidate(node, 1.0, (Passage(node, "<img src=x>"),)),))._repr_html_()
    assert not [tag for tag in ("<script", "<img", "<i>", "<b>") if tag in html]


def test_langchain_retrieves_documents_with_their_evidence(base):
    pytest.importorskip("langchain_core")
    from clew.server.adapters.langchain import ClewRetriever

    found = ClewRetriever(base=clew.open(base), method="bm25", k=2).invoke(QUESTION)
    assert len(found) == 2
    assert found[0].metadata["evidence"]
    assert found[0].metadata["name"] in found[0].page_content


@pytest.mark.filterwarnings("ignore")
def test_llama_index_retrieves_nodes_with_scores(base):
    pytest.importorskip("llama_index.core")
    from clew.server.adapters.llama_index import ClewRetriever

    found = ClewRetriever(clew.open(base), method="bm25", k=2).retrieve(QUESTION)
    assert len(found) == 2
    assert found[0].score >= found[1].score
    assert found[0].node.metadata["evidence"]


def test_no_key_of_a_model_reaches_a_client(base, monkeypatch):
    from fastapi.testclient import TestClient

    from clew.server.app import create_app

    secret = "sk-this-must-never-leave-the-server"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    monkeypatch.setenv("CLEW_MODEL_KEY", secret)
    models = {"near": "http://127.0.0.1:9/v1#near"}
    page = TestClient(create_app(ServerSettings({"tiny": base}, models=models)), base_url="http://localhost")
    body = {"question": QUESTION, "model": "near", "method": "bm25"}
    replies = [
        page.get("/v1/bases/tiny"),
        page.post("/v1/bases/tiny/estimate", json=body),
        page.post("/v1/bases/tiny/ask", json=body),
        page.get("/openapi.json"),
        page.get("/metrics"),
    ]
    assert all(secret not in reply.text for reply in replies)
    assert "127.0.0.1:9" not in replies[0].text
    assert replies[0].json()["models"] == ["none", "near"]


def test_the_command_serves_and_stops_when_told(base):
    import signal
    import sys
    import time

    import httpx

    command = [sys.executable, "-m", "clew", "serve", str(base), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        line = process.stderr.readline()
        address = line.split()[-1]
        for _ in range(300):
            try:
                assert json.loads(httpx.get(f"{address}/health", timeout=60).text)["status"] == "ok"
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


@pytest.mark.filterwarnings("ignore")
def test_haystack_retrieves_documents_with_scores(base):
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from clew.server.adapters.haystack import ClewRetriever

    found = ClewRetriever(clew.open(base), method="bm25", k=2).run(query=QUESTION)["documents"]
    assert len(found) == 2
    assert found[0].score >= found[1].score
    assert found[0].meta["evidence"]


@pytest.mark.filterwarnings("ignore")
def test_dspy_retrieves_passages(base):
    pytest.importorskip("dspy", reason="dspy is not installed")
    from clew.server.adapters.dspy import ClewRetriever

    found = ClewRetriever(clew.open(base), method="bm25", k=2)(query=QUESTION)
    assert len(found.passages) == 2
    assert found.found[0]["name"] in found.passages[0]


def test_recipes_for_servers_use_options_that_there_are(base, run):
    """No container is started here; what can go out of date is what they tell `clew serve`."""
    told = run("serve", "--help")[1]
    for name in ("Dockerfile", "compose.yaml", "clew.service"):
        text = (ROOT / "deploy" / name).read_text()
        [command] = [line for line in text.splitlines() if re.match(r"CMD|\s*command: \[serve|ExecStart", line)]
        options = re.findall(r"--[a-z-]+", command)
        assert {"--users", "--runs", "--bases"} <= set(options)
        assert [option for option in options if option not in told] == []
