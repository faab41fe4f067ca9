"""Vectors learned by contrast: a question is to be nearer to its text than to every other text of the step.

The embedder of passages learns so with one encoder and a teacher, the dense retriever with an encoder for each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.training.gradient import Descent, Ids


@dataclass(frozen=True)
class ContrastSettings:
    """How vectors are learned."""

    epochs: int = 5
    rate: float = 1e-4
    questions: int = 64
    """Of a step; the texts of all of them are told apart."""
    at_once: int = 64
    """Questions read together: fewer than a step has need less memory, and tell fewer texts apart."""
    wrong: int = 7
    """Wrong texts that each question brings to a step."""
    hard: int = 14
    """Wrong texts that these are drawn from, the best first."""
    sharpness: float = 20.0
    """What cosines are multiplied with before they are compared."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as tokens, and the places of texts: those that answer it, and wrong ones, the best first."""

    tokens: Ids
    right: Sequence[int]
    wrong: Sequence[int]


@dataclass(frozen=True, eq=False)
class Contrast:
    """Questions over texts; the encoders of both may be one."""

    settings: ContrastSettings
    descent: Descent
    asked: Sequence[Asked]
    texts: Sequence[Ids]
    of_questions: Any
    of_texts: Any
    taught: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """What a teacher says of a question's texts, by the places of both."""

    def fit(self) -> list[float]:
        """The loss of each epoch."""
        settings, torch = self.settings, self.descent.torch
        encoders = type("Encoders", (torch.nn.ModuleList,), {})([self.of_questions, self.of_texts])
        sizes = settings.questions, settings.at_once
        return self.descent.descend(encoders, len(self.asked), sizes, self.loss, settings.epochs, settings.rate)

    def loss(self, batch: Sequence[int]) -> Any:
        """How far the questions of a step are from their texts, and from what the teacher says."""
        torch, rng = self.descent.torch, self.descent.rng
        columns: dict[int, int] = {}
        drawn = []
        for at in batch:
            one = self.asked[at]
            hard = one.wrong[: self.settings.hard]
            wrong = rng.sample(hard, min(len(hard), self.settings.wrong))
            drawn.append([columns.setdefault(place, len(columns)) for place in (rng.choice(one.right), *wrong)])
        asked = self.descent.vectors(self.of_questions, [self.asked[at].tokens for at in batch])
        told = self.descent.vectors(self.of_texts, [self.texts[place] for place in columns])
        scores = self.settings.sharpness * asked @ told.T
        hidden = torch.zeros_like(scores, dtype=torch.bool)
        for row, (at, own) in enumerate(zip(batch, drawn, strict=True)):  # other right ones are no wrong ones
            others = [columns[place] for place in self.asked[at].right if place in columns and columns[place] != own[0]]
            hidden[row, others] = True
        truth = torch.tensor([own[0] for own in drawn], device=scores.device)
        total = torch.nn.functional.cross_entropy(scores.masked_fill(hidden, -1e4), truth)
        places = list(columns)
        distances = []
        for row, (at, own) in enumerate(zip(batch, drawn, strict=True)):
            said = [self.taught.get((at, places[column])) for column in own]
            if len(own) > 2 and None not in said:
                judged = torch.softmax(torch.tensor(said, device=scores.device), 0)
                distances.append((judged * (judged.log() - torch.log_softmax(scores[row, own], 0))).sum())
        return total + torch.stack(distances).mean() if distances else total
