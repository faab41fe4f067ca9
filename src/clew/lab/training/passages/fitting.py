"""Train the network that reads passages with a question.

1  examples: questions as tokens, with passages that answer them and candidates that do not
2  teacher: a public cross-encoder scores candidates and generated questions; after fine-tuning, the candidates again
3  distillation: six layers learn the teacher's first scores
4  labels: six layers learn gold passages, supporting words and short answers, and the teacher's second scores
5  files: exported for Clew; held-out folders are measured with these files

Without a teacher, only step 4 is trained. Teacher and student see nothing of the held-out folders.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from clew.answering.reading.encoders import Floats
from clew.core.errors import InputError
from clew.lab.training.exporting import export_network
from clew.lab.training.gradient import Descent, Ids, parts
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.networks import (
    EncoderSize,
    open_torch,
    passage_heads,
    passage_network,
    start_card,
    start_encoder,
    teacher_network,
)
from clew.lab.training.passages.examples import Question, Source, read_source
from clew.models import passages as reading
from clew.models.embedding.words import FIRST_TOKEN, LAST_TOKEN, open_tokenizer
from clew.models.model_card import add_figures
from clew.models.passages import PassageNetwork

Pair = tuple[Ids, Ids, int]
"""A question, the known text, and the index of a passage."""
TELLING, SHORT, TAUGHT = 0.5, 0.25, 0.3
"""Loss weights of supporting words, short answers and the distance to the teacher."""
MAX_RIGHT = 3
"""Maximum number of right passages per step, so that wrong passages have room."""
HARD = 12
"""Number of top wrong candidates to draw from first. Three slots remain for any candidate."""
READ_AT_ONCE = {"cuda": 256, "cpu": 24}
"""Number of pairs per forward pass. Larger steps accumulate gradients."""


@dataclass(frozen=True)
class Settings:
    """Training settings. `size` is for a randomly initialised encoder, for quick trials."""

    epochs: int = 4
    rate: float = 5e-5
    teacher_epochs: int = 3
    teacher_rate: float = 3e-5
    distillation_epochs: int = 3
    distillation_rate: float = 1e-4
    distillation_batch: int = 256
    questions: int = 16
    passages: int = 11
    seed: int = 0
    size: EncoderSize | None = None


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
    """All examples over one list of passages, and questions that only a teacher can score."""

    passages: list[Tokens]
    lessons: list[Lesson]
    made_up: list[Pair]

    @property
    def candidates(self) -> list[Pair]:
        """Pairs that a teacher scores: candidates of the examples without known text."""
        return [(one.question, [], p) for one in self.lessons if not one.known for p in (*one.right, *one.wrong)]


def tokenised(sources: Sequence[Source]) -> Lessons:
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
        for question in source.questions:
            asked = ids(question.text, reading.LONGEST_QUESTION)
            made.lessons.extend(_lessons(question, asked, first, made.passages, ids))
        for text, candidates in source.made_up:
            asked = ids(text, reading.LONGEST_QUESTION)
            made.made_up.extend((asked, [], first + place) for place in candidates)
    return made


def _lessons(
    question: Question, asked: Ids, first: int, passages: list[Tokens], ids: Callable[[str, int], Ids]
) -> Iterator[Lesson]:
    """Yield the question and, if it has several parts, the question with each part known."""
    right = {}
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
        yield Lesson(asked, ids(quote, reading.LONGEST_KNOWN), rest, wrong + done)


def joined(pair: Pair, passage: Tokens) -> tuple[Ids, int, int, int]:
    """Join the input. Return the tokens, the start of the passage, the start of its text, and the text length."""
    question, known, _ = pair
    first = [FIRST_TOKEN, *question, *([reading.SEMICOLON, *known] if known else ()), LAST_TOKEN]
    titled = [*first, *passage.title, reading.COLON]
    text = passage.text[: reading.LONGEST - len(titled) - 1]
    return [*titled, *text, LAST_TOKEN], len(first), len(titled), len(text)


# 2 to 4 Networks


@dataclass(frozen=True, eq=False)
class Fitting(Descent):
    """Trains networks in sequence with the same settings and examples. `steps` stores finished steps."""

    settings: Settings
    lessons: Lessons
    steps: Path

    @classmethod
    def open(cls, settings: Settings, lessons: Lessons, steps: Path, say: Callable[[str], None]) -> Fitting:
        """Create a trainer, on a GPU if available."""
        return cls.start(open_torch(), settings.seed, say, settings=settings, lessons=lessons, steps=steps)

    def fit(self, teacher: Path | None) -> tuple[Any, list[float]]:
        """Train the network. Return it with its loss per epoch."""
        settings, torch = self.settings, self.torch
        network = passage_network(torch, start_encoder(torch, settings.size)).to(self.device)
        if teacher is None:
            return network, self.fit_labels(network, settings.epochs, settings.rate)
        identity = self._identity(teacher)
        judged = [*self.lessons.made_up, *self.lessons.candidates]
        first, second, distilled = (self.steps / f"{identity}-{name}" for name in ("public.npy", "tuned.npy", "six.pt"))
        if not (first.is_file() and second.is_file()):
            tutor = teacher_network(torch, teacher).to(self.device)
            public = self.judge(tutor, judged)
            _keep(first, lambda file: np.save(file, public))
            self.fit_labels(tutor, settings.teacher_epochs, settings.teacher_rate)
            tuned = self.judge(tutor, self.lessons.candidates)
            _keep(second, lambda file: np.save(file, tuned))
        if distilled.is_file():
            network.load_state_dict(torch.load(distilled, map_location=self.device, weights_only=True))
        else:
            self.fit_judgement(network, judged, np.load(first))
            _keep(distilled, lambda file: torch.save(network.state_dict(), file))
        return network, self.fit_labels(network, settings.epochs, settings.rate, np.load(second))

    def _identity(self, teacher: Path) -> str:
        """Return a digest of data, settings and teacher for the names of stored steps."""
        whole = repr((self.settings, teacher.resolve(), self.lessons.made_up, self.lessons.candidates))
        return hashlib.sha256(whole.encode()).hexdigest()[:12]

    def judge(self, network: Any, pairs: Sequence[Pair]) -> Floats:
        """Return the relevance of each pair. Pairs of similar length are read together."""
        order = sorted(range(len(pairs)), key=lambda at: len(self.lessons.passages[pairs[at][2]].text))
        found = np.zeros(len(pairs), dtype=np.float32)
        network.eval()
        with self.torch.inference_mode():
            for part in parts(order, READ_AT_ONCE[self.device]):
                found[part] = self._read(network, [pairs[place] for place in part])[0].cpu().numpy()
        return found

    def fit_judgement(self, network: Any, pairs: Sequence[Pair], scores: Floats) -> list[float]:
        """Train on the teacher's scores."""
        size = self.settings.distillation_batch

        def loss(batch: Sequence[int]) -> Any:
            expected = self.tensor(scores[list(batch)])
            return ((self._read(network, [pairs[at] for at in batch])[0] - expected) ** 2).mean()

        epochs, rate = self.settings.distillation_epochs, self.settings.distillation_rate
        return self.descend(network, len(pairs), (size, READ_AT_ONCE[self.device]), loss, epochs, rate)

    def fit_labels(self, network: Any, epochs: int, rate: float, taught: Floats | None = None) -> list[float]:
        """Train on the examples. `taught` has the teacher's scores of their candidates."""
        soft: dict[tuple[int, int], float] = {}
        if taught is not None:
            plain = [(at, one) for at, one in enumerate(self.lessons.lessons) if not one.known]
            keys = [(at, place) for at, one in plain for place in (*one.right, *one.wrong)]
            soft = dict(zip(keys, taught.tolist(), strict=True))

        def loss(batch: Sequence[int]) -> Any:
            return self._labels_loss(network, batch, soft)

        size = self.settings.questions
        at_once = max(1, size if self.device == "cuda" else READ_AT_ONCE["cpu"] // self.settings.passages)
        return self.descend(network, len(self.lessons.lessons), (size, at_once), loss, epochs, rate)

    def _labels_loss(self, network: Any, batch: Sequence[int], soft: dict[tuple[int, int], float]) -> Any:
        torch, functional = self.torch, self.torch.nn.functional
        drawn = [self._drawn(self.lessons.lessons[at]) for at in batch]
        pairs, cuts, keys, truth = list[Pair](), [], [], []
        for at, (right, wrong) in zip(batch, drawn, strict=True):
            lesson = self.lessons.lessons[at]
            cuts.append((len(pairs), len(right), len(right) + len(wrong)))
            pairs += [(lesson.question, lesson.known, place) for place in (*right, *wrong)]
            keys += [(at, place) for place in (*right, *wrong)]
            truth += [1.0] * len(right) + [0.0] * len(wrong)
        relevance, words, texts = self._read(network, pairs)
        listed, telling, short = [], [], []
        for at, (right, _), (start, count, whole) in zip(batch, drawn, cuts, strict=True):
            if count:
                own = relevance[start : start + whole]
                listed.append(torch.logsumexp(own, 0) - torch.logsumexp(own[:count], 0))
            for row, place in enumerate(right, start):
                (first, last), answer = self.lessons.lessons[at].right[place]
                begin, length = texts[row]
                if first >= length:
                    continue
                said = words[row, begin : begin + length]
                marks = torch.zeros(length, device=self.device)
                marks[first : last + 1] = 1
                telling.append(functional.binary_cross_entropy_with_logits(said[:, 0], marks))
                if answer is not None and answer[1] < length:
                    short.append(sum(functional.cross_entropy(said[:, 1 + k], self.tensor(answer[k])) for k in (0, 1)))
        total = functional.binary_cross_entropy_with_logits(relevance, self.tensor(truth))
        for losses, weight in ((listed, 1.0), (telling, TELLING), (short, SHORT)):
            if losses:
                total = total + weight * torch.stack(losses).mean()
        known = [at for at, key in enumerate(keys) if key in soft]
        if known:
            expected = self.tensor([soft[keys[at]] for at in known])
            total = total + TAUGHT * ((relevance[known] - expected) ** 2).mean()
        return total

    def _drawn(self, lesson: Lesson) -> tuple[list[int], list[int]]:
        """Draw right passages, and wrong ones with hard ones first."""
        right, wrong = list(lesson.right), lesson.wrong
        right = self.rng.sample(right, min(len(right), MAX_RIGHT))
        room = self.settings.passages - len(right)
        hard = self.rng.sample(wrong[:HARD], min(len(wrong[:HARD]), max(0, room - 3)))
        rest = [place for place in wrong if place not in hard]
        return right, hard + self.rng.sample(rest, min(len(rest), room - len(hard)))

    def _read(self, network: Any, pairs: Sequence[Pair]) -> tuple[Any, Any, list[tuple[int, int]]]:
        """Return relevance, token scores, and the start and length of each text."""
        read = [joined(pair, self.lessons.passages[pair[2]]) for pair in pairs]
        ids = np.zeros((len(read), max(len(one) for one, _, _, _ in read)), dtype=np.int64)
        types = np.zeros_like(ids)
        for row, (one, passage, _, _) in enumerate(read):
            ids[row, : len(one)] = one
            types[row, passage : len(one)] = 1
        with self.halved():
            relevance, words = network(self.tensor(ids), self.tensor(types))
        return relevance, words, [(text, length) for _, _, text, length in read]


def _keep(file: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    with part.open("wb") as opened:
        write(opened)
    part.replace(file)


# 5 Files


def measure(sources: Sequence[Source], network: PassageNetwork) -> dict[str, float]:
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
    sources: Sequence[Source],
    out: Path,
    settings: Settings,
    card: dict[str, Any],
    say: Callable[[str], None],
    teacher: Path | None = None,
) -> dict[str, float]:
    """Train on all sources and write the weights. Return the losses of the first and last epoch."""
    lessons = tokenised(sources)
    if not any(lesson.right for lesson in lessons.lessons):
        raise InputError("no quote of any question occurs in the documents: nothing to train on")
    fitting = Fitting.open(settings, lessons, out / "steps", say)
    network, losses = fitting.fit(teacher)
    states, heads = {"encoder.onnx": network.encoder}, passage_heads(network)
    export_network(fitting.torch, out, card, states=states, heads=heads)
    return {"first_loss": losses[0], "loss": losses[-1]}


def train_passages(
    sources: Sequence[Path],
    out: Path,
    *,
    teacher: Path | None = None,
    left_out: str | None = None,
    epochs: int = 4,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Train on all sources. With `left_out` such as "0/3", hold out that part of the folders and measure on it."""
    settings = Settings(epochs=epochs, seed=seed)
    kept, left, card = split_sources(sources, out, teacher, left_out, seed, say)
    figures = fit_passages(kept, out, settings, card | {"settings": asdict(settings)}, say, teacher)
    if left:
        figures |= measure(left, PassageNetwork(out))
        add_figures(out, figures)
    return figures


def split_sources(
    sources: Sequence[Path],
    out: Path,
    teacher: Path | None,
    left_out: str | None,
    seed: int,
    say: Callable[[str], None],
) -> tuple[list[Source], list[Source], dict[str, Any]]:
    """Return the training sources, the held-out sources, and the card."""
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise InputError("two of the sources have the same name: rename one")
    folders = [source.name for source in sources if source.is_dir()]
    own = set[str]() if left_out is None else names_of_fold(folders, *parse_fold(left_out), seed)
    open_torch()  # report missing packages before reading
    read = []
    for source in sources:
        say(f"reading {source}")
        read.append(read_source(source, out / "steps", seed))
    kept, left = [one for one in read if one.name not in own], [one for one in read if one.name in own]
    card: dict[str, Any] = {
        "start": start_card(),
        "teacher": None if teacher is None else str(teacher),
        "trained_on": {one.name: len(one.questions) for one in kept},
        "left_out": left_out,
        "seed": seed,
    }
    return kept, left, card
