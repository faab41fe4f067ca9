"""The manifest of a knowledge base: what it holds, sealed, and checked whenever it is read; its counts and schema.

An opened base says here what its manifest records about its files, and whoever maps one of them asks here first: it is
compared with its SHA-256 before anything is taken from it. A file is read once in a process, as long as nobody writes
to it; what is being built has no seal yet.
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
MANIFEST = "manifest.json"
LOCK = ".clew-lock"
GENERATION = re.compile(r"(clew-)?data-[0-9a-f]{16}")
"""What a generation is called; those of version 0.1 had no prefix."""


@dataclass(frozen=True)
class Manifest:
    """What a knowledge base holds; `facts` carries counts, schema and notes of the sources."""

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
        """Return `later` with a way back to this state."""
        return replace(later, undo={"what": what, "before": {**vars(self), "undo": None}})

    def to_json(self) -> str:
        """The manifest as text, sealed by a digest of its own."""
        body = {"format": FORMAT, **{name: value for name, value in vars(self).items() if value is not None}}
        return json.dumps({**body, "digest": seal(body)}, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a knowledge base."""
    file = folder / MANIFEST
    try:
        raw = parse_json(file.read_text("utf-8"))
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
    """What of a manifest is not as Clew writes it, whoever sealed it; empty where all is."""
    if not GENERATION.fullmatch(str(raw.get("generation"))):
        return f"names {raw.get('generation')!r} as its generation"
    if not isinstance(raw.get("created"), str) or not isinstance(raw.get("facts"), dict):
        return "does not say when it was made, or of what"
    if not isinstance(raw.get("files"), dict) or not raw["files"]:
        return "lists no files"
    for name, facts in raw["files"].items():
        if name.startswith("/") or ".." in name.split("/"):
            return f"names a file outside of the knowledge base, {name!r}"
        told = facts if isinstance(facts, dict) else {}
        if type(told.get("size")) is not int or not isinstance(told.get("sha256"), str):
            return f"gives no size and checksum of {name!r}"
    undo = raw.get("undo")
    if undo is None:
        return ""
    before = undo.get("before") if isinstance(undo, dict) else None
    expected = {"generation", "created", "files", "facts", "undo"}
    if not isinstance(before, dict) or before.keys() != expected or not isinstance(undo.get("what"), str):
        return "does not describe the state before its last merge"
    return "nests merges" if before["undo"] is not None else _misfit(before)


