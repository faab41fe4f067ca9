"""Request and reply types of the HTTP API, for its documentation and the Python client."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clew.core.notebook import answer_card
from clew.core.states import State
from clew.core.trace import Spending
from clew.core.types import Fallback, UnknownName

LONGEST_QUESTION = 2000
"""Maximum characters of a question. Longer ones are rejected, or cut in a chat."""
MAX_ROWS = 10_000
"""Maximum number of answers in one reply."""
MAX_EARLIER = 20
"""Maximum number of earlier questions in a request."""
Name = Annotated[str, Field(min_length=1, max_length=500)]


class WireRequest(BaseModel):
    """Request of a client. Unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Reply(BaseModel):
    """Reply of the server. Clients ignore unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_serialization_defaults_required=True, use_attribute_docstrings=True
    )


class _Partial(BaseModel):
    """A reply without fields that do not apply."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class AskRequest(WireRequest):
    """A question and how to answer it."""

    question: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]
    method: Annotated[str | None, Field(max_length=100)] = None
    """Method of the base. None means the default method."""
    model: Annotated[str, Field(max_length=200)] = ""
    """Name of a model of the server, or `none`, but no address. Empty means the default of the base."""
    k: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 10
    """Maximum number of answers in the reply. `matches` is the total number."""
    offset: Annotated[int, Field(ge=0)] = 0
    """Number of answers to skip, to page through a long list."""
    options: Annotated[dict[Name, str | int | float | bool], Field(max_length=20)] = {}
    fixes: Annotated[dict[Name, Annotated[list[Name], Field(max_length=20)]], Field(max_length=20)] = {}
    """Keys of the nodes for each name in the question. An empty list means that the name refers to nothing."""
    relations: Annotated[dict[Name, Name], Field(max_length=20)] = {}
    """Correct relation for each understood relation (`*`: any). A leading `^` reverses it."""
    type: Name | None = None
    """Type of the requested nodes."""
    history: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]], Field(max_length=MAX_EARLIER)
    ] = []
    """Earlier questions of the conversation, oldest first, as context."""


class NodeReply(Reply):
    """A node by key, name and type."""

    key: str
    name: str
    type: str


class FactReply(_Partial):
    """A triple in its stored direction."""

    head: NodeReply
    relation: str
    tail: NodeReply
    attributes: dict[str, Any] = {}


class EvidenceReply(_Partial):
    """A fact, a path, a passage or a judgement, given by `kind`, with `text` as a description."""

    kind: Literal["fact", "path", "passage", "judgement"]
    text: str
    head: NodeReply | None = None
    """Head of a fact, with relation and tail."""
    relation: str | None = None
    tail: NodeReply | None = None
    attributes: dict[str, Any] = {}
    facts: tuple[FactReply, ...] = ()
    """The facts of a path."""
    by: str | None = None
    """Name of the judge."""
    node: NodeReply | None = None
    file: str | None = None
    page: int | None = None
    start: int | None = None
    end: int | None = None
    section: str | None = None
    """The headings above a passage, outermost first."""
    mark: tuple[int, int] | None = None
    """Characters of a passage's text that answer the question."""
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    """Boxes of these characters on the page: left, top, right, bottom in points from the top left."""
    score: float | None = None


class AnswerReply(NodeReply):
    """One ranked answer with its evidence."""

    rank: int
    score: float
    evidence: tuple[EvidenceReply, ...] = ()
    group: Literal["match", "near"] = "match"
    """Whether it is an answer (`match`) or only a close match (`near`)."""
    attributes: dict[str, Any] = {}
    """Attributes of the node, without long texts."""


class CallReply(Reply):
    """A model call: tokens, price, time and the start of the reply, without the key."""

    prompt_tokens: int
    completion_tokens: int
    dollars: float
    seconds: float
    cached: bool
    error: str | None = None
    reply: str = ""


class SpanReply(Reply):
    """A step of the trace. `start` counts seconds from the first step."""

    id: int
    parent: int | None
    name: str
    start: float
    seconds: float | None = None
    details: dict[str, Any] = {}
    error: str | None = None
    calls: tuple[CallReply, ...] = ()


