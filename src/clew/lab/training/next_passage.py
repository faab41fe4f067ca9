"""Train the passage embedder: question → passage, and question with one passage's content → next passage.

Based on MDR (Xiong et al., ICLR 2021) and DPR (Karpukhin et al., EMNLP 2020), with one shared encoder.

1  examples: those of the passage network, also with one part known, and excerpts of passages as questions
2  teacher: if given, it is fine-tuned on the examples and scores their candidates
3  training: each question should be closer to its passage than to the others of the batch, and match the teacher
4  files: exported for Clew; held-out folders are measured with these files
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import InputError
from clew.lab.training.exporting import export_network
from clew.lab.training.gradient import Contrast, ContrastSettings, Ids, TokenisedQuestion
from clew.lab.training.networks import EncoderSize, passage_network, start_encoder
from clew.lab.training.passages.examples import PassageSource
from clew.lab.training.passages.fitting import (
    Lesson,
    Lessons,
    PassageFitting,
    PassageSettings,
    Tokens,
    split_sources,
    tokenised,
)
from clew.models.embedding.onnx import ENCODER, FIRST_TOKEN, LAST_TOKEN, PassageEmbedder, asking_on
from clew.models.model_card import add_figures

SEMICOLON = 1025
"""Id of ";" in the vocabulary of BERT, which is between a question and the known text."""
LONGEST = 256
"""Maximum tokens of a passage, as in the bundled embedder."""
PASSAGE_TYPE: Ids = [1006, 6019, 1007]
"""“(passage)”: a node's document has its type after the title."""
PIECE = (6, 16)
"""Minimum and maximum number of tokens of an excerpt used as a question."""
KEPT = 0.85
"""Share of tokens to keep in an excerpt."""


@dataclass(frozen=True)
class EmbedderSettings(ContrastSettings):
    """Training settings. `size` is for a randomly initialised encoder, for quick trials."""

    pieces: int = 3000
    teacher_epochs: int = 3
    teacher_rate: float = 3e-5
    seed: int = 0
    size: EncoderSize | None = None


def with_pieces(lessons: Lessons, count: int, rng: random.Random) -> list[Lesson]:
    """Return the answerable examples, and excerpts of passages that should find their passage."""
    made = [lesson for lesson in lessons.lessons if lesson.right]
    long = [place for place, passage in enumerate(lessons.passages) if len(passage.text) > PIECE[1]]
    for place in rng.choices(long, k=count) if long else ():
        text = lessons.passages[place].text
        length = rng.randint(*PIECE)
        start = rng.randint(0, len(text) - length)
        asked = [token for token in text[start : start + length] if rng.random() < KEPT]
        made.append(Lesson(asked or text[:1], [], {place: ((start, start), None)}, []))
    return made


def query_tokens(lesson: Lesson) -> Ids:
    """Return the input tokens of a question, followed by the known text."""
    known = [SEMICOLON, *lesson.known] if lesson.known else []
    return [FIRST_TOKEN, *lesson.question, *known, LAST_TOKEN]


def passage_tokens(passage: Tokens) -> Ids:
    """Return the input tokens of a passage."""
    return [FIRST_TOKEN, *[*passage.title, *PASSAGE_TYPE, *passage.text][: LONGEST - 2], LAST_TOKEN]


def taught_by(fitting: PassageFitting, teacher: Path, settings: EmbedderSettings) -> dict[tuple[int, int], float]:
    """Fine-tune a cross-encoder on the examples and return its scores of their candidates."""
    encoder = start_encoder(fitting.torch, folder=teacher)
    tutor = passage_network(fitting.torch, encoder).to(fitting.device)
    fitting.fit_labels(tutor, settings.teacher_epochs, settings.teacher_rate)
    keys = [(id(one), place) for one in fitting.lessons.plain for place in (*one.right, *one.wrong)]
    judged = dict(zip(keys, fitting.judge(tutor, fitting.lessons.candidates).tolist(), strict=True))
    answered = [lesson for lesson in fitting.lessons.lessons if lesson.right]
    return {
        (at, place): judged[id(one), place]
        for at, one in enumerate(answered)
        for place in (*one.right, *one.wrong)
        if not one.known
    }


def measure_next(sources: Sequence[PassageSource], embedder: PassageEmbedder) -> dict[str, float]:
    """Measure how often the closest passages contain a whole answer, and the missing part if one part is known."""
    shares: dict[str, list[bool]] = defaultdict(list)
    for source in sources:
        texts = [f"{title} (passage)\n{text}" for title, text in source.passages]
        passages = embedder.embed(texts, role="document")
        for one in source.questions:
            for known in ("", *one.quotes) if one.quotes else ():
                if known and len(one.quotes) == 1:
                    continue
                asked = asking_on(one.text, known) if known else one.text
                near = np.argsort(-(passages @ embedder.embed([asked], role="query")[0]), kind="stable").tolist()
                part = one.quotes.index(known) if known else -1
                missing = [place for place, gold in one.gold.items() if gold.part != part]
                near = [place for place in near[:12] if place in missing or place not in one.gold][:10]
                for most in (1, 5, 10) if not known else (1, 5):
                    name = f"next in {most}" if known else f"{one.kind} in {most}"
                    found = bool(set(near[:most]) & set(missing)) if known else one.is_answered(near[:most])
                    shares[name].append(found)
    return {name: float(np.mean(found)) for name, found in sorted(shares.items())}


def fit_next_passage(
    sources: Sequence[PassageSource],
    out: Path,
    settings: EmbedderSettings,
    card: dict[str, Any],
    say: Callable[[str], None],
    teacher: Path | None = None,
) -> dict[str, float]:
    """Train on all sources and write the weights. Return the losses of the first and last epoch."""
    lessons = tokenised(sources)
    fitting = PassageFitting.open(PassageSettings(seed=settings.seed), lessons, say)
    asked = with_pieces(lessons, settings.pieces, fitting.rng)
    if not any(lesson.right for lesson in lessons.lessons):
        raise InputError("no quote of any question occurs in the documents: nothing to train on")
    taught = taught_by(fitting, teacher, settings) if teacher is not None else {}
    encoder = start_encoder(fitting.torch, settings.size).to(fitting.device)
    questions = [TokenisedQuestion(query_tokens(lesson), list(lesson.right), lesson.wrong) for lesson in asked]
    texts = list(map(passage_tokens, lessons.passages))
    losses = Contrast(settings, fitting, questions, texts, encoder, encoder, taught).fit()
    export_network(fitting.torch, out, card, pooled={ENCODER: encoder})
    return {"first_loss": losses[0], "loss": losses[-1]}


def train_next_passage(
    sources: Sequence[Path],
    out: Path,
    *,
    teacher: Path | None = None,
    left_out: str | None = None,
    epochs: int = 5,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Train on all sources. With `left_out` such as "0/3", hold out that part of the folders and measure on it."""
    settings = EmbedderSettings(epochs=epochs, seed=seed)
    kept, left, card = split_sources(sources, out, left_out, seed, say)
    card["teacher"] = None if teacher is None else str(teacher)
    figures = fit_next_passage(kept, out, settings, card | {"settings": asdict(settings)}, say, teacher)
    if left:
        figures |= measure_next(left, PassageEmbedder(out))
        add_figures(out, figures)
    return figures
