"""Finishing a query: what must be absent or counted although nothing names it, conditions, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator

from clew.core.query import Condition, Count, TripletQuery
from clew.core.schema import Schema
from clew.reading.triplets.alignment import Matches
from clew.reading.triplets.amounts import Amount, amounts, conditions
from clew.reading.triplets.assembly import Attachment, QueryTree
from clew.reading.triplets.combination import Combination
from clew.reading.triplets.reading import Phrase, Reading
from clew.reading.triplets.schema_paths import is_generic

NAMES_TYPE = 0.75
"""From this score on a phrase names a type."""


def finish(schema: Schema, reading: Reading, matches: Matches, one: Combination) -> TripletQuery:
    """The query of a combination, with everything the question says beyond its names."""
    is_said = one.branches or one.asked or len(schema.answer_types) == 1
    tree = QueryTree.of(one.target if is_said else None)
    for branch in one.branches:
        tree.add(branch)
    tree.phrases[tree.target.name] = next(
        (b.alignment.types[-1] for b in one.branches if b.alignment.types[-1]), one.asked
    )
    numbers, covered = list(amounts(reading)), one.covered()
    covered |= _count_known(tree, numbers)
    covered |= _hang_unnamed(schema, reading, matches, tree, numbers, covered)
    tree.forget_types(schema, {name for name, phrase in tree.phrases.items() if phrase is not None})
    own = {n: schema.node_type(v.type).attributes for n, v in tree.variables.items() if v.type is not None}
    required: list[Condition] = []
    for condition, amount in conditions(reading, numbers, own, schema.attribute_types):
        required.append(condition)
        covered |= _places(amount)
    texts = [word.text for word in reading.words]
    asks_number = any(texts[place : place + 2] == ["how", "many"] for place in range(len(texts)))
    return tree.query(required, asks_number, one.score, _left_over(reading, one, covered))


def _count_known(tree: QueryTree, numbers: list[Amount]) -> set[int]:
    """Numbers right before the name of a variable count its nodes: genes of at least three diseases with X."""
    covered: set[int] = set()
    for amount in list(numbers):
        for name, phrase in tree.phrases.items():
            if phrase is not None and name in tree.parents and amount.is_count and _precedes(amount, phrase):
                tree.counts.append(Count(tree.parents[name], name, amount.comparison, int(amount.value)))
                numbers.remove(amount)
                covered |= _places(amount)
                break
    return covered


def _hang_unnamed(
    schema: Schema, reading: Reading, matches: Matches, tree: QueryTree, numbers: list[Amount], covered: set[int]
) -> set[int]:
    """Types that are counted or forbidden without any name: with no drug, with more than ten genes."""
    found: set[int] = set()
    for phrase, kind in _unnamed_types(reading, matches, covered):
        amount = next((amount for amount in numbers if amount.is_count and _precedes(amount, phrase)), None)
        forbidden = amount is None and reading.negation_before(phrase.first) is not None
        place = _attachment(schema, reading, matches, tree, kind, phrase) if amount or forbidden else None
        if place is None:
            continue
        variable = tree.hang(place, kind, phrase, forbidden)
        found |= set(range(phrase.first, phrase.last))
        if amount is not None:
            tree.counts.append(Count(place.anchor, variable.name, amount.comparison, int(amount.value)))
            numbers.remove(amount)
            found |= _places(amount)
    return found


def _unnamed_types(reading: Reading, matches: Matches, covered: set[int]) -> Iterator[tuple[Phrase, str]]:
    """Phrases that name a type and that no path has taken, longest first at each place."""
    taken = set(covered)
    for row, phrase in sorted(enumerate(reading.phrases), key=lambda entry: (entry[1].first, -entry[1].last)):
        code = int(matches.types[row].argmax()) if matches.types.shape[1] else 0
        kind = next((name for name, other in matches.type_code.items() if other == code), None)
        places = set(range(phrase.first, phrase.last))
        if kind is None or is_generic(kind) or reading.is_asked(phrase) or places & taken:
            continue
        if matches.types[row, code] >= NAMES_TYPE:
            taken |= places
            yield phrase, kind


def _attachment(
    schema: Schema, reading: Reading, matches: Matches, tree: QueryTree, kind: str, phrase: Phrase
) -> Attachment | None:
    """The nearest variable named before the phrase that has a relation to its type, and the relation that fits best."""
    near = {row for row, other in enumerate(reading.phrases) if abs(other.first - phrase.first) <= 4}
    options = []
    for name, variable in tree.variables.items():
        named = tree.phrases.get(name)
        distance = phrase.first - named.first if named is not None and named.first < phrase.first else 99
        for row in schema.relations:
            spoken = max((float(matches.relations[r, matches.relation_code[row.name]]) for r in near), default=0.0)
            for outward, (inner, outer) in ((True, (row.head, row.tail)), (False, (row.tail, row.head))):
                if inner == variable.type and outer == kind:
                    options.append((distance, -spoken, -row.count, row.name, Attachment(name, row.name, outward)))
    return min(options, key=lambda option: option[:4])[-1] if options else None


def _precedes(amount: Amount, phrase: Phrase) -> bool:
    return 0 <= phrase.first - amount.last <= 2


def _places(amount: Amount) -> set[int]:
    return set(range(amount.first, amount.last))


def _left_over(reading: Reading, one: Combination, covered: set[int]) -> list[str]:
    """Runs of words of the question that no part of the query accounts for."""
    used = {place for first, last in one.spans for place in range(first, last)}
    open_places = sorted(
        place for place in range(len(reading.words)) if place not in used | covered and _says(reading, place)
    )
    runs: list[list[int]] = []
    for place in open_places:
        if runs and all(
            not _says(reading, gap) and gap not in used | covered for gap in range(runs[-1][-1] + 1, place)
        ):
            runs[-1].append(place)
        else:
            runs.append([place])
    return [reading.question[reading.words[run[0]].start : reading.words[run[-1]].end] for run in runs]


def _says(reading: Reading, place: int) -> bool:
    return place in reading.content or place in reading.taken
