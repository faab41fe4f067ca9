"""pdfium's C functions without the checks of pypdfium2, which cost as much as the calls.

pdfium keeps its state in globals and is not thread-safe: whoever calls it holds PDFIUM.
"""

from __future__ import annotations

import ctypes
from threading import RLock
from typing import Any

PDFIUM = RLock()
"""Held around every use of pdfium."""
POINTER = ctypes.c_void_p


def direct(function: Any, result: Any, *arguments: Any) -> Any:
    """The same function of the library with arguments that are not checked."""
    return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, POINTER).value or 0)
