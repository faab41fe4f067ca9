"""Reorder a question that was translated word by word, closer to English.

1. In Hindi, words that follow a noun in English come before it ("A of member" is "member of A"). Move them, and move
   question phrases to the front. Japanese also has that order, but reordering did not improve its questions: its
   particles have several meanings each.
2. A question without a question word is a yes/no question.
3. Write "same as" before a name, regardless of the wording in the language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

VERB_LAST = frozenset(("hi",))
KEPT = re.compile(r"([§•][^§•]*[§•]|\b[A-Z] \( [^)]*\)|number \d+ \( [^)]*\))")
"""Placeholders for names and numbers."""
ASKING = frozenset(("how", "what", "when", "where", "which", "who", "whom", "whose", "why"))
YES_OR_NO = "did"
AFTER_NOUNS = frozenset(("after", "at", "before", "behind", "by", "for", "from", "in", "of", "on", "to", "with"))
AFTER_NOUNS |= {YES_OR_NO}  # Hindi marks the subject with it
BEFORE_NOUNS = frozenset(("how many", "same", "which", "whose"))
AS = frozenset(("how", "like", "of", "than", "that", "which"))
SAME, NEAR = "same", 3
"""Maximum number of words between "same" and the name it is compared with."""


def in_english_order(words: Sequence[str], language: str, *, is_question: bool) -> list[str]:
    """Return the words in an order closer to English."""
    said = _noun_last(words) if language in VERB_LAST else list(words)
    if is_question and not _asks(said) and said[:1] != [YES_OR_NO]:
        said.insert(0, YES_OR_NO)
    return _same_as(said)


def _asks(words: Sequence[str]) -> bool:
    return not ASKING.isdisjoint(" ".join(words).split())


def _noun_last(words: Sequence[str]) -> list[str]:
    phrases: list[list[str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if phrases and word in AFTER_NOUNS:
            if rest and rest[0] in AFTER_NOUNS:
                continue  # two words that form one: "of after" is "after"
            if word == "of" and rest:
                phrases[-1] = [rest.pop(0), word, *phrases[-1]]
            else:
                phrases[-1] = [word, *phrases[-1]]
        elif phrases and phrases[-1][-1] in BEFORE_NOUNS:
            phrases[-1].append(word)
        else:
            phrases.append([word])
    phrases.sort(key=lambda phrase: not _asks(phrase))
    return [word for phrase in phrases for word in phrase]


def _same_as(words: Sequence[str]) -> list[str]:
    for place, word in enumerate(words):
        if SAME in words[max(0, place - NEAR) : place] and KEPT.fullmatch(word):
            before = words[: place - 1] if words[place - 1] in AS else words[:place]
            return [*before, *(() if words[place - 1] == "as" else ("as",)), *words[place:]]
    return list(words)
