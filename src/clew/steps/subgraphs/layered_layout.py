"""Places for the nodes of a subgraph: from left to right by distance from the question, linked nodes at one height.

Layers are ordered by the barycentre rule (Sugiyama, Tagawa and Toda 1981) rather than by forces: the picture is the
same every time, boxes never overlap, and two hundred nodes take milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SWEEPS = 12
TALLEST = 24
"""Nodes in one column; a fuller layer is spread over several columns side by side."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column, counted from the left, and a height in rows; the middle of the picture has height 0."""

    column: int
    row: float


def layered_layout(layers: Sequence[int], links: Sequence[tuple[int, int]], tallest: int = TALLEST) -> list[Place]:
    """A place for each node, given its layer and which nodes are linked."""
    count = len(layers)
    linked = np.zeros((count, count))
    for one, other in links:
        linked[one, other] = linked[other, one] = 1.0
    groups = [[node for node in range(count) if layers[node] == layer] for layer in sorted(set(layers))]
    heights = np.zeros(count)
    for group in groups:
        heights[group] = _spread(len(group))
    for sweep in range(SWEEPS):
        for group in groups if sweep % 2 == 0 else groups[::-1]:
            pull = linked[group] @ heights
            links_of = linked[group].sum(axis=1)
            wanted = np.where(links_of > 0, pull / np.maximum(links_of, 1.0), heights[group])
            order = np.argsort(wanted, kind="stable")
            heights[np.array(group)[order]] = _spread(len(group))
    places: dict[int, Place] = {}
    column = 0
    for group in groups:
        ordered = sorted(group, key=lambda node: heights[node])
        columns = -(-len(group) // tallest)
        rows = -(-len(group) // columns)
        for rank, node in enumerate(ordered):
            # neighbours in height stand side by side, each column half a row lower than the one before
            row, across = divmod(rank, columns)
            places[node] = Place(column + across, row - (rows - 1) / 2 + (across / columns if columns > 1 else 0.0))
        column += columns
    return [places[node] for node in range(count)]


def _spread(count: int) -> NDArray[np.float64]:
    return np.arange(count, dtype=np.float64) - (count - 1) / 2
