"""The user's configuration file, checked; `settings.py` says what it may hold."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.core.errors import SourceError
from clew.core.texts import parse_toml


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    spec: str
    context_tokens: int | None = Field(None, gt=0)
    concurrency: int | None = Field(None, gt=0)
    per_minute: float | None = Field(None, gt=0)
    seconds: float | None = Field(None, gt=0)


class ConfigFile(BaseModel):
    """Everything the file says."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    keys: dict[str, str] = Field(default_factory=dict)
    embedders: list[str] = Field(default_factory=list)
    models: dict[str, _Model] = Field(default_factory=dict)


def read_config(file: Path) -> ConfigFile:
    """Read it; one that is wrong, or that others can read, is refused."""
    try:
        parsed = ConfigFile.model_validate(parse_toml(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as failure:
        raise SourceError(f"cannot be read: {failure}", file=file) from None
    except tomllib.TOMLDecodeError as failure:
        raise SourceError(f"no TOML: {failure}", file=file) from None
    except ValidationError as failure:
        wrong = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in failure.errors())
        raise SourceError(f"not a configuration: {wrong}", file=file) from None
    if parsed.keys and os.name == "posix" and file.stat().st_mode & 0o077:
        raise SourceError(f"holds keys and can be read by others: chmod 600 '{file}'", file=file)
    return parsed
