"""Find the nodes of a name: exact, then with typos or reordered words, then by meaning.

The name table has all aliases of all nodes, sorted by normal form. Each form has its nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import punctuation
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Prefix

from clew.core.schema import Schema, words_of
from clew.core.types import IntArray, NodeSet, distinct, places_in
from clew.store.graph.adjacency import map_array, positions
from clew.store.graph.tables import STRING
from clew.store.index.protocol import Index, Link, Mention
from clew.store.index.strings import (
    NameMatch,
    SortedStrings,
    StringTable,
    TrigramIndex,
    find_matches,
    is_common,
    is_number,
    is_telling,
    longest,
    numbers_beside,
    runs_around,
    sorted_codes,
    telling_runs,
)
from clew.store.index.tokens import ENGLISH, Token, language_of, normalise, normalise_column, stop_words, tokenise

POOL = 50
"""Number of similar forms that are compared letter by letter."""
MOST = 0.99
"""Maximum score of a form that is not identical."""


def similar(
    wanted: Sequence[str], places: IntArray, given: Sequence[str], least: float
) -> list[list[tuple[int, float]]]:
    """Return for each wanted form the given forms with a minimum similarity, best first, except itself."""
    if not len(places):
        return [[] for _ in wanted]
    straight = process.cdist(wanted, given, scorer=fuzz.ratio)
    in_any_order = process.cdist(wanted, given, scorer=fuzz.token_sort_ratio) - 1
    scores = np.minimum(np.maximum(straight, in_any_order) / 100, MOST)
    found = []
    for row, form in zip(scores, wanted, strict=True):
        order = np.lexsort((places, -row)).tolist()
        kept = [place for place in order if row[place] >= least and given[place] != form]
        found.append([(int(places[place]), float(row[place])) for place in kept])
    return found


def is_derived(word: str, other: str) -> bool:
    """Return whether two words differ only by common endings, as "invent" and "inventor".

    Such words are not misspelt.
    """
    return _root(word) == _root(other)


def _root(word: str) -> str:
    for ending in ("ing", "ers", "ors", "er", "or", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending).removesuffix("e")
    return word


NAME, ALIAS, SHORTENED = 0, 1, 2
"""Kinds of names: a node's name, an alias, or either without the brackets at its end."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The nodes of a form, with the written alias and the kind of name of each."""

    nodes: IntArray
    kinds: NDArray[np.uint8]
    aliases: Sequence[str]

    def taken(self, places: NDArray[np.intp]) -> Entries:
        """Select entries by index."""
        return Entries(self.nodes[places], self.kinds[places], [self.aliases[place] for place in places.tolist()])


