"""Assembling a triplet query from the paths between what a question names and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clew.core.query import Condition, Constant, Count, Term, Triplet, TripletQuery, Variable
from clew.core.schema import Schema
from clew.reading.triplets.alignment import Alignment
from clew.reading.triplets.reading import Phrase, Reading
from clew.reading.triplets.schema_paths import Hop, is_generic


@dataclass(frozen=True)
class Branch:
    """A constant, the aligned path from it to the target, and which of its hops is forbidden."""

    constant: Constant
    alignment: Alignment
    negated: int | None = None

    def covered(self) -> set[int]:
        """Places of the words its phrases take."""
        phrases = (*self.alignment.relations, *self.alignment.types, *self.alignment.again)
        return {place for phrase in phrases if phrase for place in range(phrase.first, phrase.last)}


@dataclass(frozen=True)
class Attachment:
    """Where a new variable hangs: on which variable, by which relation, and whether that leads to the new one."""

    anchor: str
    relation: str
    outward: bool


@dataclass
class _Link:
    hop: Hop
    phrase: Phrase | None
    child: str


@dataclass
class QueryTree:
    """Variables and triplets while branches are added; branches share a variable where nothing tells them apart."""

    target: Variable
    variables: dict[str, Variable] = field(default_factory=dict)
    phrases: dict[str, Phrase | None] = field(default_factory=dict)
    """The words that name each variable's type."""
    parents: dict[str, str] = field(default_factory=dict)
    """The variable next to each on the way to the target."""
    triplets: list[Triplet] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)
    _links: dict[str, list[_Link]] = field(default_factory=dict)

    @classmethod
    def of(cls, target_type: str | None) -> QueryTree:
        """A tree that is only its target."""
        tree = cls(Variable("x"))
        tree.target = tree._variable(target_type, None)
        return tree

    def add(self, branch: Branch) -> None:
        """Add the path to one constant, from the target outward."""
        alignment, current, inside_negation = branch.alignment, self.target, False
        hops = alignment.path.hops
        for number in range(len(hops) - 1, -1, -1):
            hop, negated = hops[number], branch.negated == number
            if number == 0:
                self._require(branch.constant, hop, current, negated)
                return
            kind, phrase = hops[number - 1].type, alignment.types[number - 1]
            shared = None if negated or inside_negation else self._shared(current.name, hop, kind, phrase)
            if shared is None:
                following = self._variable(kind, phrase)
                self.parents[following.name] = current.name
                self._require(following, hop, current, negated)
                if not (negated or inside_negation):
                    self._links.setdefault(current.name, []).append(_Link(hop, phrase, following.name))
            else:
                following = self.variables[shared]
            inside_negation = inside_negation or negated
            current = following

    def hang(self, place: Attachment, kind: str, phrase: Phrase, negated: bool) -> Variable:
        """Add a variable that nothing names, such as the drug in "with no drug"."""
        anchor, new = self.variables[place.anchor], self._variable(kind, phrase)
        head, tail = (anchor, new) if place.outward else (new, anchor)
        self.triplets.append(Triplet(head, place.relation, tail, negated))
        self.parents[new.name] = anchor.name
        return new

    def forget_types(self, schema: Schema, spoken: set[str]) -> None:
        """A type that no phrase names is not required where the same relation leads to nodes of no type as well."""
        for name, variable in list(self.variables.items()):
            triplets = [t for t in self.triplets if variable in (t.head, t.tail)]
            if name in spoken or variable.type is None or not triplets:
                continue
            rows = [(row, triplet) for triplet in triplets for row in schema.relation_rows(triplet.relation or "")]
            if any(is_generic(row.head if triplet.head == variable else row.tail) for row, triplet in rows):
                self._replace(variable, Variable(name))

    def _replace(self, old: Variable, new: Variable) -> None:
        def renamed(term: Term) -> Term:
            return new if term == old else term

        self.variables[new.name] = new
        self.triplets = [replace(t, head=renamed(t.head), tail=renamed(t.tail)) for t in self.triplets]
        self.target = new if self.target == old else self.target

    def query(
        self, conditions: Sequence[Condition], asks_number: bool, score: float, rest: Sequence[str]
    ) -> TripletQuery:
        """The finished query."""
        return TripletQuery(
            tuple(self.triplets),
            self.target,
            tuple(conditions),
            tuple(self.counts),
            "number" if asks_number else "nodes",
            score,
            tuple(rest),
        )

    def _shared(self, parent: str, hop: Hop, kind: str, phrase: Phrase | None) -> str | None:
        for link in self._links.get(parent, ()):
            same = (link.hop.relation, link.hop.forward) == (hop.relation, hop.forward)
            told_apart = link.phrase is not None and phrase is not None and link.phrase != phrase
            child_type = self.variables[link.child].type
            if same and not told_apart and child_type == (None if is_generic(kind) else kind):
                return link.child
        return None

    def _variable(self, kind: str | None, phrase: Phrase | None) -> Variable:
        typed = None if is_generic(kind) else kind
        stem = re.sub(r"\W+", "_", (typed or "x").lower()).strip("_") or "x"
        name, number = stem, 1
        while name in self.variables:
            number += 1
            name = f"{stem}{number}"
        variable = Variable(name, typed)
        self.variables[name] = variable
        self.phrases[name] = phrase
        return variable

    def _require(self, outer: Term, hop: Hop, inner: Variable, negated: bool) -> None:
        """A hop leads from the constant's side (outer) to the target's side (inner)."""
        head, tail = (outer, inner) if hop.forward else (inner, outer)
        self.triplets.append(Triplet(head, hop.relation, tail, negated))


def negated_hop(reading: Reading, mention: tuple[int, int], alignment: Alignment) -> int | None:
    """Which hop of a path a negation before its words forbids: the one farthest out that still follows the negation."""
    found: dict[int, int] = {}
    for number in range(len(alignment.path.hops)):
        relation = alignment.relations[number]
        near = alignment.types[number - 1] if number else None
        places = [mention[0]] if number == 0 else []
        places += [phrase.first for phrase in (relation, near) if phrase is not None]
        for place in places:
            cue = reading.negation_before(place)
            if cue is not None and place < mention[0] + 1:
                found[number] = cue
    return max(found) if found else None
