"""A claim written down three times: as a sentence, and as two queries that give its answers in any database."""

from __future__ import annotations

from clew.kb.protocol import KnowledgeBase
from clew.kb.sparql import SparqlKnowledgeBase
from clew.queries.claims import Claim
from clew.queries.cypher_text import cypher
from clew.queries.sparql_text import sparql
from clew.queries.wording import in_words


def certificate(claim: Claim, kb: KnowledgeBase) -> dict[str, str]:
    """The claim in words, as SPARQL and as Cypher; an endpoint is no property graph, so that only SPARQL asks it."""
    written = {"text": in_words(claim, kb), "sparql": sparql(claim, kb)}
    return written if isinstance(kb, SparqlKnowledgeBase) else {**written, "cypher": cypher(claim, kb)}
