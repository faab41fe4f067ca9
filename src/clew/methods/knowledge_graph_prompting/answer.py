"""From ranked passages to an answer: what a reader says, and quotations that can be checked.

A quotation is a span of a passage with its file, page and place. An answer that no quotation writes is marked as
unsupported.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.core import trace
from clew.core.roles import Read, Reader, Reading, Source
from clew.core.types import Answer, Candidate, Evidence, Node, NodeRef, Passage, Ranking
from clew.index.tokens import terms
from clew.kb.protocol import KnowledgeBase
from clew.reading.language.proper_names import sentence_spans

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


READ = 10
"""Passages that are read."""


def answer_from_passages(
    kb: KnowledgeBase,
    question: str,
    ranking: Ranking,
    reader: Reader | None,
    *,
    paths: Sequence[Evidence] = (),
    read: int = READ,
) -> Answer:
    """The passages as candidates, each with its most telling sentence, and what a reader answers from the best."""
    refs = kb.refs(ranking.nodes)
    candidates = tuple(
        Candidate(ref, score, (most_telling(kb.node(ref.id), question),))
        for ref, (_, score) in zip(refs, ranking, strict=True)
    )
    found = read_passages(kb, question, ranking.nodes[:read].tolist(), reader) if reader else Read(None)
    if found.text is None:
        return Answer(question, candidates, evidence=tuple(paths))
    cited = [int(ranking.nodes[place]) for place in found.citations]
    quotes, supported = cite(kb, question, found.text, cited)
    notes = () if supported else (unsupported(found.text, quotes),)
    return Answer(question, candidates, text=found.text, evidence=(*quotes, *paths), notes=notes)


def unsupported(answer: str, quotes: Sequence[Evidence]) -> str:
    """What to say of an answer that no citation writes: no passage writes the yes or no that it leads to."""
    if quotes and answer.lower() in ("yes", "no"):
        return f"concluded: “{answer}” follows from the cited passages, none writes it"
    return f"unsupported: no cited passage writes “{answer}”"


def read_passages(kb: KnowledgeBase, question: str, nodes: Sequence[int], reader: Reader) -> Read:
    """What a reader answers from some passages."""
    sources = []
    for node in map(kb.node, nodes):
        sources.append(Source(node.text, node.name))
    with trace.span("read", passages=len(sources)):
        [answer] = reader.read([Reading(question, tuple(sources))])
    return answer
