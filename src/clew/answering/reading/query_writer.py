"""A small network that writes the query for a question, token by token.

1  The encoder reads the question, with letters for its names, together with the types, attributes and relations of the
   schema. Attributes carry the values that the question may mention.
2  The decoder writes the tokens of the query (query_tokens.py). It points at types, attributes and hops. The grammar
   allows only tokens that can follow.
3  A beam keeps the likeliest sequences.

The network learned from questions over many schemas and contains none of them. It runs without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random

import numpy as np

from clew.answering.reading.encoders import LONGEST_QUESTION, Encoders, Floats, ReadQuestion
from clew.answering.reading.query_tokens import Allowed, Symbols, Terms, read_query
from clew.answering.reading.vocabulary import Vocabulary
from clew.core import query as ql
from clew.core.schema import Relation, words_of
from clew.core.scores import round_network
from clew.models.embedding.onnx import FIRST_TOKEN, LAST_TOKEN, embedders_tokenizer

MAX_TOKENS = 320
"""Maximum number of word pieces that the encoder reads. Of larger schemas it reads the likeliest parts."""
MAX_STEPS = 60
"""Maximum number of tokens of a query."""
BEAM = 6
"""Number of sequences that the beam keeps."""
MAX_DESCRIPTION = 8
"""Maximum number of words of a relation's description."""
MAX_VALUE = 8
"""Maximum number of word pieces of a value."""
VALUES_SHOWN = 3
"""Maximum number of values shown with an attribute."""
HEADS = 6

Relevance = Callable[[], Floats]
"""Returns how likely a question asks for each token of the schema."""
Ids = list[int]
Item = tuple[int, Ids]
"""A token of the schema and its word pieces. A relation stands for both of its hops."""


@dataclass(frozen=True)
class Draft:
    """A written query with the log-probability of its tokens. None if the schema cannot answer the question."""

    tokens: tuple[int, ...]
    query: ql.AnyQuery | None
    score: float


@lru_cache(maxsize=50_000)
def pieces(text: str) -> tuple[int, ...]:
    """Return the word pieces of a text."""
    return tuple(embedders_tokenizer().encode(text).ids[1:-1][:LONGEST_QUESTION])


