"""How well questions over single tables are answered: `python -m benchmarks.tables`.

An answer is right where its value, or the set of names of its rows, is that of the gold. A question that the table
cannot answer is right where there is no answer.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clew.answering.reading.documents.table_columns import Table, TableRow
from clew.answering.reading.documents.tables import LEAST, AskedTable, TableAnswer, most_certain

DATA = Path(__file__).parent / "data" / "tables"
CLOSE = 0.002
Answerer = Callable[[str, str, Sequence[str], Sequence[Sequence[str]]], tuple[Any, float]]
"""Question, title, header, rows → answer (a value, a list of names, or None) and how certain it is."""


def plain(value: Any) -> str:
    """A value as it is compared: dates in one form, numbers rounded, capitals and spaces left aside."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()[:10]
    text = str(value).strip().casefold()
    if re.fullmatch(r"\d{4}/\d\d/\d\d", text):
        return text.replace("/", "-")
    return {"true": "yes", "false": "no"}.get(text, text)


def number(value: Any) -> float | None:
    """A value as a number; None where it is none."""
    try:
        return None if isinstance(value, bool) else float(re.sub(r"[$,%]", "", str(value)))
    except ValueError:
        return None


def is_right(found: Any, gold: Any) -> bool:
    """Whether an answer is the gold one."""
    if gold is None or found is None:
        return found is gold
    if isinstance(gold, list) and isinstance(found, list):
        return {plain(one) for one in found} == {plain(one) for one in gold}
    if isinstance(gold, list):
        return {plain(one) for one in gold} == {plain(found)}
    if isinstance(found, list):
        return len(found) == 1 and is_right(found[0], gold)
    first, second = number(found), number(gold)
    if first is not None and second is not None:
        return abs(first - second) <= CLOSE * max(1e-6, abs(second))
    return plain(found) == plain(gold)


def run(answer: Answerer, half: str) -> list[dict[str, Any]]:
    """Every question of a half with what was answered."""
    lines = [json.loads(line) for line in (DATA / "questions.jsonl").read_text("utf-8").splitlines()]
    done = []
    for line in lines:
        if line["half"] == half:
            with (DATA / f"{line['table']}.csv").open(encoding="utf-8", newline="") as file:
                header, *rows = list(csv.reader(file))
            began = time.perf_counter()
            found, certainty = answer(line["question"], line["title"], header, rows)
            seconds = time.perf_counter() - began
            done.append({**line, "found": found, "certainty": certainty, "seconds": seconds})
    return done


def right_above(done: Sequence[dict[str, Any]], least: float) -> list[tuple[dict[str, Any], bool]]:
    """Whether each is right where an answer less certain than this counts as none."""
    judged = []
    for one in done:
        found = one["found"] if one["certainty"] >= least else None
        judged.append((one, any(is_right(found, gold) for gold in (one["gold"], *one.get("also", ())))))
    return judged


def summary(done: Sequence[dict[str, Any]], least: float) -> str:
    """Shares of right answers by kind, of refusals, and of right answers among those given."""
    judged = right_above(done, least)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for one, right in judged:
        by_kind[one["kind"]].append(right)
    answerable = [right for one, right in judged if one["kind"] != "none"]
    given = [right for one, right in judged if one["found"] is not None and one["certainty"] >= least]
    kinds = ", ".join(f"{kind} {sum(own)}/{len(own)}" for kind, own in sorted(by_kind.items()))
    return (
        f"answerable {sum(answerable)}/{len(answerable)}, right among given {sum(given)}/{len(given)}, "
        f"all {sum(right for _, right in judged)}/{len(judged)}\n  {kinds}"
    )


def best_threshold(done: Sequence[dict[str, Any]]) -> float:
    """The certainty below which it is best to give no answer: most right in all."""
    levels = [level / 100 for level in range(0, 100, 2)]
    return max(levels, key=lambda level: (sum(right for _, right in right_above(done, level)), level))


def main() -> None:
    """Print the figures of both halves: each question over its table, then over all tables of its half at once."""
    asked: dict[str, AskedTable] = {}

    def alone(question: str, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Any, float]:
        if title not in asked:
            cells = tuple(TableRow(tuple(row)) for row in rows)
            asked[title] = AskedTable(Table(title, tuple(header), cells))
        return told(asked[title].answer(question))

    def among(question: str, *_: Any) -> tuple[Any, float]:
        return told(most_certain([one.answer(question) for one in asked.values()]))

    for half in ("first", "second"):
        asked.clear()
        done = run(alone, half)
        seconds = sorted(one["seconds"] for one in done)[len(done) // 2]
        print(f"{half}, each over its table ({seconds:.2f} s): {summary(done, LEAST)}")
        print(f"{half}, without a least certainty: {summary(done, 0.0)}")
        print(f"{half}, among all ten tables: {summary(run(among, half), LEAST)}")


def told(answer: TableAnswer | None) -> tuple[Any, float]:
    """An answer as it is judged."""
    if answer is None:
        return None, 0.0
    return (list(answer.names) if answer.value is None else answer.value), answer.certainty


if __name__ == "__main__":
    main()
