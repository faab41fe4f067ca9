"""From a spec on the command line to an embedder.

minilm                          the one that ships in the package (the default)
openai:text-embedding-3-small   OpenAI's API, key in OPENAI_API_KEY
http://127.0.0.1:8080/v1#nomic  any OpenAI-compatible endpoint, model name after the #
FOLDER                          an ONNX or sentence-transformers folder
hash                            a fake without a model, for tests and trials
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from clew.errors import InputError, UntrustedEmbedder
from clew.models.embedding.card import find_onnx
from clew.models.embedding.endpoint import EndpointEmbedder
from clew.models.embedding.hashed import HashEmbedder
from clew.models.embedding.onnx import OnnxEmbedder
from clew.models.embedding.sentence_transformers import SentenceTransformersEmbedder
from clew.models.protocol import Embedder
from clew.models.settings import Settings

DEFAULT = "minilm"
SHIPPED = frozenset({DEFAULT, "hash"})
"""Embedders that are part of Clew: they speak to no host and open no file outside of it."""
REMOTE_EMBEDDERS = ("openai:", "http://", "https://")
EXPECTED = "minilm, openai:NAME, http://HOST/v1#NAME, hash or a folder with model.onnx or *.safetensors"


def trusted_embedder(remembered: str | None, base: object) -> str:
    """The embedder that a base may have opened at its own word: one that ships, or one that the user has named.

    A base comes from anywhere. A host that it names would be sent the words of every question, and the user's key.
    """
    spec = remembered or DEFAULT
    if spec in SHIPPED:
        return spec
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
    if spec == "hash":
        return HashEmbedder()
    if spec.startswith("openai:"):
        settings = settings or Settings.load()
        return EndpointEmbedder(settings.openai_url, spec.removeprefix("openai:"), settings.openai_key())
    if spec.startswith(("http://", "https://")):
        base_url, _, model = spec.partition("#")
        if not urlsplit(base_url).hostname or not model:
            raise InputError(f"{spec!r}: expected a URL and, after #, a model's name: http://127.0.0.1:8080/v1#nomic")
        base_url = base_url.rstrip("/")
        return EndpointEmbedder(base_url, model, (settings or Settings.load()).embedder_key(base_url))
    folder = Path(spec).expanduser()
    if not folder.is_dir():
        raise InputError(f"no embedder {spec!r}: expected {EXPECTED}")
    return OnnxEmbedder.open(folder, threads=threads) if find_onnx(folder) else SentenceTransformersEmbedder(folder)
