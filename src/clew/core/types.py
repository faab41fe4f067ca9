"""Values shared by all layers: node sets, nodes, evidence, rankings and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import needing
from clew.core.scores import round_scores
from clew.core.states import FOUND_FROM, State, certainty_in_words, headline, is_refusal, percentage, sections, state_of

Direction = Literal["out", "in", "any"]
Value = int | float | bool | str
"""A result other than nodes."""
IntArray = NDArray[np.int32]
Whole = TypeVar("Whole", bound=np.integer[Any])
PRINTED = 5
"""Number of candidates that `print` shows."""
GIVEN_UP = "model"
"""Step name of the fallback after a model was given up."""
MANY = 20_000
"""Minimum number of look-ups for which a bitmap of all members is faster than binary search."""


@final
class NodeSet:
    """An immutable sorted set of node ids in one integer array."""

    __slots__ = ("array",)
    array: IntArray

    def __init__(self, array: IntArray) -> None:
        """Wrap a sorted array without duplicates. For any other input, use `NodeSet.of`."""
        self.array = array

    @classmethod
    def of(cls, nodes: Iterable[int] | NDArray[np.integer[Any]]) -> NodeSet:
        """Build a set from any collection of node ids."""
        array = nodes if isinstance(nodes, np.ndarray) else np.fromiter(nodes, dtype=np.int32)
        return cls(distinct(np.sort(array.astype(np.int32, copy=False))))  # np.unique hashes, which is far slower

    @classmethod
    def range(cls, count: int) -> NodeSet:
        """Return the set of ids from 0 to count - 1."""
        return cls(np.arange(count, dtype=np.int32))

    def __and__(self, other: NodeSet) -> NodeSet:
        small, large = sorted((self.array, other.array), key=len)
        if len(small) * 8 < len(large):  # binary search for each element of the small set
            return NodeSet(small[places_in(large, small)[1]])
        merged = np.concatenate((small, large))
        merged.sort(kind="stable")  # two sorted runs: one linear merge
        return NodeSet(merged[:-1][merged[1:] == merged[:-1]])

    def __or__(self, other: NodeSet) -> NodeSet:
        merged = np.concatenate((self.array, other.array))
        merged.sort(kind="stable")
        return NodeSet(distinct(merged))

    def __sub__(self, other: NodeSet) -> NodeSet:
        return NodeSet(self.array[~places_in(other.array, self.array)[1]])

    def holds(self, nodes: IntArray) -> NDArray[np.bool_]:
        """Return whether each of these nodes is in the set."""
        if not len(self.array) or len(nodes) < MANY:
            return places_in(self.array, nodes)[1]
        marks = np.zeros(max(int(self.array[-1]), int(nodes.max())) + 1, dtype=np.bool_)
        marks[self.array] = True
        return np.asarray(marks[nodes])

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, int | np.integer):
            return False
        return bool(places_in(self.array, np.array([node], dtype=np.int32))[1][0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSet) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash(self.array.tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.array[:8].tolist()))
        return f"NodeSet({len(self)}: {shown}{', …' if len(self) > 8 else ''})"


EMPTY = NodeSet(np.empty(0, dtype=np.int32))


def distinct(ordered: NDArray[Whole]) -> NDArray[Whole]:
    """Remove duplicates from a sorted array. np.unique is slower and imports masked arrays."""
    if len(ordered) < 2:
        return ordered
    keep = np.empty(len(ordered), dtype=np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def places_in(sorted_values: IntArray, wanted: IntArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return an index for each wanted number, and whether the sorted numbers contain it there."""
    if not len(sorted_values):
        return np.zeros(len(wanted), dtype=np.intp), np.zeros(len(wanted), dtype=np.bool_)
    places = sorted_values.searchsorted(wanted)
    places[places == len(sorted_values)] = 0
    return places, np.asarray(sorted_values[places] == wanted)


@dataclass(frozen=True, slots=True)
class Node:
    """An entity with the user's key, its type, names and text."""

    id: int
    key: str
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    text: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeRef:
    """The key, name and type of a node, for display without the knowledge base."""

    id: int
    key: str
    name: str
    type: str

    def to_dict(self) -> dict[str, str]:
        """Return the key, name and type."""
        return {"key": self.key, "name": self.name, "type": self.type}


Cell = NodeRef | Value | None
"""A value in a row of an answer."""


