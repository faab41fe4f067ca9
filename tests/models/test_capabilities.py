"""What a model can do: told, tried out once, remembered; and the local servers it may run on."""

import json
import sys
from dataclasses import replace

import pytest

from chat_server import chat_body, raw, serving, status
from clew.cli import main
from clew.models.budget import Budget, Ledger
from clew.models.capabilities import KEPT_SECONDS, Memory
from clew.models.model_names import is_reasoning, size_of
from clew.models.opening import open_estimating, open_model
from clew.models.protocol import Capabilities, Message, Request
from clew.models.settings import Settings, addresses, base_url

ASKED = Request((Message("user", "hello"),), max_tokens=24)


@pytest.fixture(autouse=True)
def places(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CLEW_CONFIG", str(tmp_path / "config.toml"))
    for name in ("OLLAMA_HOST", "LMSTUDIO_HOST"):
        monkeypatch.setenv(name, "127.0.0.1:9")
    for name in ("OPENAI_API_KEY", "CLEW_MODEL_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen2.5-1.5b-instruct", "small"),
        ("qwen3:8b", "medium"),
        ("mixtral-8x7b", "large"),
        ("llama-3.3-70B-Instruct", "large"),
        ("qwen3-30b-a3b", "large"),
        ("gpt-4o-mini", "medium"),
        ("gpt-4.1", "large"),
        ("o3", "large"),
        ("my-model", "unknown"),
        ("phi-4-mini", "unknown"),
    ],
)
def test_the_name_says_the_size(name, size):
    assert size_of(name) == size


@pytest.mark.parametrize("name", ["o3-mini", "o1", "gpt-5-mini", "deepseek-r1:8b", "QwQ-32B", "gpt-oss:20b"])
def test_reasoning_models_are_known_by_name(name):
    assert is_reasoning(name)


@pytest.mark.parametrize("name", ["gpt-4o", "qwen2.5-7b", "llama3.1", "mistral-small", "phi-4"])
def test_other_models_are_not(name):
    assert not is_reasoning(name)


def obedient(body) -> bytes:
    """Keeps to the schema and gives log-probabilities."""
    text = '{"verdict": "yes"}' if "response_format" in body else "fine"
    reply = json.loads(chat_body(text))
    if body.get("logprobs"):
        reply["choices"][0]["logprobs"] = {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": []}]}
    return json.dumps(reply).encode()


def obeys(handler, body):
    handler.send(200, obedient(body))


def test_one_probe_finds_out_and_is_remembered():
    pages = {"/v1/models": {"data": [{"id": "qwen-7b", "max_model_len": 32768, "owned_by": "vllm"}]}}
    with serving(misbehave=[obeys], pages=pages) as server:
        model = open_model(f"{server.url}#qwen-7b")
        assert model.context_tokens == 32768
        assert server.bodies == []  # reading the context asks the model nothing
        expected = Capabilities(32768, json_schema=True, logprobs=True, reasoning=False, size="medium")
        assert model.capabilities == model.capabilities == expected
        assert len(server.bodies) == 1
        asked = len(server.gets)
        assert open_model(f"{server.url}#qwen-7b").capabilities == expected
        assert (len(server.bodies), len(server.gets)) == (1, asked)
        assert open_estimating(f"{server.url}#qwen-7b").capabilities == expected


def test_what_was_found_out_is_believed_for_a_week_and_a_broken_file_never(tmp_path):
    now = [1000.0]
    memory = Memory(tmp_path, clock=lambda: now[0])
    from clew.models.capabilities import Known

    memory.keep(Known(name="m@h", asked=1000.0, context_tokens=99))
    assert memory.recall("m@h").context_tokens == 99
    assert memory.recall("other@h") is None
    now[0] += KEPT_SECONDS + 1
    assert memory.recall("m@h") is None
    now[0] = 1000.0
    [file] = tmp_path.iterdir()
    file.write_text('{"context_tokens": "many"')
    assert memory.recall("m@h") is None


def test_a_server_that_refuses_or_ignores_a_schema_is_found_out():
    refusals = [status(400, b"response_format is not supported")] * 3 + [status(400, b"logprobs: unknown field")]
    with serving(misbehave=refusals) as server:
        found = open_model(f"{server.url}#qwen").capabilities
        assert (found.json_schema, found.logprobs) == (False, False)
        asked = len(server.bodies)
        demanding = replace(ASKED, schema={"type": "object"}, top_logprobs=2)
        open_model(f"{server.url}#qwen", cache=False).complete([demanding])
        assert len(server.bodies) == asked + 1  # what was learnt is remembered
        assert "logprobs" not in server.bodies[-1]
    with serving(lambda _: "Yes, 7 is a prime number.") as server:
        assert not open_model(f"{server.url}#qwen").capabilities.json_schema


def test_a_model_that_thinks_is_found_out_and_given_room():
    thinking = raw(chat_body('<think>7 is odd</think>{"verdict": "yes"}'))
    with serving(misbehave=[thinking]) as server:
        model = open_model(f"{server.url}#qwen")
        assert model.capabilities.reasoning
        assert model.capabilities.json_schema
        again = open_model(f"{server.url}#qwen", cache=False)
        assert again.context_tokens == 8192
        again.complete([ASKED])
        assert server.bodies[-1]["max_tokens"] == 24 + 4096


def test_a_dead_server_a_spent_budget_and_a_failed_probe_leave_the_cautious_values(tmp_path):
    assert open_model("http://127.0.0.1:9/v1#qwen").capabilities == Capabilities()
    assert not list((tmp_path / "cache").glob("models/*"))
    with serving() as server:
        ledger = Ledger(Budget(calls=0))
        assert open_model(f"{server.url}#qwen", ledger=ledger).capabilities == Capabilities()
        assert server.bodies == []
    with serving(misbehave=[status(500)] * 9) as server:
        model = open_model(f"{server.url}#qwen")
        assert model.capabilities == model.capabilities == Capabilities()


def test_batch_and_scripted_models_are_never_asked(tmp_path):
    folder = tmp_path / "batch"
    model = open_model(f"batch:{folder}#gpt-4o-mini")
    assert model.capabilities.size == "medium"
    assert not (folder / "requests.jsonl").exists()
    (tmp_path / "script.jsonl").write_text('{"reply": "x"}\n')
    assert open_model(f"scripted:{tmp_path / 'script.jsonl'}").capabilities == Capabilities()


OLLAMA = {
    "/v1/models": {
        "data": [{"id": name, "owned_by": "library"} for name in ("nomic-embed-text:latest", "qwen3:latest")]
    },
    "/api/ps": {"models": [{"model": "qwen3:latest", "context_length": 16384}]},
    "/api/tags": {"models": [{"model": "qwen3:latest", "details": {"parameter_size": "8.2B"}}]},
}
LMSTUDIO = {
    "/v1/models": {"data": [{"id": "gemma", "owned_by": "organization_owner"}]},
    "/api/v0/models": {"data": [{"id": "gemma", "state": "not-loaded", "max_context_length": 131072}]},
}
LLAMA_CPP = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_params": 1.5e9, "n_ctx_train": 131072}}]},
    "/props": {"default_generation_settings": {"n_ctx": 2048}},
}


