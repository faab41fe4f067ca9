"""Embedders other than the one in the package: endpoints over loopback, local folders, specs."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from chat_server import Handler, serving
from clew.core.errors import InputError, ModelError, ReplyError
from clew.models.embedding.endpoint import EndpointEmbedder
from clew.models.embedding.onnx import BUNDLED, OnnxEmbedder, bundled_card, folder_card
from clew.models.embedding.opening import HashEmbedder, SentenceTransformersEmbedder, open_embedder
from clew.models.settings import Secret, Settings


def embeddings(handler: Handler, body: dict) -> None:
    """Backwards, as a server may answer; the length of a text is its vector."""
    rows = [{"index": place, "embedding": [len(text), 1.0]} for place, text in enumerate(body["input"])]
    handler.send(200, json.dumps({"data": rows[::-1]}).encode())


def failing(handler: Handler, _: dict) -> None:
    handler.send(503, b"busy, my key is sk-secret")


def test_an_endpoint_gets_batches_and_gives_unit_vectors_in_order():
    with serving(misbehave=[embeddings, failing, embeddings]) as server:
        embedder = EndpointEmbedder(server.url, "m", Secret("sk-secret"), batch=2, sleep=lambda _: None)
        vectors = embedder.embed(["aaa", "", "aaaaa"], role="document")
    assert [body["input"] for body in server.bodies] == [["aaa", " "], ["aaaaa"], ["aaaaa"]]
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert (vectors[:, 0] / vectors[:, 1]).round().tolist() == [3, 1, 5]
    assert embedder.name.startswith("m@127.0.0.1:")


def test_an_endpoint_that_keeps_failing_is_an_error_without_the_key():
    with serving(misbehave=[failing] * 2) as server:
        embedder = EndpointEmbedder(server.url, "m", Secret("sk-secret"), attempts=2, sleep=lambda _: None)
        with pytest.raises(ModelError, match="503") as caught:
            embedder.embed(["a"], role="query")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "reply", [b"{}", b"no json", b'{"data": [{"index": 0, "embedding": [1, null]}]}', b'{"data": []}']
)
def test_a_reply_that_is_no_list_of_vectors_is_refused(reply: bytes):
    with serving(misbehave=[lambda handler, _: handler.send(200, reply)]) as server, pytest.raises(ReplyError):
        EndpointEmbedder(server.url, "m").embed(["a"], role="query")


def test_a_wrong_request_is_not_repeated():
    with serving(misbehave=[lambda handler, _: handler.send(404, b"no such model")]) as server:
        with pytest.raises(ModelError, match="no such model"):
            EndpointEmbedder(server.url, "m").embed(["a"], role="query")
        assert len(server.bodies) == 1


def test_an_exported_folder_embeds_as_its_settings_say(tmp_path: Path):
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(BUNDLED / name, tmp_path / name)
    (tmp_path / "config.json").write_text('{"hidden_size": 384}')
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query: "}}')
    embedder = open_embedder(str(tmp_path))
    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.name.startswith(f"{tmp_path.name}@")
    as_query, as_document = (embedder.embed(["lens"], role=role)[0] for role in ("query", "document"))
    assert np.array_equal(as_query, embedder.embed(["query: lens"], role="document")[0])
    assert as_document @ OnnxEmbedder(bundled_card()).embed(["lens"], role="document")[0] < 0.99
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(ModelError, match="pooling"):
        OnnxEmbedder(folder_card(tmp_path))


def test_specs_name_embedders(tmp_path: Path):
    settings = Settings.load({"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-x", "CLEW_EMBEDDER_KEY": "other"})
    assert open_embedder().name == "all-MiniLM-L6-v2-int8"
    assert isinstance(open_embedder("hash"), HashEmbedder)
    openai = open_embedder("openai:text-embedding-3-small", settings=settings)
    assert isinstance(openai, EndpointEmbedder)
    assert (openai.model, openai.key.reveal()) == ("text-embedding-3-small", "sk-x")
    local = open_embedder("http://127.0.0.1:1/v1#nomic", settings=settings)
    assert isinstance(local, EndpointEmbedder)
    assert (local.model, local.key.reveal()) == ("nomic", "other")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert isinstance(open_embedder(str(tmp_path)), SentenceTransformersEmbedder)
    for wrong in ("nothing", "http://host/v1"):
        with pytest.raises(InputError):
            open_embedder(wrong, settings=settings)
