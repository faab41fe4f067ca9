"""Names and words of a base in PostgreSQL, read with few queries for all words of a question."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet
from clew.store.index.lexical import LexicalIndex, PostingList
from clew.store.index.names import MOST_LONGER, Entries, NameTable
from clew.store.index.strings import NameMatch, SortedStrings, TrigramIndex, find_matches, other_numbers
from clew.store.index.tokens import Token
from clew.store.postgres.connection import Database
from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

MOST_KEPT = 20_000
"""Maximum number of cached forms and of cached words."""
FEW = 20
"""Number of forms above which only their nodes are read."""
FORM = "SELECT id, form, nodes, kinds, aliases FROM forms"
HIGHEST = "\U0010ffff"
"""Upper limit for strings with a prefix: they sort before the prefix and this character."""


@dataclass(frozen=True, slots=True)
class _Form:
    place: int
    text: str
    entries: Entries


@dataclass(frozen=True, slots=True)
class _Word:
    """Number of forms with a word, and the forms unless they are too many."""

    count: int
    forms: IntArray | None


class PostgresNameTable(NameTable):
    """Name table with the same results as on disk, by queries for many forms at once, with a cache."""

    def __init__(self, kb: PostgresKnowledgeBase) -> None:
        self.database: Database = kb.database
        self._count: int = self.database.value("SELECT count(*) FROM forms")
        self._forms: dict[int, _Form] = {}
        self._known_words: dict[str, _Word | None] = {}

    def __len__(self) -> int:
        return self._count

    def find(self, form: str) -> int | None:
        """Return the index of a form, or None if no name has it."""
        return next((found.place for found in self._with_texts([form])), None)

    def matches(self, tokens: Sequence[Token]) -> list[NameMatch]:
        """Return every run of tokens that is a form. Only runs of known words are queried."""
        others = {token.text: other_numbers(token.text) for token in tokens}
        words = self._words_of({word for token in others for word in (token, *others[token])})
        wanted: dict[str, None] = {}
        for first in range(len(tokens)):
            prefix = ""
            for token in tokens[first:]:
                wanted.update({prefix + word: None for word in (token.text, *others[token.text]) if words[word]})
                if words[token.text] is None:
                    break
                prefix += token.text + " "
        found = sorted(self._with_texts(wanted), key=lambda form: form.place)
        here = SortedStrings.of([form.text for form in found])
        return [replace(match, form=found[match.form].place) for match in find_matches(tokens, here)]

    def texts(self, places: IntArray) -> list[str]:
        """Return forms by index."""
        if len(places) > MOST_KEPT // 2:
            told = dict(self.database.rows("SELECT id, form FROM forms WHERE id = ANY(%s)", places))
            return [told[place] for place in places.tolist()]
        return [form.text for form in self._at(places)]

    def beginning(self, begin: str, most: int) -> list[tuple[int, str]]:
        """Return the first forms with a prefix, with their indexes."""
        query = "SELECT id, form FROM forms WHERE left(form, 500) >= %s AND left(form, 500) < %s ORDER BY id LIMIT %s"
        return [(place, form) for place, form in self.database.rows(query, begin, begin + HIGHEST, most)]

    def entries(self, form: int) -> Entries:
        """Return the entries of a form."""
        return self._at([form])[0].entries

    def bearers(self, forms: IntArray) -> tuple[NDArray[np.int64], IntArray]:
        """Return every node of the forms, with the position of its form in `forms`."""
        if len(forms) > FEW:
            query = (
                "SELECT array_agg(g.place::int), array_agg(n.node), array_agg(n.nth::int) FROM unnest(%s::int[]) "
                "WITH ORDINALITY AS g (id, place) JOIN forms USING (id), unnest(nodes) WITH ORDINALITY AS n (node, nth)"
            )
            places, bearing, nth = self.database.rows(query, np.asarray(forms, dtype=np.int32), planned=True)[0]
            order = np.lexsort((nth, places))
            return places[order].astype(np.int64) - 1, bearing[order]
        nodes = [form.entries.nodes for form in self._at(forms)]
        owners = np.repeat(np.arange(len(nodes)), [len(own) for own in nodes])
        return owners, np.concatenate([np.empty(0, dtype=np.int32), *nodes])

    def sizes(self, forms: IntArray) -> NDArray[np.int64]:
        """Return the length of each form in bytes."""
        return np.array([len(form.text.encode()) for form in self._at(forms)], dtype=np.int64)

    def has_word(self, word: str) -> bool:
        """Return whether any name contains a word."""
        return self._words_of([word])[word] is not None

    def containing(self, words: Sequence[str], most: int) -> IntArray:
        """Return the forms with all the words. Empty if even the rarest word is in more than `most` forms."""
        told = self._words_of(words)
        known = [word for word in told.values() if word is not None]
        rarest = min(known, key=lambda word: word.count, default=None)
        if rarest is None or rarest.forms is None or len(known) < len(told) or rarest.count > most:
            return np.empty(0, dtype=np.int32)
        found = rarest.forms
        for word in known:
            if word.forms is not None and word is not rarest:
                found = found[np.isin(found, word.forms)]
        common = {text for text, word in told.items() if word is not None and word.forms is None}
        if common:
            having = [form.place for form in self._at(found) if common <= set(form.text.split(" "))]
            found = np.array(having, dtype=np.int32)
        return found

    # Inside

    def _at(self, places: Iterable[int]) -> list[_Form]:
        wanted = [int(place) for place in places]
        kept = self._forms
        missing = [place for place in wanted if place not in kept]
        if missing:
            rows = self.database.rows(f"{FORM} WHERE id = ANY(%s)", np.array(missing, dtype=np.int32))
            kept = {**{place: kept[place] for place in wanted if place in kept}, **self._taken_in(rows)}
        return [kept[place] for place in wanted]

    def _with_texts(self, texts: Iterable[str]) -> list[_Form]:
        wanted = [text for text in texts if "\0" not in text]
        if not wanted:
            return []
        query = f"{FORM} WHERE left(form, 500) = ANY(%s) AND form = ANY(%s)"
        return list(self._taken_in(self.database.rows(query, [text[:500] for text in wanted], wanted)).values())

    def _taken_in(self, rows: Iterable[tuple[int, str, IntArray, bytes, list[str]]]) -> dict[int, _Form]:
        found = {
            place: _Form(place, text, Entries(nodes, np.frombuffer(kinds, dtype=np.uint8), aliases))
            for place, text, nodes, kinds, aliases in rows
        }
        if len(self._forms) + len(found) > MOST_KEPT:
            self._forms = {}
        self._forms.update(found)
        return found

    def _words_of(self, words: Collection[str]) -> dict[str, _Word | None]:
        """Return the entry of each word, or None for words in no name."""
        kept = self._known_words
        missing = [word for word in words if word not in kept and "\0" not in word]
        if missing:
            query = (
                "SELECT word, count, CASE WHEN count <= %s THEN forms END FROM words "
                "WHERE left(word, 500) = ANY(%s) AND word = ANY(%s)"
            )
            found: dict[str, _Word | None] = dict.fromkeys(missing)
            for word, count, forms in self.database.rows(query, MOST_LONGER, [word[:500] for word in missing], missing):
                found[word] = _Word(count, forms)
            if len(kept) + len(found) > MOST_KEPT:
                self._known_words = {}
            kept = {**{word: kept[word] for word in words if word in kept}, **found}
            self._known_words.update(found)
        return {word: kept.get(word) for word in words}


class PostgresTrigrams(TrigramIndex):
    """Trigram index with the same results as on disk. Long lists are counted without reading them."""

    def __init__(self, kb: PostgresKnowledgeBase) -> None:
        self.database = kb.database
        self.places = kb.array("names by length", "<i4")
        self.lengths = kb.array("shorter names", "<i8")

    def sizes(self, codes: NDArray[np.int64], window: range) -> NDArray[np.int64]:
        """Count the forms of the given lengths with each trigram."""
        asked = "WHERE code = ANY(%s) AND length BETWEEN %s AND %s GROUP BY code"
        query = f"SELECT code, sum(count)::int8 FROM trigrams {asked}"
        told = dict(self.database.rows(query, codes.astype(np.int32), window.start, window.stop - 1))
        return np.array([told.get(code, 0) for code in codes.tolist()], dtype=np.int64)

    def having(self, codes: NDArray[np.int64], window: range) -> list[IntArray]:
        """Return the forms of the given lengths with each trigram, as ranks by length."""
        query = (
            "SELECT code, ranks FROM trigrams WHERE code = ANY(%s) AND length BETWEEN %s AND %s ORDER BY code, length"
        )
        lists: dict[int, list[IntArray]] = {code: [np.empty(0, dtype=np.int32)] for code in codes.tolist()}
        for code, ranks in self.database.rows(query, codes.astype(np.int32), window.start, window.stop - 1):
            lists[code].append(ranks)
        return [np.concatenate(lists[code]) for code in codes.tolist()]


MOST_BYTES = 64_000_000
"""Maximum size of cached postings, in bytes."""
MOST_COUNTED = 100_000
"""Maximum number of terms with cached counts. The cache is emptied when it is full."""


class PostgresLexical(LexicalIndex):
    """BM25 with the same ranking as on disk. One query reads the postings of all terms of a question.

    PostgreSQL's full text search has no BM25 and uses other stems. So the precomputed weights are stored, and scores
    are identical.
    """

    def __init__(self, kb: PostgresKnowledgeBase) -> None:
        self.database, self.language, self._size = kb.database, kb.language, int(kb.array("documents", "<i8")[0])
        self._lists: dict[str, PostingList | None] = {}
        self._bytes = 0
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return self._size

    def frequency(self, term: str) -> int:
        """Return the number of documents with a term."""
        known = self._counts.get(term)
        if known is None:
            row = None if "\0" in term else self.database.one("SELECT count FROM postings WHERE term = %s", term)
            known = int(row[0]) if row else 0
            if len(self._counts) >= MOST_COUNTED:
                self._counts = {}
            self._counts[term] = known
        return known

    def having(self, term: str) -> NodeSet:
        """Return the nodes whose document contains a term."""
        found = self._read([term])[term]
        return NodeSet(np.empty(0, dtype=np.int32) if found is None else found.documents)

    def _found(self, weights: Mapping[str, float]) -> list[PostingList]:
        lists = self._read(weights)
        return [list_.times(factor) for term, factor in weights.items() if (list_ := lists[term]) is not None]

    def _read(self, terms: Iterable[str]) -> dict[str, PostingList | None]:
        kept = self._lists
        told = {term: kept.get(term) for term in terms}
        missing = [term for term in told if term not in kept and "\0" not in term]
        if missing:
            query = "SELECT term, documents, weights FROM postings WHERE term = ANY(%s)"
            size = 0
            for term, documents, weights in self.database.rows(query, missing):
                told[term] = self._weighted(np.frombuffer(documents, "<i4"), np.frombuffer(weights, "<f4"))
                size += len(documents) + len(weights)
            if self._bytes + size > MOST_BYTES:
                self._lists, self._bytes = {}, 0
            self._lists.update({term: told[term] for term in missing})
            self._bytes += size
        return told
