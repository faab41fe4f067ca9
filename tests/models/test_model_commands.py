"""Models from the command line: ask with a model, a budget, an estimate, a batch; look at models and at traces."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from chat_server import serving
from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method
from clew.answering.roles.choose import ModelChooser
from clew.answering.roles.score import ModelScorer
from clew.cli import main
from clew.core.roles import Choice, Claim
from clew.core.trace import span
from clew.core.types import Answer, Candidate
from clew.models.batch_runner import read_lines
from clew.store.building import build
from conftest import tables


@dataclass(frozen=True)
class Judge(Method):
    """Lets the model choose a type and then score every node of it: what the first round says decides the second."""

    name = "judge"

    def answer(self, question, tools):
        kb, model = tools.kb, tools.required_model("judge")
        types = kb.schema.type_names
        with span("choose a type"):
            [chosen] = ModelChooser(model).choose([Choice(question, types, kind="type")])
        refs = kb.refs(kb.nodes(types[chosen.kept[0]]).array)
        scores = ModelScorer(model).score([Claim(question, ref.name, kb.node(ref.id).text) for ref in refs])
        found = [Candidate(ref, score or 0.0) for ref, score in zip(refs, scores, strict=True)]
        return Answer(question, tuple(sorted(found, key=lambda c: (-c.score, c.node.id))))


RULES = [
    {"contains": "Candidate: FBN1", "reply": {"score": 0.9}},
    {"contains": "Candidate: Polydactyly", "reply": "I would say 0.8"},
    {"contains": "Candidate: Arachnodactyly", "reply": "no idea"},
    {"contains": "Candidate:", "reply": {"score": 0.1}},
    {"contains": "which gene", "reply": {"best": [2]}},
    {"contains": "extra fingers", "reply": {"best": [3]}},
    {"reply": {"best": [1]}},
]


@pytest.fixture(autouse=True)
def method(monkeypatch, tmp_path):
    monkeypatch.setitem(catalog.METHODS, "judge", Judge)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CLEW_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def base(tmp_path):
    build(tables(), tmp_path / "tiny.kb")
    return tmp_path / "tiny.kb"


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.jsonl"
    file.write_text("".join(json.dumps(rule) + "\n" for rule in RULES))
    return f"scripted:{file}"


@pytest.fixture
def clew(monkeypatch, capsys):
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_ask_with_a_model_and_see_its_trace(clew, base, script, tmp_path):
    file = tmp_path / "run.jsonl"
    ask = ("ask", base, "which gene encodes fibrillin?", "-m", "judge", "--model", script, "--json")
    code, plain, _ = clew(*ask)
    assert code == 0
    code, traced, _ = clew(*ask, "--trace", file)
    first, second = (json.loads(text) for text in (plain, traced))
    assert first["answers"][0]["name"] == "FBN1"
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    code, tree, _ = clew("trace", file)
    assert code == 0
    for shown in ("choose a type", "score", "2 calls", "tokens", "$0.0000"):
        assert shown in tree
    spans = tmp_path / "otlp.json"
    code, _, _ = clew("trace", file, "--otel", spans)
    exported = json.loads(spans.read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    parents = {one["spanId"] for one in exported}
    assert all(one["parentSpanId"] in parents for one in exported if one["parentSpanId"])
    assert sum(one["name"].startswith("chat ") for one in exported) == 3


def test_otlp_is_what_the_protocol_says(clew, base, script, tmp_path):
    proto = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2", reason="opentelemetry-proto is not installed")
    from google.protobuf.json_format import ParseDict

    file = tmp_path / "run.jsonl"
    clew("ask", base, "which gene encodes fibrillin?", "-m", "judge", "--model", script, "--trace", file)
    _, exported, _ = clew("trace", file, "--json")
    parsed = ParseDict(json.loads(exported), proto.TracesData())
    assert parsed.resource_spans[0].scope_spans[0].spans[0].name == "choose a type"


def test_a_file_that_is_no_trace_is_refused(clew, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"kind": "span"}\n')
    code, _, message = clew("trace", tmp_path / "x.jsonl")
    assert code == 2
    assert "line 1" in message


def test_a_budget_cuts_an_answer_short_and_the_answer_says_so(clew, base, script):
    ask = ("ask", base, "which gene encodes fibrillin?", "-m", "judge", "--model", script, "--json")
    code, out, _ = clew(*ask, "--max-calls", "2")
    assert code == 0
    answer = json.loads(out)
    assert any("cut short: the budget of 2 calls" in note for note in answer["notes"])
    assert answer["fallbacks"][0]["step"] == "score"


def test_an_estimate_spends_nothing(clew, base):
    with serving() as server:
        ask = ("ask", base, "which gene encodes fibrillin?", "-m", "judge", "--model", f"{server.url}#m")
        code, out, _ = clew(*ask, "--estimate", "--json")
        assert code == 0
        assert json.loads(out)["calls"] >= 2
        assert server.bodies == []
        _, words, _ = clew(*ask, "--estimate")
        assert "model calls" in words


def test_models_are_listed_and_probed(clew, monkeypatch, tmp_path):
    with serving() as server:
        (tmp_path / "config.toml").write_text(
            f'[models.fast]\nspec = "{server.url}#qwen"\n[models.gone]\nspec = "gguf:/nowhere.gguf"\n'
            f'[models.other]\nspec = "{server.url}#nobody"\n'
        )
        code, out, _ = clew("models", "--json")
        assert code == 0
        ready = {one["name"]: one["ready"] for one in json.loads(out)}
        assert ready == {"fast": True, "gone": False, "other": False}
        monkeypatch.setenv("CLEW_MODEL_KEY", "do-not-show")
        _, out, _ = clew("models", f"{server.url}#qwen")
        assert "with a key" in out
        assert "do-not-show" not in out
        assert server.bodies == []


def questions(folder: Path, count: int) -> Path:
    asked = [("which gene is it", ["FBN1"]), ("who has extra fingers", ["P1"]), ("what is it", ["BBS"])]
    file = folder / "own.jsonl"
    lines = [{"question": f"{n} {asked[n % 3][0]}", "answers": asked[n % 3][1]} for n in range(count)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_an_evaluation_by_batch_interrupted_between_rounds_ends_as_a_direct_one(clew, base, script, tmp_path):
    file, folder = questions(tmp_path, 102), tmp_path / "batch"
    common = ("eval", "-q", file, "--kb", base, "-m", "judge", "--json")
    code, direct, _ = clew(*common, "--model", script)
    assert code == 0
    rounds, waited = 0, []
    while True:
        code, batched, message = clew(*common, "--model", f"batch:{folder}", "--out", tmp_path / "runs")
        if code == 0:
            break
        assert "questions wait" in message
        waited.append(json.loads(clew("batch", "status", folder, "--json")[1])["waiting"])
        clew("batch", "run", folder, "--model", script)
        if rounds in (0, 2):  # the service was interrupted: half of the replies are lost, one of them in the middle
            replies = (folder / "replies.jsonl").read_bytes()
            (folder / "replies.jsonl").write_bytes(replies[: len(replies) // 2])
        rounds += 1
        assert rounds < 12
    assert waited[0] == 102
    assert max(waited) <= 102 * 3
    one, other = (json.loads(text)["runs"][0] for text in (direct, batched))
    for name in ("n", "metrics", "fallbacks", "tokens"):
        assert one[name] == other[name], name
    asked = [line["custom_id"] for line in read_lines(folder / "replies.jsonl")]
    assert len(asked) == len(set(asked))


def test_a_batch_is_answered_by_any_model_and_a_failure_is_asked_again(clew, base, tmp_path):
    folder = tmp_path / "batch"
    ask = ("ask", base, "which gene encodes fibrillin?", "-m", "judge", "--model", f"batch:{folder}")
    code, _, message = clew(*ask)
    assert code == 1
    assert "1 of 1 requests wait" in message

    def reply(body) -> str:
        return '{"best": [2]}' if "best" in body["messages"][-1]["content"] else '{"score": 0.5}'

    def fail(handler, _) -> None:
        handler.send(400, b"not today")

    with serving(reply, misbehave=[fail]) as server:
        model = ("--model", f"{server.url}#m", "--json")
        assert json.loads(clew("batch", "run", folder, *model)[1]) == {"added": 0, "waiting": 1}
        assert json.loads(clew("batch", "run", folder, *model)[1]) == {"added": 1, "waiting": 0}
        assert clew(*ask)[0] == 1
        assert json.loads(clew("batch", "run", folder, *model)[1])["added"] == 2
    assert clew(*ask)[0] == 0
    code, _, message = clew("batch", "run", tmp_path, "--model", "none")
    assert (code, "requests.jsonl" in message) == (2, True)
