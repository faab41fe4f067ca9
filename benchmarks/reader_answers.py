"""Makes a source for training the reader of questions that have answers but no queries.

    python benchmarks/reader_answers.py OUT ../shared/data/wikitablequestions --work WORK [--count 6000]
    python benchmarks/reader_answers.py OUT FOLDER …

A FOLDER has `data/`, which is built, and `questions.jsonl` with `question` and `answers`. Of WikiTableQuestions, the
questions of tables that are not kept for measuring are taken (see table_questions.py). Each question is read over its
base, and the likely plans are executed. Of the plans that give exactly the gold answer, the one that the shipped reader
prefers is right. If none does, no plan is right. Some plans give the gold answer by accident.
"""

import argparse
import gzip
import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from table_questions import cases, is_right, rounded

import clew
from clew.answering.queries.interpretations import execute
from clew.answering.reading import reader as reading
from clew.answering.reading.mentions import find_named
from clew.answering.reading.plan import Translator
from clew.answering.reading.reader import LearnedReader, Option
from clew.answering.reading.scoring import shared_words
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.errors import ClewError
from clew.core.roles import Interpretation

EXECUTED, KEPT = 40, 16
"""Plans to execute, and to write."""
ALL_TOKENS = 100_000
UNLIKELY = 0.003
"""Least share of a plan with the gold answer. Other questions are left out, since most are accidents."""
Line = dict[str, Any]


def found_cells(reader: LearnedReader, asked: Interpretation) -> list[Any]:
    """Return the cells that an interpretation finds."""
    found = execute(reader.kb, reader.names, asked)
    if found.table is not None:
        return []
    if asked.asks == "nodes":
        return list(reader.kb.refs(found.nodes.array))
    if asked.asks == "value" and asked.attribute is not None:
        values = [value for value in reader.kb.values(found.nodes, asked.attribute) if value is not None]
        return [part for value in values for part in (value if isinstance(value, list) else [value])]
    return [found.value]


def gives(reader: LearnedReader, option: Option, gold: list[str]) -> bool:
    """Return whether a plan gives the gold answer."""
    writer = Translator(reader.vocabulary, option.named, option.senses, option.numbers)
    try:
        return is_right(rounded(found_cells(reader, writer.interpretation(option.plan)), gold), gold)
    except ClewError:
        return False


def line_of(case: Line, reader: LearnedReader, name: str) -> Line | None:
    """Return a question with its plans, or None if it has no plans or is unclear."""
    question, named = find_named(case["question"], reader.kb, reader.names)
    options, encoders = reader.options(question, named)
    options = options[:EXECUTED]
    if not options:
        return None
    asked, texts = [one.asked for one in options], [one.text for one in options]
    shared = [shared_words(one.said, one.text) for one in options]
    told = encoders.choose(asked, texts, [one.prior for one in options], shared, ALL_TOKENS)[1:]
    right = [place for place, one in enumerate(options) if case["answers"] and gives(reader, one, case["answers"])]
    best = max(right, key=lambda place: told[place], default=None)
    if best is not None and np.exp(told[best]) < UNLIKELY:
        return None
    kept = [
        {
            "asked": asked[at],
            "text": texts[at],
            "prior": round(float(one.prior), 3),
            "shared": shared[at],
            "is_right": at == best,
        }
        for at, one in enumerate(options)
        if at == best or (at not in right and at < KEPT)
    ]
    chosen = options[0 if best is None else best]
    names = [(one.start, one.end, sense.type) for one, sense in zip(chosen.named, chosen.senses, strict=True)]
    plan = None if best is None else asdict(chosen.plan)
    return {
        "schema": name,
        "question": question,
        "kind": case.get("kind", ""),
        "names": names,
        "plan": plan,
        "options": kept,
    }


def lines(asked: list[Line], bases: Path) -> Iterator[tuple[Vocabulary, Line]]:
    """Yield the vocabulary of each case, and the case with its plans."""
    for source, group in itertools.groupby(asked, key=lambda case: case["source"]):
        name = "_".join(Path(source).parts[-2:])
        base = bases / f"{name}.kb"
        try:
            if not base.exists():
                clew.build([source], base)
            tools = clew.open(base).tools
        except ClewError as error:
            print(source, error)
            continue
        reader = LearnedReader(tools.kb, tools.names)
        for case in group:
            line = line_of(case, reader, case["schema"])
            if line is not None:
                yield reader.vocabulary, line


def asked_of(folder: Path, work: Path, count: int) -> list[Line]:
    """Return the questions of a folder with the data they are about."""
    if (folder / "tables.tar.xz").is_file():
        own = sorted(cases(folder, work, trained=True)[:count], key=lambda case: case["table"])
        return [{**one, "source": work / "tables" / one["table"], "schema": f"wtq_{one['table']}"} for one in own]
    if not (folder / "questions.jsonl").is_file():
        return []
    text = (folder / "questions.jsonl").read_text("utf-8")
    return [{**json.loads(line), "source": folder / "data", "schema": folder.name} for line in text.splitlines()]


def main() -> None:
    """Write the source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, default=Path("work"))
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--part", default="0/1")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.work / "bases").mkdir(parents=True, exist_ok=True)
    every = [one for folder in given.folders for one in asked_of(folder, given.work, given.count)]
    own = set(sorted({one["source"] for one in every})[part::parts])
    asked = [one for one in every if one["source"] in own]
    counts = [0, 0]
    reading.PLANS = EXECUTED
    known: dict[str, Vocabulary] = {}
    with gzip.open(given.out / "options.jsonl.gz", "wt", encoding="utf-8") as file:
        for vocabulary, line in lines(asked, given.work / "bases"):
            known[line["schema"]] = vocabulary
            counts[line["plan"] is not None] += 1
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    with gzip.open(given.out / "vocabularies.jsonl.gz", "wt", encoding="utf-8") as file:
        for name, vocabulary in known.items():
            told = {"schema": name, "vocabulary": TypeAdapter(Vocabulary).dump_python(vocabulary, mode="json")}
            file.write(json.dumps(told, ensure_ascii=False) + "\n")
    print(f"{len(asked)} questions, {sum(counts)} kept, {counts[1]} with a right plan")


if __name__ == "__main__":
    main()