@dataclass(frozen=True)
class SchemaText:
    """A schema as the encoder reads it: one item for each type, attribute and relation."""

    vocabulary: Vocabulary

    @cached_property
    def symbols(self) -> Symbols:
        """The tokens over the schema."""
        return Symbols(self.vocabulary)

    @cached_property
    def items(self) -> list[Item]:
        """The items in the order of the types: each type, then its attributes and the relations that start there."""
        return [item for block in self._blocks(with_descriptions=True) for item in block]

    def shuffled(self, rng: Random, *, with_descriptions: bool) -> list[Item]:
        """Return the items in another order. Each type stays before its attributes and relations."""
        blocks = self._blocks(with_descriptions=with_descriptions)
        return [
            item for one in rng.sample(blocks, len(blocks)) for item in (one[0], *rng.sample(one[1:], len(one) - 1))
        ]

    def _blocks(self, *, with_descriptions: bool) -> list[list[Item]]:
        symbols, found = self.symbols, []
        for name, code in symbols.type_codes.items():
            block: list[Item] = [(code, [*pieces("|"), *pieces(self.vocabulary.type_text(name))])]
            for place in symbols.owned[name].tolist():
                own = self.vocabulary.attributes[place - symbols.attributes]
                kind = [*pieces("("), *pieces(own.kind), *pieces(")")]
                block.append((place, [*pieces(","), *pieces(own.words), *kind]))
            for place, row in enumerate(self.vocabulary.schema.relations):
                if row.head == name:
                    block.append((symbols.hops + 2 * place, self._relation(row, with_descriptions)))
            found.append(block)
        return found

    def _relation(self, row: Relation, with_description: bool) -> Ids:
        back = f" ( {words_of(row.inverse)} )" if row.inverse else ""
        label = pieces(words_of(row.display or row.name) + back)
        ids = [*pieces(">"), *label, *pieces(":"), *pieces(self.vocabulary.type_words(row.tail))]
        said = " ".join(row.description.split()[:MAX_DESCRIPTION]) if with_description else ""
        return [*ids, *pieces("("), *pieces(said), *pieces(")")] if said else ids

    def read(
        self, question: str, values: Sequence[str], links: Sequence[tuple[int, int]], relevance: Relevance
    ) -> tuple[Ids, int, Spans]:
        """Return the word pieces for a question, the start of the schema in them, and the span of each token.

        `links` are pairs of an attribute and an index in `values`. `relevance` is only asked for if the schema is long.
        """
        asked = pieces(question)
        linked = [(self.symbols.attributes + attribute, value) for attribute, value in links]
        items = self.with_values(self.items, [pieces(value) for value in values], linked)
        room = MAX_TOKENS - len(asked) - 3
        if sum(len(ids) for _, ids in items) > room:
            items = self._likeliest(items, relevance(), {code for code, _ in linked}, room)
        return self.laid_out(asked, items)

    @staticmethod
    def with_values(
        items: Sequence[Item], values: Sequence[Sequence[int]], links: Sequence[tuple[int, int]]
    ) -> list[Item]:
        """Return the items with values of the question after their attributes. `links` has tokens of attributes."""
        shown: dict[int, list[int]] = {}
        for code, value in links:
            shown.setdefault(code, []).append(value)
        found = []
        for code, ids in items:
            told = list(ids)
            for value in shown.get(code, [])[:VALUES_SHOWN]:
                told += [*pieces("="), *pieces("value"), *pieces(str(value + 1)), *pieces("(")]
                told += [*values[value][:MAX_VALUE], *pieces(")")]
            found.append((code, told))
        return found

    def laid_out(self, asked: Sequence[int], items: Sequence[Item]) -> tuple[Ids, int, Spans]:
        """Return the word pieces of a question and items, the start of the items, and the span of each token."""
        ids = [FIRST_TOKEN, *asked, LAST_TOKEN]
        start, spans = len(ids), Spans()
        for code, own in items:
            spans.add(code, len(ids), len(ids) + len(own), self.symbols)
            ids += own
        return [*ids, LAST_TOKEN], start, spans

    def _likeliest(self, items: list[Item], relevance: Floats, linked: Collection[int], room: int) -> list[Item]:
        def score(item: Item) -> float:
            code = item[0]
            if code < self.symbols.attributes or code in linked:
                return np.inf
            return float(relevance[code] if code < self.symbols.hops else relevance[code : code + 2].max())

        kept, used = set(), 0
        for at in sorted(range(len(items)), key=lambda at: -score(items[at])):
            if used + len(items[at][1]) <= room:
                kept.add(at)
                used += len(items[at][1])
        return [item for at, item in enumerate(items) if at in kept]


TYPE, ATTRIBUTE, OUT, IN = range(4)


@dataclass
class Spans:
    """Where the encoder reads each token of the schema."""

    codes: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)

    def add(self, code: int, start: int, end: int, symbols: Symbols) -> None:
        """Add an item. A relation is read for both directions."""
        kinds = [TYPE] if code < symbols.attributes else [ATTRIBUTE] if code < symbols.hops else [OUT, IN]
        for more, kind in enumerate(kinds):
            self.codes.append(code + more)
            self.starts.append(start)
            self.ends.append(end)
            self.kinds.append(kind)


@dataclass(frozen=True, eq=False)
class ReadSchema:
    """A question encoded together with a schema."""

    text: SchemaText
    states: Floats
    spans: Spans
    question: ReadQuestion


