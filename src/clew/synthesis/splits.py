"""Train, validation and test: by question, by template and by entity."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NAMES = ("train", "val", "test")
SHARES = (0.6, 0.2, 0.2)
Row = Mapping[str, Any]
Split = dict[str, list[str]]


def by_question(rows: Sequence[Row], seed: int) -> Split:
    """Every question for itself."""
    return _dealt([[row["id"]] for row in rows], random.Random(f"{seed}|by question"))


def by_template(rows: Sequence[Row], seed: int) -> Split:
    """No template is in two parts."""
    return _dealt(_groups(rows, lambda row: [row["template"]]), random.Random(f"{seed}|by template"))


def by_entity(rows: Sequence[Row], seed: int) -> Split:
    """No entity is named by questions of two parts; questions that share one stay together, link by link."""
    return _dealt(
        _groups(rows, lambda row: [one["key"] for one in row["entities"]]), random.Random(f"{seed}|by entity")
    )


def _groups(rows: Sequence[Row], members: Callable[[Row], Sequence[str]]) -> list[list[str]]:
    """Questions joined wherever they share a member."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for row in rows:
        first, *others = [f"member {name}" for name in members(row)] or [f"question {row['id']}"]
        for other in others:
            parent[root(other)] = root(first)
    groups: dict[str, list[str]] = {}
    for row in rows:
        own = [f"member {name}" for name in members(row)] or [f"question {row['id']}"]
        groups.setdefault(root(own[0]), []).append(row["id"])
    return list(groups.values())


def _dealt(groups: list[list[str]], rng: random.Random) -> Split:
    """Large groups first, each to the part that lacks most of its share."""
    rng.shuffle(groups)
    groups.sort(key=len, reverse=True)
    total = sum(len(group) for group in groups)
    parts: Split = {name: [] for name in NAMES}
    for group in groups:
        lacking = {name: share * total - len(parts[name]) for name, share in zip(NAMES, SHARES, strict=True)}
        parts[max(NAMES, key=lambda name: lacking[name])] += group
    return {name: sorted(ids, key=int) for name, ids in parts.items()}
