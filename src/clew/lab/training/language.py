"""Fine-tunes a causal language model by LoRA (Hu et al., ICLR 2022) on prompts with the replies they should get.

1  lessons: messages as they are sent at use, and the reply; the loss counts the tokens of the reply alone
2  LoRA: beside every linear layer two thin matrices learn, and the model stays as it was
3  descent: AdamW over batches of like length; a run that was stopped goes on from the last kept step
4  files: the thin matrices alone, and a folder for `hf:` with them added to the weights

Needs torch and transformers, and nothing of Clew that needs more, so that it can be copied to a machine with a GPU.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from clew.core.errors import InputError, MissingExtraError, NotFoundError
from clew.models.batch_runner import LocalModel

LORA, KEPT_STEP = "lora.safetensors", "step.safetensors"
IGNORED = -100
"""What torch leaves out of a loss."""
READ_AT_ONCE = {"cuda": 12_288, "cpu": 2_048}
"""Tokens read together, padding included: a step with more of them adds up the gradients of its parts."""
REPLIES_AT_ONCE = 4_096
"""Tokens of replies among them: for each there is a number for every word."""
SORTED_TOGETHER = 32
"""Batches whose lessons are put in the order of their lengths."""
RISE, LEAST_RATE = 0.05, 0.02
"""The share of the steps over which the rate rises, and the share of it that is left at the end."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A prompt, as chat messages, and the reply it should get."""

    messages: tuple[dict[str, str], ...]
    reply: str


@dataclass(frozen=True)
class Tuning:
    """How a model is fine-tuned."""

    epochs: int = 2
    rate: float = 3e-4
    batch: int = 32
    rank: int = 8
    alpha: float = 16.0
    """What the thin matrices count is alpha / rank."""
    longest: int = 1024
    """Lessons with more tokens are left out."""
    seconds: float | None = None
    """Where time is short: the run ends after so many, and the rate falls accordingly."""
    keep_every: float = 120.0
    """Seconds between two kept steps."""
    seed: int = 0


def open_language_model(spec: str) -> LocalModel:
    """The causal model of `FOLDER` or `FOLDER#file.gguf`, on a GPU where there is one."""
    spec = spec.removeprefix("hf:")
    folder = Path(spec.partition("#")[0])
    if not folder.is_dir():
        raise NotFoundError(f"no folder {folder}: training starts from a model in FOLDER, or FOLDER#file.gguf")
    try:
        local = LocalModel(spec)
    except ImportError as missing:
        raise MissingExtraError(missing.name or "transformers", "train") from None
    if local.is_seq2seq or local.tokenizer.chat_template is None:
        raise InputError(f"{spec} is no causal model with a chat template: start from one that answers chats")
    return local


# 1 Lessons


@dataclass(frozen=True, slots=True)
class Tokens:
    """A lesson in tokens; the reply ends with the token that ends replies."""

    prompt: list[int]
    reply: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.reply)


def tokenised(local: LocalModel, lessons: Sequence[Lesson], longest: int) -> list[Tokens]:
    """All lessons at once, those that are too long left out."""
    if not lessons:
        return []
    prompts = local.tokenizer([local.prompt(one.messages) for one in lessons], add_special_tokens=False)["input_ids"]
    replies = local.tokenizer([one.reply for one in lessons], add_special_tokens=False)["input_ids"]
    end = local.tokenizer.eos_token_id
    every = [Tokens(prompt, [*reply, end]) for prompt, reply in zip(prompts, replies, strict=True)]
    return [one for one in every if len(one) <= longest]


def batches(lengths: Sequence[int], size: int, rng: random.Random) -> list[list[int]]:
    """Every lesson once, in batches of like length, these in any order."""
    order = rng.sample(range(len(lengths)), len(lengths))
    together = size * SORTED_TOGETHER
    parts = (sorted(order[at : at + together], key=lengths.__getitem__) for at in range(0, len(order), together))
    found = [part[at : at + size] for part in parts for at in range(0, len(part), size)]
    rng.shuffle(found)
    return found


def _parts(drawn: Sequence[Tokens], most: int) -> Iterator[list[Tokens]]:
    """Lessons read together, the padding counted."""
    part: list[Tokens] = []
    for one in drawn:
        grown = [*part, one]
        replies = sum(len(other.reply) for other in grown)
        if part and (max(map(len, grown)) * len(grown) > most or replies > REPLIES_AT_ONCE):
            yield part
            grown = [one]
        part = grown
    if part:
        yield part


