"""Models that onnxruntime cannot run, and an onnxruntime that cannot be loaded, are errors in plain words."""

import sys

import pytest

from clew.core.errors import ModelError
from clew.models.onnx_runtime import open_session


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x07" * 100])
def test_a_file_that_is_no_model_is_named(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.onnx is no model that can be run"):
        open_session(tmp_path / "model.onnx")


def test_a_runtime_that_cannot_be_loaded_is_no_internal_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match="onnxruntime cannot be loaded"):
        open_session(tmp_path / "model.onnx")
