"""What a benchmark is on disk.

questions.jsonl                       what `clew eval` reads, with template, gold query, gold paths, texts, votes, role
stark_qa/stark_qa.csv, split/*.index  STaRK's own files
split-by-template/, split-by-entity/  the same splits, so that no template, or no entity, is in two parts
statistics.json, plots/*.svg          beside those of the real STaRK questions, where there are any
README.md                             the data card
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.synthesis.card import Made, data_card
from clew.synthesis.plots import distribution_plot
from clew.synthesis.progress import write_atomically
from clew.synthesis.splits import by_entity, by_question, by_template
from clew.synthesis.statistics import Statistics

LONGEST, MOST = 50, 20


def write_benchmark(folder: Path, made: Made) -> None:
    """Write everything; each file is whole or absent."""
    rows, seed = made.rows, made.seed
    splits = {"split": by_question(rows, seed), "split-by-template": by_template(rows, seed)}
    splits["split-by-entity"] = by_entity(rows, seed)
    place = {id_: name for name, ids in splits["split"].items() for id_ in ids}
    lines = [{"id": row["id"], **_without(row, "id", "node_ids"), "split": place[row["id"]]} for row in rows]
    for name, parts in splits.items():
        for part, ids in parts.items():
            write_atomically(folder / name / f"{part}.index", "".join(f"{id_}\n" for id_ in ids))
    write_atomically(folder / "stark_qa" / "stark_qa.csv", stark_csv(rows))
    write_atomically(folder / "statistics.json", json.dumps(_statistics(made), ensure_ascii=False, indent=2) + "\n")
    for name, text in plots(made.statistics).items():
        write_atomically(folder / "plots" / f"{name}.svg", text)
    write_atomically(folder / "README.md", data_card(made))
    write_atomically(folder / "questions.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def stark_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """`id, query, answer_ids`: the keys where all are whole numbers, as in STaRK's bases, else the node ids."""
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
    """The paper's figure 4, ours beside STaRK's."""
    lengths = {one.name: one.lengths for one in statistics}
    answers = {one.name: one.answers for one in statistics}
    return {
        "query_length": distribution_plot("Length of the questions", "words", lengths, LONGEST),
        "answers": distribution_plot("Answers per question", "answers", answers, MOST),
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
