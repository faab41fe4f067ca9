"""The paper's statistics of a set of questions: length, answers, diversity, relational against textual words."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from statistics import fmean, median
from typing import Any

from clew.core.errors import SourceError

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Statistics:
    """Of one set of questions; `entropy` in bits, over words; `relational_share` of the words of the requirements."""

    name: str
    questions: int
    mean_words: float
    median_words: float
    mean_answers: float
    several_answers: float
    """The share of questions with more than one answer."""
    entropy: float
    type_token_ratio: float
    relational_share: float | None = None
    lengths: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Without the single values."""
        shown = {name: value for name, value in asdict(self).items() if name not in ("lengths", "answers")}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in shown.items()}


def shannon_entropy(counts: Iterable[int]) -> float:
    """-Σ p log₂ p of a distribution given by counts."""
    amounts = [count for count in counts if count]
    total = sum(amounts)
    return -sum(count / total * math.log2(count / total) for count in amounts) if total else 0.0


def describe(
    name: str, questions: Sequence[str], answers: Sequence[int], relational_share: float | None = None
) -> Statistics:
    """The statistics of questions with these numbers of answers."""
    words = Counter(word for question in questions for word in _WORD.findall(question.lower()))
    lengths = tuple(len(question.split()) for question in questions)
    return Statistics(
        name=name,
        questions=len(questions),
        mean_words=fmean(lengths) if lengths else 0.0,
        median_words=float(median(lengths)) if lengths else 0.0,
        mean_answers=fmean(answers) if answers else 0.0,
        several_answers=fmean(count > 1 for count in answers) if answers else 0.0,
        entropy=shannon_entropy(words.values()),
        type_token_ratio=len(words) / words.total() if words else 0.0,
        relational_share=relational_share,
        lengths=lengths,
        answers=tuple(answers),
    )


def describe_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> Statistics:
    """The statistics of synthetic questions."""
    return describe(
        name,
        [row["question"] for row in rows],
        [len(row["answers"]) for row in rows],
        _relational_share(rows),
    )


def _relational_share(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Words of the relational requirement against those of both, averaged over the questions (the paper's figure 5)."""
    shares = []
    for row in rows:
        relational = len(row["wording"]["relational"].split())
        textual = sum(len(one["text"].split()) for one in row["textual"]["properties"]) if row["textual"] else 0
        shares.append(relational / (relational + textual))
    return fmean(shares) if shares else None


def stark_statistics(folder: Path, count: int, seed: int = 0) -> list[Statistics]:
    """Those of the real STaRK questions below a folder, each over as many as ours: diversity depends on n."""
    found = []
    for place in sorted(folder.glob("*")):
        files = [place / "stark_qa" / f"stark_qa.csv{end}" for end in ("", ".gz")]
        file = next((file for file in files if file.is_file()), None)
        if file is not None:
            rows = _read(file)
            chosen = random.Random(seed).sample(rows, min(count, len(rows)))
            found.append(describe(f"STaRK {place.name}", [query for query, _ in chosen], [n for _, n in chosen]))
    return found


def _read(file: Path) -> list[tuple[str, int]]:
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""))
        return [(row["query"], len(ast.literal_eval(row["answer_ids"]))) for row in reader]
    except (KeyError, ValueError, SyntaxError, TypeError) as error:
        raise SourceError(f"is no stark_qa.csv: {error}", file=file) from error


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
