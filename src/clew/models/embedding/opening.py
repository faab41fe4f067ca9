"""Opening of embedders by a spec from the command line.

minilm                          the bundled embedder (the default)
passages                        the bundled embedder for documents, trained to find passages that answer a question
multilingual                    multilingual-e5-small, a hundred languages (needs the extra `languages`)
openai:text-embedding-3-small   OpenAI's API, key in OPENAI_API_KEY
http://127.0.0.1:8080/v1#nomic  any OpenAI-compatible endpoint, model name after the #
FOLDER                          a folder written by `clew train`, or an ONNX or sentence-transformers folder
hash                            a fake without a model, for tests and trials
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from clew.core.disk import file_sha256
from clew.core.errors import InputError, ModelError, UntrustedEmbedder, needing
from clew.models.embedding.multilingual import MULTILINGUAL, MultilingualEmbedder
from clew.models.embedding.onnx import ENCODER, OnnxEmbedder, PassageEmbedder, bundled_card, find_onnx, folder_card
from clew.models.protocol import Embedder
from clew.models.settings import Settings


class HashEmbedder:
    """Deterministic and fast embedder for tests and examples."""

    def __init__(self, dimension: int = 64, name: str | None = None) -> None:
        self.dimension = dimension
        self.name = name or f"hash-{dimension}"
        self.embedded = 0
        """Number of texts embedded so far, for tests that count the work."""

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:  # noqa: ARG002
        """Return one unit vector per text."""
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


@lru_cache(maxsize=50_000)  # seeding a generator takes far longer than adding signs
def _signs_of(name: str, dimension: int, word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(f"{name}\0{word}".encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), dimension)


class SentenceTransformersEmbedder:
    """Embedder that loads on first use, on the device that torch selects. The folder defines prompts by role."""

    def __init__(self, folder: Path, *, batch: int = 32) -> None:
        self.folder, self.batch = folder, batch
        self._lock = Lock()
        weights = next(iter(sorted(folder.glob("*.safetensors"))), None)
        if weights is None:
            raise ModelError(f"{folder} contains no embedder: expected model.onnx, or *.safetensors for torch")
        self.name = f"{folder.resolve().name}@{file_sha256(weights)[:12]}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return len(self.embed(["dimension"], role="query")[0])

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        prompt = role if role in self._model.prompts else None
        with self._lock:
            vectors = self._model.encode(
                list(texts),
                prompt_name=prompt,
                batch_size=self.batch,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
        with needing("train"):
            from sentence_transformers import SentenceTransformer
        return SentenceTransformer(str(self.folder))


class CachedEmbedder:
    """In-memory cache of recently used query vectors. Vector indexes already store the document vectors."""

    def __init__(self, embedder: Embedder, size: int = 10_000) -> None:
        self.embedder = embedder
        self.size = size
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Name of the wrapped embedder."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.embedder.dimension

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text, and compute only query vectors that are not cached."""
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
"""Embedders of Clew and its extras, which contact no host and open no file of a base."""
REMOTE_EMBEDDERS = ("openai:", "http://", "https://")
EXPECTED = "minilm, passages, multilingual, openai:NAME, http://HOST/v1#NAME or a folder with model.onnx or safetensors"


def trusted_embedder(remembered: str | None, base: object) -> str:
    """Return the embedder that a base names, if it ships with Clew or the user has approved it.

    A base may be untrusted, and a host that it names would receive every question and the user's key.
    """
    spec = remembered or DEFAULT
    if spec in SHIPPED:
        return spec
    settings = Settings.load()
    if spec in settings.embedders:
        return spec
    raise UntrustedEmbedder(
        f"the vectors of {base} come from {spec!r}, which only the base names, so Clew has not used it: if you trust "
        f"it, add `--embedder {spec}`, set CLEW_EMBEDDER, or list it under `embedders` in {settings.config_file}. "
        f"Otherwise compute new vectors with `clew embed {base} --embedder {DEFAULT}`"
    )


def open_embedder(spec: str | None = None, *, threads: int | None = None, settings: Settings | None = None) -> Embedder:
    """Open the embedder of a spec. Its model loads on first use."""
    spec = spec or DEFAULT
    if spec == DEFAULT:
        return OnnxEmbedder(bundled_card(), threads=threads)
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
        return OnnxEmbedder(folder_card(folder), threads=threads)
    return SentenceTransformersEmbedder(folder)


def _remote(spec: str, settings: Settings | None) -> Embedder:
    from clew.models.embedding.endpoint import EndpointEmbedder  # bundled embedders need no HTTP client

    settings = settings or Settings.load()
    if spec.startswith("openai:"):
        return EndpointEmbedder(settings.openai_url, spec.removeprefix("openai:"), settings.openai_key())
    base_url, _, model = spec.partition("#")
    if not urlsplit(base_url).hostname or not model:
        raise InputError(f"{spec!r}: expected URL#MODEL, such as http://127.0.0.1:8080/v1#nomic")
    base_url = base_url.rstrip("/")
    return EndpointEmbedder(base_url, model, settings.embedder_key(base_url))
