"""Train the reader on questions over many schemas.

1  meaning: an encoder learns which hops, attributes, types and forms a question means
2  choice: the encoder of passages learns to select the right one of the plans that the first encoder proposes
3  writer: the same encoder, with a decoder on top, learns to write queries
4  combination: schemas that neither has seen show how much each score counts
5  files: all are exported for the reader; held-out schemas are measured with these files
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading import encoders as reading
from clew.answering.reading.encoders import Encoders, Floats
from clew.answering.reading.proposals import Proposer
from clew.answering.reading.reader import BUDGET
from clew.answering.reading.scoring import HEADS, SKETCHED
from clew.core.errors import InputError
from clew.lab.training import networks
from clew.lab.training.exporting import export_network
from clew.lab.training.gradient import Descent, Ids
from clew.lab.training.gradient import parts as in_parts
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.reader.choice import (
    IMPOSSIBLE,
    AnsweredQuestion,
    ChoiceFitting,
    ChoiceSettings,
    OptionRow,
    Tokens,
    answered_schemas,
    choice_rows,
    has_answered,
    propose,
    read_answered,
)
from clew.lab.training.reader.examples import Example, HeadTarget, Hops, SchemaExamples, read_sources
from clew.lab.training.reader.writer import WriterFitting, WriterSettings, decoder_parts
from clew.models.embedding.onnx import open_tokenizer
from clew.models.model_card import add_figures

Schemas = list[SchemaExamples]
WEIGHTS = {"forms": 0.5, "lacking": 0.2, "either": 0.2, "negated": 0.2, "operators": 0.4, "positive": 0.2, "type": 0.3}
WEIGHTS |= {"denied": 0.5, "lacked": 0.5, "counted": 0.5, "value": 0.7, "value of answer": 0.5, "extreme": 0.5}
WEIGHTS |= {"switch": 0.3, "quantity": 0.5, "related": 0.2, "relating": 0.5, "valued": 0.2}
"""Loss weight of each head. Paths have weight 1."""
LABELS = {"type": "types", "denied": "hops", "lacked": "hops", "counted": "hops", "relating": "hops"}
"""Labels that a head is compared with. The default is attributes."""
LONGEST_PATH = 3
"""Maximum hops of a path. The reader proposes no longer ones."""


@dataclass(frozen=True)
class ReaderSettings:
    """Training settings of the reader.

    A step reads at least `step` questions, in batches over one schema each. Hops have their descriptions with
    probability `described`.
    A share of `unlinked` questions is also read with one name unrecognised, for which no plan is right.
    One of `folds` parts of the schemas is only used to combine the scores.
    `size` is for randomly initialised encoders. None selects the published ones.
    """

    epochs: int = 7
    rate: float = 8e-5
    head_rate: float = 1e-3
    batch: int = 32
    step: int = 128
    described: float = 0.7
    choice: ChoiceSettings = field(default_factory=ChoiceSettings)
    writer: WriterSettings = field(default_factory=WriterSettings)
    unlinked: float = 0.15
    folds: int = 8
    seed: int = 0
    size: networks.EncoderSize | None = None


@dataclass(frozen=True, eq=False)
class Tokenised:
    """A schema with its texts as tokens."""

    schema: SchemaExamples
    labels: dict[str, list[Ids]]
    texts: list[list[Ids]]
    """Token ids of each question's texts."""
    paths: list[dict[Hops, int]]
    """Paths from each type with their indices, shorter paths first."""
    steps: list[NDArray[np.int32]]
    """For each type, one row per path: for each path head, the hop that it scores. HOPLESS if it scores none."""
    targets: list[list[HeadTarget]]
    """Targets of each question."""

    @classmethod
    def of(cls, schema: SchemaExamples, tokens: Tokens) -> Tokenised:
        """Tokenise all texts of a schema."""
        known = schema.vocabulary
        texts = {"hops": known.hop_texts, "plain hops": schema.plain_hop_texts}
        texts |= {"attributes": known.attribute_texts, "types": known.type_texts}
        labels = {kind: tokens(some) for kind, some in texts.items()}
        paths = [_paths(schema, Proposer(known), kind) for kind in range(len(known.type_texts))]
        steps = [_steps(some) for some in paths]
        targets = [schema.targets(example) for example in schema.examples]
        return cls(schema, labels, [tokens(example.texts) for example in schema.examples], paths, steps, targets)


