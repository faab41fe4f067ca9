"""Train the network that reads passages with a question.

1  examples: questions as tokens, with passages that answer them and candidates that do not
2  network: a cross-encoder learns which passages answer, the supporting words and the short answers
3  files: exported for Clew; held-out folders are measured with these files
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.reading.encoders import Floats
from clew.core.errors import InputError
from clew.lab.training import networks
from clew.lab.training.exporting import export_network
from clew.lab.training.gradient import Descent, Ids, parts
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.passages.examples import PassageQuestion, PassageSource, read_source
from clew.models import passages as reading
from clew.models.embedding.onnx import FIRST_TOKEN, LAST_TOKEN, open_tokenizer
from clew.models.model_card import add_figures
from clew.models.passages import PassageNetwork

NO, RELATED, ANSWERS, UNLIKE = 0, 1, 2, -1
"""Classes of a passage. UNLIKE: not an answer, and whether it is related is unknown."""
TELLING, PLACES = 2.0, 0.35
"""Loss weights of supporting words, and of the start and end of short answers and supporting words."""
PLACED, NOWHERE = 4.0, 0.3
"""Loss weights of a start or end in a right passage, and of "nowhere" (the first token) in another passage."""
Marks = tuple[tuple[int, int] | None, tuple[int, int]]
"""First and last token of the short answer, if known, and of the supporting words."""
MAX_RIGHT = 3
"""Maximum number of right passages per step, so that wrong passages have room."""
HARD = 12
"""Number of top wrong candidates to draw from first. Two slots remain for any candidate."""
SHORTEST = 16
"""Minimum tokens of a right passage without its supporting words, to be an example of a related passage."""
LONGEST_KNOWN = 48
"""Maximum tokens of known text."""
READ_AT_ONCE = {"cuda": 256, "cpu": 24}
"""Number of pairs per forward pass. Larger steps accumulate gradients."""


@dataclass(frozen=True)
class PassageSettings:
    """Training settings. `size` is for a randomly initialised encoder, for quick trials."""

    epochs: int = 4
    rate: float = 6e-5
    questions: int = 32
    passages: int = 8
    seed: int = 0
    size: networks.EncoderSize | None = None


# 1 Examples


@dataclass(frozen=True, slots=True)
class Tokens:
    """A passage as tokens, with the character spans of its text tokens."""

    title: Ids
    text: Ids
    spans: list[tuple[int, int]]

    def covering(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last token of a character range."""
        inside = [index for index, span in enumerate(self.spans) if span[1] > start and span[0] < end]
        return (inside[0], inside[-1]) if inside else None

    def without(self, first: int, last: int) -> Tokens:
        """Return the passage without some tokens of its text."""
        return Tokens(self.title, [*self.text[:first], *self.text[last + 1 :]], [])


Pair = tuple[Ids, Tokens]
"""A question and a passage."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A question, optionally with known text, and the supporting tokens and short answer of each right passage."""

    question: Ids
    known: Ids
    right: Mapping[int, tuple[tuple[int, int], tuple[int, int] | None]]
    wrong: list[int]
    """Candidates, best first."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """All examples over one list of passages, and generated examples."""

    passages: list[Tokens]
    lessons: list[Lesson]
    clozes: list[Lesson]

    @property
    def plain(self) -> list[Lesson]:
        """Examples without known text."""
        return [lesson for lesson in self.lessons if not lesson.known]

    @property
    def candidates(self) -> list[Pair]:
        """Pairs of the examples without known text."""
        return [(one.question, self.passages[p]) for one in self.plain for p in (*one.right, *one.wrong)]


def tokenised(sources: Sequence[PassageSource]) -> Lessons:
    """Tokenise the sources with the network's length limits."""
    tokenizer = open_tokenizer()

    def ids(text: str, most: int) -> Ids:
        found: Ids = tokenizer.encode(text, add_special_tokens=False).ids[:most]
        return found

    made = Lessons([], [], [])
    for source in sources:
        first = len(made.passages)
        for title, text in source.passages:
            found = tokenizer.encode(text, add_special_tokens=False)
            cut = slice(reading.LONGEST)
            made.passages.append(Tokens(ids(title, reading.LONGEST_TITLE), found.ids[cut], found.offsets[cut]))
        for questions, lessons in ((source.questions, made.lessons), (source.clozes, made.clozes)):
            for question in questions:
                lessons.extend(_lessons(question, first, made.passages, ids))
    return made


