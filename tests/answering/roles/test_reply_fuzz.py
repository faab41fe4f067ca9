"""Mutated replies through every parser: no crash, and nothing accepted that was not asked for.

CLEW_FUZZ sets how many replies each parser is given (default 3,000; 100,000 before a release).
"""

import json
import math
import os
import random
from collections.abc import Callable

import pytest
from test_roles import SCHEMA, parse_reply

from clew.answering.queries.kinds import check
from clew.answering.roles.choose import read_list, read_pair
from clew.answering.roles.parse import read_triplets, salvage_triplets
from clew.answering.roles.read import read_answer, read_written, salvage_answer, salvage_written
from clew.answering.roles.score import read_score, read_yes_no
from clew.answering.roles.write import read_answers, read_next
from clew.core.errors import ReplyError
from clew.core.query import Named, Pattern, walk
from clew.models.chat_replies import read_chat_reply
from clew.models.protocol import Completion

ROUNDS = int(os.environ.get("CLEW_FUZZ", "3000"))
ODD = [
    "",
    "null",
    "NaN",
    "Infinity",
    "1e999",
    "-1",
    "0.5",
    "true",
    '""',
    "[]",
    "{}",
    '"?x"',
    '"\\ud800"',
    "\x00",
    "𝔘",
    "{" * 50,
]
ODD += [
    "[" * 3000,
    '{"a":' * 2000,
    "9" * 5000,
    "```json\n",
    "\n```",
    "Sure! ",
    "A",
    "yes",
    "?",
    '"invented_relation"',
    "\\",
]
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    3,
    10**30,
    0.5,
    1.5,
    "",
    "A",
    "?x",
    "?y",
    "movie",
    "nothing",
    [],
    {},
    [[]],
    ["?x", 1],
    {"a": 1},
]


def mutate(text: str, chance: random.Random) -> str:
    """One to four changes to the characters of a reply, or to the values of its JSON."""
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text) + 1)
        kind = chance.randrange(7)
        if kind == 0:
            text = text[:place] + chance.choice(ODD) + text[place:]
        elif kind == 1:
            text = text[:place] + text[place + chance.randint(1, 8) :]
        elif kind == 2:
            text = text[:place]
        elif kind == 3:
            end = chance.randrange(len(text) + 1)
            text = text[:place] + text[min(place, end) : end] + text[place:]
        elif kind == 4:
            text = (
                chance.choice(["Here is my reply: ", "```\n", '{"x": 1} '])
                + text
                + chance.choice([" Done.", "\n```", " {}"])
            )
        elif kind == 5:
            text = text[:place] + chr(chance.randrange(0x20, 0x3000)) + text[place + 1 :]
        else:
            text = mutate_values(text, chance)
    return text[:20_000]


def mutate_values(text: str, chance: random.Random) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    holders = []

    def visit(part: object, depth: int = 0) -> None:
        if isinstance(part, dict | list) and depth < 20:
            holders.append(part)
            for inner in part.values() if isinstance(part, dict) else part:
                visit(inner, depth + 1)

    visit(value)
    holder = chance.choice(holders) if holders else None
    if isinstance(holder, dict) and holder:
        key = chance.choice(list(holder))
        if chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = chance.choice(VALUES)
    elif isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), chance.choice(VALUES))
    return json.dumps(value)


def check_parse(parse) -> None:
    query = parse.interpretation.query
    check(query, SCHEMA)
    for pattern in (part for part in walk(query) if isinstance(part, Pattern)):
        types = {**query.pattern.types, **pattern.types}
        for edge in pattern.edges:
            kinds = [types.get(end) if isinstance(end, str) else end.type for end in (edge.head, edge.tail)]
            assert edge.variables
            assert edge.head != edge.tail
            assert all(0 < len(end.text) <= 300 for end in (edge.head, edge.tail) if isinstance(end, Named))
            if edge.relation is not None:
                rows = SCHEMA.relation_rows(edge.relation)
                assert any(kinds[0] in (None, row.head) and kinds[1] in (None, row.tail) for row in rows)


