"""Mentions: spans of a question with the nodes they may refer to, grouped by type.

Topics are the start nodes of a question: marked as [Name], passed separately, or linked by name. A mask in place of a
topic leaves only the words about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from rapidfuzz import fuzz

from clew.answering.reading import words_file
from clew.core.nouns import singular
from clew.core.types import NodeSet
from clew.store.graph.protocol import Explorable
from clew.store.index.linking import LINKED, link_probability
from clew.store.index.names import form_of
from clew.store.index.protocol import Link, Mention, Names
from clew.store.index.tokens import stem, stop_words

KEYED = re.compile(r"\b([^\W\d_]+) #?([\w-]*\d[\w-]*)")
"""A word and a key: "order 2", "customer C-104"."""
MARKED = re.compile(r"\[([^\[\]]+)\]")
"""A name in square brackets. It is always taken as a name."""
LINKS = 20
"""Number of similar names to look up for a span."""
ALIKE = 0.86
"""Minimum similarity of a span to a name of which it may be a misspelling."""
FEW = 3
"""Maximum number of names that may start with a span that is not spelled like a name."""
MOST_NAMED = 5
"""Maximum number of names read in a question. Each name multiplies the possible meanings."""
DERIVED = 0.3
"""Minimum probability of a link in running text, since a word may come from a name."""
PLAIN = 0.8
"""Minimum probability of a link of lower-case words, which may be ordinary words."""
CLOSE = 3
"""Maximum number of close names shown for an unknown name."""
MOST_MARKED = 20
"""Maximum number of brackets to read. Names in brackets count towards MOST_NAMED."""
PEOPLE = 0.95
"""Confidence that a demonym such as "Dutch" refers to its country."""


@dataclass(frozen=True)
class Sense:
    """The nodes of one type that a span may refer to."""

    type: str
    links: tuple[Link, ...]

    @property
    def nodes(self) -> NodeSet:
        """The nodes as a set."""
        return NodeSet.of([link.node for link in self.links])


@dataclass(frozen=True)
class NamedSpan:
    """A span of the question and its senses, the likeliest first."""

    start: int
    end: int
    text: str
    senses: tuple[Sense, ...]
    is_certain: bool = False
    """Whether the span must be a name, regardless of its spelling."""
    key: str | None = None
    """The key of the node, if the span contains it instead of a name."""

    @property
    def is_exact(self) -> bool:
        """Whether a node has exactly this name."""
        return self.senses[0].links[0].how == "exact"

    @property
    def is_doubtful(self) -> bool:
        """Whether the span may be an ordinary word: misspelt, or in lower case while the name has capitals."""
        link = self.senses[0].links[0]
        return not self.is_certain and (link.how != "exact" or self._is_plain_word(link))

    @property
    def likelihood(self) -> float:
        """Probability that the span refers to its first sense, by its spelling."""
        return link_probability(self.text, self.senses[0].links)

    def _is_plain_word(self, link: Link) -> bool:
        return self.text.islower() and " " not in self.text and not link.alias.islower()


def find_named(question: str, kb: Explorable, names: Names) -> tuple[str, list[NamedSpan]]:
    """Return the question without brackets, and its mentions: the names in brackets, or otherwise all names."""
    marked = list(MARKED.finditer(question))
    if marked:
        plain, removed = MARKED.sub(r"\1", question), enumerate(marked[:MOST_MARKED])
        spans = [(match.start() - 2 * before, match.end() - 2 * before - 2) for before, match in removed]
        found = [linked(plain, [span], kb, names) for span in spans]
        return plain, [one for one in found if one is not None][:MOST_NAMED]
    mentions = [mention for mention in names.mentions(question) if _is_name(mention)]
    named = [_with_types_beside(_named(mention, kb), mention, question, kb) for mention in mentions]
    named += [one for one in _keyed(question, kb) if not any(one.start < o.end and o.start < one.end for o in named)]
    named.sort(key=lambda one: one.start)
    for people in _peoples(question, kb, names):
        named = _with_people(named, people)
    return question, _joined(named, question)[:MOST_NAMED]


def _keyed(question: str, kb: Explorable) -> list[NamedSpan]:
    """Return things called by their type and key, which may not be a name: "person 9"."""
    known = kb.described
    if known is None:
        return []
    found = []
    for match in KEYED.finditer(question):
        words = [match[1].lower()]
        for type in (one.name for one in kb.schema.node_types if singular(one.label).lower().split()[-1:] == words):
            for first in known.refs(known.nodes(type).array[:1]):
                key = f"{first.key[: first.key.rfind('/') + 1]}{match[2]}"  # orders/2
                links = (Link(node, match[0], "exact", 1.0) for node in known.ids([key]) if known.type_of(node) == type)
                found += [replace(_named(Mention(*match.span(), match[0], (one,)), kb), key=key) for one in links]
    return found


def _joined(named: Sequence[NamedSpan], question: str) -> list[NamedSpan]:
    """Join neighbouring spans that refer to the same nodes: "Ada" and "Lovelace bus" for the Ada Lovelace Bus Line."""
    found: list[NamedSpan] = []
    for one in named:
        before = found[-1] if found else one
        is_next = before is not one and not question[before.end : one.start].strip()
        if is_next and set(before.senses[0].nodes) == set(one.senses[0].nodes):
            best = one if one.is_exact else before
            found[-1] = replace(best, start=before.start, end=one.end, text=question[before.start : one.end])
        else:
            found.append(one)
    return found


def linked(text: str, spans: Iterable[tuple[int, int]], kb: Explorable, names: Names) -> NamedSpan | None:
    """Return the likeliest link of a span that must be a name, or None if no span has a likely link."""
    best, found = LINKED, None
    for start, end in spans:
        name = text[start:end]
        links = names.spelled(name, k=LINKS)
        likely = link_probability(name, links)
        # In a question without capitals, whole words of a name may be that name: "films by hitchcock".
        is_part = text.islower() and bool(links) and {*form_of(name).split()} <= {*form_of(links[0].alias).split()}
        if likely >= (max(best, PLAIN) if name.islower() and not is_part else best):
            best, found = likely, Mention(start, end, name, links)
    return None if found is None else replace(_named(found, kb), is_certain=True)


def close_names(text: str, names: Names) -> tuple[str, ...]:
    """Return the names that are spelled most like a text."""
    return tuple(dict.fromkeys(link.alias for link in names.spelled(text, k=LINKS)))[:CLOSE]


@lru_cache(maxsize=1)
def _places() -> dict[str, list[str]]:
    """Return demonyms in lower case, with the names of the countries or regions they may belong to."""
    places: dict[str, list[str]] = {}
    for line in words_file("demonyms.txt").splitlines():
        where, peoples = line.split(":")
        for people in peoples.split(","):
            places.setdefault(people.strip().lower(), []).extend(place.strip() for place in where.split(","))
    return places


@lru_cache(maxsize=1)
def meant() -> dict[str, str]:
    """Return words in questions and tables that mean a value: "women" for female."""
    lines = words_file("values.txt").splitlines()
    pairs = [line.split(": ") for line in lines]
    return {word: value for value, words in pairs for word in words.split(", ")}


def _peoples(question: str, kb: Explorable, names: Names) -> list[NamedSpan]:
    """Return demonyms of places in the base, and words for people of a sex that is a node.

    Demonyms in lower case count only if the whole question is in lower case.
    """
    places, lowered = _places(), question.lower()
    words = sorted((people for people in places if people in lowered), key=len, reverse=True)
    sexes = [word for word in meant() if len(word) > 1 and word in lowered]
    if not words and not sexes:
        return []
    found = []
    for match in re.finditer(rf"\b({'|'.join(map(re.escape, [*words, *sexes]))})s?\b", question, re.IGNORECASE):
        word = match[1].lower()
        if word in sexes or match[0][0].isupper() or question.islower():
            known = [link for one in places.get(word, [meant().get(word, "")]) for link in names.link(one, k=LINKS)]
            exact = tuple(replace(link, how="fuzzy", score=PEOPLE) for link in known if link.how == "exact")
            if exact:
                found.append(_named(Mention(match.start(), match.end(), match[0], exact), kb))
    return found


def _with_people(named: list[NamedSpan], people: NamedSpan) -> list[NamedSpan]:
    """Add a demonym to the mentions.

    If the same span is also an exact name, such as a language, add senses to it. A longer exact name takes precedence.
    """
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
    # "face" in running text does not mean a symbol such as FACE
    return not (mention.text.islower() and all(link.alias.isupper() for link in mention.links))


def _is_other_name(mention: Mention) -> bool:
    """Return whether the nearest name differs too much. Accept acronyms, plurals and parts of longer names."""
    own, whole = ({stem(word) for word in form_of(name).split()} for name in (mention.text, mention.links[0].alias))
    return not own <= whole and not mention.text.isupper() and link_probability(mention.text, mention.links) < DERIVED


def _begins_few(mention: Mention) -> bool:
    """Return whether at most FEW names start with the text: "richard iii" may mean "Richard III of England"."""
    begins = re.compile(rf"{re.escape(mention.text)}\b", re.IGNORECASE)
    return len(mention.links) <= FEW and all(begins.match(link.alias) for link in mention.links)


def _named(mention: Mention, kb: Explorable) -> NamedSpan:
    senses = tuple(_senses(_as_good(mention.links), kb).values())
    return NamedSpan(mention.start, mention.end, mention.text, senses)


def _senses(links: Sequence[Link], kb: Explorable) -> dict[str, Sense]:
    """Return the senses of a name by type, in the order of the links."""
    by_type: dict[str, list[Link]] = {}
    for link, ref in zip(links, kb.refs([link.node for link in links]), strict=True):
        by_type.setdefault(ref.type, []).append(link)
    return {kind: Sense(kind, tuple(_as_meant(some))) for kind, some in by_type.items()}


def _with_types_beside(one: NamedSpan, mention: Mention, question: str, kb: Explorable) -> NamedSpan:
    """Put the senses first whose type is said beside the name: "Ubud district".

    A type before a word such as "of" comes second, since "the author of Emma" is probably no author called Emma. Other
    capitals count as the same spelling here: "the province of Bali" may be BALI.
    """
    exact = _senses([link for link in mention.links if link.how == "exact"], kb)
    labels = {kind: re.escape(singular(kb.schema.node_type(kind).label).lower()) for kind in exact}
    before, after = question[: one.start].lower(), question[one.end :].lower()
    direct = [
        kind
        for kind, label in labels.items()
        if re.search(rf"\b{label}\s+$", before) or re.match(rf"\s+{label}\b", after)
    ]
    near = {kind: re.search(rf"\b{label}\s+(\w+)\s+$", before) for kind, label in labels.items()}
    related = [kind for kind, found in near.items() if found and found[1] in stop_words()]
    own = {sense.type: sense for sense in one.senses} | {kind: exact[kind] for kind in (*direct, *related)}
    order = dict.fromkeys((*direct, one.senses[0].type, *related, *own))
    return replace(one, senses=tuple(own[kind] for kind in order))


def _as_good(links: Sequence[Link]) -> Sequence[Link]:
    """Return the links with identical spelling, or else the exact links, or else all links."""
    exact = [link for link in links if link.how == "exact"]
    spelled = [link for link in exact if link.score == 1.0]
    return spelled or exact or links


def _as_meant(links: Sequence[Link]) -> Sequence[Link]:
    """Return all exact links. Of similar names, return only the most similar name, with all nodes that have it."""
    if links[0].how == "exact":
        return links
    best = max(links, key=lambda link: link.score)
    return [link for link in links if form_of(link.alias) == form_of(best.alias)]


SURE = 0.9
"""Minimum score of a link as a share of the best link's score."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A name in the question and all nodes it may refer to."""

    text: str
    nodes: NodeSet
    how: str
    """Kind of match: "exact", "fuzzy" or "vector"."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The question without its marks, and its topics in reading order."""

    question: str
    topics: tuple[Topic, ...]


