"""Answers as escaped HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from clew.core.states import certainty_in_words, headline, sections

STYLE = "font-family:system-ui,sans-serif;line-height:1.5;max-width:52em"
FAINT = "opacity:.65;font-size:.85em"


def answer_card(run: Mapping[str, Any], limit: int = 10) -> str:
    """Render an answer's JSON form as a card with the question, the text, and candidates that unfold their evidence."""
    state, text = run["state"], run["text"]
    parts = [f'<div style="{STYLE}"><p><strong>{escape(run["question"])}</strong></p>']
    for said, style in ((headline(state, text), "font-weight:600"), (text, "font-size:1.15em")):
        parts.append(f'<p style="{style}">{escape(said)}</p>' if said else "")
    sure = certainty_in_words(state, run["certainty"])
    parts.append(f'<p style="{FAINT}">{sure}</p>' if sure else "")
    groups = sections(state, run["answers"], run["matches"] or 0, limit, is_value=run["value"] is not None)
    for title, rows in groups:
        parts.append(f'<p style="{FAINT}">{escape(title)}</p><ol start="{rows[0]["rank"]}" style="padding-left:1.6em">')
        for row in rows:
            evidence = "".join(f"<li>{escape(piece['text'][:400])}</li>" for piece in row["evidence"])
            title = f'{escape(row["name"])} <span style="{FAINT}">{escape(row["type"])} · {row["score"]:.3f}</span>'
            opened = " open" if row["rank"] == 1 else ""
            parts.append(f"<li><details{opened}><summary>{title}</summary><ul>{evidence}</ul></details></li>")
        parts.append("</ol>")
    return "".join([*parts, f'<p style="{FAINT}">{escape(run["method"])}, {run["seconds"]:.3f} s</p></div>'])


def framed(page: str) -> str:
    """Embed a page in a sandboxed frame that runs no scripts."""
    style = "width:100%;border:1px solid #8884;border-radius:8px;height:640px"
    return f'<iframe sandbox="" srcdoc="{escape(page)}" style="{style}"></iframe>'
