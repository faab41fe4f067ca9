"""Train networks: AdamW, a learning rate with short warm-up and decay, token texts as padded tensors.

`Contrast` trains vectors: a question should be closer to its text than to every other text of the batch. The passage
embedder uses one encoder and a teacher, the dense retriever one encoder per side.
torch is passed in as an argument, because it is an optional extra. Nothing else is needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

Ids = list[int]
"""The token ids of a text."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Trains networks on one device with one random generator."""

    torch: Any
    device: str
    rng: random.Random
    say: Callable[[str], None]

    @classmethod
    def start(cls, torch: Any, seed: int, say: Callable[[str], None], **more: Any) -> Self:
        """Create a trainer, on a GPU if available. `more` are fields of subclasses."""
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
        """Train on `count` examples with batch size `sizes[0]`, read in parts of `sizes[1]`.

        Return the loss per epoch.
        """
        torch, means = self.torch, []
        learned = [part for part in network.parameters() if part.requires_grad]
        optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=0.01)
        steps = epochs * -(-count // sizes[0])

        def share(step: int) -> float:
            """Return the rate factor: short warm-up, then linear decay."""
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
        """Return unit vectors of texts: the normalised mean of the encoder's states."""
        ids = self.padded(texts)
        mask = (ids != 0).long()
        with self.halved():
            states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.torch.nn.functional.normalize(means, dim=1)

    def padded(self, texts: Sequence[Ids]) -> Any:
        """Pad token ids to rows of equal length."""
        longest = max(map(len, texts))
        return self.tensor([[*ids, *[0] * (longest - len(ids))] for ids in texts])

    def tensor(self, values: Any) -> Any:
        """Move numbers to the device."""
        return self.torch.as_tensor(values).to(self.device, non_blocking=True)

    def halved(self) -> Any:
        """Return a context with half precision on a GPU."""
        return self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.device == "cuda")


def parts(whole: list[int], size: int) -> list[list[int]]:
    """Split a list into parts of at most `size` items."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]


@dataclass(frozen=True)
class ContrastSettings:
    """Settings for contrastive training."""

    epochs: int = 5
    rate: float = 1e-4
    questions: int = 64
    """Number of questions per step. Their texts are contrasted with each other."""
    at_once: int = 64
    """Number of questions per forward pass. Smaller values need less memory but contrast fewer texts."""
    wrong: int = 7
    """Number of wrong texts per question and step."""
    hard: int = 14
    """Number of top wrong texts to draw from."""
    sharpness: float = 20.0
    """Factor of cosines in the softmax."""


@dataclass(frozen=True, slots=True)
class TokenisedQuestion:
    """A question as tokens, with the indices of right texts and of wrong texts, best first."""

    tokens: Ids
    right: Sequence[int]
    wrong: Sequence[int]


@dataclass(frozen=True, eq=False)
class Contrast:
    """Contrastive training of questions and texts. Both encoders may be the same."""

    settings: ContrastSettings
    descent: Descent
    asked: Sequence[TokenisedQuestion]
    texts: Sequence[Ids]
    of_questions: Any
    of_texts: Any
    taught: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Teacher scores by question index and text index."""

    def fit(self) -> list[float]:
        """Train and return the loss of each epoch."""
        settings, torch = self.settings, self.descent.torch
        encoders = type("Encoders", (torch.nn.ModuleList,), {})([self.of_questions, self.of_texts])
        sizes = settings.questions, settings.at_once
        return self.descent.descend(encoders, len(self.asked), sizes, self.loss, settings.epochs, settings.rate)

    def loss(self, batch: Sequence[int]) -> Any:
        """Compute the contrastive loss, plus the divergence from the teacher's scores."""
        torch, rng = self.descent.torch, self.descent.rng
        columns: dict[int, int] = {}
        drawn = []
        for at in batch:
            one = self.asked[at]
            hard = one.wrong[: self.settings.hard]
            wrong = rng.sample(hard, min(len(hard), self.settings.wrong))
            drawn.append([columns.setdefault(place, len(columns)) for place in (rng.choice(one.right), *wrong)])
        asked = self.descent.vectors(self.of_questions, [self.asked[at].tokens for at in batch])
        texts = self.descent.vectors(self.of_texts, [self.texts[place] for place in columns])
        scores = self.settings.sharpness * asked @ texts.T
        hidden = torch.zeros_like(scores, dtype=torch.bool)
        for row, (at, own) in enumerate(zip(batch, drawn, strict=True)):  # do not count other right texts as wrong
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
