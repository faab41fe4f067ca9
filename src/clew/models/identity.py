"""What a request is, as bytes and as a hash: the key of caches and batches, and what a trace shows of a prompt."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from clew.models.protocol import Request


def canonical(request: Request, model: str) -> str:
    """The whole request and the model's name as JSON with sorted keys: equal exactly where the replies must be."""
    fields: dict[str, Any] = asdict(request)
    return json.dumps({"model": model, **fields}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(request: Request, model: str) -> str:
    """The SHA-256 of the canonical form, as hexadecimal digits."""
    return hashlib.sha256(canonical(request, model).encode("utf-8", "surrogatepass")).hexdigest()
