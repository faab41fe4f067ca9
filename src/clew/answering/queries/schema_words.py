"""Names of a schema in ordinary words.

Attributes with values: "more than 80 beds", "opened before 1920", "2,850 m". Relations as verbs of one thing and of
many: treats → "treat", associated_with → "are associated with".
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence

from clew.core.nouns import plural, singular
from clew.core.query import Attribute, Compare
from clew.core.query import Value as Literal
from clew.core.schema import Schema, label_of
from clew.core.types import Value

COMPARED = {
    "=": "",
    "!=": "not ",
    "<": "less than ",
    "<=": "at most ",
    ">": "more than ",
    ">=": "at least ",
    "contains": "containing ",
}
DATED = {"=": "{}", "!=": "not {}", "<": "before {}", "<=": "{} or earlier", ">": "after {}", ">=": "{} or later"}
UNITS = re.compile(
    "[mck]?m[23²³]?|ft|mi|[mk]?g|lb|t|m?l|ms|min|minutes|hours|days|weeks|months|years|[kmgt]b|[kmgt]?wh?|[kmg]?hz|usd|eur|chf|gbp|percent"
)
"""Endings of attribute names that are units, as in `height_m` and `Area (km²)`."""
PARTICIPLE = re.compile(r"\w+ed|built|born|begun|held|made|sold|won|written|shown|taken")
IN_YEARS = re.compile(
    "(open|found|establish|releas|publish|creat|launch|complet|discover|form|start|introduc|clos|premier|sign|"
    "inaugurat|incorporat|abolish|demolish|di)ed|built|born|begun|written"
)
"""Words in the names of attributes whose integers are years."""
SHOWN_DIGITS = 6
"""Maximum number of digits of a fraction. JSON has all of them."""
MANY_DIGITS = 10_000
"""Smallest number with separators between thousands. Years are below it."""


def attribute_words(name: str) -> tuple[str, str]:
    """Return the words and the unit of an attribute name: `height_m` → "height", "m"."""
    label, _, unit = label_of(name).rpartition(" ")
    unit = unit.strip("()[]")
    return (label, unit) if label and UNITS.fullmatch(unit.lower()) else (label_of(name), "")


def is_countable(label: str) -> bool:
    """Return whether an attribute counts things: "beds", not "height"."""
    return singular(label) != label


def is_participle(label: str, kind: str | None) -> bool:
    """Return whether an attribute is the date of an event: "opened"."""
    return (PARTICIPLE if kind == "date" else IN_YEARS).fullmatch(label) is not None


def value_in_words(value: Value, unit: str = "") -> str:
    """Return a value as shown to users, with its unit."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, float):
        value = int(value) if value.is_integer() else float(f"{value:.{SHOWN_DIGITS}g}")
    is_long = isinstance(value, int) and abs(value) >= (1000 if unit else MANY_DIGITS)
    unit = "%" if unit == "percent" else f" {unit}" if unit else ""
    return f"{value:,}{unit}" if is_long else f"{value}{unit}"


def value_sentence(name: str, attribute: str, unit: str, value: Value) -> str:
    """Return a sentence about one value: "Konkordia Hut has 146 beds"."""
    shown, is_number = value_in_words(value, unit), isinstance(value, int | float) and not isinstance(value, bool)
    if is_countable(attribute) and is_number and not unit:
        return f"{name} has {shown} {singular(attribute) if value == 1 else attribute}"
    if is_participle(attribute, "date" if "-" in shown else "") and shown[:1].isdigit():
        return f"{name} was {attribute} {_when(shown)}"
    if shown == name:
        return f"The {attribute} is {name}"
    return f"The {attribute} of {name} {'are' if is_countable(attribute) and ', ' in shown else 'is'} {shown}"


Test = tuple[str, str | int | float | bool]
"""A comparison and its right side."""


def conditions_in_words(conditions: Sequence[Compare], schema: Schema) -> list[str]:
    """Return conditions as phrases after a noun: "opened before 1920", "with more than 80 beds"."""
    by_attribute: dict[str, list[Test]] = {}
    for one in conditions:
        if isinstance(one.left, Attribute) and isinstance(one.right, Literal):
            by_attribute.setdefault(one.left.name, []).append((one.comparison, one.right.value))
    return [_condition(name, tests, schema.attribute_types.get(name, "")) for name, tests in by_attribute.items()]


def _condition(name: str, tests: Sequence[Test], kind: str) -> str:
    label, unit = attribute_words(name)
    if kind == "date" or (is_participle(label, kind) and kind in ("integer", "number")):
        times = " and ".join(dict.fromkeys(_time(sign, str(value)) for sign, value in _whole_years(tests)))
        return f"{label} {times}" if is_participle(label, kind) else f"whose {label} is {times}"
    is_number = kind in ("integer", "number") and not any(sign == "contains" for sign, _ in tests)
    shown = [(sign, str(value) if isinstance(value, bool) else value_in_words(value, unit)) for sign, value in tests]
    bounds = dict(shown)
    said = " and ".join(f"{COMPARED[sign]}{value}" for sign, value in shown)
    if bounds.keys() == {">=", "<="}:
        said = f"between {bounds['>=']} and {bounds['<=']}"
    if is_number and is_countable(label) and not unit:
        return f"with {said} {label}"
    comparison, yes = tests[0]
    if isinstance(yes, bool) and comparison == "=":
        first = label.split()[0]
        if first in ("is", "are") or PARTICIPLE.fullmatch(label):
            return f"that are {'' if yes else 'not '}{label.removeprefix(first + ' ') if first == 'is' else label}"
        return f"whose {label} is {'true' if yes else 'false'}"
    return f"whose {label} {said.replace('containing', 'contains') if comparison == 'contains' else f'is {said}'}"


