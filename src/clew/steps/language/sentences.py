"""Where the sentences of a text begin and end: a few rules, no model, any script with sentence marks."""

from __future__ import annotations

import re

SHORT_FORMS = """
mr mrs ms dr prof st sr jr vs etc e.g i.e cf al fig eq no vol pp p ch sec tab inc ltd co corp dept est approx
gen col lt sgt capt rev hon gov sen rep pres jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k ca b d
"""
ABBREVIATIONS = frozenset(SHORT_FORMS.split())
END = re.compile(r"""(?:[.!?…]+["'”’)\]]*(?=\s+["'“‘(\[]*[^\W_a-zß-öø-ÿ])|[。！？]+["”’」』）]*|\n[ \t]*\n)\s*""")
LAST_WORD = re.compile(r"[\w.]+$")


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The spans of the sentences between two places, without the white space around them."""
    stop = len(text) if end is None else end
    spans, begin = [], start
    for found in END.finditer(text, start, stop):
        if not _is_end(text, begin, found):
            continue
        spans.append((begin, found.end()))
        begin = found.end()
    spans.append((begin, stop))
    stripped = ((a + len(text[a:b]) - len(text[a:b].lstrip()), a + len(text[a:b].rstrip())) for a, b in spans)
    return [(a, b) for a, b in stripped if a < b]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _is_end(text: str, begin: int, found: re.Match[str]) -> bool:
    """A full stop after an initial or an abbreviation ends nothing."""
    if not found.group().startswith(".") or found.group().startswith(".."):
        return True
    word = LAST_WORD.search(text, begin, found.start())
    if word is None:
        return True
    last = word.group().lower().strip(".")
    return not (last in ABBREVIATIONS or (len(last) == 1 and last.isalpha()) or re.fullmatch(r"(\w\.)+\w", last))
