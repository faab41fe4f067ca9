"""Store a ranker as a folder that is safe to share: JSON, plain arrays and ONNX, without code.

    model/ranker.json     kind, features, embedder, schema, data card, the size and SHA-256 of every other file
    model/*.npy           the arrays of a linear model or of trees
    model/model.onnx, tokenizer.json     a neural ranker

The file contains the schema of the training base, because on a base with another schema its columns have another
meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from clew.answering.methods.subgraph_reranking import rankers
from clew.answering.methods.subgraph_reranking.features import FeaturePipeline, FloatArray
from clew.core.array_files import read_array
from clew.core.disk import file_sha256, refuse_foreign
from clew.core.errors import CorruptError, EmbedderMismatch, FormatError, InputError, NotFoundError
from clew.core.schema import Schema, refuse_other_schema
from clew.core.texts import parse_json
from clew.models.protocol import Embedder
from clew.store.graph.manifest import seal

FORMAT = 1
"""Version of the files of a ranker. Newer versions are rejected."""
MANIFEST = "ranker.json"
Kind = Literal["linear", "logistic", "catboost", "neural"]
Texts = Literal["facts", "model"]
"""Text form of subgraphs: fact by fact, or written by a model."""
LINEAR_ARRAYS = ("mean", "scale", "weights")
TREE_ARRAYS = ("features", "borders", "leaves")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int
    sha256: str


class RankerCard(BaseModel):
    """Manifest of a ranker's folder."""

    model_config = ConfigDict(extra="forbid")
    format: int = FORMAT
    kind: Kind
    features: tuple[str, ...]
    """Feature groups of a tabular ranker. For a neural ranker `text`, `g2t` and `highlight`."""
    embedder: str
    """Name of the embedder. Empty for a neural ranker, which contains its own encoder."""
    node_types: tuple[str, ...]
    relations: tuple[tuple[str, str, str], ...]
    texts: Texts = "facts"
    usable: bool = True
    """Whether it ranked held-out questions at least as well as the source of their candidates."""
    numbers: dict[str, float] = {}
    """Intercept, scale, bias, the number of tokens."""
    data: dict[str, Any] = {}
    """The data card: questions, split, source of candidates, settings, seed, scores, importance."""
    files: dict[str, _File] = {}


@dataclass(frozen=True, eq=False)
class RankerParts:
    """A trained ranker before saving: its card, arrays, and existing files."""

    card: RankerCard
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def save_ranker(folder: Path, parts: RankerParts) -> RankerCard:
    """Write a ranker. The manifest stays empty until all files exist, so that an incomplete ranker is invalid."""
    refuse_foreign(folder, (MANIFEST,), "ranker", "name a new folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text("", "utf-8")
    for name, array in parts.arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    for name, content in parts.files.items():
        (folder / name).write_bytes(content)
    names = [*(f"{name}.npy" for name in parts.arrays), *parts.files]
    files = {name: _File(size=(folder / name).stat().st_size, sha256=file_sha256(folder / name)) for name in names}
    card = parts.card.model_copy(update={"files": files})
    body = card.model_dump(mode="json")
    text = json.dumps({**body, "digest": seal(body)}, ensure_ascii=False, indent=1, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n", "utf-8")
    return card


def read_card(folder: Path) -> RankerCard:
    """Read and check the manifest of a ranker and the digests of its files."""
    file = folder / MANIFEST
    try:
        raw = parse_json(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"{folder} does not contain a ranker (no {MANIFEST}): train one with `clew train ranker`"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CorruptError(f"{file} is damaged ({error}): train the ranker again") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("format"), int):
        raise CorruptError(f"{file} is not the manifest of a ranker")
    if raw["format"] > FORMAT:
        raise FormatError(f"{folder} has format {raw['format']}, this version reads up to {FORMAT}: upgrade clew")
    digest = raw.pop("digest", None)
    if digest != seal(raw):
        raise CorruptError(f"{file} was altered (its digest differs): train the ranker again, or get it again")
    try:
        card = RankerCard.model_validate(raw)
    except ValidationError as error:
        raise CorruptError(f"{file} is not the manifest of a ranker: {error}") from error
    for name, facts in card.files.items():
        _check_file(folder, name, facts)
    return card


def load_ranker(folder: Path, schema: Schema, embedder: Embedder, *, judged: bool = True) -> rankers.Ranker:
    """Load a ranker after checking its files, schema and embedder.

    With `judged`, reject a ranker that ranked worse than the source of its candidates.
    """
    card = read_card(folder)
    if judged and not card.usable:
        raise InputError(
            f"the ranker in {folder} ranked held-out questions worse than the source of their candidates did: "
            "train it on more questions or other features, or use ranker=match or ranker=none"
        )
    what = f"the ranker in {folder}"
    refuse_other_schema(
        what, card.node_types, card.relations, schema, "train one for this base with `clew train ranker`"
    )
    if card.embedder and card.embedder != embedder.name:
        raise EmbedderMismatch(
            f"the ranker in {folder} reads vectors of {card.embedder}, and this base uses {embedder.name}: "
            "train it again with this embedder"
        )
    name = f"{card.kind} ranker"
    if card.kind == "neural":
        scorer = rankers.OnnxScorer(folder / "model.onnx", folder / "tokenizer.json", int(card.numbers["tokens"]))
        return rankers.NeuralRanker(name, scorer, graph="g2t" in card.features, marked="highlight" in card.features)
    pipeline = FeaturePipeline(card.features, embedder)
    columns = len(pipeline.columns)
    if card.kind == "catboost":
        features, borders, leaves = (_array(folder, part) for part in TREE_ARRAYS)
        _require(folder, features.shape == borders.shape and bool(((features >= 0) & (features < columns)).all()))
        _require(folder, leaves.shape == (len(features), 1 << features.shape[1]))
        trees = rankers.ObliviousTrees(
            features.astype(np.int32), borders, leaves, card.numbers["scale"], card.numbers["bias"]
        )
        return rankers.FeatureRanker(name, pipeline, trees)
    mean, scale, weights = (_array(folder, part) for part in LINEAR_ARRAYS)
    _require(folder, mean.shape == scale.shape == weights.shape == (columns,))
    model = rankers.LinearModel(mean, scale, weights, card.numbers["intercept"], card.kind == "logistic")
    return rankers.FeatureRanker(name, pipeline, model)


def _check_file(folder: Path, name: str, facts: _File) -> None:
    file = folder / name
    if Path(name).name != name or not file.is_file():
        raise CorruptError(f"{file} is missing or is outside the ranker's folder: get the ranker again")
    if file.stat().st_size != facts.size or file_sha256(file) != facts.sha256:
        raise CorruptError(f"{file} was cut or altered (its digest differs): train the ranker again, or get it again")


def _array(folder: Path, name: str) -> FloatArray:
    try:
        array: FloatArray = read_array((folder / f"{name}.npy").read_bytes()).astype(np.float64)
    except (OSError, ValueError) as error:
        raise CorruptError(f"{name}.npy in {folder} is not a plain array ({error}): train the ranker again") from error
    return array


def _require(folder: Path, holds: bool) -> None:
    if not holds:
        raise CorruptError(f"the arrays in {folder} do not fit its features: train the ranker again")
