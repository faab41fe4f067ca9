"""JSON and TOML as anybody may have written them: what no parser can hold is wrong like any other mistake."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clew.core.errors import SourceError

if TYPE_CHECKING:  # most commands need it later, or never
    from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound="BaseModel")


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says; one that is nested without end, or has endless numbers, is a JSONDecodeError as well."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None
    except ValueError:
        raise json.JSONDecodeError("a number has too many digits", "", 0) from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML text says; likewise, every mistake is a TOMLDecodeError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
    except ValueError:
        raise tomllib.TOMLDecodeError("a number has too many digits") from None


def read_toml(file: Path, model: type[M], otherwise: str) -> M:
    """A TOML file of a known form; raises SourceError, which says what is wrong but no value: it may be a key."""
    from pydantic import ValidationError

    try:
        return model.model_validate(parse_toml(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise SourceError(f"no TOML: {failure}", file=file) from None
    except ValidationError as failure:
        raise SourceError(f"{otherwise}: {what_is_wrong(failure)}", file=file) from None


def what_is_wrong(failure: ValidationError) -> str:
    """Every mistake with its place."""
    return "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in failure.errors())
