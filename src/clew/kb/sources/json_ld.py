"""JSON-LD without the network: contexts that stand for schema.org are known, others have to be in the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from clew.core.errors import SourceError
from clew.kb.sources.files import line_at

_SCHEMA_ORG = re.compile(r"https?://(www\.)?schema\.org(/.*)?")
_VOCABULARY = {"@vocab": "https://schema.org/"}


def with_local_contexts(data: bytes, file: Path) -> bytes:
    """The same document with no context that would have to be fetched."""
    try:
        document = json.loads(data)
    except json.JSONDecodeError as broken:
        raise SourceError(f"not JSON: {broken.msg}", file=file, line=line_at(data, broken.pos)) from broken
    return json.dumps(_local(document, file), ensure_ascii=False).encode("utf-8")


def _local(value: Any, file: Path) -> Any:
    if isinstance(value, list):
        return [_local(item, file) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _context(part, file) if name == "@context" else _local(part, file) for name, part in value.items()}


def _context(context: Any, file: Path) -> Any:
    if isinstance(context, list):
        return [_context(part, file) for part in context]
    if not isinstance(context, str):
        return context
    if _SCHEMA_ORG.fullmatch(context):
        return _VOCABULARY
    raise SourceError(
        f"the context {context!r} would have to be fetched, and nothing is: put what it holds in place of its address",
        file=file,
    )
