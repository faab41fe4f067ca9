"""Train the network that writes queries.

The encoder of the choice reads a question with the schema, and a decoder learns to write the query's tokens. The
encoder also keeps what it tells about questions with plans: its scores for these stay near those before. So the reader
needs one encoder for both.

A question is read in many ways: the schema in another order, with or without descriptions, and with values of other
attributes. A schema that is too long is read in part.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clew.answering.queries.certificates import formal_query
from clew.answering.reading.encoders import SCALE, Floats
from clew.answering.reading.plan import LETTERS, Requirement, Translator
from clew.answering.reading.quantities import Quantity
from clew.answering.reading.query_tokens import (
    CODES,
    CONSTANTS,
    NUMBERS,
    VALUES,
    WORDS,
    Symbols,
    Terms,
    UnsayableError,
    query_of,
    tokens_of,
)
from clew.answering.reading.query_writer import HEADS, MAX_STEPS, Item, SchemaText, Spans, pieces
from clew.core import query as ql
from clew.core.errors import ClewError
from clew.core.roles import Interpretation
from clew.lab.training.gradient import Descent, Ids, parts
from clew.lab.training.reader.choice import OptionRow
from clew.lab.training.reader.examples import Example, SchemaExamples
from clew.lab.training.reader.queries import means
from clew.models.embedding.onnx import DIMENSION, FIRST_TOKEN, LAST_TOKEN

NUMBERED = 777_000_000
"""Stands for the first number of a question in a query, one more for the next."""
TEXTS = ("text", "category", "list")
"""Kinds of attributes that may have values in a question."""
LONGEST_READ = 448
"""Maximum number of word pieces that the encoder reads in training."""
INT8_FROM = 20_000
"""Minimum number of weights of a matrix that is stored in bytes."""


# Examples


class _Numbered(Translator):
    """Writes plans as queries with letters for names and with numbers that stand for those of the question."""

    def constant(self, mention: int) -> ql.Constant:
        return ql.Named(LETTERS[mention], self.senses[mention].type)

    def _number(self, requirement: Requirement) -> float | None:
        return None if requirement.quantity is None else float(NUMBERED + requirement.quantity)

    def conditions(self, requirement: Requirement, variable: str) -> Iterator[ql.Formula]:
        if requirement.quantity is None:
            yield from super().conditions(requirement, variable)
        else:
            own = ql.Attribute(variable, self.vocabulary.attributes[requirement.attribute or 0].name)
            yield ql.Compare(own, requirement.operator, ql.Value(NUMBERED + requirement.quantity))


@dataclass(frozen=True)
class _Kind:
    type: str


@dataclass(frozen=True)
class _Unkeyed:
    key: None = None


def query_of_example(example: Example, schema: SchemaExamples) -> ql.AnyQuery:
    """Return the query of an example, with letters for its names."""
    if example.query is not None:
        return example.query
    known = schema.vocabulary
    plan = min(example.plans, key=lambda one: one.mentions) if example.plan.target is None else example.plan
    senses: Any = [_Kind(known.schema.type_names[code]) for code in example.types]
    named: Any = [_Unkeyed() for _ in senses]
    asked: Interpretation = _Numbered(known, named, senses, example.quantities).interpretation(plan)
    if asked.asks == "truth":
        return replace(asked.query, columns=(ql.Column(ql.Aggregate("exists")),), distinct=False)
    return formal_query(asked)


@dataclass(frozen=True)
class _Literals:
    """Finds the tokens of the values of a query."""

    question: str
    numbers: Sequence[Quantity]
    values: Sequence[str]
    kinds: dict[str, str]

    def __call__(self, value: ql.Value, compared: ql.Expression | None) -> str:
        found = value.value
        if isinstance(found, bool):
            return "true" if found else "false"
        if isinstance(found, str):
            return self._text(found)
        if 0 <= found - NUMBERED < len(NUMBERS):
            return NUMBERS[int(found - NUMBERED)]
        attribute = compared.name if isinstance(compared, ql.Attribute) else ""
        kind = self.kinds.get(attribute, "number")
        words = [NUMBERS[place] for place, one in enumerate(self.numbers) if means(one, found, kind, attribute)]
        words += [word for word, one in CONSTANTS.items() if not isinstance(one, bool) and one == found]
        if not words:
            raise UnsayableError("a number that the question does not have")
        return words[0]

    def _text(self, text: str) -> str:
        for place, one in enumerate(self.numbers):
            if text.lower() == one.text.lower():
                return NUMBERS[place]
        if text in self.values:
            return VALUES[self.values.index(text)]
        raise UnsayableError("too many values")


@dataclass(frozen=True)
class WrittenExample:
    """A question as word pieces, and the tokens of its query."""

    schema: int
    asked: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]
    links: tuple[tuple[int, int], ...]
    """Attributes with their value, as pairs of an attribute's token and an index."""
    tokens: tuple[int, ...]


