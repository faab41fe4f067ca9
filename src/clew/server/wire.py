"""What travels over HTTP, as types: the server documents itself with them and the Python client reads them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clew.core.notebook import answer_card
from clew.core.states import State

LONGEST_QUESTION = 2000
MAX_ROWS = 10_000
"""Maximum number of answers in one reply."""
MOST_EARLIER = 20
"""Earlier questions that a request may hold."""
Name = Annotated[str, Field(min_length=1, max_length=500)]


class Request(BaseModel):
    """What a client sends; what is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Reply(BaseModel):
    """What the server sends; what a client does not know it passes over."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_serialization_defaults_required=True, use_attribute_docstrings=True
    )


class _Partial(BaseModel):
    """A reply that leaves out what does not apply."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class AskRequest(Request):
    """A question and how to answer it."""

    question: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]
    method: Annotated[str | None, Field(max_length=100)] = None
    """One of the base's methods; None means the default one."""
    model: Annotated[str, Field(max_length=200)] = ""
    """A model the server was started with, by name, or `none`, never an address; empty: the base's default."""
    k: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 10
    """Maximum number of answers in the reply. `matches` tells how many there are."""
    offset: Annotated[int, Field(ge=0)] = 0
    """Number of answers to skip, to page through a long list."""
    options: Annotated[dict[Name, str | int | float | bool], Field(max_length=20)] = {}
    fixes: Annotated[dict[Name, Annotated[list[Name], Field(max_length=20)]], Field(max_length=20)] = {}
    """Name in the question → keys of the nodes it stands for; an empty list where it names nothing."""
    relations: Annotated[dict[Name, Name], Field(max_length=20)] = {}
    """Relation that the question was understood by (`*`: any) → the one that is meant; `^` before it turns it round."""
    type: Name | None = None
    """The type of what is meant to be asked for."""
    history: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]], Field(max_length=MOST_EARLIER)
    ] = []
    """The earlier questions of the conversation, the oldest first: this one may lean on them."""


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
    """A fact, a path, a passage or a judgement: `kind` tells which, `text` says it in words."""

    kind: Literal["fact", "path", "passage", "judgement"]
    text: str
    head: NodeReply | None = None
    """Of a fact, with relation and tail."""
    relation: str | None = None
    tail: NodeReply | None = None
    attributes: dict[str, Any] = {}
    facts: tuple[FactReply, ...] = ()
    """The facts of a path."""
    by: str | None = None
    """Who judged."""
    node: NodeReply | None = None
    file: str | None = None
    page: int | None = None
    start: int | None = None
    end: int | None = None
    section: str | None = None
    """The headings above a passage, outermost first."""
    mark: tuple[int, int] | None = None
    """The characters of a passage's text that say what was asked."""
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    """Where they are printed on the page: left, top, right, bottom in points from the top left."""
    score: float | None = None


class AnswerReply(NodeReply):
    """One ranked answer with its evidence."""

    rank: int
    score: float
    evidence: tuple[EvidenceReply, ...] = ()
    group: Literal["match", "near"] = "match"
    """Whether it is put forward as an answer, or only near."""
    attributes: dict[str, Any] = {}
    """What the base says about it besides its relations, without long texts."""


class FallbackReply(Reply):
    """A step that did something other than it was meant to."""

    step: str
    reason: str
    instead: str


class CallReply(Reply):
    """One model call: tokens, price, time and the beginning of the reply; never the key."""

    prompt_tokens: int
    completion_tokens: int
    dollars: float
    seconds: float
    cached: bool
    error: str | None = None
    reply: str = ""


class SpanReply(Reply):
    """One step of the trace; `start` counts seconds from the first."""

    id: int
    parent: int | None
    name: str
    start: float
    seconds: float | None = None
    details: dict[str, Any] = {}
    error: str | None = None
    calls: tuple[CallReply, ...] = ()


class UncheckedReply(Reply):
    """What a model has written so far of an answer; the run takes its place, and may say something else."""

    text: str


class SpendingReply(Reply):
    """What the model calls came to."""

    calls: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0


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
    """What the words of a question were taken for, and what else they could mean."""

    text: str
    type: str | None
    nodes: tuple[FoundReply, ...]
    alternatives: tuple[FoundReply, ...]


class TargetReply(_Partial):
    """What is asked for."""

    name: str
    type: str | None = None


class BestReply(_Partial):
    """That only those with the most or the least are asked for: of an attribute, or of edges of a relation."""

    most: bool
    attribute: str | None = None
    relation: str | None = None


class QueryReply(_Partial):
    """The query behind an answer: as understood, as grounded, and as formal text that reproduces it."""

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
    """How many of the matches satisfy the query without what lies below a name in a hierarchy."""
    kinds: str | None = None
    """What names stand for besides themselves, in words: "a kind of it"."""
    path: str | None = None
    sparql: str | None = None
    cypher: str | None = None


