"""The data card: what a benchmark was made from, how, and what holds of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.synthesis.statistics import Statistics


@dataclass(frozen=True)
class Made:
    """A finished benchmark with everything its card says."""

    base: str
    rows: Sequence[Mapping[str, Any]]
    seed: int
    settings: Mapping[str, str]
    notes: Sequence[str]
    """Of the base: attribution and licence."""
    acceptance: Mapping[str, Any]
    gates: Mapping[str, Sequence[str]]
    statistics: Sequence[Statistics]
    remarks: Sequence[str] = ()
    """What could not be done as asked."""


INTRODUCTION = """\
{count} synthetic questions, made by `clew synth` in the four steps of STaRK's construction (Wu et al. 2024, §3.3): a
relational requirement sampled on the graph, a textual requirement from a gold node's text, both fused into a question,
the other candidates filtered by judges that must agree.
"""
LIMITS = """\
The gold answers are what the graph says: an edge that is missing there is missing here. Negation means that no such
edge is known. Entities that a question names are never its answers. Textual requirements without a model are
quotations, which favours methods that match words.
"""
FIGURES = """\
Diversity depends on the number of questions, so real STaRK's are taken over as many.

![length](plots/query_length.svg) ![answers](plots/answers.svg)
"""


def data_card(made: Made) -> str:
    """As Markdown, the same for the same benchmark."""
    parts = [
        f"# Questions over {made.base}\n",
        INTRODUCTION.format(count=len(made.rows)),
        "## How\n",
        _table(("setting", "value"), list(made.settings.items())),
        *(f"- {remark}\n" for remark in made.remarks),
        "## Questions\n",
        _table(("kind", "questions"), sorted(Counter(row["type"] for row in made.rows).items())),
        _table(("template", "questions"), Counter(row["metapath"] for row in made.rows).most_common()),
        "## Acceptance\n",
        _table(("step", "questions"), list(made.acceptance.items())),
        "## Gates\n",
        _table(("gate", "questions that fail it"), [(gate, len(ids)) for gate, ids in made.gates.items()]),
        "## Statistics\n",
        statistics_table(made.statistics),
        FIGURES,
        "## Limits\n",
        LIMITS,
        *(["## Source\n", *(f"{note}\n" for note in made.notes)] if made.notes else []),
    ]
    return "\n".join(parts)


def statistics_table(statistics: Sequence[Statistics]) -> str:
    """The sets side by side."""
    heading = (
        "set",
        "n",
        "words",
        "answers",
        "several answers",
        "entropy (bits)",
        "type–token ratio",
        "relational share",
    )
    rows = [
        (
            one.name,
            one.questions,
            f"{one.mean_words:.1f}",
            f"{one.mean_answers:.2f}",
            f"{100 * one.several_answers:.0f} %",
            f"{one.entropy:.2f}",
            f"{one.type_token_ratio:.3f}",
            "—" if one.relational_share is None else f"{100 * one.relational_share:.0f} %",
        )
        for one in statistics
    ]
    return _table(heading, rows)


def _table(heading: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"

    return line(heading) + line(["---"] * len(heading)) + "".join(line(row) for row in rows)
