"""Whose folder it is: Clew writes only into folders that are new, empty or its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.core.errors import CorruptError, InputError

SHOWN = 3
"""How many of the other files an error names."""


def refuse_foreign(folder: Path, own: Sequence[str], what: str, remedy: str = "name a new folder") -> None:
    """Refuse a folder that holds files, but none of `own`, the names by which Clew knows a folder as its own."""
    if any((folder / name).exists() for name in own):
        return
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:  # not there yet, or no folder: whoever makes it says so
        return
    if names:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        raise InputError(f"{folder} holds other files ({shown}) and no {what}: nothing was written; {remedy}")


def refuse_link(*files: Path) -> None:
    """Refuse files that are links: those of a base from a stranger may lead to any file of its user."""
    for file in files:
        if file.is_symlink():
            raise CorruptError(f"{file} is a link, and Clew makes none: replace it by what it leads to, or remove it")
