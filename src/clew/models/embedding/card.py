"""What a folder says about the embedder in it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from clew.errors import ModelError

Pooling = Literal["mean", "cls"]
BUNDLED = Path(__file__).parent / "minilm"


@dataclass(frozen=True)
class Card:
    """The settings of an ONNX embedder: its file, how many tokens it reads and how it pools them."""

    model: Path
    tokenizer: Path
    name: str
    dimension: int
    max_tokens: int = 256
    pooling: Pooling = "mean"
    prompts: dict[str, str] = field(default_factory=dict)
    """A text put before every query or document, by role."""
    size: int | None = None
    digest: str | None = None

    def check_size(self) -> None:
        """Refuse a file that was cut; cheap enough for every load."""
        if not self.model.is_file():
            raise ModelError(f"{self.model} is missing: reinstall the package or name another embedder")
        found = self.model.stat().st_size
        if self.size is not None and found != self.size:
            raise ModelError(f"{self.model} has {found} bytes, expected {self.size}: reinstall the package")

    def check_digest(self) -> None:
        """Refuse a file that was altered; reads all of it."""
        self.check_size()
        found = file_digest(self.model)
        if self.digest is not None and found != self.digest:
            raise ModelError(f"{self.model} has digest {found}, expected {self.digest}: reinstall the package")


def bundled_card() -> Card:
    """The embedder that ships in the package."""
    told = _json(BUNDLED / "embedder.json")
    return Card(model=BUNDLED / "model.onnx", tokenizer=BUNDLED / "tokenizer.json", **told)


def find_onnx(folder: Path) -> Path | None:
    """The ONNX file of a folder, in one of its usual places; None where there is none."""
    places = (folder / "model.onnx", folder / "onnx" / "model.onnx")
    return next((place for place in places if place.is_file()), None)


def folder_card(folder: Path) -> Card:
    """An exported model in the layout of sentence-transformers: model.onnx, tokenizer.json and its settings."""
    model, tokenizer = find_onnx(folder), folder / "tokenizer.json"
    if model is None or not tokenizer.is_file():
        raise ModelError(f"{folder} holds no embedder: expected model.onnx (or onnx/model.onnx) and tokenizer.json")
    dimension = _json(folder / "config.json").get("hidden_size")
    if not isinstance(dimension, int):
        raise ModelError(f"{folder / 'config.json'} must give hidden_size, the length of a vector")
    pooling = _json(folder / "1_Pooling" / "config.json")
    if pooling and not (pooling.get("pooling_mode_mean_tokens") or pooling.get("pooling_mode_cls_token")):
        raise ModelError(f"{folder} pools in a way that is not supported: expected the mean or the first token")
    return Card(
        model=model,
        tokenizer=tokenizer,
        name=f"{folder.resolve().name}@{file_digest(model)[:12]}",
        dimension=dimension,
        max_tokens=int(_json(folder / "sentence_bert_config.json").get("max_seq_length") or 256),
        pooling="cls" if pooling.get("pooling_mode_cls_token") else "mean",
        prompts=dict(_json(folder / "config_sentence_transformers.json").get("prompts") or {}),
    )


def file_digest(file: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        told = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ModelError(f"{file} is not JSON: {error}") from error
    return told if isinstance(told, dict) else {}
