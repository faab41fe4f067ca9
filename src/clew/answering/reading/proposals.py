"""Combine the scores of a question's parts into whole plans, the most likely first.

An encoder scores hops, attributes, types and forms separately. This module combines them: paths of hops for every
mention, paths of several mentions that end at the same type, negations, requirements, and the form. If there is a
graph, it excludes paths that reach no node.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.encoders import Floats
from clew.answering.reading.plan import (
    COMPARISONS,
    FORMS,
    KINDS,
    NUMBERS,
    OF_VALUES,
    OPERATORS,
    ORDERED,
    SORTED,
    Branch,
    Form,
    Plan,
    Requirement,
)
from clew.answering.reading.scoring import MentionScores, Scores
from clew.answering.reading.vocabulary import Vocabulary, is_surely_key

REQUIRED = 32
"""Maximum number of requirement sets per plan."""
PATHS = 10
"""Maximum number of paths of each mention to combine with paths of other mentions."""
FIRST, SECOND = 60, 30
"""Maximum number of one-hop and two-hop prefixes to extend in a large schema."""
DOUBT = 0.12
"""Minimum probability of a form or requirement to try."""
RARE = 0.04
"""Minimum probability of a negation to try."""
DROPPED = -3.0
"""Score change for each omitted mention."""
DOUBLED = -1.5
"""Score change for using two paths from one mention."""
LEAST = 0.05
"""Minimum probability that a boolean attribute must be true, and that it must be false."""
JOINED = 0.5
"""Score change for negating all names that are joined with a negated name."""
ALIKE = -0.3
"""Score change for negating a name by the same relation as another name, instead of by the likeliest relation."""
UNNAMED, SUMMED = -1.0, -1.0
"""Score change for a superlative of rows by an attribute that the question does not name, and for sums over rows."""
NEARER, NOWHERE = 0.5, -50.0
"""Weight of preferring attributes or relations for a superlative, and the score if there are none."""
COUNTED = -1.0
"""Score change for comparing two names by the number of their edges instead of by an attribute."""
STEPPED = 1.0
"""Score change for the row next to a row, if the question has a word for it."""
EXACTLY = -2.0
"""Score change for requiring an exact number of neighbors: "chromosome 15" is more frequent than "15 genes"."""
RANGE = 1.0
"""Score added if two numbers form a range, and subtracted if they are compared with two attributes."""
SHORTER = -0.7
"""Score change per word by which a value is shorter than a value of another attribute that contains it."""
CALLED = 1.0
"""Score change for a value directly after the name of its attribute: "the home team Leith"."""
RARER, RAREST = 0.25, -1.5
"""Score change of a relation per factor e that it has fewer edges than its most frequent rival, and the lower limit."""
OF_RELATED = -0.7
"""Score change for each related type whose attributes are compared: the country of the maker of a car."""
CONTAINED, IGNORED_PART = -0.7, -1.5
"""Score change for requiring that a value contains words of the question, and for not requiring it."""
SUPERLATIVES = ORDERED | {"most", "fewest", "each"}
OF_NUMBERS: dict[Form, Form] = {"most": "max", "fewest": "min", "max": "max", "min": "min"}
"""Forms whose answers may be what rows with an extreme number refer to, with the form for the rows."""
OF_ROWS: dict[Form, Form] = {"most": "most", "fewest": "fewest", "max": "most", "min": "fewest"}
"""Forms whose answers may have the most or fewest of some rows, or the highest or lowest sum or average over these."""
PASSED = -1.0
"""Score change for counting nodes that are two hops from the answer."""
LIMITED = SUPERLATIVES | {"list", "value", "common"}
"""Forms whose answers may be limited to the first N."""


Path = tuple[int, ...]
"""Hops in order."""
Paths = list[tuple[Path, float]]
"""Paths with their log-probabilities, best first."""
Leads = Callable[[int, Path], bool]
"""Return whether hops from a mention reach a node."""


@dataclass(frozen=True)
class Proposal:
    """A plan and the sum of the log-probabilities of its parts."""

    plan: Plan
    score: float


@dataclass(frozen=True)
class Proposer:
    """Builds plans over one vocabulary."""

    vocabulary: Vocabulary
    leaving: dict[int, tuple[int, ...]] = field(init=False)
    """Type → the hops that start there."""
    ends: NDArray[np.int32] = field(init=False)
    starts: NDArray[np.int32] = field(init=False)
    owners: NDArray[np.int32] = field(init=False)
    """The type of nodes that each attribute describes."""
    sorters: NDArray[np.int32] = field(init=False)
    """The type of nodes that each attribute sorts. The row of a node in its table only sorts."""
    rarity: NDArray[np.float32] = field(init=False)
    """Score change of a hop whose relation has fewer edges than another relation between the same types."""
    is_ordered: NDArray[np.bool_] = field(init=False)
    """Whether an attribute can be compared with a number."""
    is_number: NDArray[np.bool_] = field(init=False)
    """Whether an attribute can be added up."""
    is_key: NDArray[np.bool_] = field(init=False)
    """Whether an attribute is called like a key. Its values are asked for by name only."""
    has_extremes: NDArray[np.bool_] = field(init=False)
    """Whether something can be the highest or lowest by an attribute: not by true or false, nor by a list."""

    def __post_init__(self) -> None:
        """Index the hops by their start type."""
        code = self.vocabulary.schema.type_code
        leaving: dict[int, list[int]] = {}
        for place, hop in enumerate(self.vocabulary.hops):
            leaving.setdefault(code[hop.start], []).append(place)
        object.__setattr__(self, "leaving", {start: tuple(hops) for start, hops in leaving.items()})
        object.__setattr__(self, "ends", np.array([code[hop.end] for hop in self.vocabulary.hops], dtype=np.int32))
        object.__setattr__(self, "starts", np.array([code[hop.start] for hop in self.vocabulary.hops], dtype=np.int32))
        sorters = np.array([code[one.owner] for one in self.vocabulary.attributes], dtype=np.int32)
        is_row = np.array([one.is_row for one in self.vocabulary.attributes], dtype=np.bool_)
        object.__setattr__(self, "sorters", sorters)
        object.__setattr__(self, "owners", np.where(is_row, -1, sorters))
        object.__setattr__(self, "rarity", _rarity(self.vocabulary))
        is_ordered = np.array([one.kind in SORTED for one in self.vocabulary.attributes], dtype=np.bool_)
        object.__setattr__(self, "is_ordered", is_ordered)
        is_number = np.array([one.kind in NUMBERS for one in self.vocabulary.attributes], dtype=np.bool_)
        object.__setattr__(self, "is_number", is_number)
        keys = [is_surely_key(one.name) for one in self.vocabulary.attributes]
        object.__setattr__(self, "is_key", np.array(keys, dtype=np.bool_))
        has_extremes = [one.kind != "boolean" and not one.is_list for one in self.vocabulary.attributes]
        object.__setattr__(self, "has_extremes", np.array(has_extremes, dtype=np.bool_))

    def propose(self, scores: Scores, most: int, leads: Leads = lambda _mention, _hops: True) -> list[Proposal]:
        """Return the likeliest plans, best first, without duplicates."""
        paths = [self.paths(scores, place, leads) for place in range(len(scores.mentions))]
        shares = np.delete(scores.forms, FORMS.index("none"))  # words cannot rule out a schema
        shares = np.exp(scores.forms - np.logaddexp.reduce(shares))
        likely = [form for form, share in zip(FORMS, shares, strict=True) if form != "none" and share > DOUBT / 4]
        found = self._of_forms(likely, scores, paths)
        if not found:  # the schema fits none of these forms
            found = self._of_forms([form for form in FORMS if form != "none"], scores, paths)
        if scores.differs:
            found |= self._differences(scores)
        kept = [(plan, score) for plan, score in found.items() if _is_even(plan, scores)]
        best = sorted(kept, key=lambda pair: -pair[1])[:most]
        return [Proposal(plan, score) for plan, score in best]

    def _of_forms(self, forms: Sequence[Form], scores: Scores, paths: Sequence[Paths]) -> dict[Plan, float]:
        found: dict[Plan, float] = {}
        for form in forms:
            likely = float(scores.forms[FORMS.index(form)])
            for plan, score in self._of_form(form, scores, paths):
                for variant, more in ((plan, 0.0), *self._denied_alike(plan, scores)):
                    total = score + likely + more + self._parts_score(variant, scores)
                    found[variant] = max(found.get(variant, -np.inf), total)
        return found

    def paths(self, scores: Scores, mention: int, leads: Leads) -> Paths:
        """Return the likeliest paths from a mention, with log-probabilities among the paths considered."""
        own = scores.mentions[mention]
        table, begin = own.paths + self.rarity, self._begin(own)
        starts = sorted(begin, key=lambda hop: -table[3, hop])[:FIRST]
        begun = [
            (first, second, float(table[3, first] + table[4, second]))
            for first in starts
            for second in self.leaving.get(int(self.ends[first]), ())
        ]
        begun = sorted(begun, key=lambda row: -row[2])[:SECOND]
        three: Paths = [
            ((first, second, third), score + float(table[5, third] + own.lengths[2]))
            for first, second, score in begun
            for third in self.leaving.get(int(self.ends[second]), ())
        ]
        every = sorted(self._short(own, begin, FIRST) + three, key=lambda pair: -pair[1])
        leading = (pair for pair in every[: 6 * PATHS] if leads(mention, pair[0]))
        return _normalised(list(itertools.islice(leading, 2 * PATHS)))

    def _short(self, mention: MentionScores, begin: Sequence[int], most: int) -> Paths:
        """Return the paths of one hop, and of two hops after the `most` likeliest first hops."""
        table, lengths = mention.paths + self.rarity, mention.lengths
        starts = sorted(begin, key=lambda hop: -table[1, hop])[:most]
        pairs = [(first, second) for first in starts for second in self.leaving.get(int(self.ends[first]), ())]
        found: Paths = [((hop,), float(table[0, hop] + lengths[0])) for hop in begin]
        return found + [((a, b), float(table[1, a] + table[2, b] + lengths[1])) for a, b in pairs]

    def _begin(self, mention: MentionScores) -> list[int]:
        """Return the hops that a path from a mention may start with."""
        hops = self.leaving.get(mention.type, ())
        return [hop for hop in hops if mention.first is None or hop in mention.first]

    def _parts_score(self, plan: Plan, scores: Scores) -> float:
        """Return the log-probability of a plan's choice of rare parts.

        A plan without a part also pays for its absence. Otherwise plans with the part could not win.
        """
        owners = {self.owners[one.attribute] for one in plan.requirements if one.attribute is not None}
        unnamed = {
            branch.negated
            for branch in plan.branches
            if branch.mention is None and (branch.negated or self.starts[branch.hops[0]] not in owners)
        }
        parts = [(plan.either, scores.either), (True in unnamed, scores.lacking), (False in unnamed, scores.related)]
        parts.append((plan.asked is not None, scores.valued))
        denied = {branch.mention for branch in plan.branches if branch.negated}
        named = {branch.mention for branch in plan.branches} - {None}
        parts += [(mention in denied, scores.mentions[mention].negated) for mention in named if mention is not None]
        shares = [share if has_part else 1 - share for has_part, share in parts]
        return float(np.log(np.maximum(shares, RAREST_PART)).sum())

    # Forms

    def _of_form(self, form: Form, scores: Scores, paths: Sequence[Paths]) -> Iterator[tuple[Plan, float]]:
        if form == "describe":
            for place in range(len(scores.mentions)):
                yield Plan(form, mentions=(place,)), DROPPED * (len(scores.mentions) - 1)
        elif form in ("compare_max", "compare_min"):
            yield from self._comparisons(form, scores)
        elif form in OF_VALUES:
            yield from self._values(form, scores, paths)
        elif form == "exists":
            yield from self._questions(scores, paths)
        elif form in SUPERLATIVES:
            for plan, score in self._bodies(form, scores, paths):
                yield from self._superlatives(plan, score, scores)
            for plan, score in self._joined(form, scores, paths, PATHS) if form in ("max", "min") else ():
                for rows in self._rows(plan):
                    for required, more in self._required(rows, scores):
                        yield from self._superlatives(required, score + more, scores)
            if form in OF_NUMBERS:
                yield from self._extremes(OF_NUMBERS[form], scores, paths)
            if form in OF_ROWS:
                yield from self._totals(OF_ROWS[form], scores, paths)
        else:
            yield from self._bodies(form, scores, paths)
            if form == "count":
                yield from self._values("sum", scores, paths, scores.named_attributes)
            if form == "list" and scores.step:
                yield from self._steps(scores, paths)

    def _extremes(self, form: Form, scores: Scores, paths: Sequence[Paths]) -> Iterator[tuple[Plan, float]]:
        """Yield what the rows with the highest or lowest number refer to: "the county with the most cases"."""
        for plan, score in self._joined(form, scores, paths, PATHS):
            for rows in self._rows(plan, self._between) if plan.target not in self._between else ():
                own = (self.owners == rows.target) & self.is_ordered
                for attribute, likely in self._likeliest(scores.extremes, own, 2):
                    unnamed = 0.0 if attribute in scores.named_attributes else UNNAMED
                    for required, more in self._required(replace(rows, attribute=attribute), scores):
                        yield required, score + likely + more + unnamed

    def _totals(self, form: Form, scores: Scores, paths: Sequence[Paths]) -> Iterator[tuple[Plan, float]]:
        """Yield what has the most of the selected rows, or the highest sum: "the customer with the most tents"."""
        likeliest = self._likeliest(scores.counted, np.isin(self.ends, list(self._between)), 3)
        plans = [(Plan(form, int(self.ends[hop])), 0.0) for hop, _ in likeliest]
        plans += [pair for pair in self._joined(form, scores, paths, PATHS) if pair[0].target in self._between]
        for plan, score in plans:
            numbers = (self.owners == plan.target) & self.is_number
            summed = self._likeliest(scores.extremes, numbers, 2)
            for rows, more in self._required(plan, scores):
                told = [branch.hops[-1] for branch in rows.branches]  # each answer has rows of its own
                open_hops = (self.ends == plan.target) & ~np.isin(np.arange(len(self.ends)), told)
                for hop, likely in self._likeliest(scores.counted, open_hops, 2):
                    kind = int(self.starts[hop])
                    found = replace(rows, target=kind, hop=hop, of_rows=True)
                    total = score + more + likely + 0.3 * float(scores.types[kind]) + SUMMED
                    if rows.branches or rows.requirements:
                        yield found, total
                    yield from ((replace(found, attribute=attribute), total + own) for attribute, own in summed)
                    for attribute, own in summed if scores.averages else ():
                        yield replace(found, attribute=attribute, average=True), total + own

    def _steps(self, scores: Scores, paths: Sequence[Paths]) -> Iterator[tuple[Plan, float]]:
        """Yield plans for the rows next to selected rows of a table, for nodes next to these, and for their values."""
        code = self._ordered
        places = [place for place, mention in enumerate(scores.mentions) if mention.type == code]
        plans = [(Plan("list", code, mentions=(place,)), DROPPED * (len(scores.mentions) - 1)) for place in places]
        for plan, score in self._joined("list", scores, paths, PATHS):
            plans += [(rows, score) for rows in (self._rows(plan) if plan.target != code else (plan,))]
        own = self.owners == code
        for plan, score in plans:
            for required, more in self._required(plan, scores):
                if required.mentions or required.branches or required.requirements:
                    found, total = replace(required, step=scores.step), score + more + STEPPED
                    yield found, total
                    if found.answer_hop is None:
                        for hop, likely in self._likeliest(scores.types[self.ends], self._leave(code), 2):
                            yield replace(found, answer_hop=hop), total + likely
                        for attribute, likely in self._likeliest(scores.values, own, 2):
                            yield replace(found, asked=attribute), total + likely

    @cached_property
    def _between(self) -> frozenset[int]:
        """The types of rows that may connect things: all types with relations to others, but with none from others."""
        heads = {int(self.starts[hop]) for hop in range(0, len(self.starts), 2)}
        return frozenset(heads - {int(self.ends[hop]) for hop in range(0, len(self.ends), 2)})

    @cached_property
    def _ordered(self) -> int | None:
        """The type of the rows of a table in an order."""
        return self.vocabulary.schema.type_code.get(self.vocabulary.ordered or "")

    def _rows(self, plan: Plan, codes: Collection[int] = ()) -> Iterator[Plan]:
        """Yield a plan for the rows from which a hop leads to the nodes of the given plan.

        `codes` are the types of rows, otherwise the type of the rows of a table in an order.
        """
        codes = codes or (() if self._ordered is None else (self._ordered,))
        last = {branch.hops[-1] for branch in plan.branches}
        hops = last if plan.branches else np.flatnonzero(self.ends == plan.target).tolist()
        if len(last) > 1 or any(len(branch.hops) == 1 for branch in plan.branches):
            return
        branches = tuple(replace(branch, hops=branch.hops[:-1]) for branch in plan.branches)
        for hop in hops:
            if self.starts[hop] in codes and self.vocabulary.hops[hop].direction == "out":
                yield replace(plan, target=int(self.starts[hop]), branches=branches, answer_hop=hop)

    def _superlatives(self, plan: Plan, score: float, scores: Scores) -> Iterator[tuple[Plan, float]]:
        """Yield superlatives by an attribute or by a number of edges: "the most people".

        Prefer attributes or edges, depending on which are more similar to the question.
        """
        sorters, hops = (self.sorters == plan.target) & self.has_extremes, self._leave(plan.target)
        by_attribute, by_edges = (
            float(np.logaddexp.reduce(raw, initial=NOWHERE)) for raw in (scores.extremes[sorters], scores.counted[hops])
        )
        both = float(np.logaddexp(by_attribute, by_edges))
        found: list[tuple[Plan, float]] = []
        if plan.form in ORDERED:
            for attribute, likely in self._likeliest(scores.extremes, sorters, 2):
                found.append((replace(plan, attribute=attribute), score + likely + NEARER * (by_attribute - both)))
        else:
            onward = self._onward(plan.target)
            for hop, likely in self._likeliest(scores.counted, hops | np.isin(np.arange(len(hops)), list(onward)), 3):
                passed = (onward[hop], PASSED) if hop in onward else (None, 0.0)
                total = score + likely + passed[1] + NEARER * (by_edges - both)
                found.append((replace(plan, hop=hop, through=passed[0]), total))
        yield from found
        if scores.valued > DOUBT and plan.form != "each":
            for attribute, likely in self._likeliest(scores.values, self.owners == plan.target, 2):
                yield from ((replace(one, asked=attribute), before + likely) for one, before in found[:1])

    def _onward(self, kind: int | None) -> dict[int, int]:
        """Return the hops that lead from neighbors of a type to further types, with the hop to the neighbors."""
        first = self.leaving.get(-1 if kind is None else kind, ())
        near = {kind, *(int(self.ends[hop]) for hop in first)}
        found: dict[int, int] = {}
        for hop in first:
            for second in self.leaving.get(int(self.ends[hop]), ()):
                if self.ends[second] not in near:
                    found.setdefault(second, hop)
        return found

    def _leave(self, kind: int | None) -> NDArray[np.bool_]:
        """Return a mask of the hops that start at a type."""
        allowed = np.zeros(len(self.ends), dtype=np.bool_)
        allowed[list(self.leaving.get(-1 if kind is None else kind, ()))] = True
        return allowed

    def _comparisons(self, form: Form, scores: Scores) -> Iterator[tuple[Plan, float]]:
        by_type: dict[int, list[int]] = {}
        for place, mention in enumerate(scores.mentions):
            by_type.setdefault(mention.type, []).append(place)
        for kind, places in by_type.items():
            if len(places) >= 2:
                left = DROPPED * (len(scores.mentions) - len(places))
                for attribute, likely in self._likeliest(scores.extremes, (self.sorters == kind) & self.is_ordered, 3):
                    yield Plan(form, kind, attribute=attribute, mentions=tuple(places)), left + likely
                counting: Form = "most" if form == "compare_max" else "fewest"
                for hop, likely in self._likeliest(scores.counted, self._leave(kind), 2):
                    yield Plan(counting, kind, hop=hop, mentions=tuple(places)), left + likely + COUNTED

    def _values(
        self, form: Form, scores: Scores, paths: Sequence[Paths], among: Collection[int] | None = None
    ) -> Iterator[tuple[Plan, float]]:
        """Yield plans for values of a mention, or of the nodes that conditions select, `among` some attributes."""
        asked_for = ~self.is_key | np.isin(np.arange(len(self.owners)), list(scores.named_attributes))
        for place, mention in enumerate(scores.mentions if form == "value" else ()):
            left = DROPPED * (len(scores.mentions) - 1)
            own = Plan("value", mention.type, mentions=(place,))
            allowed = (self.owners == mention.type) & asked_for
            left += NEARER * _preferred(mention.values, allowed)
            for attribute, likely in self._likeliest(mention.values, allowed, 4):
                for plan, more in self._required(replace(own, attribute=attribute), scores):
                    target = plan.target if plan.requirements else None
                    yield replace(plan, target=target), left + likely + more
        attributes = self.vocabulary.attributes
        is_fitting = np.array([one.kind in KINDS.get(form, (one.kind,)) for one in attributes], dtype=np.bool_)
        is_fitting &= among is None or np.isin(np.arange(len(attributes)), list(among))
        for plan, score in self._bodies(form, scores, paths, few=4) if is_fitting.any() else ():
            compared = {one.attribute for one in plan.requirements}  # "which opened in 1968" does not ask when
            allowed = (self.owners == plan.target) & is_fitting & asked_for
            likelihood = score + NEARER * _preferred(scores.values, allowed) + (DOUBLED if form == "value" else 0.0)
            for attribute, likely in self._likeliest(scores.values, allowed, 2):
                is_known = form == "value" and attribute in compared
                asked = replace(plan, form="list") if is_known else replace(plan, attribute=attribute)
                yield asked, likelihood + likely

    def _differences(self, scores: Scores) -> Iterator[tuple[Plan, float]]:
        """Yield plans for the difference between a number of two names."""
        kinds = np.array([one.kind for one in self.vocabulary.attributes])
        numbers = np.isin(kinds, list(NUMBERS))
        for pair in itertools.combinations(range(len(scores.mentions)), 2):
            first, second = (scores.mentions[place].type for place in pair)
            left = DROPPED * (len(scores.mentions) - 2)
            for attribute, likely in self._likeliest(scores.values, (self.owners == first) & numbers, 3):
                if first == second:
                    yield Plan("value", first, attribute=attribute, mentions=pair, is_difference=True), left + likely

    def _questions(self, scores: Scores, paths: Sequence[Paths]) -> Iterator[tuple[Plan, float]]:
        """Yield yes/no plans: whether one mention leads to another, or whether any node matches."""
        for first, second in itertools.permutations(range(len(scores.mentions)), 2):
            goal = scores.mentions[second].type
            left = DROPPED * (len(scores.mentions) - 2)
            for path, score in self.all_paths_to(scores, first, goal)[:PATHS]:
                yield Plan("exists", goal, (Branch(first, path),), mentions=(second,)), score + left
        if len(scores.mentions) < 2 or scores.quantities:
            yield from self._bodies("exists", scores, paths, few=4)

    def all_paths_to(self, scores: Scores, mention: int, goal: int) -> Paths:
        """Return paths of one or two hops that end at a type, including paths that the graph does not have."""
        own = scores.mentions[mention]
        short = self._short(own, self.leaving.get(own.type, ()), SECOND)
        found = [(path, score) for path, score in short if self.ends[path[-1]] == goal]
        return _normalised(sorted(found, key=lambda pair: -pair[1])[: 2 * PATHS])

    # Bodies

    def _bodies(
        self, form: Form, scores: Scores, paths: Sequence[Paths], few: int = PATHS
    ) -> Iterator[tuple[Plan, float]]:
        """Yield plans with branches and requirements, and their scores."""
        for plan, score in self._joined(form, scores, paths, few):
            kind = 0.0 if plan.target is None or len(scores.types) < 2 else 0.3 * float(scores.types[plan.target])
            for variant, more in ((plan, 0.0), *self._unnamed(plan, scores)):
                for required, extra in self._required(variant, scores):
                    yield required, score + kind + more + extra

    def _joined(self, form: Form, scores: Scores, paths: Sequence[Paths], few: int) -> Iterator[tuple[Plan, float]]:
        count = len(scores.mentions)
        if count == 0 or form not in ("list", "exists"):
            for kind, likely in self._likeliest(scores.types, np.ones(len(scores.types), dtype=bool), 3):
                yield Plan(form, kind), likely + DROPPED * count
        for place in range(count):
            left = DROPPED * (count - 1)
            for path, score in paths[place][:few]:
                yield Plan(form, int(self.ends[path[-1]]), (Branch(place, path),)), score + left
            yield from self._denied(form, scores, paths[place][:5], place, place, left)
            yield from self._all_but(form, scores, place, left)
            for (one, first), (other, second) in itertools.combinations(paths[place][:5], 2):
                if self.ends[one[-1]] == self.ends[other[-1]] and one[-1] != other[-1]:
                    branches = (Branch(place, one), Branch(place, other))
                    joined = Plan(form, int(self.ends[one[-1]]), branches)
                    yield joined, first + second + DOUBLED + left
                    if scores.either > DOUBT:
                        yield replace(joined, either=True), max(first, second) + left
        for pair in itertools.combinations(range(count), 2):
            yield from self._pairs(form, scores, paths, pair, few)
        for three in itertools.combinations(range(count), 3):
            yield from self._triples(form, scores, paths, three, DROPPED * (count - 3))

    def _pairs(
        self, form: Form, scores: Scores, paths: Sequence[Paths], some: tuple[int, int], few: int
    ) -> Iterator[tuple[Plan, float]]:
        one, other = some
        left = DROPPED * (len(scores.mentions) - 2)
        for (first, own), (second, its) in itertools.product(paths[one][:few], paths[other][:few]):
            if self.ends[first[-1]] == self.ends[second[-1]]:
                joined = Plan(form, int(self.ends[first[-1]]), (Branch(one, first), Branch(other, second)))
                yield joined, own + its + left
                if scores.either > DOUBT:
                    yield replace(joined, either=True), own + its + left
        for kept, denied in ((one, other), (other, one)):
            yield from self._denied(form, scores, paths[kept][:few], kept, denied, left)

    def _denied(
        self, form: Form, scores: Scores, paths: Paths, kept: int, denied: int, left: float
    ) -> Iterator[tuple[Plan, float]]:
        """Yield plans that exclude the nodes that a mention leads to by a negated hop.

        `kept` is the mention of the positive path, `denied` the negated mention. Both may be the same.
        """
        mention = scores.mentions[denied]
        if mention.negated < RARE:
            return
        for path, own in paths:
            allowed = self._leave(mention.type) & (self.ends == self.ends[path[-1]])
            allowed[path[-1]] = False
            for hop, likely in self._likeliest(mention.denied + self.rarity, allowed, 2):
                branches = (Branch(kept, path), Branch(denied, (hop,), negated=True))
                plan = Plan(form, int(self.ends[path[-1]]), branches)
                yield plan, own + likely + left

    def _denied_alike(self, plan: Plan, scores: Scores) -> Iterator[tuple[Plan, float]]:
        """Yield variants of a plan with negated branches.

        Either negate all names joined with a negated name, or negate a name by the hops of a positive name of its type.
        """
        denied = [branch for branch in plan.branches if branch.negated and branch.mention is not None]
        for one in denied:
            group = next((group for group in scores.groups if one.mention in group), ())
            if len(group) > 1:
                others = tuple(branch for branch in plan.branches if branch.mention not in group)
                joined = tuple(Branch(mention, one.hops, negated=True) for mention in group)
                added = len(group) - sum(branch.mention in group for branch in plan.branches)
                yield replace(plan, branches=(*others, *joined)), JOINED - DROPPED * added
            for kept in plan.branches:
                is_alike = kept.mention is not None and self._type(scores, kept) == self._type(scores, one)
                if not kept.negated and is_alike and kept.hops != one.hops:
                    alike = replace(one, hops=kept.hops)
                    branches = tuple(alike if branch is one else branch for branch in plan.branches)
                    yield replace(plan, branches=branches), ALIKE

    @staticmethod
    def _type(scores: Scores, branch: Branch) -> int | None:
        return None if branch.mention is None else scores.mentions[branch.mention].type

    def _all_but(self, form: Form, scores: Scores, denied: int, left: float) -> Iterator[tuple[Plan, float]]:
        """Yield plans for all nodes of a type except the nodes that a mention leads to."""
        mention = scores.mentions[denied]
        if mention.negated < RARE:
            return
        for hop, likely in self._likeliest(mention.denied + self.rarity, self._leave(mention.type), 3):
            kind = float(scores.types[self.ends[hop]])
            plan = Plan(form, int(self.ends[hop]), (Branch(denied, (hop,), negated=True),))
            yield plan, likely + kind + left

    def _triples(
        self, form: Form, scores: Scores, paths: Sequence[Paths], some: tuple[int, ...], left: float
    ) -> Iterator[tuple[Plan, float]]:
        """Yield plans with three mentions. Some of them may be negated."""
        options = [[(Branch(place, path), score) for path, score in paths[place][:4]] for place in some]
        for place, own in zip(some, options, strict=True):
            mention = scores.mentions[place]
            if mention.negated > RARE:
                hops = self._likeliest(mention.denied + self.rarity, self._leave(mention.type), 2)
                own += [(Branch(place, (hop,), negated=True), likely) for hop, likely in hops]
        for chosen in itertools.product(*options):
            ends = {int(self.ends[branch.hops[-1]]) for branch, _ in chosen}
            if len(ends) == 1 and not all(branch.negated for branch, _ in chosen):
                yield Plan(form, ends.pop(), tuple(branch for branch, _ in chosen)), sum(s for _, s in chosen) + left

    def _unnamed(self, plan: Plan, scores: Scores) -> Iterator[tuple[Plan, float]]:
        """Yield the plan with a relation that the answer must not have, or must have to any node."""
        for share, hops, negated in ((scores.lacking, scores.lacked, True), (scores.related, scores.relating, False)):
            least = RARE if negated else DOUBT
            if share > least and plan.target is not None and not plan.either:
                for hop, likely in self._likeliest(hops, self.ends == plan.target, 2):
                    yield replace(plan, branches=(*plan.branches, Branch(None, (hop,), negated))), likely

    def _required(self, plan: Plan, scores: Scores) -> Iterator[tuple[Plan, float]]:
        """Yield the plan with sets of requirements, also on related nodes. Omitting a likely one lowers the score."""
        options: list[list[tuple[tuple[Requirement, ...], float]]] = []
        passed = [branch for branch in plan.branches if not branch.negated]
        kinds = {plan.target} | {int(self.ends[hop]) for branch in passed for hop in branch.hops}
        kinds |= {int(self.starts[branch.hops[0]]) for branch in passed if branch.mention is None}
        named = {int(self.starts[branch.hops[0]]) for branch in plan.branches}
        near = {kind: path for kind, path in self._near(plan, scores).items() if kind not in kinds | named}
        here = np.isin(self.owners, [kind for kind in (*kinds, *near) if kind is not None])
        compared = np.concatenate((here & self.is_ordered, self._leave(plan.target)))
        for place, quantity in enumerate(scores.quantities):
            none, first = (float(quantity.operators[OPERATORS.index(name)]) for name in ("-", "first"))
            choices: list[tuple[tuple[Requirement, ...], float]] = [((), max(none, -4.0))]
            if np.exp(first) > DOUBT and plan.form in LIMITED:
                choices.append(((Requirement(None, "<=", place),), first))
            if np.exp(none) + np.exp(first) < 1 - DOUBT:
                operators = [at for at in range(len(COMPARISONS)) if np.exp(quantity.operators[at]) > DOUBT]
                for at in operators or [int(np.argmax(quantity.operators[: len(COMPARISONS)]))]:
                    for what, likely in self._likeliest(quantity.compared, compared, 3):
                        hop = what - len(self.owners)
                        own = (None, hop) if hop >= 0 else (what, None)
                        requirement = Requirement(own[0], COMPARISONS[at], place, hop=own[1])
                        exactly = EXACTLY if hop >= 0 and COMPARISONS[at] == "=" else 0.0
                        choices.append(((requirement,), likely + float(quantity.operators[at]) + exactly))
            options.append(choices)
        for switch in np.flatnonzero(here & (np.exp(scores.switches[1:]) > DOUBT)).tolist():
            likely = float(scores.switches[1 + switch])
            truths = ((True, max(scores.positive, LEAST)), (False, max(1 - scores.positive, LEAST)))
            required = [
                ((Requirement(switch, "=", value=true),), likely + float(np.log(share))) for true, share in truths
            ]
            options.append([((), float(np.log1p(-np.exp(min(likely, -LEAST))))), *required])
        said: list[tuple[int, str]] = []
        for attribute, value in scores.categories:
            if here[attribute] and (attribute, value) in scores.denied:
                options.append([((), -2.0), ((Requirement(attribute, "!=", value=value),), -0.3)])
            elif here[attribute]:
                said.append((attribute, value))
        options += [self._value_choices(one, scores.called) for one in _said_once(said)]
        for phrase in dict.fromkeys(phrase for _, phrase in scores.parts):
            owners = [owner for owner, part in scores.parts if part == phrase and self.owners[owner] in kinds]
            contained = [((Requirement(owner, "contains", value=phrase),), CONTAINED) for owner in owners]
            options += [[((), IGNORED_PART), *contained]] if contained else []
        found: list[tuple[tuple[Requirement, ...], float]] = [((), 0.0)]
        for choices in options:
            longer = [
                ((*chosen, *some), score + more)
                for chosen, score in found
                for some, more in choices
                if not _same_attribute(chosen, some)
            ]
            found = sorted(longer, key=lambda pair: -pair[1])[:REQUIRED]
        for chosen, score in found:
            told = {int(self.owners[one.attribute]) for one in chosen if one.attribute is not None}
            joined = tuple(Branch(None, near[kind]) for kind in sorted(told & near.keys()))
            more = score + _between(chosen) + OF_RELATED * len(joined)
            yield replace(plan, branches=(*plan.branches, *joined), requirements=chosen), more
            if joined and scores.lacking > RARE / 4:
                denied = tuple(replace(one, negated=True) for one in joined)
                yield replace(plan, branches=(*plan.branches, *denied), requirements=chosen), more

    def _near(self, plan: Plan, scores: Scores) -> dict[int, Path]:
        """Return the types related to the answer, also through rows between, with the likeliest hops from each."""
        if plan.target is None or plan.of_rows or plan.answer_hop is not None or plan.either:
            return {}
        found: dict[int, Path] = {}
        hops = self._likeliest(scores.relating, self.ends == plan.target, len(self.ends))
        for hop, _ in hops:
            found.setdefault(int(self.starts[hop]), (hop,))
        for hop, _ in hops:
            between = int(self.starts[hop])
            for first in np.flatnonzero(self.ends == between).tolist() if between in self._between else ():
                found.setdefault(int(self.starts[first]), (first, hop))
        return found

    def _value_choices(
        self, said: Mapping[int, Sequence[str]], called: Collection[tuple[int, str]]
    ) -> list[tuple[tuple[Requirement, ...], float]]:
        """Return the conditions that values in a question may be: on one of several attributes, or none."""
        longest = max(len(value.split()) for values in said.values() for value in values)
        choices: list[tuple[tuple[Requirement, ...], float]] = [((), -2.0)]
        for attribute, values in said.items():
            each = tuple(Requirement(attribute, "=", value=value) for value in values)
            score = -0.3 + SHORTER * (longest - max(len(value.split()) for value in values)) * (len(said) > 1)
            score += CALLED * any((attribute, value) in called for value in values)
            if len(values) == 1 or self.vocabulary.attributes[attribute].is_list:
                choices.append((each, score))
            if len(values) > 1:
                choices.append(((replace(each[0], value=tuple(values)),), score))
        return choices

    @staticmethod
    def _likeliest(raw: Floats, allowed: NDArray[np.bool_], most: int) -> list[tuple[int, float]]:
        """Return the best allowed items, with log-probabilities among the allowed items."""
        places = np.flatnonzero(allowed)
        if not len(places) or not len(raw):
            return []
        values = raw[places].astype(np.float64)
        values = values - np.logaddexp.reduce(values)
        order = np.argsort(-values, kind="stable")[:most]
        return [(int(places[place]), float(values[place])) for place in order]


SURELY_DENIED = 0.98
"""Probability of negation above which joined names cannot be positive."""
RAREST_PART = 0.001
"""Lower limit for the probability that a plan has a part, or lacks it."""


def _preferred(raw: Floats, allowed: NDArray[np.bool_]) -> float:
    """Return the log-probability that one of the allowed items is meant instead of any other."""
    if not allowed.any():
        return 0.0
    return float(np.logaddexp.reduce(raw[allowed]) - np.logaddexp.reduce(raw))


def _normalised(paths: Paths) -> Paths:
    """Turn the scores of paths into log-probabilities among them."""
    values = np.array([score for _, score in paths])
    values -= np.logaddexp.reduce(values)
    return [(path, float(value)) for (path, _), value in zip(paths, values, strict=True)]


def _is_even(plan: Plan, scores: Scores) -> bool:
    """Return whether a plan treats joined names alike: all negated, or all positive.

    Reject positive joined names if they are negated with a probability above SURELY_DENIED.
    """
    for group in scores.groups:
        said = {branch.negated for branch in plan.branches if branch.mention in group}
        is_denied = len(group) > 1 and scores.mentions[group[0]].negated > SURELY_DENIED
        if len(group) > 1 and (len(said) > 1 or (is_denied and said == {False})):
            return False
    return True


def _said_once(said: Sequence[tuple[int, str]]) -> list[dict[int, list[str]]]:
    """Group values by the words that say them. These words are a value of only one of several attributes.

    Different values of one attribute are one group, unless other attributes have them too.
    """
    groups: list[tuple[set[str], dict[int, list[str]]]] = []
    for attribute, value in sorted(said, key=lambda pair: -len(pair[1].split())):
        words = set(value.lower().split())
        same = next((own for every, own in groups if words <= every and own.keys() != {attribute}), None)
        if same is None:
            groups.append((words, {attribute: [value]}))
        else:
            same.setdefault(attribute, [value])
    found: list[dict[int, list[str]]] = []
    for _, own in groups:
        alike = next((one for one in found if len(own) == 1 and one.keys() == own.keys()), None)
        if alike is None:
            found.append(own)
        else:
            for attribute, values in own.items():
                alike[attribute] += values
    return found


def _same_attribute(chosen: Sequence[Requirement], some: Sequence[Requirement]) -> bool:
    """Return whether two values are required of one attribute."""
    said = {one.attribute for one in chosen if isinstance(one.value, str) and one.operator == "="}
    return any(one.attribute in said and isinstance(one.value, str) and one.operator == "=" for one in some)


def _between(requirements: Sequence[Requirement]) -> float:
    """Return the score for two compared numbers: they are most often the two ends of one range."""
    compared = [one for one in requirements if one.quantity is not None]
    if len(compared) != 2:
        return 0.0
    first, second = compared
    if first.attribute != second.attribute:
        return -RANGE
    return RANGE if first.operator in (">", ">=") and second.operator in ("<", "<=") else 0.0


def _rarity(vocabulary: Vocabulary) -> Floats:
    """Return the score of each hop that prefers the most frequent of several relations between two types."""
    most: dict[frozenset[str], int] = {}
    for row in vocabulary.schema.relations:
        ends = frozenset((row.head, row.tail))
        most[ends] = max(most.get(ends, 1), row.count)
    costs = [
        RARER * np.log(max(row.count, 1) / most[frozenset((row.head, row.tail))]) for row in vocabulary.schema.relations
    ]
    return np.repeat(np.maximum(np.array(costs, dtype=np.float32), RAREST), 2)
