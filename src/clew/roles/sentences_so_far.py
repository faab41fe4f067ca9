"""The sentences of an answer while a model still writes the JSON around them."""

from __future__ import annotations

import json
import re

from clew.core.texts import whole_text
from clew.models.structured import LONGEST

_BEGIN = re.compile(r'"sentences"\s*:\s*\[')
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"?|[\[\]{}:,]', re.DOTALL)
_HALF_A_PAIR = re.compile("[\ud800-\udbff]$")
_CITATION = re.compile(r"\s*\[[\d,; ]*(?:\]|$)")


def sentences_so_far(reply: str) -> str:
    """What is written of `{"sentences": [{"text": "…", "passages": […]}, …]}`, without the JSON and its citations.

    Nothing of a reply in another form, and nothing of the thoughts before the sentences.
    """
    reply = reply[:LONGEST]
    begin = _BEGIN.search(reply)
    said: list[str] = []
    depth, key, is_value = 0, "", False
    for token in _TOKEN.finditer(reply, begin.end()) if begin else ():
        sign = token[0][0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
            if depth < 0:
                break
        if sign != '"':
            is_value = sign == ":"
        elif depth == 0 or (depth == 1 and is_value and key == "text"):
            said.append(_decoded(token[1]))
        elif not is_value:
            key = token[1]
    return " ".join(" ".join(_CITATION.sub("", whole_text(text)) for text in said).split())


def _decoded(written: str) -> str:
    """A JSON string without its quotes; what cannot be read at its end is not written to the end yet."""
    for whole in (written, written[: max(written.rfind("\\"), 0)]):
        try:
            return _HALF_A_PAIR.sub("", str(json.loads(f'"{whole}"', strict=False)))
        except ValueError:
            continue
    return ""
