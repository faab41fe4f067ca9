"""Batch mode: rounds of requests and replies in a folder, and what a run would cost."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from clew.core.errors import PendingError
from clew.models import batch_runner
from clew.models.batch import BatchFolder
from clew.models.opening import open_estimating, open_model
from clew.models.prices import EstimatingModel, Price, example
from clew.models.protocol import Completion, Message, Request
from clew.models.reply_store import ReplyStore
from clew.models.settings import Settings

SCHEMA = {
    "type": "object",
    "properties": {
        "relation": {"enum": ["directed_by", "written_by"]},
        "names": {"type": "array", "items": {"type": "string"}},
        "score": {"type": "number"},
    },
    "required": ["relation", "names", "score"],
    "additionalProperties": False,
}


def request(text: object, **options) -> Request:
    return Request((Message("user", str(text)),), **options)


def answer_all(folder: Path, reply=lambda body: "echo " + body["messages"][-1]["content"]) -> int:
    """What a batch service does with a folder."""
    lines = batch_runner.waiting(folder)
    for line in lines:
        done = batch_runner.ModelReply(reply(line["body"]), 10, 5, False, 0.0)
        batch_runner.append_lines(
            folder / "replies.jsonl", [batch_runner.reply_line(line["custom_id"], done, "echo-model")]
        )
    return len(lines)


def two_rounds(model, name: str) -> str:
    [first] = model.complete([request(f"first {name}")])
    [second] = model.complete([request(f"second, after {first.text}")])
    return second.text


def test_rounds_go_on_where_they_were_and_nothing_is_asked_twice(tmp_path):
    asked = []
    for _ in range(3):
        model = BatchFolder(tmp_path)  # a new process each round
        results = []
        for name in "abc":
            with suppress(PendingError):
                results.append(two_rounds(model, name))
        asked.append(answer_all(tmp_path))
    assert asked == [3, 3, 0]
    assert results == [f"echo second, after echo first {name}" for name in "abc"]
    assert batch_runner.waiting(tmp_path) == []


def test_all_missing_requests_of_a_call_wait_together_each_once(tmp_path):
    model = BatchFolder(tmp_path, "gpt-4o-mini")
    for _ in range(2):
        with pytest.raises(PendingError, match="3 of 4"):
            model.complete([request(n) for n in (1, 2, 2, 3)])
    lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert len(lines) == len({line["custom_id"] for line in lines}) == 3
    assert lines[0].keys() == {"custom_id", "method", "url", "body"}
    assert (lines[0]["url"], lines[0]["body"]["model"]) == ("/v1/chat/completions", "gpt-4o-mini")


def test_a_failed_reply_is_a_completion_with_an_error_and_spoils_no_other(tmp_path):
    with pytest.raises(PendingError):
        BatchFolder(tmp_path).complete([request(1), request(2)])
    first, second = batch_runner.waiting(tmp_path)
    lines = [
        batch_runner.reply_line(first["custom_id"], "no luck", "m"),
        batch_runner.reply_line(second["custom_id"], batch_runner.ModelReply("fine", 1, 1, False, 0.0), "m"),
    ]
    batch_runner.append_lines(tmp_path / "replies.jsonl", lines)
    failed, fine = BatchFolder(tmp_path).complete([request(1), request(2)])
    assert "no luck" in (failed.error or "")
    assert fine.text == "fine"


def test_half_a_line_of_a_killed_runner_is_asked_again(tmp_path):
    with pytest.raises(PendingError):
        BatchFolder(tmp_path).complete([request(1), request(2)])
    answer_all(tmp_path)
    replies = tmp_path / "replies.jsonl"
    replies.write_bytes(replies.read_bytes()[:-30])
    with pytest.raises(PendingError, match="1 of 2"):
        BatchFolder(tmp_path).complete([request(1), request(2)])
    assert answer_all(tmp_path) == 1
    assert [done.text for done in BatchFolder(tmp_path).complete([request(1), request(2)])] == ["echo 1", "echo 2"]


def test_replies_that_come_during_a_run_are_seen(tmp_path):
    model = BatchFolder(tmp_path)
    with pytest.raises(PendingError):
        model.complete([request(1)])
    answer_all(tmp_path)
    assert model.complete([request(1)])[0].text == "echo 1"


def test_a_batch_is_half_price(tmp_path):
    settings = Settings.load({"CLEW_CONFIG": str(tmp_path / "none"), "CLEW_CACHE": str(tmp_path)})
    model = open_model(f"batch:{tmp_path / 'b'}#gpt-4o-mini", settings=settings)
    assert model is not None
    with pytest.raises(PendingError):
        model.complete([request(1)])
    answer_all(tmp_path / "b")
    [done] = model.complete([request(1)])
    assert done.usage.dollars == pytest.approx((10 * 0.15 + 5 * 0.60) / 1e6 / 2)


def test_the_runner_stands_alone(tmp_path):
    alone = tmp_path / "runner.py"
    alone.write_bytes(Path(batch_runner.__file__).read_bytes())
    (tmp_path / "requests.jsonl").write_text("")
    command = [sys.executable, "-I", str(alone), str(tmp_path), "--model", "hf:nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "0 replies added\n"
    assert not any(name.startswith("clew") for name in batch_runner.__dict__ if name != "__name__")
    assert "import clew" not in alone.read_text()
    assert "from clew" not in alone.read_text()


def test_an_estimate_counts_each_request_once_and_pays_nothing(tmp_path):
    store = ReplyStore(tmp_path / "replies.sqlite")
    model = EstimatingModel("m", Price(input=1.0, output=2.0), store=store)
    asked = [request(n, schema=SCHEMA) for n in (1, 2, 1)]
    replies = [json.loads(done.text) for done in model.complete(asked)]
    assert replies[0]["relation"] == "directed_by"
    estimate = model.estimate()
    assert estimate.calls == 2
    assert estimate.dollars == pytest.approx((estimate.prompt_tokens + 2 * estimate.completion_tokens) / 1e6)
    assert len(store) == 0


def test_an_estimate_uses_what_the_cache_knows(tmp_path):
    from clew.models.reply_store import digest

    settings = Settings.load({"CLEW_CONFIG": str(tmp_path / "none"), "CLEW_CACHE": str(tmp_path)})
    store = ReplyStore(tmp_path / "replies.sqlite")
    name = open_estimating("openai:gpt-4o-mini", settings=settings).name
    store.put(digest(request(1), name), Completion("known"))
    model = open_estimating("openai:gpt-4o-mini", settings=settings)
    assert [done.text == "known" for done in model.complete([request(1), request(2)])] == [True, False]
    assert (model.estimate().calls, model.estimate().cached) == (2, 1)
    assert "2 model calls, 1 of them known already" in model.estimate().in_words()


def test_examples_follow_their_schema():
    assert example(SCHEMA).keys() == {"relation", "names", "score"}
    assert example({"anyOf": [{"const": 3}, {"type": "null"}]}) == 3
    assert example({"type": ["integer", "null"]}) == 1
