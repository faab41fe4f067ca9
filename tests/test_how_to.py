"""The commands of docs/how_to run as they stand, over the files that the pages show and servers on loopback.

Addresses in the pages become those of a chat server, PostgreSQL and Oxigraph; `# → text` says what a command prints.
Lines of other programs (pip, ollama, vllm …) are not run. The Python of the pages runs in test_documentation.py.
"""

import asyncio
import json
import re
import shlex
import shutil
import sys
from functools import reduce

import pytest

from chat_server import serving as serving_chat
from clew.server.mcp import TOOLS
from conftest import ROOT
from sparql_server import serving as serving_triples
from test_documentation import prepared  # noqa: F401 - a fixture

PAGES = ROOT / "docs" / "how_to"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = "# → "
WIKIDATA = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wikibase: <http://wikiba.se/ontology#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wd:Q1 rdfs:label "Casablanca"@en ; wdt:P57 wd:Q2 . wd:Q2 rdfs:label "Michael Curtiz"@en .
wd:P57 rdfs:label "director"@en ; wikibase:directClaim wdt:P57 ; wikibase:propertyType wikibase:WikibaseItem .
"""
DUMP = [
    {"type": "property", "id": "P57", "datatype": "wikibase-item", "labels": {"en": {"value": "director"}}},
    {"type": "item", "id": "Q1", "labels": {"en": {"value": "Casablanca"}}, "claims": {}},
]  # fmt: skip


@pytest.fixture
def follow(run, prepared, tmp_path, monkeypatch):  # noqa: F811 - the fixture
    """Follows a page: writes the files that it shows, runs its commands; gives back how many."""
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))

    def follow(page: str, **instead: str) -> int:
        commands = []
        for language, title, held in BLOCK.findall((PAGES / page).read_text("utf-8")):
            if title:
                (folder / title).write_text(held, "utf-8")
            commands += [line for line in held.splitlines() if language == "sh" and re.match(r"(\w+=\S+ )?clew ", line)]
        for command in commands:
            local = reduce(lambda said, there: said.replace(ADDRESSES[there], instead[there]), instead, command)
            line, _, printed = local.partition(PRINTED)
            words = shlex.split(line, comments=False)
            words = words[: words.index("#")] if "#" in words else words
            while words[0] != "clew":
                monkeypatch.setenv(*words.pop(0).split("=", 1))
            code, out, err = run(*words[1:])
            assert code == 0, f"{page}: {command}\n{out}{err}"
            assert printed in out, f"{page}: {command}\n{out}"
        return len(commands)

    return follow


ADDRESSES = {
    "llama_cpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "litellm": "http://127.0.0.1:4000/v1",
    "postgresql_driver": "postgresql+psycopg://anna@db.example.org/knowledge",
    "postgresql": "postgresql://anna@db.example.org/knowledge",
    "wikidata": "https://query.wikidata.org/sparql",
}


def test_a_model_on_each_kind_of_server_is_asked(follow, monkeypatch):
    with serving_chat() as chat:
        names = ["qwen3", "qwen", "Qwen/Qwen3-8B", "claims"]
        chat.pages["/v1/models"] = {"data": [{"id": name} for name in names]}
        monkeypatch.setenv("OLLAMA_HOST", chat.url.removesuffix("/v1"))
        assert follow("model_servers.md", **dict.fromkeys(("llama_cpp", "vllm", "litellm"), chat.url)) == 6
    assert {body["model"] for body in chat.bodies} == set(names)
    keys = {
        body["model"]: headers.get("Authorization", "") for body, headers in zip(chat.bodies, chat.headers, strict=True)
    }
    assert keys["Qwen/Qwen3-8B"].endswith("secret")
    assert keys["claims"].endswith("sk-1234")
    assert "secret" not in keys["qwen3"] + keys["qwen"]


def test_an_export_of_neo4j_is_built_and_asked(follow):
    assert follow("neo4j.md") == 3


def test_wikidata_is_asked_where_it_is_and_read_from_a_dump(follow, tmp_path):
    (tmp_path / "wikidata.ttl").write_text(WIKIDATA)
    (tmp_path / "work" / "films.json").write_text("".join(json.dumps(line) + "\n" for line in DUMP))
    with serving_triples(tmp_path / "wikidata.ttl") as url:
        assert follow("wikidata.md", wikidata=url) == 2


def test_postgresql_holds_a_base_and_is_a_source(follow, postgres):
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'clew-kb[sql]'")
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute(
            "CREATE SCHEMA IF NOT EXISTS public; CREATE TABLE public.customer (id int PRIMARY KEY, name text)"
        )
        database.execute("INSERT INTO public.customer VALUES (1, 'Anna'), (2, 'Ben')")
        try:
            driver = postgres.replace("postgresql://", "postgresql+psycopg://", 1)
            assert follow("postgresql.md", postgresql_driver=driver, postgresql=postgres) == 3
        finally:
            database.execute("DROP TABLE public.customer")


def test_an_editor_starts_clew_as_the_page_says(follow, tmp_path):
    mcp = pytest.importorskip("mcp")
    follow("editor.md")
    server = json.loads((tmp_path / "work" / ".mcp.json").read_text("utf-8"))["mcpServers"]["medicine"]
    assert server["command"] == "clew"
    start = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "clew", *server["args"]],
        env={"PYTHONPATH": str(ROOT / "src")},
        cwd=tmp_path / "work",
    )

    async def tools() -> set[str]:
        with (tmp_path / "said").open("w") as said:
            started = mcp.stdio_client(start, errlog=said)
            async with started as (reading, writing), mcp.ClientSession(reading, writing) as client:
                await client.initialize()
                return {tool.name for tool in (await client.list_tools()).tools}

    assert asyncio.run(tools()) == TOOLS.keys()


def test_every_page_is_followed_or_is_python_alone():
    followed = set(re.findall(r"follow\(\"(\w+\.md)\"", (ROOT / "tests" / "test_how_to.py").read_text("utf-8")))
    python = {page.name for page in PAGES.glob("*.md") if "```python" in page.read_text("utf-8")}
    assert {page.name for page in PAGES.glob("*.md")} == followed | python
