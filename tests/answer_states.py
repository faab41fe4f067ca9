"""Answers in every combination of what decides their state, and what a view must not say of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from clew.answering.methods.catalog import _without_claims
from clew.answering.queries.sentences import sentence
from clew.core.states import SATISFIES, WORDINGS
from clew.core.types import Answer, Candidate, Judgement, NodeRef, Passage

UNKNOWN = "I do not know “Blorp” here. Close names: Blob, Bloom."
CERTAINTIES = (None, 0.04, 0.3, 0.799, 0.8, 0.97)
CANDIDATES = tuple(
    Candidate(NodeRef(n, f"k{n}", f"Drug {n}", "drug"), 2.0 - n / 10, (Judgement("query", reason=SATISFIES),))
    for n in range(8)
)
QUOTED = Passage(
    NodeRef(9, "p9", "Rules", "passage"), "Dogs sleep in the winter room.", file="rules.md", start=0, end=30
)
QUOTE = Candidate(QUOTED.node, 1.0, (QUOTED,))


def graph_answers() -> Iterator[tuple[str, Answer]]:
    """Over a graph: a value or none, matches or none, only ranked, near ones or none, any certainty, relaxed or not."""
    values, counts = (None, 3, True, False, "blue"), (None, 0, 2, 8)
    for value, count, near, certainty, relaxed in product(values, counts, (True, False), CERTAINTIES, (True, False)):
        if count is None and value is not None:
            continue  # a value comes from a query that was carried out
        candidates = CANDIDATES if near else CANDIDATES[: count or 0]
        form = {int: "count", str: "value", bool: "yes/no"}.get(type(value), "list")
        query = {"text": "drugs that treat gout", "kind": "drug", "form": form, "many": "drugs treat gout"}
        query |= {"relaxed": ["gout was left out"]} if relaxed else {}
        value = len(candidates[:count]) if form == "count" else value
        made = Answer("?", candidates, "m", query=query, value=value, certainty=certainty, answer_count=count)
        made = replace(made, text=sentence(made))
        yield f"{value=} {count=} {near=} {certainty=} {relaxed=}", made if made.found else _without_claims(made)


def other_answers() -> Iterator[tuple[str, Answer]]:
    """Mere rankings without a sentence, answers from documents, an unknown name, and nothing at all."""
    yield "nothing", Answer("?", method="m")
    yield "ranked", Answer("?", CANDIDATES, "m")
    yield "unknown", Answer("?", method="m", text=UNKNOWN, answer_count=0)
    yield "unknown, near", _without_claims(Answer("?", CANDIDATES, "m", text=UNKNOWN, answer_count=0))
    for certainty in CERTAINTIES:
        sure = Answer("?", (QUOTE,), "m", text=QUOTED.text, evidence=(QUOTED,), certainty=certainty, answer_count=1)
        yield f"passage {certainty}", sure
        quotes = f"{WORDINGS['maybe'].quotes}\n[1] {QUOTED.text}"
        if certainty is not None and certainty < 0.6:
            yield f"passages {certainty}", replace(sure, text=quotes)
        text = f"{WORDINGS['not_found'].quotes} The nearest passages do not mention cats."
        yield f"no passage {certainty}", replace(sure, text=text, evidence=(), answer_count=0)


ANSWERS = dict([*graph_answers(), *other_answers()])


def contradictions(answer: Answer, view: str) -> list[str]:
    """What a view says that the state of its answer does not allow, or leaves out."""
    said = " ".join(re.sub(r"<[^>]+>|\x1b\[\d*m", " ", view).split())
    percents = [int(one) for one in re.findall(r"(\d+) ?% sure", said)]
    unsure, missing = said.count("I am not sure"), len(re.findall("I did not find this|I do not know", said))
    headed = bool(re.search(r"(?<!Possible )\bMatches\b", said))
    wrong = {
        "found": [
            *(["says it is not sure"] if unsure else []),
            *(["says it found nothing"] if missing else []),
            *(["calls matches possible"] if "Possible matches" in said else []),
            *(["shows a low percentage"] if any(one < 80 for one in percents) else []),
        ],
        "maybe": [
            *([f"says {unsure} times that it is not sure"] if unsure != 1 else []),
            *(["says it found nothing"] if missing else []),
            *(["says Matches"] if headed else []),
            *(["shows a high percentage"] if any(one >= 80 for one in percents) else []),
        ],
        "not_found": [
            *([f"says {missing} times that it found nothing"] if missing != 1 else []),
            *(["says it is not sure"] if unsure else []),
            *(["has a heading for matches"] if headed or "Possible matches" in said else []),
            *(["shows a percentage"] if percents else []),
            *(["says that something fits"] if re.search("satisfies the query|fits what I understood", said) else []),
        ],
    }[answer.state]
    wrong += ["says probably"] if re.search("probably|very likely", said) else []
    return wrong + ([] if len(percents) <= 1 else ["shows two percentages"])
