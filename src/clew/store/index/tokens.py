"""Tokens, stems and terms of texts in any script, for whole columns."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SHORTEST = 4
"""Minimum length of a word to stem."""
_WORD = "^[a-z]+$"
ENGLISH = "en"
SCRIPTS = (
    ("ja", "\u3040", "\u30ff"),
    ("zh", "\u3400", "\u9fff"),
    ("ko", "\uac00", "\ud7a3"),
    ("ar", "\u0600", "\u06ff"),
    ("hi", "\u0900", "\u097f"),
    ("ru", "\u0400", "\u04ff"),
    ("el", "\u0370", "\u03ff"),
    ("he", "\u0590", "\u05ff"),
    ("th", "\u0e00", "\u0e7f"),
)
"""Scripts that identify a language, or the most common language of the script."""


@dataclass(frozen=True)
class Language:
    """Stop words and endings of a language. Both are empty for unknown languages."""

    stop_words: frozenset[str] = frozenset()
    endings: tuple[tuple[str, str, str], ...] = ()
    signs: str = ""
    """Characters that few other languages use."""

    @cached_property
    def compiled(self) -> tuple[tuple[str, re.Pattern[str], str], ...]:
        """The endings with compiled patterns."""
        return tuple((letters, re.compile(pattern), instead) for letters, pattern, instead in self.endings)


@cache
def language(code: str) -> Language:
    """Load the file of a language. Add a language by adding a file of this form."""
    file = files("clew.store.index").joinpath("languages", f"{code}.toml")
    if not file.is_file():
        return Language()
    content = tomllib.loads(file.read_text("utf-8"))
    words = frozenset("".join(map(_fold_character, content["words"])).split())
    endings = tuple((letters, pattern, instead) for letters, pattern, instead in content.get("endings", ()))
    return Language(words, endings, content.get("signs", ""))


@cache
def _known_languages() -> tuple[str, ...]:
    """Return all languages, with English first as the default."""
    found = [file.name.removesuffix(".toml") for file in files("clew.store.index").joinpath("languages").iterdir()]
    return tuple(sorted(found, key=lambda code: (code != ENGLISH, code)))


FILE_NAME = re.compile(r"[A-Za-z0-9-]+(?:[._/\\][A-Za-z0-9-]+)+")


def language_of(
    text: str, besides: Iterable[tuple[int, int]] = (), default: str = ENGLISH, *, least: float = 0.0
) -> str:
    """Detect the language of most words, by script, special letters or stop words.

    Ignore the spans `besides`, such as names. `least` is the minimum share of words that must indicate a language. File
    names are also ignored: no word of guide_en.odt belongs to the language.
    """
    for start, end in besides:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    text = FILE_NAME.sub(" ", text)
    votes: Counter[str] = Counter({c: sum(map(text.count, language(c).signs)) for c in _known_languages()})
    tokens = tokenise(text)
    for token in tokens:
        letter = token.text[0]
        script = "" if letter.isascii() else next((c for c, low, high in SCRIPTS if low <= letter <= high), "")
        if script:
            votes[script] += 1
        elif len(token.text) > 1:  # a single letter may be anything
            votes.update(c for c in _known_languages() if token.text in language(c).stop_words)
    if votes["ja"]:  # Han together with kana
        votes["ja"] += votes.pop("zh", 0)
    most = max(votes.values())
    likely = [code for code in votes if votes[code] == most]
    return default if most <= least * len(tokens) or default in likely else likely[0]


def stem_all(words: pa.Array, code: str = ENGLISH) -> pa.Array:
    """Return the stem of every word. Words with digits or of other scripts stay unchanged."""
    inflected = pc.and_(pc.match_substring_regex(words, _WORD), pc.greater_equal(pc.binary_length(words), SHORTEST))
    stems = words.filter(inflected)
    for letters, pattern, instead in language(code).endings:
        last = pc.utf8_slice_codeunits(stems, -1, None)
        concerned = pc.is_in(last, value_set=pa.array(list(letters), stems.type))
        changed = pc.replace_substring_regex(stems.filter(concerned), pattern, instead)
        stems = pc.replace_with_mask(stems, concerned, changed)
    return pc.replace_with_mask(words, inflected, stems)


@lru_cache(maxsize=100_000)
def stem(word: str, code: str = ENGLISH) -> str:
    """Return the stem of a word."""
    if len(word) < SHORTEST or not (word.isascii() and word.isalpha() and word.islower()):
        return word
    for letters, pattern, instead in language(code).compiled:
        if word[-1] in letters:
            word = pattern.sub(instead, word)
    return word


LETTERS_WITHOUT_DECOMPOSITION = {
    "ß": "ss", "ς": "σ", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h",
}  # fmt: skip
ACCENTS = ("\u0300", "\u036f")
SPACELESS_RANGES = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Burmese
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3040", "\u30ff"),  # Hiragana, Katakana
    ("\u3400", "\u4dbf"),  # Han
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)
CHUNK_BYTES = 4_000_000
"""Approximate size of the portions in which texts are processed, in bytes, to limit temporary arrays."""
SPACE = ord(" ")
_SPACELESS = "[" + "".join(f"{first}-{last}" for first, last in SPACELESS_RANGES) + "]"
_SPACELESS_CHARACTER = re.compile(_SPACELESS)
_ASCII_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A normalised word and its span in the original text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenLists:
    """The tokens of many texts: tokens[offsets[i]:offsets[i + 1]] belong to text i."""

    tokens: pa.Array
    offsets: NDArray[np.int64]

    def joined(self) -> pa.Array:
        """Return every text as its tokens joined by spaces."""
        lists = pa.LargeListArray.from_arrays(pa.array(self.offsets), self.tokens)
        return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))


Texts: TypeAlias = "pa.Array | pa.ChunkedArray | Iterable[pa.Array]"
"""A column of texts, whole or in blocks."""


def tokenise_column(texts: Texts) -> Iterator[TokenLists]:
    """Yield the tokens of a column of texts in portions. Nulls count as empty texts."""
    texts = texts.chunks if isinstance(texts, pa.ChunkedArray) else texts
    for chunk in [texts] if isinstance(texts, pa.Array) else texts:
        whole = pc.fill_null(chunk.cast(pa.large_string()), "")
        ends = pc.cumulative_sum(pc.binary_length(whole).cast(pa.int64())).to_numpy()
        start = 0
        while start < len(whole):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(ends.searchsorted(before + CHUNK_BYTES, side="right")))
            yield _tokenise_portion(whole.slice(start, stop - start))
            start = stop


def normalise_column(texts: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return every text as its tokens joined by spaces."""
    return pa.chunked_array([portion.joined() for portion in tokenise_column(texts)], pa.large_string())


