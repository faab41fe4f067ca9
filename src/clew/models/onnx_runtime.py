"""The only module that imports onnxruntime, since its telemetry must be disabled before the import."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from clew.core.errors import ModelError


def silent_onnxruntime() -> Any:
    """Import `onnxruntime` with telemetry disabled, so that it writes no device id and contacts no host.

    `disable_telemetry_events()` would be too late: the import itself does both.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:  # also raised if memory is too short to map the library
        raise ModelError(f"onnxruntime cannot be loaded ({error})") from error
    return onnxruntime


def open_session(model: Path) -> Any:
    """Open a model that runs in the calling thread."""
    onnxruntime = silent_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base class
        raise ModelError(f"{model} is not a valid model ({error}): download it again") from error


def quantize(exact: Path, small: Path) -> None:
    """Quantize a model to int8, with weights scaled per channel."""
    silent_onnxruntime()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        quantize_dynamic(exact, plain, weight_type=QuantType.QInt8, per_channel=True)
        optimise(plain, small)


def optimise(model: Path, optimised: Path) -> None:
    """Write the optimised graph of a model, for any processor. It opens in half the time.

    The session also records unused operator sets in their newest versions, which older runtimes reject. Remove them.
    """
    import onnx

    onnxruntime = silent_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    written = onnx.load(optimised)
    used = [known for known in written.opset_import if known.domain in {node.domain for node in written.graph.node}]
    del written.opset_import[:]
    written.opset_import.extend(used)
    onnx.save(written, optimised)
