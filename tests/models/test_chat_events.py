"""Replies in server-sent events: however the bytes are cut, and whatever the server does, the reply is the same."""

import json
import threading
import time
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_server import chat_body, chat_events, drips, is_silent, raw, sends, serving, status
from clew.core import trace
from clew.core.trace import Recorder, recording
from clew.models.budget import Budget, Ledger
from clew.models.chat_replies import EventReader, StreamedReply, read_chat_reply
from clew.models.openai_chat import ROOM_FOR_EVENTS, OpenAIChat
from clew.models.prices import Price
from clew.models.protocol import Completion, Message, Request
from clew.models.reply_store import ReplyStore
from clew.models.settings import Secret
from clew.models.wrappers import Budgeted, Cached, Limited, Retrying

ASKED = Request((Message("user", "hello"),))
TEXT = "Größe: 64 MB — “ausreichend” 😀 for 東京."


def told_events(content: bytes) -> list[str]:
    """The events of a whole body, by the standard's words, and the one that lacks its empty line."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    events, data = [], []
    for line in [*text.split("\n"), ""]:
        if not line and data:
            events.append("\n".join(data))
            data = []
        elif line == "data":
            data.append("")
        elif line.startswith("data:"):
            data.append(line[6:] if line[5:6] == " " else line[5:])
    return events


def cut(content: bytes, places: list[int]) -> list[bytes]:
    ends = sorted(place % (len(content) + 1) for place in places)
    return [content[begin:end] for begin, end in zip([0, *ends], [*ends, len(content)], strict=True)]


def read_events(pieces: list[bytes]) -> list[str]:
    reader = EventReader()
    events = [data for piece in pieces for data in reader.feed(piece)]
    return events + list(reader.feed(b"", last=True))


lines = st.sampled_from(["data: ", "data:", "data", "datax: ", ":", "event: ", "id: 7", "", " data: ", "\ufeffdata: "])
words = st.text(st.sampled_from("a: é😀{}\u2028\x85\x0b"), max_size=4).map(str.encode)
odd_bytes = st.one_of(words, st.sampled_from([b"\xf0\x9f", b"\xff", b"\x98\x80", b"\xef\xbb\xbf"]))
written_lines = st.tuples(lines.map(str.encode), odd_bytes, st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b""]))
bodies = st.lists(written_lines.map(b"".join), max_size=12).map(b"".join)


@given(bodies, st.lists(st.integers(0, 10_000), max_size=12))
def test_events_are_the_same_however_their_bytes_are_cut(content, places):
    assert read_events(cut(content, places)) == told_events(content)


@given(bodies)
def test_events_are_the_same_byte_by_byte(content):
    assert read_events(cut(content, list(range(len(content))))) == told_events(content)


def streamed(pieces: list[bytes], request: Request = ASKED) -> tuple[Completion, list[str]]:
    told: list[str] = []
    reply = StreamedReply(told.append)
    for piece in pieces:
        reply.hear(piece)
    reply.hear(b"", last=True)
    return reply.completion(request), told


texts = st.one_of(st.text(max_size=60), st.builds("<think>{}</think>{}".format, st.text(), st.text(max_size=30)))


@given(texts, st.sampled_from(["stop", "length"]), st.integers(1, 7), st.lists(st.integers(0, 10_000), max_size=9))
def test_a_reply_in_events_is_the_reply_in_one_piece(text, finish, step, places):
    whole = read_chat_reply(chat_body(text, finish))
    done, told = streamed(cut(b"".join(chat_events(text, finish, step)), places))
    assert done == whole
    assert told[-1] == done.text or "\ufffd" in done.text


def chunk(delta: object, **more: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, **more}]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    "message",
    [
        {"content": "yes", "reasoning_content": "hm"},
        {"content": "yes", "reasoning": "hm"},
        {"content": None, "refusal": "I must not"},
        {"content": "", "refusal": "I must not"},
        {"content": None, "reasoning_content": "hm"},
        {"content": [{"type": "text", "text": "in parts"}]},
        {"content": ""},
    ],
    ids=str,
)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_thoughts_refusals_and_parts_are_told_apart_as_in_one_piece(message, finish):
    usage = {"prompt_tokens": 5, "completion_tokens": 7}
    refusal_alone = message if message.get("refusal") is None else {**message, "content": None}
    whole = read_chat_reply({"choices": [{"message": refusal_alone, "finish_reason": finish}], "usage": usage})
    end = b"data:" + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    assert streamed([chunk(message), chunk({}, finish_reason=finish), end])[0] == whole


def test_only_the_first_choice_counts_and_what_else_a_server_says_is_passed_over():
    pieces = [
        b": keep-alive\n\n",
        b'data: {"choices": [], "prompt_filter_results": []}\n\n',
        b'event: ping\ndata: {"type": "ping"}\n\n',
        b'data: {"choices": [{"index": 1, "delta": {"content": "other"}}]}\n\n',
        chunk({"content": "mine"}),
        chunk(None, finish_reason="stop"),
        b"data: [DONE]\n\n",
        chunk({"content": " and what follows the end"}),
    ]
    assert streamed(pieces)[0].text == "mine"


def test_tokens_are_counted_where_the_server_does_not():
    done, _ = streamed([chunk({"content": "one two three", "reasoning": "four five"}), chunk({}, finish_reason="stop")])
    assert done.usage.prompt_tokens >= 1
    assert done.usage.completion_tokens >= 5


def listened(work, readable=lambda text: text):
    """What some work returns, and what was told meanwhile."""
    told: list[str] = []
    with recording(Recorder(on_text=told.append)), trace.showing(readable):
        return work(), told


def asked(server, request: Request = ASKED, **options) -> tuple[Completion, list[str]]:
    ([done], told) = listened(lambda: OpenAIChat(server.url, "m", **options).complete([request]))
    return done, told


def without_time(done: Completion) -> tuple:
    return done.text, done.error, done.cut, done.thought, done.usage.prompt_tokens, done.usage.completion_tokens


BODY = b"".join(chat_events(TEXT))


@pytest.mark.parametrize(
    "pieces",
    [
        chat_events(TEXT),
        [BODY],
        [bytes([byte]) for byte in BODY],
        [BODY.replace(b"data: ", b"data:").replace(b"\n", b"\r\n")],
        [b": hello\n\n", *(event + b": still here\n\n" for event in chat_events(TEXT))],
        [BODY.removesuffix(b"data: [DONE]\n\n")],
        [BODY.removesuffix(b"\n\n")],
        [b"\xef\xbb\xbf" + BODY],
    ],
    ids=["events", "one packet", "bytes", "no space, CRLF", "comments", "no [DONE]", "no line end", "BOM"],
)
def test_a_stream_gives_what_one_piece_gives_and_is_paid_alike(pieces):
    price = Price(input=1.0, output=2.0)
    with serving(lambda _: TEXT) as plain:
        [whole] = OpenAIChat(plain.url, "m", price=price).complete([ASKED])
    assert "stream" not in plain.bodies[0]
    with serving(misbehave=[sends(pieces, 0.0)]) as server:
        done, told = asked(server, price=price)
    assert without_time(done) == without_time(whole)
    assert done.usage.dollars == whole.usage.dollars
    assert told[-1] == TEXT
    assert all(TEXT.startswith(text) for text in told)
    assert (server.bodies[0]["stream"], server.bodies[0]["stream_options"]) == (True, {"include_usage": True})


def test_words_are_told_while_the_server_still_writes():
    """The server goes on only when the first half has been told."""
    seen = threading.Event()
    events = chat_events(TEXT)

    def pieces():
        yield b"".join(events[:8])
        assert seen.wait(250)
        yield b"".join(events[8:])

    told: list[str] = []

    def hear(text: str) -> None:
        told.append(text)
        seen.set()

    with (
        serving(misbehave=[sends(pieces())]) as server,
        recording(Recorder(on_text=hear)),
        trace.showing(lambda text: text),
    ):
        [done] = OpenAIChat(server.url, "m", seconds=20).complete([ASKED])
    assert done.text == TEXT
    assert 0 < len(told[0]) < len(TEXT)


def test_a_server_that_answers_in_one_piece_is_understood():
    with serving(lambda _: TEXT) as server:
        done, told = asked(server)
    assert server.bodies[0]["stream"] is True
    assert (done.text, told) == (TEXT, [])


def test_nothing_is_streamed_where_nobody_listens_or_what_is_asked_for_is_no_answer():
    with serving() as server:
        model = OpenAIChat(server.url, "m")
        with recording(Recorder()), trace.showing(pytest.fail):
            model.complete([ASKED])
        with recording(Recorder(on_text=pytest.fail)):
            model.complete([ASKED])
    assert ["stream" in body for body in server.bodies] == [False, False]


def test_alternatives_of_tokens_are_asked_for_in_one_piece():
    with serving() as server:
        asked(server, Request((Message("user", "yes or no?"),), top_logprobs=3))
    assert "stream" not in server.bodies[0]


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (b'{"error": {"message": "streaming is not supported for this model"}}', [True, None]),
        (b'{"error": {"message": "Unrecognized request argument supplied: stream"}}', [True, None]),
        (b'{"detail": "stream_options: extra fields not permitted"}', [True, True]),
    ],
    ids=["streaming", "stream", "stream_options"],
)
def test_what_a_server_refuses_of_streaming_is_left_out_from_then_on(said, sent):
    with serving(misbehave=[status(400, said)]) as server:
        model = OpenAIChat(server.url, "m")
        (done, again), _ = listened(lambda: model.complete([ASKED, ASKED]))
    assert done.text == again.text == "fine"
    assert [body.get("stream") for body in server.bodies] == [*sent, sent[-1]]
    assert ["stream_options" in body for body in server.bodies] == [True, False, False]


def test_an_error_upstream_is_not_taken_for_a_refusal_of_streaming():
    with serving(misbehave=[status(500, b"upstream connect error")]) as server:
        done, _ = asked(server)
    assert "upstream" in (done.error or "")
    assert len(server.bodies) == 1


HALF = b"".join(chat_events(TEXT)[:6])


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (sends([HALF]), "incomplete"),
        (sends([HALF[:-20]]), "not part of a chat completion"),
        (sends([HALF, b"data: {nonsense\n\n"]), "not part of a chat completion"),
        (sends([HALF, b"data: []\n\n"]), "not part of a chat completion"),
        (sends([HALF, b'data: {"error": {"message": "overloaded", "code": 529}}\n\n']), "overloaded (529)"),
        (sends([HALF, b'event: error\ndata: {"error": "out of memory"}\n\n']), "out of memory"),
        (sends([b"data: [DONE]\n\n"]), "not a chat completion"),
        (sends([]), "it is empty"),
        (sends([b"\x00\xff\xfe garbage \x01" * 50]), "not a chat completion"),
        (raw(b"<html>Welcome to the hotel"), "an HTML page"),
    ],
    ids=[
        "broken off",
        "in an event",
        "no JSON",
        "no object",
        "error",
        "event error",
        "empty",
        "nothing",
        "noise",
        "HTML",
    ],
)
def test_a_stream_that_fails_is_asked_again(behaviour, words):
    with serving(misbehave=[behaviour, behaviour]) as server:
        failed, _ = asked(server)
        assert words in (failed.error or "")
        assert failed.retry_after is not None
        ([done], _) = listened(lambda: Retrying(OpenAIChat(server.url, "m"), first_pause=0.01).complete([ASKED]))
        assert done.text == "fine"


def test_an_endless_reply_ends_at_the_deadline_and_nothing_is_told_after_it():
    def forever():
        yield from repeat(chunk({"content": "again and "}))

    with serving(misbehave=[sends(forever(), 0.01)]) as server:
        begun = time.perf_counter()
        done, told = asked(server, seconds=2)
        assert time.perf_counter() - begun < 20
        count = len(told)
        time.sleep(0.3)
    assert done.failure == "outage"
    assert "no reply within 2 seconds" in (done.error or "")
    assert len(told) == count > 0


@pytest.mark.parametrize("behaviour", [is_silent(0.8), drips(0.01)], ids=["silent", "slow in one piece"])
def test_a_slow_server_is_an_outage_for_a_stream_too(behaviour):
    with serving(misbehave=[behaviour]) as server:
        done, _ = asked(server, seconds=0.3)
    assert done.failure == "outage"


def test_the_budget_of_seconds_ends_a_stream():
    with serving(misbehave=[sends(repeat(chunk({"content": "on "})), 0.01)]) as server:
        done, _ = asked(server, seconds_left=lambda left=iter([0.3, 0.0, 0.0]): next(left))
    assert done.failure == "budget"


def test_an_enormous_reply_is_given_up():
    with serving(misbehave=[sends(repeat(chunk({"content": "x" * 1000})))]) as server:
        done, _ = asked(server, max_bytes=10_000)
    assert "longer than 10,000 bytes" in (done.error or "")
    assert done.retry_after is None
    with serving(misbehave=[sends([b'data: {"choices' + b" " * 10_000 * ROOM_FOR_EVENTS])]) as server:
        done, _ = asked(server, max_bytes=10_000)
    assert "longer than 10,000 bytes" in (done.error or "")


def test_a_connection_left_open_behind_the_last_word_holds_nobody_up():
    is_told = threading.Event()
    with serving(misbehave=[sends([BODY], then=lambda _: is_told.wait(250))]) as server:
        done, _ = asked(server, seconds=200)
        is_told.set()
    assert done.text == TEXT


def test_a_key_that_a_model_repeats_is_never_told_not_even_its_beginning():
    key = "sk-secret-key-of-somebody"
    with serving(misbehave=[sends(chat_events(f"it is {key}, is it not?", step=1), 0.003)]) as server:
        done, told = asked(server, key=Secret(key))
    assert done.text == told[-1] == "it is •••, is it not?"
    assert not [text for text in told if "sk" in text]


def test_a_failed_stream_is_told_anew_by_the_next_try():
    behaviours = [sends([HALF]), sends(chat_events("another reply"))]
    with serving(misbehave=behaviours) as server:
        model = Retrying(OpenAIChat(server.url, "m"), first_pause=0.01)
        ([done], told) = listened(lambda: model.complete([ASKED]))
    assert done.text == told[-1] == "another reply"
    assert TEXT.startswith(told[0])


def test_a_kept_reply_is_given_again_without_a_stream(tmp_path):
    with serving(misbehave=[sends(chat_events(TEXT))]) as server:
        bare = Limited(OpenAIChat(server.url, "m"))
        model = Cached(Budgeted(bare, Ledger(Budget(calls=1))), ReplyStore(tmp_path / "replies.sqlite"))
        ([first], told) = listened(lambda: model.complete([ASKED]))
        ([second], told_again) = listened(lambda: model.complete([ASKED]))
        [unheard] = model.complete([ASKED])
    assert told[-1] == first.text == second.text == unheard.text == TEXT
    assert (told_again, second.usage.cached, unheard.usage.cached) == ([], True, True)
    assert len(server.bodies) == 1


def test_who_comes_too_late_is_not_heard():
    told: list[str] = []
    with recording(Recorder(on_text=told.append)):
        with trace.showing(lambda text: text):
            hear = trace.reply_listener()
            assert hear is not None
            hear("in time")
            hear("in time")
        hear("too late")
        assert trace.reply_listener() is None
    assert told == ["in time"]
