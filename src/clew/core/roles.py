"""The five roles a language model plays in the papers, each with a model-backed and a model-free implementation.

parse    a question into a query                     Parser
choose   the best of some options                    Chooser
score    how well a candidate answers, 0..1          Scorer
write    the next evidence, or candidate answers     Writer
read     passages or facts, and answer from them     Reader

A role never raises because of one bad reply: the outcome carries `problem`, which says what went wrong and that the
role's fallback stands in; the same is said to the trace. Only `PendingError` (batch mode) passes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clew.core.query import Constant, Query, Var, find
from clew.core.schema import Schema
from clew.core.types import UnknownName


@dataclass(frozen=True, slots=True)
class Rejected:
    """A piece of a parse that does not fit the schema, and why: kept to be shown, never executed."""

    piece: str
    reason: str


Asks = Literal[
    "nodes", "number", "truth", "value", "average", "sum", "highest", "lowest", "different", "common", "each"
]
"""What is asked for: the nodes that are found, their number, whether there are any, or an attribute of theirs.

Of the values of that attribute also the average, the sum, the highest, the lowest, the number of different ones, the
most common one, and the number of nodes with each. `each` without an attribute asks for the number that the nodes are
sorted by.
"""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A query that a question may mean, and what is asked about the nodes that it finds."""

    query: Query
    """Finds nodes: its only column is a variable."""
    asks: Asks = "nodes"
    attribute: str | None = None
    """The attribute that is asked for."""
    compared: Constant | None = None
    """The one of the compared nodes that is asked about: "is A the highest of them?"."""
    score: float = 1.0
    unexplained: tuple[str, ...] = ()
    """Words of the question that no part of the query accounts for: they may be looked for in texts."""

    @property
    def variable(self) -> str:
        """The variable whose nodes are found."""
        column = self.query.columns[0].expression
        assert isinstance(column, Var), "the query of an interpretation finds nodes"
        return column.name

    @property
    def type(self) -> str | None:
        """The type of the nodes that are found."""
        return self.query.pattern.types.get(self.variable)

    @property
    def is_restricted(self) -> bool:
        """Whether anything is required of the nodes but their type."""
        return bool(self.query.pattern.edges or self.query.pattern.where or self.query.order)

    @property
    def is_plain(self) -> bool:
        """Whether nodes are asked for by relations alone: no count, comparison, choice or denial."""
        return self.asks == "nodes" and not self.query.order and not self.query.pattern.where

    @classmethod
    def of_text(cls, text: str, type: str | None = None) -> Interpretation:
        """Require nothing of the nodes of a type, so that a text is all there is to look for."""
        return cls(find("x", type), score=0.0, unexplained=(text,))


