"""The official STaRK folder is read without PyTorch, and never runs what a pickle asks for."""

import base64
import contextlib
import os
import pickle
import subprocess
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.errors import InputError, SourceError
from clew.store.sources.files import SourceOptions
from clew.store.sources.pickles import read_pickle, read_torch
from clew.store.sources.read import read_sources
from conftest import TESTS
from repeats import repeats

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
    with pytest.raises(InputError, match="add --trust"):
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
        with pytest.raises(SourceError, match="refused"):
            read_sources([folder], TRUSTED)
    assert not mark.exists()


def test_a_torch_file_that_wants_to_run_code_is_refused_too(tmp_path):
    path, mark = tmp_path / "edge_index.pt", tmp_path / "it_ran"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Payload(os.system, f"touch {mark}"), 2))
    with pytest.raises(SourceError, match="refused"):
        read_torch(path)
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_scalars_and_containers_survive(tmp_path, protocol):
    content = {
        "table": np.arange(6).reshape(2, 3).T, "one": np.int64(4),
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


def written(opcodes: bytes, folder) -> "os.PathLike[str]":
    path = folder / "node_info.pkl"
    path.write_bytes(b"\x80\x04" + opcodes + b".")
    return path


DTYPE_OF_POINTERS = (
    b"cnumpy\ndtype\n(X\x02\x00\x00\x00O8\x89\x88tR"
    b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"  # its flag says: no objects here
)
ARRAY_OF_POINTERS = (
    b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
    b"(K\x01K\x01\x85" + DTYPE_OF_POINTERS + b"\x89C\x08AAAAAAAAtb"
)
HOSTILE = {
    "raw bytes taken for pointers": ARRAY_OF_POINTERS,
    "a scalar of pointers": b"cnumpy.core.multiarray\nscalar\n(" + DTYPE_OF_POINTERS + b"C\x08AAAAAAAAtR",
    "a structure": b"cnumpy\ndtype\n(X\x02\x00\x00\x00V8\x89\x88tR",
    "a dtype whose state names fields": b"cnumpy\ndtype\n(X\x02\x00\x00\x00i8\x89\x88tR"
    b"(K\x03X\x01\x00\x00\x00<N(X\x01\x00\x00\x00at}K\x08K\x01K\x10tb",
    "a memo of gigabytes": b"Nr\x00\x00\x00\x40",
    "a memo of gigabytes, in digits": b"Np1073741824\n",
    "a bytearray of a terabyte": b"\x96" + (1 << 40).to_bytes(8, "little"),
    "a bytearray made by number": b"cbuiltins\nbytearray\n(\x8a\x06\x00\x00\x00\x00\x00\x01tR",
    "an array of an enormous shape": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
    b"(K\x01\x8a\x06\x00\x00\x00\x00\x00\x01\x85cnumpy\ndtype\n(X\x02\x00\x00\x00i8tR\x89C\x00tb",
    "a key nested a million times": b"}" + b")" + b"\x85" * 1_000_000 + b"Ns",
    "a set of a key nested a million times": b"\x8f(" + b")" + b"\x85" * 1_000_000 + b"\x90",
    "lists nested a million times": b"]" * 1_000_000 + b"a" * 999_999,
    "a list that holds itself": b"]\x94h\x00a",
    "copies of copies": b"](" + b"K\x01" * 50_000 + b"e\x94" + b"(cbuiltins\nlist\nh\x00\x85Rl0" * 20_000 + b"N",
    "attributes of a function": b"cnumpy\ndtype\n(N}X\x04\x00\x00\x00callNstb",
    "attributes of a class": b"cnumpy\nndarray\n(N}X\x08\x00\x00\x00__init__Nstb",
    "a registered extension": b"\x82\x01",
    "a buffer from outside": b"\x97",
}


READER = f"""
import os, resource, sys; from pathlib import Path
from clew.core.errors import SourceError; from clew.store.sources.pickles import read_pickle
for line in sys.stdin:
    if not (child := os.fork()):
        resource.setrlimit(resource.RLIMIT_AS, ({2 << 30}, {2 << 30}))
        try:
            read_pickle(Path(line.strip()))
            print("read", end=" ")
        except SourceError as error:
            print("refused:", " ".join(str(error).split()), end=" ")
        sys.stdout.flush()
        os._exit(0)
    print(f"ended with {{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}}", flush=True)
"""
"""Reads each file named on standard input in a process of its own, with little memory."""


@pytest.fixture(scope="module")
def reader():
    command = [sys.executable, "-c", READER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("opcodes", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_pickle_is_refused_without_a_crash(tmp_path, opcodes, reader):
    """In a process of its own, with little memory: what is tried here has ended processes."""
    reader.stdin.write(f"{written(opcodes, tmp_path)}\n")
    outcome = reader.stdout.readline()
    assert outcome.endswith("ended with 0\n")
    if opcodes.startswith((b"Nr", b"Np")):  # a large number in the memo is no harm: nothing is allocated for it
        return
    assert outcome.startswith("refused:")


def test_a_tensor_that_repeats_one_number_for_ever_is_refused(tmp_path):
    pickled = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000"
        b"X\x03\x00\x00\x00cpuK\x01tQK\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x85K\x00\x85\x89NtR."
    )
    path = tmp_path / "edge_index.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/data/0", b"\x01" * 8)
    with pytest.raises(SourceError, match="far more"):
        read_torch(path)


def test_an_archive_that_unfolds_to_far_more_than_its_size_is_refused(tmp_path):
    path = tmp_path / "edge_index.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(1))
        archive.writestr("archive/data/0", bytes(100_000_000))
    with pytest.raises(SourceError, match="far more"):
        read_torch(path)


@pytest.mark.long
def test_hundreds_of_hostile_pickles_never_end_the_process(tmp_path):
    fuzzer = TESTS.joinpath("pickle_fuzzer.py")
    command = [sys.executable, fuzzer, tmp_path, str(repeats(600, 15_000))]  # two thirds of them mutations
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "refused" in done.stdout
