"""Names of a remote base, queried from its endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from clew.core.errors import NotFoundError
from clew.store.index.protocol import Link, Mention
from clew.store.index.tokens import Token, stop_words, tokenise
from clew.store.remote.sparql import SHORT, SparqlKnowledgeBase
from clew.store.remote.sparql_endpoint import content, iri, literal, pages_of

LONGEST = 10
"""Maximum number of words of a name in a question."""


class RemoteNames:
    """The `Names` of a remote base."""

    def __init__(self, kb: SparqlKnowledgeBase) -> None:
        self.kb = kb

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return the nodes with this label."""
        name = " ".join(text.split())
        if self.kb.reading.entities and SHORT.fullmatch(name):
            with suppress(NotFoundError):
                return (Link(self.kb.find(name), name, "exact", 1.0),)
        found = [Link(node, label, "exact", 1.0) for node, label in self._labelled([name]).get(name, ())]
        if type is not None:
            kinds = {ref.id: ref.type for ref in self.kb.refs([link.node for link in found])}
            found = [link for link in found if kinds[link.node] == type]
        return tuple(sorted(found, key=lambda link: link.node)[:k])

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return the nodes with this label."""
        return self.link(text, type=type, k=k)

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:  # noqa: ARG002 - endpoints compare exactly
        """Return the labels in a text: longest matches without overlaps, in reading order."""
        spans = {text[a.start : b.end]: (a.start, b.end) for a, b in _runs(tokenise(text))}
        found = self._labelled(spans)
        taken: list[Mention] = []
        for name in sorted(found, key=lambda name: (-len(name), spans[name])):
            start, end = spans[name]
            if all(end <= other.start or other.end <= start for other in taken):
                links = tuple(Link(node, label, "exact", 1.0) for node, label in found[name])
                taken.append(Mention(start, end, name, links))
        return sorted(taken, key=lambda mention: mention.start)

    def has_word(self, word: str) -> bool:  # noqa: ARG002 - an endpoint cannot be searched for words
        """Return False, since it is unknown."""
        return False

    def _labelled(self, names: Iterable[str]) -> dict[str, list[tuple[int, str]]]:
        """Return the nodes with one of each name's spellings as label, except descriptions of relations and types."""
        owners: dict[str, list[str]] = {}
        for name in names:
            for spelling in _spellings(name):
                owners.setdefault(spelling, []).append(name)
        languages = ("", self.kb.reading.language)
        terms = [literal(spelling, language) for spelling in owners for language in languages]
        label = iri(self.kb.reading.label)
        found: dict[str, list[tuple[int, str]]] = {}
        for portion in pages_of(terms, self.kb.reading.batch):
            query = f"SELECT ?s ?l WHERE {{ VALUES ?l {{ {' '.join(portion)} }} ?s {label} ?l }}"
            for row in self.kb.endpoint.rows(query, "?s ?l"):
                spelling = content(row["l"])
                for name in owners.get(spelling, ()):
                    found.setdefault(name, []).append((self.kb.intern([row["s"]])[0], spelling))
        every = [node for labelled in found.values() for node, _ in labelled]
        known = {ref.id for ref in self.kb.refs(every) if ref.type in self.kb.schema.type_code}
        kept = {name: [pair for pair in labelled if pair[0] in known] for name, labelled in found.items()}
        return {name: labelled for name, labelled in kept.items() if labelled}


def _runs(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield every run of words that contains more than stop words."""
    for first in range(len(tokens)):
        for last in range(first, min(first + LONGEST, len(tokens))):
            if any(token.text not in stop_words() for token in tokens[first : last + 1]):
                yield tokens[first], tokens[last]


def _spellings(name: str) -> list[str]:
    """Return spelling variants, since endpoints compare exactly: as written, underscores, title case, capitalised."""
    return list(dict.fromkeys((name, name.replace(" ", "_"), name.title(), name[:1].upper() + name[1:], name.lower())))
