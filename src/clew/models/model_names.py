"""Properties of a model guessed from its name: size, reasoning, and ability to chat."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from clew.models.protocol import Capabilities, Size

SMALL_BELOW, LARGE_FROM = 7.0, 30.0
"""Bounds of model sizes, in billions of parameters."""
_BILLIONS = re.compile(r"(?:(?P<experts>\d+)x)?(?P<each>\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_HOSTED = re.compile(
    r"gpt-[45]|\bo[134]\b|claude|gemini|grok|mistral-(medium|large)|command-(r|a)|kimi|glm-[4-9]"
    r"|deepseek-(chat|reasoner|v\d|r\d)",
    re.IGNORECASE,
)
"""Large models whose names do not state their size."""
_LESSER = re.compile(r"mini|nano|flash|haiku|lite|small|air", re.IGNORECASE)
_REASONING = re.compile(
    r"\bo[134](-|$)|gpt-5|gpt-oss|deepseek-(r\d|reasoner)|\br1\b|qwq|magistral|thinking|reason", re.IGNORECASE
)
_NO_CHAT = re.compile(r"embed|\bbge\b|minilm|rerank|whisper|tts|dall-e|moderation", re.IGNORECASE)


def billions_in(text: str) -> float | None:
    """Return the number of parameters in a text such as 8x7B or 1.5b, in billions."""
    found = _BILLIONS.search(text)
    return float(found["each"]) * int(found["experts"] or 1) if found else None


def size_of(name: str, billions: float | None = None) -> Size:
    """Return the size class of a model by its number of parameters, or else by its name."""
    billions = billions or billions_in(name)
    if billions is not None:
        return "small" if billions < SMALL_BELOW else "medium" if billions < LARGE_FROM else "large"
    if _HOSTED.search(name):
        return "medium" if _LESSER.search(name) else "large"
    return "unknown"


def is_reasoning(name: str) -> bool:
    """Return whether the name is that of a reasoning model."""
    return _REASONING.search(name) is not None


def can_chat(name: str) -> bool:
    """Return whether a model can chat, unlike embedders, rerankers and speech models."""
    return _NO_CHAT.search(name) is None


def capabilities_by_name(name: str, context_tokens: int, **known: bool) -> Capabilities:
    """Guess the capabilities of a model from its name."""
    return Capabilities(context_tokens, reasoning=is_reasoning(name), size=size_of(name), **known)


def name_at(model: str, base_url: str) -> str:
    """Return the model's name with its host, since equal names on two servers may be different models."""
    parts = urlsplit(base_url)
    place = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    return f"{model}@{place}{parts.path.rstrip('/')}"
