"""Value ranges of attributes: which unit of a number fits an attribute, and whether a comparison selects anything."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.plan import NUMBERS, Plan, Requirement
from clew.answering.reading.quantities import Quantity, in_units_of
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.amounts import first_number
from clew.store.graph.protocol import Explorable

if TYPE_CHECKING:
    from collections.abc import Sequence

NEARLY_ALL, UNTELLING = 0.97, -2.0
"""Share of values, and score of a comparison that at least this share satisfies. Such a comparison is unlikely."""
UNMET = -1.0
"""Score of a comparison that no value satisfies, except in count and yes/no questions."""
Numbers = NDArray[np.float64]
COMPARED = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


@dataclass
class Extents:
    """Attribute values of a base, read when an attribute is first compared."""

    kb: Explorable
    vocabulary: Vocabulary
    _known: dict[int, Numbers] = field(default_factory=dict)

    def fitted(self, plan: Plan, numbers: Sequence[Quantity]) -> tuple[Plan, float]:
        """Return the plan with numbers in the units of the attributes, and a score of 0 or less."""
        groups: dict[int, list[Requirement]] = {}
        for one in plan.requirements:
            if one.attribute is not None:
                groups.setdefault(one.attribute, []).append(one)
        found = [self._fitted(place, group, numbers, plan) for place, group in groups.items()]
        fitted = {id(before): after for group, _ in found for before, after in group}
        requirements = tuple(fitted.get(id(one), one) for one in plan.requirements)
        return replace(plan, requirements=requirements), sum(cost for _, cost in found)

    def _fitted(
        self, place: int, group: Sequence[Requirement], numbers: Sequence[Quantity], plan: Plan
    ) -> tuple[list[tuple[Requirement, Requirement]], float]:
        """Convert the comparisons of one attribute to one unit.

        Choose the first unit in which some values satisfy all comparisons, but not nearly all values.
        """
        attribute = self.vocabulary.attributes[place]
        compared = [one for one in group if one.quantity is not None]
        units = [in_units_of(numbers[one.quantity], attribute.name) for one in compared if one.quantity is not None]
        options = list(zip(*units, strict=False))
        if not options or attribute.kind not in NUMBERS:
            return [(one, one) for one in group], 0.0
        shares = [self._share(place, compared, values) for values in options]
        tells = [0 < share < NEARLY_ALL for share in shares]
        chosen = options[tells.index(True) if any(tells) else 0]
        values = {id(one): value for one, value in zip(compared, chosen, strict=True)}
        fitted = [(one, replace(one, value=values.get(id(one), one.value))) for one in group]
        if any(tells):
            return fitted, 0.0
        return fitted, UNTELLING if shares[0] else 0.0 if plan.form in ("count", "exists") else UNMET

    def _share(self, place: int, compared: Sequence[Requirement], values: Sequence[float]) -> float:
        """Return the share of an attribute's values that satisfy all comparisons."""
        known = self._values(place)
        satisfied = np.ones(len(known), dtype=np.bool_)
        for one, value in zip(compared, values, strict=True):
            satisfied &= COMPARED[one.operator](known, value)
        return float(satisfied.mean()) if len(known) else 0.0

    def _values(self, place: int) -> Numbers:
        if place not in self._known:
            attribute = self.vocabulary.attributes[place]
            every = self.kb.values(self.kb.nodes(attribute.owner), attribute.name)
            if attribute.is_written:
                every = [first_number(value) for value in every if isinstance(value, str)]
            numbers = [float(x) for x in every if isinstance(x, int | float) and not np.isnan(x)]
            self._known[place] = np.array(numbers, dtype=np.float64)
        return self._known[place]
