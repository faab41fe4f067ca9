"""Turn ranked passages into an answer: the reader's text, and quotations that can be checked.

A quotation is a span of a passage with its file, page, section and position. Without a model, the answer is the
answering sentence, with its passage as evidence. With a model, each sentence it writes is cited and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clew.answering.reading.documents.close_reading import LONGEST_QUOTE, CloseReading, is_table, most_telling, writes
from clew.answering.roles.read import cited_text
from clew.core import trace
from clew.core.proper_names import unmentioned_names
from clew.core.roles import Read, Reader, Reading, Source
from clew.core.states import WORDINGS
from clew.core.types import Answer, Candidate, Evidence, Node, NodeSet, Passage, Ranking
from clew.store.graph.protocol import KnowledgeBase


def cite(kb: KnowledgeBase, question: str, answer: str, cited: Sequence[int]) -> tuple[tuple[Passage, ...], bool]:
    """Return a quotation from each cited node, and whether one of the nodes contains the answer."""
    nodes = [kb.node(node) for node in cited]
    quotes = tuple(most_telling(node, question, answer) for node in nodes)
    return quotes, any(writes(f"{node.name} {node.text}", answer) for node in nodes)


READ, READ_BY_LARGE = 10, 20
"""Number of passages to read, and for a model that is not small.

Of 80 questions over real documents, the first ten passages contain the answer for 60, the first twenty for 71.
"""
UNSURE = 3
"""Number of passages to quote if the answer is not certain."""
FOLLOWING = "next"
SIDE_BY_SIDE = 3
"""Maximum number of adjacent passages that are grouped as one result."""
MAYBE, NOT_FOUND = WORDINGS["maybe"].quotes, WORDINGS["not_found"].quotes
UNSAID = 0.59
"""Maximum certainty if no passage mentions a name of the question."""


def answer_from_passages(
    kb: KnowledgeBase,
    question: str,
    ranking: Ranking,
    reader: Reader,
    *,
    read: int = READ,
    pairs: Sequence[Sequence[int]] | None = None,
) -> Answer:
    """Return the passages as candidates with their most relevant sentences, and a reader's answer from the best.

    With `pairs`, the reader gets these groups of passages instead, each group as one source.
    """
    candidates = tuple(
        Candidate(ref, score, (most_telling(kb.node(ref.id), question),))
        for ref, (_, score) in zip(kb.refs(ranking.nodes), ranking, strict=True)
    )
    answer = Answer(question, candidates)
    return with_reader(kb, answer, ranking.nodes[:read].tolist() if pairs is None else pairs, reader)


def answer_from_quotes(
    kb: KnowledgeBase, question: str, close: CloseReading, looked_up: str | None = None, *, is_english: bool = True
) -> Answer:
    """Return the passages as candidates with marked sentences. The sentence of the first candidate is the answer.

    If it is not certain, the text adds sentences of the next passages. If no top passage mentions a name of the
    question, a certain answer becomes uncertain, and an uncertain answer counts as not found. `looked_up` is the likely
    answer from a table, if the first passage is a table. It replaces the rows in the text.
    """
    shared = sharing_places(kb, close.ranking.nodes.tolist())
    scores = dict(close.ranking)
    if shared and close.found:
        shared[0] = gone_on(kb, shared[0])
    candidates = tuple(
        Candidate(ref, scores[ref.id], tuple(Passage.of(node, mark=close.mark(node)) for node in map(kb.node, place)))
        for ref, place in zip(kb.refs([place[0] for place in shared]), shared, strict=True)
    )
    answer = Answer(question, candidates, certainty=close.certainty, answer_count=1)
    if not candidates or not close.found:
        return replace(answer, text=NOT_FOUND, answer_count=0)
    said = looked_up or close.told(kb.node(shared[0][0]))
    near = [piece for one in candidates[:READ] for piece in one.evidence if isinstance(piece, Passage)]
    texts = [f"{piece.node.name} {piece.file} {piece.text}" for piece in near]
    names = ", ".join(unmentioned_names(question, texts)) if is_english else ""
    if close.is_sure and not looked_up and not names:
        first, *following = map(kb.node, shared[0])
        pieces = [Passage.of(first, mark=close.mark(first))]
        if said == first.text:  # a short passage, such as a question of an FAQ, may need the next one
            pieces += [Passage.of(node) for node in following]
        return replace(answer, text=said, evidence=tuple(pieces))
    if names and not close.is_sure:
        return replace(answer, text=f"{NOT_FOUND} The nearest passages do not mention {names}.", answer_count=0)
    quotes = tuple(_passage(one) for one in candidates[:UNSURE])
    others = [kb.node(one.node.id) for one in candidates[1:UNSURE]]
    told_too = [_headed(node, close.told(node)) for node in others]
    lines = [f"[{number}] {text}" for number, text in enumerate((said, *told_too), start=1)]
    if names:
        lines.append(f"None of them mentions {names}.")
        answer = replace(answer, certainty=min(close.certainty, UNSAID))
    return replace(answer, text="\n".join((MAYBE, *lines)), evidence=quotes, answer_count=len(quotes))


def gone_on(kb: KnowledgeBase, place: Sequence[int]) -> list[int]:
    """Add the following passages if adjacent passages are short, such as a question of an FAQ."""
    nodes = list(place)
    while FOLLOWING in kb.schema.relation_names and sum(len(kb.node(node).text) for node in nodes) < LONGEST_QUOTE:
        after = [node for node in kb.neighbors(NodeSet.of([max(nodes)]), FOLLOWING, "out") if node not in nodes]
        if not after or is_table(kb.node(after[0])):
            break
        nodes.append(after[0])
    return nodes


def _headed(node: Node, text: str) -> str:
    """Add the heading before a text, unless the text already contains it."""
    heading = (node.attributes.get("section") or "").split(" › ")[-1]
    return f"{heading}: {text}" if heading and not writes(text, heading) else text


def sharing_places(kb: KnowledgeBase, ranked: Sequence[int]) -> list[list[int]]:
    """Group adjacent passages of a document at the rank of the best. Leave the order otherwise unchanged."""
    if FOLLOWING not in kb.schema.relation_names:
        return [[node] for node in ranked]
    places: list[list[int]] = []
    held: dict[int, list[int]] = {}
    for node in ranked:
        beside = kb.neighbors(NodeSet.of([node]), FOLLOWING)
        place = next((held[other] for other in beside if other in held and len(held[other]) < SIDE_BY_SIDE), None)
        if place is None:
            place = []
            places.append(place)
        place.append(node)
        held[node] = place
    return places


def _passage(candidate: Candidate) -> Passage:
    return next(piece for piece in candidate.evidence if isinstance(piece, Passage))


def with_reader(
    kb: KnowledgeBase, answer: Answer, shown: Sequence[int] | Sequence[Sequence[int]], reader: Reader
) -> Answer:
    """Add a reader's answer from some passages or groups of passages, and the cited passages."""
    groups = [(one,) if isinstance(one, int) else tuple(one) for one in shown]
    read = read_passages(kb, answer.question, groups, reader)
    cited = list(dict.fromkeys(node for place in read.citations for node in groups[place]))
    if read.claims:
        return written(kb, answer, [group[-1] for group in groups], read)
    if read.text is None:
        if read.problem is None and read.missing:
            return replace(answer, text=f"{NOT_FOUND} {read.missing}", evidence=(), answer_count=0, certainty=None)
        return replace(answer, notes=(*answer.notes, *read.notes))
    quotes, supported = cite(kb, answer.question, read.text, cited)
    notes = () if supported else (unsupported(read.text, quotes),)
    return replace(answer, text=read.text, evidence=quotes, notes=(*answer.notes, *notes))


