"""Models that onnxruntime cannot run, and an onnxruntime that cannot be loaded, are errors in plain words."""

import sys

import numpy as np
import pytest

from clew.core.errors import ModelError
from clew.models.embedding.onnx import BUNDLED
from clew.models.onnx_runtime import open_session, optimise


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x07" * 100])
def test_a_file_that_is_no_model_is_named(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.onnx is not a valid model"):
        open_session(tmp_path / "model.onnx")


def test_a_runtime_that_cannot_be_loaded_is_no_internal_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match="onnxruntime cannot be loaded"):
        open_session(tmp_path / "model.onnx")


def test_an_optimised_model_says_the_same_and_asks_for_no_operators_that_it_does_not_use(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'clew-kb[train]'")
    optimise(BUNDLED / "model.onnx", tmp_path / "model.onnx")
    fed = {name: np.ones((1, 9), dtype=np.int64) for name in ("input_ids", "attention_mask")}
    before, after = (open_session(folder / "model.onnx").run(None, fed)[0] for folder in (BUNDLED, tmp_path))
    assert np.array_equal(before, after)
    written = onnx.load(tmp_path / "model.onnx")
    assert {known.domain for known in written.opset_import} == {node.domain for node in written.graph.node}