@dataclass(frozen=True)
class QueryWriter:
    """Writes queries with the encoders' states and the decoder on top of them."""

    encoders: Encoders

    def read(
        self,
        question: str,
        text: SchemaText,
        relevance: Relevance,
        values: Sequence[str] = (),
        links: Sequence[tuple[int, int]] = (),
    ) -> ReadSchema:
        """Encode a question, with letters for its names, with a schema."""
        ids, start, spans = text.read(question, values, links, relevance)
        states = self.encoders.states(ids, start)
        asked = slice(1, start - 1)
        offsets = embedders_tokenizer().encode(question).offsets[asked]
        return ReadSchema(text, states, spans, ReadQuestion(question, offsets, ids[asked], states[asked]))

    def write(self, read: ReadSchema, terms: Terms, preferred: Floats | None = None, beam: int = BEAM) -> list[Draft]:
        """Return the likeliest queries, the likeliest first. `preferred` has a score to add for each token."""
        decoder = _Decoder(self.encoders.writer)
        return _Beam(decoder, read.text.symbols, terms, read.states, read.spans, beam, preferred).drafts()


@dataclass(frozen=True)
class _Decoder:
    """The layers of the decoder."""

    parts: Mapping[str, Floats]

    @property
    def layers(self) -> int:
        return 1 + max(int(name.split(".")[1]) for name in self.parts if name.startswith("layers."))

    def linear(self, name: str, x: Floats) -> Floats:
        weights, bias = self.parts[f"{name}.weight"], self.parts[f"{name}.bias"]
        found = (weights @ x.reshape(-1, x.shape[-1]).T).T + bias  # a third faster than the other order for a few rows
        return np.asarray(found.reshape(*x.shape[:-1], len(bias)), dtype=np.float32)

    def normed(self, name: str, x: Floats) -> Floats:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(scaled * self.parts[f"{name}.weight"] + self.parts[f"{name}.bias"], dtype=np.float32)


@dataclass
class _Hypothesis:
    tokens: tuple[int, ...]
    score: float
    reading: Generator[Allowed, int, ql.AnyQuery | None]
    allowed: Allowed


