"""Official question files over Freebase: ComplexWebQuestions, GrailQA, WebQuestions; bring the base."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, Field

from clew.core.errors import InputError
from clew.datasets.files import find_file, read_records
from clew.datasets.questions import Dataset, Question


class _CwqAnswer(BaseModel):
    answer: str | None = None
    answer_id: str | None = None
    aliases: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.answer, *self.aliases) if name)


class _Cwq(BaseModel):
    ID: str
    question: str
    answers: list[_CwqAnswer] = []
    compositionality_type: str | None = None
    topic_entity: dict[str, str] = {}


def load_cwq(path: Path, split: str | None = None) -> Dataset:
    """`cwq:FILE`: ComplexWebQuestions (Talmor and Berant 2018); the type is the kind of composition."""
    questions = []
    for record in read_records(find_file(path), _Cwq):
        gold = {answer.answer_id or answer.answer or "": answer.names for answer in record.answers}
        questions.append(
            Question(
                id=record.ID,
                text=record.question,
                answers=tuple(key for key in gold if key),
                type=record.compositionality_type,
                topics=tuple(record.topic_entity.values()),
                aliases=gold,
            )
        )
    return _dataset("cwq", path, split, questions)


class _GrailAnswer(BaseModel):
    answer_argument: str
    entity_name: str | None = None


class _GrailNode(BaseModel):
    node_type: str
    friendly_name: str


class _GrailGraph(BaseModel):
    nodes: list[_GrailNode] = []


class _Grail(BaseModel):
    qid: int | str
    question: str
    answer: list[_GrailAnswer] = []
    level: str | None = None
    function: str | None = None
    graph_query: _GrailGraph = _GrailGraph()


def load_grailqa(path: Path, split: str | None = None) -> Dataset:
    """`grailqa:FILE`: GrailQA (Gu et al. 2021); the type is the level of generalisation."""
    questions = [
        Question(
            id=str(record.qid),
            text=record.question,
            answers=tuple(dict.fromkeys(answer.answer_argument for answer in record.answer)),
            type=record.level,
            topics=tuple(node.friendly_name for node in record.graph_query.nodes if node.node_type == "entity"),
            aliases={answer.answer_argument: (answer.entity_name,) for answer in record.answer if answer.entity_name},
            extra={"function": record.function},
        )
        for record in read_records(find_file(path), _Grail)
    ]
    return _dataset("grailqa", path, split, questions)


class _WebQuestion(BaseModel):
    utterance: str
    target: str = Field(validation_alias="targetValue")
    url: str = ""


DESCRIPTION = re.compile(r'\(description\s+(?:"((?:[^"\\]|\\.)*)"|([^\s()]+))\s*\)')


def load_webquestions(path: Path, split: str | None = None) -> Dataset:
    """`webquestions:FILE`: WebQuestions (Berant et al. 2013); the topic is the last part of the page's address."""
    questions = []
    for place, record in enumerate(read_records(find_file(path), _WebQuestion), 1):
        found = [re.sub(r"\\(.)", r"\1", quoted) or bare for quoted, bare in DESCRIPTION.findall(record.target)]
        if not found:
            raise InputError(f"{path}: record {place}: no (description …) in targetValue {record.target[:60]!r}")
        topic = record.url.rsplit("/", 1)[-1]
        questions.append(
            Question(
                id=f"{path.name.split('.')[0]}-{place}",
                text=record.utterance,
                answers=tuple(dict.fromkeys(found)),
                topics=(topic.replace("_", " "),) if topic else (),
            )
        )
    return _dataset("webquestions", path, split, questions)


def _dataset(name: str, path: Path, split: str | None, questions: list[Question]) -> Dataset:
    if split is not None:
        raise InputError(f"{name} takes a question file and no split: {name}:{path}")
    if unanswered := sum(not question.answers for question in questions):
        raise InputError(f"{path}: {unanswered} of {len(questions)} questions have no answers; is it a blind test set?")
    return Dataset(name, tuple(questions), "graph", path.name.split(".json")[0])