HOPLESS = -1
FIRST_HEADS = {1: 0, 2: 1, 3: 3}
"""The first of the heads for paths of one, two and three hops. Each hop has a head."""


def _steps(paths: Iterable[Hops]) -> NDArray[np.int32]:
    rows = [[HOPLESS] * FIRST_HEADS[len(path)] + list(path) for path in paths]
    return np.array([row + [HOPLESS] * (6 - len(row)) for row in rows], dtype=np.int32).reshape(-1, 6)


def _paths(schema: SchemaExamples, proposer: Proposer, kind: int) -> dict[Hops, int]:
    """Return all one-hop paths, a sample of longer ones, and all right ones."""
    rng = random.Random(kind)

    def continued(paths: list[Hops], most: int) -> list[Hops]:
        every = [(*path, hop) for path in paths for hop in proposer.leaving.get(int(proposer.ends[path[-1]]), ())]
        return every if len(every) <= most else rng.sample(every, most)

    one: list[Hops] = [(hop,) for hop in proposer.leaving.get(kind, ())]
    two = continued(one, networks.TWO)
    right = [p for e in schema.examples for index, own in enumerate(e.types) if own == kind for p in _right(e, index)]
    every = dict.fromkeys([*one, *two, *continued(two, networks.THREE), *right])
    return {path: index for index, path in enumerate(sorted(every, key=len))}


def _right(example: Example, place: int) -> list[Hops]:
    return [path for path in example.hops(place) if len(path) <= LONGEST_PATH]


def word_tokens() -> Tokens:
    """Return a function that tokenises texts like the reader."""
    tokenizer = open_tokenizer(reading.LONGEST)
    return lambda texts: [found.ids for found in tokenizer.encode_batch(list(texts))]


@dataclass(frozen=True)
class _Computed(Encoders):
    """Encoders with precomputed vectors."""

    vectors: dict[str, Floats] = field(default_factory=dict)
    matrices: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def heads(self) -> dict[str, Floats]:
        return self.matrices

    def meaning(self, texts: Sequence[str]) -> Floats:
        return np.stack([self.vectors[text] for text in texts]) if texts else super().meaning(texts)


def with_unlinked(schema: SchemaExamples, share: float, seed: int) -> SchemaExamples:
    """Return the schema with further examples: a share of the questions with one of their names unrecognised."""
    rng, more = random.Random(f"{schema.name} {seed}"), []
    for example in schema.examples:
        used = {branch.mention for branch in example.plan.branches} | set(example.plan.mentions)
        names = [place for place in range(len(example.spans)) if place in used]
        if names and rng.random() < share:
            more.append(example.unlinked(rng.choice(names), lower=rng.random() < 0.5))
    return replace(schema, examples=(*schema.examples, *more))


def in_steps(parts: Iterable[tuple[Tokenised, list[int]]], least: int) -> list[list[tuple[Tokenised, list[int]]]]:
    """Group batches into steps of at least `least` questions. Only the last step may be smaller."""
    steps: list[list[tuple[Tokenised, list[int]]]] = [[]]
    for part in parts:
        if sum(len(chosen) for _, chosen in steps[-1]) >= least:
            steps.append([])
        steps[-1].append(part)
    return steps


