"""Embedder for OpenAI-compatible `/embeddings` endpoints: OpenAI, vLLM, Ollama, llama.cpp, LM Studio."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import ModelError, ReplyError
from clew.models.model_names import name_at
from clew.models.openai_chat import SHOWN_ERROR, TRANSIENT
from clew.models.settings import NO_KEY, Secret

if TYPE_CHECKING:
    import httpx

LONGEST = 24_000
"""Maximum characters of a text: about the 8,192 tokens that such endpoints accept."""


@dataclass(frozen=True)
class EndpointEmbedder:
    """An embedding model at a base URL. Sends texts in batches and retries transient failures."""

    base_url: str
    model: str
    key: Secret = NO_KEY
    batch: int = 64
    attempts: int = 4
    seconds: float = 120.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The model's name with its host."""
        return name_at(self.model, self.base_url)

    @cached_property
    def dimension(self) -> int:
        """Length of a vector. The first access asks the server."""
        return len(self.embed(["dimension"], role="query")[0])

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:  # noqa: ARG002
        """Return one unit vector per text."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        wanted = [text[:LONGEST] or " " for text in texts]  # many servers reject empty texts
        parts = [self._embed(wanted[start : start + self.batch]) for start in range(0, len(wanted), self.batch)]
        vectors = np.concatenate(parts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        for attempt in range(1, self.attempts + 1):
            reply, failure = self._post(texts)
            if reply is not None:
                return self._read(reply, len(texts))
            if attempt < self.attempts:
                self.sleep(0.5 * 2**attempt)
        raise ModelError(failure)

    def _post(self, texts: list[str]) -> tuple[Any, str]:
        """Return the reply, or None and the reason to retry. Raise ModelError if a retry is useless."""
        import httpx

        headers = {} if self.key is NO_KEY else {"Authorization": f"Bearer {self.key.reveal()}"}
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        try:
            reply = self._client.post(f"{self.base_url}/embeddings", json=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            return None, f"{self.base_url}: {self.key.hide_in(str(failure) or type(failure).__name__)}"
        if reply.status_code == 200:
            return reply, ""
        message = f"{self.base_url} answered {reply.status_code}: {self.key.hide_in(reply.text[:SHOWN_ERROR])}"
        if reply.status_code not in TRANSIENT:
            raise ModelError(message)
        return None, message

    def _read(self, reply: Any, count: int) -> NDArray[np.float32]:
        try:
            rows = sorted(reply.json()["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, KeyError, TypeError) as failure:
            raise ReplyError(f"{self.base_url}: not a list of embeddings ({failure})") from None
        if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
            raise ReplyError(f"{self.base_url}: {len(vectors)} embeddings for {count} texts")
        return vectors

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        client = httpx.Client(timeout=self.seconds, verify=self.base_url.startswith("https:"))
        weakref.finalize(self, client.close)
        return client
