"""A knowledge base as a folder: `manifest.json` names one immutable generation, and replacing it is the commit.

    KB/manifest.json         format, counts, schema, the size and SHA-256 of every file
    KB/clew-data-<digest>/…  one generation: nodes, graph and indexes; named after their content
    KB/vectors/…             embeddings by content, shared by all generations
    KB/.clew-undo/…          what the last merge of duplicates changed, as it was before
    KB/.clew-lock            held by the process that writes; names the folders it makes and replaces

A generation is written beside the old one and the manifest is replaced in one step, so a kill at any moment leaves the
old base or none. Processes that have the old generation open hold it: it is removed by the next writer after them. A
folder is removed only where the manifest or the lock names it: whatever else lies in the folder of a base is somebody
else's.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from clew.core.disk import file_sha256, hold, is_shared, refuse_foreign, refuse_link, share, sync, write_whole
from clew.core.errors import CorruptError, LockedError, NotFoundError, StorageError
from clew.kb.manifest import GENERATION, LOCK, MANIFEST, Manifest, is_base, read_manifest, seal_folder


class Held:
    """A generation in use: as long as this is open, no writer removes it."""

    def __init__(self, place: Path) -> None:
        """Where there is no such folder, or a writer is removing it, nothing is held."""
        self._close: weakref.finalize[Any, Any] | None = None
        with suppress(FileNotFoundError, NotADirectoryError):
            descriptor = share(place)
            if descriptor is not None:
                self._close = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Let it go."""
        if self._close is not None:
            self._close()


OWN = re.compile(rf"{GENERATION.pattern}|\.clew-stage-[0-9a-f]{{16}}")
"""Names of folders that Clew makes; one that the manifest or the lock records may be removed."""


def open_generation(folder: Path, *, whole: bool = True) -> tuple[Manifest, Path, Held]:
    """The manifest and the folder of the current generation, held; `whole` means every file at its recorded size."""
    while True:
        before = _state(folder / MANIFEST)
        manifest = read_manifest(folder)
        place = folder / manifest.generation
        refuse_link(place)
        held = Held(place)
        if _state(folder / MANIFEST) == before:
            break
        held.close()  # it was replaced meanwhile
    for name, facts in manifest.files.items() if whole else ():
        try:
            state = (place / name).lstat()
        except OSError as error:
            raise CorruptError(f"{place / name} cannot be read ({error.strerror}): build the base again") from None
        if stat.S_ISLNK(state.st_mode):
            refuse_link(place / name)
        if state.st_size != facts["size"]:
            raise CorruptError(
                f"{place / name} was cut or altered: {state.st_size} bytes instead of {facts['size']}; build it again"
            )
    seal_folder(place, manifest.files)
    return manifest, place, held


def _state(file: Path) -> tuple[int, int, int] | None:
    """What tells one file of this name from the next."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def verify(folder: Path) -> list[str]:
    """Everything that is wrong with the files of a knowledge base; empty when all is well."""
    try:
        manifest = read_manifest(folder)
    except StorageError as error:
        return [str(error)]
    place = folder / manifest.generation
    return _damage(place, manifest.files)


def _damage(place: Path, files: dict[str, dict[str, Any]]) -> list[str]:
    """Which files of a generation are not as they were written."""
    problems = []
    for name, facts in files.items():
        file = place / name
        try:
            size = file.stat().st_size
            if size != facts["size"]:
                problems.append(f"{file} was cut or altered: {size} bytes, expected {facts['size']}")
            elif file_sha256(file) != facts["sha256"]:
                problems.append(f"{file} was altered: its SHA-256 differs from the manifest")
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            problems.append(f"{file} is missing" if missing else f"{file} cannot be read: {error.strerror}")
    return problems


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the knowledge base for writing; a second writer gets LockedError, and a killed one leaves no lock behind.

    A folder of other files is refused; where a new one stays empty, because the build was refused, it is removed again.
    """
    if not is_base(folder):
        refuse_foreign(folder, (LOCK,), "knowledge base", "name a new folder, such as base.kb")
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock_file(folder)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"{folder} is a file: name a folder for the knowledge base") from None
    except OSError as error:
        raise storage_error(folder, error) from error
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):  # somebody else has put something there, or has removed it
                if missing and {entry.name for entry in folder.iterdir()} == {LOCK}:
                    (folder / LOCK).unlink()
                    for place in missing:
                        place.rmdir()


