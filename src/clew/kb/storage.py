"""A knowledge base as a folder: `manifest.json` names one immutable generation, and replacing it is the commit.

    KB/manifest.json      format, counts, schema, the size and SHA-256 of every file
    KB/<generation>/…     nodes, graph and indexes; named after their content
    KB/vectors/…          embeddings by content, shared by all generations

A generation is written beside the old one and the manifest is replaced in one step, so a kill at any moment leaves the
old base or none. Processes that have the old generation open keep their maps.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import CorruptError, FormatError, LockedError, NotFoundError, StorageError

FORMAT = 1
MANIFEST = "manifest.json"
LOCK = ".lock"
STAGE = ".stage-"


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
    if not isinstance(raw, dict) or not isinstance(raw.get("format"), int):
        raise CorruptError(f"{file} is not a manifest of Clew: build the knowledge base again")
    if raw["format"] > FORMAT:
        raise FormatError(f"{folder} has format {raw['format']}, this version reads up to {FORMAT}: upgrade clew")
    digest = raw.pop("digest", None)
    if digest != _seal(raw):
        raise CorruptError(f"{file} was altered (its digest differs): build the knowledge base again")
    return Manifest(raw["generation"], raw["created"], raw["files"], raw["facts"])


def open_generation(folder: Path) -> tuple[Manifest, Path]:
    """The manifest and the folder of the current generation, every file at its recorded size."""
    manifest = read_manifest(folder)
    place = folder / manifest.generation
    if not place.is_dir() and read_manifest(folder).generation != manifest.generation:
        return open_generation(folder)  # replaced between the two reads
    for name, facts in manifest.files.items():
        try:
            size = (place / name).stat().st_size
        except FileNotFoundError:
            raise CorruptError(f"{place / name} is missing: build the knowledge base again") from None
        if size != facts["size"]:
            raise CorruptError(
                f"{place / name} was cut or altered: {size} bytes instead of {facts['size']}; build it again"
            )
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
        elif _sha256(file) != facts["sha256"]:
            problems.append(f"{file} was altered: its SHA-256 differs from the manifest")
    return problems


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the knowledge base for writing; a second writer gets LockedError, and a killed one leaves no lock behind."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("w")
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"{folder} is a file: name a folder for the knowledge base") from None
    except OSError as error:
        raise storage_error(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LockedError(
                f"another process is building {folder}: wait for it, or stop it, then run again"
            ) from None
        yield


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """An empty folder beside the current generation; whatever a killed build left there is removed first."""
    for leftover in folder.glob(f"{STAGE}*"):
        shutil.rmtree(leftover)
    stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=folder))
    try:
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
        files[file.relative_to(stage).as_posix()] = {"size": file.stat().st_size, "sha256": _sha256(file)}
    content = hashlib.sha256(json.dumps([files, facts], sort_keys=True).encode()).hexdigest()
    manifest = Manifest(f"data-{content[:16]}", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), files, facts)
    place = folder / manifest.generation
    if place.exists() and not _is_current(folder, place):  # left behind by a killed build
        shutil.rmtree(place)
    if not place.exists():
        stage.chmod(0o755)
        stage.rename(place)
    draft = folder / f".{MANIFEST}"
    draft.write_text(manifest.to_json(), "utf-8")
    _sync(draft)
    draft.replace(folder / MANIFEST)
    _sync(folder)
    for old in folder.glob("data-*"):
        if old != place:
            shutil.rmtree(old, ignore_errors=True)
    return manifest


def storage_error(folder: Path, error: OSError) -> StorageError:
    """An operating-system error in the words of a user."""
    if error.errno == errno.ENOSPC:
        return StorageError(
            f"the disk is full while writing {folder}: free some space and run again; nothing was changed"
        )
    return StorageError(f"cannot write {folder}: {error.strerror or error}; nothing was changed")


def _is_current(folder: Path, place: Path) -> bool:
    return (folder / MANIFEST).exists() and read_manifest(folder).generation == place.name and not verify(folder)


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