@dataclass(frozen=True, eq=False)
class _Step:
    """Questions over several schemas, with the vectors of their texts and of the labels of all these schemas.

    A label is compared only with the questions over its own schema.
    """

    parts: Sequence[tuple[Tokenised, list[int]]]
    texts: Sequence[Ids]
    said: Any
    """One vector per text."""
    labels: dict[str, Any]
    """One vector per label, by kind, schema after schema."""

    @cached_property
    def questions(self) -> list[tuple[int, int, int]]:
        """Each question: the index of its part, its index in the schema, and the index of its first text."""
        own = [(part, place) for part, (_, chosen) in enumerate(self.parts) for place in chosen]
        counts = [len(self.parts[part][0].texts[place]) for part, place in own]
        starts = np.cumsum([0, *counts[:-1]]).tolist()
        return [(part, place, start) for (part, place), start in zip(own, starts, strict=True)]

    @cached_property
    def _offsets(self) -> dict[str, list[int]]:
        """Kind of label → the index of the first label of each part, and the number of labels."""
        return {
            kind: np.cumsum([0, *(len(one.labels[kind]) for one, _ in self.parts)]).tolist() for kind in self.labels
        }

    def targets(self) -> dict[str, list[tuple[int, int, HeadTarget]]]:
        """Return for each head: part, text and target."""
        found = defaultdict(list)
        for part, place, start in self.questions:
            for target in self.parts[part][0].targets[place]:
                found[target.head].append((part, start + target.text, target))
        return found

    def allowed(
        self, found: Sequence[tuple[int, int, HeadTarget]], kinds: Sequence[str], fixed: int
    ) -> tuple[NDArray[np.bool_], list[int]]:
        """Return which columns each target is compared with, and its right column.

        The first `fixed` columns belong to every schema. Then come the labels of each kind.
        """
        bases = np.cumsum([fixed, *(self._offsets[kind][-1] for kind in kinds)]).tolist()
        mask = np.zeros((len(found), bases[-1]), dtype=np.bool_)
        right = []
        for row, (part, _, target) in enumerate(found):
            columns = list(range(fixed))
            for base, kind in zip(bases, kinds, strict=False):
                first, after = self._offsets[kind][part : part + 2]
                columns += range(base + first, base + after)
            mask[row, columns] = target.allowed or True
            right.append(columns[target.right])
        return mask, right

    def names(self) -> list[tuple[int, tuple[int, int], list[int]]]:
        """Return the names with right paths: text, part and type, and the indices of the right paths."""
        found = []
        for part, place, start in self.questions:
            one = self.parts[part][0]
            example = one.schema.examples[place]
            for at, kind in enumerate(example.types):
                right = [one.paths[kind][path] for path in _right(example, at)]
                if right:
                    found.append((start + 1 + at, (part, kind), right))
        return found

    def tables(self, kinds: Sequence[tuple[int, int]], last: int) -> tuple[list[int], NDArray[np.int64]]:
        """Return the index of each type's table, and the tables: for each path and head the score to add up.

        Scores are in the order of heads, then hops; the one at `last` is zero. The seventh column is the length of the
        path minus one, or 3 in rows that only fill the table.
        """
        order = {kind: index for index, kind in enumerate(dict.fromkeys(kinds))}
        steps = [self.parts[part][0].steps[kind] for part, kind in order]
        found = np.full((len(steps), max(map(len, steps)), 7), last, dtype=np.int64)
        found[..., 6] = LONGEST_PATH
        heads = np.arange(6) * self._offsets["hops"][-1]
        for table, (part, _), own in zip(found, order, steps, strict=True):
            table[: len(own), :6] = np.where(own == HOPLESS, last, own + heads + self._offsets["hops"][part])
            table[: len(own), 6] = (own != HOPLESS).sum(1) - 1
        return [order[kind] for kind in kinds], found


