"""What a question names: spans with the nodes they may stand for, sorted by type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from clew.core.types import NodeSet
from clew.store.graph.protocol import Explorable
from clew.store.index.linking import LINKED, link_probability
from clew.store.index.name_table import form_of
from clew.store.index.protocol import Link, Mention, Names

MARKED = re.compile(r"\[([^\[\]]+)\]")
"""A name in square brackets is meant for certain."""
LINKS = 20
ALIKE = 0.86
"""A span less like a name than this is not that name misspelt."""
FEW = 3
"""What begins more names than these stands for none of them, unless it is written like a name."""
MOST_NAMED = 5
DERIVED = 0.3
"""Minimum probability of a link in a running text, where a word may be made from a name."""
PLAIN = 0.8
"""Minimum probability of a link of words in small letters, which may be no name."""
CLOSE = 3
"""Maximum number of close names that are shown for an unknown one."""
MOST_MARKED = 20
"""Brackets that are looked at; what they name counts like other names."""
PEOPLE = 0.95
"""How sure a word for a people, such as "Dutch", stands for its place."""


@dataclass(frozen=True)
class Sense:
    """The nodes of one type that a span may stand for."""

    type: str
    links: tuple[Link, ...]

    @property
    def nodes(self) -> NodeSet:
        """The nodes as a set."""
        return NodeSet.of([link.node for link in self.links])


@dataclass(frozen=True)
class Named:
    """A span of the question and its senses, the likeliest first."""

    start: int
    end: int
    text: str
    senses: tuple[Sense, ...]
    is_certain: bool = False
    """Whether it must be a name, whatever its spelling."""

    @property
    def is_exact(self) -> bool:
        """Whether something is called just so."""
        return self.senses[0].links[0].how == "exact"

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be no name at all: misspelt, or a word in small letters where the name has capitals."""
        link = self.senses[0].links[0]
        return not self.is_certain and (link.how != "exact" or self._is_plain_word(link))

    @property
    def likelihood(self) -> float:
        """How likely it stands for its first sense, by its spelling."""
        return link_probability(self.text, self.senses[0].links)

    def _is_plain_word(self, link: Link) -> bool:
        return self.text.islower() and " " not in self.text and not link.alias.islower()


def find_named(question: str, kb: Explorable, names: Names) -> tuple[str, list[Named]]:
    """The question without brackets, and what it names: what stands in brackets, or else whatever has a name."""
    marked = list(MARKED.finditer(question))
    if marked:
        plain, moved = question, []
        for count, match in enumerate(marked[:MOST_MARKED]):
            moved.append(Mention(match.start() - 2 * count, match.end() - 2 * count - 2, match[1], ()))
        plain = MARKED.sub(r"\1", question)
        found = [linked(plain, [(one.start, one.end)], kb, names) for one in moved]
        return plain, [one for one in found if one is not None][:MOST_NAMED]
    named = [_named(mention, kb) for mention in names.mentions(question) if _is_name(mention)]
    for people in _peoples(question, kb, names):
        named = _with_people(named, people)
    return question, named[:MOST_NAMED]


def linked(text: str, spans: Iterable[tuple[int, int]], kb: Explorable, names: Names) -> Named | None:
    """The likeliest link of a span that must be a name, or None if no link of any of the spans is likely enough."""
    best, found = LINKED, None
    for start, end in spans:
        links = names.spelled(text[start:end], k=LINKS)
        likely = link_probability(text[start:end], links)
        if likely >= (max(best, PLAIN) if text[start:end].islower() else best):
            best, found = likely, Mention(start, end, text[start:end], links)
    return None if found is None else replace(_named(found, kb), is_certain=True)


def close_names(text: str, names: Names) -> tuple[str, ...]:
    """The names that are most like another one in spelling."""
    return tuple(dict.fromkeys(link.alias for link in names.spelled(text, k=LINKS)))[:CLOSE]


