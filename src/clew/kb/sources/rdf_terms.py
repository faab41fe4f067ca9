"""The vocabulary of RDF that has a meaning for a knowledge base, and values of literals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import unquote

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_OBO = "http://www.geneontology.org/formats/oboInOwl#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
_TITLES = ("http://purl.org/dc/terms/", "http://purl.org/dc/elements/1.1/")

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
NAMES = (
    *(_SKOS + "prefLabel", _RDFS + "label", *(base + "name" for base in _SCHEMA), "http://xmlns.com/foaf/0.1/name"),
    *(base + "title" for base in _TITLES),
)
"""Best first; all others that are given become aliases."""
ALIASES = (
    *(_SKOS + "altLabel", _SKOS + "hiddenLabel", *(base + "alternateName" for base in _SCHEMA)),
    *(_OBO + f"has{kind}Synonym" for kind in ("Exact", "Related", "Narrow", "Broad")),
)
TEXTS = (
    *(_SKOS + "definition", "http://purl.obolibrary.org/obo/IAO_0000115", _RDFS + "comment"),
    *(base + "abstract" for base in (_TITLES[0], "http://dbpedia.org/ontology/")),
    *(base + "description" for base in (*_TITLES, *_SCHEMA)),
)
PLAIN_TYPES = frozenset({_OWL + "NamedIndividual", _OWL + "Thing", _RDFS + "Resource"})
"""Types that say nothing; another one is preferred."""


@dataclass(frozen=True, slots=True)
class Text:
    """A literal: its characters, its language tag (empty where there is none) and its datatype."""

    value: str
    language: str
    datatype: str

    def parsed(self) -> object:
        """The value its datatype promises; the characters where it does not keep the promise."""
        parse = _PARSERS.get(self.datatype.removeprefix(_XSD)) if self.datatype.startswith(_XSD) else None
        if parse is None:
            return self.value
        try:
            return parse(self.value.strip())
        except ValueError:
            return self.value


def in_language(texts: Iterable[Text], language: str) -> list[Text]:
    """Those in the language or its variants; otherwise those without a language; otherwise all."""
    every = list(texts)
    wanted = [text for text in every if text.language == language or text.language.startswith(language + "-")]
    return wanted or [text for text in every if not text.language] or every


def local_name(iri: str) -> str:
    """The last part of an IRI, readable: `…/Barack_Obama` → `Barack Obama`."""
    tail = iri.rstrip("/#")
    for separator in "#/:":
        tail = tail.rpartition(separator)[2] or tail
    return unquote(tail).replace("_", " ").strip() or iri


def short_names(iris: Iterable[str], labels: Mapping[str, str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """A distinct short name for each IRI: its label, its last part, with its prefix, or itself."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for iri in sorted(iris):
        last = local_name(iri).replace(" ", "_")
        choices = [labels.get(iri, ""), last]
        choices += [
            f"{prefix}:{iri.removeprefix(base)}" for prefix, base in sorted(prefixes.items()) if iri.startswith(base)
        ]
        names[iri] = next((choice for choice in choices if choice and choice not in taken), iri)
        taken.add(names[iri])
    return names


def _boolean(value: str) -> bool:
    if value not in ("true", "false", "1", "0"):
        raise ValueError(value)
    return value in ("true", "1")


def _moment(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


_INTEGERS = (
    *("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
    *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "gYear"),
)
_PARSERS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(("decimal", "double", "float"), float),
    "boolean": _boolean,
    "date": date.fromisoformat,
    "dateTime": _moment,
}
