"""The files that a base was built from, found again and checked by content.

A base names its files relative to where they lay, with a digest of their bytes, and never says where that was: it may
come from a stranger, and no path that a stranger names is opened. Where a base was built from is remembered among the
files of the user who built it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ValidationError

from clew.core.disk import write_whole
from clew.core.errors import InputError, NotFoundError, SourceError
from clew.core.texts import parse_json
from clew.documents.extracted import content_digest
from clew.models.settings import Settings
from clew.store.graph.visibility import Rules

REMEMBERED = "built_from.json"
"""In the user's cache: folder of a base → what it was built from."""
MOST_REMEMBERED = 500
"""Bases; those built longest ago are forgotten."""


class _Note(BaseModel):
    """The sources of a base, and the rules that say which groups may see them."""

    paths: list[str]
    visible: dict[str, list[str]] = {}


def remember_sources(base: Path, paths: Sequence[Path], rules: Rules | None = None) -> None:
    """Note for this user what a base was built from and who may see what; failing to note it fails nothing."""
    with suppress(OSError, InputError):
        file = _remembered_file()
        known = _read(file)
        own = str(base.resolve())
        known.pop(own, None)
        visible = {pattern: list(groups) for pattern, groups in (rules or {}).items()}
        known[own] = _Note(paths=[str(path.resolve()) for path in paths], visible=visible)
        file.parent.mkdir(parents=True, exist_ok=True)
        newest = {base: note.model_dump() for base, note in [*known.items()][-MOST_REMEMBERED:]}
        write_whole(file, json.dumps(newest, indent=1).encode())


def remembered_sources(base: Path) -> list[Path]:
    """What this user built a base from, where that is known."""
    with suppress(OSError, InputError):
        if note := _read(_remembered_file()).get(str(base.resolve())):
            return [Path(path) for path in note.paths]
    return []


def remembered_rules(base: Path) -> Rules:
    """Return the rules by which this user built a base from documents, if that is known."""
    with suppress(OSError, InputError):
        if note := _read(_remembered_file()).get(str(base.resolve())):
            return note.visible
    return {}


def find_original(base: Path, name: str, digest: str | None, files: Path | None = None) -> Path:
    """The file of a base, unchanged since it was read: in `files`, or where it was built from, or in this folder."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
        raise SourceError(f"the base names {name!r}, which is no file below a folder: do not use it")
    if not digest:
        raise InputError(f"the base does not say what was in {name}: build it again with this version")
    places = [files] if files is not None else [*remembered_sources(base), Path.cwd()]
    there = list(dict.fromkeys(file for place in places for file in _candidates(place, name)))
    for file in there:
        if content_digest(file) == digest:
            return file
    if there:
        raise InputError(f"{name} has changed since the base was built from it: build it again")
    if files is not None:
        raise NotFoundError(f"{name} is not in the folder that was named for it")
    looked = ", ".join(map(str, dict.fromkeys(places)))
    raise NotFoundError(f"{name} is not in {looked}: name its folder (--files FOLDER)")


def _candidates(place: Path, name: str) -> Iterator[Path]:
    """The files that a name may mean in a folder, or the file that was given itself; a link leads nowhere else."""
    if place.is_file():
        if name in (place.name, f"{place.name}/{place.name}"):
            yield place
        return
    root = place.resolve()
    for relative in (name, name.removeprefix(f"{place.name}/")):  # so called where two sources hold the same name
        file = (root / relative).resolve()
        if file.is_file() and file.is_relative_to(root):
            yield file


def _remembered_file() -> Path:
    return Settings.load().cache_folder / REMEMBERED


def _read(file: Path) -> dict[str, _Note]:
    """Read the notes. Earlier versions noted a list of paths alone."""
    try:
        raw = parse_json(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    notes = {}
    for base, entry in raw.items() if isinstance(raw, dict) else ():
        with suppress(ValidationError):
            notes[base] = _Note.model_validate({"paths": entry} if isinstance(entry, list) else entry)
    return notes
