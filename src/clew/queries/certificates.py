"""A claim written down three times: as a sentence, and as two queries that give its answers in any database."""

from __future__ import annotations

from clew.core.schema import words_of
from clew.kb.protocol import KnowledgeBase
from clew.kb.sparql import SparqlKnowledgeBase
from clew.queries.claims import Claim
from clew.queries.cypher_text import cypher
from clew.queries.sparql_text import sparql
from clew.queries.wording import in_words, kind_in_words


def certificate(claim: Claim, kb: KnowledgeBase) -> dict[str, str]:
    """The claim in words, as SPARQL and as Cypher; an endpoint is no property graph, so that only SPARQL asks it."""
    written = {"form": form(claim), "kind": kind_in_words(kb.schema, claim.type)}
    if claim.attribute is not None:
        written["attribute"] = words_of(claim.attribute)
    written |= {"text": in_words(claim, kb), "sparql": sparql(claim, kb)}
    return written if isinstance(kb, SparqlKnowledgeBase) else {**written, "cypher": cypher(claim, kb)}


def form(claim: Claim) -> str:
    """What is asked for: list, count, yes/no, value, superlative, comparison, or to describe what is named."""
    asked = {"number": "count", "truth": "yes/no", "value": "value"}.get(claim.asks)
    if asked is not None:
        return asked
    if claim.best is not None:
        return "comparison" if claim.names_only else "superlative"
    return "describe" if claim.names_only else "list"
