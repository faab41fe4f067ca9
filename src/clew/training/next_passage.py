"""Trains the embedder of passages: question → passage, and question with what one passage says → the next.

After MDR (Xiong et al., ICLR 2021) and DPR (Karpukhin et al., EMNLP 2020), with one encoder for questions and passages.

1  lessons: those of the passage network, questions with a part known among them, and pieces of passages as questions
2  teacher: where one is given, it is fine-tuned on the lessons and judges their candidates
3  descent: each question is to be nearer to its passage than to all others of the step, and near as the teacher says
4  files: exported as Clew opens them; folders that were left out give an honest figure of these files
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import InputError
from clew.models.embedding.passage_embedder import CARD, ENCODER, PassageEmbedder, asking_on
from clew.models.embedding.words import FIRST_TOKEN, LAST_TOKEN
from clew.models.passages.network import SEMICOLON
from clew.training.passages.examples import Source
from clew.training.passages.fitting import Fitting, Ids, Lesson, Lessons, Settings, Tokens, split_sources, tokenised
from clew.training.passages.network import teacher_network
from clew.training.reader.exporting import export_encoder, write_card
from clew.training.reader.network import EncoderSize, start_encoder, word_table

LONGEST = 256
PASSAGE_TYPE: Ids = [1006, 6019, 1007]
"""“(passage)”: a node's document has its type behind the title."""
PIECE = (6, 16)
"""Tokens of a made-up question: a piece of a passage."""
KEPT = 0.85
"""The share of its tokens that it keeps."""


@dataclass(frozen=True)
class EmbedderSettings:
    """How the embedder is trained; `size` is that of an encoder that starts from chance, for a quick trial."""

    epochs: int = 5
    rate: float = 1e-4
    questions: int = 64
    wrong: int = 7
    """Wrong candidates that each question brings to a step."""
    sharpness: float = 20.0
    """What cosines are multiplied with before they are compared."""
    pieces: int = 3000
    teacher_epochs: int = 3
    teacher_rate: float = 3e-5
    seed: int = 0
    size: EncoderSize | None = None


def with_pieces(lessons: Lessons, count: int, rng: random.Random) -> list[Lesson]:
    """The lessons that have an answer, and pieces of passages that are to find their passage."""
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
    """A question as it is embedded, with what is known behind it."""
    known = [SEMICOLON, *lesson.known] if lesson.known else []
    return [FIRST_TOKEN, *lesson.question, *known, LAST_TOKEN]


def passage_tokens(passage: Tokens) -> Ids:
    """A passage as it is embedded."""
    return [FIRST_TOKEN, *[*passage.title, *PASSAGE_TYPE, *passage.text][: LONGEST - 2], LAST_TOKEN]


@dataclass(frozen=True, eq=False)
class NextPassage:
    """Learns vectors from lessons; `fitting` has the device, the randomness and the steps of the descent."""

    settings: EmbedderSettings
    fitting: Fitting
    lessons: Sequence[Lesson]
    taught: dict[tuple[int, int], float]
    """What a teacher says of a lesson's candidates, by the place of the lesson and of the passage."""
    encoder: Any

    def fit(self) -> list[float]:
        """The loss of each epoch."""
        size, settings = self.settings.questions, self.settings
        count = len(self.lessons)
        return self.fitting.descend(self.encoder, count, (size, size), self.loss, settings.epochs, settings.rate)

    def loss(self, batch: Sequence[int]) -> Any:
        """How far the questions of a step are from their passages, and from what the teacher says."""
        torch, rng = self.fitting.torch, self.fitting.rng
        columns: dict[int, int] = {}
        drawn = []
        for at in batch:
            lesson = self.lessons[at]
            right = rng.choice(list(lesson.right))
            hard = lesson.wrong[: 2 * self.settings.wrong]
            wrong = rng.sample(hard, min(len(hard), self.settings.wrong))
            drawn.append([columns.setdefault(place, len(columns)) for place in (right, *wrong)])
        passages = [self.fitting.lessons.passages[place] for place in columns]
        asked = self.vectors([query_tokens(self.lessons[at]) for at in batch])
        scores = self.settings.sharpness * asked @ self.vectors(list(map(passage_tokens, passages))).T
        hidden = torch.zeros_like(scores, dtype=torch.bool)
        for row, (at, own) in enumerate(zip(batch, drawn, strict=True)):  # other right ones are no wrong ones
            others = [
                columns[place] for place in self.lessons[at].right if place in columns and columns[place] != own[0]
            ]
            hidden[row, others] = True
        truth = torch.tensor([own[0] for own in drawn], device=scores.device)
        total = torch.nn.functional.cross_entropy(scores.masked_fill(hidden, -1e4), truth)
        places = list(columns)
        distances = []
        for row, (at, own) in enumerate(zip(batch, drawn, strict=True)):
            said = [self.taught.get((at, places[column])) for column in own]
            if len(own) > 2 and None not in said:
                told = torch.softmax(torch.tensor(said, device=scores.device), 0)
                distances.append((told * (told.log() - torch.log_softmax(scores[row, own], 0))).sum())
        return total + torch.stack(distances).mean() if distances else total

    def vectors(self, texts: Sequence[Ids]) -> Any:
        """Unit vectors: the means of the encoder's states."""
        torch = self.fitting.torch
        ids = torch.zeros((len(texts), max(map(len, texts))), dtype=torch.int64, device=self.fitting.device)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = torch.tensor(text)
        mask = (ids != 0).long()
        with torch.autocast(self.fitting.device, dtype=torch.bfloat16, enabled=self.fitting.device == "cuda"):
            states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(means, dim=1)