def _lessons(
    question: PassageQuestion, first: int, passages: list[Tokens], ids: Callable[[str, int], Ids]
) -> Iterator[Lesson]:
    """Yield the question and, if it has several parts, the question with each part known."""
    asked, right = ids(question.text, reading.LONGEST_QUESTION), {}
    for place, gold in question.gold.items():
        own = passages[first + place]
        telling = own.covering(*gold.span)
        if telling is not None:
            right[first + place] = (telling, own.covering(*gold.short) if gold.short else None)
    wrong = [first + place for place in question.candidates if place not in question.gold]
    yield Lesson(asked, [], right, wrong)
    for part, quote in enumerate(question.quotes if len(question.quotes) > 1 else ()):
        done = [place for place in right if question.gold[place - first].part == part]
        rest = {place: (telling, None) for place, (telling, _) in right.items() if place not in done}
        yield Lesson(asked, ids(quote, LONGEST_KNOWN), rest, wrong + done)


def joined(question: Ids, passage: Tokens) -> tuple[Ids, int, int, int]:
    """Join the input. Return the tokens, the start of the passage, the start of its text, and the text length."""
    titled = [FIRST_TOKEN, *question, LAST_TOKEN, *passage.title, reading.COLON]
    text = passage.text[: reading.LONGEST - len(titled) - 1]
    return [*titled, *text, LAST_TOKEN], len(question) + 2, len(titled), len(text)


# 2 Network


