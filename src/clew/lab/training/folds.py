"""Folds held out of training for evaluation."""

from __future__ import annotations

import random
from collections.abc import Iterable

from clew.core.errors import InputError


def parse_fold(text: str) -> tuple[int, int]:
    """Parse a fold such as "0/3": its index and the number of folds."""
    fold, _, folds = text.partition("/")
    if not (fold.isdecimal() and folds.isdecimal() and int(fold) < int(folds)):
        raise InputError(f"invalid fold {text!r}: write 0/3, 1/3 or 2/3")
    return int(fold), int(folds)


def names_of_fold(names: Iterable[str], fold: int, folds: int, seed: int) -> set[str]:
    """Return the names in one fold."""
    every = sorted(names)
    return set(random.Random(seed).sample(every, len(every))[fold::folds])
