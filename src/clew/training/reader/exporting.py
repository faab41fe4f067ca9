"""Trained networks as the files that the reader opens: int8 ONNX, which reads the word vectors of the embedder."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from clew.models.embedding.words import DIMENSION
from clew.models.onnx_runtime import quantize
from clew.training.reader.network import choice_heads, meaning_heads, word_table

FILES = ("meaning.onnx", "choice.onnx", "heads.npz")


def export_reader(torch: Any, meaning: Any, choice: Any, folder: Path, card: dict[str, Any]) -> None:
    """Write both encoders, their heads and the card, which also gets the digest of the other files."""
    folder.mkdir(parents=True, exist_ok=True)
    export_encoder(torch, meaning.encoder, folder / "meaning.onnx", is_pooled=True)
    export_encoder(torch, choice.encoder, folder / "choice.onnx", is_pooled=False)
    heads = meaning_heads(meaning) | choice_heads(choice)
    heads["pairs"] = heads["pairs"].astype(np.float16)
    np.savez_compressed(folder / "heads.npz", **heads)  # type: ignore[arg-type]  # the names are no options
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()
    write_card(folder, {"words": word_table(), "digest": digest, **card})


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Say what the weights are."""
    (folder / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", "utf-8")


def export_encoder(torch: Any, encoder: Any, file: Path, *, is_pooled: bool) -> None:
    """Write an encoder from the word vectors on, as int8: the mean of its states, or all of them."""

    class FromWords(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        """The encoder from the word vectors on, for one text at a time."""

        def __init__(self) -> None:
            super().__init__()
            self.embeddings, self.layers = encoder.embeddings, encoder.encoder.layer

        def forward(self, vectors: Any, types: Any) -> Any:
            places = torch.arange(vectors.shape[1], device=vectors.device)[None]
            told = self.embeddings.token_type_embeddings(types) + self.embeddings.position_embeddings(places)
            states = self.embeddings.LayerNorm(vectors + told)
            for layer in self.layers:
                states = layer(states)
                states = states[0] if isinstance(states, tuple) else states  # before transformers 5
            return states.mean(1) if is_pooled else states

    network = FromWords().to("cpu").eval()
    axes = {0: "batch", 1: "length"}
    with tempfile.TemporaryDirectory() as scratch:
        torch.onnx.export(
            network,
            (torch.zeros(1, 12, DIMENSION), torch.zeros(1, 12, dtype=torch.int64)),
            str(Path(scratch) / "exact.onnx"),
            dynamo=False,
            opset_version=17,
            input_names=["vectors", "types"],
            output_names=["out"],
            dynamic_axes={"vectors": axes, "types": axes, "out": {0: "batch"} if is_pooled else axes},
        )
        quantize(Path(scratch) / "exact.onnx", file)
