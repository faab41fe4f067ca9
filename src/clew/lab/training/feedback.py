"""Learn from confirmed answers: find the path from each question to its confirmed answer.

Similar questions then use the same path (reading/path_ranker.py), and the reader is fitted to them (own_base.py).
"""

from __future__ import annotations

from clew.answering.reading.mentions import find_topics, mask_topic
from clew.answering.reading.path_ranker import PathRanker, Taught, keep_taught, rightness
from clew.core.errors import InputError
from clew.lab.training.own_base import fit, read_asked
from clew.store.confirmed import Confirmed, keep_confirmed, read_confirmed
from clew.store.open_base import OpenBase

MIN_F1 = 0.5
"""Minimum F1 of a path's end nodes against the confirmed answer."""
MAX_ENDS = 1000
"""Maximum number of end nodes of a path to compare with the confirmed answer."""


def confirm(tools: OpenBase, question: str, answers: list[str]) -> int:
    """Store a confirmed answer, given by keys or names. Return the number of confirmed questions."""
    if not answers:
        raise InputError("no answer given: add one with --answer")
    keys = [ref.key for ref in tools.kb.refs([tools.find_node(answer) for answer in answers])]
    return keep_confirmed(tools.local.folder, Confirmed(question=question, answers=keys))


def withdraw(tools: OpenBase, question: str) -> int:
    """Remove the confirmed answer of a question. Return the number of remaining ones."""
    return keep_confirmed(tools.local.folder, Confirmed(question=question, answers=[]))


def learn(tools: OpenBase, depth: int = 3) -> list[Taught]:
    """Find and store the path of every confirmed question that has one."""
    confirmed = read_confirmed(tools.local.folder)
    if not confirmed:
        raise InputError("no confirmed answers: run `clew feedback KB --question … --answer …`")
    ranker = PathRanker(tools.kb)
    taught = [one for question in confirmed if (one := _taught(tools, ranker, question, depth)) is not None]
    if not taught:
        raise InputError("no confirmed question has a path to its answer: confirm other questions")
    _, fitted = fit(tools, read_asked(tools.local.folder), taught)  # fit the reader, which all methods use
    keep_taught(tools.local.folder, taught, fitted)
    return taught


def _taught(tools: OpenBase, ranker: PathRanker, confirmed: Confirmed, depth: int) -> Taught | None:
    """Return the most likely path among those that best match the confirmed answer."""
    for topic in find_topics(confirmed.question, tools.names).topics[:1]:
        asked = mask_topic(confirmed.question, [topic.text])
        fits = []
        for ranked in ranker.rank(asked, topic.nodes, depth):
            keys = [ref.key for ref in tools.kb.refs(ranked.ends.array[:MAX_ENDS])]
            fits.append((rightness(keys, confirmed.answers), ranked.path.moves))
        score, moves = max(fits, key=lambda pair: pair[0], default=(0.0, ()))
        if score >= MIN_F1:
            return Taught(ranker.masked(asked, topic.nodes), moves)
    return None
