"""The card of a language model that Clew fine-tuned: `card.json` in its folder, with the digest of its weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from clew.core.errors import CorruptError, FormatError, InputError

CARD, FORMAT = "card.json", 1


def digest_of_weights(folder: Path) -> str:
    """Of every safetensors file in a folder, in the order of their names."""
    found = hashlib.sha256()
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Say what the weights are, and seal them."""
    told = {"format": FORMAT, **card, "digest": digest_of_weights(folder)}
    (folder / CARD).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")


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
