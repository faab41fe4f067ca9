"""The local adapter against a stand-in for llama.cpp's binding: what it is asked, and what its failures become."""

import sys
from types import ModuleType
from typing import ClassVar

import pytest

from clew.core.errors import MissingExtraError, NotFoundError
from clew.models.local import GgufModel
from clew.models.protocol import Message, Request

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Llama:
    asked: ClassVar[list] = []

    def __init__(self, path, **options):
        self.path, self.options = path, options

    def create_chat_completion(self, messages, **options):
        self.asked.append((messages, options))
        if "too long" in messages[-1]["content"]:
            raise ValueError("Requested tokens (9000) exceed context window of 8192")
        choice = {"message": {"role": "assistant", "content": '{"a": 1}'}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}


@pytest.fixture
def file(tmp_path, monkeypatch):
    binding = ModuleType("llama_cpp")
    binding.Llama = Llama
    monkeypatch.setitem(sys.modules, "llama_cpp", binding)
    Llama.asked.clear()
    (tmp_path / "small.gguf").write_bytes(b"GGUF" + bytes(100))
    return tmp_path / "small.gguf"


def test_a_schema_becomes_a_grammar_and_one_failure_spoils_no_other(file):
    asked = [Request((Message("user", text),), schema=SCHEMA) for text in ("hello", "too long", "again")]
    first, failed, third = GgufModel(file).complete(asked)
    assert (first.text, first.usage.prompt_tokens, third.text) == ('{"a": 1}', 5, '{"a": 1}')
    assert "exceed context window" in (failed.error or "")
    assert failed.retry_after is None
    assert Llama.asked[0][1]["response_format"] == {"type": "json_object", "schema": SCHEMA}


def test_two_files_of_one_name_are_two_models(file, tmp_path):
    other = tmp_path / "b" / "small.gguf"
    other.parent.mkdir()
    other.write_bytes(b"GGUF" + bytes(101))
    assert GgufModel(file).name != GgufModel(other).name


def test_without_the_extra_or_the_file_the_error_says_what_to_do(file, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(MissingExtraError, match=r"clew-kb\[local\]"):
        GgufModel(file).complete([Request((Message("user", "hello"),))])
    with pytest.raises(NotFoundError):
        GgufModel(tmp_path / "absent.gguf")
