"""What is asked for of the nodes that satisfy a query: themselves, the best of them, their number, a value."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.answering.queries.problem import compared_values
from clew.core.query import Best, TripletQuery
from clew.core.types import NodeSet, Value, distinct
from clew.store.graph.protocol import KnowledgeBase

NUMBER = r"[-+]?[0-9][0-9,]*([.][0-9]+)?"
"""A text that is a number: what languages of queries turn into one all alike."""
MOST_VALUES = 5
"""So many different values are put forward as one."""


@dataclass(frozen=True)
class Outcome:
    """The nodes put forward, and the value where one was asked for."""

    nodes: NodeSet
    value: Value | None = None


def finish(kb: KnowledgeBase, query: TripletQuery, nodes: NodeSet, asked: NodeSet | None = None) -> Outcome:
    """What the question asks for of the nodes that satisfy its query, or of the best of them.

    "Is it the highest of them?" asks about one of those that are compared: `asked`.
    """
    match query.asks:
        case "number":
            return Outcome(nodes, len(nodes))
        case "truth":
            return Outcome(nodes, len(nodes if asked is None else nodes & asked) > 0)
        case "value" if query.attribute is not None:
            return Outcome(nodes, _shown(kb.values(nodes, query.attribute)))
        case _:
            return Outcome(nodes)


def best_of(kb: KnowledgeBase, best: Best, nodes: NodeSet) -> NodeSet:
    """The nodes with the most, or the least, of what is compared; those without a value are left out."""
    if best.attribute is not None:
        ids = nodes.array.tolist()
        pairs = list(zip(ids, map(comparable, compared_values(kb, nodes, best.attribute)), strict=True))
        known = [(node, value) for node, value in pairs if value is not None]
        if not known:
            return NodeSet.of([])
        goal = (max if best.most else min)(value for _, value in known)
        return NodeSet.of([node for node, value in known if value == goal])
    counts = edge_counts(kb, best, nodes)
    if not len(counts):
        return nodes
    goal = counts.max() if best.most else counts.min()
    return NodeSet(nodes.array[counts == goal])


def edge_counts(kb: KnowledgeBase, best: Best, nodes: NodeSet) -> NDArray[np.int64]:
    """How many different nodes each of some is joined with by the relation that is counted."""
    found = kb.edges(nodes, best.relation, "out" if best.is_head else "in")
    own, others = (found.heads, found.tails) if best.is_head else (found.tails, found.heads)
    if best.of is not None:
        counted = kb.nodes(best.of).holds(others)
        own, others = own[counted], others[counted]
    packed = distinct(np.sort((own.astype(np.int64) << 32) | others))
    return np.bincount(nodes.array.searchsorted(packed >> 32), minlength=len(nodes))


def comparable(value: Any) -> float | None:
    """A number or a date as a number that keeps its order; None where it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return None if value != value else value
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - datetime.datetime.min) / datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return value.toordinal()
    return float(value.replace(",", "")) if isinstance(value, str) and re.fullmatch(NUMBER, value) else None


def _shown(values: Sequence[Any]) -> Value | None:
    known = [value for value in values if value is not None and value != ""]
    if len(known) == 1 and isinstance(known[0], int | float | bool):
        single: int | float | bool = known[0]
        return single
    texts = list(dict.fromkeys(_text(value) for value in known))
    return ", ".join(texts[:MOST_VALUES]) if texts else None


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return value.isoformat() if isinstance(value, datetime.date | datetime.datetime) else str(value)
