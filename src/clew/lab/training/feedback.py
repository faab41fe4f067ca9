"""What is learned from confirmed answers: for each question, the path that leads to what was confirmed.

Questions like one of these mean its path (reading/path_ranker.py), and the reader is fitted to them (own_base.py).
"""

from __future__ import annotations

from clew.answering.reading.feedback import keep_taught, rightness
from clew.answering.reading.path_ranker import PathRanker, Taught
from clew.answering.reading.topic_mask import mask_topic
from clew.answering.reading.topics import find_topics
from clew.core.errors import InputError
from clew.lab.training.own_base import fit, read_asked
from clew.store.confirmed import Confirmed, keep_confirmed, read_confirmed
from clew.store.open_base import OpenBase

LEAST_RIGHT = 0.5
"""F1 of what a path leads to, below which it is not what the question meant."""
MOST_ENDS = 1000


def confirm(tools: OpenBase, question: str, answers: list[str]) -> int:
    """Keep a confirmed answer, given by keys or names; returns how many there are."""
    if not answers:
        raise InputError("no answer was given: name at least one with --answer")
    keys = [ref.key for ref in tools.kb.refs([tools.find_node(answer) for answer in answers])]
    return keep_confirmed(tools.local.folder, Confirmed(question=question, answers=keys))


def withdraw(tools: OpenBase, question: str) -> int:
    """Take back what was confirmed of a question; returns how many are left."""
    return keep_confirmed(tools.local.folder, Confirmed(question=question, answers=[]))


def learn(tools: OpenBase, depth: int = 3) -> list[Taught]:
    """The path of every confirmed question that has one, kept beside the base."""
    confirmed = read_confirmed(tools.local.folder)
    if not confirmed:
        raise InputError("nothing is confirmed yet: `clew feedback KB --question … --answer …`")
    ranker = PathRanker(tools.kb)
    taught = [one for question in confirmed if (one := _taught(tools, ranker, question, depth)) is not None]
    if not taught:
        raise InputError("no confirmed question has a path that leads to its answer: nothing can be learned")
    _, fitted = fit(tools, read_asked(tools.local.folder), taught)  # used by every method if it helps
    keep_taught(tools.local.folder, taught, fitted)
    return taught


def _taught(tools: OpenBase, ranker: PathRanker, confirmed: Confirmed, depth: int) -> Taught | None:
    """The likeliest of the paths that fit the confirmed answer best."""
    for topic in find_topics(confirmed.question, tools.names).topics[:1]:
        asked = mask_topic(confirmed.question, [topic.text])
        fits = []
        for ranked in ranker.rank(asked, topic.nodes, depth):
            keys = [ref.key for ref in tools.kb.refs(ranked.ends.array[:MOST_ENDS])]
            fits.append((rightness(keys, confirmed.answers), ranked.path.moves))
        best = max(fits, key=lambda pair: pair[0], default=(0.0, ()))
        if best[0] >= LEAST_RIGHT:
            return Taught(ranker.masked(asked, topic.nodes), best[1])
    return None
