"""All aliases of all nodes, sorted by normal form. Each form has its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from clew.core.types import IntArray, places_in
from clew.store.graph.adjacency import map_array, positions
from clew.store.graph.tables import STRING
from clew.store.index.mentions import NameMatch, find_matches
from clew.store.index.strings import SortedStrings, StringTable, TrigramIndex, sorted_codes
from clew.store.index.tokens import Token, normalise, normalise_column

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
