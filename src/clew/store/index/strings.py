"""String tables: search by shared trigrams, and the strings in running text.

Names in running text are the longest matches without overlaps, and without everyday words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.types import IntArray, distinct
from clew.store.graph.adjacency import map_array
from clew.store.index.fusion import GroupedMembers, join_groups
from clew.store.index.tokens import Token, stop_words

HEAD = 8
"""Number of leading bytes stored as an integer, so that most of a search runs in compiled code."""


class StringTable:
    """Concatenated strings in one byte array, with random access."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data, self.offsets = data, offsets
        self._view = data.data

    @staticmethod
    def write(folder: Path, name: str, strings: pa.Array | pa.ChunkedArray) -> None:
        """Save strings in the given order."""
        data, offsets = byte_arrays(strings)
        np.save(folder / f"{name}_bytes.npy", data)
        np.save(folder / f"{name}_offsets.npy", offsets)

    @classmethod
    def open(cls, folder: Path, name: str) -> StringTable:
        """Map saved strings."""
        return cls(map_array(folder / f"{name}_bytes.npy"), map_array(folder / f"{name}_offsets.npy"))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._view[self.offsets[place] : self.offsets[place + 1]])


class SortedStrings(StringTable):
    """Distinct strings sorted by their bytes."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64], heads: NDArray[np.uint64]) -> None:
        super().__init__(data, offsets)
        self.heads = heads

    @classmethod
    def of(cls, strings: Sequence[str]) -> SortedStrings:
        """Create from strings that are distinct and sorted by their bytes, in memory."""
        data, offsets = byte_arrays(pa.array(strings, pa.large_string()))
        return cls(data, offsets, _heads(data, offsets))

    @staticmethod
    def write(folder: Path, name: str, strings: pa.Array | pa.ChunkedArray) -> None:
        """Save strings that are distinct and sorted by their bytes."""
        data, offsets = byte_arrays(strings)
        np.save(folder / f"{name}_bytes.npy", data)
        np.save(folder / f"{name}_offsets.npy", offsets)
        np.save(folder / f"{name}_heads.npy", _heads(data, offsets))

    @classmethod
    def open(cls, folder: Path, name: str) -> SortedStrings:
        """Map saved strings."""
        plain = StringTable.open(folder, name)
        return cls(plain.data, plain.offsets, map_array(folder / f"{name}_heads.npy"))

    def place(self, wanted: bytes) -> int:
        """Return the index of a string, or its insertion point."""
        head = np.uint64(int.from_bytes(wanted[:HEAD].ljust(HEAD, b"\0"), "big"))
        first, last = int(self.heads.searchsorted(head)), int(self.heads.searchsorted(head, side="right"))
        return bisect_left(range(len(self)), wanted, first, last, key=self.__getitem__)

    def find(self, wanted: bytes) -> int | None:
        """Return the index of a string, or None if it is missing."""
        place = self.place(wanted)
        return place if place < len(self) and self[place] == wanted else None


def byte_arrays(strings: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of all strings, and their offsets."""
    column = strings if isinstance(strings, pa.ChunkedArray) else pa.chunked_array([strings])
    lengths = pc.binary_length(column).to_numpy() if len(column) else np.empty(0, dtype=np.int64)
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    parts = [np.empty(0, dtype=np.uint8)]
    for chunk in column.chunks:
        whole = chunk.cast(pa.large_binary())
        borders = np.frombuffer(whole.buffers()[1], dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
        content = np.frombuffer(whole.buffers()[2] or b"", dtype=np.uint8)
        parts.append(content[borders[0] : borders[-1]])
    return np.concatenate(parts), offsets


def _heads(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    heads = np.zeros(len(offsets) - 1, dtype=np.uint64)
    lengths = np.diff(offsets)
    for byte in range(HEAD):
        heads <<= np.uint64(8)
        long = np.flatnonzero(lengths > byte)
        heads[long] |= data[offsets[long] + byte]
    return heads


def sorted_codes(strings: pa.Array) -> tuple[pa.Array, IntArray]:
    """Return the distinct strings sorted by their bytes, and the index of each string among them, -1 for null."""
    encoded = strings.dictionary_encode()
    distinct = encoded.dictionary
    heads = _heads(*byte_arrays(distinct))
    order = np.argsort(heads, kind="stable")
    same = np.diff(heads[order]) == 0
    # The first bytes sort most strings, which is faster.
    tied = (np.append(same, False) | np.append(False, same))[: len(order)]
    order[tied] = order[tied][pc.sort_indices(distinct.take(order[tied])).to_numpy()]
    codes = np.full(len(order) + 1, -1, dtype=np.int32)
    codes[order] = np.arange(len(order), dtype=np.int32)
    return distinct.take(order), codes[pc.fill_null(encoded.indices, -1).to_numpy()]


BUCKETS = 1 << 16
"""Number of hashes of a trigram, which have 16 bits."""
LONGEST = 1000
"""Maximum length that is distinguished, in characters."""
PORTION = 200_000
"""Number of strings to index at once."""
FEWEST, BUDGET = 14, 20_000
"""Minimum number of trigrams, and number of postings, to read. Rare trigrams come first, and typos create rare ones."""
SHARE = 0.2
"""Minimum share of the weight of the wanted trigrams."""

LOOKED_AT, MORE = 4, 8
"""Number of strings to check per wanted string if some are filtered, and its growth per attempt."""


@dataclass(eq=False, repr=False)
class TrigramIndex:
    """The strings of every trigram. Strings have one space at both ends."""

    offsets: NDArray[np.int64]
    members: IntArray
    places: IntArray
    """Original index of each string."""
    lengths: NDArray[np.int64]
    """Number of strings shorter than 0, 1, 2, … characters."""

    @staticmethod
    def write(folder: Path, strings: pa.Array) -> None:
        """Index strings by their positions."""
        sizes = np.minimum(pc.utf8_length(strings).to_numpy(), LONGEST)
        places = np.argsort(sizes.astype(np.uint16), kind="stable").astype(np.int32)
        portions = []
        for start in range(0, len(strings), PORTION):
            codes, owners = _trigrams(strings.take(places[start : start + PORTION]).to_pylist())
            order = np.argsort(codes, kind="stable")  # a radix sort, since codes have 16 bits
            codes, owners = codes[order], owners[order] + np.int32(start)
            again = np.zeros(len(codes), dtype=np.bool_)
            again[1:] = (codes[1:] == codes[:-1]) & (owners[1:] == owners[:-1])
            codes, owners = codes[~again], owners[~again]
            portions.append(GroupedMembers.of(codes, owners))
        offsets, (members,) = join_groups(portions, BUCKETS, (np.int32,))
        np.save(folder / "trigram_offsets.npy", offsets)
        np.save(folder / "trigram_members.npy", members)
        np.save(folder / "trigram_places.npy", places)
        shorter = np.append(0, np.cumsum(np.bincount(sizes, minlength=LONGEST + 1))).astype(np.int64)
        np.save(folder / "trigram_lengths.npy", shorter)

    @classmethod
    def open(cls, folder: Path) -> TrigramIndex:
        """Map an index."""
        names = ("offsets", "members", "places", "lengths")
        return cls(*(map_array(folder / f"trigram_{name}.npy") for name in names))

    def nearest(
        self, text: str, count: int, *, keep: Callable[[IntArray], NDArray[np.bool_]] | None = None
    ) -> IntArray:
        """Return up to `count` strings of similar length that share the rarest trigrams, best first."""
        size = min(len(text), LONGEST)
        slack = 2 + size // 8
        window = range(max(0, size - slack), min(LONGEST, size + slack) + 1)
        low, high = int(self.lengths[window.start]), int(self.lengths[window.stop])
        codes = distinct(np.sort(_trigrams([text])[0])).astype(np.int64)
        sizes = self.sizes(codes, window)
        order = np.argsort(sizes, kind="stable")
        read = max(FEWEST, int(np.cumsum(sizes[order]).searchsorted(BUDGET)))
        order = order[:read]
        sizes = sizes[order]
        weights = np.log1p((high - low) / (sizes + 1))
        whole = float(weights.sum())
        shared = np.concatenate(self.having(codes[order], window)) - np.int32(low)
        totals = np.bincount(shared, np.repeat(weights, sizes), minlength=1)
        found = np.flatnonzero(totals > whole * SHARE)
        return self._best(found, totals[found], low, count, keep)

    def _best(
        self,
        found: NDArray[np.int64],
        totals: NDArray[np.number],
        low: int,
        count: int,
        keep: Callable[[IntArray], NDArray[np.bool_]] | None,
    ) -> IntArray:
        """Return the `count` best strings that pass `keep`, which is called for as few as possible."""
        looked_at = count if keep is None else count * LOOKED_AT
        while True:
            least = np.partition(totals, -looked_at)[-looked_at] if looked_at < len(totals) else -np.inf
            best = np.flatnonzero(totals >= least)
            places = self.places[found[best] + low]
            order = np.lexsort((places, -totals[best]))
            kept = places[order] if keep is None else places[order][keep(places[order])]
            if len(kept) >= count or len(best) == len(found):
                return kept[:count]
            looked_at *= MORE

    def sizes(self, codes: NDArray[np.int64], window: range) -> NDArray[np.int64]:
        """Count the strings of the given lengths with each trigram."""
        return np.array([len(members) for members in self.having(codes, window)], dtype=np.int64)

    def having(self, codes: NDArray[np.int64], window: range) -> list[IntArray]:
        """Return the strings of the given lengths with each trigram, as ranks by length."""
        bounds = np.array([self.lengths[window.start], self.lengths[window.stop]], dtype=np.int32)
        lists = []
        for first, last in zip(self.offsets[codes].tolist(), self.offsets[codes + 1].tolist(), strict=True):
            left, right = self.members[first:last].searchsorted(bounds).tolist()
            lists.append(self.members[first + left : first + right])
        return lists


def _trigrams(strings: list[str]) -> tuple[NDArray[np.uint16], IntArray]:
    """Return the hashed trigram around every character, and its string."""
    joined = " " + " ".join(strings) + " "
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    owners = np.repeat(np.arange(len(strings), dtype=np.int32), [len(string) for string in strings])
    places = np.arange(1, len(owners) + 1) + owners
    mixed = points[places - 1] * np.uint32(73856093)
    mixed ^= points[places] * np.uint32(19349663)
    mixed ^= points[places + 1] * np.uint32(83492791)
    return (mixed ^ (mixed >> np.uint32(16))).astype(np.uint16), owners


FEWEST_DIGITS = 3
"""Minimum number of digits of a number that counts as a name."""
NOTHING: frozenset[str] = frozenset()
WIDEST = 4
"""Maximum number of words in a misspelt name."""


@dataclass(frozen=True, slots=True)
class NameMatch:
    """Tokens first .. last that match the form of a name. `is_exact` is false if singular and plural were exchanged."""

    first: int
    last: int
    form: int
    is_exact: bool = True


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """Return stop words and common words of questions, which are names only if capitalised."""
    return stop_words() | frozenset(files("clew.store.index").joinpath("common_words.txt").read_text("utf-8").split())


def is_common(word: str, ignored: frozenset[str] = NOTHING) -> bool:
    """Return whether a word or its singular is too common to be a name."""
    singular = word.removesuffix("s")
    return any(form in words for words in (common_words(), ignored) for form in (word, singular))


def find_matches(tokens: Sequence[Token], forms: SortedStrings) -> list[NameMatch]:
    """Find every run of tokens that is a form, with one binary search per token that may continue a form."""
    found = []
    for first in range(len(tokens)):
        prefix = b""
        for last in range(first, len(tokens)):
            wanted = prefix + tokens[last].text.encode()
            place = forms.place(wanted)
            is_form = place < len(forms) and forms[place] == wanted
            if is_form:
                found.append(NameMatch(first, last, place))
            else:
                other = _other_number(prefix, tokens[last].text, forms)
                if other is not None:
                    found.append(NameMatch(first, last, other, is_exact=False))
            prefix = wanted + b" "
            following = place + is_form  # a space sorts first, so continuations follow directly
            if following >= len(forms) or not forms[following].startswith(prefix):
                break
    return found


def longest(matches: Iterable[NameMatch], tokens: Sequence[Token]) -> list[NameMatch]:
    """Select non-overlapping matches in reading order, preferring longer and exact matches."""
    taken: list[NameMatch] = []
    covered: set[int] = set()

    def size(match: NameMatch) -> int:
        return tokens[match.last].end - tokens[match.first].start

    for match in sorted(matches, key=lambda match: (-size(match), not match.is_exact, match.first)):
        places = range(match.first, match.last + 1)
        if covered.isdisjoint(places):
            covered.update(places)
            taken.append(match)
    return sorted(taken, key=lambda match: match.first)


def is_telling(
    match: NameMatch, tokens: Sequence[Token], text: str, ignored: frozenset[str], is_written: Callable[[str], bool]
) -> bool:
    """Return whether a match can be meant as a name.

    A single word of the schema (`ignored`) refers to the schema. Everyday words must be capitalised inside a sentence,
    except stop words inside a longer name. A single everyday word must also be written like the alias (`is_written`): a
    film may be called "It".
    """
    run = tokens[match.first : match.last + 1]
    if is_number(match, tokens):
        return len(run[0].text) >= FEWEST_DIGITS
    dull = ignored if len(run) == 1 else NOTHING
    if match.is_exact and len(run) > 1 and run[-1].text.isdecimal():  # order 2
        return True
    if not all(is_common(token.text, dull) or (len(token.text) == 1 and token.text.isascii()) for token in run):
        return True
    before = text[: run[0].start].rstrip()
    if text.upper() == text or not before or before[-1] in ".?!":
        return False
    written = [text[token.start : token.end] for token in run]
    if len(run) == 1:
        return written[0][0].isupper() and written[0] not in ("I", "A") and is_written(written[0])
    capital = [word[0].isupper() or word[0].isdecimal() for word in written]
    small = [token.text in stop_words() for token in run]
    return capital[0] and any(capital[1:]) and all(c or s for c, s in zip(capital, small, strict=True))


def is_number(match: NameMatch, tokens: Sequence[Token]) -> bool:
    """Return whether a match is one token of digits."""
    return match.first == match.last and tokens[match.first].text.isdecimal()


def numbers_beside(start: int, end: int, tokens: Sequence[Token], text: str) -> list[list[Token]]:
    """Return the number after a span, with several tokens if joined by dots, and the number before it."""
    after: list[Token] = []
    for token in tokens:
        if token.start >= end:
            gap = text[after[-1].end : token.start] if after else text[end : token.start].strip()
            if not token.text.isdecimal() or gap != ("." if after else ""):
                break
            after.append(token)
    before = [t for t in tokens if t.end <= start and t.text.isdecimal() and not text[t.end : start].strip()]
    return [run for run in (after, before[-1:]) if run]


def runs_around(place: int, tokens: Sequence[Token], is_free: Sequence[bool], ignored: frozenset[str]) -> list[range]:
    """Return runs of free tokens around a token that do not start or end with a stop word or a word of the schema."""
    runs = []
    for first in range(place, max(-1, place - WIDEST), -1):
        if not is_free[first]:
            break
        for last in range(place, min(len(tokens), first + WIDEST)):
            if not is_free[last]:
                break
            ends = (tokens[end].text for end in (first, last) if end != place)
            if not any(word in stop_words() or {word, word.removesuffix("s")} & ignored for word in ends):
                runs.append(range(first, last + 1))
    return runs


def telling_runs(tokens: Sequence[Token], ignored: frozenset[str]) -> list[range]:
    """Return runs of words with stop words only inside, and not only common words or numbers, longest first."""
    is_small = [token.text in stop_words() for token in tokens]
    is_free = [token.text.isalnum() for token in tokens]
    runs = [
        range(first, first + size)
        for size in range(WIDEST, 0, -1)
        for first in range(len(tokens) - size + 1)
        if all(is_free[first : first + size]) and not is_small[first] and not is_small[first + size - 1]
    ]
    return [
        run
        for run in runs
        if not all(
            tokens[place].text.isdecimal() or is_common(tokens[place].text, ignored if len(run) == 1 else NOTHING)
            for place in run
        )
    ]


NUMBERS = (("ies", "y"), ("es", ""), ("s", ""), ("y", "ies"), ("", "s"))
"""Endings of plurals and singulars, in both directions."""


def other_numbers(word: str) -> list[str]:
    """Return the possible singulars and plurals of a word."""
    return [
        word.removesuffix(ending) + replacement
        for ending, replacement in NUMBERS
        if word.endswith(ending) and len(word) > len(ending) + 2 and word.isalpha()
    ]


def _other_number(prefix: bytes, word: str, forms: SortedStrings) -> int | None:
    """Find the form with singular and plural of the last word exchanged."""
    places = (forms.find(prefix + other.encode()) for other in other_numbers(word))
    return next((place for place in places if place is not None), None)
