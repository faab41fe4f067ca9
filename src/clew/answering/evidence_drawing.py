"""Draw the facts and paths behind an answer as a graph that reads from left to right."""

from __future__ import annotations

from clew.answering.methods.subgraph_reranking.drawing import Picture, draw
from clew.core.errors import NotFoundError
from clew.core.types import Answer, Fact, Path


def draw_evidence(answer: Answer, most: int = 10) -> str:
    """Draw the paths of the first `most` candidates as SVG. Highlight answers. Raise NotFoundError without paths."""
    pieces = [piece for one in answer.candidates[:most] for piece in one.evidence]
    paths = [piece.facts if isinstance(piece, Path) else (piece,) for piece in pieces if isinstance(piece, Path | Fact)]
    facts = list(dict.fromkeys((fact.head, fact.relation, fact.tail) for path in paths for fact in path))
    if not facts:
        raise NotFoundError("no answer has a path to draw: its evidence contains only texts")
    layers = _layers(paths)
    number = {key: place for place, key in enumerate(layers)}
    names = {ref.key: ref.name for head, _, tail in facts for ref in (head, tail)}
    labels = sorted({relation for _, relation, _ in facts})
    answers = {one.node.key for one in answer.matches}
    return draw(
        Picture(
            answer.question,
            [names[key] for key in layers],
            ["answer" if key in answers else "between" for key in layers],
            list(layers.values()),
            [(number[head.key], labels.index(relation), number[tail.key]) for head, relation, tail in facts],
            labels,
        )
    )


def _layers(paths: list[tuple[Fact, ...]]) -> dict[str, int]:
    """Return the largest distance of each node from the start of its path. A fact may be traversed from either end."""
    layers: dict[str, int] = {}
    for path in paths:
        here = path[0].head.key
        if len(path) > 1 and here in (path[1].head.key, path[1].tail.key):
            here = path[0].tail.key
        layers.setdefault(here, 0)
        for depth, fact in enumerate(path, 1):
            here = fact.tail.key if fact.head.key == here else fact.head.key
            layers[here] = max(layers.get(here, 0), depth)
    return layers
