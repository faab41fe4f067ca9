"""Small words of questions, by what they do, and how people ask for common properties."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _set(
    """a an the of in on at to by for with from and or is are was were be been being am do does did done has have had
    having it its this that these those there here what which who whom whose when where why how can could will would
    should may might must you your me my i we us our they them their he she him his her give name names list tell about
    as s many much few some any all get got not no than then so if"""
)
"""Words that no relation is recognised by."""
CUES = _set("share shares shared sharing same also together both co common")
"""Words that ask to come back by the relation just taken: films that share a director."""
LIGHT = _set(
    """other another else first last next current currently now main primary major most name names named kind type sort
    listed called right real new old original different certain famous known well whole full"""
)
"""Words that may be part of a phrase but need no explanation by themselves."""
PREPOSITIONS = _set("of from in for by with on to at")
ARTICLES = _set("the a an")
AUXILIARIES = _set("do does did is are was were has have had can will should")
KIND_WORDS = _set("kind kinds type types sort sorts")
DOING = "do-it"
"""The main verb of “what does she do?”, as the lexicon writes it."""


@cache
def asked_as() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Words of relation names, and the words and phrases of questions that ask for such a relation."""
    lines = files("clew.reading.paths").joinpath("asked_as.txt").read_text("utf-8").splitlines()
    pairs = (line.split(":") for line in lines if line.strip() and not line.startswith("#"))
    return tuple((tuple(heads.split()), tuple(part.strip() for part in asks.split(","))) for heads, asks in pairs)


@lru_cache(maxsize=100_000)
def singular(word: str) -> str:
    """A word without the ending of a plural, roughly."""
    if len(word) > 5 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def singulars(word: str) -> tuple[str, ...]:
    """Every form a word may be the plural of, itself first."""
    found = [word]
    if len(word) > 3 and word.endswith("s"):
        found.append(word[:-1])
    if len(word) > 4 and word.endswith("es"):
        found.append(word[:-2])
    if len(word) > 4 and word.endswith("ies"):
        found.append(word[:-3] + "y")
    return tuple(found)


def root(word: str) -> str:
    """A word without the endings that change with its place in a sentence."""
    short = singular(word)
    for ending in ("ing", "ed"):
        if short.endswith(ending) and len(short) - len(ending) >= 3:
            short = short[: -len(ending)]
            break
    return short[:-1] if len(short) > 4 and short.endswith("e") else short