def test_each_kind_of_server_says_how_long_its_context_is(monkeypatch):
    with serving(misbehave=[obeys], pages=OLLAMA) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1"))
        for spec in ("ollama:qwen3", "ollama:"):
            found = open_model(spec).capabilities
            assert (found.context_tokens, found.size) == (16384, "medium")
        assert open_model("ollama:").name.startswith("qwen3:latest@127.0.0.1")
    with serving(pages=LMSTUDIO) as server:
        monkeypatch.setenv("LMSTUDIO_HOST", server.url)
        assert open_model("lmstudio:gemma").context_tokens == 4096
    with serving(misbehave=[obeys], pages=LLAMA_CPP) as server:
        found = open_model(f"{server.url}#m").capabilities
        assert (found.context_tokens, found.size) == (2048, "small")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("box.local", "http://box.local:11434/v1"),
        ("http://box:1/", "http://box:1/v1"),
        ("https://models.example.org/ollama", "https://models.example.org:443/ollama/v1"),
        ("[::1]:5", "http://[::1]:5/v1"),
    ],
)
def test_ollamas_host_is_understood_as_ollama_understands_it(host, url):
    assert base_url(host, 11434) == url


def test_nothing_but_loopback_is_reached_unless_it_is_configured():
    assert addresses({}) == {"ollama": "http://127.0.0.1:11434/v1", "lmstudio": "http://127.0.0.1:1234/v1"}


def test_another_servers_key_does_not_go_to_ollama(monkeypatch):
    monkeypatch.setenv("CLEW_MODEL_KEY", "sk-of-another-server")
    with serving(pages=OLLAMA) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        open_model("ollama:qwen3").complete([ASKED])
        assert "Authorization" not in server.headers[0]


@pytest.fixture
def clew(monkeypatch, capsys):
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_models_that_run_here_are_listed(clew, monkeypatch):
    code, out, err = clew("models")
    assert (code, out) == (0, "")
    assert "start Ollama or LM Studio" in err
    with serving(misbehave=[obeys], pages=OLLAMA) as ollama, serving(pages=LMSTUDIO) as lmstudio:
        monkeypatch.setenv("OLLAMA_HOST", ollama.url)
        monkeypatch.setenv("LMSTUDIO_HOST", lmstudio.url)
        code, out, _ = clew("models", "--json")
        rows = {row["name"]: row for row in json.loads(out)}
        assert list(rows) == ["ollama:qwen3:latest", "lmstudio:gemma"]
        assert all(row["ready"] for row in rows.values())
        assert ollama.bodies == lmstudio.bodies == []
        code, out, _ = clew("models", "ollama:qwen3", "--try")
        assert "medium, 16,384 tokens, JSON schema, logprobs" in out
        assert len(ollama.bodies) == 1


def test_a_missing_key_is_named_by_clew_models(clew):
    code, out, _ = clew("models", "openai:gpt-4o-mini")
    assert code == 0
    assert "set OPENAI_API_KEY" in out


def test_a_wrong_number_of_seconds_is_refused():
    from clew.core.errors import InputError

    with pytest.raises(InputError, match="CLEW_MODEL_SECONDS"):
        Settings.load({"CLEW_MODEL_SECONDS": "soon"})
