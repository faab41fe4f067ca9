"""Export trained networks: int8 ONNX over the embedder's word vectors, heads and a card."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.lab.training.networks import word_table
from clew.models.embedding.onnx import DIMENSION
from clew.models.model_card import digest_of_files, write_card
from clew.models.onnx_runtime import quantize

HEADS = "heads.npz"


def export_network(
    torch: Any,
    folder: Path,
    card: Mapping[str, Any],
    *,
    pooled: Mapping[str, Any] | None = None,
    states: Mapping[str, Any] | None = None,
    heads: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write pooled encoders (one vector per text), encoders with token states, the heads and the card.

    `pooled` and `states` map file names to encoders.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pooled, states = dict(pooled or {}), dict(states or {})
    for name, encoder in (pooled | states).items():
        export_encoder(torch, encoder, folder / name, is_pooled=name in pooled)
    if heads:
        np.savez(folder / HEADS, allow_pickle=False, **heads)  # half precision is hardly smaller
    digest = digest_of_files(folder, [*pooled, *states, *([HEADS] if heads else [])])
    write_card(folder, {"words": word_table(), "digest": digest, **card})


def export_encoder(torch: Any, encoder: Any, file: Path, *, is_pooled: bool) -> None:
    """Write an encoder without its word vectors, as int8. The output is the mean state or all states."""

    class FromWords(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        """The encoder without its word vectors, for one text at a time."""

        def __init__(self) -> None:
            super().__init__()
            self.embeddings, self.layers = encoder.embeddings, encoder.encoder.layer

        def forward(self, vectors: Any, types: Any) -> Any:
            places = torch.arange(vectors.shape[1], device=vectors.device)[None]
            embedded = self.embeddings.token_type_embeddings(types) + self.embeddings.position_embeddings(places)
            states = self.embeddings.LayerNorm(vectors + embedded)
            for layer in self.layers:
                states = layer(states)
                states = states[0] if isinstance(states, tuple) else states  # before transformers 5
            return states.mean(1) if is_pooled else states

    fed = {"vectors": torch.zeros(1, 12, DIMENSION), "types": torch.zeros(1, 12, dtype=torch.int64)}
    export_int8(torch, FromWords().to("cpu").eval(), fed, file, is_pooled=is_pooled)


def export_int8(torch: Any, network: Any, fed: Mapping[str, Any], file: Path, *, is_pooled: bool) -> None:
    """Write a network as int8 ONNX for batches of any length. Pooled networks give one result per text."""
    axes = {0: "batch", 1: "length"}
    with tempfile.TemporaryDirectory() as scratch:
        exact = Path(scratch) / "exact.onnx"
        torch.onnx.export(
            network,
            tuple(fed.values()),
            str(exact),
            dynamo=False,
            opset_version=17,
            input_names=list(fed),
            output_names=["out"],
            dynamic_axes={**dict.fromkeys(fed, axes), "out": {0: "batch"} if is_pooled else axes},
        )
        quantize(exact, file)
