"""The state of a base before a change, kept so that the change can be undone to the byte.

    KB/.clew-undo/kept/…        manifest, generation and vectors as they were; what never changes is linked, not copied
    KB/.clew-undo/change.json   which state the change leads to; written last, and without it nothing is undone

One change is kept, the last. A base that was changed again since is not undone: that would lose the later change.
Whatever else lies in the folder is somebody else's and is neither kept nor removed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from clew.core.errors import CorruptError, InputError
from clew.core.folders import refuse_link
from clew.core.notations import parse_json
from clew.index.build import VECTORS
from clew.index.vector_store import FILE as EMBEDDER
from clew.index.vector_store import OWN
from clew.kb.manifest import MANIFEST, read_manifest
from clew.kb.storage import locked, record, remove_recorded

UNDO = ".clew-undo"
_KEPT, _CHANGE = "kept", "change.json"


def keep_state(folder: Path) -> None:
    """Keep the files of a base that its caller has locked and is about to change."""
    place = folder / UNDO
    refuse_link(place)
    shutil.rmtree(place, ignore_errors=True)
    manifest = read_manifest(folder)
    lasting = [Path(manifest.generation, name) for name in manifest.files]
    for relative in (Path(MANIFEST), *lasting, *_vector_files(folder)):
        target = place / _KEPT / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if relative not in lasting or not _linked(folder / relative, target):
            shutil.copy2(folder / relative, target)


def record_change(folder: Path, what: str, generation: str) -> None:
    """Say which generation is about to take the place of the kept one: a kill afterwards can still be undone."""
    told = {"what": what, "generation": generation}
    (folder / UNDO / _CHANGE).write_text(json.dumps(told, ensure_ascii=False) + "\n", "utf-8")


def undo(folder: Path) -> str:
    """Put the kept state back, and return what was undone."""
    read_manifest(folder)
    with locked(folder):
        place = folder / UNDO
        told, changed = _last_change(place), read_manifest(folder).generation
        before = None if told is None else read_manifest(place / _KEPT)
        if told is None or before is None or changed == before.generation:
            _remove(folder, place)  # of a merge or an undo that was killed
            raise InputError(f"{folder}: there is nothing to undo")
        if changed != told["generation"]:
            raise InputError(f"{folder} was changed again since ({told['what']}): undoing would lose the later change")
        kept = [Path(before.generation, name) for name in before.files] + list(_vector_files(place / _KEPT))
        refuse_link(place / _KEPT, *(base / part for base in (folder, place / _KEPT) for part in _parts(kept)))
        record(folder, changed)  # before it is replaced: whoever is killed then leaves it to the next command
        for relative in (*kept, Path(MANIFEST)):  # the manifest last: replacing it is the moment of the change
            _put_back(place / _KEPT / relative, folder / relative)
        _remove_vectors(folder, set(_vector_files(folder)) - set(kept))
        _remove(folder, place)
        return str(told["what"])


def _last_change(place: Path) -> dict[str, str] | None:
    """What the kept state was left for; None where that was never written down."""
    try:
        told = parse_json((place / _CHANGE).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        told = None
    if not isinstance(told, dict) or not {"what", "generation"} <= told.keys():
        raise CorruptError(f"{place / _CHANGE} is damaged: remove {place}, and the base stays as it is")
    return {name: str(value) for name, value in told.items()}


def _remove(folder: Path, place: Path) -> None:
    """Remove what was kept, and generations that were replaced, but for one that somebody has open."""
    remove_recorded(folder)
    refuse_link(place)
    (place / _CHANGE).unlink(missing_ok=True)  # first: without it the rest means nothing
    shutil.rmtree(place, ignore_errors=True)


def _vector_files(folder: Path) -> Iterator[Path]:
    """The files of the vectors, relative to the folder."""
    for file in sorted((folder / VECTORS).rglob("*")):
        if file.is_file() and not file.is_symlink() and (OWN.fullmatch(file.name) or file.name == EMBEDDER):
            yield file.relative_to(folder)


def _parts(files: Sequence[Path]) -> set[Path]:
    """Files with the folders they lie in: none of them may lead out of the base."""
    return {part for file in files for part in (file, *file.parents) if part.name}


def _remove_vectors(folder: Path, files: set[Path]) -> None:
    for relative in files:
        (folder / relative).unlink()
    for place in sorted({(folder / relative).parent for relative in files} | {folder / VECTORS}, reverse=True):
        with suppress(OSError):  # something is left in it, or it was never there
            place.rmdir()


def _linked(file: Path, target: Path) -> bool:
    """Whether the file system could link instead of copy."""
    try:
        os.link(file, target)
    except OSError:
        return False
    return True


def _put_back(kept: Path, file: Path) -> None:
    if file.exists() and file.samefile(kept):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.undo")
    draft.unlink(missing_ok=True)
    shutil.copy2(kept, draft)
    draft.replace(file)
