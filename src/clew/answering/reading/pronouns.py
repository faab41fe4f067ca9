"""Pronouns that refer to a name in an earlier sentence of the same question.

"Marfan syndrome runs in families. Which genes cause it?" asks for the genes that cause Marfan syndrome. 4StepFocus
names this as future work: "replacing pronouns with referenced objects/subjects" (Boer, Koch and Kramer 2024, §5).
Inside one sentence a pronoun may also refer to the answer, so it stays unchanged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from clew.answering.reading.follow_ups import replaced
from clew.store.index.protocol import Mention

_SENTENCE_END = re.compile(r"[.!?]\s+")


@cache
def _words(language: str = "en") -> tuple[re.Pattern[str], frozenset[str]]:
    lists = tomllib.loads(files("clew.answering.reading").joinpath(language, "pronouns.toml").read_text("utf-8"))
    owning = frozenset(lists["owning"])
    return re.compile(rf"\b(?:{'|'.join((*lists['pointing'], *owning))})\b", re.IGNORECASE), owning


def with_names(question: str, mentions_in: Callable[[str], Sequence[Mention]]) -> str:
    """Replace each pronoun by the last name of an earlier sentence."""
    pattern, owning = _words()
    if not _SENTENCE_END.search(question) or not pattern.search(question):
        return question  # most questions have one sentence: skip the name lookup
    mentions = mentions_in(question)
    pieces = []
    for match in pattern.finditer(question):
        if any(mention.start <= match.start() < mention.end for mention in mentions):
            continue
        ends = [found.end() for found in _SENTENCE_END.finditer(question, 0, match.start())]
        before = [mention for mention in mentions if ends and mention.end <= ends[-1]]
        if before and not any(ends[-1] <= mention.start < match.start() for mention in mentions):
            name = before[-1].text
            pieces.append((match.start(), match.end(), f"{name}'s" if match[0].lower() in owning else name))
    return replaced(question, pieces) if pieces else question
