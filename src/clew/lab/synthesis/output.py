"""Write a benchmark to disk.

questions.jsonl                       input of `clew eval`, with template, gold query, gold paths, texts, votes, role
stark_qa/stark_qa.csv, split/*.index  STaRK's files
split-by-template/, split-by-entity/  the same splits without a template, or an entity, in two parts
statistics.json, plots/*.svg          statistics, next to those of the real STaRK questions if available
README.md                             the data card
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.disk import write_whole
from clew.core.errors import CorruptError
from clew.core.texts import parse_json
from clew.lab.synthesis.statistics import Statistics, distribution_plot
from clew.lab.training.labelled import sharing


class ProgressLog:
    """Stores results by the hash of their inputs."""

    def __init__(self, file: Path) -> None:
        """Read the stored results and remove a partial last line."""
        self.file = file
        self.known: dict[str, Mapping[str, Any]] = {}
        whole = 0
        if file.is_file():
            data = file.read_bytes()
            whole = data.rfind(b"\n") + 1
            for number, line in enumerate(data[:whole].splitlines(), 1):
                try:
                    row = parse_json(line)
                    self.known[row["key"]] = row["result"]
                except (ValueError, KeyError, TypeError) as error:
                    raise CorruptError(f"{file}, line {number}, is damaged: delete the file and run again") from error
            if whole < len(data):
                with file.open("r+b") as opened:
                    opened.truncate(whole)

    def add(self, results: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Store results that are not in the log yet."""
        fresh = [(key, result) for key, result in results if key not in self.known]
        if not fresh:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps({"key": key, "result": result}, ensure_ascii=False) + "\n" for key, result in fresh)
        with self.file.open("ab") as opened:
            opened.write(lines.encode("utf-8", "replace"))
            opened.flush()
            os.fsync(opened.fileno())
        self.known.update(fresh)


def write_atomically(file: Path, text: str) -> None:
    """Write a temporary file and rename it, so that readers see only complete files."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode("utf-8", "replace"))


SHARES = {"train": 0.6, "val": 0.2, "test": 0.2}
"""Share of the questions in each part."""
Row = Mapping[str, Any]
Split = dict[str, list[str]]


def split_by(rows: Sequence[Row], members: Sequence[Sequence[str]], seed: str) -> Split:
    """Split the ids so that questions that share a member, also indirectly, stay together.

    Large groups come first, each in the part furthest below its share.
    """
    groups = [[rows[place]["id"] for place in group] for group in sharing(members)]
    random.Random(seed).shuffle(groups)
    groups.sort(key=len, reverse=True)
    total = sum(len(group) for group in groups)
    parts: Split = {name: [] for name in SHARES}
    for group in groups:
        lacking = {name: share * total - len(parts[name]) for name, share in SHARES.items()}
        parts[max(SHARES, key=lambda name: lacking[name])] += group
    return {name: sorted(ids, key=int) for name, ids in parts.items()}


@dataclass(frozen=True)
class Made:
    """A finished benchmark with the content of its data card."""

    folder: Path
    base: str
    rows: Sequence[Mapping[str, Any]]
    seed: int
    settings: Mapping[str, str]
    notes: Sequence[str]
    """Attribution and licence of the base."""
    acceptance: Mapping[str, Any]
    gates: Mapping[str, Sequence[str]]
    statistics: Sequence[Statistics]
    remarks: Sequence[str] = ()
    """Options that could not be met."""

    def to_json(self) -> dict[str, Any]:
        """Convert to the output of `clew synth --json`."""
        return {
            "folder": str(self.folder),
            "questions": len(self.rows),
            "acceptance": dict(self.acceptance),
            "gates": {gate: len(ids) for gate, ids in self.gates.items()},
            "statistics": [one.to_json() for one in self.statistics],
            "remarks": list(self.remarks),
        }


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
    """Render the data card as Markdown. Deterministic for the same benchmark."""
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
    """Render the sets as table rows."""
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


def write_benchmark(made: Made) -> None:
    """Write all files. Each file is complete or missing."""
    folder, rows, seed = made.folder, made.rows, made.seed
    splits = {
        "split": split_by(rows, [[row["id"]] for row in rows], f"{seed}|by question"),
        "split-by-template": split_by(rows, [[row["template"]] for row in rows], f"{seed}|by template"),
        "split-by-entity": split_by(
            rows, [[one["key"] for one in row["entities"]] for row in rows], f"{seed}|by entity"
        ),
    }
    place = {id_: name for name, ids in splits["split"].items() for id_ in ids}
    visible = [{name: row[name] for name in ("id", *row) if name != "node_ids"} for row in rows]
    lines = [row | {"split": place[row["id"]]} for row in visible]
    for name, parts in splits.items():
        for part, ids in parts.items():
            write_atomically(folder / name / f"{part}.index", "".join(f"{id_}\n" for id_ in ids))
    write_atomically(folder / "stark_qa" / "stark_qa.csv", stark_csv(rows))
    write_atomically(folder / "statistics.json", json.dumps(_statistics(made), ensure_ascii=False, indent=2) + "\n")
    for name, text in plots(made.statistics).items():
        write_atomically(folder / "plots" / f"{name}.svg", text)
    write_atomically(folder / "README.md", data_card(made))
    write_atomically(folder / "questions.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def stark_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write `id, query, answer_ids`: keys if all are integers, like in STaRK's bases, otherwise node ids."""
    whole = all(key.isascii() and key.isdigit() for row in rows for key in row["answers"])
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "query", "answer_ids"))
    for row in rows:
        writer.writerow(
            (row["id"], row["question"], [int(key) for key in row["answers"]] if whole else row["node_ids"])
        )
    return text.getvalue()


def plots(statistics: Sequence[Statistics]) -> dict[str, str]:
    """Plot the paper's figure 4, next to STaRK's data."""
    lengths = {one.name: one.lengths for one in statistics}
    answers = {one.name: one.answers for one in statistics}
    return {
        "query_length": distribution_plot("Length of the questions", "words", lengths, highest=50),
        "answers": distribution_plot("Answers per question", "answers", answers, highest=20),
    }


def _statistics(made: Made) -> dict[str, Any]:
    return {
        "sets": [one.to_json() for one in made.statistics],
        "kinds": dict(sorted(Counter(row["type"] for row in made.rows).items())),
        "templates": dict(sorted(Counter(row["template"] for row in made.rows).items())),
        "roles": dict(sorted(Counter(row["role"] for row in made.rows).items())),
        "wordings": dict(sorted(Counter(row["wording"]["how"] for row in made.rows).items())),
        "acceptance": made.acceptance,
        "gates": {gate: len(ids) for gate, ids in made.gates.items()},
    }
