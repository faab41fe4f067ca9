"""Answers in cited sentences: what a model is asked, and what is made of its reply."""

import json

import pytest

from clew.answering.roles.read import ModelReader, cited_text
from clew.core.roles import CitedClaim, Read, Reading, Source
from clew.models.scripted import ScriptedModel
from clew.models.tokens import count_request_tokens

READING = Reading(
    "How large is the cache, and which port does the server use?",
    (
        Source("The cache holds 64 MB. It is emptied every night.", "Manual", 7),
        Source("The server listens on port 8080.", "Manual", 9),
        Source("Paris is a city.", "Atlas"),
    ),
)


def reply(*sentences: tuple[str, list[int]], found: bool = True, missing: str = "", **more: object) -> str:
    said = [{"text": text, "passages": passages} for text, passages in sentences]
    return json.dumps({"thinking": "…", "sentences": said, "found": found, "missing": missing, **more})


def read(*replies: str, reading: Reading = READING, **options: object) -> Read:
    [answer] = ModelReader(ScriptedModel.saying(*replies), **options).read([reading])
    return answer


CACHE, PORT = ("The cache holds 64 MB.", [1]), ("The server listens on port 8080.", [2])


def test_each_sentence_comes_with_its_citations_checked():
    answer = read(reply(CACHE, PORT))
    assert (answer.text, answer.citations) == ("The cache holds 64 MB. The server listens on port 8080.", (0, 1))
    assert [claim.is_supported for claim in answer.claims] == [True, True]
    assert answer.notes == ()


def test_the_text_has_numbers_and_doubts():
    assert cited_text(read(reply(PORT, CACHE))) == "The server listens on port 8080. [1] The cache holds 64 MB. [2]"
    wrong = read(reply(("The cache lives in the memory of users.", [1]), PORT))
    assert "The cache lives in the memory of users. [1] (its source may not say this)" in cited_text(wrong)
    assert [source.heading() for source in READING.sources] == ["Manual, page 7", "Manual, page 9", "Atlas"]


def test_a_refusal_is_no_answer_and_says_what_is_missing():
    answer = read(reply(found=False, missing="the size of the cache"))
    assert (answer.text, answer.missing) == (None, "the size of the cache")
    said = read(reply(("The passages do not mention the size of the cache.", [])))
    assert (said.text, said.missing) == (None, "The passages do not mention the size of the cache.")


def test_a_sentence_about_what_is_missing_is_no_claim():
    answer = read(reply(CACHE, ("The sources do not say who wrote it.", [])))
    assert (len(answer.claims), answer.missing) == (1, "The sources do not say who wrote it.")


def test_citations_that_point_nowhere_are_dropped_with_a_note():
    model = ScriptedModel.saying(reply(("The cache holds 64 MB.", [1, 9])))
    [answer] = ModelReader(model).read([READING])
    assert answer.claims[0].citations == (0,)
    assert answer.notes == ("sentence 1 cited 9: there is no such source",)
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    "said",
    [
        '{"sentences": [{"text": "The cache holds 64 MB [1].", "passages": []}], "found": true}',
        '{"sentences": [{"text": "The cache holds 64 MB.", "passages": ["1"]}], "found": true}',
        '{"sentences": [{"text": "The cache holds 64 MB.", "passages": "[1]"}]}',
        '{"sentences": ["The cache holds 64 MB. [1]"], "found": true, "missing": "None"}',
        'Sure! ```json\n{"sentences": [{"text": "The cache holds 64 MB.", "passages": 1}], "found": true}\n```',
        '{"thinking": "…", "sentences": [{"text": "The cache holds 64 MB.", "passages": [1]}, {"text": "The ser',
        "The cache holds 64 MB. [1]",
        "The cache holds 64 MB [1].",
    ],
)
def test_what_small_models_write_is_read(said):
    answer = read(said)
    assert [claim.citations for claim in answer.claims] == [(0,)]
    assert answer.text.rstrip(".") == "The cache holds 64 MB"
    assert answer.missing == ""
    assert answer.claims[0].is_supported


def test_an_unreadable_reply_is_said_again_and_then_read_without_the_model():
    model = ScriptedModel.saying("I cannot help with that.")
    [answer] = ModelReader(model).read([READING])
    assert len(model.asked) == 2
    assert answer.problem is not None


def test_bracketed_years_are_no_citations():
    answer = read(reply(("The cache holds 64 MB (2006).", [1])))
    assert answer.notes == ("left out, its source does not say this: “The cache holds 64 MB (2006).”",)


def test_a_sentence_that_its_source_does_not_say_is_left_out():
    answer = read(reply(("The cache holds 65 MB.", [1]), PORT))
    assert (answer.text, answer.citations) == ("The server listens on port 8080.", (1,))
    assert answer.notes == ("left out, its source does not say this: “The cache holds 65 MB.”",)


def test_nothing_is_read_where_no_sentence_is_said_by_its_source():
    answer = read(reply(("The cache holds 65 MB.", [1]), ("The server uses port 1.", [2])))
    assert (answer.text, answer.claims, answer.problem) == (None, (), "the sources do not say what the model wrote")


def test_the_prompt_shows_places_and_asks_the_model_to_think_first():
    model = ScriptedModel.saying(reply(CACHE))
    ModelReader(model).read([READING])
    [asked] = model.asked
    assert "[1] Manual, page 7\nThe cache holds" in asked.messages[-1].content
    assert '"thinking": "…"' in asked.messages[-1].content
    assert next(iter(asked.schema["properties"])) == "thinking"
    assert asked.max_tokens >= 800


def test_a_small_context_still_has_room_for_the_reply():
    long = Source("Start. " + "Nothing here. " * 5000 + "The cache holds 64 MB. ", "A")
    model = ScriptedModel.saying(reply(CACHE))
    model.context_tokens = 2000
    ModelReader(model).read([Reading("How large is the cache?", (long, *READING.sources))])
    [request] = model.asked
    assert count_request_tokens(request) + request.max_tokens <= 2000
    assert "The cache holds 64 MB." in request.messages[-1].content


def test_facts_are_answered_from_as_passages_are():
    facts = (Source("Marfan syndrome —caused by→ FBN1"), Source("FBN1 —located on→ chromosome 15"))
    answer = read(
        reply(("Marfan syndrome is caused by FBN1.", [1])), reading=Reading("What causes Marfan syndrome?", facts)
    )
    assert answer.claims[0].is_supported


def test_claims_hold_their_verdict_by_the_threshold():
    assert CitedClaim("a", support=0.5).is_supported
    assert not CitedClaim("a", support=0.49).is_supported
