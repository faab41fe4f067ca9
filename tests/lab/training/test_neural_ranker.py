"""The neural ranker: trained from nothing in seconds, from encoders of two families, used without torch."""

import numpy as np
import pytest

from clew.answering.methods.subgraph_reranking.rankers import OnnxScorer
from clew.lab.training.labelled import FeatureTable
from clew.models.embedding.onnx import BUNDLED

MARKS = ("[unused1]", "[unused2]")
PAIRS = [
    ("who wrote dune", f"{MARKS[0]} {name} {MARKS[1]} wrote dune" + " and more" * n)
    for n, name in enumerate("abcdefgh")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["Bert", "MPNet"])
def test_a_ranker_is_trained_from_an_encoder_in_a_folder_and_used_from_its_files(family, tmp_path):
    for package in ("torch", "transformers", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    import transformers

    from clew.lab.training.neural_ranker import NeuralSettings, fit_encoder

    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = getattr(transformers, f"{family}Config")(vocab_size=30522, **shape)
    getattr(transformers, f"{family}Model")(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((BUNDLED / "tokenizer.json").read_bytes())
    table = FeatureTable(np.empty((8, 0)), np.array([True, False] * 4), np.array([0, 4, 8]))
    fitted = fit_encoder(PAIRS, table, PAIRS, table, NeuralSettings(tmp_path, MARKS, epochs=1))
    for name, content in fitted.files().items():
        (tmp_path / name).write_bytes(content)
    used = OnnxScorer(tmp_path / "model.onnx", tmp_path / "tokenizer.json", 256).score(PAIRS)
    assert used == pytest.approx(fitted.predict(PAIRS), abs=0.02)  # int8, and longer texts than those exported with
