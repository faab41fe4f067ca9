"""Fine-tune a causal language model with LoRA (Hu et al., ICLR 2022) on prompts and replies.

1  examples: the messages sent at inference, and the reply; only tokens of the reply count for the loss
2  LoRA: two low-rank matrices per linear layer are trained, and the model stays frozen
3  training: AdamW over batches of similar length; a stopped run resumes from the last checkpoint
4  files: the low-rank matrices, and a folder for `hf:` with merged weights

Needs only torch, transformers and light parts of Clew, so that it can be copied to a machine with a GPU.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from clew.core.errors import InputError, MissingExtraError, NotFoundError
from clew.models.batch_runner import LocalModel

LORA, KEPT_STEP = "lora.safetensors", "step.safetensors"
IGNORED = -100
"""Label that torch ignores in a loss."""
READ_AT_ONCE = {"cuda": 12_288, "cpu": 2_048}
"""Maximum number of tokens per forward pass, including padding. Larger steps accumulate gradients."""
REPLIES_AT_ONCE = 4_096
"""Maximum number of reply tokens per forward pass. Each needs logits for the whole vocabulary."""
SORTED_TOGETHER = 32
"""Number of batches whose examples are sorted by length."""
RISE, LEAST_RATE = 0.05, 0.02
"""Share of warm-up steps, and final share of the learning rate."""


@dataclass(frozen=True, slots=True)
class ChatExample:
    """A prompt as chat messages, and the expected reply."""

    messages: tuple[dict[str, str], ...]
    reply: str


@dataclass(frozen=True)
class LanguageSettings:
    """Settings for fine-tuning."""

    epochs: int = 2
    rate: float = 3e-4
    batch: int = 32
    rank: int = 8
    alpha: float = 16.0
    """Numerator of the LoRA scale alpha / rank."""
    longest: int = 1024
    """Maximum number of tokens. Longer examples are omitted."""
    seconds: float | None = None
    """Time limit in seconds. The run ends and the rate decays accordingly."""
    keep_every: float = 120.0
    """Seconds between checkpoints."""
    seed: int = 0


def open_language_model(spec: str) -> LocalModel:
    """Open the causal model in `FOLDER` or `FOLDER#file.gguf`, on a GPU if available."""
    spec = spec.removeprefix("hf:")
    folder = Path(spec.partition("#")[0])
    if not folder.is_dir():
        raise NotFoundError(f"no folder {folder}: pass a model as FOLDER or FOLDER#file.gguf")
    try:
        local = LocalModel(spec)
    except ImportError as missing:
        raise MissingExtraError(missing.name or "transformers", "train") from None
    if local.is_seq2seq or local.tokenizer.chat_template is None:
        raise InputError(f"{spec} is not a causal model with a chat template: use a chat model")
    return local


# 1 Examples


@dataclass(frozen=True, slots=True)
class TokenisedExample:
    """An example as tokens. The reply ends with the end-of-sequence token."""

    prompt: list[int]
    reply: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.reply)


def tokenised(local: LocalModel, lessons: Sequence[ChatExample], longest: int) -> list[TokenisedExample]:
    """Tokenise all examples. Omit those longer than `longest`."""
    if not lessons:
        return []
    prompts = local.tokenizer([local.prompt(one.messages) for one in lessons], add_special_tokens=False)["input_ids"]
    replies = local.tokenizer([one.reply for one in lessons], add_special_tokens=False)["input_ids"]
    end = local.tokenizer.eos_token_id
    every = [TokenisedExample(prompt, [*reply, end]) for prompt, reply in zip(prompts, replies, strict=True)]
    return [one for one in every if len(one) <= longest]


def batches(lengths: Sequence[int], size: int, rng: random.Random) -> list[list[int]]:
    """Return shuffled batches of similar length that contain each example once."""
    order = rng.sample(range(len(lengths)), len(lengths))
    together = size * SORTED_TOGETHER
    parts = (sorted(order[at : at + together], key=lengths.__getitem__) for at in range(0, len(order), together))
    found = [part[at : at + size] for part in parts for at in range(0, len(part), size)]
    rng.shuffle(found)
    return found


def _parts(drawn: Sequence[TokenisedExample], most: int) -> Iterator[list[TokenisedExample]]:
    """Yield examples per forward pass, counting padding."""
    part: list[TokenisedExample] = []
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
    """Low-rank matrices for the linear layers of a model. They start with zero effect."""

    def __init__(self, model: Any, rank: int, alpha: float, seed: int = 0) -> None:
        """Freeze the model and add the matrices."""
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
        """Write the matrices in bfloat16."""
        import torch
        from safetensors.torch import save_file

        small = {name: part.detach().to("cpu", torch.bfloat16).contiguous() for name, part in self.weights.items()}
        _whole(file, lambda part: save_file(small, part, {"scale": str(self.scale)}))

    def merge(self) -> None:
        """Add the matrices to the weights, rounded to bfloat16 like the written file, and remove them."""
        import torch

        for name, layer in self._layers.items():
            down, up = self.weights[f"{name}.down"].detach(), self.weights[f"{name}.up"].detach()
            changed = layer.weight.detach().float() + self.scale * up @ down
            layer.weight.data = changed.to(layer.weight.dtype)
        for hook in self._hooks:
            hook.remove()
        kind = next(self.model.parameters()).dtype
        self.model.to(torch.bfloat16).to(kind).eval()


# 3 Training


@dataclass(frozen=True, eq=False)
class LanguageDescent:
    """Trains on examples. `folder` stores checkpoints for resuming."""

    local: LocalModel
    lessons: Sequence[TokenisedExample]
    tuning: LanguageSettings
    folder: Path
    say: Callable[[str], None]

    def run(self) -> tuple[Lora, list[float]]:
        """Train. Return the matrices, and the mean loss per reply token at each step."""
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
            if torch.isfinite(torch.nn.utils.clip_grad_norm_(learned, 1.0)):  # skip updates that are not finite
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
        """Return the remaining steps."""
        lengths, tuning = [len(one) for one in self.lessons], self.tuning
        generators = (random.Random(f"{tuning.seed} {epoch}") for epoch in range(tuning.epochs))
        every = (batch for rng in generators for batch in batches(lengths, tuning.batch, rng))
        return islice(enumerate(every), done, None)

    def _learn(self, batch: Sequence[int]) -> float:
        """Compute the gradients of one step, in as many parts as the memory requires."""
        drawn = [self.lessons[at] for at in batch]
        count = sum(len(one.reply) for one in drawn)
        total = 0.0
        for part in _parts(drawn, READ_AT_ONCE[self.local.device]):
            loss = self._loss(part) / count
            loss.backward()
            total += float(loss.detach())
        return total

    def _loss(self, part: Sequence[TokenisedExample]) -> Any:
        """Compute the loss. Only reply tokens get logits, to save memory."""
        import torch

        width, pad = max(map(len, part)), self.local.tokenizer.pad_token_id
        rows = [one.prompt + one.reply + [pad] * (width - len(one)) for one in part]
        mask = [[1] * len(one) + [0] * (width - len(one)) for one in part]
        wanted = [
            [IGNORED] * (len(one.prompt) - 1) + one.reply + [IGNORED] * (width - len(one) + 1) for one in part
        ]  # each token is predicted from the previous one
        ids, mask, labels = (torch.tensor(values, device=self.local.device) for values in (rows, mask, wanted))
        model = self.local.model
        states = model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)[0]
        said = model.get_output_embeddings()(states[labels != IGNORED]).float()
        return torch.nn.functional.cross_entropy(said, labels[labels != IGNORED], reduction="sum")

    @property
    def _identity(self) -> str:
        """Digest of examples, settings and model. Only checkpoints with the same digest are resumed."""
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
        metadata = {"identity": self._identity, "spent": str(spent)}
        _whole(self.folder / KEPT_STEP, lambda file: save_file(kept, file, metadata))

    def _resume(self, lora: Lora, optimizer: Any) -> tuple[list[float], float]:
        """Load the checkpoint. Return the losses of previous steps and their total seconds."""
        import torch
        from safetensors import safe_open

        file = self.folder / KEPT_STEP
        if not file.is_file():
            return [], 0.0
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata()
            if metadata.get("identity") != self._identity:
                return [], 0.0
            losses: list[float] = opened.get_tensor("losses").tolist()
            for name, part in lora.weights.items():
                part.data.copy_(opened.get_tensor(name))
                moments = {one: opened.get_tensor(f"{name}.{one}").to(part) for one in ("exp_avg", "exp_avg_sq")}
                optimizer.state[part] = {"step": torch.tensor(float(len(losses))), **moments}
        self.say(f"resuming after step {len(losses)}")
        return losses, float(metadata["spent"])


# 4 Files


def write_merged(local: LocalModel, folder: Path) -> None:
    """Write a model with merged matrices in the format of `hf:`."""
    import torch

    local.model.to(torch.bfloat16).save_pretrained(folder)
    local.tokenizer.save_pretrained(folder)


def _whole(file: Path, write: Callable[[Path], None]) -> None:
    """Write a file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    write(part)
    part.replace(file)
