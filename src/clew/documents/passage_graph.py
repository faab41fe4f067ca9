"""Edges between passages: shared keywords, shared names, mentioned titles, similar vectors. Memory use is linear.

TF-IDF edges follow section 3.1 of the paper: the passages share a keyword of their documents or a document title.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.errors import InputError
from clew.core.proper_names import PhraseMatcher, acronyms, matcher, name_key, proper_names, subject, title_forms
from clew.core.types import IntArray, NodeSet
from clew.models.embedding.onnx import asking_on
from clew.models.protocol import Embedder
from clew.store.graph.adjacency import positions
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import STRING, Piece, Tables
from clew.store.group_views import view_for
from clew.store.index.tokens import stem_all, stop_words, tokenise_column

KINDS = ("tfidf", "entity", "mentions", "knn", "mdr")
DEFAULT_KINDS = ("tfidf", "entity", "mentions")


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """Kinds of edges to build, and their density."""

    kinds: tuple[str, ...] = DEFAULT_KINDS
    neighbours: int = 20
    """Number of neighbours to search for each passage, by shared keywords or names."""
    nearest: int = 10
    """Number of neighbours to search for each passage, by vector."""
    keywords: int = 50
    """Keywords per document, 50 as in the paper."""
    most_passages: int = 50
    """Maximum number of passages with a keyword or name. More frequent ones create no edges."""

    def __post_init__(self) -> None:
        """Raise InputError for unknown kinds."""
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"unknown kind of edges {kind!r}: use {', '.join(KINDS)}")


@dataclass(frozen=True, eq=False)
class PassageEdges:
    """Edge i connects the passages heads[i] and tails[i] for the reason because[i]."""

    relation: str
    heads: IntArray
    tails: IntArray
    weights: NDArray[np.float32]
    because: Sequence[str] | None = None
    """Text that both passages share. None for similar vectors."""

    def __len__(self) -> int:
        return len(self.heads)

    def table(self, keys: pa.Array, tail_keys: pa.Array | None = None) -> pa.Table:
        """Return a table of edges. Tails are indexes of `tail_keys` if given, else of `keys`."""
        string = pa.large_string()
        because = pa.nulls(len(self), string) if self.because is None else pa.array(self.because, string)
        return pa.table(
            {
                "head": keys.take(pa.array(self.heads)),
                "relation": pa.repeat(pa.scalar(self.relation, string), len(self)),
                "tail": (keys if tail_keys is None else tail_keys).take(pa.array(self.tails)),
                "weight": pa.array(np.round(self.weights.astype(np.float64), 4)),
                "keyword": because,
            }
        )


def density(edges: int, passages: int) -> float:
    """Return edges divided by all pairs of passages, as in the paper's Table 4."""
    return 2 * edges / (passages * (passages - 1)) if passages > 1 else 0.0


BLOCK = 2000
"""Number of passages to compare with all other passages at once."""


