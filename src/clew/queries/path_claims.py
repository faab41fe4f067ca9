"""What relation paths claim: the nodes at their ends, all paths together, as one chain of edges each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from clew.core.types import EMPTY, NodeSet
from clew.queries.claims import TARGET, Block, Claim, Named, Requirement
from clew.queries.relation_paths import Explorer, RelationPath


def claim_of_paths(explorer: Explorer, paths: Sequence[RelationPath], ends: NodeSet) -> Claim:
    """The nodes to which every path leads; where fewer were looked at, only those."""
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
    only = {} if reached == ends else {TARGET: ends}
    return Claim((replace(_chains(paths), only=only, never=never, nameless=nameless),))


def claim_of_walk(path: RelationPath, end: int) -> Claim:
    """One node to which a path leads, whatever else it leads to."""
    return Claim((replace(_chains([path]), only={TARGET: NodeSet.of([end])}),))


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
