"""The learned reader as a parser: converts questions to queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

from clew.answering.reading import words_file
from clew.answering.reading.meaning import CERTAIN, Meaning, Understanding, explained_part, unexplained
from clew.answering.reading.plan import Translator
from clew.answering.reading.quantities import quantities, steps, without_amount
from clew.answering.reading.reader import LearnedReader
from clew.core.roles import Interpretation, Parse
from clew.core.schema import Schema, words_of
from clew.core.types import NodeSet
from clew.store.index.tokens import terms, tokenise

OTHERS = 4
"""Maximum number of other meanings to try if the first meaning has no answer."""
EXPLAINED, MOST_UNEXPLAINED = 0.6, {True: 3, False: 5}
"""A question may be about texts if a smaller share than EXPLAINED of its content words is explained, and more words
than this remain. The first limit is for questions whose mentions are all doubtful."""
UNKNOWN = 0.25
"""Share of unknown names among the unexplained words at which too few words remain for a text search."""
UNLIKELY = 0.02
"""Minimum probability of a meaning to try."""
INCOMPLETE = 0.5
"""Maximum certainty of a reading that ignores a number, an attribute or an order: "the three longest", "the next"."""
YEARS = (1000, 2200)
"""Whole numbers in this range may be years."""
LOOKED_AT = 200
"""Number of nodes whose values are checked to see whether an attribute contains times."""


@dataclass(frozen=True)
class LearnedParser:
    """Reads questions without a language model."""

    reader: LearnedReader

    def parse(self, question: str, schema: Schema) -> Parse:  # noqa: ARG002 - the reader knows its base's schema
        """Return the likeliest query and alternatives. Without a meaning, the query has no conditions."""
        reader = self.reader.over(question)
        understanding = reader.read(question)
        parse = replace(self, reader=reader).parsed(understanding)
        words = sum(len(one.text.split()) for one in understanding.unknown)
        left = sum(len(piece.split()) for piece in parse.interpretation.unexplained)
        is_text = parse.is_loose and words < UNKNOWN * left  # the remaining words may be enough for a text search
        return parse if is_text else replace(parse, unknown=understanding.unknown)

    def parsed(self, understanding: Understanding) -> Parse:
        """Convert the meanings of a question to queries."""
        meanings = [one for one in understanding.meanings if one.asked is None or isinstance(one.asked, Interpretation)]
        is_told = not meanings or explained_part(understanding.question, meanings[0]) < EXPLAINED
        if not understanding.is_sayable and is_told and not understanding.unknown:
            kind = self._said_type(understanding.question)
            if self.reader.is_written_about(kind):
                return Parse(Interpretation.of_text(understanding.question, kind), certainty=0.0, is_loose=True)
        if not meanings or meanings[0] is not understanding.meanings[0]:
            return self._with_rows(understanding, meanings)
        first, *rest = meanings
        best, *others = [
            self._with_columns(self.interpretation(understanding, meaning), understanding.question)
            for meaning in (first, *(one for one in rest[:OTHERS] if one.share >= UNLIKELY))
        ]
        if best.asks == "value" and asks_whether(understanding.question) and not self._is_truth(best):
            return Parse(best, tuple(others), certainty=0.0)  # the value is not a truth value
        if best.asks == "value" and asks_when(understanding.question) and not self._is_time(best):
            return Parse(best, tuple(others), certainty=0.0)  # the value is not a time
        explained = explained_part(understanding.question, first)
        left = len(best.unexplained[0].split()) if best.unexplained else 0
        is_doubtful = all(one.is_doubtful for one in first.named)
        is_vague = understanding.is_english and explained < EXPLAINED
        is_unlikely = understanding.certainty < CERTAIN and not understanding.unknown
        kind = self._said_type(understanding.question) if is_vague and is_unlikely else None
        if kind not in (None, best.type) and self.reader.is_written_about(kind):
            return Parse(Interpretation.of_text(understanding.question, kind), certainty=0.0, is_loose=True)
        is_vague &= is_unlikely or left > MOST_UNEXPLAINED[is_doubtful]
        is_loose = is_vague and self.reader.is_written_about(best.type)
        certainty = understanding.certainty
        if is_loose:  # the query may be a part of what is asked
            certainty = explained * first.share / sum(one.share for one in understanding.meanings)
        certainty = min([certainty, *(one.likelihood for one in first.named if one.is_certain)])
        is_incomplete = any(map(quantities, best.unexplained)) or leaves_neighbour(understanding.question, first)
        is_incomplete |= (best.query.first or 1) > 1 and not best.query.order  # any of the answers
        if is_incomplete or self._left_attributes(best):
            certainty = min(certainty, INCOMPLETE)
        return Parse(best, tuple(others), certainty=certainty, is_loose=is_loose)

    def _with_rows(self, understanding: Understanding, meanings: Sequence[Meaning]) -> Parse:
        """Return a query for rows, besides the likeliest interpretation."""
        parse = Parse(Interpretation.of_text(understanding.question), certainty=0.0)
        if meanings:
            parse = self.parsed(replace(understanding, meanings=tuple(meanings)))
            parse = replace(parse, certainty=min(parse.certainty or 0.0, meanings[0].share))
        if understanding.meanings and not isinstance(rows := understanding.meanings[0].asked, Interpretation | None):
            return replace(parse, rows=rows, rows_certainty=understanding.certainty)
        return parse

    def _said_type(self, question: str) -> str | None:
        """Return the type that a question names, if it names only one."""
        kinds = self.reader.scorer.said_types(question).nonzero()[0]
        return self.reader.schema.type_names[kinds[0]] if len(kinds) == 1 else None

    def _with_columns(self, asked: Interpretation, question: str) -> Interpretation:
        """Return a query for a value with the other attributes that the question names, in its order."""
        more = self._left_attributes(asked) if asked.asks == "value" else ()
        if not more or asked.attribute is None:
            return asked
        order = terms(question)

        def first_word(name: str) -> int:
            return min((order.index(word) for word in terms(words_of(name)) if word in order), default=len(order))

        first, *others = sorted((asked.attribute, *more), key=first_word)
        said = set(terms(" ".join(map(words_of, more))))
        left = " ".join(word for word in " ".join(asked.unexplained).split() if not said & set(terms(word)))
        return replace(asked, asks="columns", attribute=first, more=tuple(others), unexplained=(left,) if left else ())

    def _left_attributes(self, asked: Interpretation) -> tuple[str, ...]:
        """Return the attributes of the answers that the unexplained words name."""
        left = set(terms(" ".join(asked.unexplained)))
        own = [one.name for one in self.reader.vocabulary.attributes if one.owner == asked.type]
        return tuple(name for name in own if (words := set(terms(words_of(name)))) and words <= left)

    def _is_truth(self, asked: Interpretation) -> bool:
        own = (one for one in self.reader.vocabulary.attributes if one.name == asked.attribute)
        return any(one.kind == "boolean" for one in own)

    def _is_time(self, asked: Interpretation) -> bool:
        """Return whether an attribute can be a time: a date, or mostly numbers like years or texts with a digit."""
        kb, attribute = self.reader.kb, asked.attribute or ""
        if kb.schema.attribute_types.get(attribute) == "date":
            return True
        known = kb.values(NodeSet(kb.nodes(asked.type).array[:LOOKED_AT]), attribute)
        times = [_may_be_time(one) for one in known if one is not None]
        return 2 * sum(times) > len(times)

    def interpretation(self, understanding: Understanding, meaning: Meaning) -> Interpretation:
        """Return one meaning as a query."""
        question = understanding.question
        translator = Translator(self.reader.vocabulary, meaning.named, meaning.senses, meaning.numbers)
        said = without_amount(question) if meaning.plan.form in ("count", "sum") else question
        is_written = isinstance(meaning.asked, Interpretation)
        left = unexplained(said, meaning)
        asked = cast(Interpretation, meaning.asked) if is_written else translator.interpretation(meaning.plan)
        if meaning.plan.form in ("compare_max", "compare_min") and asks_whether(question):
            asked = replace(asked, asks="truth", compared=translator.constant(meaning.plan.mentions[0]))
        is_left = left and understanding.is_english  # plans contain only English words
        return replace(asked, score=meaning.share, unexplained=(left,) if is_left else ())


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(words_file(f"{kind}.txt").split())


def leaves_neighbour(question: str, meaning: Meaning) -> bool:
    """Return whether a question asks for what comes before or after a name, but the plan compares nothing."""
    tokens = tokenise(question)
    outside = [at for at, one in enumerate(tokens) if not any(n.start <= one.start < n.end for n in meaning.named)]
    asked = steps(tokens, outside, {one.start for one in meaning.named}).keys()
    is_compared = (
        meaning.plan.requirements
        or meaning.plan.step
        or meaning.plan.form not in ("list", "count", "exists", "value", "describe")
    )
    return not is_compared and not asked <= {token.text for token in tokenise(meaning.text)}


def asks_whether(question: str) -> bool:
    """Return whether a question asks for yes or no: it starts with its verb and has no "or"."""
    words = [token.text for token in tokenise(question)]
    return bool(words) and words[0] in _words("truth") and "or" not in words


def _may_be_time(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_may_be_time, value))
    if isinstance(value, str):
        return any(letter.isdigit() for letter in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return YEARS[0] <= value <= YEARS[1] and value == int(value)


def asks_when(question: str) -> bool:
    """Return whether a question asks for a time: it starts with a word such as "when"."""
    words = [token.text for token in tokenise(question)]
    return bool(words) and words[0] in _words("times")