class UncheckedReply(Reply):
    """Text a model has written so far. The run replaces it and may differ."""

    text: str


class FoundReply(NodeReply):
    """A node found by name or by text."""

    how: str
    score: float
    alias: str = ""


class TermReply(_Partial):
    """One end of a triplet: a variable or the words for a constant."""

    variable: str | None = None
    constant: str | None = None
    type: str | None = None


class TripletReply(Reply):
    """One requirement of a query."""

    head: TermReply
    relation: str | None
    tail: TermReply
    negated: bool = False


class GroundingReply(Reply):
    """Interpretation of words in a question, with alternatives."""

    text: str
    type: str | None
    nodes: tuple[FoundReply, ...]
    alternatives: tuple[FoundReply, ...]


class TargetReply(_Partial):
    """The requested result."""

    name: str
    type: str | None = None


class BestReply(_Partial):
    """Restriction to the highest or lowest value of an attribute, or number of edges of a relation."""

    most: bool
    attribute: str | None = None
    relation: str | None = None


class QueryReply(_Partial):
    """The query of an answer: as understood, as grounded, and as formal text that reproduces it."""

    model_config = ConfigDict(frozen=True, extra="allow")
    text: str | None = None
    target: TargetReply | None = None
    best: BestReply | None = None
    triplets: tuple[TripletReply, ...] = ()
    constants: tuple[GroundingReply, ...] = ()
    relaxed: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    matches: int | None = None
    direct: int | None = None
    """Number of matches that satisfy the query without descendants in a hierarchy."""
    kinds: str | None = None
    """Description of what names include in addition to themselves: "a kind of it"."""
    path: str | None = None
    sparql: str | None = None
    cypher: str | None = None
    sql: str | None = None


