"""Line and bar plots as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 340
"""Size of a line plot without its legend, in units of the SVG, which scales to the page."""
LEFT, RIGHT, TOP, BOTTOM = 56, 26, 34, 44
"""Margins for the title, the tick labels and the axis labels."""
LIGHT = ("#2a6fbb", "#d1495b", "#2e8b57", "#a8740a", "#7b4fa3", "#00808f", "#8c564b", "#5a5a5a")
DARK = ("#6ea8e8", "#f08a98", "#6cc596", "#e0b74c", "#b795dd", "#4fc3d4", "#d0a797", "#b0b0b0")
DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True, slots=True)
class Series:
    """A labelled line through points."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a plot. If it is `logarithmic`, all values must be above 0."""

    label: str
    logarithmic: bool = False
    low: float | None = None
    high: float | None = None


def line_plot(title: str, series: Sequence[Series], x: Axis, y: Axis, *, marks: bool = False) -> str:
    """Draw axes, one line per series and a legend. `marks` adds a dot with its values at every point."""
    drawn = [line for line in series if line.points]
    across, x_ticks = _scale(x, [point[0] for line in drawn for point in line.points], LEFT, WIDTH - RIGHT)
    legend_rows = math.ceil(len(drawn) / 3)
    height = HEIGHT + 18 * legend_rows
    up, y_ticks = _scale(y, [point[1] for line in drawn for point in line.points], HEIGHT - BOTTOM, TOP)
    parts = _opening(title, height, LEFT)
    for tick in y_ticks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{up(tick) + 4:.1f}">{_number(tick)}</text>')
    for tick in x_ticks:
        parts.append(
            f'<text class="tick middle" x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 16}">{_number(tick)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="label middle" x="{middle:.0f}" y="{HEIGHT - 10}">{escape(x.label)}</text>')
    centre = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="label middle" transform="translate(14 {centre:.0f}) rotate(-90)">{escape(y.label)}</text>'
    )
    for place, line in enumerate(drawn):
        parts += _line(place, line, across, up, marks)
    for place, line in enumerate(drawn):
        left, below = LEFT + (place % 3) * 194, HEIGHT + 4 + 18 * (place // 3)
        parts.append(f'<path class="line {_look(place)}" d="M{left} {below}h22"{_dash(place)}/>')
        label = line.label if len(line.label) <= 26 else line.label[:25] + "…"
        parts.append(f'<text class="tick" x="{left + 28}" y="{below + 4}">{escape(label)}</text>')
    return "".join(parts) + "</svg>"


def _opening(title: str, height: int, left: int) -> list[str]:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" class="clew-plot"'
    return [
        f'{opening} aria-label="{escape(title, quote=True)}"><style>{_style()}</style>',
        f'<text class="title" x="{left}" y="18">{escape(title)}</text>',
    ]


def _line(
    place: int, line: Series, across: Callable[[float], float], up: Callable[[float], float], marks: bool
) -> list[str]:
    places = [(across(x), up(y)) for x, y in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f'<path class="line {_look(place)}" d="{path}"{_dash(place)}><title>{escape(line.label)}</title></path>']
    if marks:
        parts += [
            f'<circle class="mark {_look(place)}" cx="{left:.1f}" cy="{top:.1f}" r="3.5">'
            f"<title>{escape(line.label)}: {_number(x)}, {_number(y)}</title></circle>"
            for (left, top), (x, y) in zip(places, line.points, strict=True)
        ]
    return parts


def _scale(
    axis: Axis, values: Sequence[float], start: float, end: float
) -> tuple[Callable[[float], float], list[float]]:
    low = axis.low if axis.low is not None else min(values, default=0.0)
    high = axis.high if axis.high is not None else max(values, default=1.0)
    if axis.logarithmic:
        low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        high = max(high, low + 1)
        ticks = [10.0**power for power in range(low, high + 1)]
        return lambda value: start + (math.log10(value) - low) / (high - low) * (end - start), ticks
    if high <= low:
        high = low + 1.0
    step = _round_step((high - low) / 5)
    first = math.ceil(low / step - 1e-9)
    ticks = [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]
    return lambda value: start + (value - low) / (high - low) * (end - start), ticks


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= step - 1e-12)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _look(place: int) -> str:
    return f"s{place % len(LIGHT)}"


def _dash(place: int) -> str:
    pattern = DASHES[place // len(LIGHT) % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _style() -> str:
    def colours(palette: tuple[str, ...]) -> str:
        return "".join(
            f".clew-plot .line.s{n}{{stroke:{colour}}}.clew-plot .mark.s{n}{{fill:{colour}}}"
            for n, colour in enumerate(palette)
        )

    return (
        ".clew-plot{font:12px system-ui,sans-serif;max-width:100%}.clew-plot .line{fill:none;stroke-width:2}"
        ".clew-plot text{fill:#444}.clew-plot .title{font-weight:600;font-size:13px;fill:#111}"
        ".clew-plot .grid{stroke:#8884;stroke-width:1}.clew-plot .end{text-anchor:end}"
        ".clew-plot .middle{text-anchor:middle}"
        f"{colours(LIGHT)}@media(prefers-color-scheme:dark){{.clew-plot text{{fill:#bbb}}"
        f".clew-plot .title{{fill:#eee}}{colours(DARK)}}}"
    )


BAR_LEFT, BAR_RIGHT, ROW = 190, 70, 22
"""Margins of a bar plot for the labels and the numbers, and the height of one bar with its gap."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled value. `deviation` is the length of its whisker."""

    label: str
    value: float
    deviation: float = 0.0


def bar_plot(title: str, bars: Sequence[Bar]) -> str:
    """Draw one row per bar. Negative values extend to the left of the zero line."""
    low = min([0.0, *(bar.value - bar.deviation for bar in bars)])
    high = max([0.0, *(bar.value + bar.deviation for bar in bars)])
    span = (high - low) or 1.0

    def across(value: float) -> float:
        return BAR_LEFT + (value - low) / span * (WIDTH - BAR_LEFT - BAR_RIGHT)

    height = TOP + ROW * len(bars) + 12
    parts = _opening(title, height, 8)
    parts.append(f'<line class="grid" x1="{across(0):.1f}" x2="{across(0):.1f}" y1="{TOP - 4}" y2="{height - 8}"/>')
    for place, bar in enumerate(bars):
        middle = TOP + ROW * place + ROW / 2
        start, end = sorted((across(0), across(bar.value)))
        box = f'x="{start:.1f}" y="{middle - 7:.1f}" width="{max(end - start, 0.5):.1f}" height="14"'
        whisker = f"M{across(bar.value - bar.deviation):.1f} {middle:.1f}H{across(bar.value + bar.deviation):.1f}"
        number = f"{bar.value:.3g}"
        parts.append(f'<text class="end" x="{BAR_LEFT - 8}" y="{middle + 4:.1f}">{escape(bar.label)}</text>')
        parts.append(f'<rect class="mark s0" {box}><title>{escape(bar.label)}: {number}</title></rect>')
        if bar.deviation:
            parts.append(f'<path class="line s1" d="{whisker}"/>')
        parts.append(
            f'<text x="{across(max(bar.value + bar.deviation, 0)) + 6:.1f}" y="{middle + 4:.1f}">{number}</text>'
        )
    return "".join(parts) + "</svg>\n"
