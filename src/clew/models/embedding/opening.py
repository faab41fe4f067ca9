"""From a spec on the command line to an embedder.

minilm                          the one that ships in the package (the default)
passages                        the one that ships for documents: trained to find what answers a question
multilingual                    multilingual-e5-small, a hundred languages (needs the extra `languages`)
openai:text-embedding-3-small   OpenAI's API, key in OPENAI_API_KEY
http://127.0.0.1:8080/v1#nomic  any OpenAI-compatible endpoint, model name after the #
FOLDER                          what `clew train` wrote, or an ONNX or sentence-transformers folder
hash                            a fake without a model, for tests and trials
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import InputError, UntrustedEmbedder
from clew.models.embedding.multilingual import MULTILINGUAL, MultilingualEmbedder
from clew.models.embedding.onnx import OnnxEmbedder, find_onnx
from clew.models.embedding.passage_embedder import ENCODER, PassageEmbedder
from clew.models.protocol import Embedder

if TYPE_CHECKING:
    from clew.models.settings import Settings


class HashEmbedder:
    """Deterministic and instant, for tests and examples."""

    def __init__(self, dimension: int = 64, name: str | None = None) -> None:
        self.dimension = dimension
        self.name = name or f"hash-{dimension}"
        self.embedded = 0
        """How many texts were embedded so far: tests count the work with it."""

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:  # noqa: ARG002
        """One unit vector per text."""
        self.embedded += len(texts)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            total = np.zeros(self.dimension)
            for word in text.casefold().split() or [""]:
                total += self._signs(word)
            length = float(np.linalg.norm(total))
            vectors[row] = total / length if length else self._signs("\0" + text) / np.sqrt(self.dimension)
        return vectors

    def _signs(self, word: str) -> NDArray[np.float64]:
        return _signs_of(self.name, self.dimension, word)


@lru_cache(maxsize=50_000)  # a seeded generator costs far more than a sum of signs
def _signs_of(name: str, dimension: int, word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(f"{name}\0{word}".encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), dimension)


class CachedEmbedder:
    """Keeps the most recently used query vectors in memory; documents pass through, since vector indexes keep those."""

    def __init__(self, embedder: Embedder, size: int = 10_000) -> None:
        self.embedder = embedder
        self.size = size
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.embedder.dimension

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """One unit vector per text, computed only where it is not remembered."""
        if role == "document":
            return self.embedder.embed(texts, role=role)
        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, self.embedder.embed(missing, role=role), strict=True))
        with self._lock:
            for text in dict.fromkeys(texts):
                self._kept[text] = known[text]
                self._kept.move_to_end(text)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([known[text] for text in texts])


DEFAULT, PASSAGES = "minilm", "passages"
SHIPPED = frozenset({DEFAULT, PASSAGES, MULTILINGUAL, "hash"})
"""Embedders that come with Clew or one of its extras: they speak to no host and open no file of a base."""
REMOTE_EMBEDDERS = ("openai:", "http://", "https://")
EXPECTED = "minilm, passages, multilingual, openai:NAME, http://HOST/v1#NAME or a folder with model.onnx or safetensors"


def trusted_embedder(remembered: str | None, base: object) -> str:
    """The embedder that a base may have opened at its own word: one that ships, or one that the user has named.

    A base comes from anywhere. A host that it names would be sent the words of every question, and the user's key.
    """
    spec = remembered or DEFAULT
    if spec in SHIPPED:
        return spec
    from clew.models.settings import Settings

    settings = Settings.load()
    if spec in settings.embedders:
        return spec
    raise UntrustedEmbedder(
        f"the vectors of {base} come from {spec!r}, which only the base names, so nothing was sent there or opened. If "
        f"you trust it, say `--embedder {spec}`, set CLEW_EMBEDDER, or list it under `embedders` in "
        f"{settings.config_file}; otherwise `clew embed {base} --embedder {DEFAULT}` computes vectors here"
    )


def open_embedder(spec: str | None = None, *, threads: int | None = None, settings: Settings | None = None) -> Embedder:
    """The embedder a spec names; models are loaded at their first use."""
    spec = spec or DEFAULT
    if spec == DEFAULT:
        return OnnxEmbedder.bundled(threads=threads)
    if spec == PASSAGES:
        return PassageEmbedder(threads=threads)
    if spec == MULTILINGUAL:
        return MultilingualEmbedder()
    if spec == "hash":
        return HashEmbedder()
    if spec.startswith(REMOTE_EMBEDDERS):
        return _remote(spec, settings)
    folder = Path(spec).expanduser()
    if not folder.is_dir():
        raise InputError(f"no embedder {spec!r}: expected {EXPECTED}")
    if (folder / ENCODER).is_file():
        return PassageEmbedder(folder, threads=threads)
    if find_onnx(folder):
        return OnnxEmbedder.open(folder, threads=threads)
    from clew.models.embedding.sentence_transformers import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(folder)


def _remote(spec: str, settings: Settings | None) -> Embedder:
    from clew.models.embedding.endpoint import EndpointEmbedder  # what ships needs no client of HTTP
    from clew.models.settings import Settings

    settings = settings or Settings.load()
    if spec.startswith("openai:"):
        return EndpointEmbedder(settings.openai_url, spec.removeprefix("openai:"), settings.openai_key())
    base_url, _, model = spec.partition("#")
    if not urlsplit(base_url).hostname or not model:
        raise InputError(f"{spec!r}: expected a URL and, after #, a model's name: http://127.0.0.1:8080/v1#nomic")
    base_url = base_url.rstrip("/")
    return EndpointEmbedder(base_url, model, settings.embedder_key(base_url))