# 2 LoRA


class Lora:
    """Thin matrices beside the linear layers of a model; at first they say nothing."""

    def __init__(self, model: Any, rank: int, alpha: float, seed: int = 0) -> None:
        """Freezes the model."""
        import torch

        torch.manual_seed(seed)
        model.requires_grad_(False)
        self.model, self.scale = model, alpha / rank
        self.weights: dict[str, Any] = {}
        last = model.get_output_embeddings()
        self._layers = {
            name: layer
            for name, layer in model.named_modules()
            if isinstance(layer, torch.nn.Linear) and layer is not last
        }
        if not self._layers:
            raise InputError(f"{type(model).__name__} has no linear layers to fine-tune: start from another model")
        for name, layer in self._layers.items():
            place = {"device": layer.weight.device, "dtype": torch.float32}
            down = torch.empty(rank, layer.in_features, **place).uniform_(-1, 1) / math.sqrt(layer.in_features)
            self.weights[f"{name}.down"] = torch.nn.Parameter(down)
            self.weights[f"{name}.up"] = torch.nn.Parameter(torch.zeros(layer.out_features, rank, **place))
        self._hooks = [layer.register_forward_hook(self._beside(name)) for name, layer in self._layers.items()]

    def _beside(self, name: str) -> Callable[[Any, Any, Any], Any]:
        from torch.nn.functional import linear

        down, up = self.weights[f"{name}.down"], self.weights[f"{name}.up"]

        def added(_layer: Any, given: Any, said: Any) -> Any:
            return said + linear(linear(given[0], down.to(said.dtype)), up.to(said.dtype)) * self.scale

        return added

    def save(self, file: Path) -> None:
        """Write them in bfloat16."""
        import torch
        from safetensors.torch import save_file

        small = {name: part.detach().to("cpu", torch.bfloat16).contiguous() for name, part in self.weights.items()}
        _whole(file, lambda part: save_file(small, part, {"scale": str(self.scale)}))

    def merge(self) -> None:
        """Add them to the weights, rounded to bfloat16 as they will be written, and take them away."""
        import torch

        for name, layer in self._layers.items():
            down, up = self.weights[f"{name}.down"].detach(), self.weights[f"{name}.up"].detach()
            changed = layer.weight.detach().float() + self.scale * up @ down
            layer.weight.data = changed.to(layer.weight.dtype)
        for hook in self._hooks:
            hook.remove()
        kind = next(self.model.parameters()).dtype
        self.model.to(torch.bfloat16).to(kind).eval()


# 3 Descent


