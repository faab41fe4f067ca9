"""Schema edits in a TOML file: display names, descriptions, answer types, shown attributes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from clew.core.errors import CorruptError, NotFoundError, SchemaError
from clew.core.schema import NodeType, Schema
from clew.core.texts import parse_toml

_HEADING = """\
# Display settings of this knowledge base. Edit the values, and delete lines that should stay unchanged:
#   [types.NAME]      display, description, answer (may its nodes be answers?), show (attributes in documents, in order)
#   [relations.NAME]  display, inverse (read from tail to head), description, transitive (a hierarchy such as is_a)
"""


class _Edit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TypeEdit(_Edit):
    """Edits of a node type. None leaves a value unchanged."""

    display: str | None = None
    description: str | None = None
    answer: bool | None = None
    show: list[str] | None = None


class RelationEdit(_Edit):
    """Edits of a relation, for all pairs of types that it connects."""

    display: str | None = None
    inverse: str | None = None
    description: str | None = None
    transitive: bool | None = None


class SchemaEdits(_Edit):
    """Edits by name, applied to an inferred schema."""

    types: dict[str, TypeEdit] = {}
    relations: dict[str, RelationEdit] = {}

    def apply(self, schema: Schema) -> Schema:
        """Return the edited schema. Raise SchemaError for names that the schema does not have."""
        _check_known("node type", self.types, schema.type_names)
        _check_known("relation", self.relations, schema.relation_names)
        for name, edit in self.types.items():
            _check_known(f"attribute to show of {name!r}", edit.show or (), tuple(schema.attribute_types))
        return replace(
            schema,
            node_types=tuple(
                _edited_type(node_type, self.types.get(node_type.name)) for node_type in schema.node_types
            ),
            relations=tuple(
                replace(row, **self.relations.get(row.name, RelationEdit()).model_dump(exclude_none=True))
                for row in schema.relations
            ),
        )

    def answering(self, types: Collection[str], schema: Schema) -> SchemaEdits:
        """Return edits where only these types are answers, unless the edits state otherwise. No types means all."""
        others = {name: self.types.get(name, TypeEdit()) for name in schema.type_names if types and name not in types}
        excluded = {n: edit.model_copy(update={"answer": False}) for n, edit in others.items() if edit.answer is None}
        return self.model_copy(update={"types": {**self.types, **excluded}})

    def within(self, schema: Schema) -> SchemaEdits:
        """Return the edits whose names the schema still has after an update."""
        return SchemaEdits(
            types={name: edit for name, edit in self.types.items() if name in schema.type_code},
            relations={name: edit for name, edit in self.relations.items() if name in schema.relation_code},
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the manifest."""
        return self.model_dump(exclude_none=True)

    @classmethod
    def from_json(cls, raw: Any) -> SchemaEdits:
        """Parse the edits of a manifest."""
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise CorruptError(f"the manifest has invalid schema edits ({error}): build the base again") from error


def read_schema_file(file: Path) -> SchemaEdits:
    """Read the edits of a TOML file."""
    try:
        return parse_schema(file.read_text("utf-8"), str(file))
    except FileNotFoundError as missing:
        raise NotFoundError(f"{file}: no such schema file") from missing
    except (UnicodeDecodeError, OSError) as failure:
        raise SchemaError(f"{file}: cannot be read: {failure}") from failure


def parse_schema(text: str, file: str = "schema.toml") -> SchemaEdits:
    """Parse the edits of a TOML text. Raise SchemaError for unknown keys and wrong values."""
    try:
        return SchemaEdits.model_validate(parse_toml(text))
    except tomllib.TOMLDecodeError as broken:
        raise SchemaError(f"{file}: not TOML: {broken}") from broken
    except ValidationError as wrong:
        problem = wrong.errors()[0]
        path = ".".join(map(str, problem["loc"]))
        keys = ", ".join(_known_keys(problem["loc"]))
        raise SchemaError(f"{file}: {path}: {problem['msg'].lower()}: the valid keys are {keys}") from wrong


def write_schema(schema: Schema) -> str:
    """Return the schema as a TOML file to edit. Applying it unchanged has no effect."""
    parts = [_HEADING]
    for node_type in schema.node_types:
        lines = {name: getattr(node_type, name) for name in ("display", "description", "answer")}
        lines["show"] = list(node_type.attributes)
        parts.append(_section("types", node_type.name, lines, [f"{node_type.count:,} nodes"]))
    for name in schema.relation_names:
        rows = schema.relation_rows(name)
        lines = {name: getattr(rows[0], name) for name in ("display", "inverse", "description")}
        if len({row.transitive for row in rows}) == 1:  # rows that differ are left to the inference
            lines["transitive"] = rows[0].transitive
        pairs = [f"{row.head} → {row.tail}: {row.count:,} edges" for row in rows]
        parts.append(_section("relations", name, lines, pairs))
    return "\n".join(parts)


def schema_edits(schema: Path | None, sources: Iterable[Path]) -> SchemaEdits | None:
    """Return the edits of the given schema file, or of a schema file next to the sources, or None."""
    file = schema or find_schema_file(sources)
    return None if file is None else read_schema_file(file)


def find_schema_file(sources: Iterable[Path]) -> Path | None:
    """Find `schema.toml` or `NAME.schema.toml` next to a source."""
    for source in sources:
        folder = source if source.is_dir() else source.parent
        for name in (f"{source.name.split('.')[0]}.schema.toml", "schema.toml"):
            if (folder / name).is_file():
                return folder / name
    return None


def _edited_type(node_type: NodeType, edit: TypeEdit | None) -> NodeType:
    if edit is None:
        return node_type
    changes = edit.model_dump(exclude_none=True, exclude={"show"})
    return replace(node_type, **changes, attributes=node_type.attributes if edit.show is None else tuple(edit.show))


def _check_known(what: str, names: Iterable[str], valid: tuple[str, ...]) -> None:
    for name in names:
        if name not in valid:
            raise SchemaError(f"the schema file names an unknown {what} {name!r}: use {', '.join(valid) or 'none'}")


def _known_keys(place: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = SchemaEdits
    if len(place) > 1:
        model = TypeEdit if place[0] == "types" else RelationEdit
    return list(model.model_fields)


def _section(table: str, name: str, values: Mapping[str, Any], comments: list[str]) -> str:
    # JSON strings, booleans and lists of strings are valid TOML if DEL is escaped
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f") for key, value in values.items()
    ]
    quoted = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
    header = f"[{table}.{quoted}]".replace("\x7f", "\\u007f")
    return "\n".join([header, *("# " + re.sub(r"[\x00-\x1f\x7f]", " ", comment) for comment in comments), *lines, ""])