def find_topics(question: str, names: Names, given: Sequence[str] = ()) -> Topics:
    """Return the given topics, or else the marked topics, or else all names that occur in the question."""
    plain = MARKED.sub(r"\1", question)
    marked = [*given] or MARKED.findall(question)
    if marked:
        linked = [(text, names.link(text, k=50)) for text in dict.fromkeys(marked)]
    else:
        linked = [(mention.text, mention.links) for mention in names.mentions(plain)]
    return Topics(plain, tuple(_topic(text, links) for text, links in linked if links))


def _topic(text: str, links: Sequence[Link]) -> Topic:
    """Link a name to its best node, or to all nodes with equally good exact links."""
    best = max(links, key=lambda link: link.score)
    alike = [link.node for link in links if link.how == best.how and link.score >= best.score * SURE]
    return Topic(text, NodeSet.of(alike if best.how == "exact" else alike[:1]), best.how)


MASK = "[]"
ENOUGH = 0.6
"""Minimum similarity of a span and a name to mask the span."""
SURELY = 0.7
"""Minimum similarity if the name is also marked in the question. A marked name needs no second mention."""
_WORD = re.compile(r"\w+")


def mask_topic(question: str, names: Sequence[str]) -> str:
    """Replace the topic of a question by `[]`, and remove the marks of other topics.

    Marks at the very end may have been added to a question that names its topics in other words, such as “where did
    Crabtree go to college [Michael Crabtree]”. Then those words are masked.
    """
    marks = list(MARKED.finditer(question))
    if not marks:
        return _masked(question, names, ENOUGH)
    wanted = {name.casefold() for name in names}
    own = next((mark for mark in marks if mark[1].casefold() in wanted), marks[0])
    added = _added(question, marks)
    text = question[: min((mark.start() for mark in added), default=len(question))].rstrip()
    if own in added or own.end() == len(text):
        before = _plain(text if own in added else text[: own.start()]).rstrip()
        masked = _masked(before, [own[1], *names], SURELY)
        return masked if MASK in masked else f"{before} {MASK}".strip()
    return (_plain(text[: own.start()]) + MASK + _plain(text[own.end() :])).strip()


