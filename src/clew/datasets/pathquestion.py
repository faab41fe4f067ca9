"""PathQuestion and WC2014 (Zhou et al. 2018): questions with their gold relation paths over small bases of triples."""

from __future__ import annotations

import re
from pathlib import Path

from clew.core.errors import InputError, SourceError
from clew.datasets.files import find_file, read_rows
from clew.datasets.questions import Dataset, Question
from clew.datasets.triples import triple_tables

BASES = {
    "PQ-2H": "2H-kb.txt",
    "PQ-3H": "3H-kb.txt",
    "PQL-2H": "PQL2-KB.txt",
    "PQL-3H": "PQL3-KB.txt",
    "PQL-3H_more": "PQL3-KB.txt",
}
"""Question file → base; every other question file, such as WC-P1 or WC-C, goes with WC2014.txt."""

ANSWER = re.compile(r"(?P<answer>.*?)\((?P<all>.*)\)")


def load_pathquestion(path: Path, split: str | None = None) -> Dataset:
    """`pathquestion:DIR:PQ-2H`: the question file of that name and the base that goes with it."""
    if split is None:
        raise InputError("PathQuestion needs the name of a question file, such as pathquestion:DIR:PQ-2H")
    file = find_file(path / f"{split}.txt", path / split)
    base = triple_tables(find_file(path / BASES.get(split, "WC2014.txt")))
    questions = tuple(
        _question(f"{split}-{place}", cells, file, number)
        for place, (number, cells) in enumerate(read_rows(file, "\t", 3), 1)
    )
    return Dataset("pathquestion", questions, "graph", split, base=base)


def _question(id: str, cells: list[str], file: Path, line: int) -> Question:
    text, answer, path = (cell.strip() for cell in cells)
    found = ANSWER.fullmatch(answer)
    answers = [found["answer"], *found["all"].split("/")] if found else answer.split("/")
    steps = path.split("#<end>")[0].split("#")
    if len(steps) < 3:
        raise SourceError(f"a gold path reads entity#relation#entity…, not {path!r}", file=file, line=line)
    return Question(
        id=id,
        text=text,
        answers=tuple(dict.fromkeys(name for name in answers if name)),
        type=" → ".join(steps[1::2]),
        topics=(steps[0],),
        extra={"path": steps},
    )