def date_part_in_words(attribute: str, unit: str, number: int) -> str:
    """Return a condition on the month or the day of a date as a phrase after a noun."""
    label, _ = attribute_words(attribute)
    if unit == "month" and 1 <= number <= 12:
        return f"whose {label} is in {calendar.month_name[number]}"
    return f"whose {label} is on {unit} {number}"


def _whole_years(tests: Sequence[Test]) -> Sequence[Test]:
    """Replace the first and the last day of a year by the year, and two limits on one day by the day."""
    bounds = {sign: str(value) for sign, value in tests}
    low, high = bounds.get(">=", ""), bounds.get("<=", "")
    if len(tests) == 2 and low.endswith("-01-01") and high == f"{low[:4]}-12-31":
        return [("=", low[:4])]
    return [("=", low)] if len(tests) == 2 and low == high != "" else tests


def _time(comparison: str, value: str) -> str:
    """Return a limit in time. The first or last day of a year becomes the year if both mean the same."""
    if (comparison in ("<", ">=") and value.endswith("-01-01")) or (
        comparison in (">", "<=") and value.endswith("-12-31")
    ):
        value = value[:4]
    return DATED.get(comparison, f"{COMPARED[comparison]}{{}}").format(
        _when(value) if comparison in ("=", "!=", "<=", ">=") else value
    )


def _when(value: str) -> str:
    return f"{'in' if len(value) < 10 else 'on'} {value}"


PREPOSITIONS = tuple(
    f" {word}"
    for word in ("about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "under", "with", "within")
)
PAST = dict(
    re.findall(
        r"(\w+):(\w+)",
        "appeared:appear arrived:arrive attended:attend belonged:belong came:come competed:compete departed:depart "
        "died:die fell:fall flew:fly graduated:graduate happened:happen lasted:last led:lead lived:live occurred:occur "
        "participated:participate played:play ran:run retired:retire served:serve starred:star started:start "
        "studied:study took:take went:go won:win worked:work wrote:write",
    )
)
"""Past participles without a passive: an accident happened, it was not happened."""
PRESENT = re.compile(
    "act|apply|appear|belong|come|compete|connect|contribute|depend|fly|go|lead|live|map|participate|play|point|refer|"
    "relate|report|run|serve|star|travel|work"
)
"""Verbs before a preposition, without an s."""


def of_many(label: str, *, negated: bool = False, one: bool = False) -> str:
    """Return a relation as a verb in the plural or the singular."""
    first, rest, form = verb_of(label)
    if form == "be":
        return f"{'is' if one else 'are'}{' not' if negated else ''}{rest}"
    if form == "past":
        return f"did not {PAST[first]}{rest}" if negated else f"{first}{rest}"
    if negated:
        return f"{'does' if one else 'do'} not {_base(first)}{rest}"
    return f"{first if one else _base(first)}{rest}"


def verb_of(label: str) -> tuple[str, str, str]:
    """Return the verb, the words after it, and its form: "be", a verb, a participle, or before a noun."""
    words = label_of(label).split()
    first, rest = words[0], "".join(f" {word}" for word in words[1:])
    if first in ("is", "are", "was", "were"):
        return "is", " a kind of" if rest == " a" else rest, "be"
    if first in PAST:
        return first, rest, "past"
    if PRESENT.fullmatch(first) and rest.endswith(PREPOSITIONS):
        return plural(first), rest, "verb"
    if first in ("has", "have", "can") or (first.endswith("s") and singular(first) != first):
        return ("has" if first == "have" else first), rest, "verb"
    if f" {first}{rest}".endswith(PREPOSITIONS):
        return "is", f" {first}{rest}", "be"
    return "has", f" {first}{rest}", "noun"


def without_kind(label: str, kind: str) -> str:
    """Return a relation without the type at its end: has_phenotype → "has". A relation that is a type is a noun."""
    words = label_of(label)
    if words in (kind, plural(kind)):
        return kind
    bare = words.removesuffix(f" {kind}").removesuffix(f" {plural(kind)}")
    is_verb = bare.endswith(PREPOSITIONS) or verb_of(bare)[2] in ("verb", "past")
    return bare if is_verb and bare not in ("is", "can") else words


def _base(verb: str) -> str:
    """Return the plural of a verb."""
    irregular = {"has": "have", "does": "do", "goes": "go", "can": "can", "do": "do"}
    if verb in irregular or not verb.endswith("s"):
        return irregular.get(verb, verb)
    if verb.endswith("ies") and len(verb) > len("lies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("sses", "ches", "shes", "xes")) else verb[:-1]