@dataclass(frozen=True, eq=False)
class ReaderFitting(Descent):
    """Trains networks in sequence with the same settings."""

    settings: ReaderSettings

    # 1 Meaning

    def fit_meaning(self, schemas: Sequence[Tokenised]) -> tuple[Any, list[float]]:
        """Train the network. Return it with its loss per epoch."""
        settings = self.settings
        encoder = networks.start_encoder(self.torch, settings.size)
        network = networks.meaning_network(self.torch, encoder).to(self.device)
        heads = [part for name, part in network.named_parameters() if not name.startswith("encoder.")]
        groups = [{"params": network.encoder.parameters(), "lr": settings.rate}]
        groups.append({"params": heads, "lr": settings.head_rate})

        def batches() -> list[list[tuple[Tokenised, list[int]]]]:
            found = []
            for one in schemas:
                shuffled = self.rng.sample(range(len(one.texts)), len(one.texts))
                found += [(one, part) for part in in_parts(shuffled, settings.batch)]
            return in_steps(self.rng.sample(found, len(found)), settings.step)

        return network, self._descend(network, groups, batches, self._meaning_loss, settings.epochs)

    def _descend(
        self, network: Any, groups: list[Any], batches: Callable[[], list[Any]], loss: Any, epochs: int
    ) -> list[float]:
        torch, rates, means = self.torch, [group["lr"] for group in groups], []
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        steps = max(20, epochs * len(batches()) + 2)  # the schedule fails with few steps
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps, pct_start=0.1)
        network.train()
        for epoch in range(epochs):
            losses = []
            for batch in batches():
                optimizer.zero_grad(set_to_none=True)
                found = loss(network, batch)
                found.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                losses.append(found.detach())
            means.append(float(torch.stack(losses).mean()))
            self.say(f"{type(network).__name__}: epoch {epoch + 1} of {epochs}, loss {means[-1]:.3f}")
        network.eval()
        return means

    def _meaning_loss(self, network: Any, parts: Sequence[tuple[Tokenised, list[int]]]) -> Any:
        """Return the mean loss of a question. Every question has the same weight."""
        hops = "hops" if self.rng.random() < self.settings.described else "plain hops"
        texts = [[ids for place in chosen for ids in one.texts[place]] for one, chosen in parts]
        kinds = {"hops": hops, "attributes": "attributes", "types": "types"}
        groups = [*texts, *(one.labels[name] for name in kinds.values() for one, _ in parts)]
        vectors = self._meanings(network, [ids for group in groups for ids in group])
        sizes = [sum(map(len, texts)), *(sum(len(one.labels[name]) for one, _ in parts) for name in kinds.values())]
        said, *rest = self.torch.split(vectors, sizes)
        labels = {
            kind: self.torch.nn.functional.normalize(part, dim=-1) for kind, part in zip(kinds, rest, strict=True)
        }
        step = _Step(parts, [ids for own in texts for ids in own], said, labels)
        return (self._targets_loss(network, step) + self._paths_loss(network, step)) / len(step.questions)

    def _meanings(self, network: Any, texts: Sequence[Ids], parts: int = 4) -> Any:
        """Return the vectors of texts. Texts of similar length are read together."""
        order = np.argsort([len(ids) for ids in texts], kind="stable")
        some = [[texts[at] for at in part] for part in np.array_split(order, parts) if len(part)]
        with self.halved():
            found = [network(self.padded(part)) for part in some]
        return self.torch.cat(found).index_select(0, self.tensor(np.argsort(order)))

    def _targets_loss(self, network: Any, step: _Step) -> Any:
        """Return the weighted cross-entropy of all heads but those of paths."""
        torch, total = self.torch, 0
        for head, found in step.targets().items():
            own = step.said.index_select(0, self.tensor([row for _, row, _ in found]))
            right = [target.right for _, _, target in found]
            if head in SKETCHED:
                scores = network.classes[head](network.sketched(own, [step.texts[row] for _, row, _ in found]))
            elif head in network.classes:
                scores = network.classes[head](own)
            else:
                compared = {LABELS.get(head, "attributes"): head}
                compared |= {"hops": "counted quantity"} if head == "quantity" else {}
                parts = [network.turned(own, (name,))[0] @ step.labels[kind].T for kind, name in compared.items()]
                if head == "switch":
                    parts.insert(0, network.no_switch.expand(len(found), 1))
                allowed, right = step.allowed(found, list(compared), fixed=int(head == "switch"))
                scores = torch.cat(parts, 1).masked_fill(~self.tensor(allowed), IMPOSSIBLE)
            loss = torch.nn.functional.cross_entropy(scores, self.tensor(right), reduction="sum")
            total = total + WEIGHTS[head] * loss
        return total

    def _paths_loss(self, network: Any, step: _Step) -> Any:
        """Return the cross-entropy of the right paths among all paths from the type of a name."""
        torch, names = self.torch, step.names()
        if not names:
            return 0
        own = step.said.index_select(0, self.tensor([row for row, _, _ in names]))
        scores = network.turned(own, HEADS[:6]) @ step.labels["hops"].T  # heads, names, hops
        flat = torch.cat((scores.transpose(0, 1).flatten(1), scores.new_zeros(len(names), 1)), 1)
        groups, tables = step.tables([kind for _, kind, _ in names], last=flat.shape[1] - 1)
        places = self.tensor(tables)[self.tensor(groups)]
        sums = flat.gather(1, places[..., :6].flatten(1)).view(*places.shape[:2], 6).sum(-1)
        padded = torch.cat((network.lengths, network.lengths.new_full((1,), IMPOSSIBLE)))
        likely = (sums + padded[places[..., 6]]).log_softmax(1)
        each = [(row, place, 1 / len(right)) for row, (_, _, right) in enumerate(names) for place in right]
        rows, right, shares = (self.tensor(column) for column in zip(*each, strict=True))
        return -(likely[rows, right] * shares).sum()

    # 2 Choice

    def choice_rows(self, network: Any, schemas: Schemas, tokens: Tokens) -> list[OptionRow]:
        """Return the questions with the plans that a network proposes."""
        found = []
        for schema in schemas:
            read = with_unlinked(schema, self.settings.unlinked, self.settings.seed)
            found += choice_rows(read, propose(read, self._computed(network, read, tokens)), tokens)
        return found

    def _computed(self, network: Any, schema: SchemaExamples, tokens: Tokens, batch: int = 512) -> Encoders:
        known = schema.vocabulary
        asked = [text for example in schema.examples for text in example.texts]
        texts = list(dict.fromkeys([*known.hop_texts, *known.attribute_texts, *known.type_texts, *asked]))
        ids = tokens(texts)
        with self.torch.inference_mode():
            parts = [self._meanings(network, ids[at : at + batch]).cpu().numpy() for at in range(0, len(ids), batch)]
        vectors = dict(zip(texts, np.concatenate(parts), strict=True))
        return _Computed(vectors=vectors, matrices=networks.meaning_heads(network))


