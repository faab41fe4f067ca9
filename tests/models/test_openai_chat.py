"""The HTTP adapter against a real server on loopback that misbehaves on demand."""

import json

import pytest

from chat_server import drips, drips_headers, drops_the_connection, is_silent, raw, says, serving, status, stops_halfway
from clew.models.chat_replies import read_chat_reply
from clew.models.openai_chat import OpenAIChat
from clew.models.prices import Price
from clew.models.protocol import Message, Request
from clew.models.settings import NO_KEY, Secret
from clew.models.wrappers import Retrying

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


def request(text: str = "hello", **options) -> Request:
    return Request((Message("user", text),), **options)


def test_a_reply_carries_its_text_tokens_and_price():
    with serving() as server:
        model = OpenAIChat(server.url, "m", price=Price(input=1.0, output=2.0))
        [done] = model.complete([request(stop=("END",))])
    assert (done.text, done.error) == ("fine", None)
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (100, 10)
    assert done.usage.dollars == pytest.approx(120e-6)
    assert server.bodies[0]["stop"] == ["END"]
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (status(429), "429"),
        (status(500, b"<html>oops"), "500"),
        (status(503, b""), "503"),
        (raw(b'{"choices": [{"mess'), "not a chat completion"),
        (raw(b""), "not a chat completion"),
        (raw(b'{"choices": []}'), "not a chat completion"),
        (raw(b'{"choices": [{"message": {"content": 7}}]}'), "not a chat completion"),
        (raw(b"\xff\xfe not even text"), "not a chat completion"),
        (raw(b"<html>Welcome to the hotel"), "an HTML page"),
        (raw(b'{"error": {"message": "overloaded", "code": 529}}'), "overloaded (529)"),
        (drops_the_connection, "127.0.0.1"),
        (stops_halfway, "127.0.0.1"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_fails_for_the_moment_is_asked_again(behaviour, words):
    with serving(misbehave=[behaviour, behaviour]) as server:
        bare = OpenAIChat(server.url, "m", seconds=5)
        [failed] = bare.complete([request()])
        assert failed.error is not None
        assert words in failed.error
        assert failed.retry_after is not None
        [done] = Retrying(bare, first_pause=0.01).complete([request()])
        assert done.text == "fine"
        assert len(server.bodies) == 3


@pytest.mark.parametrize("behaviour", [is_silent(5), drips(0.1), drips_headers(0.1)], ids=["silent", "slow", "head"])
def test_what_takes_too_long_is_an_outage_and_not_asked_again(behaviour):
    with serving(misbehave=[behaviour] * 3) as server:
        [failed] = Retrying(OpenAIChat(server.url, "m", seconds=1)).complete([request()])
        assert failed.failure == "outage"
        assert "no reply within 1 seconds" in (failed.error or "")
        assert len(server.bodies) == 1


def test_a_server_that_is_not_there_is_an_outage():
    [failed] = Retrying(OpenAIChat("http://127.0.0.1:9/v1", "m")).complete([request()])
    assert (failed.failure, failed.retry_after) == ("outage", None)
    assert "refused" in (failed.error or "")


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_a_wrong_request_is_not_asked_again(code):
    with serving(misbehave=[status(code)] * 5) as server:
        [failed] = Retrying(OpenAIChat(server.url, "m"), first_pause=0.01).complete([request()])
        assert str(code) in (failed.error or "")
        assert failed.retry_after is None
        assert len(server.bodies) == 1


def test_the_server_decides_how_long_to_wait():
    pauses: list[float] = []
    answers = [status(429, Retry_After="7"), status(503, Retry_After="soon")]
    with serving(misbehave=answers) as server:
        model = Retrying(OpenAIChat(server.url, "m"), sleep=pauses.append, jitter=lambda: 1.0)
        [done] = model.complete([request()])
    assert done.text == "fine"
    assert pauses == [7.0, 1.0]


def test_nobody_waits_longer_than_the_budget_or_half_a_minute():
    pauses: list[float] = []
    for asked_for, left in (("31", 1e9), ("99999", 1e9), ("inf", 1e9), ("5", 4.0)):
        with serving(misbehave=[status(429, Retry_After=asked_for)]) as server:
            model = Retrying(OpenAIChat(server.url, "m"), sleep=pauses.append, seconds_left=lambda left=left: left)
            [failed] = model.complete([request()])
        assert "asks to wait" in (failed.error or "")
    assert pauses == []


def test_a_wrong_key_names_its_variable():
    for key, words in ((NO_KEY, "requires a key: set CLEW_MODEL_KEY"), (Secret("x", "CLEW_MODEL_KEY"), "rejects")):
        with serving(misbehave=[status(401)]) as server:
            [failed] = OpenAIChat(server.url, "m", key=key).complete([request()])
        assert failed.failure == "access"
        assert words in (failed.error or "")
        assert "CLEW_MODEL_KEY" in (failed.error or "")


def test_a_wrong_model_is_named_beside_those_there_are():
    body = b'{"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}'
    for code in (404, 400):
        with serving(misbehave=[status(code, body)]) as server:
            [failed] = OpenAIChat(server.url, "m").complete([request()])
        assert failed.failure == "access"
        assert "has no model 'm'; it has: qwen, other" in (failed.error or "")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": '<think>7 is odd…</think>\n\n{"a": 1}'}, '{"a": 1}'),
        ({"content": "7 is odd…</think>yes"}, "yes"),
        ({"content": "<think>one</think>a <THINK>two</THINK>b"}, "a b"),
        ({"content": "yes", "reasoning_content": "7 is odd…"}, "yes"),
        ({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "yes"}]}, "yes"),
    ],
)
def test_thoughts_are_no_part_of_a_reply(message, text):
    done = read_chat_reply(json.dumps({"choices": [{"message": message}]}))
    assert (done.text, done.error) == (text, None)


