"""Persistent cache of model replies, keyed by the content of the request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clew.core.kept_texts import DEFAULT_CAP, KeptTexts
from clew.core.texts import parse_json
from clew.models.protocol import Completion, Request, Usage


def canonical(request: Request, model: str) -> str:
    """Return the request and the model's name as JSON with sorted keys. Equal texts mean equal replies."""
    fields: dict[str, Any] = asdict(request)
    if request.n == 1 and request.beams is None:  # keeps the keys of older caches valid
        del fields["n"], fields["beams"]
    return json.dumps({"model": model, **fields}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(request: Request, model: str) -> str:
    """Return the SHA-256 digest of the canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(request, model).encode("utf-8", "surrogatepass")).hexdigest()


class ReplyStore:
    """Completions by key. `put` returns after the reply is on disk, so a killed run keeps all paid replies."""

    def __init__(self, file: Path, *, cap: int = DEFAULT_CAP) -> None:
        """Open or create the file. Raise StorageError if it is broken."""
        self._kept = KeptTexts(file, cap=cap)

    def get(self, keys: Sequence[str]) -> dict[str, Completion]:
        """Return the stored completions for these keys, marked as cached."""
        found = {key: _decode(value) for key, value in self._kept.get(keys).items()}
        return {key: completion for key, completion in found.items() if completion is not None}

    def put(self, key: str, completion: Completion) -> None:
        """Store a completion, unless the key has one already."""
        self._kept.put(key, _encode(completion))

    def __len__(self) -> int:
        return len(self._kept)


def _encode(completion: Completion) -> str:
    fields: dict[str, Any] = {"text": completion.text, "cut": completion.cut, "usage": asdict(completion.usage)}
    if completion.logprobs:
        fields["logprobs"] = [dict(alternatives) for alternatives in completion.logprobs]
    if completion.others:
        fields["others"] = completion.others
    return json.dumps(fields)  # ASCII: a lone surrogate in a reply must not break the file


def _decode(value: str) -> Completion | None:
    """Decode a stored completion. Return None if it is invalid."""
    try:
        fields = parse_json(value)
        usage = Usage(**{**fields["usage"], "cached": True})
        logprobs, others = (tuple(fields.get(name, ())) for name in ("logprobs", "others"))
        return Completion(fields["text"], usage, cut=fields["cut"], logprobs=logprobs, others=others)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
