"""Answers as HTML for notebooks: plain values in, escaped markup out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = "font-family:system-ui,sans-serif;line-height:1.5;max-width:52em"
FAINT = "opacity:.65;font-size:.85em"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One ranked answer in words."""

    name: str
    type: str
    score: float
    evidence: Sequence[str]


def answer_card(question: str, text: str | None, rows: Sequence[AnswerRow], footer: str, most: int = 10) -> str:
    """A question with its answers, each of which opens its evidence."""
    parts = [f'<div style="{STYLE}"><p><strong>{escape(question)}</strong></p>']
    if text is not None:
        parts.append(f'<p style="font-size:1.15em">{escape(text)}</p>')
    parts.append('<ol style="padding-left:1.6em">')
    for place, row in enumerate(rows[:most]):
        evidence = "".join(f"<li>{escape(piece)}</li>" for piece in row.evidence)
        title = f'{escape(row.name)} <span style="{FAINT}">{escape(row.type)} · {row.score:.3f}</span>'
        opened = " open" if place == 0 else ""
        parts.append(f"<li><details{opened}><summary>{title}</summary><ul>{evidence}</ul></details></li>")
    parts.append(f'</ol><p style="{FAINT}">{escape(footer)}</p></div>')
    return "".join(parts)


def framed(page: str, height: int = 640) -> str:
    """A whole page inside another one, where it can run nothing."""
    style = "width:100%;border:1px solid #8884;border-radius:8px"
    return f'<iframe sandbox="" srcdoc="{escape(page)}" style="{style};height:{height}px"></iframe>'
