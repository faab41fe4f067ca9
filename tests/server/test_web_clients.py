"""Other people's clients talk to a real server: OpenAI's, MCP's, schemathesis, and our own."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from clew.server import mcp_resources
from clew.server.mcp import TOOLS
from clew.server.settings import ClientLimits, ServerSettings, named_bases
from clew.store.building import build
from conftest import ROOT, tables
from prompts_sent import matches_golden
from repeats import repeats
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
    settings = ServerSettings(named_bases([tiny]), {"papers": papers}, limits=ClientLimits(per_minute=1_000_000))
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
    assert {tool.name for tool in listed.tools} == TOOLS.keys()
    found = await client.call_tool("search", {"text": "marfan sydrome", "base": "tiny"})
    assert "MFS" in found.content[0].text
    answer = await client.call_tool("ask", {"question": QUESTION, "method": "bm25", "base": "tiny"})
    assert "[1]" in answer.content[0].text
    shown = await client.call_tool("subgraph", {"entities": ["BBS2", "P1"], "base": "tiny"})
    assert "Polydactyly" in shown.content[0].text
    assert "Polydactyly" in (await client.call_tool("show", {"key": "BBS", "base": "tiny"})).content[0].text
    wrong = await client.call_tool("show", {"key": "nobody has this name", "base": "tiny"})
    assert wrong.is_error
    for tool in listed.tools:  # with it the client checks what the calls above returned
        assert tool.output_schema["type"] == "object", tool.name


async def read_resources(client, mcp) -> None:
    assert "clew://bases/tiny" in [str(one.uri) for one in (await client.list_resources()).resources]
    (schema,) = (await client.read_resource("clew://bases/tiny")).contents
    assert "disease -> has_phenotype -> phenotype" in schema.text
    (template,) = (await client.list_resource_templates()).resource_templates
    address = template.uri_template.replace("{base}", "tiny").replace("{key}", "Marfan%20syndrome")
    (node,) = (await client.read_resource(address)).contents
    assert "A disorder of connective tissue." in node.text
    for nowhere in ("clew://bases/secret", "clew://bases/tiny/nodes/nobody", "file:///etc/passwd"):
        with pytest.raises(mcp.MCPError, match=r"no (resource|node)"):
            await client.read_resource(nowhere)


async def use_prompts(client, mcp) -> None:
    needed = {"answer": "question", "check": "claim", "connect": "entities"}
    for prompt in (await client.list_prompts()).prompts:
        name = needed.pop(prompt.name)
        assert [one.name for one in prompt.arguments if one.required] == [name]
        (message,) = (await client.get_prompt(prompt.name, {name: "$5 of Alpha", "base": "tiny"})).messages
        assert (message.role, "$5 of Alpha" in message.content.text) == ("user", True)
        assert "the knowledge base tiny" in message.content.text
        with pytest.raises(mcp.MCPError, match=f"requires {name}"):
            await client.get_prompt(prompt.name, {})
        with pytest.raises(mcp.MCPError, match=r"name one of the bases: .*tiny"):
            await client.get_prompt(prompt.name, {name: "Alpha", "base": "secret"})
    assert not needed


def test_every_tool_of_mcp_is_in_the_documentation():
    [row] = re.findall(r"^\| tools \|.*", (ROOT / "docs" / "guides" / "web.md").read_text("utf-8"), re.MULTILINE)
    missing = TOOLS.keys() - re.findall(r"`(\w+)`", row)
    assert not missing, "the row `tools` of docs/guides/web.md describes each tool"


def test_an_mcp_client_uses_the_tools_over_http(server):
    mcp = pytest.importorskip("mcp")

    async def talk() -> None:
        async with mcp.Client(f"{server}/mcp") as client:
            await use_tools(client)
            await read_resources(client, mcp)
            await use_prompts(client, mcp)

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
            await read_resources(client, mcp)
            await use_prompts(client, mcp)

    asyncio.run(talk())


@pytest.mark.long
def test_schemathesis_finds_no_way_to_break_the_server(server):
    schemathesis = pytest.importorskip("schemathesis")
    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    for operation in schema.get_all_operations():
        run_cases(operation.ok().as_strategy(), server)


def run_cases(strategy, server) -> None:
    from hypothesis import HealthCheck, Phase, given, settings

    @settings(
        max_examples=repeats(8, 25),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def check(case) -> None:
        reply = case.call(base_url=server, timeout=120)
        assert reply.status_code < 500, f"{case.method} {case.path}: {reply.status_code} {reply.text[:500]}"

    check()


@pytest.mark.parametrize("name", mcp_resources.PROMPTS)
def test_what_an_agent_is_asked_by_a_prompt(name):
    needed = mcp_resources.PROMPTS[name][1]
    told = mcp_resources.prompt({"films": None}, {"name": name, "arguments": {needed: "Who directed Heat?"}})
    (message,) = told["messages"]
    assert matches_golden(f"web/{name}", [f"[{message['role']}]\n{message['content']['text']}\n"])
