"""The manifest of a knowledge base: what it holds, sealed, and checked whenever it is read; its counts and schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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

    def to_json(self) -> str:
        """The manifest as text, sealed by a digest of its own."""
        body = {"format": FORMAT, **vars(self)}
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
        if name.startswith("/") or ".." in name.split("/"):
            return f"names a file outside of the knowledge base, {name!r}"
        told = facts if isinstance(facts, dict) else {}
        if type(told.get("size")) is not int or not isinstance(told.get("sha256"), str):
            return f"gives no size and checksum of {name!r}"
    return ""


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
