"""Base class of all methods: a frozen dataclass whose fields are its options, with one function to answer questions."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from clew.core.errors import InputError
from clew.core.types import Answer
from clew.store.open_base import OpenBase

WITHOUT_MODEL = "without a language model (--model)"


@dataclass(frozen=True)
class Method(ABC):
    """Answers questions. `OpenBase.get_or_create` caches objects that are costly to create for a base."""

    name: ClassVar[str]
    """Name on the command line and in answers."""
    needs_model: ClassVar[bool] = False
    """Whether the method cannot run without a language model. A server without one does not offer it."""

    def __post_init__(self) -> None:
        """Reject an option of a wrong type, with the name of the option in the error."""
        for name, (_, kind) in _fields(type(self)).items():
            _check(f"{_name(type(self))}: {name}", getattr(self, name), kind)

    def refuse(self, options: Iterable[str], where: str) -> None:
        """Reject options that were set but have no effect."""
        for option in options:
            if (given := getattr(self, option)) != getattr(type(self), option):
                raise InputError(f"{self.name}: {option}={given} has no effect {where}: leave it out, or change that")

    @abstractmethod
    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked candidates with their evidence."""

    def learned(self, tools: OpenBase) -> Mapping[str, Any]:  # noqa: ARG002 - most methods have no learned parts
        """Return whatever else can change an answer besides options, model and base: weights, files."""
        return {}


def parse_options(kind: type, given: Mapping[str, object]) -> dict[str, Any]:
    """Check options and convert text values by the types of the fields."""
    known = _fields(kind)
    parsed = {}
    for option, value in given.items():
        if option not in known:
            there = ", ".join(known) or "none"
            raise InputError(f"{_name(kind)} has no option {option!r}: it has {there}")
        what = f"{_name(kind)}: {option}"
        parsed[option] = _read(what, value, known[option][1]) if isinstance(value, str) else value
        _check(what, parsed[option], known[option][1])
    return parsed


def describe_options(kind: type) -> dict[str, str]:
    """Return each option with its type and default as text."""
    return {name: f"{_shown(hint)} = {_default(field)}" for name, (field, hint) in _fields(kind).items()}


def plain_options(kind: type) -> frozenset[str]:
    """Return the options that take only numbers, switches or choices. They accept no free text and no paths."""
    return frozenset(name for name, (_, hint) in _fields(kind).items() if _is_plain(hint))


@cache
def _fields(kind: Any) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(kind)
    return {field.name: (field, hints[field.name]) for field in fields(kind)}


def _name(kind: type) -> str:
    return str(getattr(kind, "name", kind.__name__))


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _read(what: str, text: str, kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        optional = type(None) in get_args(kind)
        kind = next(part for part in get_args(kind) if part is not type(None))
        if optional and text.lower() == "none" and "none" not in get_args(kind):  # a choice may be named "none"
            return None
    if get_origin(kind) is Literal:
        literals = {str(choice): choice for choice in get_args(kind)}
        if text not in literals:
            raise InputError(f"{what} must be one of {', '.join(literals)}, not {text!r}")
        return literals[text]
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise InputError(f"{what} must be true or false, not {text!r}")
        return text.lower() in ("true", "yes", "1")
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise InputError(f"{what} must be a number, not {text!r}") from None
    if get_origin(kind) is tuple:
        return tuple(_read(what, part, get_args(kind)[0]) for part in text.split(",") if part)
    return text


def _check(what: str, value: object, kind: Any) -> None:
    if not _fits(value, kind):
        raise InputError(f"{what} must be {_shown(kind)}, not {value!r}")


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(kind))
    if get_origin(kind) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_fits(part, get_args(kind)[0]) for part in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind) if isinstance(kind, type) else True


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType, tuple):
        return all(part in (type(None), Ellipsis) or _is_plain(part) for part in get_args(kind))
    return get_origin(kind) is Literal or kind in (bool, int, float)


def _shown(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(str(choice) for choice in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join("none" if part is type(None) else _shown(part) for part in get_args(kind))
    if get_origin(kind) is tuple:
        return f"several of {_shown(get_args(kind)[0])}"
    return getattr(kind, "__name__", str(kind))
