"""A report as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from clew import __version__
from clew.core.notebook import framed
from clew.evaluation.curves import curve_plot, latency_plot
from clew.evaluation.report import Section, trace_text, worst_failures
from clew.evaluation.rows import Row
from clew.evaluation.tables import Table, comparison_table, costs, metric_name, overview, type_table

SHOWN_FOUND = 5


def report_page(sections: Sequence[Section], failures: int = 10) -> str:
    """The page as text."""
    body = "".join(_section(section, failures) for section in sections)
    return _template().substitute(body=body, version=__version__)


@dataclass(frozen=True)
class ShownReport:
    """A report that shows itself in a notebook."""

    sections: Sequence[Section]
    failures: int = 10

    def _repr_html_(self) -> str:
        return framed(report_page(self.sections, self.failures))


@cache
def _template() -> Template:
    return Template((files("clew.evaluation") / "report.html").read_text("utf-8"))


def _section(section: Section, failures: int) -> str:
    parts = [f"<section><h2>{escape(section.title)}</h2>", _table(overview(section), titled=False)]
    parts.append(_table(costs(section)))
    if any(run.rows for _, run in section.runs):
        parts.append(f'<div class="plots">{curve_plot(section)}{latency_plot(section)}</div>')
    parts += [_table(table) for table in (comparison_table(section), type_table(section)) if table.rows]
    for label, run in section.runs:
        rows = worst_failures(run, section.metric, failures)
        if rows:
            parts.append(f"<h3>Worst failures of {escape(label)}, by {escape(metric_name(section.metric))}</h3>")
            parts += [_failure(row) for row in rows]
    return "".join(parts) + "</section>"


def _table(table: Table, *, titled: bool = True) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row).replace("<td>", '<td class="name">', 1) + "</tr>"
        for row in table.rows
    )
    title = f"<h3>{escape(table.title)}</h3>" if titled else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f'{title}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}'


def _failure(row: Row) -> str:
    places = f"gold at {', '.join(map(str, row.places[:10]))}" if row.places else "gold not found"
    more = f" and {row.gold_count - len(row.gold)} more" if row.gold_count > len(row.gold) else ""
    facts = [
        ("gold", "; ".join(row.gold) + more),
        ("found", "; ".join(e.name for e in row.ranking[:SHOWN_FOUND]) or "–"),
    ]
    if row.text is not None:
        facts.append(("written", row.text))
    facts += [("evidence", piece) for entry in row.ranking[:1] for piece in entry.evidence]
    facts += [("fallback", f"{f.step}: {f.reason}; {f.instead}") for f in row.fallbacks]
    if row.error:
        facts.append(("error", row.error))
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    lines = [trace_text(line.depth, line.name, line.seconds, line.details, line.error) for line in row.trace]
    trace = f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""
    kind = f" · {row.type}" if row.type else ""
    return (
        f"<details><summary><b>{escape(row.question)}</b> <small>{escape(row.id + kind)} · {escape(places)}</small>"
        f"</summary><dl>{shown}</dl>{trace}</details>"
    )