def written(kb: KnowledgeBase, answer: Answer, nodes: Sequence[int], read: Read) -> Answer:
    """Build an answer from cited sentences. The evidence is the quotations in the order of their numbers."""
    spans: dict[int, tuple[int, int]] = {}
    for claim in read.claims:
        for citation, span in zip(claim.citations, claim.spans, strict=True):
            before = spans.get(citation, span)
            spans[citation] = (min(before[0], span[0]), max(before[1], span[1]))
    quotes = tuple(Passage.of(kb.node(nodes[place]), mark=spans.get(place)) for place in read.citations)
    text = cited_text(read) + (f" Not in the documents: {read.missing}" if read.missing else "")
    support = min(claim.support for claim in read.claims)
    notes = (*answer.notes, *read.notes)
    return replace(answer, text=text, evidence=quotes, certainty=support, answer_count=max(1, len(quotes)), notes=notes)


def unsupported(answer: str, quotes: Sequence[Evidence]) -> str:
    """Return a note about an answer that no citation contains. A yes or no is a conclusion from the passages."""
    if quotes and answer.lower() in ("yes", "no"):
        return f"concluded: “{answer}” follows from the cited passages, none writes it"
    return f"unsupported: no cited passage writes “{answer}”"


def read_passages(kb: KnowledgeBase, question: str, groups: Sequence[Sequence[int]], reader: Reader) -> Read:
    """Let a reader answer from passages. The passages of a group form one source in their order."""
    sources = []
    for nodes in groups:
        read = [kb.node(node) for node in nodes]
        text = "\n".join(node.text for node in read) if len(read) > 1 else read[-1].text
        title = " → ".join(dict.fromkeys(node.name for node in read))
        sources.append(Source(text, title, read[-1].attributes.get("page")))
    with trace.span("read", passages=len(sources)):
        [answer] = reader.read([Reading(question, tuple(sources))])
    return answer
