"""Build arrays and tensors from the checked values of a pickle.

NumPy objects get no state from a pickle, and sizes are compared with the file size before allocation.
"""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_TIMES, MOST_BEYOND = 64, 1 << 24
"""Maximum expansion of a file, as a factor and additional bytes."""
DTYPE = re.compile(r"[<>|=]?(b1|\?|[iu][1248]|f[248]|c8|c16|[SU][0-9]{1,6})")
"""Allowed arrays: booleans, numbers and texts.

Objects and structures are not allowed, since their state describes memory.
"""


@dataclass
class Space:
    """Number of bytes that may still be allocated for a file."""

    left: int

    def __post_init__(self) -> None:
        self.left = self.left * MOST_TIMES + MOST_BEYOND

    def take(self, amount: int) -> None:
        """Reserve bytes. Raise UnpicklingError if the limit is exceeded."""
        self.left -= amount
        if self.left < 0:
            raise pickle.UnpicklingError("it expands to far more than its own size")


@dataclass(frozen=True)
class Storages:
    """The raw numbers of a .pt file, by their keys in its pickle."""

    content: dict[str, bytes]
    byte_order: str


class StandIn:
    """Replacement in a pickle for objects that are not plain data. It has no attributes to set."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise pickle.UnpicklingError("it sets attributes of something that is not plain data")


class Dtype(StandIn):
    """Checked type code of array elements."""

    __slots__ = ("code",)
    code: str

    def __init__(self, code: object) -> None:
        if not isinstance(code, str) or not DTYPE.fullmatch(code):
            raise pickle.UnpicklingError(f"it contains an array of {str(code)[:20]!r}, not of numbers or texts")
        object.__setattr__(self, "code", code)

    def take_state(self, state: Any, _: Space) -> None:
        """Read the byte order from `(version, byte order, subarray, names, fields, …)`."""
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError("it describes the elements of an array in an unknown way")
        if any(part is not None for part in state[2:5]):
            raise pickle.UnpicklingError("it contains an array of structures")
        object.__setattr__(self, "code", state[1] + self.code.lstrip("<>|="))


class UnpickledArray(StandIn):
    """An array that is empty until its state is set."""

    __slots__ = ("value",)
    value: NDArray[Any]

    def __init__(self) -> None:
        object.__setattr__(self, "value", np.empty(0, np.int8))

    def take_state(self, state: Any, space: Space) -> None:
        """Set the array from `(version, shape, dtype, Fortran order, bytes)`."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("it contains an array in an unknown form")
        _, shape, dtype, fortran, content = state
        object.__setattr__(self, "value", array_of(content, dtype, shape, "F" if fortran else "C", space=space))


@dataclass(frozen=True, slots=True)
class Storage:
    """The numbers of a tensor and their type."""

    content: bytes
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A PyTorch class that defines the type of a tensor's numbers."""

    code: str


def array_of(content: Any, dtype: Any, shape: Any, order: Any, *_: Any, space: Space) -> NDArray[Any]:
    """Create an array from a copy of the bytes, which must match its shape."""
    if isinstance(content, str):  # Python 2 wrote bytes as text
        content = content.encode("latin-1")
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, Dtype) or order not in ("C", "F"):
        raise pickle.UnpicklingError("it contains an array in an unknown form")
    kind = np.dtype(dtype.code)
    if math.prod(_lengths(shape)) * kind.itemsize != len(content):
        raise pickle.UnpicklingError("it contains an array whose numbers do not match its shape")
    space.take(len(content))
    return np.frombuffer(bytes(content), kind).reshape(shape, order=order)


def scalar_of(dtype: Any, content: Any) -> object:
    """Return one number or text."""
    return array_of(content, dtype, (1,), "C", space=Space(0))[0].item()


def tensor_of(storage: Any, offset: Any, size: Any, stride: Any, *_: Any, space: Space) -> NDArray[Any]:
    """Return a tensor as a separate array."""
    steps, lengths = _lengths(stride), _lengths(size)
    if not isinstance(storage, Storage) or len(steps) != len(lengths) or not is_amount(offset):
        raise pickle.UnpicklingError("it contains a tensor in an unknown form")
    space.take(math.prod(lengths) * storage.dtype.itemsize)
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
