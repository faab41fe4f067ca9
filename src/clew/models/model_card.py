"""The card of what was trained: `card.json` in its folder says what the weights are, with their digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.core.errors import CorruptError, FormatError, InputError, ModelError

CARD, FORMAT = "card.json", 1


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Say what the weights in a folder are."""
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", "utf-8")


def shipped_card(folder: Path) -> dict[str, Any]:
    """What weights that ship with the package are."""
    file = folder / CARD
    if not file.is_file():
        raise ModelError(f"{file} is missing: reinstall the package")
    card: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return card


def add_figures(folder: Path, figures: Mapping[str, float]) -> None:
    """Say on the card what was measured since it was written."""
    write_card(folder, json.loads((folder / CARD).read_text("utf-8")) | {"figures": figures})


def digest_of_files(folder: Path, names: Iterable[str]) -> str:
    """Of the files of a network, one after the other."""
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


def seal_language_model(folder: Path, card: Mapping[str, Any]) -> None:
    """Say what the weights of a language model are, so that altered ones are refused."""
    write_card(folder, {"format": FORMAT, **card, "digest": digest_of_weights(folder)})


def digest_of_weights(folder: Path) -> str:
    """Of every safetensors file in a folder, in the order of their names."""
    found = hashlib.sha256()
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()


def check_card(folder: Path) -> None:
    """Refuse a fine-tuned model that is damaged, of a newer version or not usable; a folder without a card is any."""
    file = folder / CARD
    if not file.is_file():
        return
    try:
        card = json.loads(file.read_text("utf-8"))
        form, digest, usable = int(card["format"]), str(card["digest"]), bool(card["usable"])
    except (ValueError, KeyError, TypeError):
        raise CorruptError(f"{file} is no card of a fine-tuned model: train it again, or remove the file") from None
    if form > FORMAT:
        raise FormatError(f"{folder} has format {form}, this version reads up to {FORMAT}: upgrade clew")
    if digest != digest_of_weights(folder):
        raise CorruptError(f"the weights in {folder} are not those that {CARD} speaks of: copy or train them again")
    if not usable:
        raise InputError(
            f"{folder} did no better on held-out examples than what it was made from ({CARD}): use that, or train again"
        )
