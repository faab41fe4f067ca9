"""WebQSP (Yih et al. 2016): official JSON, or JSON lines with answers and topics beside a file of triples."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from clew.core.errors import InputError, NotFoundError
from clew.datasets.files import find_file, read_records
from clew.datasets.questions import Dataset, Question
from clew.datasets.triples import triple_tables
from clew.kb.tables import Tables


class _Line(BaseModel):
    id: str
    question: str
    answers: list[str]
    topic_entity: dict[str, str] = {}
    topic_entities_seen_in_paths: list[str] = []
    ground_relation_paths: list[list[str]] = []


class _GoldAnswer(BaseModel):
    AnswerArgument: str
    EntityName: str | None = None


class _Parse(BaseModel):
    TopicEntityName: str | None = None
    TopicEntityMid: str | None = None
    InferentialChain: list[str] | None = None
    Answers: list[_GoldAnswer] = []


class _Official(BaseModel):
    QuestionId: str
    RawQuestion: str
    ProcessedQuestion: str | None = None
    Parses: list[_Parse]


def load_webqsp(path: Path, split: str | None = None) -> Dataset:
    """`webqsp:DIR:questions_dev` (JSON lines) or `webqsp:DIR:WebQSP.test` (official); triples.tsv is the base."""
    if split is None:
        raise InputError("WebQSP needs the name of a question file, such as webqsp:DIR:questions_dev")
    file = find_file(path / f"{split}.jsonl", path / f"{split}.json", path / split)
    if ".jsonl" in file.name:
        questions = [_from_line(record) for record in read_records(file, _Line)]
    else:
        questions = [_from_official(record) for record in read_records(file, _Official, inside="Questions")]
    return Dataset("webqsp", tuple(questions), "graph", split, base=_base(path))


def _base(path: Path) -> Tables | None:
    try:
        return triple_tables(find_file(path / "triples.tsv"))
    except NotFoundError:
        return None


def _from_line(record: _Line) -> Question:
    topics = [*record.topic_entity.values(), *record.topic_entities_seen_in_paths]
    paths = [path for path in record.ground_relation_paths if path]
    return Question(
        id=record.id,
        text=record.question,
        answers=tuple(dict.fromkeys(record.answers)),
        type=f"{min(len(path) for path in paths)}-hop" if paths else None,
        topics=tuple(dict.fromkeys(topics)),
        extra={"paths": paths},
    )


def _from_official(record: _Official) -> Question:
    # Answers of all parses together, as Think-on-Graph and Reasoning-on-Graphs take them.
    gold = {answer.AnswerArgument: answer.EntityName for parse in record.Parses for answer in parse.Answers}
    topics = [parse.TopicEntityName or parse.TopicEntityMid for parse in record.Parses]
    chains = [parse.InferentialChain for parse in record.Parses if parse.InferentialChain]
    return Question(
        id=record.QuestionId,
        text=record.ProcessedQuestion or record.RawQuestion,
        answers=tuple(gold),
        type=f"{min(map(len, chains))}-hop" if chains else None,
        topics=tuple(dict.fromkeys(topic for topic in topics if topic)),
        aliases={id: (name,) for id, name in gold.items() if name},
        extra={"paths": chains},
    )
