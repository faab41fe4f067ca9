"""Arrays in files are read as NumPy reads them, by many threads at once, and damage is a ValueError."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from clew.core.array_files import map_array, read_array, read_arrays

KINDS = st.sampled_from(["|b1", "|i1", "|u1", "<i4", "<i8", "<u4", "<u8", "<f2", "<f4", "<f8"])
ARRAYS = KINDS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("arrays")


@given(array=ARRAYS, fortran=st.booleans())
def test_what_numpy_writes_is_read(place, array, fortran):
    array = np.asfortranarray(array) if fortran else array
    np.save(place / "one.npy", array)
    np.savez(place / "some.npz", first=array, second=np.arange(3))
    content = (place / "one.npy").read_bytes()
    for found in (map_array(place / "one.npy"), read_array(content), read_arrays(place / "some.npz")["first"]):
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@given(data=st.data())
def test_damage_is_said_or_changes_numbers_alone(place, data):
    np.save(place / "whole.npy", np.arange(40, dtype=np.int32))
    content = bytearray((place / "whole.npy").read_bytes())
    spot = data.draw(st.integers(0, len(content) - 1))
    content[spot] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.sampled_from([len(content), spot]))
    (place / "damaged.npy").write_bytes(content[:cut])
    for read in (lambda: map_array(place / "damaged.npy"), lambda: read_array(bytes(content[:cut]))):
        with suppress(ValueError):
            assert read().nbytes == 160


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.zeros(2, [("a", "<i4")]), np.zeros(2, ">i4")])
def test_what_is_no_plain_number_is_refused(place, array):
    np.save(place / "odd.npy", array)
    with pytest.raises(ValueError, match="plain numbers"):
        map_array(place / "odd.npy")


class Finalised:
    """Part of a cycle that is cleared by running Python, so that threads change wherever memory is asked for."""

    def __init__(self):
        self.own = self

    def __del__(self):
        for _ in range(20):
            pass


def test_threads_read_at_once(place):
    """`numpy.load` may raise SystemError here in CPython 3.11.7, after some thousand headers."""
    np.save(place / "shared.npy", np.arange(9))

    def read(_):
        for _ in range(4_000):
            Finalised()
            map_array(place / "shared.npy")

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.freeze()
    gc.set_threshold(5)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(read, range(8)))
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        sys.setswitchinterval(interval)
