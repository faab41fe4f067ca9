"""A knowledge base as a folder. `manifest.json` names one immutable generation, and replacing it is the commit.

    KB/manifest.json         format, counts, schema, the size and SHA-256 of every file
    KB/clew-data-<digest>/…  one generation: nodes, graph and indexes, named by a digest of their content
    KB/vectors/…             embeddings by content, shared by all generations
    KB/feedback.jsonl …      learned data, see `BESIDE`, each file with its digest
    KB/.clew-lock            locked by the writing process, and lists the files it creates and replaces

Every change has three steps. Stage: write the new files under unused names, which the lock lists. Swap: replace one
file, the manifest or a file outside the generations. Clean up: remove the files that the lock lists. A crash before the
swap leaves the old state, a crash after it the new state, and the next writer cleans up. A merge can be undone: its
manifest names the previous generation, which stays, so undo is one swap.

Processes lock the generation they have open, and a later writer removes it. Writers remove only files that the lock
lists, since all other files in the folder belong to someone else.
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

from clew.core.disk import draft_of, file_sha256, hold, is_shared, refuse_foreign, refuse_link, share, sync, write_whole
from clew.core.errors import CorruptError, InputError, LockedError, NotFoundError, StorageError
from clew.store.graph.manifest import BESIDE, GENERATION, LOCK, MANIFEST, Manifest, is_base, read_manifest, seal_folder


class Held:
    """Lock on a generation in use. No writer removes the generation while it is open."""

    def __init__(self, place: Path) -> None:
        """Lock a folder for reading. Do nothing if it is missing or being removed."""
        self._close: weakref.finalize[Any, Any] | None = None
        with suppress(FileNotFoundError, NotADirectoryError):
            descriptor = share(place)
            if descriptor is not None:
                self._close = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Release the lock."""
        if self._close is not None:
            self._close()


OWN = re.compile(rf"{GENERATION.pattern}|\.clew-stage-[0-9a-f]{{16}}")
"""Names of folders that Clew creates. Listed in the manifest or the lock, they may be removed."""
DRAFTS = {draft_of(Path(name)).name for name in (MANIFEST, *BESIDE)}
"""Names of drafts that Clew creates."""
WAIT_SECONDS = 10
"""Maximum time that a small change waits for another writer, in seconds."""


def open_generation(folder: Path, *, whole: bool = True) -> tuple[Manifest, Path, Held]:
    """Return the manifest and the locked folder of the current generation. `whole` checks the size of every file."""
    while True:
        before = _state(folder / MANIFEST)
        manifest = read_manifest(folder)
        place = folder / manifest.generation
        refuse_link(place)
        held = Held(place)
        if _state(folder / MANIFEST) == before:
            break
        held.close()  # the manifest was replaced meanwhile
    for name, facts in manifest.files.items() if whole else ():
        try:
            state = (place / name).lstat()
        except OSError as error:
            raise CorruptError(f"{place / name} cannot be read ({error.strerror}): build the base again") from None
        if stat.S_ISLNK(state.st_mode):
            refuse_link(place / name)
        if state.st_size != facts["size"]:
            raise CorruptError(
                f"{place / name} has {state.st_size} bytes instead of {facts['size']}: build the base again"
            )
    seal_folder(place, manifest.files)
    return manifest, place, held