@lru_cache(maxsize=1)
def _places(language: str = "en") -> dict[str, list[str]]:
    """Words for peoples, in small letters, with the names of the places they may be from."""
    places: dict[str, list[str]] = {}
    for line in files("clew.answering.reading").joinpath(language, "demonyms.txt").read_text("utf-8").splitlines():
        where, peoples = line.split(":")
        for people in peoples.split(","):
            places.setdefault(people.strip().lower(), []).extend(place.strip() for place in where.split(","))
    return places


def _peoples(question: str, kb: Explorable, names: Names) -> list[Named]:
    """Words for peoples whose places are in the base; in small letters only where the whole question is."""
    places, lowered = _places(), question.lower()
    words = sorted((people for people in places if people in lowered), key=len, reverse=True)
    if not words:
        return []
    found = []
    for match in re.finditer(rf"\b({'|'.join(map(re.escape, words))})s?\b", question, re.IGNORECASE):
        if match[0][0].isupper() or question.islower():
            known = [link for place in places[match[1].lower()] for link in names.link(place, k=LINKS)]
            exact = tuple(replace(link, how="fuzzy", score=PEOPLE) for link in known if link.how == "exact")
            if exact:
                found.append(_named(Mention(match.start(), match.end(), match[0], exact), kb))
    return found


def _with_people(named: list[Named], people: Named) -> list[Named]:
    """A word for a people may also be a name itself, as that of a language; a longer name stays what it is."""
    same = next((one for one in named if (one.start, one.end) == (people.start, people.end) and one.is_exact), None)
    if same is not None:
        kinds = {sense.type for sense in same.senses}
        other = tuple(sense for sense in people.senses if sense.type not in kinds)
        return [replace(one, senses=(*one.senses, *other)) if one is same else one for one in named]
    over = [one for one in named if one.start < people.end and people.start < one.end]
    if any(one.is_exact and one.end - one.start > people.end - people.start for one in over):
        return named
    return sorted([*(one for one in named if one not in over), people], key=lambda one: one.start)


def _is_name(mention: Mention) -> bool:
    is_alike = max((link.score for link in mention.links), default=0.0) >= ALIKE
    is_written_so = mention.text[:1].isupper() or mention.text[:1].isdecimal()
    if not mention.links or not (is_alike or is_written_so or _begins_few(mention)):
        return False
    if _is_other_name(mention):
        return False
    # "face" in a running text is no symbol such as FACE
    return not (mention.text.islower() and all(link.alias.isupper() for link in mention.links))


def _is_other_name(mention: Mention) -> bool:
    """Whether the nearest name differs too much; acronyms and parts of longer names are not compared by letters."""
    is_part = set(form_of(mention.text).split()) <= set(form_of(mention.links[0].alias).split())
    return not is_part and not mention.text.isupper() and link_probability(mention.text, mention.links) < DERIVED


def _begins_few(mention: Mention) -> bool:
    """Whether a few names begin with it: "richard iii" may stand for "Richard III of England"."""
    begins = re.compile(rf"{re.escape(mention.text)}\b", re.IGNORECASE)
    return len(mention.links) <= FEW and all(begins.match(link.alias) for link in mention.links)


def _named(mention: Mention, kb: Explorable) -> Named:
    links = _as_good(mention.links)
    by_type: dict[str, list[Link]] = {}
    for link, ref in zip(links, kb.refs([link.node for link in links]), strict=True):
        by_type.setdefault(ref.type, []).append(link)
    senses = tuple(Sense(kind, tuple(_as_meant(some))) for kind, some in by_type.items())
    return Named(mention.start, mention.end, mention.text, senses)


def _as_good(links: Sequence[Link]) -> Sequence[Link]:
    """Exact links where there are any, those spelled just so before the others."""
    exact = [link for link in links if link.how == "exact"]
    spelled = [link for link in exact if link.score == 1.0]
    return spelled or exact or links


def _as_meant(links: Sequence[Link]) -> Sequence[Link]:
    """All nodes that bear a name; of near names only the nearest, with all nodes that bear it."""
    if links[0].how == "exact":
        return links
    best = max(links, key=lambda link: link.score)
    return [link for link in links if form_of(link.alias) == form_of(best.alias)]