def split(schemas: Schemas, fold: int, folds: int, seed: int) -> tuple[Schemas, Schemas]:
    """Return the schemas of the other folds, and of this fold."""
    own = names_of_fold((one.name for one in schemas), fold, folds, seed)
    return [one for one in schemas if one.name not in own], [one for one in schemas if one.name in own]


def measure(schemas: Schemas, encoders: Encoders) -> dict[str, float]:
    """Measure how often a reader with these encoders is right, given the names, and detects unanswerable questions."""
    shares = defaultdict(list)
    for schema in schemas:
        for example, options in zip(schema.examples, propose(schema, encoders), strict=True):
            is_right = [option.is_right for option in options]
            texts, known = [option.text for option in options], [option.known for option in options]
            priors, shared = [prior for prior, _, _ in known], [(names, more) for _, names, more in known]
            scores = encoders.choose([example.asked] * len(texts), texts, priors, shared, BUDGET)
            if example.plan.form == "none":
                shares["none"].append(int(np.argmax(scores)) == 0)
                continue
            shares["right"].append(bool(options) and is_right[int(np.argmax(scores[1:]))])
            shares["first"].append(bool(options) and is_right[0])
            shares["proposed"].append(any(is_right))
    return {name: float(np.mean(every)) for name, every in shares.items()} | {"questions": len(shares["right"])}


