"""The one place that imports onnxruntime: it reports to its maker unless told not to before it is imported."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from clew.core.errors import ModelError


def silent_onnxruntime() -> Any:
    """The package `onnxruntime` with its telemetry off: no device id is written, no host looked up.

    `disable_telemetry_events()` would come too late: both happen from the import on.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:  # also where there is no memory to map it into
        raise ModelError(f"onnxruntime cannot be loaded ({error})") from error
    return onnxruntime


def open_session(model: Path) -> Any:
    """A model ready to run, in the thread that calls it."""
    onnxruntime = silent_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own errors have no class in common
        raise ModelError(f"{model} is no model that can be run ({error}): get it again") from error


def quantize(exact: Path, small: Path) -> None:
    """Write an int8 version of a model, its weights scaled per channel."""
    silent_onnxruntime()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        quantize_dynamic(exact, plain, weight_type=QuantType.QInt8, per_channel=True)
        optimise(plain, small)


def optimise(model: Path, optimised: Path) -> None:
    """Write the graph that a session would make of a model, for any processor: it opens in half the time.

    A session also notes the newest version of every set of operators, used or not, at which older ones would refuse it.
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
