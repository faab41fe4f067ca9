"""Text that comes from anywhere: what is no text is made one at the door, and terminals are shown no commands.

JSON and TOML that no parser can hold are wrong like any other mistake.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clew.core.errors import InputError, SourceError

if TYPE_CHECKING:  # most commands need it later, or never
    from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound="BaseModel")

MOST_ASKED = 10_000
"""Characters of a question, or of a name that is looked for."""
REPLACEMENT = "\ufffd"
OPAQUE = re.compile(r"[a-z]\.[0-9a-z_]{3,}|_:\S+|[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{20,}")
"""Names that only a machine reads: blank nodes and identifiers."""
_HALVES = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
"""Characters that change the direction of what is written around them."""
_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control characters as the signs that stand for them: ESC as ␛."""


def whole_text(text: str) -> str:
    """The text with each half of a pair of surrogates, which nothing can write or compare, replaced."""
    return text if text.isascii() else _HALVES.sub(REPLACEMENT, text)


def whole_value(value: Any) -> Any:
    """A value as JSON has them, all its texts made whole."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(str(name)): whole_value(inner) for name, inner in value.items()}
    return [whole_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def asked_text(text: str, what: str = "question") -> str:
    """What somebody asks for as plain text, of as many characters; too long a one is refused."""
    if len(text) > MOST_ASKED:
        raise InputError(f"the {what} has {len(text):,} characters: ask in at most {MOST_ASKED:,}")
    return _CONTROL.sub(" ", _DIRECTIONS.sub(" ", whole_text(text)))


def shown_json(text: str) -> str:
    """JSON as a terminal may get it: the same value, with what a terminal would obey escaped."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_text(text: str) -> str:
    """Text as a terminal may get it: what would move its cursor or change its title is a sign that stands for it."""
    if _CONTROL.search(text) is None and (text.isascii() or not _DIRECTIONS.search(text)):
        return whole_text(text)
    seen = _CONTROL.sub(lambda found: chr(_PICTURES.get(ord(found[0]), 0xFFFD)), text)
    return whole_text(_DIRECTIONS.sub(REPLACEMENT, seen))


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
    """Parse TOML. Raise TOMLDecodeError for any invalid input."""
    import tomllib

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
    except ValidationError as failure:
        raise SourceError(f"{otherwise}: {what_is_wrong(failure)}", file=file) from None
    except (OSError, ValueError) as failure:  # of decoding and of TOML
        raise SourceError(f"no TOML: {failure}", file=file) from None


def what_is_wrong(failure: ValidationError) -> str:
    """Every mistake with its place."""
    return "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in failure.errors())
