"""Networks learn in steps: AdamW, a rate that rises shortly and falls, texts of tokens as padded tensors.

Nothing here needs more than torch, which is handed in: it is an extra.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
    def start(cls, torch: Any, seed: int, say: Callable[[str], None]) -> Descent:
        """On a GPU where there is one."""
        torch.manual_seed(seed)
        return cls(torch, "cuda" if torch.cuda.is_available() else "cpu", random.Random(seed), say)

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
        torch = self.torch
        ids = torch.zeros((len(texts), max(map(len, texts))), dtype=torch.int64)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = torch.as_tensor(text)
        ids = ids.to(self.device)
        mask = (ids != 0).long()
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(means, dim=1)


def parts(whole: list[int], size: int) -> list[list[int]]:
    """Pieces of a list, the last one perhaps shorter."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]
