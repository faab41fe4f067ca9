"""A knowledge base as a folder: `manifest.json` names one immutable generation, and replacing it is the commit.

    KB/manifest.json         format, counts, schema, the size and SHA-256 of every file
    KB/clew-data-<digest>/…  one generation: nodes, graph and indexes; named after their content
    KB/vectors/…             embeddings by content, shared by all generations
    KB/.clew-lock            held by the process that writes; names the folders it makes and replaces

A generation is written beside the old one and the manifest is replaced in one step, so a kill at any moment leaves the
old base or none. Processes that have the old generation open keep their maps. A folder is removed only where the
manifest or the lock names it: whatever else lies in the folder of a base is somebody else's.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from clew.core.errors import CorruptError, FormatError, LockedError, NotFoundError, StorageError
from clew.core.folders import refuse_foreign, refuse_link
from clew.kb.sealed import file_sha256, seal_folder

FORMAT = 1
MANIFEST = "manifest.json"
LOCK = ".clew-lock"
GENERATION = re.compile(r"(clew-)?data-[0-9a-f]{16}")
"""What a generation is called; those of version 0.1 had no prefix."""
OWN = re.compile(rf"{GENERATION.pattern}|\.clew-stage-[0-9a-f]{{16}}")
"""Names of folders that Clew makes; one that the manifest or the lock records may be removed."""


@dataclass(frozen=True)
class Manifest:
    """What a knowledge base holds; `facts` carries counts, schema and notes of the sources."""

    generation: str
    created: str
    files: dict[str, dict[str, Any]]
    facts: dict[str, Any]

    def to_json(self) -> str:
        """The manifest as text, sealed by a digest of its own."""
        body = {"format": FORMAT, **vars(self)}
        return json.dumps({**body, "digest": _seal(body)}, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a knowledge base."""
    file = folder / MANIFEST
    try:
        raw = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if not folder.exists():
            raise NotFoundError(f"{folder} does not exist: build it with `clew build SOURCE… -o {folder}`") from None
        unfinished = (folder / LOCK).exists()
        why = "its build has not finished: run it again" if unfinished else f"it has no {MANIFEST}"
        raise NotFoundError(f"{folder} is not a knowledge base: {why}") from None
    except NotADirectoryError:
        raise NotFoundError(
            f"{folder} is a file, not a knowledge base: build one with `clew build {folder} -o KB`"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CorruptError(f"{file} is damaged ({error}): build the knowledge base again") from error
    except RecursionError:
        raise CorruptError(f"{file} is nested too deeply for a manifest: build the knowledge base again") from None
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror}") from error
    if not isinstance(raw, dict) or type(raw.get("format")) is not int or raw["format"] < 1:
        raise CorruptError(f"{file} is not a manifest of Clew: build the knowledge base again")
    if raw["format"] > FORMAT:
        raise FormatError(f"{folder} has format {raw['format']}, this version reads up to {FORMAT}: upgrade clew")
    digest = raw.pop("digest", None)
    if digest != _seal(raw):
        raise CorruptError(f"{file} was altered (its digest differs): build the knowledge base again")
    wrong = _misfit(raw)
    if wrong:
        raise CorruptError(f"{file} {wrong}: build the knowledge base again")
    return Manifest(raw["generation"], raw["created"], raw["files"], raw["facts"])


def _misfit(raw: dict[str, Any]) -> str:
    """What of a manifest is not as Clew writes it, whoever sealed it; empty where all is."""
    if not GENERATION.fullmatch(str(raw.get("generation"))):
        return f"names {raw.get('generation')!r} as its generation"
    if not isinstance(raw.get("created"), str) or not isinstance(raw.get("facts"), dict):
        return "does not say when it was made, or of what"
    if not isinstance(raw.get("files"), dict) or not raw["files"]:
        return "lists no files"
    for name, facts in raw["files"].items():
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            return f"names a file outside of the knowledge base, {name!r}"
        told = facts if isinstance(facts, dict) else {}
        if type(told.get("size")) is not int or not isinstance(told.get("sha256"), str):
            return f"gives no size and checksum of {name!r}"
    return ""


