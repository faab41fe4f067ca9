"""Writes web/src/types.ts, the TypeScript types of what the server sends, from clew.server.wire and
wire_team: one form, written once.

python scripts/generate_types.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from clew.server import wire, wire_team

TARGET = Path(__file__).parent.parent / "web" / "src" / "types.ts"


def typescript() -> str:
    """Every model of the wire as an interface, its name without `Reply`."""
    values = [
        value for module in (wire, wire_team) for value in vars(module).values() if _is_of(value, module.__name__)
    ]
    public = sorted(values, key=lambda model: model.__name__)
    shown = [model for model in public if not model.__name__.startswith("_") and model.model_fields]
    _, schema = models_json_schema([(model, "serialization") for model in shown], ref_template="{model}")
    lines = [
        "// Written by scripts/generate_types.py from clew.server.wire and wire_team; do not edit.",
        "",
    ]
    for model in shown:
        lines += _interface(model.__name__, schema["$defs"][model.__name__])
    return "\n".join(lines)


def _is_of(value: object, module: str) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module


def _interface(name: str, schema: dict[str, Any]) -> list[str]:
    words = (schema.get("description") or "").split("\n")[0]
    required = set(schema.get("required", ()))
    rows = [
        f"  {field}{'' if field in required else '?'}: {_type(kind)};" for field, kind in schema["properties"].items()
    ]
    more = ["  [more: string]: unknown;"] if schema.get("additionalProperties") is True else []
    return [f"/** {words} */", f"export interface {_name(name)} {{", *rows, *more, "}", ""]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return " | ".join(f'"{choice}"' for choice in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    if "prefixItems" in schema:
        return f"[{', '.join(_type(item) for item in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties", {})
        return f"Record<string, {_type(values) if isinstance(values, dict) and values else 'unknown'}>"
    names = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
    return names.get(schema.get("type", ""), "unknown")


def _name(name: str) -> str:
    return name.removesuffix("Reply")


if __name__ == "__main__":
    TARGET.write_text(typescript(), "utf-8")
