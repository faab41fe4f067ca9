"""Clew answers questions over a knowledge base and hands over the thread: facts, paths and passages."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.api import Base, build, open

__version__ = "0.1.0"
__all__ = ["Base", "__version__", "build", "open"]


def __getattr__(name: str) -> Any:
    """Import the library on first use, so that a submodule does not pay for all of it."""
    if name in ("Base", "build", "open"):
        from clew import api

        return getattr(api, name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")
