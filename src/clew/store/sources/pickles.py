"""Read pickles and PyTorch files without running code: only plain containers, numbers, arrays and tensors.

A pickle is a program. This module restricts Python's pickle interpreter: every allowed name maps to one of the few
functions below, which check their arguments and build plain values. The interpreter in C would be ten times faster, but
a few bytes could make it allocate any amount of memory. NumPy objects get no state from a pickle, and sizes are
compared with the file size before allocation.
"""

from __future__ import annotations

import io
import math
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import SourceError
from clew.core.limits import TooLargeError, bounded_work, spend
from clew.store.sources.files import DAMAGED, read_bytes

DTYPE = re.compile(r"[<>|=]?(b1|\?|[iu][1248]|f[248]|c8|c16|[SU][0-9]{1,6})")
"""Allowed arrays: booleans, numbers and texts.

Objects and structures are not allowed, since their state describes memory.
"""


@dataclass(frozen=True)
class Storages:
    """The raw numbers of a .pt file, by their keys in its pickle."""

    content: dict[str, bytes]
    byte_order: str


class Dtype:
    """Checked type code of array elements."""

    def __init__(self, code: object) -> None:
        if not isinstance(code, str) or not DTYPE.fullmatch(code):
            raise pickle.UnpicklingError(f"it contains an array of {str(code)[:20]!r}, not of numbers or texts")
        self.code = code

    def take_state(self, state: Any) -> None:
        """Read the byte order from `(version, byte order, subarray, names, fields, …)`."""
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError("it describes the elements of an array in an unknown way")
        if any(part is not None for part in state[2:5]):
            raise pickle.UnpicklingError("it contains an array of structures")
        self.code = state[1] + self.code.lstrip("<>|=")


@dataclass
class UnpickledArray:
    """An array that is empty until its state is set."""

    value: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int8))

    def take_state(self, state: Any) -> None:
        """Set the array from `(version, shape, dtype, Fortran order, bytes)`."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("it contains an array in an unknown form")
        _, shape, dtype, fortran, content = state
        self.value = array_of(content, dtype, shape, "F" if fortran else "C")


@dataclass(frozen=True, slots=True)
class Storage:
    """The numbers of a tensor and their type."""

    content: bytes
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A PyTorch class that defines the type of a tensor's numbers."""

    code: str


def array_of(content: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> NDArray[Any]:
    """Create an array from a copy of the bytes, which must match its shape."""
    if isinstance(content, str):  # Python 2 wrote bytes as text
        content = content.encode("latin-1")
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, Dtype) or order not in ("C", "F"):
        raise pickle.UnpicklingError("it contains an array in an unknown form")
    kind = np.dtype(dtype.code)
    if math.prod(_lengths(shape)) * kind.itemsize != len(content):
        raise pickle.UnpicklingError("it contains an array whose numbers do not match its shape")
    spend(len(content))
    return np.frombuffer(bytes(content), kind).reshape(shape, order=order)


def scalar_of(dtype: Any, content: Any) -> object:
    """Return one number or text."""
    return array_of(content, dtype, (1,), "C")[0].item()


