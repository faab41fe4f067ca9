"""JSON and TOML as anybody may have written them: what no parser can hold is wrong like any other mistake."""

from __future__ import annotations

import json
import tomllib
from typing import Any


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
