"""Answers and nodes in sentences without a language model: "3 drugs treat gout: A, B and C."."""

from __future__ import annotations

import re
from collections import Counter

from clew.answering.queries.schema_words import attribute_words, value_in_words, value_sentence
from clew.answering.queries.words import kind_in_words, listed
from clew.core.nouns import plural
from clew.core.schema import label_of
from clew.core.states import WORDINGS
from clew.core.types import Answer, Candidate, Cell, Fact, Judgement, NodeRef, NodeSet, Path, Value
from clew.store.graph.protocol import KnowledgeBase

NOTHING = "Nothing in the base says so."
LISTED = 5
"""Maximum number of names in a sentence. The other answers are counted."""


def sentence(answer: Answer) -> str:
    """Return the answer in one sentence. It ends with one full stop, also after "Inc."."""
    return re.sub(r"(?<!\.)\.\.$", ".", _sentence(answer))


def _sentence(answer: Answer) -> str:
    understood, count = answer.query.get("text"), len(answer.matches)
    if not answer.found:
        return WORDINGS["not_found"].headline + (f" I understood: {understood}." if understood else "")
    if isinstance(answer.value, bool):
        return _truth(answer, answer.value)
    if answer.value is not None and answer.query.get("form") != "count":
        return _value(answer, answer.value)
    if answer.rows:
        rows = f"{len(answer.rows):,} {'row' if len(answer.rows) == 1 else 'rows'}"
        is_said = answer.query.get("form") == "value" and str(understood).startswith("the ")
        return f"{f'T{understood[1:]}' if understood and is_said else rows}: {_first_rows(answer)}."
    if answer.value is None and not count:
        return f"Ranked by what is written about them, nothing was checked: {_listed(answer.candidates)}."
    if answer.value is None and answer.query.get("form") in ("superlative", "comparison"):
        return f"{_best(answer)}."
    return f"{_counted(answer, count if answer.value is None else int(answer.value))}."


def _counted(answer: Answer, count: int) -> str:
    """Return the numbers of all and of direct matches, and their names: "2 drugs treat gout: A and B"."""
    kind = str(answer.query.get("kind", "thing"))
    said = answer.query.get("one" if count == 1 else "many")
    named = f": {_listed(answer.matches)}" if answer.matches else ""
    if said is None:
        said = kind if count == 1 else plural(kind)
        said += (" matches" if count == 1 else " match") if answer.value is None else ""
    return f"{count:,} {said}{_directly(answer)}{named}"


def _best(answer: Answer) -> str:
    """Return who has the most or the least: "Konkordia Hut has the most beds (146)"."""
    said = answer.query.get("best" if len(answer.matches) == 1 else "best_many", "")
    kind = str(answer.query.get("kind", "thing"))
    among = answer.query.get("of", "")
    the = "" if answer.query.get("form") == "comparison" else "the "
    among = f"Of {the}{among}, " if among not in ("", kind, plural(kind)) else ""
    return f"{among}{_listed(answer.matches)} {said}".strip() + _compared(answer)


def _truth(answer: Answer, is_so: bool) -> str:
    query = answer.query
    if "asked" in query and answer.matches and not is_so:
        return f"No. {_best(answer)}, not {query['asked']}."
    if "asked" in query and answer.matches:
        return f"Yes. {_best(answer)}."
    told = query.get("told")
    if is_so:
        named = f" {told}." if told else f" {_counted(answer, len(answer.matches))}." if "many" in query else ""
        return f"Yes.{named or _first_fact(answer)}"
    if query.get("instead"):
        return f"No. {query['instead']}."
    if told:
        return f"No. Nothing in the base says that {told}."
    asked = str(query.get("text", ""))
    start = "whether there are "
    return f"No. The base has no {asked.removeprefix(start)}." if asked.startswith(start) else f"No. {NOTHING}"


def _first_fact(answer: Answer) -> str:
    pieces = answer.candidates[0].evidence if answer.candidates else ()
    return next((f" {piece.in_words()}." for piece in pieces if isinstance(piece, Fact | Path)), "")


