"""Plans: possible readings of a question as a query, as indexes into a schema's vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from clew.answering.reading.vocabulary import Vocabulary
from clew.core.query import Comparison
from clew.core.schema import words_of

Form = Literal[
    "list",
    "count",
    "exists",
    "value",
    "max",
    "min",
    "most",
    "fewest",
    "compare_max",
    "compare_min",
    "describe",
    "none",
    "average",
    "sum",
    "highest",
    "lowest",
    "different",
    "common",
    "each value",
    "each",
    "ascending",
    "descending",
]
FORMS: tuple[Form, ...] = get_args(Form)
"""Forms of questions. `none` means that the schema cannot express the question. The trained head uses this order. `max`
asks for the node with the highest value, `highest` for that value. `each` asks for the number of neighbors of each
node, `each value` for the number of nodes with each value of an attribute."""
NUMBERS = frozenset({"number", "integer"})
SORTED = NUMBERS | {"date"}
KINDS = {"average": NUMBERS, "sum": NUMBERS, "highest": SORTED, "lowest": SORTED}
"""Kinds of attributes for forms that not every attribute allows."""
OF_VALUES = KINDS.keys() | {"value", "different", "common", "each value"}
"""Forms that ask for values of an attribute of the answer."""
ORDERED = frozenset({"max", "min", "ascending", "descending"})
"""Forms that sort the answer by an attribute."""
COMPARISONS: tuple[Comparison, ...] = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = (*COMPARISONS, "-", "first")
"""Roles of a number: a comparison, `-` if it is not a condition, `first` if it limits the answers ("the three
longest"). The trained head uses this order."""
LETTERS = "ABCDEFGH"
SHORT_DESCRIPTION = 7
"""Maximum words of a relation's description in an option."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A requirement on the answer: the hops that lead to it from a mention, or from any node."""

    mention: int | None
    hops: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on an attribute of the answer or of a node on the way to it, or on a number of neighbors.

    Without an attribute or a hop it limits the number of answers.
    """

    attribute: int | None
    operator: Comparison
    quantity: int | None = None
    """Index of the number or date in the question to compare with."""
    value: str | bool | float | tuple[str, ...] | None = None
    """Other value to compare with: a category, one of several, true or false. Or the number in the attribute's unit."""
    hop: int | None = None
    """The hop from the answer whose end nodes are counted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A question form about the nodes that satisfy all branches and requirements."""

    form: Form
    target: int | None = None
    """Type of the answer."""
    branches: tuple[Branch, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    attribute: int | None = None
    """Attribute of a value, a superlative or a comparison."""
    hop: int | None = None
    """Hop to count for `most`, `fewest` and `each`."""
    mentions: tuple[int, ...] = ()
    """Mentions that the plan is about directly: in a description, a comparison or a plain value."""
    either: bool = False
    """Whether one branch is enough."""
    is_difference: bool = False
    """Whether a value is the difference between the highest and the lowest one."""
    asked: int | None = None
    """Attribute to return of the nodes that a superlative selects: "the city of the oldest singer"."""
    step: int = 0
    """1 to ask for the rows of a table after the selected rows, -1 for the rows before them."""
    answer_hop: int | None = None
    """Hop from the selected rows of a table to the answer: "the last opponent"."""


@dataclass(frozen=True)
class Wording:
    """Converts plans to the text that the deciding encoder reads."""

    vocabulary: Vocabulary

    def of(self, plan: Plan) -> str:
        """Return a plan as text: `count : A ← treats ← substance ; half life hours > N`."""
        joined = " or ".join if plan.either else " ; ".join
        parts = [self._branch(branch, plan) for branch in plan.branches]
        body = joined(parts) if parts else self._type(plan.target)
        if plan.requirements:
            body += " ; " + " ; ".join(map(self._requirement, plan.requirements))
        said = self._asked(plan, body)
        if plan.step:
            said = f"{self._type(plan.target)} {'after' if plan.step > 0 else 'before'} {said}"
        if plan.answer_hop is not None:
            said = f"{self.vocabulary.type_words(self.vocabulary.hops[plan.answer_hop].end)} of {said}"
        return said if plan.asked is None else f"{self.vocabulary.attributes[plan.asked].words} of {said}"

    def _asked(self, plan: Plan, body: str) -> str:
        named = " , ".join(LETTERS[mention] for mention in plan.mentions)
        attribute = "" if plan.attribute is None else self.vocabulary.attributes[plan.attribute].words
        match plan.form:
            case "list" | "none":
                return f"{named} ; {body}" if named and (plan.branches or plan.requirements) else named or body
            case "describe":
                return f"describe {named}"
            case "value" if plan.is_difference:
                return f"difference {attribute} : {named or body}"
            case "value" if named and plan.requirements:
                return f"{attribute} of {named} ; " + " ; ".join(map(self._requirement, plan.requirements))
            case "value":
                return f"{attribute} of {named or body}"
            case "compare_max" | "compare_min":
                return f"{plan.form.removeprefix('compare_')} {attribute} of {named}"
            case "most" | "fewest":
                counted = "" if plan.hop is None else self._hop(plan.hop)
                return f"{plan.form} {counted} of {named}" if named else f"{plan.form} {counted} : {body}"
            case "each":
                return f"count {self._hop(plan.hop or 0)} of each : {body}"
            case _ if attribute:
                return f"{plan.form} {attribute} : {body}"
            case _:
                return f"{plan.form} : {body}"

    def _branch(self, branch: Branch, plan: Plan) -> str:
        start = "any" if branch.mention is None else LETTERS[branch.mention]
        end = ""
        if plan.form == "exists" and len(plan.mentions) == 1:  # from one node to another
            end = f" {LETTERS[plan.mentions[0]]}"
        path = " ".join(self._hop(hop) for hop in branch.hops)
        return f"not {start} {path}" if branch.negated else f"{start} {path}{end}"

    def _hop(self, hop: int) -> str:
        row = self.vocabulary.schema.relations[hop // 2]
        arrow, label = ("→", row.display) if hop % 2 == 0 else ("←", row.inverse or row.display)
        said = " ".join(row.description.split()[:SHORT_DESCRIPTION])
        named = words_of(label or row.name) + (f" ( {said} )" if said else "")
        return f"{arrow} {named} {arrow} {self.vocabulary.type_words(self.vocabulary.hops[hop].end)}"

    def _type(self, target: int | None) -> str:
        return "any" if target is None else self.vocabulary.type_words(self.vocabulary.schema.type_names[target])

    def _requirement(self, requirement: Requirement) -> str:
        name = "first" if requirement.hop is None else f"count {self._hop(requirement.hop)}"
        if requirement.attribute is not None:
            name = self.vocabulary.attributes[requirement.attribute].words
        if requirement.quantity is not None:
            return f"{name} {requirement.operator} number {requirement.quantity + 1}"
        values = requirement.value if isinstance(requirement.value, tuple) else (requirement.value,)
        return f"{name} {requirement.operator} {' or '.join(map(str, values)).lower()}"
