"""The triplet query: what a question asks of the graph, as every parser writes it and every executor reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]
Asks = Literal["nodes", "number", "truth", "value"]
"""What is asked for: the answers themselves, how many they are, whether there are any, a value of theirs."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An unknown entity; `type` None means any type."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """An entity named in the question, not yet linked to a node."""

    text: str
    type: str | None = None


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Triplet:
    """A required edge, or a forbidden one where `negated`; `relation` None means any relation."""

    head: Term
    relation: str | None
    tail: Term
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A requirement on an attribute of a variable, such as year >= 1999."""

    variable: str
    attribute: str
    comparison: Comparison
    value: Any


@dataclass(frozen=True, slots=True)
class Count:
    """A requirement on how many different nodes of variable `of` go with one node of `variable` in all solutions."""

    variable: str
    of: str
    comparison: Comparison
    value: int


@dataclass(frozen=True, slots=True)
class Best:
    """Of all answers only those with the most or the least: of an attribute, or of edges of a relation."""

    most: bool
    attribute: str | None = None
    relation: str | None = None
    is_head: bool = True
    """Whether the answers are the heads of the edges that are counted, or their tails."""
    of: str | None = None
    """The type of what lies at their other end, where only edges to some are counted."""

    def __str__(self) -> str:
        what = self.attribute or f"edges of {self.relation}"
        return f"with the {'most' if self.most else 'least'} {what}"


@dataclass(frozen=True, slots=True)
class TripletQuery:
    """Triplets and conditions; `target` names the variable whose nodes are the answers.

    A variable that only forbidden triplets tie to the target stands for no node at all: "a disease with no drug".
    """

    triplets: tuple[Triplet, ...]
    target: Variable
    conditions: tuple[Condition, ...] = ()
    counts: tuple[Count, ...] = ()
    asks: Asks = "nodes"
    score: float = 1.0
    unexplained: tuple[str, ...] = ()
    """Words of the question that no part of the query accounts for: the textual requirement."""
    among: tuple[Constant, ...] = ()
    """Where not empty, only what these name can be an answer: what is described, compared or asked about."""
    best: Best | None = None
    attribute: str | None = None
    either: tuple[TripletQuery, ...] = ()
    """Queries that may be satisfied instead of this one: "by her or by him"."""

    @property
    def is_plain(self) -> bool:
        """Whether nodes are asked for by relations alone: no count, comparison, choice or denial."""
        more = self.conditions or self.counts or self.best or self.among
        return self.asks == "nodes" and not more and not any(one.negated for one in self.triplets)

    def variables(self) -> dict[str, Variable]:
        """Every variable by name, the target included."""
        found = {self.target.name: self.target}
        for triplet in self.triplets:
            for term in (triplet.head, triplet.tail):
                if isinstance(term, Variable):
                    found.setdefault(term.name, term)
        return found

    def constants(self) -> tuple[Constant, ...]:
        """Every constant once, in order of appearance."""
        terms = (term for triplet in self.triplets for term in (triplet.head, triplet.tail))
        return tuple(dict.fromkeys((*(term for term in terms if isinstance(term, Constant)), *self.among)))

    def __str__(self) -> str:
        def shown(term: Term) -> str:
            kind = f":{term.type}" if term.type else ""
            return f"?{term.name}{kind}" if isinstance(term, Variable) else f"“{term.text}”{kind}"

        parts = [
            f"{'NOT ' if t.negated else ''}({shown(t.head)} {t.relation or '*'} {shown(t.tail)})" for t in self.triplets
        ]
        parts += [f"{c.variable}.{c.attribute} {c.comparison} {c.value}" for c in self.conditions]
        parts += [f"count of {c.of} per {c.variable} {c.comparison} {c.value}" for c in self.counts]
        if self.among:
            parts.append(f"it is {' or '.join(shown(constant) for constant in self.among)}")
        asked = {"number": "how many ", "truth": "is there ", "value": f"{self.attribute} of "}.get(self.asks, "")
        whole = f"{asked}{shown(self.target)} where " + " and ".join(parts or ["nothing is required"])
        whole = f"{whole} {self.best}" if self.best else whole
        return " or ".join((whole, *map(str, self.either)))
