"""Questions over facts: MetaQA, PathQuestion, WebQSP, Mintaka and the Freebase sets."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, Field

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.lab.datasets.files import find_file, read_lines, read_records, read_rows, refuse_split
from clew.lab.datasets.questions import Dataset, Question, triple_tables
from clew.store.graph.tables import Tables

TOPIC = re.compile(r"\[([^\[\]]+)\]")


def load_metaqa(path: Path, split: str | None = None) -> Dataset:
    """Load `metaqa:DIR:2-hop-dev`. DIR contains kb.txt and the folders 1-hop, 2-hop and 3-hop."""
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


BASES = {
    "PQ-2H": "2H-kb.txt",
    "PQ-3H": "3H-kb.txt",
    "PQL-2H": "PQL2-KB.txt",
    "PQL-3H": "PQL3-KB.txt",
    "PQL-3H_more": "PQL3-KB.txt",
}
"""Maps a question file to its base. All other question files, such as WC-P1 or WC-C, use WC2014.txt."""

ANSWER = re.compile(r"(?P<answer>.*?)\((?P<all>.*)\)")


def load_pathquestion(path: Path, split: str | None = None) -> Dataset:
    """Load `pathquestion:DIR:PQ-2H`: the question file of that name and its base."""
    if split is None:
        raise InputError("PathQuestion needs the name of a question file, such as pathquestion:DIR:PQ-2H")
    file = find_file(path / f"{split}.txt", path / split)
    base = triple_tables(find_file(path / BASES.get(split, "WC2014.txt")))
    questions = tuple(
        _path_question(f"{split}-{place}", cells, file, number)
        for place, (number, cells) in enumerate(read_rows(file, "\t", 3), 1)
    )
    return Dataset("pathquestion", questions, "graph", split, base=base)


def _path_question(id: str, cells: list[str], file: Path, line: int) -> Question:
    text, answer, path = (cell.strip() for cell in cells)
    found = ANSWER.fullmatch(answer)
    answers = [found["answer"], *found["all"].split("/")] if found else answer.split("/")
    steps = path.split("#<end>")[0].split("#")
    if len(steps) < 3:
        raise SourceError(f"invalid gold path {path!r}: expected entity#relation#entity…", file=file, line=line)
    return Question(
        id=id,
        text=text,
        answers=tuple(dict.fromkeys(name for name in answers if name)),
        type=" → ".join(steps[1::2]),
        topics=(steps[0],),
        extra={"path": steps},
    )


class _TopicQuestion(BaseModel):
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
    """Load `webqsp:DIR:questions_dev` (JSON lines) or `webqsp:DIR:WebQSP.test` (official). The base is triples.tsv."""
    if split is None:
        raise InputError("WebQSP needs the name of a question file, such as webqsp:DIR:questions_dev")
    file = find_file(path / f"{split}.jsonl", path / f"{split}.json", path / split)
    if ".jsonl" in file.name:
        questions = [_from_line(record) for record in read_records(file, _TopicQuestion)]
    else:
        questions = [_from_official(record) for record in read_records(file, _Official, inside="Questions")]
    return Dataset("webqsp", tuple(questions), "graph", split, base=_base(path))


def _base(path: Path) -> Tables | None:
    try:
        return triple_tables(find_file(path / "triples.tsv"))
    except NotFoundError:
        return None


def _from_line(record: _TopicQuestion) -> Question:
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
    # Take the answers of all parses, like Think-on-Graph and Reasoning-on-Graphs.
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


class _Labelled(BaseModel):
    name: str
    label: str | dict[str, str | None] | None = None


class _Gold(BaseModel):
    type: str = Field(validation_alias="answerType")
    answer: list[_Labelled | bool | int | float | str] | None = None
    mention: str = ""


class _Mentioned(BaseModel):
    name: str | int | float | None = None
    type: str = Field(validation_alias="entityType")


class _MintakaQuestion(BaseModel):
    id: str
    question: str
    answer: _Gold
    type: str = Field(validation_alias="complexityType")
    category: str
    topics: list[_Mentioned] = Field(default=[], validation_alias="questionEntity")


def load_mintaka(path: Path, split: str | None = None) -> Dataset:
    """Load `mintaka:FILE` or `mintaka:DIR:dev`. Answers that are not entities become text."""
    file = find_file(path) if split is None else find_file(path / f"mintaka_{split}.json")
    questions = tuple(_mintaka_question(record) for record in read_records(file, _MintakaQuestion))
    return Dataset("mintaka", questions, "graph", split or file.name.split(".json")[0])


def _mintaka_question(record: _MintakaQuestion) -> Question:
    gold = record.answer.answer or []
    aliases = {}
    answers = []
    for answer in gold:
        if isinstance(answer, _Labelled):
            labels = [answer.label] if isinstance(answer.label, str) else list((answer.label or {}).values())
            aliases[answer.name] = tuple(dict.fromkeys(label for label in labels if label))
            answers.append(answer.name)
        else:
            answers.append(("yes" if answer else "no") if isinstance(answer, bool) else str(answer))
    if not answers:  # the answer has no Wikidata id: use its text
        answers.append(record.answer.mention)
    only = gold[0] if len(gold) == 1 else None
    return Question(
        id=record.id,
        text=record.question,
        answers=tuple(dict.fromkeys(answers)),
        type=record.type,
        topics=tuple(str(topic.name) for topic in record.topics if topic.type == "entity"),
        aliases=aliases,
        extra={"category": record.category, "answer_type": record.answer.type},
        value=only if isinstance(only, bool | int | float) else None,
    )


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
    """Load `cwq:FILE`: ComplexWebQuestions (Talmor and Berant 2018). The type is the kind of composition."""
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
    """Load `grailqa:FILE`: GrailQA (Gu et al. 2021). The type is the level of generalisation."""
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
    """Load `webquestions:FILE`: WebQuestions (Berant et al. 2013). The topic is the last part of the page URL."""
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
    refuse_split(name, path, split)
    if unanswered := sum(not question.answers for question in questions):
        raise InputError(f"{path}: {unanswered} of {len(questions)} questions have no answers; is it a blind test set?")
    return Dataset(name, tuple(questions), "graph", path.name.split(".json")[0])
