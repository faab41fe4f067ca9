"""A trained passage network as the files that Clew opens."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from clew.training.passages.network import passage_heads
from clew.training.reader.exporting import export_encoder, write_card
from clew.training.reader.network import word_table

FILES = ("encoder.onnx", "heads.npz")


def export_passages(torch: Any, network: Any, folder: Path, card: dict[str, Any]) -> None:
    """Write the encoder, its heads and the card, which also gets the digest of the other files."""
    folder.mkdir(parents=True, exist_ok=True)
    export_encoder(torch, network.encoder, folder / "encoder.onnx", is_pooled=False)
    np.savez_compressed(folder / "heads.npz", **passage_heads(network))  # type: ignore[arg-type]  # no options
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()
    write_card(folder, {"words": word_table(), "digest": digest, **card})
