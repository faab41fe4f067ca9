"""The values that travel between the layers: node sets, nodes, evidence, rankings and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import needing
from clew.core.scores import round_scores
from clew.core.states import (
    FOUND_FROM,
    State,
    certainty_in_words,
    headline,
    is_refusal,
    percentage,
    sections,
    state_of,
)

Direction = Literal["out", "in", "any"]
Value = int | float | bool | str
"""What a question may ask for instead of nodes."""
IntArray = NDArray[np.int32]
Whole = TypeVar("Whole", bound=np.integer[Any])
PRINTED = 5
"""Candidates that `print` shows."""
GIVEN_UP = "model"
"""The step of the fallback that says that a model was given up."""
MANY = 20_000
"""From this many look-ups on, marking all members in a bitmap is faster than searching for each."""


@final
class NodeSet:
    """An immutable sorted set of node ids with set algebra, held in one integer array."""

    __slots__ = ("array",)
    array: IntArray

    def __init__(self, array: IntArray) -> None:
        """Wrap an array that is already sorted and free of duplicates; `NodeSet.of` takes anything else."""
        self.array = array

    @classmethod
    def of(cls, nodes: Iterable[int] | NDArray[np.integer[Any]]) -> NodeSet:
        """Sort and de-duplicate any collection of node ids."""
        array = nodes if isinstance(nodes, np.ndarray) else np.fromiter(nodes, dtype=np.int32)
        return cls(distinct(np.sort(array.astype(np.int32, copy=False))))  # numpy's unique hashes: far slower

    @classmethod
    def range(cls, count: int) -> NodeSet:
        """All ids from 0 to count - 1."""
        return cls(np.arange(count, dtype=np.int32))

    def __and__(self, other: NodeSet) -> NodeSet:
        small, large = sorted((self.array, other.array), key=len)
        if len(small) * 8 < len(large):  # binary search of the few in the many
            return NodeSet(small[_member(small, large)])
        merged = np.concatenate((small, large))
        merged.sort(kind="stable")  # two sorted runs: one linear merge
        return NodeSet(merged[:-1][merged[1:] == merged[:-1]])

    def __or__(self, other: NodeSet) -> NodeSet:
        merged = np.concatenate((self.array, other.array))
        merged.sort(kind="stable")
        return NodeSet(distinct(merged))

    def __sub__(self, other: NodeSet) -> NodeSet:
        return NodeSet(self.array[~_member(self.array, other.array)])

    def holds(self, nodes: IntArray) -> NDArray[np.bool_]:
        """For each of these nodes, in any order, whether it is in the set."""
        if not len(self.array) or len(nodes) < MANY:
            return _member(nodes, self.array)
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
        return bool(_member(np.array([node], dtype=np.int32), self.array)[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSet) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash(self.array.tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.array[:8].tolist()))
        return f"NodeSet({len(self)}: {shown}{', …' if len(self) > 8 else ''})"


EMPTY = NodeSet(np.empty(0, dtype=np.int32))


def distinct(ordered: NDArray[Whole]) -> NDArray[Whole]:
    """A sorted array without its repetitions; numpy's unique is slower and imports its masked arrays."""
    if len(ordered) < 2:
        return ordered
    keep = np.empty(len(ordered), dtype=np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def _member(needles: IntArray, sorted_haystack: IntArray) -> NDArray[np.bool_]:
    if not len(sorted_haystack):
        return np.zeros(len(needles), dtype=np.bool_)
    places = sorted_haystack.searchsorted(needles)
    places[places == len(sorted_haystack)] = 0
    return np.asarray(sorted_haystack[places] == needles)


@dataclass(frozen=True, slots=True)
class Node:
    """One entity: the user's key, its type, its names and what is written about it."""

    id: int
    key: str
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    text: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node by key, name and type: enough to show it without the knowledge base."""

    id: int
    key: str
    name: str
    type: str

    def to_dict(self) -> dict[str, str]:
        """By the user's key."""
        return {"key": self.key, "name": self.name, "type": self.type}


Cell = NodeRef | Value | None
"""What stands in a row of an answer."""


@dataclass(frozen=True, slots=True)
class Triple:
    """One edge, always in its stored direction."""

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
        """`head —relation→ tail`, with the edge's attributes in brackets."""
        shown = ", ".join(f"{name} {value}" for name, value in self.attributes.items() if value not in (None, ""))
        return f"{self.head.name} —{self.relation}→ {self.tail.name}" + (f" ({shown})" if shown else "")

    def to_dict(self) -> dict[str, Any]:
        """As plain values, in its stored direction."""
        return {"kind": "fact", **self.triple(), "text": self.in_words()}

    def triple(self) -> dict[str, Any]:
        """Head, relation and tail, with the attributes of the edge."""
        shown = {"head": self.head.to_dict(), "relation": self.relation, "tail": self.tail.to_dict()}
        return shown | ({"attributes": plain(self.attributes)} if self.attributes else {})


@dataclass(frozen=True, slots=True)
class Path:
    """Facts that lead from what the question names to the answer, in reading order."""

    facts: tuple[Fact, ...]

    def in_words(self) -> str:
        """The facts one after another."""
        return "; ".join(fact.in_words() for fact in self.facts)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"kind": "path", "facts": [fact.triple() for fact in self.facts], "text": self.in_words()}