@dataclass
class _Beam:
    """Searches for the likeliest queries of one question."""

    decoder: _Decoder
    symbols: Symbols
    terms: Terms
    states: Floats
    spans: Spans
    width: int
    preferred: Floats | None = None

    def __post_init__(self) -> None:
        """Compute what all steps share: the vectors of the schema, and the keys and values of the question."""
        decoder, spans = self.decoder, self.spans
        sums = np.concatenate((np.zeros((1, self.states.shape[1]), np.float32), self.states.cumsum(0)))
        starts, ends, kinds = (np.array(one) for one in (spans.starts, spans.ends, spans.kinds))
        means = (sums[ends] - sums[starts]) / (ends - starts)[:, None]
        items = decoder.linear("items", means)
        for kind, name in ((OUT, "dirs.0"), (IN, "dirs.1")):
            items[kinds == kind] = decoder.linear(name, means[kinds == kind])
        self.items = decoder.normed("inorm", items + decoder.parts["kinds.weight"][kinds])
        self.pointed = decoder.linear("pointed", self.items)
        self.codes = np.array(spans.codes)
        self.row = {code: at for at, code in enumerate(spans.codes)}
        self.size = len(self.states[0])
        self.memory = []
        for layer in range(decoder.layers):
            keys, values = np.split(decoder.linear(f"layers.{layer}.kv", self.states[None]), 2, axis=-1)
            self.memory.append((self._heads(keys), self._heads(values)))

    def _heads(self, x: Floats) -> Floats:
        return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

    def drafts(self) -> list[Draft]:
        """Return the finished queries, the likeliest first."""
        reading = read_query(self.symbols, self.terms)
        beam = [_Hypothesis((), 0.0, reading, next(reading))]
        past: list[tuple[Floats, Floats] | None] = [None] * self.decoder.layers
        done: list[Draft] = []
        for step in range(MAX_STEPS):
            scores, past = self._step([one.tokens[-1] if one.tokens else None for one in beam], step, past)
            options: list[tuple[float, int, int]] = []
            for at, one in enumerate(beam):
                own = np.where(one.allowed, scores[at], -np.inf)
                best = np.argpartition(-own, min(self.width, len(own) - 1))[: self.width]
                options += [(one.score + float(own[t]), at, int(t)) for t in best if own[t] > -1e3]
            options.sort(key=lambda option: (-option[0], option[1:]))
            kept: list[_Hypothesis] = []
            parents: list[int] = []
            for score, at, token in options[: self.width]:
                one = beam[at]
                if done and score < done[0].score - GIVEN_UP:
                    break
                reading, _ = self._replayed(one.tokens)
                try:
                    kept.append(_Hypothesis((*one.tokens, token), score, reading, reading.send(token)))
                    parents.append(at)
                except StopIteration as ended:
                    done.append(Draft((*one.tokens, token), ended.value, score))
            done.sort(key=lambda draft: -draft.score)
            if not kept or len(done) >= self.width:
                break
            past = [(keys[parents], values[parents]) for keys, values in (one for one in past if one is not None)]
            beam = kept
        return done

    def _replayed(self, tokens: Sequence[int]) -> tuple[Generator[Allowed, int, ql.AnyQuery | None], Allowed]:
        """Return the grammar after some tokens. Generators cannot be copied."""
        reading = read_query(self.symbols, self.terms)
        allowed = next(reading)
        for token in tokens:
            allowed = reading.send(token)
        return reading, allowed

    def _step(
        self, last: Sequence[int | None], step: int, past: Sequence[tuple[Floats, Floats] | None]
    ) -> tuple[Floats, list[tuple[Floats, Floats] | None]]:
        """Return the log-probabilities of the next token after each sequence, and the states of its tokens."""
        decoder, parts = self.decoder, self.decoder.parts
        fixed = parts["fixed.weight"]
        known = [
            fixed[-1] if one is None else fixed[one] if one < self.symbols.types else self._item(one) for one in last
        ]
        x = (np.stack(known) + parts["places.weight"][step])[:, None]
        added: list[tuple[Floats, Floats] | None] = []
        for layer in range(decoder.layers):
            name = f"layers.{layer}"
            queries, keys, values = map(
                self._heads, np.split(decoder.linear(f"{name}.qkv", decoder.normed(f"{name}.n1", x)), 3, axis=-1)
            )
            before = past[layer]
            if before is not None:
                keys, values = (np.concatenate(pair, axis=2) for pair in zip(before, (keys, values), strict=True))
            added.append((keys, values))
            x = x + decoder.linear(f"{name}.o", _attended(queries, keys, values))
            queries = self._heads(decoder.linear(f"{name}.q", decoder.normed(f"{name}.n2", x)))
            x = x + decoder.linear(f"{name}.co", _attended(queries, *self.memory[layer]))
            inner = decoder.linear(f"{name}.f1", decoder.normed(f"{name}.n3", x))
            x = x + decoder.linear(f"{name}.f2", _gelu(inner))
        states = decoder.normed("norm", x)[:, 0]
        told = np.full((len(last), self.symbols.size), -1e4, dtype=np.float32)
        told[:, : self.symbols.types] = decoder.linear("out", states)
        told[:, self.codes] = decoder.linear("point", states) @ self.items.T / np.sqrt(self.size)
        told = round_network(told if self.preferred is None else told + self.preferred)
        return told - np.logaddexp.reduce(told, axis=1, keepdims=True), added

    def _item(self, token: int) -> Floats:
        return np.asarray(self.pointed[self.row[token]], dtype=np.float32)


GIVEN_UP = 8.0
"""Difference in score to the best query below which no further query is written."""


def _attended(queries: Floats, keys: Floats, values: Floats) -> Floats:
    scores = queries @ keys.transpose(0, 1, 3, 2) / np.sqrt(queries.shape[-1])
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    found = (scores / scores.sum(-1, keepdims=True)) @ values
    return np.asarray(found.transpose(0, 2, 1, 3).reshape(len(found), 1, -1), dtype=np.float32)


def _gelu(x: Floats) -> Floats:
    """Return the Gaussian error linear unit, by the approximation of erf from Abramowitz and Stegun (7.1.26)."""
    y = np.abs(x) / np.sqrt(np.float32(2))
    t = 1 / (1 + 0.3275911 * y)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - poly * np.exp(-y * y))
    return np.asarray(0.5 * x * (1 + erf), dtype=np.float32)
