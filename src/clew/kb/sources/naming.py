"""What the rows of a table are called: where no column says so, the data shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clew.kb.sources.columns import plain

_FULL = ("name", "full_name", "display_name", "label_name", "preferred_name")
_PARTS = (
    *(("first_name", "last_name"), ("firstname", "lastname"), ("given_name", "family_name"), ("forename", "surname")),
    *(("given_name", "surname"), ("first_name", "surname")),
)
_TITLES = ("title", "label", "caption", "subject", "headline")
_ENDINGS = ("_name", "_title", "_label")
_FILLED, _DISTINCT, _TELLING = 0.5, 0.5, 0.95
_LONGEST = 80


def names_of_rows(
    table: str, key: Sequence[str], held: Mapping[str, list[Any]], said: str | None = None
) -> tuple[list[str], str]:
    """The name of every row, and the column that it was taken from; where nothing names it, `Invoice 12`."""
    count = len(next(iter(held.values()), ()))
    by_plain = {plain(name): name for name in reversed(list(held))}
    found = said if said in held else _named(by_plain, _FULL, held, 0)
    if found is None and (parts := next((pair for pair in _PARTS if set(pair) <= by_plain.keys()), None)):
        both = zip(*(held[by_plain[part]] for part in parts), strict=True)
        return [" ".join(str(part) for part in one if part) or str(row) for row, one in enumerate(both, 1)], ""
    if found is None:
        found = _named(by_plain, _TITLES, held, _DISTINCT) or _ending(by_plain, held) or _telling(held)
    numbers = zip(*(held[name] for name in key), strict=True) if key and set(key) <= held.keys() else ()
    shown = [" ".join(map(str, values)) for values in numbers] or [str(row) for row in range(1, count + 1)]
    others = [f"{table} {number}" for number in shown]
    if found is None:
        return others, ""
    return [str(value).strip() or other for value, other in zip(_texts(held[found]), others, strict=True)], found


def _named(
    by_plain: Mapping[str, str], names: Sequence[str], held: Mapping[str, list[Any]], least: float
) -> str | None:
    """The first of some names that most rows have a text for; the title of an employee tells nobody apart."""
    return next((by_plain[name] for name in names if name in by_plain and _tells(held[by_plain[name]], least)), None)


def _ending(by_plain: Mapping[str, str], held: Mapping[str, list[Any]]) -> str | None:
    """`ProductName`, `company_name`: the first such column."""
    fitting = [column for name, column in by_plain.items() if name.endswith(_ENDINGS)]
    return next((column for column in held if column in fitting and _tells(held[column], _DISTINCT)), None)


def _telling(held: Mapping[str, list[Any]]) -> str | None:
    """The first column of short texts of which hardly two are the same, and none is but digits."""
    for column, values in held.items():
        texts = [value for value in values if isinstance(value, str) and value.strip()]
        worded = all(any(letter.isalpha() for letter in text) for text in texts)
        if texts and worded and max(map(len, texts)) <= _LONGEST and _tells(values, _TELLING):
            return column
    return None


def _tells(values: Sequence[Any], least: float) -> bool:
    """Whether most rows have a text there, and so many of them one of their own."""
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    return len(texts) > _FILLED * len(values) and len(set(texts)) >= least * len(texts)


def _texts(values: Sequence[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]