def check_probability(value: float) -> None:
    assert isinstance(value, float)
    assert 0 <= value <= 1


def check_positions(positions: tuple[int, ...], options: int = 5) -> None:
    assert positions
    assert len(set(positions)) == len(positions)
    assert all(type(place) is int and 0 <= place < options for place in positions)


def check_texts(texts: tuple[str, ...], most: int = 5) -> None:
    assert len(texts) <= most
    assert all(text.strip() and len(text) <= 1000 for text in texts)


def check_written(read) -> None:
    assert (read.text is not None) == bool(read.claims)
    assert read.text is None or read.text.strip()
    assert all(0 <= place < 5 for claim in read.claims for place in claim.citations)
    assert len(read.claims) <= 6


def check_read(read) -> None:
    assert read.text is None or (read.text.strip() and len(read.text) <= 400)
    assert all(0 <= place < 5 for place in read.citations)


def check_completion(completion: Completion) -> None:
    assert isinstance(completion.text, str)
    assert completion.usage.prompt_tokens >= 0
    assert all(math.isfinite(p) for tokens in completion.logprobs for p in tokens.values())


CHAT = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "hello"},
            "finish_reason": "stop",
            "logprobs": {
                "content": [{"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "a", "logprob": -0.1}]}]
            },
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
CONDITION = {"variable": "?y", "attribute": "year", "comparison": ">=", "value": 1999}
PARSERS: dict[str, tuple[str, Callable, Callable]] = {
    "parse": (
        parse_reply(conditions=[CONDITION]),
        lambda t: read_triplets(t, "who is Tom Hanks?", SCHEMA),
        check_parse,
    ),
    "salvage": (parse_reply(absent=[]), lambda t: salvage_triplets(t, "who is Tom Hanks?", SCHEMA), check_parse),
    "pair": ('{"choice": "B"}', lambda t: read_pair(Completion(t)), check_probability),
    "list": ('{"best": [1, 5, 3]}', lambda t: read_list(Completion(t), 5), check_positions),
    "score": ('{"score": 0.75}', lambda t: read_score(Completion(t)), check_probability),
    "yes or no": ("Yes, it does.", lambda t: read_yes_no(Completion(t)), check_probability),
    "next": ('{"enough": false, "next": "The director is"}', lambda t: read_next(Completion(t)), check_texts),
    "answers": ('{"answers": ["Paris", "Lyon", "1789"]}', lambda t: read_answers(Completion(t), 5), check_texts),
    "read": ('{"answer": "Paris", "passages": [1, 3]}', lambda t: read_answer(Completion(t), 5), check_read),
    "written": (
        '{"sentences": [{"text": "It is Paris [1].", "passages": [1, "3"]}], "found": true, "missing": ""}',
        lambda t: read_written(Completion(t), 5),
        check_written,
    ),
    "salvage written": (
        '{"sentences": [{"text": "It is Paris.", "passages": [9]}], "found": true, "mis',
        lambda t: salvage_written(Completion(t), 5),
        check_written,
    ),
    "salvage read": ('{"answer": "Paris", "passages": [9]}', lambda t: salvage_answer(Completion(t), 5), check_read),
    "http": (json.dumps(CHAT), read_chat_reply, check_completion),
}


@pytest.mark.parametrize("name", PARSERS)
def test_mutated_replies_are_read_rightly_or_refused(name):
    seed, parse, check = PARSERS[name]
    check(parse(seed))
    chance = random.Random(name)
    accepted = 0
    for _ in range(ROUNDS):
        text = mutate(seed, chance)
        try:
            value = parse(text)
        except ReplyError:
            continue
        check(value)
        accepted += 1
    assert 0 < accepted < ROUNDS


def test_probabilities_survive_odd_logprobs():
    for odd in (float("inf"), -float("inf"), 700.0):
        assert 0 <= read_pair(Completion('{"choice": "A"}', logprobs=({"A": odd, "B": -1.0},))) <= 1
        assert 0 <= read_yes_no(Completion("yes", logprobs=({"yes": odd, "no": -1.0},))) <= 1
    assert math.isfinite(read_yes_no(Completion("no", logprobs=({},))))
