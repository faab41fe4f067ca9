"""Embedders for ONNX encoders, without torch and without a model hub.

The word vectors and the tokenizer of the bundled embedder `minilm` also serve the other trained encoders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.disk import file_sha256
from clew.core.errors import ModelError
from clew.core.texts import parse_json, whole_text
from clew.models.onnx_runtime import open_session

Pooling = Literal["mean", "cls"]
BUNDLED = Path(__file__).parent / "minilm"
DIMENSION = 384
"""Length of the bundled embedder's word vectors, which the networks share."""
FIRST_TOKEN, LAST_TOKEN = 101, 102
"""Ids of [CLS] and [SEP] in the vocabulary of BERT."""


@dataclass(frozen=True)
class Card:
    """Settings of an ONNX embedder: files, token limit and pooling."""

    model: Path
    tokenizer: Path
    name: str
    dimension: int
    max_tokens: int = 256
    pooling: Pooling = "mean"
    prompts: dict[str, str] = field(default_factory=dict)
    """Prefix for every query or document, by role."""
    graph: Path | None = None
    """The network as optimised by onnxruntime, which opens in half the time. Its weights are in `model`."""
    size: int | None = None
    digest: str | None = None

    def check_size(self) -> None:
        """Raise ModelError if the file is missing or truncated. Cheap enough for every load."""
        if not self.model.is_file():
            raise ModelError(f"{self.model} is missing: reinstall the package or name another embedder")
        found = self.model.stat().st_size
        if self.size is not None and found != self.size:
            raise ModelError(f"{self.model} has {found} bytes, expected {self.size}: reinstall the package")

    def check_digest(self) -> None:
        """Raise ModelError if the file was altered. Reads the whole file."""
        self.check_size()
        found = file_sha256(self.model)
        if self.digest is not None and found != self.digest:
            raise ModelError(f"{self.model} has digest {found}, expected {self.digest}: reinstall the package")


def bundled_card() -> Card:
    """Return the card of the bundled embedder: all-MiniLM-L6-v2, int8."""
    told = read_settings(BUNDLED / "embedder.json")
    model, graph, tokenizer = (BUNDLED / name for name in ("model.onnx", "graph.onnx", "tokenizer.json"))
    return Card(model=model, graph=graph, tokenizer=tokenizer, **told)


def find_onnx(folder: Path) -> Path | None:
    """Return the ONNX file at one of its usual paths in a folder, or None."""
    return next((place for place in (folder / "model.onnx", folder / "onnx" / "model.onnx") if place.is_file()), None)


def folder_card(folder: Path) -> Card:
    """Return the card of a model exported as a sentence-transformers folder with model.onnx and tokenizer.json."""
    model, tokenizer = find_onnx(folder), folder / "tokenizer.json"
    if model is None or not tokenizer.is_file():
        raise ModelError(f"{folder} contains no embedder: expected model.onnx (or onnx/model.onnx) and tokenizer.json")
    dimension = read_settings(folder / "config.json").get("hidden_size")
    if not isinstance(dimension, int):
        raise ModelError(f"{folder / 'config.json'} lacks hidden_size: add the length of a vector")
    pooling = read_settings(folder / "1_Pooling" / "config.json")
    if pooling and not (pooling.get("pooling_mode_mean_tokens") or pooling.get("pooling_mode_cls_token")):
        raise ModelError(f"{folder} uses unsupported pooling: expected the mean or the first token")
    return Card(
        model=model,
        tokenizer=tokenizer,
        name=f"{folder.resolve().name}@{file_sha256(model)[:12]}",
        dimension=dimension,
        max_tokens=int(read_settings(folder / "sentence_bert_config.json").get("max_seq_length") or 256),
        pooling="cls" if pooling.get("pooling_mode_cls_token") else "mean",
        prompts=dict(read_settings(folder / "config_sentence_transformers.json").get("prompts") or {}),
    )


def read_settings(file: Path) -> dict[str, Any]:
    """Read a JSON file of settings. Return an empty dict if it does not exist."""
    if not file.is_file():
        return {}
    try:
        told = parse_json(file.read_text("utf-8"))
    except ValueError as error:
        raise ModelError(f"{file} is not JSON: {error}") from error
    return told if isinstance(told, dict) else {}


def tokenizer_of(file: Path, longest: int | None) -> Any:
    """Open a tokenizer without padding, and truncate to `longest` tokens unless it is None."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    if longest is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(longest)
    return tokenizer


kept_tokenizer = cache(tokenizer_of)
"""Cached `tokenizer_of`, which reads each file once per process."""


def embedders_tokenizer() -> Any:
    """Return the embedder's cached tokenizer, which truncates texts to the embedder's limit."""
    card = bundled_card()
    return kept_tokenizer(card.tokenizer, card.max_tokens)


def cut(ids: Sequence[int], longest: int) -> Sequence[int]:
    """Truncate a text to `longest` tokens, including the end token."""
    return ids if len(ids) <= longest else [*ids[: longest - 1], LAST_TOKEN]


def open_tokenizer(longest: int | None = None) -> Any:
    """Open the embedder's tokenizer without padding, and truncate to `longest` tokens if it is given."""
    return tokenizer_of(BUNDLED / "tokenizer.json", longest)