@dataclass(eq=False, repr=False)
class NameTable:
    """Entries in the order of their forms: node, written alias and kind of name.

    It also maps every word to the forms that contain it.
    """

    forms: SortedStrings
    words: SortedStrings
    aliases: StringTable
    offsets: NDArray[np.int64]
    nodes: IntArray
    kinds: NDArray[np.uint8]
    word_offsets: NDArray[np.int64]
    word_forms: IntArray

    @staticmethod
    def write(folder: Path, aliases: pa.Array, nodes: IntArray, kinds: NDArray[np.uint8]) -> None:
        """Index aliases with their parallel nodes and kinds."""
        folder.mkdir(parents=True, exist_ok=True)
        aliases, forms, nodes, kinds = _with_forms(aliases.cast(STRING), nodes, kinds)
        distinct, codes = sorted_codes(forms)
        order = np.lexsort((nodes, kinds, codes))
        # Each form of a node occurs once, preferably as its name.
        by_node = np.lexsort((kinds, nodes, codes))
        repeated = np.zeros(len(codes), dtype=np.bool_)
        repeated[by_node[1:]] = (codes[by_node[1:]] == codes[by_node[:-1]]) & (
            nodes[by_node[1:]] == nodes[by_node[:-1]]
        )
        order = order[~repeated[order]]
        SortedStrings.write(folder, "forms", distinct)
        StringTable.write(folder, "aliases", aliases.take(order))
        np.save(folder / "offsets.npy", codes[order].searchsorted(np.arange(len(distinct) + 1)).astype(np.int64))
        np.save(folder / "nodes.npy", nodes[order].astype(np.int32))
        np.save(folder / "kinds.npy", kinds[order].astype(np.uint8))
        _write_words(folder, distinct)
        TrigramIndex.write(folder, distinct)

    @classmethod
    def open(cls, folder: Path) -> NameTable:
        """Map a table."""
        stored = ("offsets", "nodes", "kinds", "word_offsets", "word_forms")
        arrays = (map_array(folder / f"{name}.npy") for name in stored)
        forms, words = SortedStrings.open(folder, "forms"), SortedStrings.open(folder, "words")
        return cls(forms, words, StringTable.open(folder, "aliases"), *arrays)

    def __len__(self) -> int:
        return len(self.forms)

    def find(self, form: str) -> int | None:
        """Return the index of a form, or None if no name has it."""
        return self.forms.find(form.encode())

    def matches(self, tokens: Sequence[Token]) -> list[NameMatch]:
        """Return every run of tokens that is a form."""
        return find_matches(tokens, self.forms)

    def texts(self, places: IntArray) -> list[str]:
        """Return forms by index."""
        return [self.forms[place].decode() for place in places.tolist()]

    def beginning(self, begin: str, most: int) -> list[tuple[int, str]]:
        """Return the first forms with a prefix, with their indexes."""
        found, wanted = [], begin.encode()
        first = self.forms.place(wanted)
        for place in range(first, min(len(self.forms), first + most)):
            form = self.forms[place]
            if not form.startswith(wanted):
                break
            found.append((place, form.decode()))
        return found

    def entries(self, form: int) -> Entries:
        """Return the entries of a form."""
        first, last = int(self.offsets[form]), int(self.offsets[form + 1])
        aliases = [self.aliases[entry].decode() for entry in range(first, last)]
        return Entries(self.nodes[first:last], self.kinds[first:last], aliases)

    def bearers(self, forms: IntArray) -> tuple[NDArray[np.int64], IntArray]:
        """Return every node of the forms, with the position of its form in `forms`."""
        entries, amounts = positions(self.offsets[forms], self.offsets[forms + 1])
        return np.repeat(np.arange(len(forms)), amounts), self.nodes[entries]

    def sizes(self, forms: IntArray) -> NDArray[np.int64]:
        """Return the length of each form in bytes."""
        return self.forms.offsets[forms + 1] - self.forms.offsets[forms]

    def has_word(self, word: str) -> bool:
        """Return whether any name contains a word."""
        return self.words.find(word.encode()) is not None

    def containing(self, words: Sequence[str], most: int) -> IntArray:
        """Return the forms with all the words. Empty if even the rarest word is in more than `most` forms."""
        places = [self.words.find(word.encode()) for word in words]
        known = [place for place in places if place is not None]
        if not known or len(known) < len(places):
            return self.word_forms[0:0]
        lists = [self.word_forms[self.word_offsets[place] : self.word_offsets[place + 1]] for place in known]
        rarest, *others = sorted(lists, key=len)
        if len(rarest) > most:
            return self.word_forms[0:0]
        for other in others:
            rarest = rarest[places_in(other, rarest)[1]]
        return rarest


