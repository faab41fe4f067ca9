"""Every campaign by name: what one try is, how many the short and the long run have, and how many tries a seed is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import groups
import lying_bolt
import reading
import writing
from commands import Writers

Try = Callable[[Writers, int, Path], list[str]]
"""From a seed to what went wrong."""


@dataclass(frozen=True)
class Campaign:
    """What is tried, and how often."""

    name: str
    what: str
    once: Try
    short: int
    """Seeds of the run that is part of the tests."""
    long: int
    """Tries of the run by `make campaign`."""
    tries: int = 1
    """How many tries one seed is."""


CAMPAIGNS = (
    Campaign("kills", "a command that writes is killed at any moment, and run again", writing.killed, 6, 1_000),
    Campaign("flips", "one byte of one file of a base is changed, or the file is cut", reading.flipped, 8, 2_000),
    Campaign("sources", "files of nodes and edges", lambda _, seed, at: reading.hostile_source(seed, at), 30, 5_000),
    Campaign("documents", "damaged documents of every format", reading.hostile_document, 20, 5_000),
    Campaign("questions", "questions over all methods", reading.questions, 1, 20_000, reading.QUESTIONS),
    Campaign("queries", "texts of the query language", reading.query_texts, 2, 5_000, reading.TOGETHER),
    Campaign("replies", "a model that says anything", reading.model_replies, 3, 1_000, reading.TOGETHER // 5),
    Campaign("endpoint", "an endpoint that says anything", lambda _, s, at: reading.endpoint_replies(s, at), 8, 500),
    Campaign(
        "bolt",
        "a server that sends anything by Bolt",
        lambda _w, s, _at: lying_bolt.together(s),
        1,
        500,
        lying_bolt.SERVERS,
    ),
    Campaign("requests", "bodies and paths of HTTP", reading.requests, 1, 2_000, reading.TOGETHER),
    Campaign(
        "sequences",
        "a base changed once more, some changes killed, against a rebuild",
        lambda _, seed, at: writing.sequence(seed, at),
        2,
        10_000,
        writing.HISTORY,
    ),
    Campaign(
        "groups",
        "a base with groups changed once more, against what its readers may see",
        lambda _, seed, at: groups.history(seed, at),
        2,
        10_000,
        groups.STEPS,
    ),
    Campaign("together", "questions while the base is changed", reading.together, 1, 60),
    Campaign("disk full", "nothing can be written from one moment on", writing.disk_full, 8, 300),
    Campaign("memory", "a process may map little memory", reading.little_memory, 4, 100),
)
