"""Manifest of a knowledge base: counts, schema and file digests, checked whenever it is read.

An opened base registers its manifest here. Before a file is mapped, its content is compared with the recorded SHA-256.
Each file is checked once per process unless it changes. Files of an unfinished build are not checked.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from clew.core.disk import file_sha256
from clew.core.errors import CorruptError, FormatError, NotFoundError, StorageError
from clew.core.schema import NodeType, Relation, Schema
from clew.core.texts import parse_json

FORMAT = 1
"""Version of the files of a base. Newer versions are rejected."""
MANIFEST = "manifest.json"
LOCK = ".clew-lock"
GENERATION = re.compile(r"(clew-)?data-[0-9a-f]{16}")
"""Names of generations. Names of version 0.1 have no prefix."""


@dataclass(frozen=True)
class Manifest:
    """Content of a knowledge base. `facts` has counts, schema and notes of the sources."""

    generation: str
    created: str
    files: dict[str, dict[str, Any]]
    facts: dict[str, Any]
    undo: dict[str, Any] | None = None
    """The last merge: `what` it changed, and `before`, the manifest of the state that can be restored."""

    @property
    def previous(self) -> Manifest | None:
        """The state before the last merge, if it can be restored."""
        return None if self.undo is None else Manifest(**self.undo["before"])

    def undone_by(self, later: Manifest, what: str) -> Manifest:
        """Return `later` with a way to restore this state."""
        return replace(later, undo={"what": what, "before": {**vars(self), "undo": None}})

    def to_json(self) -> str:
        """Return the manifest as text with its digest."""
        body = {"format": FORMAT, **{name: value for name, value in vars(self).items() if value is not None}}
        return json.dumps({**body, "digest": seal(body)}, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a knowledge base."""
    file = folder / MANIFEST
    try:
        raw = parse_json(file.read_text("utf-8"))
    except FileNotFoundError:
        if folder.parts[:1] in (("http:",), ("https:",)):
            raise NotFoundError(
                f"{folder} is not a folder: open a SPARQL endpoint as sparql+http://HOST/query"
            ) from None
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
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror}") from error
    if not isinstance(raw, dict) or type(raw.get("format")) is not int or raw["format"] < 1:
        raise CorruptError(f"{file} is not a manifest of Clew: build the knowledge base again")
    if raw["format"] > FORMAT:
        raise FormatError(f"{folder} has format {raw['format']}, this version reads up to {FORMAT}: upgrade clew")
    digest = raw.pop("digest", None)
    if digest != seal(raw):
        raise CorruptError(f"{file} was altered (its digest differs): build the knowledge base again")
    wrong = _misfit(raw)
    if wrong:
        raise CorruptError(f"{file} {wrong}: build the knowledge base again")
    return Manifest(raw["generation"], raw["created"], raw["files"], raw["facts"], raw.get("undo"))


def _misfit(raw: dict[str, Any]) -> str:
    """Return the first deviation from the manifest format. Empty if there is none."""
    if not GENERATION.fullmatch(str(raw.get("generation"))):
        return f"names {raw.get('generation')!r} as its generation"
    if not isinstance(raw.get("created"), str) or not isinstance(raw.get("facts"), dict):
        return "lacks its creation time or its facts"
    if not isinstance(raw.get("files"), dict) or not raw["files"]:
        return "lists no files"
    for name, facts in raw["files"].items():
        if name.startswith("/") or ".." in name.split("/"):
            return f"names a file outside of the knowledge base, {name!r}"
        sizes = facts if isinstance(facts, dict) else {}
        if type(sizes.get("size")) is not int or not isinstance(sizes.get("sha256"), str):
            return f"has no size and checksum of {name!r}"
    undo = raw.get("undo")
    if undo is None:
        return ""
    before = undo.get("before") if isinstance(undo, dict) else None
    expected = {"generation", "created", "files", "facts", "undo"}
    if not isinstance(before, dict) or before.keys() != expected or not isinstance(undo.get("what"), str):
        return "does not describe the state before its last merge"
    return "nests merges" if before["undo"] is not None else _misfit(before)


