"""Model cards: `card.json` describes the weights in a folder, with their digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.core.errors import CorruptError, FormatError, InputError, ModelError

CARD, FORMAT = "card.json", 1


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write the card of a folder."""
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", "utf-8")


def shipped_card(folder: Path) -> dict[str, Any]:
    """Read the card of weights that ship with the package."""
    file = folder / CARD
    if not file.is_file():
        raise ModelError(f"{file} is missing: reinstall the package")
    card: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return card


def add_figures(folder: Path, figures: Mapping[str, float]) -> None:
    """Add measured figures to a card."""
    write_card(folder, json.loads((folder / CARD).read_text("utf-8")) | {"figures": figures})


def digest_of_files(folder: Path, names: Iterable[str]) -> str:
    """Return the digest of the concatenated files of a network."""
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


def seal_language_model(folder: Path, card: Mapping[str, Any]) -> None:
    """Write the card of a language model with the digest of its weights, which `check_card` compares."""
    write_card(folder, {"format": FORMAT, **card, "digest": digest_of_weights(folder)})


def digest_of_weights(folder: Path) -> str:
    """Return the digest of all safetensors files in a folder, in order of their names."""
    found = hashlib.sha256()
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()


def check_card(folder: Path) -> None:
    """Raise an error if a fine-tuned model is damaged, too new or unusable. Accept folders without a card."""
    file = folder / CARD
    if not file.is_file():
        return
    try:
        card = json.loads(file.read_text("utf-8"))
        form, digest, usable = int(card["format"]), str(card["digest"]), bool(card["usable"])
    except (ValueError, KeyError, TypeError):
        raise CorruptError(f"{file} is not a fine-tuned model's card: train it again, or remove the file") from None
    if form > FORMAT:
        raise FormatError(f"{folder} has format {form}, this version reads up to {FORMAT}: upgrade clew")
    if digest != digest_of_weights(folder):
        raise CorruptError(f"the weights in {folder} do not match {CARD}: copy or train them again")
    if not usable:
        raise InputError(
            f"{folder} is no better on held-out examples than its base model ({CARD}): use that, or train again"
        )