def _write_words(folder: Path, forms: pa.Array) -> None:
    lists = pc.split_pattern(forms, " ")
    distinct, codes = sorted_codes(pc.list_flatten(lists))
    SortedStrings.write(folder, "words", distinct)
    owners = np.repeat(np.arange(len(forms)), pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    pairs = codes.astype(np.int64) * max(len(forms), 1) + owners
    pairs.sort()
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # a word may occur twice in a name, and this is faster than np.unique
    words, having = np.divmod(pairs, max(len(forms), 1))
    np.save(folder / "word_offsets.npy", words.searchsorted(np.arange(len(distinct) + 1)).astype(np.int64))
    np.save(folder / "word_forms.npy", having.astype(np.int32))


def form_of(text: str) -> str:
    """Return the normal form of a name. Names without letters or digits are only lower-cased."""
    return normalise(text) or " ".join(text.lower().split())


def _with_forms(
    aliases: pa.Array, nodes: IntArray, kinds: NDArray[np.uint8]
) -> tuple[pa.Array, pa.Array, IntArray, NDArray[np.uint8]]:
    """Add shortened names, and compute the form of every alias. Drop aliases without a form."""
    bracketed = np.flatnonzero(
        pc.match_substring_regex(aliases, r"[^\s(].*\([^()]*\)\s*$").to_numpy(zero_copy_only=False)
    )
    short = pc.replace_substring_regex(aliases.take(bracketed), r"\s*\([^()]*\)\s*$", "")
    forms = pa.chunked_array([*normalise_column(aliases).chunks, *normalise_column(short).chunks], STRING)
    forms = forms.combine_chunks() if forms.num_chunks else pa.array([], STRING)
    plain = pa.concat_arrays([aliases, short])
    whole = pa.concat_arrays([aliases, aliases.take(bracketed)])
    empty = pc.equal(forms, "")
    if pc.any(empty, min_count=0).as_py():
        signs = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(plain.filter(empty)), r"\s+", " "))
        forms = pc.replace_with_mask(forms, empty, signs)
    nodes = np.concatenate((nodes, nodes[bracketed]))
    kinds = np.concatenate((kinds, np.full(len(bracketed), SHORTENED, dtype=np.uint8)))
    kept = np.flatnonzero(pc.not_equal(forms, "").to_numpy(zero_copy_only=False))
    return whole.take(kept), forms.take(kept), nodes[kept], kinds[kept]


SHORTEST_FUZZY = 4
"""Minimum length of a name for fuzzy matching."""
MOST_SWAPPED = 8
"""Maximum number of characters of a name to look up with swapped letters. Longer names share trigrams with it."""
SIMILAR = 0.72
"""Minimum similarity of two spellings of a name."""
SURE = 0.9
"""Similarity from which no search by meaning is needed."""
SIMILAR_IN_TEXT = 0.84
"""Minimum similarity in running text. It is higher, since a word need not be a name at all."""
MOST_LONGER = 1000
"""Maximum number of names with a word. A more frequent word does not refer to any of them."""
MOST_IN_TEXT = 20
"""Maximum number of nodes per mention."""
MOST_SHORTENED = 50
"""Maximum number of names with a single word in running text. A more frequent word does not refer to any of them."""
SHORTEST_ODD = 5
"""Minimum length of a misspelt word in text: IATA is not a misspelt ATA."""
ROOT = 4
"""Minimum number of common letters of derived words."""
SAME_ROOT = 0.6
"""Minimum share of common letters of derived words."""
DERIVED = 0.87
"""Score of a name that a word is derived from."""
MOST_RARE = 3
"""Maximum number of names with a lower-case word that occurs next to other names."""
ACRONYM = re.compile(r"(?<![\w-])[A-Z][A-Z&]{1,5}(?![\w-])")
FEWEST_INITIALS, MOST_FORMS = 3, 300_000
"""Minimum number of words of a name with an acronym, and maximum number of forms for which acronyms are searched."""
MOST_ODD = 4
"""Maximum number of unknown words of a text that are tried as misspelt names."""


