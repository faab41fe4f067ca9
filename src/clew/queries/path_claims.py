"""What relation paths claim: the nodes at their ends, all paths together, as one chain of edges each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from clew.core.query import Best, Condition
from clew.core.types import EMPTY, NodeSet
from clew.queries.claims import TARGET, Block, Claim, Named, Requirement
from clew.queries.relation_paths import Explorer, RelationPath


def claim_of_paths(
    explorer: Explorer,
    paths: Sequence[RelationPath],
    ends: NodeSet | None,
    conditions: tuple[Condition, ...] = (),
    best: Best | None = None,
) -> Claim:
    """The nodes to which every path leads; where `ends` are fewer, only those.

    `conditions` and `best` say something about those nodes' attributes.
    """
    never: dict[str, NodeSet] = {}
    nameless: dict[str, bool] = {}
    walked = [explorer.layers(path) for path in paths]
    for number, (path, layers) in enumerate(zip(paths, walked, strict=True)):
        for name, layer in zip(_names(path, number), layers, strict=True):
            if len(layer.left_out):
                never[name] = layer.left_out | never.get(name, EMPTY)
            if layer.nameless is not None:
                nameless[name] = layer.nameless
    reached = reduce(and_, (layers[-1].nodes for layers in walked))
    only = {} if ends is None or reached == ends else {TARGET: ends}
    block = replace(_chains(paths), only=only, never=never, nameless=nameless, conditions=conditions)
    return Claim((block,), best=best)


def claim_of_walks(walks: Sequence[tuple[RelationPath, int]]) -> Claim:
    """Single nodes, each with a path that leads to it, whatever else that leads to."""
    ends: dict[RelationPath, list[int]] = {}
    for path, end in walks:
        ends.setdefault(path, []).append(end)
    return Claim(tuple(replace(_chains([path]), only={TARGET: NodeSet.of(own)}) for path, own in ends.items()))


def _chains(paths: Sequence[RelationPath]) -> Block:
    """The moves of all paths as edges; they share nothing but their end."""
    types: dict[str, None] = {}
    required: list[Requirement] = []
    for number, path in enumerate(paths):
        here: str | Named = Named(path.topic)
        for move, there in zip(path.moves, _names(path, number), strict=True):
            types[there] = None
            head, tail = (here, there) if move.direction == "out" else (there, here)
            required.append(Requirement(head, move.relation, tail))
            here = there
    return Block(TARGET, types, tuple(required))


def _names(path: RelationPath, number: int) -> list[str]:
    return [*(f"{'yzuvw'[number]}{place}" for place in range(1, len(path.moves))), TARGET]
