"""How far the values of attributes reach: what a number in a question can be compared with, and in which unit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.kb.protocol import KnowledgeBase
from clew.reading.plan import Plan, Requirement
from clew.reading.quantities import Quantity, in_units_of
from clew.reading.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

NEARLY_ALL = 0.97
UNTELLING = -2.0
"""What a comparison costs that nearly everything satisfies: nobody asks for it."""
UNMET = -1.0
"""What a comparison costs that nothing satisfies, unless that is what is asked."""
NUMERIC = frozenset({"number", "integer"})
Numbers = NDArray[np.float64]


@dataclass
class Extents:
    """The values of the attributes of a base, sorted, each looked up when it is first compared."""

    kb: KnowledgeBase
    vocabulary: Vocabulary
    _sorted: dict[int, Numbers] = field(default_factory=dict)

    def fitted(self, plan: Plan, numbers: Sequence[Quantity]) -> tuple[Plan, float]:
        """The plan with its numbers as the attributes hold them, and what it costs to mean just this."""
        found = [self._fitted(one, numbers, plan) for one in plan.requirements]
        return replace(plan, requirements=tuple(one for one, _ in found)), sum(cost for _, cost in found)

    def _fitted(self, one: Requirement, numbers: Sequence[Quantity], plan: Plan) -> tuple[Requirement, float]:
        attribute = self.vocabulary.attributes[one.attribute]
        options = [] if one.quantity is None else in_units_of(numbers[one.quantity], attribute.name)
        if not options or attribute.kind not in NUMERIC:
            return one, 0.0
        shares = [self._share(one, option) for option in options]
        for option, share in zip(options, shares, strict=True):
            if 0 < share < NEARLY_ALL:
                return replace(one, value=option), 0.0
        cost = UNTELLING if shares[0] else 0.0 if plan.form in ("count", "exists") else UNMET
        return replace(one, value=options[0]), cost

    def _share(self, one: Requirement, value: float) -> float:
        """Of the values of an attribute, how many satisfy a comparison."""
        known = self._sorted.get(one.attribute)
        if known is None:
            attribute = self.vocabulary.attributes[one.attribute]
            every = self.kb.values(self.kb.nodes(attribute.owner), attribute.name)
            numbers = [float(x) for x in every if isinstance(x, int | float) and not np.isnan(x)]
            known = self._sorted[one.attribute] = np.sort(np.array(numbers, dtype=np.float64))
        low, high, count = np.searchsorted(known, value), np.searchsorted(known, value, "right"), max(1, len(known))
        satisfied = {"<": low, "<=": high, ">": count - high, ">=": count - low, "=": high - low}
        return float(satisfied.get(one.operator, count - (high - low)) / count) if len(known) else 0.0