def most_shared(
    passages: IntArray, features: IntArray, weights: NDArray[np.float32], count: int, most: int
) -> tuple[IntArray, IntArray, NDArray[np.float32], IntArray]:
    """Find for each passage the `most` passages whose shared features weigh most, and return the union.

    `passages[i]` has `features[i]`, and `weights` has one weight per feature. Return heads < tails, the total weight of
    the shared features, and the heaviest shared feature.
    """
    size = max(len(weights), 1)
    held = np.unique(passages.astype(np.int64) * size + features)
    by_passage = _Grouped.of(held // size, held % size, count)
    turned = np.sort((held % size) * max(count, 1) + held // size)
    by_feature = _Grouped.of(turned // max(count, 1), turned % max(count, 1), size)
    selected = [np.empty(0, dtype=np.int64)]
    for first in range(0, count, BLOCK):
        places, shared = by_passage.expand(np.arange(first, min(first + BLOCK, count)))
        rows = places + first
        repeated, others = by_feature.expand(shared)
        selected.append(_strongest(rows[repeated], others, weights[shared[repeated]], count, most))
    pairs = np.unique(np.concatenate(selected))
    heads, tails = (pairs // max(count, 1)).astype(np.int32), (pairs % max(count, 1)).astype(np.int32)
    return heads, tails, *_reasons(by_passage, held, heads, tails, weights)


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Values in groups: values[starts[g]:starts[g + 1]] belong to group g."""

    starts: NDArray[np.int64]
    values: NDArray[np.int64]

    @classmethod
    def of(cls, groups: NDArray[np.int64], values: NDArray[np.int64], count: int) -> _Grouped:
        """Create from values sorted by group."""
        return cls(groups.searchsorted(np.arange(count + 1)), values)

    def expand(self, groups: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the concatenated values of some groups, each with the index of its group in `groups`."""
        places, lengths = positions(self.starts[groups], self.starts[groups + 1])
        return np.repeat(np.arange(len(groups)), lengths), self.values[places]


def _strongest(
    rows: NDArray[np.int64], others: NDArray[np.int64], weights: NDArray[np.float32], count: int, most: int
) -> NDArray[np.int64]:
    """Return the strongest pairs of each row, as head * count + tail with head < tail."""
    real = rows != others
    pairs, place = np.unique(rows[real] * count + others[real], return_inverse=True)
    values = np.bincount(place, weights[real], minlength=len(pairs)).astype(np.float32)  # ties survive rounding
    rows, others = pairs // count, pairs % count
    order = np.lexsort((others, -values, rows))
    rows, others = rows[order], others[order]
    best = places_in_groups(rows) < most
    rows, others = rows[best], others[best]
    return np.asarray(np.minimum(rows, others) * count + np.maximum(rows, others))


def places_in_groups(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of some sorted numbers the count of equal numbers before it."""
    return np.arange(len(groups)) - groups.searchsorted(groups)


def _reasons(
    by_passage: _Grouped, held: NDArray[np.int64], heads: IntArray, tails: IntArray, weights: NDArray[np.float32]
) -> tuple[NDArray[np.float32], IntArray]:
    """Return the total weight and the heaviest feature that each pair shares."""
    size = max(len(weights), 1)
    totals = np.zeros(len(heads), dtype=np.float32)
    heaviest = np.zeros(len(heads), dtype=np.int32)
    for first in range(0, len(heads), 10 * BLOCK):
        part = slice(first, first + 10 * BLOCK)
        rows, features = by_passage.expand(heads[part])
        wanted = tails[part].astype(np.int64)[rows] * size + features
        places = np.minimum(held.searchsorted(wanted), len(held) - 1)
        both = held[places] == wanted
        rows, features = rows[both], features[both]
        totals[part] = np.bincount(rows, weights[features], minlength=len(totals[part]))
        order = np.lexsort((features, -weights[features], rows))
        leading = np.append(True, rows[1:] != rows[:-1]) if len(rows) else np.empty(0, dtype=np.bool_)
        heaviest[part][rows[leading]] = features[order][leading]
    return totals, heaviest


BLOCK_VALUES = 16_000_000
"""Maximum number of similarities in memory."""


def nearest_edges(
    vectors: NDArray[np.float32], relation: str, neighbours: int, asking: NDArray[np.float32] | None = None
) -> PassageEdges:
    """Connect each passage with the passages of the nearest unit vectors. Each pair occurs once, with head < tail.

    `asking` are separate query vectors, if they differ from the document vectors.
    """
    count = len(vectors)
    wanted = min(neighbours, count - 1)
    if wanted < 1:
        nothing = np.empty(0, dtype=np.int32)
        return PassageEdges(relation, nothing, nothing, np.empty(0, dtype=np.float32))
    block = max(1, BLOCK_VALUES // count)
    pairs = []
    for first in range(0, count, block):
        near = (vectors if asking is None else asking)[first : first + block] @ vectors.T
        rows = np.arange(len(near))
        near[rows, rows + first] = -np.inf
        best = np.argpartition(-near, wanted - 1, axis=1)[:, :wanted]
        ends = np.repeat(rows + first, wanted).astype(np.int64), best.ravel().astype(np.int64)
        pairs.append(np.minimum(*ends) * count + np.maximum(*ends))
    chosen = np.unique(np.concatenate(pairs))
    heads, tails = chosen // count, chosen % count
    weights = np.concatenate(
        [
            np.einsum("ij,ij->i", vectors[heads[part : part + 100_000]], vectors[tails[part : part + 100_000]])
            for part in range(0, len(chosen), 100_000)
        ]
    )
    return PassageEdges(relation, heads.astype(np.int32), tails.astype(np.int32), weights.astype(np.float32))


LONGEST = 4
"""Maximum number of words in a keyword."""


@dataclass(frozen=True, eq=False)
class _WordSequence:
    """All passages as one sequence of words: form, stem, passage, and whether it may start or end a keyword."""

    vocabulary: pa.Array
    written: IntArray
    stems: IntArray
    passages: IntArray
    telling: NDArray[np.bool_]


def tfidf_edges(texts: pa.Array, documents: IntArray, options: EdgeOptions) -> PassageEdges:
    """Connect passages by the best keywords of their documents, which have one to four words."""
    words = _read(texts)
    owners: list[IntArray] = []
    grams: list[NDArray[np.int64]] = []
    examples: list[NDArray[np.int64]] = []
    hashed = words.stems.astype(np.int64)
    codes = hashed.copy()
    for length in range(1, LONGEST + 1):
        if length > 1:
            codes = _mixed(codes[:-1], hashed[length - 1 :])
        last = length - 1
        whole = words.passages[: len(codes)] == words.passages[last:]
        places = np.flatnonzero(whole & words.telling[: len(codes)] & words.telling[last:])
        shared = _shared(codes[places], options.most_passages, words.passages[places])
        owners.append(words.passages[places[shared]])
        grams.append(codes[places[shared]])
        examples.append(places[shared] * (LONGEST + 1) + length)
    owner, gram, example = np.concatenate(owners), np.concatenate(grams), np.concatenate(examples)
    _, first, feature = np.unique(gram, return_index=True, return_inverse=True)
    count = len(texts)
    kept, weights = _keywords(owner, feature, documents, len(first), options.keywords)
    heads, tails, totals, because = most_shared(
        owner[kept], feature[kept].astype(np.int32), weights, count, options.neighbours
    )
    return PassageEdges("tfidf", heads, tails, totals, _written(words, example[first][because]))


def _read(texts: pa.Array) -> _WordSequence:
    words, passages, vocabularies = [], [], []
    first, offset = 0, 0
    for lists in tokenise_column(texts):
        encoded = lists.tokens.dictionary_encode()
        words.append(encoded.indices.to_numpy().astype(np.int32) + offset)
        counts = np.diff(lists.offsets)
        passages.append(np.repeat(np.arange(first, first + len(counts), dtype=np.int32), counts))
        vocabularies.append(encoded.dictionary)
        first, offset = first + len(counts), offset + len(encoded.dictionary)
    if not words:
        nothing = np.empty(0, dtype=np.int32)
        return _WordSequence(pa.array([], pa.large_string()), nothing, nothing, nothing, np.empty(0, dtype=np.bool_))
    vocabulary = pa.concat_arrays(vocabularies)
    stems = stem_all(vocabulary).dictionary_encode()
    stop = pc.is_in(vocabulary, value_set=pa.array(sorted(stop_words()), vocabulary.type)).to_numpy(False)
    telling = ~stop & (pc.binary_length(vocabulary).to_numpy() > 1)
    places = np.concatenate(words)
    stem_of = stems.indices.to_numpy().astype(np.int32)
    return _WordSequence(vocabulary, places, stem_of[places], np.concatenate(passages), telling[places])


def _mixed(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hash a sequence of words. With 64 bits, collisions stay below one in a million at a billion n-grams."""
    mixed = left[: len(right)].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + right.astype(np.uint64)
    return np.asarray((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)).view(np.int64)


def _shared(codes: NDArray[np.int64], most: int, passages: IntArray) -> NDArray[np.int64]:
    """Return the indexes of n-grams in two to `most` passages, once per passage."""
    if not len(codes):
        return np.empty(0, dtype=np.int64)
    order = np.lexsort((passages, codes))
    ordered, owner = codes[order], passages[order]
    new_gram = np.append(True, ordered[1:] != ordered[:-1])
    new_pair = new_gram | np.append(True, owner[1:] != owner[:-1])
    group = np.cumsum(new_gram) - 1
    having = np.bincount(group[new_pair])
    return np.asarray(order[new_pair & (having[group] >= 2) & (having[group] <= most)])


def _keywords(
    owner: IntArray, feature: NDArray[np.int64], documents: IntArray, features: int, most: int
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return which passage–keyword pairs are among the best keywords of their document, and the idf of each keyword."""
    pairs, place = np.unique(documents[owner].astype(np.int64) * max(features, 1) + feature, return_inverse=True)
    document, key = pairs // max(features, 1), pairs % max(features, 1)
    amount = len(np.unique(documents))
    idf = np.log1p(amount / np.maximum(np.bincount(key, minlength=features), 1)).astype(np.float32)
    score = np.bincount(place, minlength=len(pairs)) * idf[key]
    order = np.lexsort((key, -score, document))
    best = np.zeros(len(pairs), dtype=np.bool_)
    best[order] = places_in_groups(document[order]) < most
    return best[place], idf


def _written(words: _WordSequence, examples: NDArray[np.int64]) -> list[str]:
    """Return keywords as written in an example of each."""
    places, lengths = examples // (LONGEST + 1), examples % (LONGEST + 1)
    vocabulary = words.vocabulary.to_pylist()
    return [
        " ".join(vocabulary[word] for word in words.written[place : place + length].tolist())
        for place, length in zip(places.tolist(), lengths.tolist(), strict=True)
    ]


MAX_MEANINGS = 10
"""Maximum number of titles of a form. More ambiguous forms create no edges."""
USABLE = 0.2
"""Minimum share of texts that contain their own title. Below it, titles are not names of things."""


def mention_edges(
    texts: Sequence[str], owners: Sequence[Sequence[int]], titles: Sequence[tuple[str, int]]
) -> PassageEdges:
    """Connect passages to the targets whose title they contain, except their own targets."""
    known = matcher((form, target) for title, target in titles for form in title_forms(title))
    heads: list[int] = []
    tails: list[int] = []
    because: list[str] = []
    for index, (text, own) in enumerate(zip(texts, owners, strict=True)):
        seen: dict[int, str] = {}
        for match in known.find(text, capitalised=True):
            if len(match.meanings) <= MAX_MEANINGS:
                for target in match.meanings:
                    if target not in own:
                        seen.setdefault(target, " ".join(text[match.start : match.end].split()))
        heads += [index] * len(seen)
        tails += seen.keys()
        because += seen.values()
    ends = np.array([heads, tails], dtype=np.int32).reshape(2, -1)
    return PassageEdges("mentions", ends[0], ends[1], np.ones(len(heads), dtype=np.float32), because)


def subjects(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return the subject in the first words of each text, or no subjects if titles are usable."""
    lower = [text.casefold() for text in texts]
    written = sum(
        any(form.casefold() in text for form in title_forms(title)) for title, text in zip(titles, lower, strict=True)
    )
    if written >= USABLE * len(texts):
        return []
    found = ((subject(text), place) for place, text in enumerate(texts))
    return [(name, place) for name, place in found if name is not None]


OF_THE_DOCUMENT = re.compile(r"(tables?|figures?|fig|pages?|sections?|chapters?|equations?|appendix)( [a-z]?\d+)?$")
"""Capitalised names of parts of the document."""


def entity_edges(texts: Sequence[str], documents: Sequence[int], options: EdgeOptions) -> PassageEdges:
    """Connect passages by rare shared names. `documents` gives the document of each passage, to resolve acronyms."""
    surface: dict[str, Counter[str]] = {}
    places, names = [], []
    numbers: dict[str, int] = {}
    explained = _explained(texts, documents)
    for index, (text, document) in enumerate(zip(texts, documents, strict=True)):
        for key, name in _named(text, explained.get(document, {})):
            surface.setdefault(key, Counter())[name] += 1
            places.append(index)
            names.append(numbers.setdefault(key, len(numbers)))
    columns = np.array([places, names], dtype=np.int32).reshape(2, -1)
    counts = np.bincount(columns[1], minlength=len(numbers))
    useful = (counts >= 2) & (counts <= options.most_passages)
    weights = np.where(useful, 1 / np.log1p(np.maximum(counts, 1)), 0).astype(np.float32)
    kept = useful[columns[1]]
    heads, tails, totals, because = most_shared(
        columns[0][kept], columns[1][kept], weights, len(texts), options.neighbours
    )
    written = [min(forms.items(), key=lambda form: (-form[1], form[0]))[0] for forms in surface.values()]
    return PassageEdges("entity", heads, tails, totals, [written[number] for number in because.tolist()])


def _named(text: str, expansions: dict[str, str]) -> Iterable[tuple[str, str]]:
    """Return each name of a text once, as key and written form. Acronyms use their expansion."""
    found: dict[str, str] = {}
    for name in proper_names(text):
        whole = expansions.get(name.text, name.text)
        key = name_key(whole)
        if len(key) > 2 and not OF_THE_DOCUMENT.match(key):
            found.setdefault(key, " ".join(whole.split()))
    return found.items()


def _explained(texts: Sequence[str], documents: Sequence[int]) -> dict[int, dict[str, str]]:
    explained: dict[int, dict[str, str]] = {}
    for text, document in zip(texts, documents, strict=True):
        if "(" in text and (found := acronyms(text)):
            explained.setdefault(document, {}).update(found)
    return explained


SHORTEST = 3
"""Minimum characters of a name to search for. Shorter names occur by chance."""


def known_entities(base: Path, texts: Sequence[str], keys: pa.Array) -> Tables:
    """Find the names and aliases of a base in passages.

    Return the mentioned nodes, the mentions, and the edges of the base between mentioned nodes. Skip nodes restricted
    to groups, since their texts would become public with the documents.
    """
    kb = ArrayKnowledgeBase.open(view_for(ArrayKnowledgeBase.open(base), ()) or base)
    columns = kb.columns()
    names: PhraseMatcher[int] = PhraseMatcher()
    written = zip(columns["name"].to_pylist(), columns["aliases"].to_pylist(), strict=True)
    for node, (name, aliases) in enumerate(written):
        for form in (name, *(aliases or ())):
            if len(form) >= SHORTEST and form.lower() not in stop_words():
                names.add(form, node)
    heads, tails = [], []
    for index, text in enumerate(texts):
        found = {node for match in names.find(text) for node in match.meanings if _meant(text[match.start : match.end])}
        heads += [index] * len(found)
        tails += sorted(found)
    if not tails:
        return Tables((), ())
    mentioned = NodeSet.of(tails)
    rows = columns.take(pa.array(mentioned.array))
    types = [kb.type_of(node) for node in mentioned]
    nodes = pa.table({name: rows[name] for name in ("key", "name", "aliases", "text")}).append_column(
        "type", pa.array(types, STRING)
    )
    links = pa.table(
        {
            "head": keys.take(pa.array(heads, pa.int64())),
            "relation": pa.repeat(pa.scalar("mentions", STRING), len(heads)),
            "tail": columns["key"].take(pa.array(tails, pa.int64())),
        }
    )
    pieces = [Piece(links, str(base))]
    edges = kb.edges(mentioned, direction="out")
    inside = np.isin(edges.tails, mentioned.array)
    if inside.any():
        relations = [kb.schema.relation_names[code] for code in edges.relations[inside].tolist()]
        own = {
            "head": columns["key"].take(pa.array(edges.heads[inside])),
            "relation": pa.array(relations, STRING),
            "tail": columns["key"].take(pa.array(edges.tails[inside])),
        }
        pieces.append(Piece(pa.table(own), str(base)))
    return Tables((Piece(nodes, str(base)),), tuple(pieces))


def _meant(written: str) -> bool:
    """Return whether a match is a name. Short words must be capitalised."""
    return len(written) > 4 or not written.islower()


def passage_graph(
    names: Sequence[str],
    texts: Sequence[str],
    documents: IntArray,
    *,
    titles: Sequence[tuple[str, int]],
    owners: Sequence[Sequence[int]],
    options: EdgeOptions,
    embedder: Embedder | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[PassageEdges]:
    """Build the edges of each kind. Mentions connect a passage to targets by title, except to its own targets."""
    built = []
    whole = [f"{name}. {text}" for name, text in zip(names, texts, strict=True)]
    for kind in dict.fromkeys(options.kinds):
        say(f"{kind} edges")
        if kind == "tfidf":
            built.append(tfidf_edges(pa.array(texts, pa.large_string()), documents, options))
        elif kind == "entity":
            built.append(entity_edges(_titled_once(names, texts, documents), documents.tolist(), options))
        elif kind == "mentions":
            built.append(mention_edges(texts, owners, titles))
        else:
            if embedder is None:
                raise InputError(f"{kind} edges need an embedder: add --embedder, or omit them")
            vectors = embedder.embed(whole, role="document")
            asked = [asking_on(name, text) for name, text in zip(names, texts, strict=True)] if kind == "mdr" else []
            asking = embedder.embed(asked, role="query") if asked else None
            built.append(nearest_edges(np.asarray(vectors), kind, options.nearest, asking))
    return built


def _titled_once(names: Sequence[str], texts: Sequence[str], documents: IntArray) -> list[str]:
    """Prepend the title to the first passage of each document only. Otherwise it would connect all passages."""
    first = np.append(True, documents[1:] != documents[:-1])
    return [f"{name}. {text}" if titled else text for name, text, titled in zip(names, texts, first, strict=True)]
