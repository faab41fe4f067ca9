"""MetaQA (Zhang et al. 2018): questions of one to three hops over a base of movies."""

from __future__ import annotations

import re
from pathlib import Path

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.datasets.files import find_file, read_lines, read_rows
from clew.datasets.questions import Dataset, Question
from clew.datasets.triples import triple_tables

TOPIC = re.compile(r"\[([^\[\]]+)\]")


def load_metaqa(path: Path, split: str | None = None) -> Dataset:
    """`metaqa:DIR:2-hop-dev`, with DIR holding kb.txt and the folders 1-hop, 2-hop, 3-hop."""
    wanted = re.fullmatch(r"([123])-hop-(train|dev|test)", split or "")
    if not wanted:
        raise InputError(f"MetaQA has the splits 1-hop-dev, 2-hop-test, …, not {split!r}")
    folder, part = path / f"{wanted[1]}-hop", wanted[2]
    file = find_file(folder / f"qa_{part}.txt", folder / "vanilla" / f"qa_{part}.txt")
    rows = list(read_rows(file, "\t", 2))
    types = _types(folder, part, len(rows))
    questions = tuple(
        Question(
            id=f"{split}-{place}",
            text=text,
            answers=tuple(dict.fromkeys(answers.split("|"))),
            type=type_,
            topics=tuple(TOPIC.findall(text)),
        )
        for place, ((_, (text, answers)), type_) in enumerate(zip(rows, types, strict=True), 1)
    )
    base = triple_tables(find_file(path / "kb.txt"), "|", subject_class="movie")
    return Dataset("metaqa", questions, "graph", split, base=base)


def _types(folder: Path, part: str, count: int) -> list[str | None]:
    try:
        file = find_file(folder / f"qa_{part}_qtype.txt")
    except NotFoundError:
        return [None] * count
    types: list[str | None] = [line.strip() for _, line in read_lines(file)]
    if len(types) != count:
        raise SourceError(f"{len(types)} types for {count} questions", file=file)
    return types
