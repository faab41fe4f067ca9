"""Other people's clients talk to a real server: OpenAI's, MCP's, schemathesis, and our own."""

import asyncio
import sys
from pathlib import Path

import pytest

from clew.building import build
from clew.web.settings import Limits, ServerSettings, named_bases
from conftest import tables
from web_server import running

QUESTION = "Which disease has extra fingers?"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "tiny.kb"
    build(tables(), folder)
    return folder


@pytest.fixture(scope="module")
def server(tiny, tmp_path_factory):
    papers = tmp_path_factory.mktemp("papers") / "papers"
    settings = ServerSettings(named_bases([tiny]), {"papers": papers}, limits=Limits(per_minute=1_000_000))
    with running(settings) as address:
        yield address


def test_the_openai_client_asks_a_base_like_a_model(server):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server}/v1", api_key="not-needed") as client:
        names = {model.id for model in client.models.list()}
        assert {"tiny", "tiny/bm25", "papers"} <= names
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
        reply = client.chat.completions.create(model="tiny/bm25", messages=messages)
        text = reply.choices[0].message.content
        assert "[1]" in text
        assert reply.choices[0].message.citations[0]["kind"] == "passage"
        assert reply.clew["answers"][0]["evidence"]
        with client.chat.completions.create(model="tiny/bm25", messages=messages, stream=True) as stream:
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
        assert "".join(pieces) == text
        with pytest.raises(openai.NotFoundError, match="no base"):
            client.chat.completions.create(model="gpt-4o", messages=messages)


async def use_tools(client) -> None:
    listed = await client.list_tools()
    assert {tool.name for tool in listed.tools} == {"ask", "find", "show", "neighbors", "subgraph"}
    found = await client.call_tool("find", {"text": "marfan sydrome", "base": "tiny"})
    assert "MFS" in found.content[0].text
    answer = await client.call_tool("ask", {"question": QUESTION, "method": "bm25", "base": "tiny"})
    assert "[1]" in answer.content[0].text
    shown = await client.call_tool("subgraph", {"entities": ["BBS2", "P1"], "base": "tiny"})
    assert "Polydactyly" in shown.content[0].text
    assert "Polydactyly" in (await client.call_tool("neighbors", {"key": "BBS", "base": "tiny"})).content[0].text
    wrong = await client.call_tool("show", {"key": "nobody has this name", "base": "tiny"})
    assert getattr(wrong, "isError", None) or getattr(wrong, "is_error", None)


def test_an_mcp_client_uses_the_tools_over_http(server):
    mcp = pytest.importorskip("mcp")

    async def talk() -> None:
        async with mcp.Client(f"{server}/mcp") as client:
            await use_tools(client)

    asyncio.run(talk())


def test_an_mcp_client_uses_the_tools_over_standard_input(tiny):
    mcp = pytest.importorskip("mcp")

    async def talk() -> None:
        start = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "clew", "mcp", str(tiny)],
            env={"PYTHONPATH": str(Path("src").resolve())},
        )
        async with mcp.stdio_client(start) as (reading, writing), mcp.ClientSession(reading, writing) as client:
            await client.initialize()
            await use_tools(client)

    asyncio.run(talk())


def test_schemathesis_finds_no_way_to_break_the_server(server):
    schemathesis = pytest.importorskip("schemathesis")
    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    for operation in schema.get_all_operations():
        run_cases(operation.ok().as_strategy(), server)


def run_cases(strategy, server) -> None:
    from hypothesis import HealthCheck, Phase, given, settings

    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def check(case) -> None:
        reply = case.call(base_url=server, timeout=30)
        assert reply.status_code < 500, f"{case.method} {case.path}: {reply.status_code} {reply.text[:500]}"

    check()