@dataclass(frozen=True, eq=False)
class Descent:
    """Learns lessons; `folder` keeps steps, to go on from."""

    local: LocalModel
    lessons: Sequence[Tokens]
    tuning: Tuning
    folder: Path
    say: Callable[[str], None]

    def run(self) -> tuple[Lora, list[float]]:
        """The thin matrices, and the mean loss of a reply's token at each step."""
        import torch

        tuning = self.tuning
        lora = Lora(self.local.model, tuning.rank, tuning.alpha, tuning.seed)
        learned = list(lora.weights.values())
        optimizer = torch.optim.AdamW(learned, lr=tuning.rate, weight_decay=0.0)
        losses, before = self._resume(lora, optimizer)
        total = tuning.epochs * -(-len(self.lessons) // tuning.batch)
        begun = kept = time.monotonic()
        self.local.model.train()
        for step, batch in self._batches(len(losses)):
            spent = before + time.monotonic() - begun
            done = max(step / total, 0.0 if tuning.seconds is None else spent / tuning.seconds)
            if done >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = tuning.rate * min(1.0, (step + 1) / (RISE * total + 1)) * max(LEAST_RATE, 1 - done)
            losses.append(self._learn(batch))
            if torch.isfinite(torch.nn.utils.clip_grad_norm_(learned, 1.0)):  # else what was learned would be lost
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step % max(1, total // 50) == 0:
                self.say(f"step {step + 1} of {total}, {spent:.0f} s, loss {sum(losses[-20:]) / len(losses[-20:]):.3f}")
            if time.monotonic() - kept > tuning.keep_every:
                kept = time.monotonic()
                self._keep(lora, optimizer, losses, spent)
        self._keep(lora, optimizer, losses, before + time.monotonic() - begun)
        self.local.model.eval()
        return lora, losses

    def _batches(self, done: int) -> Iterator[tuple[int, list[int]]]:
        """The steps that are still to be made."""
        lengths, step = [len(one) for one in self.lessons], 0
        for epoch in range(self.tuning.epochs):
            for batch in batches(lengths, self.tuning.batch, random.Random(f"{self.tuning.seed} {epoch}")):
                if step >= done:
                    yield step, batch
                step += 1

    def _learn(self, batch: Sequence[int]) -> float:
        """Gradients of one step, read in as many parts as the memory asks for."""
        drawn = [self.lessons[at] for at in batch]
        count = sum(len(one.reply) for one in drawn)
        told = 0.0
        for part in _parts(drawn, READ_AT_ONCE[self.local.device]):
            loss = self._loss(part) / count
            loss.backward()
            told += float(loss.detach())
        return told

    def _loss(self, part: Sequence[Tokens]) -> Any:
        """Words are scored at the places of the replies alone: elsewhere they would fill the memory."""
        import torch

        width, pad = max(map(len, part)), self.local.tokenizer.pad_token_id
        rows = [one.prompt + one.reply + [pad] * (width - len(one)) for one in part]
        mask = [[1] * len(one) + [0] * (width - len(one)) for one in part]
        wanted = [
            [IGNORED] * (len(one.prompt) - 1) + one.reply + [IGNORED] * (width - len(one) + 1) for one in part
        ]  # each token is told from the one before it
        ids, mask, labels = (torch.tensor(told, device=self.local.device) for told in (rows, mask, wanted))
        model = self.local.model
        states = model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)[0]
        said = model.get_output_embeddings()(states[labels != IGNORED]).float()
        return torch.nn.functional.cross_entropy(said, labels[labels != IGNORED], reduction="sum")

    @property
    def _identity(self) -> str:
        """Of the lessons, the settings and the model: a kept step of another run is not gone on from."""
        settled = replace(self.tuning, seconds=None, keep_every=0.0)
        lessons = [(one.prompt, one.reply) for one in self.lessons]
        return hashlib.sha256(repr((self.local.model.config.to_dict(), asdict(settled), lessons)).encode()).hexdigest()

    def _keep(self, lora: Lora, optimizer: Any, losses: Sequence[float], spent: float) -> None:
        import torch
        from safetensors.torch import save_file

        kept = {"losses": torch.tensor(losses)}
        for name, part in lora.weights.items():
            kept[name] = part.detach().cpu()
            for moment in ("exp_avg", "exp_avg_sq"):
                kept[f"{name}.{moment}"] = optimizer.state[part][moment].cpu()
        told = {"identity": self._identity, "spent": str(spent)}
        _whole(self.folder / KEPT_STEP, lambda file: save_file(kept, file, told))

    def _resume(self, lora: Lora, optimizer: Any) -> tuple[list[float], float]:
        """The losses of the steps that were made already, and the seconds they took."""
        import torch
        from safetensors import safe_open

        file = self.folder / KEPT_STEP
        if not file.is_file():
            return [], 0.0
        with safe_open(file, framework="pt") as opened:
            told = opened.metadata()
            if told.get("identity") != self._identity:
                return [], 0.0
            losses: list[float] = opened.get_tensor("losses").tolist()
            for name, part in lora.weights.items():
                part.data.copy_(opened.get_tensor(name))
                moments = {one: opened.get_tensor(f"{name}.{one}").to(part) for one in ("exp_avg", "exp_avg_sq")}
                optimizer.state[part] = {"step": torch.tensor(float(len(losses))), **moments}
        self.say(f"going on after step {len(losses)}")
        return losses, float(told["spent"])


# 4 Files


def write_merged(local: LocalModel, folder: Path) -> None:
    """Write a model whose matrices were merged, as `hf:` opens it."""
    import torch

    local.model.to(torch.bfloat16).save_pretrained(folder)
    local.tokenizer.save_pretrained(folder)


def _whole(file: Path, write: Callable[[Path], None]) -> None:
    """Write a file whole, or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    write(part)
    part.replace(file)
