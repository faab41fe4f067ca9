"""The triplet query: what a question asks of the graph, as every parser writes it and every executor reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]


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
class TripletQuery:
    """Triplets and conditions; `target` names the variable whose nodes are the answers.

    A variable that only forbidden triplets tie to the target stands for no node at all: "a disease with no drug".
    """

    triplets: tuple[Triplet, ...]
    target: Variable
    conditions: tuple[Condition, ...] = ()
    counts: tuple[Count, ...] = ()
    asks: Literal["nodes", "number"] = "nodes"
    """Whether the answers themselves are asked for or how many they are."""
    score: float = 1.0
    unexplained: tuple[str, ...] = ()
    """Words of the question that no part of the query accounts for: the textual requirement."""

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
        return tuple(dict.fromkeys(term for term in terms if isinstance(term, Constant)))

    def __str__(self) -> str:
        def shown(term: Term) -> str:
            kind = f":{term.type}" if term.type else ""
            return f"?{term.name}{kind}" if isinstance(term, Variable) else f"“{term.text}”{kind}"

        parts = [
            f"{'NOT ' if t.negated else ''}({shown(t.head)} {t.relation or '*'} {shown(t.tail)})" for t in self.triplets
        ]
        parts += [f"{c.variable}.{c.attribute} {c.comparison} {c.value}" for c in self.conditions]
        parts += [f"count of {c.of} per {c.variable} {c.comparison} {c.value}" for c in self.counts]
        asked = "how many " if self.asks == "number" else ""
        return f"{asked}{shown(self.target)} where " + " and ".join(parts or ["nothing is required"])