def _tokenise_portion(texts: pa.Array) -> TokenLists:
    foreign = pc.invert(pc.string_is_ascii(texts))
    if pc.any(foreign, min_count=0).as_py():
        texts = pc.replace_with_mask(texts, foreign, _fold(texts.filter(foreign)))
    _, offset_buffer, data_buffer = texts.buffers()
    borders = np.frombuffer(offset_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = bytes(memoryview(data_buffer or b"")[borders[0] : borders[-1]])
    borders = borders - borders[0]
    folded, gaps = _byte_table()
    inside = np.frombuffer(data.translate(folded), dtype=np.uint8) != SPACE
    begins, stops = inside.copy(), inside.copy()
    begins[1:] &= ~inside[:-1]
    stops[:-1] &= ~inside[1:]
    filled = borders[:-1] < borders[1:]  # a token ends with its text, even without a gap before the next text
    first, last = borders[:-1][filled], borders[1:][filled] - 1
    begins[first], stops[last] = inside[first], inside[last]
    starts = np.flatnonzero(begins)
    places = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(np.flatnonzero(stops) + 1 - starts, out=places[1:])
    kept = pa.py_buffer(data.translate(folded, gaps))
    tokens = pa.LargeStringArray.from_buffers(len(starts), pa.py_buffer(places), kept)
    return TokenLists(tokens, starts.searchsorted(borders).astype(np.int64))


def _fold(texts: pa.Array) -> pa.Array:
    folded = pc.utf8_lower(pc.utf8_normalize(texts, form="NFKD"))
    # Lower-casing may compose characters again, such as the Turkish dotted capital I.
    folded = pc.utf8_normalize(folded, form="NFKD")
    folded = pc.replace_substring_regex(folded, f"[{ACCENTS[0]}-{ACCENTS[1]}]+", "")
    for letter, plain in LETTERS_WITHOUT_DECOMPOSITION.items():
        folded = pc.replace_substring(folded, letter, plain)
    folded = pc.replace_substring_regex(folded, r"[^\p{L}\p{M}\p{N}]+", " ")
    return pc.replace_substring_regex(folded, rf"({_SPACELESS}\p{{M}}*)", r" \1 ")


@lru_cache(maxsize=1)
def _byte_table() -> tuple[bytes, bytes]:
    """Return a table that lower-cases ASCII letters, with spaces for other ASCII characters, and these characters."""
    gaps = bytes(code for code in range(128) if not chr(code).isalnum())
    return bytes(SPACE if code in gaps else code for code in range(256)).lower(), gaps


def normalise(text: str) -> str:
    """Return a text as its tokens joined by spaces."""
    return " ".join(token.text for token in tokenise(text))


def tokenise(text: str) -> list[Token]:
    """Return the tokens of a text in reading order."""
    if text.isascii():
        return [Token(found.group(), *found.span()) for found in _ASCII_WORD.finditer(text.lower())]
    tokens: list[Token] = []
    word, start, end, alone = "", 0, 0, False
    for index, character in enumerate(text):
        for part in _fold_character(character):
            kind, spaceless = _category(part), is_spaceless(part)
            joins = (kind == "M" and (alone or not spaceless)) or (kind in "LN" and not alone and not spaceless)
            if word and not joins:
                tokens.append(Token(word, start, end))
                word = ""
            if kind not in "LMN":
                continue
            if not word:
                start, alone = index, spaceless
            word += part
            end = index + 1
    if word:
        tokens.append(Token(word, start, end))
    return tokens


@lru_cache(maxsize=10_000)
def _fold_character(character: str) -> str:
    lowered = "".join(part.lower() for part in unicodedata.normalize("NFKD", character))
    kept = (part for part in unicodedata.normalize("NFKD", lowered) if not ACCENTS[0] <= part <= ACCENTS[1])
    return "".join(LETTERS_WITHOUT_DECOMPOSITION.get(part, part) for part in kept)


@lru_cache(maxsize=10_000)
def _category(character: str) -> str:
    return unicodedata.category(character)[0]


def is_spaceless(token: str) -> bool:
    """Return whether a token is a single character of a script without spaces."""
    return _SPACELESS_CHARACTER.match(token) is not None


def are_spaceless(tokens: pa.Array) -> NDArray[np.bool_]:
    """Return which tokens are single characters of a script without spaces."""
    found = pc.match_substring_regex(tokens, f"^{_SPACELESS}")
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


LONGEST = 64
"""Maximum length of a term, so that encoded data does not fill the vocabulary."""


def stop_words(code: str = ENGLISH) -> frozenset[str]:
    """Return the stop words of a language."""
    return language(code).stop_words


def terms(text: str, code: str = ENGLISH) -> list[str]:
    """Return the terms of a text in reading order, with repetitions."""
    tokens = tokenise(text)
    found = [stem(token.text[:LONGEST], code) for token in tokens if token.text not in stop_words(code)]
    pairs = pairwise(token.text for token in tokens)
    return found + [first + second for first, second in pairs if is_spaceless(first) and is_spaceless(second)]


def words_outside(text: str, known: Set[str]) -> list[str]:
    """Return the words of a text as written, except words with known terms."""
    stems = ((token, terms(token.text)[:1]) for token in tokenise(text))
    return [text[token.start : token.end] for token, stem in stems if stem and stem[0] not in known]
