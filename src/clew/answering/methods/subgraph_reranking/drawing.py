"""Show a subgraph, or the evidence of an answer, as a picture (SVG). Show a subgraph as plain values (JSON).

The question's entities are on the left, the candidate on the right, linked nodes at similar heights. Layers are ordered
by the barycentre rule (Sugiyama, Tagawa and Toda 1981) instead of forces. The picture is thus deterministic, boxes do
not overlap, and two hundred nodes take milliseconds.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.answering.methods.subgraph_reranking.features import GRAPH_FEATURES
from clew.answering.methods.subgraph_reranking.graph_to_text import linearize, relation_labels
from clew.answering.methods.subgraph_reranking.subgraph import Subgraph
from clew.core.plots import DARK, LIGHT
from clew.store.graph.protocol import KnowledgeBase

TALLEST = 24
"""Maximum number of nodes in one column. A larger layer uses several columns."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column, counted from the left, and a height in rows. The middle of the picture has height 0."""

    column: int
    row: float


def layered_layout(layers: Sequence[int], links: Sequence[tuple[int, int]]) -> list[Place]:
    """Return a position for each node, from the layers and the links."""
    count = len(layers)
    linked = np.zeros((count, count))
    for one, other in links:
        linked[one, other] = linked[other, one] = 1.0
    groups = [[node for node in range(count) if layers[node] == layer] for layer in sorted(set(layers))]
    heights = np.zeros(count)
    for group in groups:
        heights[group] = _spread(len(group))
    for sweep in range(12):
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
        columns = -(-len(group) // TALLEST)
        rows = -(-len(group) // columns)
        for rank, node in enumerate(ordered):
            # nodes of similar height are next to each other, each column half a row lower than the one before
            row, across = divmod(rank, columns)
            places[node] = Place(column + across, row - (rows - 1) / 2 + (across / columns if columns > 1 else 0.0))
        column += columns
    return [places[node] for node in range(count)]


def _spread(count: int) -> NDArray[np.float64]:
    return np.arange(count, dtype=np.float64) - (count - 1) / 2


FONT, SMALL = 13, 11
"""Font sizes of names, and of relations and the legend, in pixels."""
BOX, ROW, GAP, NARROW, MARGIN = 26, 46, 150, 28, 24
"""Height of a box, distance of rows, of layers and of columns in a layer, and margin, in units of the SVG."""
MANY_LINES = 80
"""Number of lines above which lines are faint. At most this many lines get labels."""
LONGEST_NAME = 34
"""Maximum characters of a name in the drawing. The tooltip shows the full name."""
ALONG = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)
"""Positions of a label along its edge, in order of preference."""
ROLES = {"question entity": "entity", "between": "inner", "candidate": "candidate", "answer": "candidate"}
"""Role of a node as text → style of its box."""


@dataclass(frozen=True)
class Picture:
    """The nodes and edges to draw, from left to right."""

    about: str
    names: Sequence[str]
    roles: Sequence[str]
    """Role of each node, one of `ROLES`."""
    layers: Sequence[int]
    """Layer of each node, counted from the left."""
    edges: Sequence[tuple[int, int, int]]
    """Index of the head, code of the relation and index of the tail."""
    labels: Sequence[str]
    """Text of each relation by its code."""


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float = BOX

    def overlaps(self, other: _Box) -> bool:
        return (
            abs(self.x - other.x) * 2 < self.width + other.width
            and abs(self.y - other.y) * 2 < self.height + other.height
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """All edges between two nodes as one line. Its label lists their relations."""

    one: int
    other: int
    relations: tuple[int, ...]
    forwards: bool
    backwards: bool


def draw_subgraph(kb: KnowledgeBase, subgraph: Subgraph) -> str:
    """Draw the subgraph from left (question entities) to right (candidate). Edges and a legend show the relations."""
    names = [ref.name for ref in kb.refs(subgraph.nodes)]
    heads, tails = subgraph.ends
    return draw(
        Picture(
            f"From {', '.join(names[: len(subgraph.entities)])} to {names[-1]}",
            names,
            [_role(subgraph, node) for node in subgraph.nodes.tolist()],
            _layers(subgraph),
            list(zip(heads.tolist(), subgraph.edges.relations.tolist(), tails.tolist(), strict=True)),
            [relation_labels(kb)[name] for name in kb.schema.relation_names],
        )
    )


def draw(picture: Picture) -> str:
    """Draw a graph as SVG, with a legend of its roles and relations."""
    lines = _lines(picture.edges)
    places = layered_layout(picture.layers, [(line.one, line.other) for line in lines])
    boxes = _boxes(picture.names, picture.layers, places)
    left = min(box.x - box.width / 2 for box in boxes) - MARGIN
    right = max(box.x + box.width / 2 for box in boxes) + MARGIN
    top = min(box.y - box.height / 2 for box in boxes) - MARGIN
    bottom = max(box.y + box.height / 2 for box in boxes) + MARGIN
    colours = {relation: place for place, relation in enumerate(sorted({code for _, code, _ in picture.edges}))}
    legend, legend_height = _legend(picture, colours, left + MARGIN, bottom, right - left - 2 * MARGIN)
    size = f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top + legend_height:.0f}"
    about = escape(picture.about, quote=True)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" width="{right - left:.0f}" role="img"'
    parts = [f'{opening} class="clew-graph" aria-label="{about}"><title>{about}</title><style>{_style()}</style>']
    drawn, written = _edges(lines, boxes, picture.labels, colours)
    parts += [*drawn, *written, *_nodes(picture, boxes), *legend]
    return "".join(parts) + "</svg>\n"


def _layers(subgraph: Subgraph) -> list[int]:
    """Return the position of each node along its path, scaled so that every path ends in the last layer."""
    longest = max((found.distance or 0 for found in subgraph.paths), default=0) or 1
    layers = dict.fromkeys(subgraph.entities, 0)
    for found in subgraph.paths:
        for path in found.paths:
            for depth, node in enumerate(path):
                along = round(depth * longest / max(len(path) - 1, 1))
                layers[node] = min(layers.get(node, longest), along)
    layers[subgraph.candidate] = longest if len(subgraph.nodes) > 1 else 0
    return [layers[node] for node in subgraph.nodes.tolist()]


def _lines(edges: Sequence[tuple[int, int, int]]) -> list[_Line]:
    found: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    for head, relation, tail in edges:
        if head != tail:
            found.setdefault((min(head, tail), max(head, tail)), []).append((relation, head < tail))
    return [
        _Line(
            one,
            other,
            tuple(dict.fromkeys(relation for relation, _ in uses)),
            any(forwards for _, forwards in uses),
            not all(forwards for _, forwards in uses),
        )
        for (one, other), uses in found.items()
    ]


def _boxes(names: Sequence[str], layers: Sequence[int], places: Sequence[Place]) -> list[_Box]:
    widths = [_width(_short(name), FONT) + 20 for name in names]
    columns: dict[int, list[int]] = {}
    for node, place in enumerate(places):
        columns.setdefault(place.column, []).append(node)
    middles: dict[int, float] = {}
    edge, layer = 0.0, layers[columns[0][0]]
    for column, nodes in sorted(columns.items()):
        widest = max(widths[node] for node in nodes)
        edge += (GAP if layers[nodes[0]] != layer else NARROW) if column else 0  # labels need space between layers
        middles[column], edge, layer = edge + widest / 2, edge + widest, layers[nodes[0]]
    return [_Box(middles[place.column], place.row * ROW, width) for place, width in zip(places, widths, strict=True)]


def _edges(
    lines: Sequence[_Line], boxes: Sequence[_Box], labels: Sequence[str], colours: dict[int, int]
) -> tuple[list[str], list[str]]:
    """Return the lines, and the labels that fit without overlap. The legend lists every relation."""
    drawn, written = [], []
    taken = list(boxes)
    for line in sorted(lines, key=lambda line: (abs(boxes[line.one].y - boxes[line.other].y), line.one, line.other)):
        start, end, bend = _ends(boxes[line.one], boxes[line.other])
        middle = ((start[0] + end[0]) / 2 + bend, (start[1] + end[1]) / 2)
        shape = f"M{start[0]:.0f} {start[1]:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
        arrows = ' marker-end="url(#clew-arrow)"' * line.forwards + ' marker-start="url(#clew-arrow)"' * line.backwards
        look = f"r{colours[line.relations[0]] % len(LIGHT)}"
        text = ", ".join(labels[relation] for relation in line.relations)
        faint = " faint" if len(lines) > MANY_LINES else ""
        drawn.append(f'<path class="edge {look}{faint}" d="{shape}"{arrows}><title>{escape(text)}</title></path>')
        shown = _short(text)
        for along in ALONG if len(taken) < len(boxes) + MANY_LINES else ():
            x, y = _on_curve(start, middle, end, along)
            box = _Box(x, y, _width(shown, SMALL) + 6, SMALL + 5)
            if not any(box.overlaps(other) for other in taken):
                taken.append(box)
                plate = f'x="{x - box.width / 2:.0f}" y="{y - box.height / 2:.0f}" height="{box.height}"'
                written.append(f'<rect class="plate" {plate} width="{box.width:.0f}"/>')
                at = f'x="{x:.0f}" y="{y + SMALL / 3:.0f}"'
                written.append(f'<text class="relation {look}" {at}>{escape(shown)}</text>')
                break
    arrow = (
        '<defs><marker id="clew-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path class="arrow" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return [arrow, *drawn], written


def _ends(one: _Box, other: _Box) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return the start and end of a line between two boxes, and its bend if both are in one column."""
    if abs(one.x - other.x) * 2 >= one.width + other.width:
        toward = 1 if other.x > one.x else -1
        return (one.x + toward * one.width / 2, one.y), (other.x - toward * other.width / 2, other.y), 0.0
    bow = min(60.0, 16 + abs(one.y - other.y) / 4)
    return (one.x + one.width / 2, one.y), (other.x + other.width / 2, other.y), bow


def _on_curve(
    start: tuple[float, float], middle: tuple[float, float], end: tuple[float, float], along: float
) -> tuple[float, float]:
    a, b, c = (1 - along) ** 2, 2 * along * (1 - along), along**2
    return a * start[0] + b * middle[0] + c * end[0], a * start[1] + b * middle[1] + c * end[1]


def _nodes(picture: Picture, boxes: Sequence[_Box]) -> list[str]:
    parts = []
    for name, role, box in zip(picture.names, picture.roles, boxes, strict=True):
        look = ROLES[role]
        corner = 4 if look == "candidate" else BOX / 2
        parts.append(
            f'<g class="node {look}"><title>{escape(name)}</title><rect x="{box.x - box.width / 2:.0f}" '
            f'y="{box.y - BOX / 2:.0f}" width="{box.width:.0f}" height="{BOX}" rx="{corner:.0f}"/>'
            f'<text x="{box.x:.0f}" y="{box.y + FONT / 3:.0f}">{escape(_short(name))}</text></g>'
        )
    return parts


def _legend(
    picture: Picture, colours: dict[int, int], left: float, top: float, width: float
) -> tuple[list[str], float]:
    """Return the legend of box styles and relation colours, and its height."""
    parts, x, y = [], left, top + 12
    entries = [(look, role) for role, look in ROLES.items() if role in picture.roles]
    entries += [(f"r{place % len(LIGHT)}", picture.labels[relation]) for relation, place in colours.items()]
    for look, text in entries:
        needed = 26 + _width(_short(text), SMALL) + 18
        if x > left and x + needed > left + width:
            x, y = left, y + 20
        if look.startswith("r"):
            parts.append(f'<path class="edge {look}" d="M{x:.0f} {y:.0f}h18"/>')
        else:
            corner = 2 if look == "candidate" else 6
            box = f'x="{x:.0f}" y="{y - 6:.0f}" width="18" height="12" rx="{corner}"'
            parts.append(f'<g class="node {look}"><rect {box}/></g>')
        parts.append(f'<text class="legend" x="{x + 24:.0f}" y="{y + 4:.0f}">{escape(_short(text))}</text>')
        x += needed
    return parts, y - top + 18


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _width(text: str, size: int) -> float:
    """Estimate the width of a text. East Asian characters count twice as wide as Latin ones."""
    return sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.56 for letter in text) * size


def _style() -> str:
    def colours(palette: tuple[str, ...]) -> str:
        return "".join(
            f".clew-graph .edge.r{n}{{stroke:{colour}}}.clew-graph .relation.r{n}{{fill:{colour}}}"
            for n, colour in enumerate(palette)
        )

    return (
        f".clew-graph{{font:{FONT}px system-ui,sans-serif;max-width:100%;height:auto;background:#fff}}"
        ".clew-graph .edge{fill:none;stroke-width:1.5}.clew-graph .faint{stroke-width:1;opacity:.45}"
        ".clew-graph .arrow{fill:#888}"
        ".clew-graph .node text,.clew-graph .relation{text-anchor:middle}"
        f".clew-graph .relation{{font-size:{SMALL}px}}.clew-graph .plate{{fill:#fffd}}"
        f".clew-graph .legend{{font-size:{SMALL}px;fill:#444}}.clew-graph .heading{{font-weight:600;fill:#111}}"
        ".clew-graph .node text{fill:#222}.clew-graph .node rect{stroke-width:1.5}"
        ".clew-graph .inner rect{fill:#f4f4f4;stroke:#999}"
        ".clew-graph .entity rect{fill:#dcebfb;stroke:#2a6fbb}"
        ".clew-graph .candidate rect{fill:#fde7c8;stroke:#a8740a;stroke-width:2.5}"
        f"{colours(LIGHT)}@media(prefers-color-scheme:dark){{.clew-graph{{background:#181a1d}}"
        ".clew-graph .node text{fill:#eee}.clew-graph .plate{fill:#181a1ddd}.clew-graph .legend{fill:#bbb}"
        ".clew-graph .heading{fill:#eee}.clew-graph .inner rect{fill:#2b2e33;stroke:#777}"
        ".clew-graph .entity rect{fill:#1d3a5a;stroke:#6ea8e8}.clew-graph .candidate rect{fill:#4d3a12;stroke:#e0b74c}"
        f"{colours(DARK)}}}"
    )


def subgraph_json(kb: KnowledgeBase, subgraph: Subgraph) -> dict[str, Any]:
    """Return nodes with their roles, edges, distances, features and the text."""
    refs = kb.refs(subgraph.nodes)
    keys = {ref.id: ref.key for ref in refs}
    names = kb.schema.relation_names
    return {
        "nodes": [
            {"key": ref.key, "name": ref.name, "type": ref.type, "role": _role(subgraph, ref.id)} for ref in refs
        ],
        "edges": [
            {"head": keys[head], "relation": names[code], "tail": keys[tail]} for head, code, tail in subgraph.triples
        ],
        "paths": [
            {
                "from": keys.get(found.source, ""),
                "distance": found.distance,
                "count": found.count,
                "kept": [[keys[node] for node in path] for path in found.paths],
            }
            for found in subgraph.paths
        ],
        "disconnected": subgraph.disconnected,
        "complete": subgraph.complete,
        "features": {name: round(feature(subgraph), 6) for name, feature in GRAPH_FEATURES.items()},
        "text": linearize(kb, subgraph),
    }


def _role(subgraph: Subgraph, node: int) -> str:
    if node == subgraph.candidate:
        return "candidate"
    return "question entity" if node in subgraph.entities else "between"
