"""What is left out of a training so that the result can be measured on it."""

from __future__ import annotations

import random
from collections.abc import Iterable

from clew.core.errors import InputError


def parse_fold(told: str) -> tuple[int, int]:
    """Which part, and of how many: "0/3"."""
    fold, _, folds = told.partition("/")
    if not (fold.isdecimal() and folds.isdecimal() and int(fold) < int(folds)):
        raise InputError(f"what to leave out is written as 0/3, 1/3 or 2/3, not {told}")
    return int(fold), int(folds)


def names_of_fold(names: Iterable[str], fold: int, folds: int, seed: int) -> set[str]:
    """The names that belong to one part."""
    every = sorted(names)
    return set(random.Random(seed).sample(every, len(every))[fold::folds])