def written_examples(schemas: Sequence[SchemaExamples]) -> list[WrittenExample]:
    """Return the examples whose queries the tokens can say, and questions that the schema cannot answer."""
    found = []
    for place, schema in enumerate(schemas):
        symbols = Symbols(schema.vocabulary)
        for example in schema.examples:
            try:
                found.append(_written(example, schema, place, symbols))
            except ClewError:  # the tokens cannot say it
                continue
    return found


def _written(example: Example, schema: SchemaExamples, place: int, symbols: Symbols) -> WrittenExample:
    asked = pieces(example.asked)
    if example.query is None and (example.plan.form == "none" or not example.is_whole):
        if example.plan.form != "none" or not (example.is_whole or example.is_unlinked):
            raise UnsayableError("a part of a query")
        return WrittenExample(place, asked, (), (), (CODES["none"],))
    query = query_of_example(example, schema)
    lower, said = example.question.lower(), {one.text.lower() for one in example.quantities}
    texts = dict.fromkeys(
        one.value for one in ql.walk(query) if isinstance(one, ql.Value) and isinstance(one.value, str)
    )
    values = sorted((text for text in texts if text.lower() not in said), key=lambda text: lower.find(text.lower()))
    values = values[: len(VALUES)]
    kinds = [schema.vocabulary.schema.type_names[code] for code in example.types]
    names: dict[ql.Constant, str] = {
        ql.Named(letter, kind): letter for letter, kind in zip(LETTERS, kinds, strict=False)
    }
    numbers = example.quantities[: len(NUMBERS)]
    literals = _Literals(example.question, numbers, values, schema.vocabulary.schema.attribute_types)
    tokens = tokens_of(query, symbols, names, literals)
    query_of(tokens, symbols, Terms([(name, kind) for name, kind in zip(names, kinds, strict=True)], numbers, values))
    if len(tokens) > MAX_STEPS:
        raise UnsayableError("a long query")
    return WrittenExample(place, asked, tuple(map(pieces, values)), tuple(_links(tokens, symbols)), tuple(tokens))


def _links(tokens: Sequence[int], symbols: Symbols) -> Iterator[tuple[int, int]]:
    """Yield the attribute that each value of a query is compared with."""
    for at, token in enumerate(tokens):
        if CODES[VALUES[0]] <= token <= CODES[VALUES[-1]]:
            before = [one for one in tokens[max(0, at - 3) : at] if symbols.attributes <= one < symbols.hops]
            if before:
                yield before[-1], token - CODES[VALUES[0]]


@dataclass(frozen=True)
class Reading:
    """A question with a schema as the encoder reads it once, and the target in this reading."""

    ids: Ids
    start: int
    """Start of the schema."""
    spans: Spans
    targets: Ids
    """Words as they are, and tokens of the schema by their index in the reading, from len(WORDS) + 1 on."""


