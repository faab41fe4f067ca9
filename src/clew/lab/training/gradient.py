"""Networks learn in steps: AdamW, a rate that rises shortly and falls, texts of tokens as padded tensors.

`Contrast` places vectors: a question is to be nearer to its text than to every other text of the step. The embedder of
passages learns so with one encoder and a teacher, the dense retriever with an encoder for each side.
Nothing here needs more than torch, which is handed in: it is an extra.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

Ids = list[int]
"""The tokens of a text."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Trains one network after the other on one device, with one source of randomness."""

    torch: Any
    device: str
    rng: random.Random
    say: Callable[[str], None]

    @classmethod
    def start(cls, torch: Any, seed: int, say: Callable[[str], None], **more: Any) -> Self:
        """On a GPU where there is one; `more` is what a kind of training holds beside."""
        torch.manual_seed(seed)
        return cls(torch, "cuda" if torch.cuda.is_available() else "cpu", random.Random(seed), say, **more)

    def descend(
        self,
        network: Any,
        count: int,
        sizes: tuple[int, int],
        loss: Callable[[Sequence[int]], Any],
        epochs: int,
        rate: float,
    ) -> list[float]:
        """Learn so many examples in steps of the first size, each read in parts of the second; the loss by epoch."""
        torch, means = self.torch, []
        learned = [part for part in network.parameters() if part.requires_grad]
        optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=0.01)
        steps = epochs * -(-count // sizes[0])

        def share(step: int) -> float:
            """A short rise, then down to nearly nothing."""
            return min(1.0, (step + 1) / max(1.0, 0.08 * steps)) * max(0.02, 1 - step / steps)

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
        for epoch in range(epochs):
            order, losses = self.rng.sample(range(count), count), []
            network.train()
            for batch in parts(order, sizes[0]):
                optimizer.zero_grad(set_to_none=True)
                for part in parts(batch, sizes[1]):
                    found = loss(part) * len(part) / len(batch)
                    found.backward()
                    losses.append(found.detach())
                torch.nn.utils.clip_grad_norm_(learned, 1.0)
                optimizer.step()
                schedule.step()
            means.append(float(torch.stack(losses).sum()) / -(-count // sizes[0]))
            self.say(f"{type(network).__name__}: epoch {epoch + 1} of {epochs}, loss {means[-1]:.3f}")
        network.eval()
        return means

    def vectors(self, encoder: Any, texts: Sequence[Ids]) -> Any:
        """Unit vectors of texts: the means of the encoder's states."""
        ids = self.padded(texts)
        mask = (ids != 0).long()
        with self.halved():
            states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.torch.nn.functional.normalize(means, dim=1)

    def padded(self, texts: Sequence[Ids]) -> Any:
        """Texts of tokens as rows of one length."""
        longest = max(map(len, texts))
        return self.tensor([[*ids, *[0] * (longest - len(ids))] for ids in texts])

    def tensor(self, values: Any) -> Any:
        """Numbers on the device."""
        return self.torch.as_tensor(values).to(self.device, non_blocking=True)

    def halved(self) -> Any:
        """Half the precision, on a GPU."""
        return self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.device == "cuda")


def parts(whole: list[int], size: int) -> list[list[int]]:
    """Pieces of a list, the last one perhaps shorter."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]


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
