"""Token counts without a tokenizer, and functions to fit texts and lists into a number of tokens."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from clew.models.protocol import Request

T = TypeVar("T")
PER_MESSAGE = 4
"""Tokens that a chat template adds to each message."""
GAP = " … "
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text on the high side, by 6 letters, 3 digits or 3 non-ASCII bytes per token."""
    total = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece.isascii():
            total += math.ceil(len(piece) / (3 if piece.isdigit() else 6))
        else:
            total += math.ceil(len(piece.encode("utf-8", "surrogatepass")) / 3)
    return total


def count_request_tokens(request: Request) -> int:
    """Estimate the tokens of a prompt."""
    return sum(count_tokens(message.content) + PER_MESSAGE for message in request.messages)


def cut_to_question(text: str, question: str, tokens: int) -> str:
    """Shorten a text to `tokens`: its first sentence, and sentences that share rare words with the question, in order.

    If no sentence fits, the first sentence is cut at its end. An ellipsis marks omitted parts.
    """
    if count_tokens(text) <= tokens:
        return text
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    order = _by_relevance(sentences, question)
    kept: set[int] = set()
    left = tokens
    for place in order:
        cost = count_tokens(sentences[place]) + 1  # 1 for a possible ellipsis
        if cost <= left:
            kept.add(place)
            left -= cost
    if not kept and order:
        return cut_end(sentences[order[0]], tokens)
    return _joined(sentences, kept)


def cut_end(text: str, tokens: int) -> str:
    """Cut a text after the last word that fits into `tokens`, including the ellipsis."""
    if count_tokens(text) <= tokens:
        return text
    ends = [match.end() for match in _WORD.finditer(text)]
    fitting = bisect_left(ends, tokens, key=lambda end: count_tokens(text[:end]))  # one token is for the ellipsis
    return text[: ends[fitting - 1]] + " …" if fitting else ""


def chunk_by_tokens(items: Sequence[T], tokens: int, text: Callable[[T], str], *, most: int) -> Iterator[Sequence[T]]:
    """Yield groups of at most `most` consecutive items that fit into `tokens`. An item too long forms its own group."""
    start, used = 0, 0
    for place, item in enumerate(items):
        cost = count_tokens(text(item))
        if place > start and (used + cost > tokens or place - start >= most):
            yield items[start:place]
            start, used = place, 0
        used += cost
    if start < len(items):
        yield items[start:]


def _by_relevance(sentences: Sequence[str], question: str) -> list[int]:
    """Return the first sentence, which introduces the topic, then the others by the rarity of shared question words."""
    words = [{word.casefold() for word in _WORD.findall(sentence)} for sentence in sentences]
    asked = {word.casefold() for word in _WORD.findall(question)}
    frequency = Counter(word for found in words for word in found & asked)
    weight = {word: math.log(1 + len(sentences) / count) for word, count in frequency.items()}
    relevance = [sum(weight[word] for word in sorted(found & asked)) for found in words]
    return sorted(range(len(sentences)), key=lambda place: (place != 0, -relevance[place], place))


def _joined(sentences: Sequence[str], kept: set[int]) -> str:
    parts: list[str] = []
    previous = -1
    for place in sorted(kept):
        if parts:
            parts.append(" " if place == previous + 1 else GAP)
        elif place > 0:
            parts.append(GAP.lstrip())
        parts.append(sentences[place])
        previous = place
    if previous < len(sentences) - 1:
        parts.append(GAP.rstrip())
    return "".join(parts)