class UnknownReply(Reply):
    """A name in the question that the base does not have, and names of like spelling that it has."""

    text: str
    close: tuple[str, ...] = ()


class NodeCell(Reply):
    """A node in a row."""

    key: str
    name: str
    type: str


class AskReply(Reply):
    """A finished run: the answers, the query behind them, the trace and the cost."""

    run: str
    base: str
    question: str
    method: str
    model: str
    answers: tuple[AnswerReply, ...]
    form: str | None = None
    """What is asked for: list, count, yes/no, value, superlative, comparison, describe or text."""
    understood: str | None = None
    """The question as it was understood, in words."""
    matches: int | None = 0
    """How many answers there are, listed or not; None where nothing was required that could be counted."""
    text: str | None = None
    value: bool | int | float | str | None = None
    """A number, true or false, or the value of an attribute, where the question asks for one."""
    columns: tuple[str, ...] = ()
    """What the cells of each row are, where the answer is a table."""
    rows: tuple[tuple[NodeCell | bool | int | float | str | None, ...], ...] = ()
    state: State = "found"
    """Whether an answer was found, may have been found, or was not found."""
    found: bool = True
    """Whether an answer is put forward, or only what is near."""
    certainty: float | None = None
    """How likely the question was read rightly."""
    percent: int | None = None
    """The certainty to show to people, in percent; None where it would say something else than the state."""
    evidence: tuple[EvidenceReply, ...] = ()
    query: QueryReply = QueryReply()
    dropped: tuple[str, ...] = ()
    """Words of the question and requirements that were not used."""
    unknown: tuple[UnknownReply, ...] = ()
    """Names that the base does not have; then nothing is answered."""
    notes: tuple[str, ...] = ()
    fallbacks: tuple[FallbackReply, ...] = ()
    seconds: float
    trace: tuple[SpanReply, ...] = ()
    spending: SpendingReply = SpendingReply()
    request: AskRequest

    def _repr_html_(self) -> str:
        return answer_card(self.model_dump())


class MentionReply(Reply):
    """A span of a text that names nodes."""

    start: int
    end: int
    text: str
    nodes: tuple[FoundReply, ...]


class NeighborsReply(Reply):
    """Neighbours by one relation in one direction: how many, and the first of them."""

    relation: str
    direction: Literal["out", "in"]
    count: int
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
    """A node of a drawing: whether it is an entity, the answer, or lies between."""

    key: str
    name: str
    type: str
    role: str | None = None


class CountReply(Reply):
    """How many edges of a relation there are in one direction."""

    relation: str
    direction: Literal["out", "in"]
    count: int


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
    """A file that could not be used, and why."""

    file: str
    reason: str


class BuildReply(Reply):
    """How the build of a document base stands."""

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
    """As the file says it, once it is read."""
    bytes: int | None = None
    """None where the server has no file, only what was read of it."""
    indexed: bool


class DocumentsReply(Reply):
    """The files of a document base and how its build stands."""

    documents: tuple[DocumentReply, ...]
    deleted: tuple[str, ...] = ()
    """Files that were deleted a short while ago and can be restored."""
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
    """Whether it was made on the server, and can be described and deleted there."""


class BaseDetails(BaseReply):
    """A base with its schema, its methods, the models and some questions to begin with."""

    node_types: tuple[TypeReply, ...]
    relations: tuple[RelationReply, ...]
    methods: tuple[MethodReply, ...]
    default_method: str
    models: tuple[str, ...]
    default_model: str
    may_choose_model: bool
    """Whether the client may say which model answers by default."""
    examples: tuple[str, ...]


class BaseChange(Request):
    """What people read about a base; its name, which stands in addresses, stays."""

    title: Annotated[str, Field(max_length=200)] | None = None
    description: Annotated[str, Field(max_length=5000)] | None = None


class NewBase(BaseChange):
    """A base to be made."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    source: Annotated[str, Field(max_length=2000)] = ""
    """A file to begin with: one that the server offers, or an address that it allows."""


class ModelChoice(Request):
    """The model that answers by default."""

    model: Annotated[str, Field(max_length=200)]


class ManagedReply(Reply):
    """What the client may do with bases."""

    may_make: bool
    deleted: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """Files and addresses that a base can be made of."""


class FeedbackRequest(Request):
    """Whether what a run found is right."""

    right: bool


class EstimateReply(Reply):
    """What a question would cost."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    dollars: float
    words: str


class Problem(Reply):
    """What went wrong, and what to do about it."""

    error: str


class TableReply(Reply):
    """A table of cells that are ready to be shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


class EvaluationReply(Reply):
    """The runs over one set of questions."""

    title: str
    runs: tuple[str, ...]
    tables: tuple[TableReply, ...]


class FailureReply(Reply):
    """A question that was not answered well."""

    id: str
    question: str
    gold: tuple[str, ...]
    found: tuple[str, ...]
    metrics: dict[str, float]
    error: str | None
    fallbacks: tuple[str, ...]
    trace: tuple[str, ...]