def is_base(folder: Path) -> bool:
    """Return whether a folder contains a manifest of Clew, valid or not, and not a file of another program."""
    try:
        raw = parse_json((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(raw, dict) and {"format", "generation", "digest"} <= raw.keys()


def seal(body: dict[str, Any]) -> str:
    """Return the digest of a manifest."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Facts:
    """Graph facts of a manifest: counts of nodes and edges, and the schema."""

    nodes: int
    edges: int
    schema: Schema
    notes: tuple[str, ...]

    def to_json(self, schema: Schema | None = None) -> dict[str, Any]:
        """Return plain values. `schema` is the edited schema, if any."""
        shown = asdict(schema or self.schema)
        return {"nodes": self.nodes, "edges": self.edges, "schema": shown, "notes": list(self.notes)}


def read_facts(raw: Mapping[str, Any], place: object) -> Facts:
    """Parse the facts of a manifest. Raise CorruptError if they are invalid."""
    try:
        facts = Facts(raw["nodes"], raw["edges"], schema_from_json(raw["schema"]), tuple(raw["notes"]))
        wrong = "its notes are not a list" if not isinstance(raw["notes"], list) else misfit(facts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        raise CorruptError(f"the manifest of {place} does not describe a graph ({wrong}): build the base again")
    return facts


def misfit(facts: Facts) -> str:
    """Return the first contradiction in the facts. Empty if there is none."""
    kinds = facts.schema.node_types
    rows = facts.schema.relations
    counts = [facts.nodes, facts.edges, *(kind.count for kind in kinds), *(row.count for row in rows)]
    if not all(type(count) is int and count >= 0 for count in counts):
        return "a count is not a number"
    if sum(kind.count for kind in kinds) != facts.nodes or sum(row.count for row in rows) != facts.edges:
        return "the counts of its types or relations do not add up"
    known = {kind.name for kind in kinds}
    if len(known) != len(kinds) or not all(isinstance(name, str) for name in known):
        return "two types have one name"
    if not all(isinstance(row.name, str) and {row.head, row.tail} <= known for row in rows):
        return "a relation connects unknown types"
    return ""


def schema_from_json(raw: Mapping[str, Any]) -> Schema:
    """Parse the schema of a manifest."""
    return Schema(
        tuple(NodeType(**{**row, "attributes": tuple(row["attributes"])}) for row in raw["node_types"]),
        tuple(Relation(**row) for row in raw["relations"]),
        dict(raw["attribute_types"]),
        dict(raw["edge_attributes"]),
    )


State = tuple[int, int, int, int]
"""State of a file to detect changes: device, inode, size and time of the last change."""
EXTRACTED = "extracted"
"""Folder for the texts of source documents."""
KEPT_TEXT = re.compile(r"[0-9a-f]{32}(\.\w+)?-(?P<version>\d+)\.json")
"""File name of a cached text."""
CONFIRMED = "feedback.jsonl"
"""Confirmed answers."""
ASKED = "reader_questions.jsonl"
"""Questions as people ask them about a base. People may also write this file."""
LEARNED = "feedback_paths.json"
"""Paths learned from the confirmed answers of a base."""
FITTED = "reader_fitted.json"
"""Training results of the reader for a base."""
TUNED = "tuned.json"
"""The method chosen for a base."""
BESIDE = (CONFIRMED, ASKED, LEARNED, FITTED, TUNED)
"""Files of a base outside its generations. A rebuild keeps them."""
FIRST_SEALED = 4
"""First version of the readers whose cached texts have a digest."""
DEEPEST = 3
"""Maximum depth of files below the folder of a generation."""

_sealed: dict[Path, Mapping[str, Any]] = {}
_sound: dict[tuple[Path, str], State] = {}


def seal_folder(place: Path, files: Mapping[str, Any]) -> None:
    """Check files below this folder against the manifest from now on."""
    _sealed[place] = files


def check_sealed(file: Path) -> None:
    """Raise CorruptError if a file differs from its manifest. Ignore files without a manifest."""
    place = next((folder for folder in list(file.parents)[:DEEPEST] if folder in _sealed), None)
    if place is None:
        return
    facts = _sealed[place].get(file.relative_to(place).as_posix())
    if facts is None:
        raise CorruptError(f"{file} is not in the manifest: run `clew repair {place.parent}`")
    try:
        found = file.lstat()
        state = (found.st_dev, found.st_ino, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns))
        if _sound.get((file, facts["sha256"])) == state:
            return
        digest = file_sha256(file)
        if stat.S_ISLNK(found.st_mode):
            raise CorruptError(f"{file} is a link, which Clew does not create: remove it")
    except OSError as error:
        raise CorruptError(f"{file} cannot be read ({error.strerror}): run `clew verify {place.parent}`") from error
    if digest != facts["sha256"]:
        raise CorruptError(f"{file} was altered (its SHA-256 differs): run `clew repair {place.parent}`")
    _sound[file, facts["sha256"]] = state


SEALED = re.compile(rb"[0-9a-f]{63}")
"""The digest before a sealed text without its first character, which may have been altered to one of JSON."""


def sealed_text(content: bytes) -> bytes:
    """Prepend the digest of a text as the first line, for files that are not in a manifest."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def unsealed_text(sealed: bytes) -> bytes | None:
    """Return the text after its digest, or None if they do not match."""
    digest, _, content = sealed.partition(b"\n")
    return content if hashlib.sha256(content).hexdigest().encode() == digest else None


def unsealed_or_older(content: bytes) -> bytes | None:
    """Return the text after its digest, or JSON without a digest from an older version or a person."""
    first = content.partition(b"\n")[0]
    is_plain = content[:1] in (b"{", b"[") and not SEALED.fullmatch(first[1:])
    return content if is_plain else unsealed_text(content)


def altered_texts(folder: Path) -> list[Path]:
    """Return the texts of documents and the files outside the generations whose checksum differs."""
    altered = []
    for file in sorted((folder / EXTRACTED).glob("*.json")):
        match = KEPT_TEXT.fullmatch(file.name)
        if match and int(match["version"]) >= FIRST_SEALED and unsealed_text(file.read_bytes()) is None:
            altered.append(file)
    for file in (folder / name for name in BESIDE if (folder / name).exists()):
        unsealed = unsealed_text if file.name == FITTED else unsealed_or_older
        if unsealed(file.read_bytes()) is None:
            altered.append(file)
    return altered


def remedy_for(text: Path) -> str:
    """Return how to recreate an altered text or file outside the generations."""
    made_by = {
        CONFIRMED: "`clew feedback KB --question … --answer …`",
        ASKED: "`clew train reader KB --model …`",
        LEARNED: "`clew feedback KB --learn`",
        FITTED: "`clew train reader KB`",
        TUNED: "`clew tune KB`",
    }
    return f"{made_by.get(text.name, 'the next build')} creates it again"


def learned_digests(folder: Path) -> dict[str, str]:
    """Return digests that identify the learned state of a base."""
    return {name: file_sha256(folder / name) for name in (LEARNED, FITTED, TUNED) if (folder / name).is_file()}
