"""Find the source files of a base again and check their content.

A base stores relative file names and digests, but no absolute paths. It may come from an untrusted person, and Clew
must not open paths that such a person chose. The source folders are stored in the cache of the user who built the base.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ValidationError

from clew.core.disk import file_sha256, write_whole
from clew.core.errors import InputError, NotFoundError, SourceError
from clew.core.texts import parse_json
from clew.models.settings import Settings
from clew.store.graph.visibility import Rules

REMEMBERED = "built_from.json"
"""File in the user's cache with the sources of each base."""
MAX_REMEMBERED = 500
"""Maximum number of bases. The oldest entries are deleted."""


class _Note(BaseModel):
    """The sources of a base, and its visibility rules by file pattern."""

    paths: list[str] = []
    visible: dict[str, list[str]] = {}


def remember_sources(base: Path, paths: Sequence[Path], rules: Rules | None = None) -> None:
    """Store the sources and visibility rules of a base for this user. Ignore errors."""
    with suppress(OSError, InputError):
        file = _remembered_file()
        notes = _read(file)
        key = str(base.resolve())
        notes.pop(key, None)
        visible = {pattern: list(groups) for pattern, groups in (rules or {}).items()}
        notes[key] = _Note(paths=[str(path.resolve()) for path in paths], visible=visible)
        file.parent.mkdir(parents=True, exist_ok=True)
        newest = {base: note.model_dump() for base, note in [*notes.items()][-MAX_REMEMBERED:]}
        write_whole(file, json.dumps(newest, indent=1).encode())


def remembered_sources(base: Path) -> list[Path]:
    """Return the paths this user built a base from, if known."""
    return [Path(path) for path in _remembered(base).paths]


def remembered_rules(base: Path) -> Rules:
    """Return the visibility rules this user built a base with, if known."""
    return _remembered(base).visible


def _remembered(base: Path) -> _Note:
    with suppress(OSError, InputError):
        return _read(_remembered_file()).get(str(base.resolve()), _Note())
    return _Note()


def find_original(base: Path, name: str, digest: str | None, files: Path | None = None) -> Path:
    """Return the unchanged source file of a base: from `files`, or from the source folders or the current folder."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
        raise SourceError(f"the base names {name!r}, which is not a relative path: do not use this base")
    if not digest:
        raise InputError(f"the base has no digest of {name}: build it again with this version")
    folders = [files] if files is not None else [*remembered_sources(base), Path.cwd()]
    candidates = list(dict.fromkeys(file for folder in folders for file in _candidates(folder, name)))
    for file in candidates:
        if file_sha256(file)[:32] == digest:
            return file
    if candidates:
        raise InputError(f"{name} has changed since the base was built: build it again")
    if files is not None:
        raise NotFoundError(f"{name} is not in the given folder")
    searched = ", ".join(map(str, dict.fromkeys(folders)))
    raise NotFoundError(f"{name} is not in {searched}: name its folder (--files FOLDER)")


def _candidates(path: Path, name: str) -> Iterator[Path]:
    """Yield the files that a name may refer to. `path` is a folder or a source file. Skip links out of the folder."""
    if path.is_file():
        if name in (path.name, f"{path.name}/{path.name}"):
            yield path
        return
    root = path.resolve()
    for relative in (name, name.removeprefix(f"{path.name}/")):  # the prefix tells sources with equal names apart
        file = (root / relative).resolve()
        if file.is_file() and file.is_relative_to(root):
            yield file


def _remembered_file() -> Path:
    return Settings.load().cache_folder / REMEMBERED


def _read(file: Path) -> dict[str, _Note]:
    """Read the notes. Earlier versions stored only a list of paths."""
    try:
        raw = parse_json(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    notes = {}
    for base, entry in raw.items() if isinstance(raw, dict) else ():
        with suppress(ValidationError):
            notes[base] = _Note.model_validate({"paths": entry} if isinstance(entry, list) else entry)
    return notes