@pytest.mark.parametrize("message", [{"content": "<think>hmm"}, {"content": None, "reasoning_content": "hmm"}])
def test_a_model_that_thinks_is_given_room_and_asked_again(message):
    cut = json.dumps({"choices": [{"message": message, "finish_reason": "length"}]}).encode()
    with serving(misbehave=[raw(cut)]) as server:
        model = OpenAIChat(server.url, "m")
        [done] = model.complete([request(max_tokens=24)])
        assert done.text == "fine"
        model.complete([request("more", max_tokens=24)])
    limits = [body["max_tokens"] for body in server.bodies]
    assert limits[0] == 24
    assert limits[1] == limits[2] > 2000


def test_a_key_that_the_model_repeats_does_not_stay_in_its_reply():
    with serving(lambda _: "your key is sk-very-secret-123") as server:
        [done] = OpenAIChat(server.url, "m", key=Secret("sk-very-secret-123")).complete([request()])
    assert done.text == "your key is •••"


def test_a_reply_of_ten_megabytes_is_given_up_without_being_kept():
    with serving(misbehave=[says("x" * 10_000_000)]) as server:
        [failed] = OpenAIChat(server.url, "m").complete([request()])
        assert "longer than" in (failed.error or "")
        assert failed.retry_after is None


def test_one_failure_does_not_spoil_the_others():
    with serving(misbehave=[says("one"), status(400), says("three")]) as server:
        texts = [done.text for done in OpenAIChat(server.url, "m").complete([request(str(n)) for n in range(3)])]
    assert texts == ["one", "", "three"]


def test_a_server_without_json_schema_is_asked_in_words_from_then_on():
    def only_prompts(body):
        return json.dumps({"a": 1})

    refusal = b'{"error": {"message": "response_format is not supported"}}'
    refusals = [status(400, refusal), status(500, b"validation error: response_format"), status(422, refusal)]
    with serving(only_prompts, misbehave=refusals) as server:
        model = OpenAIChat(server.url, "m")
        first, second = model.complete([request(schema=SCHEMA), request("again", schema=SCHEMA)])
    assert first.text == second.text == '{"a": 1}'
    modes = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert modes == ["json_schema", "json_object", "json_object", None, None]
    assert server.bodies[1]["response_format"]["schema"] == SCHEMA
    assert "JSON schema" in server.bodies[-1]["messages"][-1]["content"]


def test_parameters_a_model_does_not_know_are_said_otherwise_or_left_out():
    refusals = [
        status(400, b"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        status(400, b"'temperature' does not support 0.0 with this model"),
        status(422, b"logprobs are not available"),
    ]
    with serving(misbehave=refusals) as server:
        [done] = OpenAIChat(server.url, "m").complete([request(top_logprobs=5)])
    assert done.text == "fine"
    last = server.bodies[-1]
    assert "max_completion_tokens" in last
    assert not {"max_tokens", "temperature", "logprobs", "top_logprobs"} & last.keys()


def test_logprobs_arrive_as_alternatives():
    reply = {
        "choices": [
            {
                "message": {"content": "yes"},
                "finish_reason": "length",
                "logprobs": {
                    "content": [
                        {
                            "token": "yes",
                            "logprob": -0.1,
                            "top_logprobs": [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -2.3}],
                        }
                    ]
                },
            }
        ]
    }
    with serving(misbehave=[raw(json.dumps(reply).encode())]) as server:
        [done] = OpenAIChat(server.url, "m").complete([request(top_logprobs=2)])
    assert done.logprobs == ({"yes": -0.1, "no": -2.3},)
    assert done.cut


def test_a_key_that_the_server_repeats_does_not_reach_the_error():
    key = "sk-very-secret-123"
    with serving(misbehave=[status(401, f"Incorrect API key provided: {key}".encode())]) as server:
        model = OpenAIChat(server.url, "m", key=Secret(key))
        [failed] = model.complete([request()])
        assert server.headers[0]["Authorization"] == f"Bearer {key}"
    assert "401" in (failed.error or "")
    assert key not in repr(failed) + repr(model)


def test_models_are_listed():
    with serving() as server:
        assert OpenAIChat(server.url, "m").models() == ["qwen", "other"]
