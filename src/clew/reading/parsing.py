"""The learned reader in the role of a parser: what a question means, as queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.query import TripletQuery, Variable
from clew.core.roles import Parse
from clew.core.schema import Schema
from clew.index.tokens import stop_words, terms, tokenise
from clew.reading.reader import LearnedReader, Meaning, Understanding
from clew.reading.translation import Translator

OTHERS = 4
"""Other meanings that are tried where the first one has no answer."""
EXPLAINED = 0.6
"""Where nothing is named for sure and less than this part of the telling words is accounted for, texts may be meant."""
UNLIKELY = 0.02
"""A meaning less likely than this is not tried."""


@dataclass(frozen=True)
class LearnedParser:
    """Reads questions without a language model."""

    reader: LearnedReader

    def parse(self, question: str, schema: Schema) -> Parse:  # noqa: ARG002 - the reader knows its base's schema
        """The likeliest query, others after it; one that requires nothing where nothing was understood."""
        return self.parsed(self.reader.read(question))

    def parsed(self, understanding: Understanding) -> Parse:
        """What was understood, as queries."""
        if not understanding.meanings:
            nothing = TripletQuery((), Variable("x"), score=0.0, unexplained=(understanding.question,))
            return Parse(nothing, certainty=0.0)
        first, *rest = understanding.meanings
        queries = [self.query(understanding.question, first)]
        for meaning in rest[:OTHERS]:
            if meaning.share >= UNLIKELY:
                queries.append(self.query(understanding.question, meaning))
        explained = explained_part(understanding.question, first)
        is_loose = all(one.is_doubtful for one in first.named) and explained < EXPLAINED
        certainty = understanding.certainty * (explained if is_loose else 1.0)
        return Parse(queries[0], tuple(queries[1:]), certainty=certainty, is_loose=is_loose)

    def query(self, question: str, meaning: Meaning) -> TripletQuery:
        """One meaning as a query."""
        translator = Translator(self.reader.vocabulary, meaning.named, meaning.senses, meaning.numbers)
        left = unexplained(question, meaning)
        return replace(translator.query(meaning.plan), score=meaning.share, unexplained=(left,) if left else ())


def explained_part(question: str, meaning: Meaning) -> float:
    """The part of a question's telling words that its plan accounts for."""
    words = [token.text for token in tokenise(question) if token.text not in stop_words()]
    return 1 - len(unexplained(question, meaning).split()) / max(1, len(words))


def unexplained(question: str, meaning: Meaning) -> str:
    """The telling words of a question that neither name anything nor are among the words of the plan."""
    used = {requirement.quantity for requirement in meaning.plan.requirements}
    spans = [(one.start, one.end) for one in meaning.named]
    spans += [(one.start, one.end) for place, one in enumerate(meaning.numbers) if place in used]
    known = set(terms(meaning.text))
    left = [
        question[token.start : token.end]
        for token in tokenise(question)
        if not any(start <= token.start < end for start, end in spans)
        and token.text not in stop_words()
        and known.isdisjoint(terms(token.text))
    ]
    return " ".join(left)