@dataclass(frozen=True, slots=True)
class Parse:
    """The best interpretation of a question, others in descending order of score, and what was rejected on the way."""

    interpretation: Interpretation
    alternatives: tuple[Interpretation, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problem: str | None = None
    certainty: float | None = None
    """How likely the best interpretation is right, 0..1, if the parser can tell."""
    is_loose: bool = False
    """Whether the interpretation may miss the point, since it accounts for little of the question."""
    unknown: tuple[UnknownName, ...] = ()
    """Names in the question that the base does not have."""


class Parser(Protocol):
    """Reads a question as a query over a schema."""

    def parse(self, question: str, schema: Schema) -> Parse:
        """Return queries whose relations and types all exist. If nothing was understood, nothing is required."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A question, its options in words, and how many of them to keep."""

    question: str
    options: tuple[str, ...]
    keep: int = 1
    kind: str = "option"
    """What the options are, in the singular, such as "relation path"."""
    given: str = ""
    """What holds for every option, such as the common beginning of two paths."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Positions of the kept options, best first; never empty where there were options and keep was positive."""

    kept: tuple[int, ...]
    sure: float = 1.0
    """0..1; 0.5 where a model contradicts itself when the options change places."""
    problem: str | None = None


class Chooser(Protocol):
    """Chooses among options."""

    def choose(self, choices: Sequence[Choice]) -> list[Chosen]:
        """One outcome per choice, in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A possible answer to a question with what is written about it."""

    question: str
    candidate: str
    document: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """How well a candidate answers, 0..1; None where no score could be had and the earlier order should stand."""

    value: float | None
    reason: str = ""
    problem: str | None = None


class Scorer(Protocol):
    """Judges candidates one by one."""

    def score(self, claims: Sequence[Claim]) -> list[Score]:
        """One score per claim, in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A question and the evidence found for it so far, in reading order."""

    question: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """One or more texts, best first: the next evidence to look for, or candidate answers."""

    texts: tuple[str, ...]
    problem: str | None = None


class Writer(Protocol):
    """Writes what to look for next, and answers to choose from."""

    def next_evidence(self, drafts: Sequence[Draft]) -> list[Written]:
        """For each draft the evidence still missing, as a text to search with; no text where nothing is missing."""
        ...

    def answers(self, questions: Sequence[str], count: int) -> list[Written]:
        """For each question up to `count` different candidate answers."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered text a reader may cite: a passage with its place, or a fact or path in words."""

    text: str
    title: str = ""
    section: str = ""
    """The headings above it, outermost first, such as "Installation › On Windows"."""
    file: str | None = None
    page: int | None = None

    def heading(self) -> str:
        """What it is part of: title, section and page, as far as known."""
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(part for part in (" › ".join(filter(None, (self.title, self.section))), page) if part)

    def place(self) -> str:
        """Where to look it up: file and page, or else its title, or else the text itself, as a fact has neither."""
        if self.file is None:
            return self.heading() or self.text
        return self.file if self.page is None else f"{self.file}, page {self.page}"


@dataclass(frozen=True, slots=True)
class Reading:
    """A question and the texts to answer it from."""

    question: str
    sources: tuple[Source, ...]


SUPPORTED = 0.5
"""The support from which on the cited sources say what a claim says."""


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """One sentence of a written answer with the positions of the sources it rests on."""

    text: str
    citations: tuple[int, ...] = ()
    support: float = 0.0
    """How well the cited sources say it, 0..1."""
    spans: tuple[tuple[int, int], ...] = ()
    """For each citation the characters of its source that say most of it."""

    @property
    def is_supported(self) -> bool:
        """Whether the cited sources say it."""
        return self.support >= SUPPORTED


@dataclass(frozen=True, slots=True)
class Read:
    """An answer and the positions of the sources it rests on; text None where they hold no answer."""

    text: str | None
    """A few words, or the claims as sentences."""
    citations: tuple[int, ...] = ()
    problem: str | None = None
    claims: tuple[CitedClaim, ...] = ()
    """The sentences of a written answer, checked; none where the answer is a few words."""
    missing: str = ""
    """What was asked for and the sources do not say."""
    notes: tuple[str, ...] = ()
    """What was changed in the citations."""

    @property
    def found(self) -> bool:
        """Whether the sources hold an answer."""
        return self.text is not None

    def in_words(self, sources: Sequence[Source]) -> str:
        """The answer with bracketed numbers after each sentence, then the cited places by their numbers."""
        numbers = {source: number for number, source in enumerate(self.citations, start=1)}
        claims = self.claims or ((CitedClaim(self.text, self.citations, 1.0),) if self.text else ())
        sentences = [
            claim.text
            + (" " if claim.citations else "")
            + "".join(f"[{numbers[citation]}]" for citation in claim.citations)
            + ("" if claim.is_supported else " (its source may not say this)")
            for claim in claims
        ]
        lines = [" ".join(sentences) or "I did not find this in the sources."]
        lines += [f"Not in the sources: {self.missing}"] if self.missing else []
        lines += [f"[{number}] {sources[source].place()}" for source, number in numbers.items()] if sentences else []
        return "\n".join(lines)


class Reader(Protocol):
    """Answers from texts alone."""

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """One answer per reading, in the same order."""
        ...
