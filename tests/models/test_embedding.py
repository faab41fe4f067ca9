"""The embedder in the package, and the wrappers and fakes around it."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from clew.core.disk import file_sha256
from clew.core.errors import ModelError
from clew.models.embedding.onnx import BUNDLED, OnnxEmbedder, bundled_card
from clew.models.embedding.opening import CachedEmbedder, HashEmbedder
from conftest import TESTS

REFERENCE = json.loads((TESTS / "data" / "minilm_reference.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder(bundled_card(), threads=2)


def test_the_shipped_file_is_the_one_its_card_and_origin_name():
    bundled_card().check_digest()
    origin = (BUNDLED / "ORIGIN.md").read_text("utf-8")
    for file in ("model.onnx", "graph.onnx", "tokenizer.json"):
        assert f"| {file} | {(BUNDLED / file).stat().st_size} | `{file_sha256(BUNDLED / file)}` |" in origin


def test_int8_vectors_are_near_those_of_the_float_model(embedder: OnnxEmbedder):
    vectors = embedder.embed(REFERENCE["texts"], role="document")
    cosines = (vectors * np.array(REFERENCE["vectors"])).sum(axis=1)
    assert cosines.min() > 0.98
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_optimised_graph_gives_the_vectors_of_the_model(embedder: OnnxEmbedder):
    plain = OnnxEmbedder(dataclasses.replace(bundled_card(), graph=None))
    texts = [*REFERENCE["texts"], "", "word " * 400]
    assert np.array_equal(embedder.embed(texts, role="document"), plain.embed(texts, role="document"))


def test_a_text_has_the_same_vector_alone_and_in_any_company(embedder: OnnxEmbedder):
    texts = [*REFERENCE["texts"], "Marfan syndrome"]
    together = embedder.embed(texts, role="document")
    alone = np.concatenate([embedder.embed([text], role="document") for text in texts])
    assert np.array_equal(together, alone)
    assert embedder.embed([], role="query").shape == (0, 384)


def test_ten_megabytes_of_text_are_no_trouble(embedder: OnnxEmbedder):
    assert np.isfinite(embedder.embed(["word " * 2_000_000], role="document")).all()


def test_a_cut_model_file_is_refused(tmp_path: Path):
    cut = tmp_path / "model.onnx"
    cut.write_bytes((BUNDLED / "model.onnx").read_bytes()[:-1])
    with pytest.raises(ModelError, match="expected 22919476"):
        OnnxEmbedder(dataclasses.replace(bundled_card(), model=cut)).embed(["x"], role="query")


def test_query_vectors_are_remembered_and_the_oldest_forgotten():
    counted = HashEmbedder()
    cached = CachedEmbedder(counted, size=2)
    first = cached.embed(["a", "b", "a"], role="query")
    assert counted.embedded == 2
    assert np.array_equal(first, HashEmbedder().embed(["a", "b", "a"], role="query"))
    cached.embed(["c"], role="query")
    cached.embed(["b", "c"], role="query")
    assert counted.embedded == 3
    cached.embed(["a"], role="query")
    assert counted.embedded == 4
    assert cached.embed([], role="query").shape == (0, 64)


def test_hash_vectors_are_near_where_words_are_shared():
    question, near, far = HashEmbedder(256).embed(["long fingers", "very long fingers", "lens"], role="query")
    assert question @ near > 0.7 > 0.3 > question @ far