def _lock_file(folder: Path) -> IO[str]:
    """The lock, held: not one that its last holder has just removed."""
    refuse_link(folder / LOCK)
    while True:
        lock = (folder / LOCK).open("a+", encoding="utf-8")
        try:
            hold(lock.fileno(), wait=False)
        except OSError:
            lock.close()
            raise LockedError(
                f"another process is building {folder}: wait for it, or stop it, then run again"
            ) from None
        try:
            if (folder / LOCK).stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
        lock.close()


def sweep(folder: Path) -> None:
    """Remove what a killed command left in a base, where it left anything."""
    if (folder / LOCK).exists() and (folder / LOCK).stat().st_size:
        with locked(folder):
            remove_recorded(folder)


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """An empty folder beside the current generation; whatever a killed build left there is removed first."""
    remove_recorded(folder)
    stage = folder / f".clew-stage-{secrets.token_hex(8)}"
    try:
        record(folder, stage.name)
        stage.mkdir()
        yield stage
    except OSError as error:
        raise storage_error(folder, error) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def commit(
    folder: Path, stage: Path, facts: dict[str, Any], about_to: Callable[[str], None] = lambda _: None
) -> Manifest:
    """Make the staged files the current generation and remove the old one; `about_to` is told its name before."""
    files = {}
    for file in sorted(path for path in stage.rglob("*") if path.is_file()):
        sync(file)
        files[file.relative_to(stage).as_posix()] = {"size": file.stat().st_size, "sha256": file_sha256(file)}
    content = hashlib.sha256(json.dumps([files, facts], sort_keys=True).encode()).hexdigest()
    name, created = f"clew-data-{content[:16]}", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    manifest = Manifest(name, created, files, facts)
    place = folder / name
    while place.exists() and _damage(place, files):  # it stays until the manifest is replaced: its data may be sound
        content = hashlib.sha256(content.encode()).hexdigest()
        manifest = replace(manifest, generation=f"clew-data-{content[:16]}")
        place = folder / manifest.generation
    record(folder, manifest.generation, *_current(folder))
    if not place.exists():
        stage.rename(place)
    about_to(manifest.generation)
    write_whole(folder / MANIFEST, manifest.to_json().encode(), safely=True)
    sync(folder)
    remove_recorded(folder)
    return manifest


def record(folder: Path, *names: str) -> None:
    """Write into the lock which folders are about to be made or replaced."""
    with (folder / LOCK).open("a", encoding="utf-8") as lock:
        lock.writelines(f"{name}\n" for name in names)
        lock.flush()
        os.fsync(lock.fileno())


def remove_recorded(folder: Path) -> None:
    """Remove the folders that the lock names, but for the current generation and those in use, and forget them."""
    current = _current(folder)
    kept = []
    for name in dict.fromkeys((folder / LOCK).read_text("utf-8", errors="replace").splitlines()):
        place = folder / name
        if OWN.fullmatch(name) and name not in current and place.is_dir() and not place.is_symlink():
            if is_shared(place):
                kept.append(f"{name}\n")
            else:
                shutil.rmtree(place, ignore_errors=True)
    with (folder / LOCK).open("r+", encoding="utf-8") as lock:
        lock.writelines(kept)
        lock.truncate()


def _current(folder: Path) -> list[str]:
    """The generation that the manifest names; none where there is no manifest that can be read."""
    try:
        return [read_manifest(folder).generation]
    except (StorageError, NotFoundError):
        return []


def storage_error(folder: Path, error: OSError) -> StorageError:
    """An operating-system error in the words of a user."""
    if error.errno == errno.ENOSPC:
        return StorageError(
            f"the disk is full while writing {folder}: free some space and run again; nothing was changed"
        )
    return StorageError(f"cannot write {folder}: {error.strerror or error}; nothing was changed")
