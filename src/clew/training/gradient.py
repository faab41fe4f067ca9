"""Networks learn in steps: AdamW, a rate that rises shortly and falls, texts of tokens as padded tensors.

Nothing here needs more than torch, which is handed in: it is an extra.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
