"""The five roles of a language model in the papers. Each has implementations with and without a model.

parse    a question into a query                     Parser
choose   the best of some options                    Chooser
score    the match of a candidate, 0..1              Scorer
write    the next evidence, or candidate answers     Writer
read     passages or facts, and answer from them     Reader

A role does not raise for one bad reply. Its outcome and the trace carry `problem`, which states the failure and the
fallback used instead. Only `PendingError` (batch mode) passes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clew.core.query import AnyQuery, Constant, Expression, Query, Var, find
from clew.core.schema import Schema
from clew.core.types import UnknownName


@dataclass(frozen=True, slots=True)
class Rejected:
    """A part of a parse that does not fit the schema, for display only."""

    piece: str
    reason: str


OfValues = Literal["average", "sum", "highest", "lowest", "difference", "different", "common"]
Asks = Literal["nodes", "number", "truth", "value", "each", "columns"] | OfValues
"""The requested result: the matching nodes, their number, whether there are any, or one of their attributes.

Of the values of the attribute also the average, the sum, the highest, the lowest, the difference of both, the number of
different values, the most common one, and the number of nodes with each value. `each` without an attribute asks for the
order key of nodes, `columns` for several attributes of each node.
"""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A possible meaning of a question: a query for nodes, and the result requested about them."""

    query: Query
    """Query with a variable as its only column."""
    asks: Asks = "nodes"
    attribute: str | None = None
    """The requested attribute."""
    amount: Expression | None = None
    """The requested attribute as a number, if this is another expression."""
    more: tuple[str, ...] = ()
    """Further requested attributes, for `columns`."""
    compared: Constant | None = None
    """The node in question among the compared nodes, as in "is A the highest of them?"."""
    score: float = 1.0
    unexplained: tuple[str, ...] = ()
    """Words of the question that no part of the query explains. They can be searched in texts."""

    @property
    def variable(self) -> str:
        """The variable of the query's column."""
        column = self.query.columns[0].expression
        assert isinstance(column, Var), "the query of an interpretation finds nodes"
        return column.name

    @property
    def type(self) -> str | None:
        """The type of the variable, if the query restricts it."""
        return self.query.pattern.types.get(self.variable)

    @property
    def is_restricted(self) -> bool:
        """Whether the query restricts the nodes by more than their type."""
        return bool(self.query.pattern.edges or self.query.pattern.where or self.query.order)

    @property
    def is_plain(self) -> bool:
        """Whether the query asks for nodes by relations only, without count, comparison, choice or negation."""
        return self.asks == "nodes" and not self.query.order and not self.query.pattern.where

    @classmethod
    def of_text(cls, text: str, type: str | None = None) -> Interpretation:
        """Return an interpretation that searches the nodes of a type only by text."""
        return cls(find("x", type), score=0.0, unexplained=(text,))


@dataclass(frozen=True, slots=True)
class Parse:
    """The best interpretation of a question, alternatives by descending score, and rejected parts."""

    interpretation: Interpretation
    alternatives: tuple[Interpretation, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problem: str | None = None
    certainty: float | None = None
    """Probability that the best interpretation is right, if the parser can estimate it."""
    is_loose: bool = False
    """Whether the interpretation explains little of the question and may be wrong."""
    unknown: tuple[UnknownName, ...] = ()
    """Names in the question that the base does not have."""
    rows: AnyQuery | None = None
    """A likelier query for rows of values, which no interpretation can say. It has the certainty `rows_certainty`."""
    rows_certainty: float = 0.0


class Parser(Protocol):
    """Translator of questions into queries over a schema."""

    def parse(self, question: str, schema: Schema) -> Parse:
        """Return queries whose relations and types exist in the schema. The query is unrestricted if parsing fails."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A question, its options as text, and the number of options to keep."""

    question: str
    options: tuple[str, ...]
    keep: int = 1
    kind: str = "option"
    """Noun for an option, such as "relation path"."""
    given: str = ""
    """Context that all options share, such as the common start of two paths."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Indexes of the chosen options, best first. Not empty unless there were no options or `keep` was 0."""

    kept: tuple[int, ...]
    sure: float = 1.0
    """Confidence, 0..1. It is 0.5 if the model changes its choice when the options are reordered."""
    problem: str | None = None


class Chooser(Protocol):
    """Selector among options."""

    def choose(self, choices: Sequence[Choice]) -> list[Chosen]:
        """Return one outcome per choice, in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A possible answer to a question, with text about it."""

    question: str
    candidate: str
    document: str = ""


class Scorer(Protocol):
    """Judge of single candidates."""

    def score(self, claims: Sequence[Claim]) -> list[float | None]:
        """Return one score per claim, 0..1, in the same order. None means that scoring failed."""
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
    """Writer of search texts. A model also writes candidate answers."""

    def next_evidence(self, drafts: Sequence[Draft]) -> list[Written]:
        """Return for each draft a text to search for the missing evidence, or no text if nothing is missing."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered text that a reader may cite: a passage and its location, or a fact or path as text."""

    text: str
    title: str = ""
    page: int | None = None

    def heading(self) -> str:
        """Return the title and the page, as far as known."""
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(part for part in (self.title, page) if part)


@dataclass(frozen=True, slots=True)
class Reading:
    """A question and the texts to answer it from."""

    question: str
    sources: tuple[Source, ...]


SUPPORTED = 0.5
"""Minimum support of a claim that its sources back."""


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """One sentence of a written answer, with the indexes of its sources."""

    text: str
    citations: tuple[int, ...] = ()
    support: float = 0.0
    """Degree to which the cited sources back the claim, 0..1."""
    spans: tuple[tuple[int, int], ...] = ()
    """For each citation, the character span of its source that backs the claim best."""

    @property
    def is_supported(self) -> bool:
        """Whether the cited sources back the claim."""
        return self.support >= SUPPORTED


@dataclass(frozen=True, slots=True)
class Read:
    """An answer and the indexes of its sources. The text is None if they contain no answer."""

    text: str | None
    """A short phrase, or the claims as sentences."""
    citations: tuple[int, ...] = ()
    problem: str | None = None
    claims: tuple[CitedClaim, ...] = ()
    """Checked sentences of a written answer. Empty for a short phrase."""
    missing: str = ""
    """Part of the question that the sources do not answer."""
    notes: tuple[str, ...] = ()
    """Corrections of the citations."""


class Reader(Protocol):
    """Reader that answers only from the given texts."""

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """Return one answer per reading, in the same order."""
        ...