def is_base(folder: Path) -> bool:
    """Whether a folder holds a manifest of Clew, sound or not: other programs have files of that name as well."""
    try:
        raw = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(raw, dict) and {"format", "generation", "digest"} <= raw.keys()


def open_generation(folder: Path) -> tuple[Manifest, Path]:
    """The manifest and the folder of the current generation, every file at its recorded size."""
    manifest = read_manifest(folder)
    place = folder / manifest.generation
    if not place.is_dir() and read_manifest(folder).generation != manifest.generation:
        return open_generation(folder)  # replaced between the two reads
    refuse_link(place)
    for name, facts in manifest.files.items():
        try:
            state = (place / name).lstat()
        except FileNotFoundError:
            raise CorruptError(f"{place / name} is missing: build the knowledge base again") from None
        if stat.S_ISLNK(state.st_mode):
            refuse_link(place / name)
        if state.st_size != facts["size"]:
            raise CorruptError(
                f"{place / name} was cut or altered: {state.st_size} bytes instead of {facts['size']}; build it again"
            )
    seal_folder(place, manifest.files)
    return manifest, place


def verify(folder: Path) -> list[str]:
    """Everything that is wrong with the files of a knowledge base; empty when all is well."""
    try:
        manifest = read_manifest(folder)
    except StorageError as error:
        return [str(error)]
    place = folder / manifest.generation
    problems = []
    for name, facts in manifest.files.items():
        file = place / name
        if not file.exists():
            problems.append(f"{file} is missing")
        elif file.stat().st_size != facts["size"]:
            problems.append(f"{file} was cut or altered: {file.stat().st_size} bytes, expected {facts['size']}")
        elif file_sha256(file) != facts["sha256"]:
            problems.append(f"{file} was altered: its SHA-256 differs from the manifest")
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
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """An empty folder beside the current generation; whatever a killed build left there is removed first."""
    _remove_recorded(folder)
    stage = folder / f".clew-stage-{secrets.token_hex(8)}"
    try:
        _record(folder, stage.name)
        stage.mkdir()
        yield stage
    except OSError as error:
        raise storage_error(folder, error) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def commit(folder: Path, stage: Path, facts: dict[str, Any]) -> Manifest:
    """Make the staged files the current generation and remove the old one."""
    files = {}
    for file in sorted(path for path in stage.rglob("*") if path.is_file()):
        _sync(file)
        files[file.relative_to(stage).as_posix()] = {"size": file.stat().st_size, "sha256": file_sha256(file)}
    content = hashlib.sha256(json.dumps([files, facts], sort_keys=True).encode()).hexdigest()
    name, created = f"clew-data-{content[:16]}", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    manifest = Manifest(name, created, files, facts)
    place = folder / name
    _record(folder, name, *_current(folder))
    if place.exists() and not (_current(folder) == [name] and not verify(folder)):  # damaged
        shutil.rmtree(place)
    if not place.exists():
        stage.rename(place)
    draft = folder / f".{MANIFEST}"
    draft.write_text(manifest.to_json(), "utf-8")
    _sync(draft)
    draft.replace(folder / MANIFEST)
    _sync(folder)
    _remove_recorded(folder)
    return manifest


def _record(folder: Path, *names: str) -> None:
    """Write into the lock which folders are about to be made or replaced."""
    with (folder / LOCK).open("a", encoding="utf-8") as lock:
        lock.writelines(f"{name}\n" for name in names)
        lock.flush()
        os.fsync(lock.fileno())


def _remove_recorded(folder: Path) -> None:
    """Remove the folders that the lock names, but for the current generation, and forget them."""
    current = _current(folder)
    for name in dict.fromkeys((folder / LOCK).read_text("utf-8", errors="replace").splitlines()):
        place = folder / name
        if OWN.fullmatch(name) and name not in current and place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
    os.truncate(folder / LOCK, 0)


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


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
