"""JSON out of a model's words: untrusted, wrapped in prose, broken, or not JSON at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from clew.errors import ReplyError

M = TypeVar("M", bound=BaseModel)
LONGEST = 200_000
"""Characters of a reply that are looked at."""
MOST_STARTS = 40
"""Places where JSON might begin that are tried."""
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_START = re.compile(r"[{\[]")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)


def find_json(text: str) -> Iterator[Any]:
    """Every JSON object or array in a reply: the whole, what stands in fences, what begins at each bracket."""
    text = text[:LONGEST].strip()
    seen = 0
    for part in (text, *(match[1].strip() for match in _FENCE.finditer(text))):
        value = _decode(part, 0)
        if value is not None and value[1] == len(part):
            yield value[0]
    end = 0
    for match in _START.finditer(text):
        if match.start() < end:  # inside what was found already
            continue
        if (seen := seen + 1) > MOST_STARTS:
            return
        value = _decode(text, match.start())
        if value is not None:
            end = value[1]
            yield value[0]


def read_json(text: str, model: type[M]) -> M:
    """The first JSON value in a reply that is what was asked for; raises ReplyError with what was wrong otherwise."""
    if not text.strip():
        raise ReplyError("the reply is empty; expected a JSON object")
    wrong: str | None = None
    for value in find_json(text):
        try:
            return model.model_validate(value)
        except ValidationError as failure:
            wrong = wrong or in_words(failure)
    raise ReplyError(wrong or "the reply holds no JSON object, or an unfinished one")


def in_words(failure: ValidationError) -> str:
    """The first few things that are wrong, each with its place."""
    return "; ".join(
        f"{'.'.join(str(part) for part in error['loc']) or 'the reply'}: {error['msg']}"
        for error in failure.errors()[:3]
    )


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # RecursionError: brackets nested thousands deep
        return None
