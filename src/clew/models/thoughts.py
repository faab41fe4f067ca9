"""Reasoning models think before they answer, some of them aloud: what they thought is no part of the reply."""

from __future__ import annotations

import re

THINKING_TOKENS = 8192
"""What a reasoning model may write before its answer, beside the tokens of the answer, where its context is long."""
_CLOSED = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_ENDED = re.compile(r"\A.*</(think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_UNFINISHED = re.compile(r"\A\s*<(think|thinking|reasoning)>.*\Z", re.DOTALL | re.IGNORECASE)


def room_to_think(context_tokens: int) -> int:
    """Tokens for thoughts: half the context, and no more than is useful."""
    return min(THINKING_TOKENS, context_tokens // 2)


def without_thoughts(text: str) -> str:
    """The reply after its thoughts; empty where it was cut off while the model still thought.

    Chat templates may put the opening tag into the prompt: then everything up to the closing one is thought.
    """
    if "<" not in text:
        return text
    answered = _UNFINISHED.sub("", _ENDED.sub("", _CLOSED.sub("", text)))
    return answered if answered == text else answered.strip()