def _value(answer: Answer, value: Value) -> str:
    attribute, unit = answer.query.get("attribute"), answer.query.get("unit", "")
    if attribute and answer.matches:
        return f"{value_sentence(_listed(answer.matches), attribute, unit, value)}."
    understood = str(answer.query.get("text", ""))
    if understood.startswith("the "):
        return f"T{understood[1:]} is {value_in_words(value, unit)}."
    return f"{value_in_words(value, unit)}."


def _first_rows(answer: Answer) -> str:
    """Return the first rows and the number of other rows."""
    shown = [_row(tuple(map(_cell, row)), isinstance(row[0], NodeRef)) for row in answer.rows[:LISTED]]
    more = len(answer.rows) - len(shown)
    return "; ".join(shown) + (f"; and {more:,} more" if more else "")


def _row(cells: tuple[str, ...], is_about_first: bool) -> str:
    return f"{cells[0]} ({', '.join(cells[1:])})" if is_about_first and len(cells) > 1 else ", ".join(cells)


def _cell(cell: Cell) -> str:
    return cell.name if isinstance(cell, NodeRef) else "nothing" if cell is None else value_in_words(cell)


def _directly(answer: Answer) -> str:
    """Return the number of direct matches if other matches come from a hierarchy."""
    direct = answer.query.get("direct", len(answer.matches))
    return f" ({direct:,} directly)" if direct < len(answer.matches) else ""


def _compared(answer: Answer) -> str:
    """Return the compared value from the evidence of the first match."""
    evidence = answer.matches[0].evidence
    told = [piece for piece in evidence if isinstance(piece, Judgement) and piece.by not in ("query", "document")]
    if not told or not told[0].reason:
        return ""
    shown = told[0].reason.split()[0] if told[0].by == "count" else told[0].reason
    number = float(shown) if re.fullmatch(r"-?\d+(\.\d+)?", shown) else shown
    return f" ({value_in_words(number, answer.query.get('unit', ''))})"


def _listed(candidates: tuple[Candidate, ...]) -> str:
    """Return the first names, with a count for shared names, and the number of other names."""
    times = Counter(candidate.node.name for candidate in candidates)
    named = dict(list(times.items())[:LISTED])
    names = [name if often == 1 else f"{name} ({often} times)" for name, often in named.items()]
    more = len(candidates) - sum(named.values())
    if more > 0:
        names.append(f"{more:,} more")
    if any(", " in name for name in named):
        return "; ".join([*names[:-1], f"and {names[-1]}" if len(names) > 1 else names[-1]])
    return listed(names, "and")


ATTRIBUTES, RELATIONS, NAMES = 6, 6, 3
"""Maximum number of attributes, relations, and names per relation in a description."""
LONGEST = 300
"""Maximum number of characters of the text of a node in a description."""


def description(kb: KnowledgeBase, node: int) -> str:
    """Return a description of a node."""
    content = kb.node(node)
    kind = kind_in_words(kb.schema, content.type)
    told = [f"{content.name} is {'an' if kind[:1] in 'aeiou' else 'a'} {kind}."]
    written = " ".join(content.text.split())
    if written:
        told.append(written if len(written) <= LONGEST else f"{written[:LONGEST].rsplit(' ', 1)[0]} …")
    values = [
        f"{attribute_words(name)[0]} {value_in_words(value, attribute_words(name)[1])}"
        for name, value in content.attributes.items()
        if isinstance(value, int | float | str) and value != ""
    ]
    parts = ["; ".join(values[:ATTRIBUTES])] if values else []
    here = NodeSet.of([node])
    for use in sorted(kb.relations(here), key=lambda use: (use.direction != "out", use.count))[:RELATIONS]:
        others = kb.neighbors(here, use.relation, use.direction)
        named = [ref.name for ref in kb.refs(others.array[:NAMES])]
        more = f" and {len(others) - NAMES:,} more" if len(others) > NAMES else ""
        label = label_of(use.relation) if use.direction == "out" else f"{label_of(use.relation)} of"
        parts.append(f"{label}: {', '.join(named)}{more}")
    return " ".join([*told, *(f"{part[:1].upper()}{part[1:]}." for part in parts)])