class AskReply(Reply):
    """A finished run: the answers, the query behind them, the trace and the cost."""

    run: str
    base: str
    question: str
    method: str
    model: str
    answers: tuple[AnswerReply, ...]
    form: str | None = None
    """Form of the requested result: list, count, yes/no, value, superlative, comparison, describe or text."""
    understood: str | None = None
    """The interpretation of the question as text."""
    matches: int | None = 0
    """Total number of answers, listed or not. None if the question has no countable conditions."""
    text: str | None = None
    value: bool | int | float | str | None = None
    """A number, true or false, or the value of an attribute, if the question asks for one."""
    columns: tuple[str, ...] = ()
    """Column headers, if the answer is a table."""
    rows: tuple[tuple[NodeReply | bool | int | float | str | None, ...], ...] = ()
    state: State = "found"
    """Whether an answer was found, may have been found, or was not found."""
    found: bool = True
    """Whether there is an answer, not only close matches."""
    certainty: float | None = None
    """Probability that the question was understood correctly."""
    percent: int | None = None
    """The certainty in percent for display. None if it would contradict the state."""
    evidence: tuple[EvidenceReply, ...] = ()
    query: QueryReply = QueryReply()
    dropped: tuple[str, ...] = ()
    """Words of the question and conditions that were not used."""
    unknown: tuple[UnknownName, ...] = ()
    """Names that the base does not contain. If there are any, there is no answer."""
    notes: tuple[str, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    seconds: float
    trace: tuple[SpanReply, ...] = ()
    spending: Spending = Spending()
    request: AskRequest

    def _repr_html_(self) -> str:
        return answer_card(self.model_dump())


class MentionReply(Reply):
    """A span of a text that names nodes."""

    start: int
    end: int
    text: str
    nodes: tuple[FoundReply, ...]


class CountReply(Reply):
    """Number of edges of a relation in one direction."""

    relation: str
    direction: Literal["out", "in"]
    count: int


class NeighborsReply(CountReply):
    """Neighbours by one relation in one direction: the total number, and the first nodes."""

    nodes: tuple[NodeReply, ...]


class NodePage(NodeReply):
    """Everything about one node."""

    aliases: tuple[str, ...] = ()
    document: str = ""
    attributes: dict[str, Any] = {}
    neighbors: tuple[NeighborsReply, ...] = ()


class EdgeReply(Reply):
    """An edge between nodes, by their keys."""

    head: str
    relation: str
    tail: str


class DrawnNode(_Partial):
    """A node of a drawing: an entity, the answer, or a node between them."""

    key: str
    name: str
    type: str
    role: str | None = None


class GraphReply(Reply):
    """Nodes and edges to draw."""

    nodes: tuple[DrawnNode, ...]
    edges: tuple[EdgeReply, ...]
    text: str = ""
    counts: tuple[CountReply, ...] = ()
    left_out: int = 0
    paths: tuple[dict[str, Any], ...] = ()
    disconnected: bool = False
    complete: bool = True
    features: dict[str, float] = {}


class SkippedReply(Reply):
    """A file that could not be used, with the reason."""

    file: str
    reason: str


class BuildReply(Reply):
    """State of the build of a document base."""

    state: Literal["idle", "waiting", "running", "failed"]
    stage: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None
    skipped: tuple[SkippedReply, ...] = ()


class DocumentReply(Reply):
    """One file."""

    name: str
    title: str = ""
    """Title from the file, after it is read."""
    bytes: int | None = None
    """None if the server has only the extracted text, not the file."""
    indexed: bool


class DocumentsReply(Reply):
    """The files of a document base and the state of its build."""

    documents: tuple[DocumentReply, ...]
    deleted: tuple[str, ...] = ()
    """Recently deleted files that can be restored."""
    build: BuildReply
    accepts: tuple[str, ...]
    most_bytes: int


class TypeReply(Reply):
    """A node type."""

    name: str
    label: str
    count: int
    answer: bool
    attributes: tuple[str, ...] = ()
    description: str = ""


class RelationReply(Reply):
    """A relation between two node types."""

    name: str
    label: str
    head: str
    tail: str
    count: int
    description: str = ""


class MethodReply(Reply):
    """A method with its options and their defaults."""

    name: str
    summary: str
    options: dict[str, str]


class BaseReply(Reply):
    """A base that this token may ask."""

    name: str
    nodes: int
    edges: int
    documents: bool
    """Whether files can be uploaded to it."""
    ready: bool
    title: str = ""
    description: str = ""
    managed: bool = False
    """Whether it was created on the server, and can be described and deleted there."""


class BaseDetails(BaseReply):
    """A base with its schema, methods, models and example questions."""

    node_types: tuple[TypeReply, ...]
    relations: tuple[RelationReply, ...]
    methods: tuple[MethodReply, ...]
    default_method: str
    models: tuple[str, ...]
    default_model: str
    may_choose_model: bool
    """Whether the client may set the default model."""
    examples: tuple[str, ...]


class BaseChange(WireRequest):
    """Title and description of a base. Its name is part of URLs and cannot be changed."""

    title: Annotated[str, Field(max_length=200)] | None = None
    description: Annotated[str, Field(max_length=5000)] | None = None


class NewBase(BaseChange):
    """A base to create."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    source: Annotated[str, Field(max_length=2000)] = ""
    """First file: a file that the server offers, or an address that it allows."""


class ModelChoice(WireRequest):
    """The default model of a base."""

    model: Annotated[str, Field(max_length=200)]


class ManagedReply(Reply):
    """Permissions of the client to manage bases."""

    may_make: bool
    deleted: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """Files and addresses from which a base can be created."""


class FeedbackRequest(WireRequest):
    """Whether the result of a run is correct."""

    right: bool


class EstimateReply(Reply):
    """Estimated cost of a question."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    dollars: float
    words: str


class ProblemReply(Reply):
    """An error message with a remedy."""

    error: str


class TableReply(Reply):
    """A table of formatted cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


class EvaluationReply(Reply):
    """The runs over one question set."""

    title: str
    runs: tuple[str, ...]
    tables: tuple[TableReply, ...]


class FailureReply(Reply):
    """A question with a poor answer."""

    id: str
    question: str
    gold: tuple[str, ...]
    found: tuple[str, ...]
    metrics: dict[str, float]
    error: str | None
    fallbacks: tuple[str, ...]
    trace: tuple[str, ...]