def taught_by(fitting: Fitting, teacher: Path, settings: EmbedderSettings) -> dict[tuple[int, int], float]:
    """What a cross-encoder, fine-tuned on the lessons, says of their candidates."""
    tutor = teacher_network(fitting.torch, teacher).to(fitting.device)
    fitting.fit_labels(tutor, settings.teacher_epochs, settings.teacher_rate)
    plain = [one for one in fitting.lessons.lessons if not one.known]
    keys = [(id(one), place) for one in plain for place in (*one.right, *one.wrong)]
    judged = dict(zip(keys, fitting.judge(tutor, fitting.lessons.candidates).tolist(), strict=True))
    answered = [lesson for lesson in fitting.lessons.lessons if lesson.right]
    return {
        (at, place): judged[id(one), place]
        for at, one in enumerate(answered)
        for place in (*one.right, *one.wrong)
        if not one.known
    }


def measure_next(sources: Sequence[Source], embedder: PassageEmbedder) -> dict[str, float]:
    """How often all passages of an answer are nearest to the question, and the missing one to question and known."""
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
    sources: Sequence[Source],
    out: Path,
    settings: EmbedderSettings,
    card: dict[str, Any],
    say: Callable[[str], None],
    teacher: Path | None = None,
) -> dict[str, float]:
    """Train on all of these sources and write the weights; returns the losses of the first and the last epoch."""
    lessons = tokenised(sources)
    fitting = Fitting.open(Settings(seed=settings.seed), lessons, out / "steps", say)
    asked = with_pieces(lessons, settings.pieces, fitting.rng)
    if not any(lesson.right for lesson in lessons.lessons):
        raise InputError("no quote of any question stands in the documents: there is nothing to learn from")
    taught = taught_by(fitting, teacher, settings) if teacher is not None else {}
    encoder = start_encoder(fitting.torch, settings.size).to(fitting.device)
    losses = NextPassage(settings, fitting, asked, taught, encoder).fit()
    out.mkdir(parents=True, exist_ok=True)
    export_encoder(fitting.torch, encoder, out / ENCODER, is_pooled=True)
    digest = hashlib.sha256((out / ENCODER).read_bytes()).hexdigest()
    write_card(out, {"words": word_table(), "digest": digest, **card})
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
    """Train on every source or, with "0/3" left out, on all but a third of the folders and measure on that."""
    settings = EmbedderSettings(epochs=epochs, seed=seed)
    kept, left, card = split_sources(sources, out, teacher, left_out, seed, say)
    figures = fit_next_passage(kept, out, settings, card | {"settings": asdict(settings)}, say, teacher)
    if left:
        figures |= measure_next(left, PassageEmbedder(out))
        write_card(out, json.loads((out / CARD).read_text("utf-8")) | {"figures": figures})
    return figures
