"""Distributions as SVG text, with no dependency: one line per set of questions, readable in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 320, 52, 20, 34, 42
COLOURS = ("#2a6fbb", "#d1495b", "#2e8b57", "#a8740a", "#7b4fa3", "#00808f")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#666}.title{font-weight:600;font-size:13px}"
    "path{fill:none;stroke-width:2}.grid{stroke:#8884}"
)


def distribution(values: Sequence[int], highest: int) -> list[float]:
    """The share of each value from 0 to `highest`; what is above counts as highest."""
    shares = [0.0] * (highest + 1)
    for value in values:
        shares[min(value, highest)] += 1 / len(values)
    return shares


def distribution_plot(title: str, label: str, series: Mapping[str, Sequence[int]], highest: int) -> str:
    """Shares of questions by a whole number, one stepped line per set."""
    lines = {name: distribution(values, highest) for name, values in series.items() if values}
    top = max((max(shares) for shares in lines.values()), default=1.0) or 1.0
    height = HEIGHT + 18 * ((len(lines) + 2) // 3)

    def across(value: float) -> float:
        return LEFT + value / (highest + 1) * (WIDTH - LEFT - RIGHT)

    def up(share: float) -> float:
        return HEIGHT - BOTTOM - share / top * (HEIGHT - TOP - BOTTOM)

    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    parts = [
        f'{frame} aria-label="{escape(title, quote=True)}"><style>{STYLE}</style>',
        f'<text class="title" x="{LEFT}" y="18">{escape(title)}</text>',
    ]
    for part in range(5):
        share = top * part / 4
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(share):.1f}" y2="{up(share):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(share) + 4:.1f}" text-anchor="end">{100 * share:.0f} %</text>')
    step = max(1, (highest + 1) // 10)
    for value in range(0, highest + 1, step):
        more = "+" if value == highest else ""
        middle = across(value + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value}{more}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(label)}</text>')
    for place, (name, shares) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = "".join(f"V{up(share):.1f}H{across(value + 1):.1f}" for value, share in enumerate(shares))
        parts.append(f'<path stroke="{colour}" d="M{LEFT} {up(0):.1f}{path}"><title>{escape(name)}</title></path>')
        left, below = LEFT + (place % 3) * 194, HEIGHT + 6 + 18 * (place // 3)
        parts.append(f'<path stroke="{colour}" d="M{left} {below - 4}h22"/>')
        parts.append(f'<text x="{left + 28}" y="{below}">{escape(name[:28])}</text>')
    return "".join(parts) + "</svg>\n"