@dataclass(eq=False, repr=False)
class NameIndex:
    """Index of all aliases of a base, with lookups in milliseconds among millions."""

    table: NameTable
    trigrams: TrigramIndex
    types: IntArray
    """The type code of every node."""
    schema: Schema
    vectors: Callable[[], Index] | None = field(default=None, kw_only=True)
    """Opens the index that is searched by meaning if no spelling matches, since names work without the embedder."""
    name_of: Callable[[int], str] = field(default=str, kw_only=True)
    prominence: Callable[[IntArray], NDArray[np.integer]] = field(default=np.zeros_like, kw_only=True)
    """Among nodes of one name, nodes with more prominence come first."""
    frequency: Callable[[str], int] = field(default=lambda _: 0, kw_only=True)
    """Counts the texts of the base with a word."""
    language: str = field(default=ENGLISH, kw_only=True)
    """Language of the texts, since words of another language may resemble names by chance."""

    def __post_init__(self) -> None:
        self._ignored = schema_words(self.schema)

    @staticmethod
    def write(folder: Path, aliases: pa.Array, nodes: IntArray, is_name: NDArray[np.bool_] | None = None) -> None:
        """Index aliases with their nodes. `is_name` marks the nodes' names, None means all."""
        marks = np.ones(len(nodes), dtype=np.bool_) if is_name is None else is_name
        NameTable.write(folder, aliases, nodes, np.where(marks, NAME, ALIAS).astype(np.uint8))

    @classmethod
    def open(cls, folder: Path, types: IntArray, schema: Schema, *, name_of: Callable[[int], str] = str) -> NameIndex:
        """Map an index without search by meaning."""
        return cls(NameTable.open(folder), TrigramIndex.open(folder), types, schema, name_of=name_of)

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return the possible nodes of a name: exact, then similar spelling, then similar meaning if these are poor."""
        links = self.spelled(text, type=type, k=k)
        if len(links) < k and self.vectors is not None and (not links or links[0].score < SURE):
            links += self._by_meaning(text, self._code(type), k, {link.node for link in links})
        return links[:k]

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return links to nodes with the same or similar spelling."""
        form, code = form_of(text), self._code(type)
        place = self.table.find(form)
        links = [] if place is None else self._exact(place, text, code)
        if len(links) < k:
            links += self._like(form, code, k, {link.node for link in links})
        return tuple(links[:k])

    def _code(self, type: str | None) -> int | None:
        return None if type is None else self.schema.type_code[self.schema.node_type(type).name]

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:
        """Return the names in a text, ignoring case: longest matches without overlaps, in reading order."""
        tokens = tokenise(text)
        matches = self.table.matches(tokens)
        meant = [match for match in matches if self._is_meant(match, tokens, text)]
        found = [self._mention(match, tokens, text) for match in longest(meant, tokens)]
        spoken = language_of(text, [(one.start, one.end) for one in found], self.language)
        if spoken != self.language:
            found = [one for one in found if normalise(one.text) not in stop_words(spoken)]
            fuzzy = fuzzy and not found
        found = [self._numbered(mention, tokens, text) for mention in found]
        if fuzzy:
            found += self._misspelt(text, tokens, found)
            # "Romney" may refer to "Mitt Romney", and so may "romney" if there are no other names
            found += self._shortened(text, tokens, found)
            found += self._derived(text, tokens, found)
            found += self._acronyms(text, found)
        if not found:  # maybe a small number is a name: "Who directed 9?"
            found = [self._mention(match, tokens, text) for match in matches if is_number(match, tokens)]
        return sorted(found, key=lambda mention: mention.start)

    def has_word(self, word: str) -> bool:
        """Return whether a name, a value or a text of the base contains a word."""
        return self.table.has_word(word) or self.frequency(word) > 0

    # Names

    def _exact(self, form: int, text: str, code: int | None) -> list[Link]:
        entries = self._entries(form, code)
        full = np.flatnonzero(entries.kinds != SHORTENED)
        entries = entries.taken(full) if len(full) else entries  # brackets distinguish nodes of the same name
        scores = [self._exactness(*one, text) for one in zip(entries.kinds, entries.aliases, strict=True)]
        return self._ordered(entries, "exact", scores)

    def _exactness(self, kind: int, alias: str, text: str) -> float:
        if kind == SHORTENED:
            return 0.9
        return 1.0 if alias == text else 0.99 if alias.casefold() == text.casefold() else 0.98

    def _like(self, form: str, code: int | None, k: int, known: set[int]) -> list[Link]:
        """Return names with similar spelling, and longer names with all the words, best first."""
        links: dict[int, Link] = {}
        for place, score in sorted(self._like_forms(form, code), key=lambda pair: (-pair[1], pair[0])):
            for link in self._all_of(place, score, code):
                if link.node not in known:
                    links.setdefault(link.node, link)
            if len(links) >= k:
                break
        return list(links.values())

    def _like_forms(self, form: str, code: int | None) -> list[tuple[int, float]]:
        if len(form) < SHORTEST_FUZZY:
            return []
        keep = None if code is None else (lambda forms: self._have_type(forms, code))
        places = np.append(self.trigrams.nearest(form, POOL, keep=keep), self._swapped(form, code))
        (near,) = similar([form], places, self.table.texts(places), SIMILAR)
        return list({**dict(self._longer(form.split(), code)), **dict(near)}.items())

    def _swapped(self, form: str, code: int | None) -> IntArray:
        """Return the names with two neighbouring letters swapped. Short ones share no trigram: "chnia" for China."""
        places = range(len(form) - 1 if len(form) <= MOST_SWAPPED else 0)
        swapped = (form[:at] + form[at + 1] + form[at] + form[at + 2 :] for at in places)
        found = np.array([place for one in swapped if (place := self.table.find(one)) is not None], dtype=np.int32)
        return found if code is None else found[self._have_type(found, code)]

    def _longer(self, words: Sequence[str], code: int | None) -> list[tuple[int, float]]:
        """Return names with all the words and more. The score rises with coverage and prominence.

        A name that contains the shortest one, of another type, is left out: rows may be named after what they connect.
        """
        forms = self.table.containing(words, MOST_LONGER)
        if code is not None and len(forms):
            forms = forms[self._have_type(forms, code)]
        if not len(forms):
            return []
        covered = sum(len(word.encode()) + 1 for word in words) - 1
        lengths = self.table.sizes(forms)
        forms, lengths = forms[lengths >= covered], lengths[lengths >= covered]
        owners, nodes = self.table.bearers(forms)
        first = nodes[owners.searchsorted(np.arange(len(forms)))]
        weight = np.log1p(self.prominence(first).astype(np.float64))
        scores = SIMILAR + 0.1 * covered / lengths + 0.08 * weight / max(float(weight.max(initial=0)), 1.0)
        texts, kinds = self.table.texts(forms), self.types[first].tolist()
        shortest, own = min(zip(texts, kinds, strict=True), key=lambda one: len(one[0]), default=("", 0))
        rows = zip(forms.tolist(), scores.tolist(), texts, kinds, strict=True)
        return [(form, score) for form, score, text, kind in rows if kind == own or f" {shortest} " not in f" {text} "]

    def _by_meaning(self, text: str, code: int | None, k: int, known: set[int]) -> tuple[Link, ...]:
        assert self.vectors is not None
        among = None if code is None else NodeSet(np.flatnonzero(self.types == code).astype(np.int32))
        nearest = self.vectors().search(text, k + len(known), among=among)
        return tuple(Link(node, self.name_of(node), "vector", score) for node, score in nearest if node not in known)

    def _all_of(self, form: int, score: float, code: int | None = None) -> list[Link]:
        """Return the nodes of a similar form."""
        entries = self._entries(form, code)
        return self._ordered(entries, "fuzzy", [score] * len(entries.nodes))

    def _entries(self, form: int, code: int | None) -> Entries:
        entries = self.table.entries(form)
        return entries if code is None else entries.taken(np.flatnonzero(self.types[entries.nodes] == code))

    def _have_type(self, forms: IntArray, code: int) -> NDArray[np.bool_]:
        owners, nodes = self.table.bearers(forms)
        return np.asarray(np.bincount(owners[self.types[nodes] == code], minlength=len(forms)) > 0)

    def _ordered(self, entries: Entries, how: Literal["exact", "fuzzy"], scores: Sequence[float]) -> list[Link]:
        """Sort by score, then names before aliases, then by prominence."""
        nodes = entries.nodes
        order = np.lexsort((nodes, -self.prominence(nodes), entries.kinds, -np.asarray(scores)))
        return [Link(int(nodes[place]), entries.aliases[place], how, scores[place]) for place in order.tolist()]

    # Running text

    def _is_meant(self, match: NameMatch, tokens: Sequence[Token], text: str) -> bool:
        def is_written(word: str) -> bool:
            return any(alias.strip(punctuation) == word for alias in self.table.entries(match.form).aliases)

        return is_telling(match, tokens, text, self._ignored, is_written)

    def _mention(self, match: NameMatch, tokens: Sequence[Token], text: str) -> Mention:
        start, end = tokens[match.first].start, tokens[match.last].end
        if match.is_exact:  # "C++" is not "C"
            aliases = self.table.entries(match.form).aliases
            end = max([end, *(start + len(alias) for alias in aliases if text.startswith(alias, start))])
        links = self._exact(match.form, text[start:end], None)[:MOST_IN_TEXT]
        if not match.is_exact:
            links = [Link(link.node, link.alias, "fuzzy", min(link.score, 0.95)) for link in links]
        return Mention(start, end, text[start:end], tuple(links))

    def _numbered(self, mention: Mention, tokens: Sequence[Token], text: str) -> Mention:
        """Extend a name by an adjacent number if few names contain both: "1986 Mets" may be "1986 New York Mets"."""
        inside = [token.text for token in tokens if mention.start <= token.start < mention.end]
        for run in numbers_beside(mention.start, mention.end, tokens, text):
            longer = self._longer([*(token.text for token in run), *inside], None)
            if 0 < len(longer) <= MOST_RARE:
                start, end = min(run[0].start, mention.start), max(run[-1].end, mention.end)
                return self._similar(text, start, end, longer)
        return mention

    def _similar(self, text: str, start: int, end: int, forms: Iterable[tuple[int, float]]) -> Mention:
        """Return a mention of the nodes of some forms, given with their scores."""
        links = [link for form, score in forms for link in self._all_of(form, score)]
        return Mention(start, end, text[start:end], tuple(links[:MOST_IN_TEXT]))

    def _misspelt(self, text: str, tokens: Sequence[Token], found: Sequence[Mention]) -> list[Mention]:
        """Find runs of words that resemble a name, around words that occur in no name or text of the base."""
        is_free = [not _is_inside(token.start, found) for token in tokens]
        odd = [place for place, token in enumerate(tokens) if is_free[place] and self._is_odd(token)]
        mentions = []
        for place in sorted(odd, key=lambda place: -len(tokens[place].text))[:MOST_ODD]:
            runs = runs_around(place, tokens, is_free, self._ignored)  # none if the token is in a mention by now
            best = self._best_run(runs, tokens) if runs else None
            if best is not None:
                run, form, score = best
                start, end = tokens[run[0]].start, tokens[run[-1]].end
                mentions.append(self._similar(text, start, end, [(form, score)]))
                for covered in run:
                    is_free[covered] = False
        return mentions

    def _shortened(self, text: str, tokens: Sequence[Token], found: Sequence[Mention]) -> list[Mention]:
        """Find words that occur together in few names, longest runs first.

        Next to other names they must be capitalised.
        """
        covered = {place for place, token in enumerate(tokens) if _is_inside(token.start, found)}
        mentions = []
        for run in telling_runs(tokens, self._ignored):
            if not covered.isdisjoint(run):
                continue
            written = [text[tokens[place].start] for place in run]
            words = [tokens[place].text for place in run]
            is_written_as_name = run[0] > 0 and all(letter.isupper() or letter.isdecimal() for letter in written)
            longer = self._longer(words, None)
            is_rare = len(longer) <= MOST_RARE and all(self.frequency(one) <= len(longer) + MOST_RARE for one in words)
            if found and not is_written_as_name and not is_rare:
                continue
            if longer and (len(run) > 1 or len(longer) <= MOST_SHORTENED):
                best = sorted(longer, key=lambda pair: (-pair[1], pair[0]))[:MOST_IN_TEXT]
                mentions.append(self._similar(text, tokens[run[0]].start, tokens[run[-1]].end, best))
                covered.update(run)
        return mentions

    def _acronyms(self, text: str, found: Sequence[Mention]) -> list[Mention]:
        """Find acronyms of names: "WHO" may refer to "World Health Organization"."""
        mentions = []
        for match in ACRONYM.finditer(text):
            is_free = not _is_inside(match.start(), found)
            forms = self._by_initials.get(match[0].replace("&", "").casefold(), ()) if is_free else ()
            if forms and len(forms) <= MOST_RARE:
                mentions.append(self._similar(text, *match.span(), [(form, DERIVED) for form in forms]))
        return mentions

    @cached_property
    def _by_initials(self) -> dict[str, list[int]]:
        """Forms by the initials of their words, without stop words."""
        found: dict[str, list[int]] = {}
        if len(self.table) <= MOST_FORMS:
            for index, form in enumerate(self.table.texts(np.arange(len(self.table), dtype=np.int32))):
                words = [word for word in form.split() if word not in stop_words()]
                if len(words) >= FEWEST_INITIALS:
                    found.setdefault("".join(word[0] for word in words), []).append(index)
        return found

    def _derived(self, text: str, tokens: Sequence[Token], found: Sequence[Mention]) -> list[Mention]:
        """Find capitalised words derived from a name or vice versa: "African" may refer to "Africa"."""
        mentions = []
        for token in tokens:
            is_free = not _is_inside(token.start, found)
            long_enough = len(token.text) >= SHORTEST_ODD and token.text.isalpha() and text[token.start].isupper()
            if is_free and long_enough and not is_common(token.text, self._ignored):
                form, share = self._nearest_root(token.text)
                if share >= SAME_ROOT:
                    mentions.append(self._similar(text, token.start, token.end, [(form, DERIVED)]))
        return mentions

    def _nearest_root(self, word: str) -> tuple[int, float]:
        """Return the one-word form with the longest common prefix, and the share of that prefix."""
        best, share = -1, 0.0
        for place, name in self.table.beginning(word[:ROOT], MOST_LONGER):
            own = Prefix.similarity(word, name) / max(len(word), len(name))
            if name.isalpha() and own > share:
                best, share = place, own
        return best, share

    def _best_run(self, runs: Sequence[range], tokens: Sequence[Token]) -> tuple[range, int, float] | None:
        """Return the run of words most similar to a name. Prefer longer runs."""
        wanted = [" ".join(tokens[place].text for place in run) for run in runs]
        places = distinct(np.sort(np.concatenate([self.trigrams.nearest(form, POOL) for form in wanted])))
        given = self.table.texts(places)
        name = dict(zip(places.tolist(), given, strict=True))
        options = [
            (run, *found[0])
            for run, form, found in zip(runs, wanted, similar(wanted, places, given, SIMILAR_IN_TEXT), strict=True)
            if found and not is_derived(form, name[found[0][0]])
        ]
        return max(options, key=lambda option: (round(option[2], 2), len(option[0])), default=None)

    def _is_odd(self, token: Token) -> bool:
        if len(token.text) < SHORTEST_ODD or not token.text.isalpha() or is_common(token.text, self._ignored):
            return False
        return not self.has_word(token.text)


def _is_inside(offset: int, mentions: Iterable[Mention]) -> bool:
    return any(mention.start <= offset < mention.end for mention in mentions)


def schema_words(schema: Schema) -> frozenset[str]:
    """Return the words of types, relations and attributes: "gene" in a question means the type, not a node."""
    labels = [node_type.label for node_type in schema.node_types]
    labels += [label for relation in schema.relations for label in (relation.name, relation.label, relation.inverse)]
    labels += [label for attribute in schema.attribute_types for label in (attribute, words_of(attribute))]
    return frozenset(token.text for label in labels for token in tokenise(label))