def mask_topics(question: str, names: Sequence[tuple[str, str]]) -> str:
    """Replace every mention of each name by its replacement, and remove all marks."""
    for name, instead in names:
        question = mask_topic(question, [name]).replace(MASK, instead)
        question = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", instead, question, flags=re.IGNORECASE)
    return _plain(question)


@cache
def _leading_words() -> frozenset[str]:
    """Return words that lead up to a name. A name after one of them is part of the question."""
    return frozenset(words_file("before_names.txt").split())


def _plain(text: str) -> str:
    return MARKED.sub(r"\1", text)


def _added(question: str, marks: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Return the marks at the end that no word leads up to: not “by [Ang Lee]”, but “now [Peru]”."""
    added: list[re.Match[str]] = []
    end = len(question.rstrip())
    for mark in reversed(marks):
        before = question[: mark.start()].split()
        if mark.end() != end or not before or (not added and before[-1].lower() in _leading_words()):
            break
        added.append(mark)
        end = len(question[: mark.start()].rstrip())
    return added


def _masked(question: str, names: Sequence[str], enough: float) -> str:
    words = [(found.start(), found.end(), found[0].lower()) for found in _WORD.finditer(question)]
    best, place = 0.0, (0, 0)
    for name in names:
        wanted = _WORD.findall(name.lower())
        for start in range(len(words)):
            for end in range(start + 1, min(start + len(wanted) + 2, len(words)) + 1):
                span = [word for *_, word in words[start:end]]
                if any(word in stop_words() and word not in wanted for word in (span[0], span[-1])):
                    continue
                score = _likeness(span, wanted)
                if score > best + 1e-9:
                    best, place = score, (words[start][0], words[end - 1][1])
    return question if best < enough else question[: place[0]] + MASK + question[place[1] :]


def _likeness(span: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the similarity of a span to a name, 0..1, by letters in any order.

    A part of the name, or its short form, also counts: “Ben Franklin”.
    """
    telling = [[word for word in words if word not in stop_words()] for words in (span, wanted)]
    if telling[1] and not telling[0]:
        return 0.0  # “the” is not the film “The Mask”
    letters = fuzz.token_sort_ratio(" ".join(span), " ".join(wanted))
    if telling[1]:
        letters = min(letters, fuzz.token_sort_ratio(" ".join(telling[0]), " ".join(telling[1])) + 10)
    known = all(any(_short_form(word, other) for other in wanted) for word in span)
    part = 0.9 * (0.6 + 0.4 * min(1.0, len(span) / max(len(wanted), 1))) if known else 0.0
    return max(letters / 100, part)


def _short_form(word: str, name: str) -> bool:
    short, long = sorted((word, name), key=len)
    return word == name or (len(short) > 2 and long.startswith(short))