@dataclass(frozen=True, eq=False)
class PassageFitting(Descent):
    """Trains networks with the same settings and examples."""

    settings: PassageSettings
    lessons: Lessons

    @classmethod
    def open(cls, settings: PassageSettings, lessons: Lessons, say: Callable[[str], None]) -> PassageFitting:
        """Create a trainer, on a GPU if available."""
        return cls.start(networks.open_torch(), settings.seed, say, settings=settings, lessons=lessons)

    def fit(self, start: Path | None) -> tuple[Any, list[float]]:
        """Train a network from the encoder in a folder, or from the published one. Return it with its losses."""
        torch, settings = self.torch, self.settings
        network = networks.passage_network(torch, networks.start_encoder(torch, settings.size, start)).to(self.device)
        return network, self.fit_labels(network, settings.epochs, settings.rate)

    def judge(self, network: Any, pairs: Sequence[Pair]) -> Floats:
        """Return the relevance of each pair. Pairs of similar length are read together."""
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at][1].text))
        found = np.zeros(len(pairs), dtype=np.float32)
        network.eval()
        with self.torch.inference_mode():
            for part in parts(order, READ_AT_ONCE[self.device]):
                classes, _, _ = self._read(network, [pairs[place] for place in part])
                found[part] = self._relevance(classes).cpu().numpy()
        return found

    def fit_labels(self, network: Any, epochs: int, rate: float) -> list[float]:
        """Train on the examples, and return the loss of each epoch."""
        taught = [*self.lessons.plain, *self.lessons.clozes]
        size = self.settings.questions
        at_once = max(1, size if self.device == "cuda" else READ_AT_ONCE["cpu"] // self.settings.passages)

        def loss(batch: Sequence[int]) -> Any:
            return self._labels_loss(network, [taught[at] for at in batch])

        return self.descend(network, len(taught), (size, at_once), loss, epochs, rate)

    def _relevance(self, classes: Any) -> Any:
        return classes[:, ANSWERS] - self.torch.logsumexp(classes[:, :ANSWERS], 1)

    def _labels_loss(self, network: Any, lessons: Sequence[Lesson]) -> Any:
        """Compute the loss of passage classes, of their order for each question, and of places in the text."""
        torch = self.torch
        drawn = [self._drawn(lesson) for lesson in lessons]
        pairs = [
            (lesson.question, passage) for lesson, own in zip(lessons, drawn, strict=True) for passage, _, _ in own
        ]
        labels = self.tensor([label for own in drawn for _, label, _ in own])
        classes, words, texts = self._read(network, pairs)
        odds = torch.log_softmax(classes, 1)
        known = odds.gather(1, labels.clamp(min=0)[:, None])[:, 0]
        total = -torch.where(labels == UNLIKE, torch.logsumexp(odds[:, :ANSWERS], 1), known).mean()
        sizes = [len(own) for own in drawn]
        ranked = zip(self._relevance(classes).split(sizes), (labels == ANSWERS).split(sizes), strict=True)
        listed = [torch.logsumexp(own, 0) - torch.logsumexp(own[right], 0) for own, right in ranked if right.any()]
        if listed:
            total = total + torch.stack(listed).mean()
        return total + self._places_loss(words, texts, [marks for own in drawn for _, _, marks in own])

    def _places_loss(self, words: Any, texts: Sequence[tuple[int, int]], marks: Sequence[Marks | None]) -> Any:
        torch, functional = self.torch, self.torch.nn.functional
        inside = np.zeros(words.shape[:2], dtype=np.bool_)
        at, weights = np.zeros((len(marks), 4), dtype=np.int64), np.full((len(marks), 4), NOWHERE, dtype=np.float32)
        for row, ((begin, length), own) in enumerate(zip(texts, marks, strict=True)):
            inside[row, begin : begin + length] = True
            for column, mark in zip((0, 2), own or (), strict=False):
                is_there = mark is not None and mark[1] < length  # else it is unknown or cut
                weights[row, column : column + 2] = PLACED if is_there else 0
                at[row, column : column + 2] = (begin + mark[0], begin + mark[1]) if mark and is_there else 0
        text, ends = self.tensor(inside), self.tensor(at)
        allowed = text.clone()
        allowed[:, 0] = True
        placed = functional.cross_entropy(words[..., 1:].masked_fill(~allowed[..., None], -1e4), ends, reduction="none")
        places = torch.arange(words.shape[1], device=self.device)
        telling = ((places >= ends[:, 2:3]) & (places <= ends[:, 3:4])).float()
        told = functional.binary_cross_entropy_with_logits(words[..., 0], telling, reduction="none")
        told = (told * text).sum(1) / text.sum(1).clamp(min=1) * (ends[:, 2] > 0)
        return TELLING * told.mean() + PLACES * (placed * self.tensor(weights)).mean(0).sum()

    def _drawn(self, lesson: Lesson) -> list[tuple[Tokens, int, Marks | None]]:
        """Draw right passages, one without its supporting words, any passage, and wrong ones with hard ones first."""
        passages, rng = self.lessons.passages, self.rng
        right = rng.sample(list(lesson.right), min(len(lesson.right), MAX_RIGHT))
        drawn: list[tuple[Tokens, int, Marks | None]] = []
        for place in right:
            telling, short = lesson.right[place]
            drawn.append((passages[place], ANSWERS, (short, telling)))
        for place in right[:1]:
            near = passages[place].without(*lesson.right[place][0])
            drawn += [(near, RELATED, None)] if len(near.text) >= SHORTEST else []
        other = rng.randrange(len(passages))
        drawn += [(passages[other], NO, None)] if other not in lesson.right and other not in lesson.wrong else []
        room, wrong = max(0, self.settings.passages - len(drawn)), lesson.wrong
        hard = rng.sample(wrong[:HARD], min(len(wrong[:HARD]), max(0, room - 2)))
        rest = [place for place in wrong if place not in hard]
        hard += rng.sample(rest, min(len(rest), room - len(hard)))
        return drawn + [(passages[place], UNLIKE, None) for place in hard]

    def _read(self, network: Any, pairs: Sequence[Pair]) -> tuple[Any, Any, list[tuple[int, int]]]:
        """Return classes, token scores, and the start and length of each text."""
        read = [joined(*pair) for pair in pairs]
        ids = self.padded([tokens for tokens, _, _, _ in read])
        starts = self.tensor([passage for _, passage, _, _ in read])[:, None]
        places = self.torch.arange(ids.shape[1], device=self.device)
        with self.halved():
            classes, words = network(ids, ((places >= starts) & (ids != 0)).long())
        return classes, words, [(text, length) for _, _, text, length in read]


# 3 Files


def measure(sources: Sequence[PassageSource], network: PassageNetwork) -> dict[str, float]:
    """Measure how often all gold passages rank in the top 1, 5 and 10 by relevance and by search."""
    shares: dict[str, list[bool]] = defaultdict(list)
    best: dict[bool, list[float]] = {True: [], False: []}
    for source in sources:
        for one in source.questions:
            seen = network.read(one.text, [source.passages[place] for place in one.candidates])
            relevance = np.array([what.relevance for what in seen])
            if len(relevance):
                best[bool(one.quotes)].append(float(relevance.max()))
            read = [one.candidates[at] for at in np.argsort(-relevance, kind="stable")]
            for name, order in (("", read), (" by search", list(one.candidates))) if one.quotes else ():
                for most in (1, 5, 10):
                    shares[f"{one.kind} in {most}{name}"].append(one.is_answered(order[:most]))
    figures = {name: float(np.mean(every)) for name, every in sorted(shares.items())}
    if best[True] and best[False]:
        above = np.array(best[True])[:, None] > np.array(best[False])
        figures["answerable told apart (AUC)"] = float(above.mean())
    return figures


def fit_passages(
    sources: Sequence[PassageSource],
    out: Path,
    settings: PassageSettings,
    card: dict[str, Any],
    say: Callable[[str], None],
    start: Path | None = None,
) -> dict[str, float]:
    """Train on all sources and write the weights. Return the losses of the first and last epoch."""
    lessons = tokenised(sources)
    if not any(lesson.right for lesson in lessons.lessons):
        raise InputError("no quote of any question occurs in the documents: nothing to train on")
    fitting = PassageFitting.open(settings, lessons, say)
    network, losses = fitting.fit(start)
    states, heads = {"encoder.onnx": network.encoder}, networks.passage_heads(network)
    export_network(fitting.torch, out, card, states=states, heads=heads)
    return {"first_loss": losses[0], "loss": losses[-1]}


def train_passages(
    sources: Sequence[Path],
    out: Path,
    *,
    start: Path | None = None,
    left_out: str | None = None,
    epochs: int = 4,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Train on all sources. With `left_out` such as "0/3", hold out that part of the folders and measure on it."""
    settings = PassageSettings(epochs=epochs, seed=seed)
    kept, left, card = split_sources(sources, out, left_out, seed, say)
    card |= {"start": networks.start_card() if start is None else str(start), "settings": asdict(settings)}
    figures = fit_passages(kept, out, settings, card, say, start)
    if left:
        figures |= measure(left, PassageNetwork(out))
        add_figures(out, figures)
    return figures


def split_sources(
    sources: Sequence[Path], out: Path, left_out: str | None, seed: int, say: Callable[[str], None]
) -> tuple[list[PassageSource], list[PassageSource], dict[str, Any]]:
    """Return the training sources, the held-out sources, and the card."""
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise InputError("two of the sources have the same name: rename one")
    folders = [source.name for source in sources if source.is_dir()]
    own = set[str]() if left_out is None else names_of_fold(folders, *parse_fold(left_out), seed)
    networks.open_torch()  # report missing packages before reading
    read = []
    for source in sources:
        say(f"reading {source}")
        read.append(read_source(source, out / "steps", seed))
    kept, left = [one for one in read if one.name not in own], [one for one in read if one.name in own]
    card: dict[str, Any] = {
        "start": networks.start_card(),
        "trained_on": {one.name: len(one.questions) for one in kept},
        "left_out": left_out,
        "seed": seed,
    }
    return kept, left, card
