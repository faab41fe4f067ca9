"""Answer from passages: with the best span, or with a model that writes the answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, model_validator

from clew.answering.reading.extraction.asked import Asked
from clew.answering.reading.extraction.clues import CluedSpan, Evidence
from clew.answering.reading.extraction.comparing import compared
from clew.answering.roles.claims import check_claims
from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.proper_names import sentences
from clew.core.roles import CitedClaim, Read, Reader, Reading, Source
from clew.core.texts import whole_text
from clew.models.passages import PassageNetwork
from clew.models.protocol import Completion, Embedder, LanguageModel, Message, Request
from clew.models.structured import LONGEST, Ask, Prompt, TypedReply, ask, find_json, object_schema, read_json
from clew.models.tokens import count_request_tokens, count_tokens, cut_to_question


@lru_cache(maxsize=1)
def shipped_weights() -> Mapping[str, float]:
    """Return the weights of the clues, from a conditional logit over the spans of a question (benchmarks/reader.py)."""
    weights: dict[str, float] = json.loads(
        files("clew.answering.reading.extraction").joinpath("weights.json").read_text("utf-8")
    )
    return weights


ANSWER, UNSEEN = "network", -20.0
"""Name of the network's clue, and its log-odds for text beyond the network's input limit.

The weight is 0.1, set for an earlier network. With this one, exact answers are 34 of 150 questions of HotpotQA dev (33
before) and 9 of 100 of MuSiQue (6). The network's own best span has 16 and 5, so it does not replace the other clues.
"""


@dataclass(frozen=True)
class BestSpan:
    """Answers with a span of the best sources, with one of two things that the question names, or with yes or no.

    It answers yes or no only for two things that both have a source. Otherwise it cites the best sources without an
    answer.
    """

    closely: int = 6
    """Number of best sources whose spans are scored. Comparisons of two things search all sources."""
    citations: int = 2
    weights: Mapping[str, float] = field(default_factory=shipped_weights, repr=False)
    network: PassageNetwork = field(default_factory=PassageNetwork, repr=False)

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """Return one answer per reading, or the best sentence if no span fits."""
        return [self._read(reading) for reading in readings]

    def _read(self, reading: Reading) -> Read:
        asked = Asked(reading.question)
        evidence = Evidence(asked, reading.sources[: self.closely])
        sentences = sorted(evidence.sentences, key=lambda sentence: -evidence.share(sentence.meanings))
        if not any(evidence.covered):
            return Read(None)
        answer = compared(asked, reading.sources)
        if answer is not None:
            return answer
        if asked.kind == "yes or no":
            best = tuple(dict.fromkeys(sentence.source for sentence in sentences))[: self.citations]
            return Read(None, best, problem="yes or no needs a language model")
        candidates = self._seen(reading.question, reading.sources[: self.closely], list(evidence.candidates()))
        chosen = best_candidate(candidates, self.weights)
        if chosen is None:
            return Read(sentences[0].text, (sentences[0].source,))
        return Read(chosen.text, (chosen.source,))

    def _seen(self, question: str, sources: Sequence[Source], candidates: Sequence[CluedSpan]) -> list[CluedSpan]:
        """Add the network's clue to the candidates: the log-odds that a short answer starts and ends there."""
        if not candidates:
            return []
        readings = self.network.read(question, [(source.title, source.text) for source in sources])
        found = []
        for one in candidates:
            seen, start = readings[one.source], sources[one.source].text.find(one.text)
            inside = (seen.spans[:, 0] < start + len(one.text)) & (seen.spans[:, 1] > start)
            places = inside.nonzero()[0]
            odds = float(seen.starts[places[0]] + seen.ends[places[-1]]) if len(places) else UNSEEN
            found.append(replace(one, clues={**one.clues, ANSWER: odds}))
        return found


def best_candidate(candidates: Sequence[CluedSpan], weights: Mapping[str, float]) -> CluedSpan | None:
    """Return the best occurrence of the likeliest answer. Scores of the same answer at several positions add up."""
    if not candidates:
        return None
    scores = [sum(weights.get(clue, 0.0) * value for clue, value in found.clues.items()) for found in candidates]
    highest = max(scores)
    likely: dict[str, float] = {}
    for found, score in zip(candidates, scores, strict=True):
        likely[found.key] = likely.get(found.key, 0.0) + math.exp(score - highest)
    answer = max(likely, key=lambda key: likely[key])
    return max(
        (pair for pair in zip(candidates, scores, strict=True) if pair[0].key == answer), key=lambda pair: pair[1]
    )[0]