@dataclass(frozen=True)
class Readings:
    """Reads examples in changing ways."""

    texts: Sequence[SchemaText]
    rng: random.Random
    described: float = 0.7
    elsewhere: float = 0.35
    """Probability that a value of the query is also shown with another attribute."""
    others: float = 0.3
    """Probability that other words of the question are shown as a value."""

    def of(self, example: WrittenExample) -> Reading | None:
        """Return a reading of an example. None if the schema is too long for it."""
        text, rng = self.texts[example.schema], self.rng
        symbols = text.symbols
        kinds = text.vocabulary.attributes
        may_have = [symbols.attributes + place for place, one in enumerate(kinds) if one.kind in TEXTS]
        values, links = list(example.values), list(example.links)
        if may_have:
            links += [(rng.choice(may_have), at) for at in range(len(values)) if rng.random() < self.elsewhere]
            if rng.random() < self.others and len(values) < len(VALUES) and example.asked:
                at = rng.randrange(len(example.asked))
                values.append(example.asked[at : at + rng.choice((1, 1, 2))])
                links.append((rng.choice(may_have), len(values) - 1))
        order = rng.sample(range(len(VALUES)), len(VALUES))
        first = CODES[VALUES[0]]
        tokens = [first + order[t - first] if first <= t < first + len(VALUES) else t for t in example.tokens]
        shown: list[tuple[int, ...]] = [()] * len(VALUES)
        for at, value in enumerate(values):
            shown[order[at]] = value
        items = text.shuffled(rng, with_descriptions=rng.random() < self.described)
        items = text.with_values(items, shown, [(code, order[at]) for code, at in links])
        room = LONGEST_READ - len(example.asked) - 3
        if sum(len(ids) for _, ids in items) > room:
            items = self._some(items, example, symbols, room)
        ids, start, spans = text.laid_out(example.asked, items)
        row = {code: at for at, code in enumerate(spans.codes)}
        if any(token >= symbols.types and token not in row for token in tokens):
            return None
        return Reading(ids, start, spans, [t if t < symbols.types else len(WORDS) + 1 + row[t] for t in tokens])

    def _some(self, items: Sequence[Item], example: WrittenExample, symbols: Symbols, room: int) -> list[Item]:
        """Return the items that the query needs, and some others that share words with the question."""
        needed = {token & ~1 if token >= symbols.hops and not symbols.hops & 1 else token for token in example.tokens}
        needed |= {
            symbols.hops + 2 * ((token - symbols.hops) // 2) for token in example.tokens if token >= symbols.hops
        }
        asked, kept, used = set(example.asked), set[int](), 0
        overlap = [2 * len(asked & set(ids)) / (2 + len(ids)) + 0.5 * self.rng.random() for _, ids in items]
        for at in sorted(range(len(items)), key=lambda at: (items[at][0] not in needed, -overlap[at])):
            if used + len(items[at][1]) <= room:
                kept.add(at)
                used += len(items[at][1])
        return [item for at, item in enumerate(items) if at in kept]


# The network


def writing_network(torch: Any, encoder: Any, layers: int, inner: int, drop: float) -> Any:
    """Build the encoder with a decoder that points at parts of the schema, and with the score of a plan."""
    nn, functional = torch.nn, torch.nn.functional

    class Layer(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.o = nn.Linear(DIMENSION, 3 * DIMENSION), nn.Linear(DIMENSION, DIMENSION)
            self.q, self.kv = nn.Linear(DIMENSION, DIMENSION), nn.Linear(DIMENSION, 2 * DIMENSION)
            self.co, self.drop = nn.Linear(DIMENSION, DIMENSION), nn.Dropout(drop)
            self.f1, self.f2 = nn.Linear(DIMENSION, inner), nn.Linear(inner, DIMENSION)
            self.n1, self.n2, self.n3 = (nn.LayerNorm(DIMENSION) for _ in range(3))

        def heads(self, x: Any) -> Any:
            return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

        def forward(self, x: Any, memory: Any, mask: Any) -> Any:
            queries, keys, values = map(self.heads, self.qkv(self.n1(x)).chunk(3, -1))
            found = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            x = x + self.drop(self.o(found.transpose(1, 2).reshape(x.shape)))
            keys, values = map(self.heads, self.kv(memory).chunk(2, -1))
            queries = self.heads(self.q(self.n2(x)))
            found = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask[:, None, None])
            x = x + self.drop(self.co(found.transpose(1, 2).reshape(x.shape)))
            return x + self.drop(self.f2(functional.gelu(self.f1(self.n3(x)))))

    class Writing(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.items, self.pointed, self.point = (nn.Linear(DIMENSION, DIMENSION) for _ in range(3))
            self.dirs = nn.ModuleList([nn.Linear(DIMENSION, DIMENSION) for _ in range(2)])
            self.kinds, self.fixed = nn.Embedding(4, DIMENSION), nn.Embedding(len(WORDS) + 1, DIMENSION)
            self.places = nn.Embedding(MAX_STEPS + 1, DIMENSION)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.norm, self.inorm = nn.LayerNorm(DIMENSION), nn.LayerNorm(DIMENSION)
            self.out, self.option = nn.Linear(DIMENSION, len(WORDS)), nn.Linear(DIMENSION, 1)
            for table in (self.fixed, self.places, self.kinds):
                nn.init.normal_(table.weight, std=0.02)

        def read(self, ids: Any, types: Any) -> Any:
            fed = {"input_ids": ids, "token_type_ids": types, "attention_mask": (ids != 0).long()}
            return self.encoder(**fed).last_hidden_state.float()

        def schema(self, states: Any, spans: Any) -> Any:
            sums = functional.pad(states.cumsum(1), (0, 0, 1, 0))
            first, last, kinds = spans.unbind(-1)
            ends = [sums.gather(1, one[..., None].expand(-1, -1, DIMENSION)) for one in (first, last)]
            means = (ends[1] - ends[0]) / (last - first).clamp(min=1)[..., None]
            found = self.items(means)
            for kind, layer in ((2, self.dirs[0]), (3, self.dirs[1])):
                found = torch.where((kinds == kind)[..., None], layer(means), found)
            return self.inorm(found + self.kinds(kinds))

        def forward(self, written: Any, states: Any, mask: Any, items: Any, is_item: Any) -> Any:
            places = (written - len(WORDS) - 1).clamp(min=0)
            pointed = self.pointed(items.gather(1, places[..., None].expand(-1, -1, DIMENSION)))
            x = torch.where((written > len(WORDS))[..., None], pointed, self.fixed(written.clamp(max=len(WORDS))))
            x = x + self.places(torch.arange(written.shape[1], device=written.device))
            for layer in self.layers:
                x = layer(x, states, mask)
            x = self.norm(x)
            at = torch.einsum("btd,bid->bti", self.point(x), items) / math.sqrt(DIMENSION)
            at = at.masked_fill(~is_item[:, None], -1e4)
            begin = torch.full_like(x[..., :1], -1e4)
            return torch.cat((self.out(x), begin, at), -1).float()

    return Writing()


def decoder_parts(network: Any) -> dict[str, Any]:
    """Return the decoder under the names that the reader knows. Large matrices are int8, with a scale per row."""
    found: dict[str, Any] = {}
    for name, part in network.state_dict().items():
        exact: Floats = part.detach().float().cpu().numpy()
        if name.startswith(("encoder.", "option.")):
            continue
        if exact.ndim == 2 and exact.size >= INT8_FROM:
            scale = np.abs(exact).max(axis=1, keepdims=True) / 127 + 1e-12
            found[name], found[name + SCALE] = np.round(exact / scale).astype(np.int8), scale.astype(np.float32)
        else:
            found[name] = exact
    return found


@dataclass(frozen=True)
class WriterSettings:
    """Training settings of the writer. `near` is the weight of the difference to the scores of plans before."""

    epochs: int = 16
    rate: float = 1.2e-4
    decoder_rate: float = 6e-4
    batch: int = 128
    layers: int = 4
    inner: int = 1024
    drop: float = 0.1
    near: float = 0.5
    options: int = 256
    """Number of questions with a plan per step, whose scores have to stay near."""


@dataclass(frozen=True, eq=False)
class WriterFitting(Descent):
    """Trains the writer on top of the choice's encoder."""

    settings: WriterSettings

    def fit(self, choice: Any, schemas: Sequence[SchemaExamples], rows: Sequence[OptionRow]) -> tuple[Any, list[float]]:
        """Train the network. Return it with its loss per epoch. `rows` are questions with plans."""
        torch, own = self.torch, self.settings
        encoder = type(choice.encoder)(choice.encoder.config, add_pooling_layer=False)
        encoder.load_state_dict(choice.encoder.state_dict())
        encoder.embeddings.word_embeddings.weight.requires_grad = False
        network = writing_network(torch, encoder, own.layers, own.inner, own.drop).to(self.device)
        network.option.load_state_dict(choice.option.state_dict())
        examples = written_examples(schemas)
        readings = Readings([SchemaText(one.vocabulary) for one in schemas], self.rng)
        encoding = [one for one in network.encoder.parameters() if one.requires_grad]
        decoding = [one for name, one in network.named_parameters() if not name.startswith("encoder.")]
        groups = [{"params": encoding, "lr": own.rate}, {"params": decoding, "lr": own.decoder_rate}]
        optimizer, means = torch.optim.AdamW(groups, weight_decay=0.01), []
        steps = max(20, own.epochs * -(-len(examples) // own.batch))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / max(1.0, 0.06 * steps)) * max(0.01, 1 - step / steps)
        )
        choice.eval()
        for epoch in range(own.epochs):
            losses = []
            network.train()
            for batch in parts(self.rng.sample(range(len(examples)), len(examples)), own.batch):
                read = [one for place in batch if (one := readings.of(examples[place])) is not None]
                if not read:
                    continue
                optimizer.zero_grad(set_to_none=True)
                loss = self._loss(network, read)
                if rows:
                    loss = loss + own.near * self._difference(network, choice, rows)
                loss.backward()
                torch.nn.utils.clip_grad_norm_([*encoding, *decoding], 1.0)
                optimizer.step()
                schedule.step()
                losses.append(loss.detach())
            means.append(float(torch.stack(losses).mean()))
            self.say(f"Writer: epoch {epoch + 1} of {own.epochs}, loss {means[-1]:.3f}")
        network.eval()
        return network, means

    def _loss(self, network: Any, read: Sequence[Reading]) -> Any:
        """Return the mean cross-entropy of the tokens."""
        torch = self.torch
        ids = self.padded([one.ids for one in read])
        types = self.padded([[0] * one.start + [1] * (len(one.ids) - one.start) for one in read])
        width = max(len(one.spans.codes) for one in read)
        spans = np.zeros((len(read), width, 3), dtype=np.int64)
        for row, one in zip(spans, read, strict=True):
            row[: len(one.spans.codes)] = np.array([one.spans.starts, one.spans.ends, one.spans.kinds]).T
        longest = max(len(one.targets) for one in read)
        targets = self.tensor([[*one.targets, *[-100] * (longest - len(one.targets))] for one in read])
        begun = self.tensor([[len(WORDS)]] * len(read))
        located = self.tensor(spans)
        with self.halved():
            states = network.read(ids, types)
            items = network.schema(states, located)
            written = torch.cat((begun, targets[:, :-1].clamp(min=0)), 1)
            scores = network(written, states, ids != 0, items, located[..., 1] > 0)
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-100)

    def _difference(self, network: Any, choice: Any, rows: Sequence[OptionRow]) -> Any:
        """Return the difference of the scores of plans to those before, relative to the spread of these."""
        drawn = []
        for row in self.rng.sample(rows, min(self.settings.options, len(rows))):
            at = self.rng.randrange(len(row.options))
            first = [FIRST_TOKEN, *row.questions[at], LAST_TOKEN]
            drawn.append((first, [*first, *row.texts[at], LAST_TOKEN]))
        ids = self.padded([whole for _, whole in drawn])
        types = self.padded([[0] * len(first) + [1] * (len(whole) - len(first)) for first, whole in drawn])
        with self.halved():
            with self.torch.no_grad():
                known = choice(ids, types)
            scores = network.option(network.read(ids, types)[:, 0]).squeeze(-1).float()
        spread = known.std(unbiased=False).clamp(min=LEAST_SPREAD)
        return self.torch.nn.functional.smooth_l1_loss(scores / spread, known / spread, beta=CLOSE)


CLOSE, LEAST_SPREAD = 0.3, 0.1
"""Relative difference up to which the loss is quadratic, and the lower limit of the spread of scores."""
