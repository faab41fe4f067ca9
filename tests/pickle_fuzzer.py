"""Puts hostile pickles to the reader, `python pickle_fuzzer.py FOLDER TRIES`; its crash ends this process."""

import io
import pickle
import pickletools
import random
import resource
import struct
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from clew.core.errors import SourceError
from clew.store.sources.pickles import read_pickle

MEMORY = 3 << 30
NAMES = [
    "builtins set", "builtins frozenset", "builtins list", "builtins tuple", "builtins dict", "builtins bytearray",
    "builtins complex", "collections OrderedDict", "numpy ndarray", "numpy dtype", "numpy.core.multiarray _reconstruct",
    "numpy._core.multiarray scalar", "numpy._core.numeric _frombuffer", "torch._utils _rebuild_tensor_v2",
    "torch LongStorage", "_codecs encode", "os system", "builtins eval", "numpy.core.multiarray fromstring",
]  # fmt: skip
STARK = {
    "node_info": {i: {"id": i, "name": f"node {i}", "details": {"alias": ["a", "b"], "x": 0.5}} for i in range(8)},
    "edge_index": np.arange(12).reshape(2, 6),
    "edge_types": np.array([0, 0, 1, 1, 0, 1], dtype=np.int32),
    "names": np.array(["ab", "c"]),
    "one": np.float32(0.5),
    "kinds": ({0: "gene", 1: "drug"}, frozenset({1, 2}), {"x"}, b"bytes", bytearray(b"more"), 1 << 70),
}


def argument(opcode: pickletools.OpcodeInfo, rng: random.Random) -> bytes:
    """Bytes for what an operation reads after itself: mostly of the right form, with small and absurd amounts."""
    if opcode.arg is None:
        return b""
    amount = rng.choice([0, 1, 2, 5, 255, 1 << 16, (1 << 31) - 1, (1 << 32) - 1])
    name = opcode.arg.name
    if name in ("uint1", "uint2", "uint4", "uint8", "int4"):
        size = {"uint1": 1, "uint2": 2, "uint4": 4, "uint8": 8, "int4": 4}[name]
        return (amount & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if name == "float8":
        return struct.pack(">d", rng.random())
    if name.endswith(("nl", "nl_short", "nl_long", "noescape", "noescape_pair")):
        if "pair" in name:
            return "\n".join(rng.choice(NAMES).split()).encode() + b"\n"
        return rng.choice([b"0\n", b"7\n", b"4000000000\n", b"'text'\n", b"1.5\n", b"-1L\n", b"i8\n"])
    text = rng.choice([b"", b"i8", b"O8", b"V4", b"numpy", b"dtype", b"x" * 40])
    size = next((size for size in (1, 4, 8) if name.endswith(str(size))), 1)
    told = rng.choice([len(text), len(text), len(text), amount]) & ((1 << 8 * size) - 1)
    return told.to_bytes(size, "little") + text


def program(rng: random.Random) -> bytes:
    """A pickle of random operations, every one of them in time."""
    written = io.BytesIO()
    written.write(b"\x80" + bytes([rng.choice([2, 4, 5])]))
    for _ in range(rng.randrange(2, 40)):
        opcode = rng.choice(pickletools.opcodes)
        written.write(opcode.code.encode("latin-1") + argument(opcode, rng))
        if rng.random() < 0.2:
            module, name = rng.choice(NAMES).split()
            written.write(f"c{module}\n{name}\n".encode())
        if rng.random() < 0.2:
            written.write(rng.choice([b"(", b")", b"N", b"K\x01", b"]", b"}", b"\x8f", b"(K\x01t"]))
    return written.getvalue() + b"."


def mutated(rng: random.Random) -> bytes:
    """A pickle of STaRK's shape with a few bytes changed, removed, doubled or moved."""
    data = bytearray(rng.choice(WHOLE))
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        place = rng.randrange(len(data))
        length = rng.randrange(1, 16)
        kind = rng.randrange(5)
        if kind == 0:
            data[place] = rng.randrange(256)
        elif kind == 1:
            data[place] = ord(rng.choice(pickletools.opcodes).code)
        elif kind == 2 and len(data) > 40:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = data[place : place + length]
        else:
            data[place : place + 4] = rng.choice([b"\xff\xff\xff\x7f", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff"])
    return bytes(data)


WHOLE = [pickle.dumps(STARK, protocol) for protocol in range(6)]


def main(folder: Path, tries: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng = random.Random(7)
    outcomes: Counter[str] = Counter()
    seen: set[str] = set()
    file = folder / "node_info.pkl"
    for turn in range(tries):
        data = program(rng) if turn % 3 == 0 else mutated(rng)
        file.write_bytes(data)
        seen |= {opcode.name for opcode in pickletools.opcodes if opcode.code.encode("latin-1") in data}
        try:
            read_pickle(file)
            outcomes["read"] += 1
        except SourceError:
            outcomes["refused"] += 1
    missing = {opcode.name for opcode in pickletools.opcodes} - seen
    assert not missing, missing
    print(dict(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
