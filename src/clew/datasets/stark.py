"""STaRK (Wu et al. 2024): the official queries, splits and human-generated questions of one knowledge base."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

from clew.core.errors import NotFoundError, SourceError
from clew.datasets.files import find_file, read_lines, read_text
from clew.datasets.questions import Dataset, Question

HUMAN = ("human", "human_generated_eval")


def load_stark(path: Path, split: str | None = None) -> Dataset:
    """`stark:DIR:val`, with DIR holding `stark_qa/` and `split/`; `human` gives the human set, no split gives all."""
    human = split in HUMAN
    name = "stark_qa_human_generated_eval.csv" if human else "stark_qa.csv"
    questions = _read_questions(find_file(path / "stark_qa" / name, path / name))
    if split is not None and not human:
        index = _find_split(path, split)
        ids = {line.strip(): number for number, line in read_lines(index)}
        known = {question.id for question in questions}
        for id, number in ids.items():
            if id not in known:
                raise SourceError(f"the split names question {id}, which no query has", file=index, line=number)
        questions = [question for question in questions if question.id in ids]
    portion = "human" if human else "10 % sample" if split == "test-0.1" else "full"
    return Dataset(f"stark-{path.name}", tuple(questions), "retrieval", split, match="key", portion=portion)


def _find_split(path: Path, split: str) -> Path:
    try:
        return find_file(path / "split" / f"{split}.index")
    except NotFoundError as error:
        there = sorted(file.name.split(".index")[0] for file in (path / "split").glob("*.index*"))
        raise NotFoundError(f"{path} has no split {split!r}; there are: {', '.join([*there, 'human'])}") from error


def _read_questions(file: Path) -> list[Question]:
    reader = csv.DictReader(io.StringIO(read_text(file), newline=""))
    if missing := {"id", "query", "answer_ids"} - set(reader.fieldnames or ()):
        raise SourceError(f"the header lacks {', '.join(sorted(missing))}", file=file, line=1)
    questions = []
    for row in reader:
        try:
            answers = ast.literal_eval(row["answer_ids"])
            gold = tuple(str(int(answer)) for answer in answers)
        except (ValueError, SyntaxError, TypeError) as error:
            shown = row["answer_ids"] if row["answer_ids"] is None else row["answer_ids"][:60]
            raise SourceError(
                f"answer_ids is no list of node ids: {shown!r}", file=file, line=reader.line_num
            ) from error
        questions.append(Question(row["id"], row["query"], gold))
    return questions
