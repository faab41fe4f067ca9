"""Load data sets by name, `NAME:PATH[:SPLIT]`, or from a file of questions."""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field, model_validator

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.lab.datasets import facts, passages
from clew.lab.datasets.files import find_file, read_lines, read_records
from clew.lab.datasets.questions import Dataset, Question
from clew.store.sources.files import read_utf8


class _Record(BaseModel):
    model_config = {"extra": "allow"}

    id: str | int | None = None
    question: str = Field(validation_alias=AliasChoices("question", "query"))
    answers: list[str | int] | str | int | None = Field(
        default=None, validation_alias=AliasChoices("answers", "answer_ids", "answer")
    )
    value: bool | int | float | str | None = None
    type: str | None = Field(default=None, validation_alias=AliasChoices("type", "kind"))
    topics: list[str | int] = []
    split: str | None = None

    @model_validator(mode="after")
    def _has_gold(self) -> _Record:
        if self.answers is None and self.value is None:
            raise ValueError(
                "answers: missing: add `answers`, [] if there are none, or `value`: a number, true, false or a text"
            )
        return self


def load_plain(path: Path, split: str | None = None) -> Dataset:
    """Load questions from JSON lines, filtered by `split` if given. The default id is the record's number."""
    file = find_file(path)
    records = [
        (place, record)
        for place, record in enumerate(read_records(file, _Record), 1)
        if split is None or record.split == split
    ]
    if not records:
        raise InputError(f"{file}: no question" + ("" if split is None else f" of the split {split!r}"))
    name = file.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    if name in ("questions", "queries"):  # the folder name is more specific
        name = file.absolute().parent.name
    questions = tuple(_question(place, record) for place, record in records)
    return Dataset(name, questions, "graph", split, match="auto")


def _question(place: int, record: _Record) -> Question:
    answers = record.answers if isinstance(record.answers, list) else [record.answers]
    return Question(
        id=str(place if record.id is None else record.id),
        text=record.question,
        answers=tuple(str(answer) for answer in answers if answer is not None),
        value=record.value,
        type=record.type,
        topics=tuple(str(topic) for topic in record.topics),
        extra=record.model_extra or {},
    )


HUMAN = ("human", "human_generated_eval")


def load_stark(path: Path, split: str | None = None) -> Dataset:
    """Load `stark:DIR:val`.

    DIR contains `stark_qa/` and `split/`. `human` is the human set. The default is all questions.
    """
    human = split in HUMAN
    name = "stark_qa_human_generated_eval.csv" if human else "stark_qa.csv"
    questions = _read_questions(find_file(path / "stark_qa" / name, path / name))
    if split is not None and not human:
        index = _find_split(path, split)
        ids = {line.strip(): number for number, line in read_lines(index)}
        known = {question.id for question in questions}
        for id, number in ids.items():
            if id not in known:
                raise SourceError(f"unknown question {id} in the split", file=index, line=number)
        questions = [question for question in questions if question.id in ids]
    portion = "human" if human else "10 % sample" if split == "test-0.1" else "full"
    return Dataset(f"stark-{path.name}", tuple(questions), "retrieval", split, match="key", portion=portion)


def _find_split(path: Path, split: str) -> Path:
    try:
        return find_file(path / "split" / f"{split}.index")
    except NotFoundError as error:
        splits = sorted(file.name.split(".index")[0] for file in (path / "split").glob("*.index*"))
        raise NotFoundError(f"{path} has no split {split!r}: use {', '.join([*splits, 'human'])}") from error


def _read_questions(file: Path) -> list[Question]:
    reader = csv.DictReader(io.StringIO(read_utf8(file).decode(), newline=""))
    if missing := {"id", "query", "answer_ids"} - set(reader.fieldnames or ()):
        raise SourceError(f"missing columns: {', '.join(sorted(missing))}", file=file, line=1)
    questions = []
    for row in reader:
        try:
            gold = tuple(str(int(answer)) for answer in ast.literal_eval(row["answer_ids"]))
        except (ValueError, SyntaxError, TypeError) as error:
            shown = row["answer_ids"] if row["answer_ids"] is None else row["answer_ids"][:60]
            raise SourceError(
                f"answer_ids is not a list of node ids: {shown!r}", file=file, line=reader.line_num
            ) from error
        questions.append(Question(row["id"], row["query"], gold))
    return questions


LOADERS: Mapping[str, Callable[[Path, str | None], Dataset]] = {
    "stark": load_stark,
    "metaqa": facts.load_metaqa,
    "pathquestion": facts.load_pathquestion,
    "webqsp": facts.load_webqsp,
    "cwq": facts.load_cwq,
    "grailqa": facts.load_grailqa,
    "webquestions": facts.load_webquestions,
    "mintaka": facts.load_mintaka,
    "hotpotqa": partial(passages.load_hotpotqa, name="hotpotqa"),
    "2wiki": partial(passages.load_hotpotqa, name="2wiki"),
    "musique": passages.load_musique,
    "iirc": passages.load_iirc,
    "corpus": passages.load_corpus,
    "jsonl": load_plain,
}


def load_dataset(name: str) -> Dataset:
    """Load `NAME:PATH[:SPLIT]`, such as `metaqa:DIR:2-hop-dev`, or a JSONL file of questions."""
    loader, colon, rest = name.partition(":")
    if not colon or loader not in LOADERS:
        if Path(name).exists() or Path(name + ".gz").exists():
            return load_plain(Path(name))
        raise NotFoundError(
            f"no file or data set {name!r}: write FILE.jsonl or NAME:PATH[:SPLIT] with NAME one of "
            + ", ".join(LOADERS)
        )
    path, split = _path_and_split(rest)
    return LOADERS[loader](path, split)


def _path_and_split(text: str) -> tuple[Path, str | None]:
    """Split off the split. If the whole text is an existing path, it has no split, even if it contains colons."""
    whole = Path(text).expanduser()
    if whole.exists() or whole.with_name(whole.name + ".gz").exists() or ":" not in text:
        return whole, None
    path, _, split = text.rpartition(":")
    return Path(path).expanduser(), split