@dataclass(frozen=True)
class SharedWords:
    """The table of word vectors inside the embedder's file. `told` contains its offset, size and scale."""

    told: Mapping[str, Any]

    def vectors(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return one row per token."""
        found = (self._table[np.asarray(ids)].astype(np.float32) - self.told["zero"]) * np.float32(self.told["scale"])
        return np.asarray(found, dtype=np.float32)

    @cached_property
    def _table(self) -> NDArray[np.uint8]:
        return np.memmap(BUNDLED / "model.onnx", np.uint8, "r", self.told["offset"], (self.told["rows"], DIMENSION))


CHARACTERS_PER_TOKEN = 16  # far more than any language needs. Tokenising 10 MB for 256 tokens takes seconds


class OnnxEmbedder:
    """Embedder that runs single texts in parallel threads.

    Batches are no faster on a CPU, and the scales of dynamic int8 activations depend on the whole batch. Single texts
    give each text the same vector, independent of the other texts.
    """

    def __init__(self, card: Card, *, threads: int | None = None) -> None:
        """Set the threads, by default one per processor. The model loads on first use."""
        self.card = card
        self.threads = threads or os.cpu_count() or 1

    @property
    def name(self) -> str:
        """Identifier of the embedder. Vectors of different embedders are not comparable."""
        return self.card.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.card.dimension

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text, and compute equal texts once."""
        prompt = self.card.prompts.get(role, "")
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(prompt + text, []).append(place)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        # Longest first, so that the threads finish at about the same time.
        distinct = sorted(places, key=len, reverse=True)
        if len(distinct) == 1 or self.threads == 1:
            found = [self._embed_one(text) for text in distinct]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                found = list(pool.map(self._embed_one, distinct))
        for text, vector in zip(distinct, found, strict=True):
            vectors[places[text]] = vector
        return vectors

    def _embed_one(self, text: str) -> NDArray[np.float32]:
        encoding = self._tokenizer.encode(whole_text(text[: self.card.max_tokens * CHARACTERS_PER_TOKEN]))
        states = self._session.run(None, self._fed(encoding))[0][0]
        if states.ndim == 2:
            states = states[0] if self.card.pooling == "cls" else states.mean(axis=0)
        length = np.sqrt(np.square(states, dtype=np.float64).sum())  # in float64: float32 sums depend on the CPU
        return np.asarray(states / max(float(length), 1e-12), dtype=np.float32)

    def _fed(self, encoding: Any) -> dict[str, Any]:
        """Return the model's inputs for a text."""
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        return {name: np.array([inputs[name]], dtype=np.int64) for name in self._input_names}

    @cached_property
    def _session(self) -> Any:
        self.card.check_size()
        return open_session(self.card.graph or self.card.model)  # takes 50 to 100 ms, so only when needed

    @cached_property
    def _input_names(self) -> tuple[str, ...]:
        return tuple(wanted.name for wanted in self._session.get_inputs())

    @cached_property
    def _tokenizer(self) -> Any:
        return kept_tokenizer(self.card.tokenizer, self.card.max_tokens)


SHIPPED_PASSAGES = Path(__file__).parent / "passages"
ENCODER, CARD = "encoder.onnx", "card.json"
QUESTIONS = "questions"
"""Name of the second encoder's file, and of its digest on the card."""
MOST_KNOWN = 220
"""Maximum characters of known text added to a question. The encoder was trained on one or two sentences."""


def asking_on(question: str, known: str) -> str:
    """Return the search text for the next passage: the question and the known text."""
    return f"{question} ; {known[:MOST_KNOWN]}"


class SharedWordsEmbedder(OnnxEmbedder):
    """An encoder over the bundled word vectors, whose file is checked against its digest on opening."""

    def __init__(self, card: Card, words: SharedWords, *, threads: int | None = None) -> None:
        super().__init__(card, threads=threads)
        self._words = words

    def _fed(self, encoding: Any) -> dict[str, Any]:
        return {"vectors": self._words.vectors(encoding.ids)[None], "types": np.zeros((1, len(encoding.ids)), np.int64)}

    @cached_property
    def _session(self) -> Any:
        self.card.check_digest()  # reads 11 MB once per process
        return super()._session


class PassageEmbedder(SharedWordsEmbedder):
    """Embedder from weights of `clew train`, by default those that find the passages that answer a question.

    The bundled weights are fine-tuned from `minilm` (ORIGIN.md in their folder). One encoder reads questions and
    passages: a question is close to its passage, and a question plus the text of one passage is close to the next
    passage (MDR's two hops). Weights of `clew train dense_retriever` have a second encoder for questions (DPR), which
    is used if the card has its digest.
    """

    def __init__(self, folder: Path = SHIPPED_PASSAGES, *, threads: int | None = None) -> None:
        """Open a folder with card.json, encoder.onnx and optionally questions.onnx."""
        told = read_settings(folder / CARD)
        digest, asking = told.get("digest"), told.get(QUESTIONS)
        if not isinstance(digest, str) or not isinstance(told.get("words"), dict):
            raise ModelError(f"{folder / CARD} lacks `digest` or `words`: expected a card written by `clew train`")
        name = f"passages-{digest[:12]}" if asking is None else f"dense-{digest[:12]}-{str(asking)[:12]}"
        words, tokenizer = SharedWords(told["words"]), BUNDLED / "tokenizer.json"
        super().__init__(Card(folder / ENCODER, tokenizer, name, DIMENSION, digest=digest), words, threads=threads)
        self._of_questions = None
        if asking is not None:
            card = Card(folder / f"{QUESTIONS}.onnx", tokenizer, name, DIMENSION, digest=str(asking))
            self._of_questions = SharedWordsEmbedder(card, words, threads=threads)

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text, using the second encoder for questions if there is one."""
        if role == "query" and self._of_questions is not None:
            return self._of_questions.embed(texts, role=role)
        return super().embed(texts, role=role)