def tensor_of(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> NDArray[Any]:
    """Return a tensor as a separate array."""
    steps, lengths = _lengths(stride), _lengths(size)
    if not isinstance(storage, Storage) or len(steps) != len(lengths) or not is_amount(offset):
        raise pickle.UnpicklingError("it contains a tensor in an unknown form")
    spend(math.prod(lengths) * storage.dtype.itemsize)
    if not all(lengths):
        return np.empty(lengths, storage.dtype)
    numbers = np.frombuffer(storage.content, storage.dtype)
    if offset + sum((length - 1) * step for length, step in zip(lengths, steps, strict=True)) >= len(numbers):
        raise pickle.UnpicklingError("it contains a tensor larger than its storage")
    strides = [step * storage.dtype.itemsize for step in steps]
    return np.array(np.lib.stride_tricks.as_strided(numbers[offset:], lengths, strides))


def _lengths(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or len(shape) > 32 or not all(map(is_amount, shape)):
        raise pickle.UnpicklingError("it contains an array of an impossible shape")
    return shape


def is_amount(value: object) -> bool:
    """Return whether a value is a valid number of elements."""
    return type(value) is int and 0 <= value < 1 << 48


SCALARS = (str, int, float, complex, bytes, bool, type(None))
STORAGES = {
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "b1",
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
}
_Interpreter: Any = pickle._Unpickler  # the Python implementation, since the public name is the C implementation


def _bytes(text: Any = "", encoding: Any = "latin1") -> bytes:
    """Decode bytes of Python 2's protocol."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("it contains bytes in an unknown form")
    return text.encode("latin-1")


def _hashable(values: Iterable[Any]) -> None:
    """Raise UnpicklingError for nested keys, since hashing deep nesting would exhaust the stack."""
    for value in values:
        if not isinstance(value, SCALARS) and not (
            isinstance(value, tuple) and all(isinstance(part, SCALARS) for part in value)
        ):
            raise pickle.UnpicklingError(f"it has a key of type {type(value).__name__}")


def _container(kind: type, *, hashed: bool = True) -> Callable[[Any], Any]:
    def make(items: Any = ()) -> Any:
        if not isinstance(items, list | tuple | set | frozenset | dict):
            raise pickle.UnpicklingError(f"it creates a {kind.__name__} from a {type(items).__name__}")
        spend(16 * len(items))
        if kind is dict and not isinstance(items, dict):
            if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in items):
                raise pickle.UnpicklingError("it creates a dictionary without pairs")
            _hashable(pair[0] for pair in items)
        elif hashed:
            _hashable(items)
        return kind(items)

    return make


def _reconstructed(kind: Any = None, *_: Any) -> UnpickledArray:
    if kind is not ARRAY:
        raise pickle.UnpicklingError("it contains an array of an unknown kind")
    return UnpickledArray()


def _byte_array(content: Any = b"") -> bytearray:
    if not isinstance(content, bytes | bytearray):
        raise pickle.UnpicklingError("it creates a bytearray without bytes")
    spend(len(content))
    return bytearray(content)


ARRAY = object()
"""Stands for the class of arrays."""
FUNCTIONS: dict[tuple[str, str], object] = {
    ("builtins", "set"): _container(set),
    ("builtins", "frozenset"): _container(frozenset),
    ("builtins", "list"): _container(list, hashed=False),
    ("builtins", "tuple"): _container(tuple, hashed=False),
    ("builtins", "dict"): _container(dict),
    ("collections", "OrderedDict"): _container(dict),
    ("builtins", "complex"): complex,  # takes only numbers and texts
    ("builtins", "bytearray"): _byte_array,
    ("_codecs", "encode"): _bytes,
    ("numpy", "ndarray"): ARRAY,
    ("numpy", "dtype"): lambda code="", *_: Dtype(code),
    ("numpy.core.multiarray", "_reconstruct"): _reconstructed,
    ("numpy.core.multiarray", "scalar"): scalar_of,
    ("numpy.core.numeric", "_frombuffer"): array_of,
    ("torch._utils", "_rebuild_tensor_v2"): tensor_of,
}
"""Names that pickles of plain data use, and their replacements."""


class PlainUnpickler(_Interpreter):  # type: ignore[misc]
    """Resolves only the few names that plain data needs. Any other name raises an error before a call."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Interpreter.dispatch)

    def __init__(self, content: bytes, path: Path, storages: Storages | None = None) -> None:
        super().__init__(io.BytesIO(content))
        self._path, self._storages = path, storages

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement of a name in the pickle."""
        module = "builtins" if module == "__builtin__" else module  # the name in protocol 2
        module = module.replace("numpy._core.", "numpy.core.")
        if (module, name) in FUNCTIONS:
            return FUNCTIONS[module, name]
        if module == "torch" and name in STORAGES:
            return Kind(STORAGES[name])
        raise SourceError(
            f"this pickle uses {module}.{name}, which is not plain data, so it was refused without running it",
            file=self._path,
        )

    def persistent_load(self, pid: Any) -> Storage:
        """Return the numbers of a tensor, which are stored next to the pickle."""
        if self._storages is None or not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage"):
            raise pickle.UnpicklingError("it refers to data outside of it")
        _, kind, key, _, count = pid
        if not isinstance(kind, Kind) or not isinstance(key, str) or not is_amount(count):
            raise pickle.UnpicklingError("it refers to a storage in an unknown form")
        dtype = np.dtype(self._storages.byte_order + kind.code)
        return Storage(self._storages.content[key][: count * dtype.itemsize], dtype)

    def _load_build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, Dtype | UnpickledArray):
            target.take_state(state)
        elif not (isinstance(target, dict) and isinstance(state, dict) and not state):  # OrderedDict has one
            raise pickle.UnpicklingError(f"it sets the state of a {type(target).__name__}")

    def _load_bytearray8(self) -> None:
        size = int.from_bytes(self.read(8), "little")
        spend(size)
        self.append(bytearray(self.read(size)))

    def _load_frozenset(self) -> None:
        items = self.pop_mark()
        _hashable(items)
        self.append(frozenset(items))

    def _load_dict(self) -> None:
        items = self.pop_mark()
        _hashable(items[::2])
        self.append(dict(zip(items[::2], items[1::2], strict=True)))

    def _load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._fill(dict, [key])[key] = value

    def _load_setitems(self) -> None:
        items = self.pop_mark()
        self._fill(dict, items[::2]).update(zip(items[::2], items[1::2], strict=True))

    def _load_additems(self) -> None:
        items = self.pop_mark()
        self._fill(set, items).update(items)

    def _fill(self, kind: type, keys: Iterable[Any] = ()) -> Any:
        """Return the container on top of the stack. Raise UnpicklingError if it has another type."""
        _hashable(keys)
        if type(self.stack[-1]) is not kind:
            raise pickle.UnpicklingError(f"it adds to a {type(self.stack[-1]).__name__} as to a {kind.__name__}")
        return self.stack[-1]

    for _operation, _run in (
        (pickle.BUILD, _load_build),
        (pickle.BYTEARRAY8, _load_bytearray8),
        (pickle.FROZENSET, _load_frozenset),
        (pickle.DICT, _load_dict),
        (pickle.SETITEM, _load_setitem),
        (pickle.SETITEMS, _load_setitems),
        (pickle.ADDITEMS, _load_additems),
    ):
        dispatch[_operation[0]] = _run
    del _operation, _run


DEEPEST = 100
"""Maximum nesting depth of containers."""
LEAVES = (*SCALARS, np.ndarray, bytearray, set, frozenset)
BROKEN = (*DAMAGED, pickle.UnpicklingError, AttributeError, BufferError, ImportError, MemoryError, TypeError)


@contextmanager
def _guarded(path: Path, size: int) -> Iterator[None]:
    """Limit the memory for a file of `size` bytes. Turn exceptions for damaged files into SourceError."""
    try:
        with bounded_work(size):
            yield
    except TooLargeError as error:
        raise SourceError(str(error), file=path) from error
    except BROKEN as broken:
        raise SourceError(f"not a whole file of plain data: {broken}", file=path) from broken


def read_pickle(path: Path) -> Any:
    """Read a .pkl file. Raise SourceError if it contains anything but plain data."""
    data = read_bytes(path)
    with _guarded(path, len(data)):
        return _plain(PlainUnpickler(data, path).load(), {})


def read_torch(path: Path) -> Any:
    """Read a .pt file of PyTorch 1.6 or later with its tensors as arrays, without PyTorch."""
    data = read_bytes(path)
    with _guarded(path, len(data)), zipfile.ZipFile(io.BytesIO(data)) as archive:
        spend(sum(member.file_size for member in archive.infolist()))
        parts = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
        if "data.pkl" not in parts:
            raise SourceError("no data.pkl inside: not a file written by torch.save", file=path)
        order = ">" if parts.get("byteorder", b"little") != b"little" else "<"
        storages = {name.removeprefix("data/"): content for name, content in parts.items() if name.startswith("data/")}
        return _plain(PlainUnpickler(parts["data.pkl"], path, Storages(storages, order)).load(), {})


def _plain(value: Any, done: dict[int, Any], depth: int = 0) -> Any:
    """Replace stand-ins by arrays. Shared objects are processed once, and `done` has the results by their ids."""
    if isinstance(value, LEAVES):
        return value
    if depth > DEEPEST:
        raise pickle.UnpicklingError(f"containers are nested more than {DEEPEST} deep")
    if isinstance(value, UnpickledArray):
        return value.value
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, dict):
        found: Any = {key: _plain(item, done, depth + 1) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        found = type(value)([_plain(item, done, depth + 1) for item in value])
    else:
        raise pickle.UnpicklingError("it contains something that is not plain data")
    done[id(value)] = found
    return found
