"""The official STaRK folder is read without PyTorch, and never runs what a pickle asks for."""

import base64
import contextlib
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InputError, SourceError
from clew.kb.sources import SourceOptions, read_sources
from clew.kb.sources.pickles import read_pickle, read_torch

TENSOR = base64.b64decode(
    "UEsDBBQAAAAIAAAAIQByl0l0iAAAAJkAAAAQAAAAYXJjaGl2ZS9kYXRhLnBrbCWLQQrCMBAAk1RbXT9SL0V8g7cIYr30FnQb2kBI"
    "3GTr2VPBX1voaWCY+SrkmHBszMTOZzDJvibne8M25JjM5wwk6rqrhBB5KZ+DJbkucI1heKwOSHVySU5UdMVCfE+00SXT9q6FVrqY"
    "qdRSq5mqH2L03iK7GDLcUm+T7S8OGWh3bGnPBC0dmj9QSwMEFAAAAAgAAAAhAIU94xkIAAAABgAAABEAAABhcmNoaXZlL2J5dGVv"
    "cmRlcsvJLCnJSQUAUEsDBBQAAAAIAAAAIQAMx8ahEgAAADAAAAAOAAAAYXJjaGl2ZS9kYXRhLzBjYIAARijNBKWZoTQLlGaF0gBQ"
    "SwECFAMUAAAACAAAACEAcpdJdIgAAACZAAAAEAAAAAAAAAAAAAAAgAEAAAAAYXJjaGl2ZS9kYXRhLnBrbFBLAQIUAxQAAAAIAAAA"
    "IQCFPeMZCAAAAAYAAAARAAAAAAAAAAAAAACAAbYAAABhcmNoaXZlL2J5dGVvcmRlclBLAQIUAxQAAAAIAAAAIQAMx8ahEgAAADAA"
    "AAAOAAAAAAAAAAAAAACAAe0AAABhcmNoaXZlL2RhdGEvMFBLBQYAAAAAAwADALkAAAArAQAAAAA="
)
"""What torch.save writes for torch.arange(6).reshape(3, 2).t(), packed once more."""
TRUSTED = SourceOptions(trust=True)
INFO = {
    0: {
        "id": 9796,
        "type": "gene/protein",
        "name": "PHYHIP",
        "source": "NCBI",
        "details": {"alias": ["DYRK1AP3"], "taxid": 9606},
    },
    1: {"id": 7918, "type": "gene/protein", "name": "GPANK1", "source": "NCBI", "details": {}},
    2: {
        "id": "DB00001",
        "type": "drug",
        "name": "Lepirudin",
        "details": {"description": "An anticoagulant.", "half_life": 1.3},
    },
}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "prime" / "processed"
    place.mkdir(parents=True)
    parts = {
        "node_info": INFO,
        "edge_types": np.array([0, 0, 1]),
        "node_types": np.array([0, 0, 1]),
        "node_type_dict": {0: "gene/protein", 1: "drug"},
        "edge_type_dict": OrderedDict({0: "ppi", 1: "drug___target___gene/protein"}),
    }
    for name, content in parts.items():
        (place / f"{name}.pkl").write_bytes(pickle.dumps(content))
    (place / "edge_index.pt").write_bytes(TENSOR)
    return tmp_path / "prime"


def test_the_official_layout_is_read_without_torch(folder):
    (folder / "processed" / "edge_index.pt").unlink()
    (folder / "processed" / "edge_index.pkl").write_bytes(pickle.dumps(np.array([[0, 1, 2], [1, 0, 0]])))
    tables = read_sources([folder], TRUSTED)
    genes, drugs = (piece.table.to_pylist() for piece in tables.nodes)
    assert genes[0] == {
        "key": 0, "type": "gene/protein", "name": "PHYHIP", "aliases": ["DYRK1AP3"], "id": "9796", "source": "NCBI",
        "details.taxid": 9606,
    }  # fmt: skip
    assert drugs[0] == {
        "key": 2, "type": "drug", "name": "Lepirudin", "text": "An anticoagulant.", "id": "DB00001",
        "details.half_life": 1.3,
    }  # fmt: skip
    assert [tuple(row.values()) for row in tables.edges[0].table.to_pylist()] == [
        (0, "ppi", 1),
        (1, "ppi", 0),
        (2, "target", 0),
    ]


def test_tensors_are_read_with_their_strides(tmp_path):
    path = tmp_path / "edge_index.pt"
    path.write_bytes(TENSOR)
    assert read_torch(path).tolist() == [[0, 2, 4], [1, 3, 5]]


def test_pickles_need_trust(folder):
    with pytest.raises(InputError, match="say --trust"):
        read_sources([folder])


class Payload:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_wants_to_run_code_is_refused_and_nothing_runs(folder, tmp_path, protocol):
    mark = tmp_path / "it_ran"
    payloads = [
        Payload(os.system, f"touch {mark}"),
        Payload(eval, f"open({str(mark)!r}, 'w')"),
        Payload(open, str(mark), "w"),
    ]
    for payload in payloads:
        (folder / "processed" / "node_info.pkl").write_bytes(pickle.dumps({0: payload}, protocol))
        with pytest.raises(SourceError, match="nothing was run"):
            read_sources([folder], TRUSTED)
    assert not mark.exists()


def test_a_torch_file_that_wants_to_run_code_is_refused_too(tmp_path):
    path, mark = tmp_path / "edge_index.pt", tmp_path / "it_ran"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Payload(os.system, f"touch {mark}"), 2))
    with pytest.raises(SourceError, match="nothing was run"):
        read_torch(path)
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_scalars_and_containers_survive(tmp_path, protocol):
    content = {
        "table": np.arange(6).reshape(2, 3).T, "words": np.array(["x", None], dtype=object), "one": np.int64(4),
        "real": np.float32(0.5), "names": np.array(["ab"]), "set": {1, 2}, "big": np.arange(3, dtype=">i4"),
    }  # fmt: skip
    path = tmp_path / "content.pkl"
    path.write_bytes(pickle.dumps(content, protocol))
    read = read_pickle(path)
    assert {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in read.items()} == {
        k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in content.items()
    }


@given(cut=st.integers(0, 400), flip=st.integers(0, 255))
def test_a_damaged_pickle_is_an_error_of_ours(tmp_path_factory, cut, flip):
    path = tmp_path_factory.mktemp("damaged") / "node_info.pkl"
    data = bytearray(pickle.dumps(INFO))
    data[cut % len(data)] ^= flip
    path.write_bytes(data[: -(cut % 7) or None])
    with contextlib.suppress(SourceError):
        read_pickle(path)
