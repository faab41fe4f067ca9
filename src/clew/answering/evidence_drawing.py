"""Draw the facts and paths behind an answer as a graph that reads from left to right."""

from __future__ import annotations

from html import escape

from clew.answering.methods.subgraph_reranking.drawing import layered_layout
from clew.core.errors import NotFoundError
from clew.core.types import Answer, Fact, Path

COLUMN, ROW, WIDTH, HEIGHT, MARGIN = 330, 56, 200, 30, 20
"""Distance of columns and of rows, size of a box, and margin, in units of the SVG."""
LONGEST = 30
"""Maximum characters of a name in the drawing. The tooltip shows the full name."""
STYLE = (
    ".clew-evidence{font:13px system-ui,sans-serif;background:#fff}.clew-evidence rect{fill:#f4f4f4;stroke:#999}"
    ".clew-evidence .answer rect{fill:#fde7c8;stroke:#a8740a;stroke-width:2.5}.clew-evidence text{fill:#222}"
    ".clew-evidence .by{font-size:11px;fill:#2a6fbb}.clew-evidence path{stroke:#888;fill:none;stroke-width:1.5}"
)


def draw_evidence(answer: Answer, most: int = 10) -> str:
    """Draw the paths of the first `most` candidates as SVG. Highlight answers. Raise NotFoundError without paths."""
    pieces = [piece for one in answer.candidates[:most] for piece in one.evidence]
    paths = [piece.facts if isinstance(piece, Path) else (piece,) for piece in pieces if isinstance(piece, Path | Fact)]
    facts = list(dict.fromkeys((fact.head, fact.relation, fact.tail) for path in paths for fact in path))
    if not facts:
        raise NotFoundError("no answer has a path to draw: its evidence contains only texts")
    layers = _layers(paths)
    nodes = list(layers)
    number = {key: place for place, key in enumerate(nodes)}
    names = {ref.key: ref.name for head, _, tail in facts for ref in (head, tail)}
    links = [(number[head.key], number[tail.key]) for head, _, tail in facts]
    places = layered_layout([layers[key] for key in nodes], links)
    top = min(place.row for place in places)
    spots = [(MARGIN + place.column * COLUMN, MARGIN + (place.row - top) * ROW) for place in places]
    width, height = max(x for x, _ in spots) + WIDTH + MARGIN, max(y for _, y in spots) + HEIGHT + MARGIN
    put_forward = {one.node.key for one in answer.matches}
    about = escape(answer.question, quote=True)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="clew-evidence" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'{opening} width="{width:.0f}" role="img" aria-label="{about}"><title>{about}</title><style>{STYLE}</style>'
    ]
    for (head, relation, tail), (one, other) in zip(facts, links, strict=True):
        parts.append(_arrow(spots[one], spots[other], f"{relation}", f"{head.name} {relation} {tail.name}"))
    for key, (x, y) in zip(nodes, spots, strict=True):
        name = names[key]
        look = ' class="answer"' if key in put_forward else ""
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        parts.append(
            f'<g{look}><title>{escape(name)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="6"/><text x="{x + 8:.0f}" y="{y + 20:.0f}">{escape(short)}</text></g>'
        )
    return "".join(parts) + "</svg>\n"


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


def _arrow(start: tuple[float, float], end: tuple[float, float], label: str, said: str) -> str:
    forward = end[0] > start[0]
    x1, x2 = (start[0] + WIDTH, end[0]) if forward else (start[0], end[0] + WIDTH)
    y1, y2 = start[1] + HEIGHT / 2, end[1] + HEIGHT / 2
    tip = -6 if forward else 6
    return (
        f'<g><title>{escape(said)}</title><path d="M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}"/>'
        f'<path d="M{x2 + tip:.0f} {y2 - 4:.0f}L{x2:.0f} {y2:.0f}L{x2 + tip:.0f} {y2 + 4:.0f}"/>'
        f'<text class="by" text-anchor="middle" x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 4:.0f}">'
        f"{escape(label)}</text></g>"
    )
