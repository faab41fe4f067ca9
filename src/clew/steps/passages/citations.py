"""Quotations that can be checked: a span of a passage with its file, page and place, and whether it carries a claim."""

from __future__ import annotations

from collections.abc import Sequence

from clew.core.types import Node, NodeRef, Passage
from clew.index.tokens import terms
from clew.kb.protocol import KnowledgeBase
from clew.steps.language.sentences import sentence_spans

LONGEST_QUOTE = 400


def quotation(node: Node, start: int, end: int) -> Passage:
    """The characters start to end of a passage's text as evidence; spans count characters of the file's text."""
    text = node.text[start:end]
    file, page = node.attributes.get("file"), node.attributes.get("page")
    first, last = node.attributes.get("start"), node.attributes.get("end")
    ref = NodeRef(node.id, node.key, node.name, node.type)
    if first is None or last is None:
        return Passage(ref, text, file, page, start, end)
    if last - first != len(node.text):  # rows under a repeated header: the span is that of the rows
        return Passage(ref, text, file, page, first, last)
    return Passage(ref, text, file, page, first + start, first + end)


def most_telling(node: Node, question: str, answer: str | None = None) -> Passage:
    """The sentence that writes the answer, or else shares most with the question."""
    asked = set(terms(question))
    spans = sentence_spans(node.text) or [(0, len(node.text))]
    if node.type == "table" or "\n|" in node.text:
        spans = _lines(node.text)

    def value(span: tuple[int, int]) -> tuple[bool, int]:
        sentence = node.text[span[0] : span[1]]
        return (writes(sentence, answer), len(asked & set(terms(sentence))))

    start, end = max(spans, key=value)
    if end - start > LONGEST_QUOTE:
        place = node.text.lower().find((answer or "\0").lower(), start, end)
        start = max(start, (place if place >= 0 else start) - LONGEST_QUOTE // 2)
        end = min(end, start + LONGEST_QUOTE)
    return quotation(node, start, end)


def writes(text: str, claim: str | None) -> bool:
    """Whether a text holds all the words of a claim, side by side."""
    if not claim:
        return False
    wanted = _words(claim)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(_words(text))} "


def cite(kb: KnowledgeBase, question: str, answer: str, cited: Sequence[int]) -> tuple[tuple[Passage, ...], bool]:
    """A quotation from each cited node, and whether one of them writes the answer."""
    nodes = [kb.node(node) for node in cited]
    quotes = tuple(most_telling(node, question, answer) for node in nodes)
    return quotes, any(writes(f"{node.name} {node.text}", answer) for node in nodes)


def _words(text: str) -> list[str]:
    return "".join(letter.lower() if letter.isalnum() else " " for letter in text).split()


def _lines(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for line in text.split("\n"):
        if line.strip() and not set(line) <= set("|-: "):
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans or [(0, len(text))]
