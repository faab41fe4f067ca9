"""What is shown of a reply while it is written: plain sentences that only ever grow."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.roles.read import ModelReader, sentences_so_far
from clew.core import trace
from clew.core.roles import Reading, Source
from clew.core.trace import Recorder, recording
from clew.models.protocol import Capabilities, Completion

signs = st.text(st.sampled_from('ab \\"{}:,ué😀\n\t�/'), max_size=12)
sentences = st.lists(st.tuples(signs, st.lists(st.integers(1, 30), max_size=3)), max_size=4)


@given(sentences, signs, st.booleans(), st.sampled_from([None, 2]))
def test_every_beginning_of_a_reply_shows_a_beginning_of_its_sentences(said, thinking, ascii_only, indent):
    reply = {
        "thinking": f'{thinking} "sentences": [{{"text": "not this"}}] {thinking}',
        "sentences": [{"text": text, "passages": passages} for text, passages in said],
        "found": True,
        "missing": "nor this",
    }
    written = json.dumps(reply, ensure_ascii=ascii_only, indent=indent)
    whole = " ".join(" ".join(text for text, _ in said).split())
    assert sentences_so_far(written) == whole
    shown = [sentences_so_far(written[:end]) for end in range(len(written))]
    assert all(later.startswith(earlier) for earlier, later in zip(shown, [*shown[1:], whole], strict=True))


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("", ""),
        ('{"thinking": "source 1 says 64', ""),
        ('{"sentences": [{"te', ""),
        ('{"sentences": [{"text": "The cache ho', "The cache ho"),
        ('{"sentences": [{"text": "It is 5 \\u00', "It is 5"),
        ('{"sentences": [{"text": "Smile \\ud83d', "Smile"),
        ('{"sentences": [{"text": "Smile \\ud83d\\ude00', "Smile 😀"),
        ('{"sentences": [{"text": "A path: C:\\\\u12', "A path: C:\\u12"),
        ('{"sentences": [{"text": "The cache holds 64 MB [1', "The cache holds 64 MB"),
        ('{"sentences": [{"text": "It opened (1923) [1, 2]. It is', "It opened (1923). It is"),
        ('{"sentences": [{"passages": ["1"], "text": "One."}, {"text": "Tw', "One. Tw"),
        ('{"sentences": ["One.", "Two', "One. Two"),
        ('Here it is:\n```json\n{"sentences": [{"text": "One."}]}\n```\nI hope {"text": "this"} helps', "One."),
        ("The cache holds 64 MB [1].", ""),
        ('{"answer": "64 MB"}', ""),
        ('{"sentences": [{"text": {"text": ["deep"]}}], "missing": "the port"}', ""),
    ],
)
def test_a_reply_is_cut_where_it_can_be_read(reply, shown):
    assert sentences_so_far(reply) == shown


@given(st.text(st.sampled_from('{}[]":,\\ut "sentences:[{text'), max_size=60))
def test_nothing_that_a_model_writes_breaks_it(reply):
    assert isinstance(sentences_so_far('{"sentences": [' + reply), str)


class Slowly:
    """A model that says how far it has written, as one on a server does."""

    name, context_tokens, capabilities = "slowly", 8192, Capabilities()

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def complete(self, requests):
        hear = trace.reply_listener()
        for end in range(0, len(self.reply) + 1, 10):
            if hear is not None:
                hear(self.reply[:end])
        return [Completion(self.reply) for _ in requests]


REPLY = json.dumps({"sentences": [{"text": "The cache holds 64 MB.", "passages": [1]}], "found": True, "missing": ""})
READING = Reading("How large is the cache?", (Source("The cache holds 64 MB."),))


def read(readings: list[Reading], **options: object) -> list[str]:
    told: list[str] = []
    with recording(Recorder(on_text=told.append)):
        ModelReader(Slowly(REPLY), **options).read(readings)
    return told


def test_a_written_answer_is_told_and_short_ones_or_several_at_once_are_not():
    told = read([READING])
    assert len(told) > 1
    assert told[-1] == "The cache holds 64 MB."
    assert read([READING, Reading("Nothing to read", ())])[-1] == told[-1]
    assert read([READING], words=6) == []
    assert read([READING, READING]) == []


def test_listening_changes_nothing():
    [heard] = ModelReader(Slowly(REPLY)).read([READING])
    with recording(Recorder(on_text=lambda _: None)):
        assert ModelReader(Slowly(REPLY)).read([READING]) == [heard]