IN_WORDS = Prompt.load("clew.answering.roles.prompts", "read_words")
WRITTEN = Prompt.load("clew.answering.roles.prompts", "read_written")
NO_ANSWER = frozenset({"", "unknown", "none", "n/a", "not found", "no answer", "not mentioned", "not provided"})
LONGEST_ANSWER = 400
"""Maximum characters of a short answer. A longer reply is rejected."""


class _Read(TypedReply):
    answer: str | int | float
    passages: list[StrictInt] = Field(default_factory=list)


_TEXT, _NUMBERS = {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
SCHEMA = object_schema({"answer": _TEXT, "passages": _NUMBERS})


def read_answer(completion: Completion, sources: int) -> Read:
    """Return the answer with its citations. Raise ReplyError if it cites a passage that was not shown."""
    reply = read_json(completion.text, _Read)
    wrong = [number for number in reply.passages if not 1 <= number <= sources]
    if wrong:
        raise ReplyError(f"there is no passage {wrong[0]}; the passages are 1 to {sources}")
    return _read(reply, reply.passages)


def salvage_answer(completion: Completion, sources: int) -> Read:
    """Return the answer without its invalid citations."""
    reply = read_json(completion.text, _Read)
    return _read(reply, [number for number in reply.passages if 1 <= number <= sources])


def _read(reply: _Read, numbers: Sequence[int]) -> Read:
    text = " ".join(str(reply.answer).split()).strip(" .")
    if _is_nothing(text):
        return Read(None)
    if len(text) > LONGEST_ANSWER:
        raise ReplyError("the answer is not short")
    return Read(text, tuple(dict.fromkeys(number - 1 for number in numbers)))


def _is_nothing(text: str) -> bool:
    return re.sub(r"[^\w/ ]", "", text).lower().strip() in NO_ANSWER


SUPPORTED = 0.2
"""Minimum support of a written sentence by its sources."""
MOST_SENTENCES = 6
"""Maximum number of sentences used of a reply. The prompt asks for four."""
LONGEST_SENTENCE = 600
"""Maximum characters of a written sentence. The rest is cut."""
_BRACKETS = re.compile(r"\s*[\[(](?:(?:passages?|sources?)\s*)?((?:\d+\s*(?:,|and|;)?\s*)+)[\])]", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    r"\b(?:passages?|sources?|documents?|texts?|facts?)\b[^.]*\b(?:do(?:es)?\s*n[o’']t|no\b|not|never)\b"
    r"|\bnot (?:mentioned|stated|specified|provided|given|said|found)\b",
    re.IGNORECASE,
)


class _Sentence(BaseModel):
    """A sentence as models write it. Also accepts a bare text, numbers as text and a single number."""

    model_config = ConfigDict(extra="ignore")
    text: str = Field(min_length=1)
    passages: list[int] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _lenient(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"text": value}
        if isinstance(value, dict) and "passages" in value:
            cited = value["passages"] if isinstance(value["passages"], list) else [value["passages"]]
            return value | {"passages": [int(number) for one in cited for number in re.findall(r"\d{1,6}", str(one))]}
        return value


class _Written(BaseModel):
    model_config = ConfigDict(extra="ignore")
    sentences: list[_Sentence]
    found: bool = True
    missing: str = ""


_CITED = {"type": "array", "items": object_schema({"text": _TEXT, "passages": _NUMBERS})}
WRITTEN_SCHEMA = object_schema({"thinking": _TEXT, "sentences": _CITED, "found": {"type": "boolean"}, "missing": _TEXT})
"""The model first notes the contents of each source in `thinking`."""
FORM = '{"thinking": "…", "sentences": [{"text": "…", "passages": [1]}], "found": true, "missing": ""}'


def read_written(completion: Completion, sources: int) -> Read:
    """Return the unchecked sentences with their citations. Drop invalid citations and add a note."""
    return _written(read_json(completion.text, _Written), sources)


def salvage_written(completion: Completion, sources: int) -> Read:
    """Return the complete sentences of a truncated reply, or of plain text with bracketed numbers."""
    kept = []
    for value in chain.from_iterable(one if isinstance(one, list) else [one] for one in find_json(completion.text)):
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            with suppress(ValidationError):
                kept.append(_Sentence.model_validate(value))
    if not kept and "{" not in completion.text:
        # Bracketed numbers after a full stop belong to the sentence before it.
        plain = re.sub(r"([.!?])((?:\s*\[[\d,; ]+\])+)", r"\2\1", " ".join(completion.text.split()))
        kept = [_Sentence(text=text) for text in sentences(plain)]
        kept = kept if any(_BRACKETS.search(one.text) for one in kept) else []
    if not kept:
        raise ReplyError("the reply holds no whole sentence")
    read = _written(_Written(sentences=kept), sources)
    return replace(read, notes=(*read.notes, "the reply was incomplete: only its readable part is used"))


def _written(reply: _Written, sources: int) -> Read:
    missing = "" if _is_nothing(reply.missing) else " ".join(reply.missing.split())[:LONGEST_SENTENCE]
    claims: list[CitedClaim] = []
    notes: list[str] = []
    for sentence in reply.sentences:
        bracketed = [int(n) for group in _BRACKETS.findall(sentence.text) for n in re.findall(r"\d{1,6}", group)]
        inline = bracketed if all(1 <= number <= sources for number in bracketed) else []  # otherwise it may be a year
        text = " ".join((_BRACKETS.sub("", sentence.text) if inline else sentence.text).split())
        if _is_nothing(text):
            continue
        cited = dict.fromkeys([*sentence.passages, *inline])
        citations = tuple(number - 1 for number in cited if 1 <= number <= sources)
        if not citations and _SAYS_NOTHING.search(text):
            missing = missing or text
            continue
        wrong = [str(number) for number in cited if not 1 <= number <= sources]
        if wrong:
            notes.append(f"sentence {len(claims) + 1} cited {', '.join(wrong)}: there is no such source")
        claims.append(CitedClaim(text[:LONGEST_SENTENCE], citations))
    if not reply.found or (missing and not claims):
        return Read(None, missing=missing)
    if not claims:
        raise ReplyError('"sentences" is empty although "found" is true')
    if len(claims) > MOST_SENTENCES:
        notes.append(f"{len(claims) - MOST_SENTENCES} further sentences were left out")
    return _with_claims(Read("", missing=missing, notes=tuple(notes)), claims[:MOST_SENTENCES])


def _with_claims(read: Read, claims: Sequence[CitedClaim]) -> Read:
    cited = tuple(dict.fromkeys(citation for claim in claims for citation in claim.citations))
    return replace(read, text=" ".join(claim.text for claim in claims), citations=cited, claims=tuple(claims))


def cited_text(read: Read) -> str:
    """Return the sentences of an answer with citation numbers, counted in the order of its citations."""
    numbers = {source: number for number, source in enumerate(read.citations, start=1)}
    said = []
    for claim in read.claims:
        marks = "".join(f"[{numbers[source]}]" for source in claim.citations)
        doubt = "" if claim.is_supported else " (its source may not say this)"
        said.append(f"{claim.text} {marks}".rstrip() + doubt)
    return " ".join(said)


@dataclass(frozen=True)
class ModelReader:
    """Asks a model for cited and checked sentences, or for a short answer.

    Sources that do not fit into the model's context are cut to the parts that the question needs.
    """

    model: LanguageModel
    words: int | None = None
    """None for one to four sentences. A number limits the words of the answer, as the paper's "under six words"."""
    embedder: Embedder | None = None
    """Compares claims with sources by meaning. With None, only words are compared."""
    fallback: Reader | None = field(default_factory=BestSpan)
    """Reader to use if the model fails. With None, the outcome contains only the problem."""

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """Return one answer per reading. A reading without sources gets an empty answer without a request."""
        filled = [place for place, reading in enumerate(readings) if reading.sources]
        is_shown = self.words is None and len(filled) == 1  # the text of several answers at once would mix
        with trace.showing(sentences_so_far) if is_shown else nullcontext():
            outcomes = ask(self.model, [self._ask(readings[place]) for place in filled], role="read")
        answers = [Read(None)] * len(readings)
        for place, outcome in zip(filled, outcomes, strict=True):
            if outcome.value is None:
                answers[place] = self._without_model(readings[place], outcome.problem or "no reply")
            else:
                answers[place] = self._checked(outcome.value, readings[place].sources)
        return answers

    def _without_model(self, reading: Reading, problem: str) -> Read:
        if self.fallback is None:
            trace.fallback("read", problem, "answered without the model")
            return Read(None, problem=problem)
        trace.fallback("read", problem, f"read by {type(self.fallback).__name__}")
        [instead] = self.fallback.read([reading])
        return replace(instead, problem=problem)

    def _checked(self, read: Read, sources: Sequence[Source]) -> Read:
        if not read.claims:
            return read
        with trace.span("check claims", claims=len(read.claims)) as span:
            claims, notes = check_claims(read.claims, sources, self.embedder)
            span.note(unsupported=sum(not claim.is_supported for claim in claims))
        put_forward = [claim for claim in claims if claim.support >= SUPPORTED]
        notes += [
            f"left out, its source does not say this: “{claim.text}”" for claim in claims if claim.support < SUPPORTED
        ]
        if not put_forward:
            problem = "the sources do not say what the model wrote"
            trace.fallback("read", problem, "answered without the model")
            return Read(None, problem=problem, notes=(*read.notes, *notes))
        return replace(_with_claims(read, put_forward), notes=(*read.notes, *notes))

    def _ask(self, reading: Reading) -> Ask[Read]:
        read, salvage = (read_written, salvage_written) if self.words is None else (read_answer, salvage_answer)
        shown = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(self._cut(reading), 1))
        count = len(reading.sources)
        return Ask(
            self._prompt(shown, reading.question),
            lambda completion: read(completion, count),
            salvage=lambda completion: salvage(completion, count),
            schema=SCHEMA if self.words is not None else WRITTEN_SCHEMA,
            max_tokens=self._reply_tokens(),
        )

    def _prompt(self, shown: str, question: str) -> tuple[Message, ...]:
        if self.words is not None:
            return IN_WORDS.fill(passages=shown, question=question, words=self.words)
        return WRITTEN.fill(sources=shown, question=question, form=FORM)

    def _reply_tokens(self) -> int:
        """Return the token limit of the reply, including the model's reasoning. A small context lowers it."""
        return 120 if self.words is not None else min(1200, self.model.context_tokens // 4)

    def _cut(self, reading: Reading) -> list[str]:
        """Cut the sources to the context size. Each gets a fair share, and short sources leave room to longer ones."""
        texts = [_shown(source) for source in reading.sources]
        sizes = [count_tokens(text) + 4 for text in texts]  # 4 for the number and the empty line
        asked = count_request_tokens(Request(self._prompt("", reading.question)))
        room = self.model.context_tokens - self._reply_tokens() - asked
        share, left = room, len(texts)
        for size in sorted(sizes):
            share = room // left
            if size > share:
                break
            room, left = room - size, left - 1
        return [
            text if size <= share else cut_to_question(text, reading.question, max(8, share - 4))
            for text, size in zip(texts, sizes, strict=True)
        ]


def _shown(source: Source) -> str:
    heading = source.heading()
    return f"{heading}\n{source.text}" if heading else source.text


_BEGIN = re.compile(r'"sentences"\s*:\s*\[')
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"?|[\[\]{}:,]', re.DOTALL)
_HALF_A_PAIR = re.compile("[\ud800-\udbff]$")
_CITATION = re.compile(r"\s*\[[\d,; ]*(?:\]|$)")


def sentences_so_far(reply: str) -> str:
    """Return the text so far of `{"sentences": [{"text": "…", "passages": […]}, …]}`, without JSON and citations.

    Return an empty text for a reply in another form, and skip the thoughts before the sentences.
    """
    reply = reply[:LONGEST]
    begin = _BEGIN.search(reply)
    said: list[str] = []
    depth, key, is_value = 0, "", False
    for token in _TOKEN.finditer(reply, begin.end()) if begin else ():
        sign = token[0][0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
            if depth < 0:
                break
        if sign != '"':
            is_value = sign == ":"
        elif depth == 0 or (depth == 1 and is_value and key == "text"):
            said.append(_decoded(token[1]))
        elif not is_value:
            key = token[1]
    return " ".join(" ".join(_CITATION.sub("", whole_text(text)) for text in said).split())


def _decoded(written: str) -> str:
    """Decode a JSON string without its quotes. Ignore an incomplete escape at its end."""
    for whole in (written, written[: max(written.rfind("\\"), 0)]):
        with suppress(ValueError):
            return _HALF_A_PAIR.sub("", str(json.loads(f'"{whole}"', strict=False)))
    return ""
