"""Validation of the user's configuration file, which `settings.py` documents."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from clew.core.disk import refuse_readable
from clew.core.texts import read_toml


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    spec: str
    context_tokens: int | None = Field(None, gt=0)
    concurrency: int | None = Field(None, gt=0)
    per_minute: float | None = Field(None, gt=0)
    seconds: float | None = Field(None, gt=0)


class ConfigFile(BaseModel):
    """Content of the configuration file."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    keys: dict[str, str] = Field(default_factory=dict)
    embedders: list[str] = Field(default_factory=list)
    models: dict[str, _Model] = Field(default_factory=dict)


def read_config(file: Path) -> ConfigFile:
    """Read the file. Raise SourceError if it is invalid, or contains keys and other users can read it."""
    parsed = read_toml(file, ConfigFile, "not a configuration")
    if parsed.keys:
        refuse_readable(file, "keys")
    return parsed