def is_base(folder: Path) -> bool:
    """Whether a folder holds a manifest of Clew, sound or not: other programs have files of that name as well."""
    try:
        raw = parse_json((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(raw, dict) and {"format", "generation", "digest"} <= raw.keys()


def seal(body: dict[str, Any]) -> str:
    """A digest of what a manifest says."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Facts:
    """What a manifest keeps about the graph: how many nodes and edges there are, and of which types and relations."""

    nodes: int
    edges: int
    schema: Schema
    notes: tuple[str, ...]

    def to_json(self, schema: Schema | None = None) -> dict[str, Any]:
        """As plain values; `schema` is the edited one, where it was edited."""
        shown = asdict(schema or self.schema)
        return {"nodes": self.nodes, "edges": self.edges, "schema": shown, "notes": list(self.notes)}


def read_facts(raw: Mapping[str, Any], place: object) -> Facts:
    """The facts of a manifest; one that another program has sealed may hold anything, and is refused."""
    try:
        facts = Facts(raw["nodes"], raw["edges"], schema_from_json(raw["schema"]), tuple(raw["notes"]))
        wrong = "its notes are no list" if not isinstance(raw["notes"], list) else misfit(facts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        raise CorruptError(f"the manifest of {place} does not describe a graph ({wrong}): build the base again")
    return facts


def misfit(facts: Facts) -> str:
    """What of the facts cannot be; empty where all can."""
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
        return "a relation joins types that are not there"
    return ""


def schema_from_json(raw: Mapping[str, Any]) -> Schema:
    """The schema as the manifest keeps it."""
    return Schema(
        tuple(NodeType(**{**row, "attributes": tuple(row["attributes"])}) for row in raw["node_types"]),
        tuple(Relation(**row) for row in raw["relations"]),
        dict(raw["attribute_types"]),
        dict(raw["edge_attributes"]),
    )


State = tuple[int, int, int, int]
"""What tells whether a file was written to: its device, its number there, its size and when it was changed last."""
EXTRACTED = "extracted"
"""Where a base keeps the texts of the documents it was built from."""
KEPT_TEXT = re.compile(r"[0-9a-f]{32}(\.\w+)?-(?P<version>\d+)\.json")
"""What a kept text is called."""
CONFIRMED = "feedback.jsonl"
"""Confirmed answers."""
ASKED = "reader_questions.jsonl"
"""How people ask for what is in a base; also written by people."""
LEARNED = "feedback_paths.json"
"""What was learned from the confirmed answers of a base."""
FITTED = "reader_fitted.json"
"""What the reader learned for a base."""
TUNED = "tuned.json"
"""The method that was chosen for a base."""
BESIDE = (CONFIRMED, ASKED, LEARNED, FITTED, TUNED)
"""Files of a base outside of its generations. A rebuild keeps them."""
FIRST_SEALED = 4
"""The version of the readers since which kept texts have a digest."""
DEEPEST = 3
"""How far below the folder of a generation its files lie."""

_sealed: dict[Path, Mapping[str, Any]] = {}
_sound: dict[tuple[Path, str], State] = {}


def seal_folder(place: Path, files: Mapping[str, Any]) -> None:
    """From now on a file below this folder is only used as its manifest records it."""
    _sealed[place] = files


def check_sealed(file: Path) -> None:
    """Refuse a file that is not as its manifest records it; nothing happens where it has no seal."""
    place = next((folder for folder in list(file.parents)[:DEEPEST] if folder in _sealed), None)
    if place is None:
        return
    facts = _sealed[place].get(file.relative_to(place).as_posix())
    if facts is None:
        raise CorruptError(f"{file} is not in the manifest: `clew repair {place.parent}` restores what belongs there")
    try:
        found = file.lstat()
        state = (found.st_dev, found.st_ino, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns))
        if _sound.get((file, facts["sha256"])) == state:
            return
        digest = file_sha256(file)
        if stat.S_ISLNK(found.st_mode):
            raise CorruptError(f"{file} is a link, and Clew makes none: remove it")
    except OSError as error:
        raise CorruptError(f"{file} cannot be read ({error.strerror}): `clew verify {place.parent}`") from error
    if digest != facts["sha256"]:
        raise CorruptError(
            f"{file} was altered (its SHA-256 differs): `clew repair {place.parent}` restores what it can"
        )
    _sound[file, facts["sha256"]] = state


SEALED = re.compile(rb"[0-9a-f]{63}")
"""The digest before a sealed text, without its first character: that may have been altered to one of JSON's."""


def sealed_text(content: bytes) -> bytes:
    """A text with its own digest as the first line, for files that no manifest lists."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def unsealed_text(sealed: bytes) -> bytes | None:
    """The text behind its digest; None where one does not fit the other."""
    digest, _, content = sealed.partition(b"\n")
    return content if hashlib.sha256(content).hexdigest().encode() == digest else None


def unsealed_or_older(content: bytes) -> bytes | None:
    """The text behind its digest, or JSON without one: of an older version, or written by people."""
    first = content.partition(b"\n")[0]
    is_plain = content[:1] in (b"{", b"[") and not SEALED.fullmatch(first[1:])
    return content if is_plain else unsealed_text(content)


def altered_texts(folder: Path) -> list[Path]:
    """Return the texts of documents and the files beside the generations whose checksum differs."""
    altered = []
    for file in sorted((folder / EXTRACTED).glob("*.json")):
        told = KEPT_TEXT.fullmatch(file.name)
        if told and int(told["version"]) >= FIRST_SEALED and unsealed_text(file.read_bytes()) is None:
            altered.append(file)
    for file in (folder / name for name in BESIDE if (folder / name).exists()):
        unsealed = unsealed_text if file.name == FITTED else unsealed_or_older
        if unsealed(file.read_bytes()) is None:
            altered.append(file)
    return altered


def remedy_for(text: Path) -> str:
    """Return how to get an altered text or file beside the generations back."""
    made_by = {
        CONFIRMED: "`clew feedback KB --question … --answer …`",
        ASKED: "`clew train reader KB --model …`",
        LEARNED: "`clew feedback KB --learn`",
        FITTED: "`clew train reader KB`",
        TUNED: "`clew tune KB`",
    }
    return f"{made_by.get(text.name, 'the next build')} makes it anew"


def learned_digests(folder: Path) -> dict[str, str]:
    """What tells one state of what a base was taught from any other."""
    return {name: file_sha256(folder / name) for name in (LEARNED, FITTED, TUNED) if (folder / name).is_file()}
