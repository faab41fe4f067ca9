"""Horizontal bars as SVG text, with no dependency: readable in light and dark, on their own or inside a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 640, 190, 70, 34, 22


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled value; `deviation` is drawn as a whisker."""

    label: str
    value: float
    deviation: float = 0.0


def bar_plot(title: str, bars: Sequence[Bar], unit: str = "") -> str:
    """An SVG with one row per bar, negative values to the left of the line."""
    low = min([0.0, *(bar.value - bar.deviation for bar in bars)])
    high = max([0.0, *(bar.value + bar.deviation for bar in bars)])
    span = (high - low) or 1.0

    def across(value: float) -> float:
        return LEFT + (value - low) / span * (WIDTH - LEFT - RIGHT)

    height = TOP + ROW * len(bars) + 12
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" class="clew-bars"'
    parts = [
        f'{opening} aria-label="{escape(title, quote=True)}"><style>{STYLE}</style>',
        f'<text class="title" x="8" y="18">{escape(title)}</text>',
        f'<line class="zero" x1="{across(0):.1f}" x2="{across(0):.1f}" y1="{TOP - 4}" y2="{height - 8}"/>',
    ]
    for place, bar in enumerate(bars):
        middle = TOP + ROW * place + ROW / 2
        start, end = sorted((across(0), across(bar.value)))
        box = f'x="{start:.1f}" y="{middle - 7:.1f}" width="{max(end - start, 0.5):.1f}" height="14"'
        whisker = f"M{across(bar.value - bar.deviation):.1f} {middle:.1f}H{across(bar.value + bar.deviation):.1f}"
        number = f"{bar.value:.3g}{unit}"
        parts.append(f'<text class="end" x="{LEFT - 8}" y="{middle + 4:.1f}">{escape(bar.label)}</text>')
        parts.append(f"<rect {box}><title>{escape(bar.label)}: {number}</title></rect>")
        if bar.deviation:
            parts.append(f'<path class="whisker" d="{whisker}"/>')
        parts.append(
            f'<text x="{across(max(bar.value + bar.deviation, 0)) + 6:.1f}" y="{middle + 4:.1f}">{number}</text>'
        )
    return "".join(parts) + "</svg>\n"


STYLE = (
    ".clew-bars{font:12px system-ui,sans-serif;max-width:100%}.clew-bars text{fill:#444}.clew-bars rect{fill:#2a6fbb}"
    ".clew-bars .title{font-weight:600;font-size:13px;fill:#111}.clew-bars .end{text-anchor:end}"
    ".clew-bars .zero{stroke:#8888}.clew-bars .whisker{stroke:#d1495b;stroke-width:2}"
    "@media(prefers-color-scheme:dark){.clew-bars text{fill:#bbb}.clew-bars .title{fill:#eee}"
    ".clew-bars rect{fill:#6ea8e8}.clew-bars .whisker{stroke:#f08a98}}"
)