def _state(file: Path) -> tuple[int, int, int] | None:
    """Return values that change when the file is replaced."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def verify(folder: Path) -> list[str]:
    """Return all problems with the files of a knowledge base."""
    try:
        manifest = read_manifest(folder)
    except StorageError as error:
        return [str(error)]
    states = [manifest] if manifest.previous is None else [manifest, manifest.previous]
    return [problem for state in states for problem in _damage(folder / state.generation, state.files)]


def _damage(place: Path, files: dict[str, dict[str, Any]]) -> list[str]:
    """Return the files of a generation that differ from their manifest."""
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
def locked(folder: Path, *, wait_seconds: float = 0) -> Iterator[None]:
    """Lock the knowledge base for writing. A second writer gets LockedError. The lock ends with the process.

    Raise InputError for a folder with other files. Remove a new folder that is still empty at the end.
    """
    if not is_base(folder):
        refuse_foreign(folder, (LOCK,), "knowledge base", "name a new folder, such as base.kb")
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock_file(folder, time.monotonic() + wait_seconds)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"{folder} is a file: name a folder for the knowledge base") from None
    except OSError as error:
        raise storage_error(folder, error) from error
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):  # other files were added, or the folder was removed
                if missing and {entry.name for entry in folder.iterdir()} == {LOCK}:
                    (folder / LOCK).unlink()
                    for place in missing:
                        place.rmdir()


def _lock_file(folder: Path, deadline: float) -> IO[str]:
    """Return the locked file. Retry if the previous owner has just removed it."""
    refuse_link(folder / LOCK)
    while True:
        lock = (folder / LOCK).open("a+", encoding="utf-8")
        try:
            hold(lock.fileno(), wait=False)
        except OSError:
            lock.close()
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            raise LockedError(f"another process is building {folder}: wait until it ends and try again") from None
        try:
            if (folder / LOCK).stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
        lock.close()


def sweep(folder: Path) -> None:
    """Remove the leftovers of a killed command."""
    if (folder / LOCK).exists() and (folder / LOCK).stat().st_size:
        with locked(folder):
            remove_recorded(folder)


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """Create an empty folder next to the current generation, after removing leftovers of killed builds."""
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
    folder: Path,
    stage: Path,
    facts: dict[str, Any],
    prepare: Callable[[Path], None] = lambda _: None,
    merged: str | None = None,
) -> Manifest:
    """Make the staged files the current generation and remove the old generation.

    `prepare` is called with the new generation before the swap. If `merged` describes a merge, the old generation
    stays, and `revert` restores it.
    """
    files = {}
    for file in sorted(path for path in stage.rglob("*") if path.is_file()):
        sync(file)
        files[file.relative_to(stage).as_posix()] = {"size": file.stat().st_size, "sha256": file_sha256(file)}
    content = hashlib.sha256(json.dumps([files, facts], sort_keys=True).encode()).hexdigest()
    name, created = f"clew-data-{content[:16]}", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    manifest = Manifest(name, created, files, facts)
    place = folder / name
    while place.exists() and _damage(place, files):  # keep it until the swap: its data may be valid
        content = hashlib.sha256(content.encode()).hexdigest()
        manifest = replace(manifest, generation=f"clew-data-{content[:16]}")
        place = folder / manifest.generation
    if merged is not None:
        manifest = read_manifest(folder).undone_by(manifest, merged)
    record(folder, manifest.generation)
    if not place.exists():
        stage.rename(place)
    prepare(place)
    swap(folder, manifest)
    return manifest


def revert(folder: Path) -> str:
    """Restore the state before the last merge. Return a description of the merge."""
    remove_recorded(folder)
    manifest = read_manifest(folder)
    before = manifest.previous
    if manifest.undo is None or before is None:
        raise InputError(f"{folder}: no merge to undo, or the base has changed since")
    place = folder / before.generation
    refuse_link(place, *(place / name for name in before.files))
    damage = _damage(place, before.files)
    if damage:
        raise CorruptError(f"the state before the merge is damaged: {'; '.join(damage)}")
    swap(folder, before)
    return str(manifest.undo["what"])


def swap(folder: Path, manifest: Manifest) -> None:
    """Make a manifest current and remove the generations that it does not name."""
    record(folder, *_current(folder), draft_of(folder / MANIFEST).name)
    write_whole(folder / MANIFEST, manifest.to_json().encode(), safely=True)
    sync(folder)
    remove_recorded(folder)


def change_file(folder: Path, name: str, change: Callable[[bytes | None], bytes]) -> None:
    """Replace a file outside the generations. `change` gets the old content, or None."""
    file = folder / name
    refuse_link(file)
    with locked(folder, wait_seconds=WAIT_SECONDS):
        remove_recorded(folder)
        content = change(file.read_bytes() if file.exists() else None)
        record(folder, draft_of(file).name)
        write_whole(file, content, safely=True)
        sync(folder)
        remove_recorded(folder)


def record(folder: Path, *names: str) -> None:
    """List names in the lock before creating or replacing them."""
    with (folder / LOCK).open("a", encoding="utf-8") as lock:
        lock.writelines(f"{name}\n" for name in names)
        lock.flush()
        os.fsync(lock.fileno())


def remove_recorded(folder: Path) -> None:
    """Remove the files that the lock lists, except current and used generations."""
    current = _current(folder)
    kept = []
    for name in dict.fromkeys((folder / LOCK).read_text("utf-8", errors="replace").splitlines()):
        place = folder / name
        if OWN.fullmatch(name) and name not in current and place.is_dir() and not place.is_symlink():
            if is_shared(place):
                kept.append(f"{name}\n")
            else:
                shutil.rmtree(place, ignore_errors=True)
        elif name in DRAFTS:
            place.unlink(missing_ok=True)
    with (folder / LOCK).open("r+", encoding="utf-8") as lock:
        lock.writelines(kept)
        lock.truncate()


def _current(folder: Path) -> list[str]:
    """Return the generations that the manifest names. Empty if it cannot be read."""
    try:
        manifest = read_manifest(folder)
    except (StorageError, NotFoundError):
        return []
    return [state.generation for state in (manifest, manifest.previous) if state is not None]


def storage_error(folder: Path, error: OSError) -> StorageError:
    """Describe an error of the operating system for users."""
    if error.errno == errno.ENOSPC:
        return StorageError(f"the disk is full, and {folder} was not changed: free some space and try again")
    return StorageError(f"cannot write {folder}: {error.strerror or error}. Nothing was changed")