@dataclass(frozen=True, slots=True)
class Triple:
    """An edge between two node ids, in its stored direction."""

    head: int
    relation: str
    tail: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RelationUse:
    """A relation that leaves ("out") or enters ("in") a set of nodes, with the number of its edges."""

    relation: str
    direction: Direction
    count: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple of the knowledge base as evidence."""

    head: NodeRef
    relation: str
    tail: NodeRef
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def in_words(self) -> str:
        """Format as `head —relation→ tail`, with the edge's attributes in brackets."""
        shown = ", ".join(f"{name} {value}" for name, value in self.attributes.items() if value not in (None, ""))
        return f"{self.head.name} —{self.relation}→ {self.tail.name}" + (f" ({shown})" if shown else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, in the stored direction."""
        return {"kind": "fact", **self.triple(), "text": self.in_words()}

    def triple(self) -> dict[str, Any]:
        """Return head, relation, tail and the edge's attributes."""
        shown = {"head": self.head.to_dict(), "relation": self.relation, "tail": self.tail.to_dict()}
        return shown | ({"attributes": plain(self.attributes)} if self.attributes else {})


@dataclass(frozen=True, slots=True)
class Path:
    """Facts that lead from the nodes in the question to the answer, in reading order."""

    facts: tuple[Fact, ...]

    def in_words(self) -> str:
        """Join the facts by semicolons."""
        return "; ".join(fact.in_words() for fact in self.facts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"kind": "path", "facts": [fact.triple() for fact in self.facts], "text": self.in_words()}


LONGEST_SHOWN = 400
"""Maximum length of a quotation in `in_words`, in characters."""
Box = tuple[float, float, float, float]
"""Left, top, right and bottom in points, from the top left of a page."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A quoted span of a node's text, or of a document with its file, page and offsets."""

    node: NodeRef
    text: str
    file: str | None = None
    page: int | None = None
    start: int | None = None
    end: int | None = None
    section: str = ""
    """The headings above it, outermost first."""
    mark: tuple[int, int] | None = None
    """Character span of `text` that answers the question."""
    boxes: tuple[Box, ...] = ()
    """Boxes of the marked lines on the page, or of all lines without a mark."""

    @classmethod
    def of(cls, node: Node, start: int = 0, end: int | None = None, mark: tuple[int, int] | None = None) -> Passage:
        """Quote the characters from start to end of a node's text, by default all. Offsets refer to the file's text.

        `mark` is a span of the node's text, inside the quotation.
        """
        own, end = node.attributes, len(node.text) if end is None else end
        first, last, place = own.get("start"), own.get("end"), (start, end)
        if first is not None and last is not None:  # text with a repeated table header: use the span of the rows
            place = (first + start, first + end) if last - first == len(node.text) else (first, last)
        return cls(
            NodeRef(node.id, node.key, node.name, node.type),
            node.text[start:end],
            own.get("file"),
            own.get("page"),
            *place,
            section=own.get("section") or "",
            mark=None if mark is None else (mark[0] - start, mark[1] - start),
            boxes=printed_boxes(own.get("lines") or "", *(mark or (start, end))),
        )

    @property
    def marked(self) -> str:
        """The marked characters, or the whole text without a mark."""
        return self.text if self.mark is None else self.text[slice(*self.mark)]

    @property
    def place(self) -> str:
        """File and page. Empty without a file."""
        return "" if self.file is None else f"{self.file}{'' if self.page is None else f', page {self.page}'}"

    def in_words(self) -> str:
        """Format the quotation and its location on one line, shortened to `LONGEST_SHOWN`."""
        quoted = " ".join(self.marked.split())
        quoted = quoted if len(quoted) <= LONGEST_SHOWN else f"{quoted[:LONGEST_SHOWN]}…"
        return f"“{quoted}”" + (f" [{self.place}]" if self.file else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without unknown parts of the location."""
        place = {"file": self.file, "page": self.page, "start": self.start, "end": self.end}
        known: dict[str, Any] = {name: value for name, value in place.items() if value is not None}
        if self.section:
            known["section"] = self.section
        if self.mark is not None:
            known["mark"] = list(self.mark)
        if self.boxes:
            known["boxes"] = [list(box) for box in self.boxes]
        return {"kind": "passage", "node": self.node.to_dict(), "text": self.text, **known}


def printed_boxes(lines: str, start: int, end: int) -> tuple[Box, ...]:
    """Return the boxes of the printed lines that overlap the characters, or of all lines if there is no overlap."""
    placed = [tuple(map(float, line.split(","))) for line in lines.split(";") if line]
    held = [line for line in placed if line[0] < end and line[1] > start]
    return tuple((line[2], line[3], line[4], line[5]) for line in held or placed)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a candidate by a model, an index or a ranker."""

    by: str
    score: float | None = None
    reason: str = ""

    def in_words(self) -> str:
        """Format the judge, the score and the reason."""
        score = "" if self.score is None else f" {self.score:.3f}"
        return f"{self.by}{score}" + (f": {self.reason}" if self.reason else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"kind": "judgement", "by": self.by, "score": self.score, "text": self.in_words()}


Evidence = Fact | Path | Passage | Judgement


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer with its score and the evidence for it."""

    node: NodeRef
    score: float
    evidence: tuple[Evidence, ...] = ()

    def to_dict(self, rank: int) -> dict[str, Any]:
        """Return plain values, with the rank in the answer."""
        evidence = [piece.to_dict() for piece in self.evidence]
        return {"rank": rank, **self.node.to_dict(), "score": round(float(self.score), 6), "evidence": evidence}


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Node ids with scores as an index returns them: best first, ties by smaller id."""

    nodes: IntArray
    scores: NDArray[np.float32]

    @classmethod
    def of(
        cls, nodes: Sequence[int] | IntArray, scores: Sequence[float] | NDArray[Any], k: int | None = None
    ) -> Ranking:
        """Round the scores, sort by descending score and ascending id, and keep the first k."""
        ids = np.asarray(nodes, dtype=np.int32)
        values = round_scores(np.asarray(scores))
        order = np.lexsort((ids, -values))[:k]
        return cls(ids[order], values[order])

    def top(self, k: int) -> Ranking:
        """Return the first k."""
        return Ranking(self.nodes[:k], self.scores[:k])

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.nodes.tolist(), self.scores.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class Fallback:
    """A failed step, and the action taken instead."""

    step: str
    reason: str
    instead: str


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name in a question that the base does not have, and similar names that it has."""

    text: str
    close: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return a sentence about the unknown name and similar names."""
        close = f" Close names: {', '.join(self.close)}." if self.close else ""
        return f"I do not know “{self.text}” here.{close}"


@dataclass(frozen=True, slots=True)
class Answer:
    """Ranked candidates for a question with their evidence, and details of how they were found."""

    question: str
    candidates: tuple[Candidate, ...] = ()
    method: str = ""
    """The method that answered. `ask` sets method, model and seconds."""
    model: str = "none"
    """The model that replied, or "none"."""
    text: str | None = None
    """The answer as text. `ask` writes a sentence if the method has not."""
    evidence: tuple[Evidence, ...] = ()
    """Evidence for the text, or for the answer as a whole."""
    query: Mapping[str, Any] = field(default_factory=dict)
    """The formal query: as parsed, as linked to the base, and as SPARQL, Cypher and SQL."""
    fallbacks: tuple[Fallback, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the user: the chosen method, work cut short, uncovered parts of the question."""
    seconds: float = 0.0
    trace: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """Recorded steps, as `clew.core.trace.Span`."""
    value: Value | None = None
    """A number, a truth value or an attribute value, if the question asks for it."""
    certainty: float | None = None
    """Probability that the question was understood correctly, if the method can estimate it."""
    columns: tuple[str, ...] = ()
    """Headings of the columns, if the answer is a table."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    answer_count: int | None = None
    """Number of leading candidates that are the answer. None if the candidates are only ranked, not checked."""
    unknown: tuple[UnknownName, ...] = ()
    """Names in the question that the base does not have. The rest of the question is then not answered."""

    @property
    def state(self) -> State:
        """Certainty of the answer: "found", "maybe" or "not_found"."""
        is_told = bool(self.text) and not is_refusal(self.text)
        is_answer = self.value is not None or bool(self.rows)
        is_answer = is_answer or (self.answer_count != 0 and bool(self.candidates or is_told))
        is_checked = self.value is not None or self.answer_count is not None
        is_checked = is_checked and not self.query.get("relaxed") and not self.query.get("unconfirmed")
        return state_of(is_answer=is_answer, is_checked=is_checked, certainty=self.certainty)

    @property
    def headline(self) -> str:
        """Text shown before the answer if it is uncertain or was not found, else empty."""
        return headline(self.state, self.text)

    @property
    def sure(self) -> str:
        """The certainty, such as "82% sure". Empty if it would contradict the state."""
        return certainty_in_words(self.state, self.certainty)

    def sections(self, limit: int) -> list[tuple[str, Sequence[Candidate]]]:
        """Return the first candidates in groups with headings."""
        return sections(self.state, self.candidates, len(self.matches), limit, is_value=self.value is not None)

    @property
    def found(self) -> bool:
        """Whether there is an answer, not only close matches."""
        return self.state != "not_found"

    @property
    def answer_set(self) -> tuple[Candidate, ...]:
        """The candidates of the answer, without candidates that only rank below it."""
        if self.answer_count is not None:
            return self.candidates[: self.answer_count]
        best = max((candidate.score for candidate in self.candidates), default=0.0)
        return tuple(candidate for candidate in self.candidates if candidate.score >= best - 1e-9)

    @property
    def matches(self) -> tuple[Candidate, ...]:
        """All results of the query, in order. Empty if candidates are only ranked."""
        return self.candidates[: self.answer_count or 0]

    @property
    def near(self) -> tuple[Candidate, ...]:
        """Candidates that are close, but do not match."""
        return self.candidates[len(self.matches) :]

    @property
    def dropped(self) -> tuple[str, ...]:
        """Relaxed requirements, and unexplained words unless the interpretation is certain."""
        is_sure = self.certainty is not None and self.certainty >= FOUND_FROM
        words = [
            text for text in self.query.get("unexplained", ()) if text != self.question
        ]  # a text search uses it all
        return (*self.query.get("relaxed", ()), *(() if is_sure else words))

    @property
    def outage(self) -> str | None:
        """The first note, if it reports that a model was given up."""
        return self.notes[0] if self.fallbacks and self.fallbacks[0].step == GIVEN_UP else None

    def without_model(self, reason: str) -> Answer:
        """Return the answer with a first note that the model was given up, and the reason."""
        theirs = [fallback for fallback in self.fallbacks if fallback.reason == reason]
        instead = "; ".join(dict.fromkeys(f"{fallback.step}: {fallback.instead}" for fallback in theirs))
        stated = Fallback(GIVEN_UP, reason, instead or "answered without it")
        others = tuple(fallback for fallback in self.fallbacks if fallback not in theirs)
        partly = "answered without the model" if self.model == "none" else "partly answered without the model"
        return replace(self, fallbacks=(stated, *others), notes=(f"{partly}: {reason}", *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `clew ask --json` prints and the server sends."""
        put_forward = len(self.matches)
        return {
            "question": self.question,
            "method": self.method,
            "model": self.model,
            "form": self.query.get("form"),
            "understood": self.query.get("text"),
            "state": self.state,
            "matches": put_forward,
            "answers": [
                {**candidate.to_dict(rank), "group": "match" if rank <= put_forward else "near"}
                for rank, candidate in enumerate(self.candidates, start=1)
            ],
            "fallbacks": [asdict(fallback) for fallback in self.fallbacks],
            "text": self.text,
            "value": self.value,
            "columns": list(self.columns),
            "rows": [[one.to_dict() if isinstance(one, NodeRef) else one for one in row] for row in self.rows],
            "found": self.found,
            "certainty": None if self.certainty is None else round(self.certainty, 4),
            "percent": percentage(self.state, self.certainty),
            "evidence": [piece.to_dict() for piece in self.evidence],
            "query": dict(self.query),
            "dropped": list(self.dropped),
            "unknown": [{"text": one.text, "close": list(one.close)} for one in self.unknown],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 6),
        }

    def to_frame(self) -> Any:
        """Return all candidates, or the rows of a table, as a pandas DataFrame."""
        with needing("pandas", "pandas"):
            import pandas
        if self.rows:
            told = [[one.name if isinstance(one, NodeRef) else one for one in row] for row in self.rows]
            return pandas.DataFrame(told, columns=list(self.columns))
        columns = ["rank", "key", "name", "type", "group", "score", "evidence"]
        rows = [
            {**row, "score": one.score, "evidence": [piece.in_words() for piece in one.evidence]}
            for row, one in zip(self.to_dict()["answers"], self.candidates, strict=True)
        ]
        return pandas.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        lines = [part for part in (self.question, self.outage, self.headline, self.text, self.sure) if part]
        rank = 0
        for title, group in self.sections(PRINTED):
            lines.append(f"{title}:")
            for one in group:
                rank += 1
                why = f"  {one.evidence[0].in_words()}" if one.evidence else ""
                lines.append(f"{rank:>3}  {one.node.name} ({one.node.type}, {one.score:.3f}){why}")
        if len(self.candidates) > PRINTED:
            lines.append(f"     and {len(self.candidates) - PRINTED:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from clew.core.notebook import answer_card

        return answer_card(self.to_dict())


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Convert attributes to JSON values. Dates become text."""
    kept = (str, int, float, bool, list, type(None))
    return {name: value if isinstance(value, kept) else str(value) for name, value in attributes.items()}
