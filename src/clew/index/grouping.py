"""Postings of several portions joined group by group, in linear time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LongArray = NDArray[np.int64]


def join_groups(
    offsets: Sequence[LongArray], members: Sequence[Sequence[NDArray[Any]]]
) -> tuple[LongArray, list[NDArray[Any]]]:
    """Where each group begins, and its members: first those of the first portion, then those of the second, …

    Portion p lists the members of group g at offsets[p][g] .. offsets[p][g + 1] in each of its parallel arrays
    members[p].
    """
    total: LongArray = np.sum(offsets, axis=0, dtype=np.int64)
    joined = [np.empty(total[-1], dtype=array.dtype) for array in members[0]]
    free = total[:-1].copy()
    for borders, arrays in zip(offsets, members, strict=True):
        amounts = np.diff(borders)
        places = np.repeat(free - borders[:-1], amounts) + np.arange(borders[-1])
        for target, array in zip(joined, arrays, strict=True):
            target[places] = array
        free += amounts
    return total, joined