def fit_reader(
    schemas: Schemas,
    answered: tuple[Schemas, Sequence[AnsweredQuestion]],
    out: Path,
    settings: ReaderSettings,
    card: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, float]:
    """Train on all schemas and write the weights. Return the losses of the first and last epoch.

    `answered` are further schemas, and the questions over them with proposed plans for the choice.
    """
    if len(schemas) < 2:
        raise InputError(f"training needs at least 2 schemas, not {len(schemas)}: add sources")
    fitting = ReaderFitting.start(networks.open_torch(), settings.seed, say, settings=settings)
    tokens = word_tokens()
    learned, kept = split(schemas, 0, settings.folds, settings.seed)
    meaning, losses = fitting.fit_meaning([Tokenised.of(one, tokens) for one in (*learned, *answered[0])])
    choosing = ChoiceFitting.start(fitting.torch, settings.seed, say, settings=settings.choice)
    rows = [*fitting.choice_rows(meaning, learned, tokens), *(one.row(tokens) for one in answered[1])]
    choice, its = choosing.fit(rows, settings.size)
    writing = WriterFitting.start(fitting.torch, settings.seed, say, settings=settings.writer)
    linked = [with_unlinked(one, settings.unlinked, settings.seed) for one in (*learned, *answered[0])]
    writer, theirs = writing.fit(choice, linked, rows)
    choice.encoder, choice.option = writer.encoder, writer.option
    rows = fitting.choice_rows(meaning, kept, tokens)
    combination = choosing.combine(choice, rows) if rows else networks.COMBINATION
    heads = networks.meaning_heads(meaning) | networks.choice_heads(choice, combination)
    heads["pairs"] = heads["pairs"].astype(np.float16)
    pooled, states = {"meaning.onnx": meaning.encoder}, {"choice.onnx": choice.encoder}
    out.mkdir(parents=True, exist_ok=True)
    np.savez(out / "writer.npz", allow_pickle=False, **decoder_parts(writer))
    export_network(fitting.torch, out, card, pooled=pooled, states=states, heads=heads)
    found = {"first_loss": losses[0], "loss": losses[-1], "first_choice_loss": its[0], "choice_loss": its[-1]}
    return found | {"first_writer_loss": theirs[0], "writer_loss": theirs[-1]}


def train_reader(
    sources: Sequence[Path],
    out: Path,
    *,
    left_out: str | None = None,
    epochs: int = 7,
    teacher: Path | None = None,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Train on all schemas except those left out, and measure on these.

    `left_out` is a fold such as "0/3", or prefixes of schema names such as "j_,k_". `teacher` is the folder of a larger
    encoder with the words of uncased BERT.
    """
    choice = ChoiceSettings(teacher=None if teacher is None else str(teacher))
    settings = ReaderSettings(epochs=epochs, seed=seed, choice=choice)
    answered = read_answered(sources)
    schemas = read_sources([source for source in sources if not has_answered(source)])
    names = [*(one.name for one in schemas), *dict.fromkeys(one.owner for one in answered)]
    if left_out is None:
        own = set[str]()
    elif "/" in left_out:
        own = names_of_fold(names, *parse_fold(left_out), seed)
    else:
        own = {name for name in names if name.startswith(tuple(left_out.split(",")))}
    left = [one for one in schemas if one.name in own]
    schemas = [one for one in schemas if one.name not in own]
    answered = [one for one in answered if one.owner not in own]
    bases = answered_schemas(sources, answered)
    card: dict[str, Any] = {
        "start": networks.start_card(),
        "sources": [str(source) for source in sources],
        "questions": {one.name: len(one.examples) for one in schemas},
        "answered": len(answered),
        "left_out": left_out,
        "seed": seed,
        "settings": asdict(settings),
    }
    figures = fit_reader(schemas, (bases, answered), out, settings, card, say)
    if left:
        figures |= measure(left, Encoders(out))
        add_figures(out, figures)
    return figures