LONGEST_SHOWN = 400
"""Characters of a quotation in words."""
Box = tuple[float, float, float, float]
"""Left, top, right and bottom in points from the top left of a page."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A quoted span of a node's text or of a document: file, page and character span where there is a file."""

    node: NodeRef
    text: str
    file: str | None = None
    page: int | None = None
    start: int | None = None
    end: int | None = None
    section: str = ""
    """The headings above it, outermost first."""
    mark: tuple[int, int] | None = None
    """The characters of `text` that say what was asked."""
    boxes: tuple[Box, ...] = ()
    """Where the marked lines, or else all, are printed on the page."""

    @classmethod
    def of(cls, node: Node, start: int = 0, end: int | None = None, mark: tuple[int, int] | None = None) -> Passage:
        """The characters start to end of a passage's text, by default all; spans count characters of the file's text.

        `mark` is a span of the same text, inside the quotation.
        """
        own, end = node.attributes, len(node.text) if end is None else end
        first, last, place = own.get("start"), own.get("end"), (start, end)
        if first is not None and last is not None:  # rows under a repeated header: the span is that of the rows
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
        """What says it: the marked characters, or else all."""
        return self.text if self.mark is None else self.text[slice(*self.mark)]

    @property
    def place(self) -> str:
        """File and page, where there is a file."""
        return "" if self.file is None else f"{self.file}{'' if self.page is None else f', page {self.page}'}"

    def in_words(self) -> str:
        """The quotation with its place, on one line; what is long is cut."""
        quoted = " ".join(self.marked.split())
        quoted = quoted if len(quoted) <= LONGEST_SHOWN else f"{quoted[:LONGEST_SHOWN]}…"
        return f"“{quoted}”" + (f" [{self.place}]" if self.file else "")

    def to_dict(self) -> dict[str, Any]:
        """As plain values; the place as far as it is known."""
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
    """The boxes of the printed lines that hold some of the characters; of all lines where none does."""
    placed = [tuple(map(float, line.split(","))) for line in lines.split(";") if line]
    held = [line for line in placed if line[0] < end and line[1] > start]
    return tuple((line[2], line[3], line[4], line[5]) for line in held or placed)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model, an index or a ranker said about a candidate, and why."""

    by: str
    score: float | None = None
    reason: str = ""

    def in_words(self) -> str:
        """Who judged, the score and the reason."""
        score = "" if self.score is None else f" {self.score:.3f}"
        return f"{self.by}{score}" + (f": {self.reason}" if self.reason else "")

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"kind": "judgement", "by": self.by, "score": self.score, "text": self.in_words()}


Evidence = Fact | Path | Passage | Judgement


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer with its score and the evidence for it."""

    node: NodeRef
    score: float
    evidence: tuple[Evidence, ...] = ()

    def to_dict(self, rank: int) -> dict[str, Any]:
        """As plain values, with its place in the answer."""
        evidence = [piece.to_dict() for piece in self.evidence]
        return {"rank": rank, **self.node.to_dict(), "score": round(float(self.score), 6), "evidence": evidence}


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Node ids with scores, best first, ties by smaller id; what an index returns."""

    nodes: IntArray
    scores: NDArray[np.float32]

    @classmethod
    def of(
        cls, nodes: Sequence[int] | IntArray, scores: Sequence[float] | NDArray[Any], k: int | None = None
    ) -> Ranking:
        """Round the scores, order by them, highest first, ties by smaller id, and keep the first k."""
        ids = np.asarray(nodes, dtype=np.int32)
        values = round_scores(np.asarray(scores))
        order = np.lexsort((ids, -values))[:k]
        return cls(ids[order], values[order])

    def top(self, k: int) -> Ranking:
        """The first k."""
        return Ranking(self.nodes[:k], self.scores[:k])

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.nodes.tolist(), self.scores.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class Fallback:
    """A step that could not do what it was meant to do, and what was done instead."""

    step: str
    reason: str
    instead: str


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name in a question that the base does not have, as written, and names of like spelling that it has."""

    text: str
    close: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Say that the name is unknown, and which names are close."""
        close = f" Close names: {', '.join(self.close)}." if self.close else ""
        return f"I do not know “{self.text}” here.{close}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranked candidates for a question, each with its evidence, and how they were found."""

    question: str
    candidates: tuple[Candidate, ...] = ()
    method: str = ""
    """The method that answered; `ask` fills it in, as it does the model and the seconds."""
    model: str = "none"
    """The model that was asked on the way; none where none was."""
    text: str | None = None
    """The answer in words; `ask` writes the sentence where the method has not."""
    evidence: tuple[Evidence, ...] = ()
    """Evidence for the written answer or for the answer as a whole."""
    query: Mapping[str, Any] = field(default_factory=dict)
    """The formal query behind the answer: as parsed, how it was grounded, and as SPARQL and Cypher."""
    fallbacks: tuple[Fallback, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader should know: which method was picked, what was cut short, what was not covered."""
    seconds: float = 0.0
    trace: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """The steps that led to it, as `clew.core.trace.Span`."""
    value: Value | None = None
    """A number, yes or no, or the value of an attribute, where the question asks for one."""
    certainty: float | None = None
    """How likely the question was read rightly, 0..1, where the method can tell."""
    columns: tuple[str, ...] = ()
    """What the cells of each row are, where the answer is a table."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    answer_count: int | None = None
    """How many of the first candidates are the answer; None where they are only ranked, and nothing was checked."""
    unknown: tuple[UnknownName, ...] = ()
    """Names in the question that the base does not have; then nothing else is answered."""

    @property
    def state(self) -> State:
        """Whether an answer was found, may have been found, or was not found."""
        is_told = bool(self.text) and not is_refusal(self.text)
        is_answer = self.value is not None or bool(self.rows)
        is_answer = is_answer or (self.answer_count != 0 and bool(self.candidates or is_told))
        is_checked = self.value is not None or self.answer_count is not None
        is_checked = is_checked and not self.query.get("relaxed") and not self.query.get("unconfirmed")
        return state_of(is_answer=is_answer, is_checked=is_checked, certainty=self.certainty)

    @property
    def headline(self) -> str:
        """What is said before the text: that it is not sure, or that nothing was found; empty where neither is so."""
        return headline(self.state, self.text)

    @property
    def sure(self) -> str:
        """How sure the answer is, "82% sure"; empty where that would say something else than the state."""
        return certainty_in_words(self.state, self.certainty)

    def sections(self, limit: int) -> list[tuple[str, Sequence[Candidate]]]:
        """The first candidates by group, each group with its heading."""
        return sections(self.state, self.candidates, len(self.matches), limit, is_value=self.value is not None)

    @property
    def found(self) -> bool:
        """Whether an answer is put forward, or only what is near."""
        return self.state != "not_found"

    @property
    def answer_set(self) -> tuple[Candidate, ...]:
        """The candidates put forward as the answer, as opposed to those that are merely ranked below it."""
        if self.answer_count is not None:
            return self.candidates[: self.answer_count]
        best = max((candidate.score for candidate in self.candidates), default=0.0)
        return tuple(candidate for candidate in self.candidates if candidate.score >= best - 1e-9)

    @property
    def matches(self) -> tuple[Candidate, ...]:
        """Everything that the query found, in order; nothing where candidates are only ranked."""
        return self.candidates[: self.answer_count or 0]

    @property
    def near(self) -> tuple[Candidate, ...]:
        """The candidates that do not match, but come near."""
        return self.candidates[len(self.matches) :]

    @property
    def dropped(self) -> tuple[str, ...]:
        """Requirements that were relaxed, and words that nothing stands for unless the reading is sure."""
        is_sure = self.certainty is not None and self.certainty >= FOUND_FROM
        return (*self.query.get("relaxed", ()), *(() if is_sure else self.query.get("unexplained", ())))

    @property
    def outage(self) -> str | None:
        """The note that stands before all others where a model was given up."""
        return self.notes[0] if self.fallbacks and self.fallbacks[0].step == GIVEN_UP else None

    def without_model(self, reason: str) -> Answer:
        """The same answer, saying first and once that the model was given up, and why."""
        theirs = [fallback for fallback in self.fallbacks if fallback.reason == reason]
        instead = "; ".join(dict.fromkeys(f"{fallback.step}: {fallback.instead}" for fallback in theirs))
        stated = Fallback(GIVEN_UP, reason, instead or "answered without it")
        others = tuple(fallback for fallback in self.fallbacks if fallback not in theirs)
        partly = "answered without the model" if self.model == "none" else "partly answered without the model"
        return replace(self, fallbacks=(stated, *others), notes=(f"{partly}: {reason}", *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """As `clew ask --json` prints it and the server sends it: the one JSON form of an answer."""
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
            "fallbacks": [{"step": f.step, "reason": f.reason, "instead": f.instead} for f in self.fallbacks],
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
        """All candidates as a pandas table: rank, key, name, type, group, score, and the evidence in words."""
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
        """How a notebook shows it."""
        from clew.core.notebook import answer_card

        return answer_card(self.to_dict())


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as JSON knows them: dates become text."""
    kept = (str, int, float, bool, list, type(None))
    return {name: value if isinstance(value, kept) else str(value) for name, value in attributes.items()}
