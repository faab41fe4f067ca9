"""A claim written down three times: as a sentence, and as two queries that give its answers in any database."""

from __future__ import annotations

from clew.answering.queries.claims import Claim
from clew.answering.queries.cypher_text import cypher
from clew.answering.queries.sparql_text import sparql
from clew.answering.queries.wording import in_words, kind_in_words, phrases
from clew.store.graph.protocol import KnowledgeBase
from clew.store.remote.remote import RemoteKnowledgeBase

LANGUAGES = {"sparql": sparql, "cypher": cypher}


def certificate(claim: Claim, kb: KnowledgeBase) -> dict[str, str]:
    """The claim in words, as SPARQL and as Cypher; a base that stays in a store is asked in the store's language."""
    written = {"form": form(claim), "kind": kind_in_words(kb.schema, claim.type)} | phrases(claim, kb)
    languages = (kb.language,) if isinstance(kb, RemoteKnowledgeBase) and kb.language else LANGUAGES
    return written | {"text": in_words(claim, kb)} | {name: LANGUAGES[name](claim, kb) for name in languages}


def form(claim: Claim) -> str:
    """What is asked for: list, count, yes/no, value, superlative, comparison, or to describe what is named."""
    asked = {"number": "count", "truth": "yes/no", "value": "value"}.get(claim.asks)
    if asked is not None:
        return asked
    if claim.best is not None:
        return "comparison" if claim.names_only else "superlative"
    return "describe" if claim.names_only else "list"
