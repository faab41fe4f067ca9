"""Queries as short sequences of tokens, which a network can write: the grammar, and the conversion in both directions.

A token is a word of the grammar, a letter for a name of the question, a number or value of the question, a variable, or
an index of a type, attribute or hop of the schema:

    type film, hop acted_in⁻¹ x0 A, find x0, end            films with A
    type singer, > age x0 n1, find count x0, end            How many singers are older than 30?

`read_query` is a grammar and a builder in one: a generator that yields the tokens that may follow, receives one of
them, and finally returns the query. `tokens_of` is its inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.plan import COMPARISONS, LETTERS, SORTED, comparable
from clew.answering.reading.plan import NUMBERS as NUMBERS_ONLY
from clew.answering.reading.quantities import Quantity
from clew.answering.reading.vocabulary import SchemaAttribute, Vocabulary
from clew.core import query as ql
from clew.core.errors import InputError

NUMBERS = tuple(f"n{place + 1}" for place in range(6))
VALUES = tuple(f"v{place + 1}" for place in range(6))
VARIABLES = tuple(f"x{place}" for place in range(8))
CONSTANTS: Mapping[str, bool | int] = {"true": True, "false": False, "zero": 0, "one": 1, "two": 2, "three": 3}
COMPARED: tuple[str, ...] = ("=", "!=", "<", "<=", ">", ">=", "contains", "starts with", "ends with")
GROUPED = ("any", "all")
CONDITIONS = (*COMPARED, *GROUPED, "not", "exists", "missing", "in")
AGGREGATES: Mapping[str, ql.AggregateName] = {
    "count": "count",
    "different": "count",
    **{name: name for name in ("sum", "avg", "min", "max")},
}
CALLS = ("-", "+", "*", "/", "year", "month", "day", "length")
OTHERS = (
    "none",
    "end",
    "new",
    "find",
    "group",
    "having",
    "asc",
    "desc",
    "first",
    "rows",
    "whether",
    "over",
    "sub",
    "row",
)
WORDS: tuple[str, ...] = (
    *OTHERS,
    *get_args(ql.SetOperation),
    *CONDITIONS,
    *(name for name in (*AGGREGATES, *CALLS) if name not in CONDITIONS),
    *CONSTANTS,
    *LETTERS,
    *NUMBERS,
    *VALUES,
    *VARIABLES,
)
"""Tokens that do not depend on the schema, in the order of the trained network."""
MOST_LISTED, MOST_KEYS = 6, 3
"""Maximum number of columns, keys or conditions in a list, and of keys of an order."""
CODES: Mapping[str, int] = {word: place for place, word in enumerate(WORDS)}

Allowed = NDArray[np.bool_]
"""Whether each token may follow."""
Writing = Generator[Allowed, int, Any]


class UnsayableError(InputError):
    """A query that the tokens cannot express."""


@dataclass(frozen=True)
class Symbols:
    """Tokens over a vocabulary: words first, then its types, attributes and hops."""

    vocabulary: Vocabulary

    @cached_property
    def types(self) -> int:
        """The first token of a type."""
        return len(WORDS)

    @cached_property
    def attributes(self) -> int:
        """The first token of an attribute."""
        return self.types + len(self.vocabulary.schema.type_names)

    @cached_property
    def hops(self) -> int:
        """The first token of a hop."""
        return self.attributes + len(self.vocabulary.attributes)

    @cached_property
    def size(self) -> int:
        """Number of tokens."""
        return self.hops + len(self.vocabulary.hops)

    @cached_property
    def type_codes(self) -> dict[str, int]:
        """Token of each type."""
        return {name: self.types + place for place, name in enumerate(self.vocabulary.schema.type_names)}

    @cached_property
    def attribute_codes(self) -> dict[tuple[str, str], int]:
        """Token of each attribute by its owner and name."""
        return {(one.owner, one.name): self.attributes + at for at, one in enumerate(self.vocabulary.attributes)}

    @cached_property
    def starting(self) -> dict[str, NDArray[np.int64]]:
        """Tokens of the hops from each type."""
        names = self.vocabulary.schema.type_names
        starts = np.array([hop.start for hop in self.vocabulary.hops], dtype=object)
        return {name: self.hops + np.flatnonzero(starts == name) for name in names}

    @cached_property
    def owned(self) -> dict[str, NDArray[np.int64]]:
        """Tokens of the attributes of each type."""
        names = self.vocabulary.schema.type_names
        owners = np.array([one.owner for one in self.vocabulary.attributes], dtype=object)
        return {name: self.attributes + np.flatnonzero(owners == name) for name in names}

    def text(self, tokens: Iterable[int]) -> str:
        """Return tokens as text, for people."""
        known = self.vocabulary

        def one(token: int) -> str:
            if token < self.types:
                return WORDS[token]
            if token < self.attributes:
                return known.schema.type_names[token - self.types]
            if token < self.hops:
                return known.attributes[token - self.attributes].name
            hop = known.hops[token - self.hops]
            return hop.relation + ("" if hop.direction == "out" else "⁻¹")

        return " ".join(map(one, tokens))


@dataclass(frozen=True)
class Terms:
    """What the letters, numbers and values of a question stand for."""

    names: Sequence[tuple[ql.Constant, str | None]] = ()
    """The constant of each letter with its type."""
    numbers: Sequence[Quantity] = ()
    values: Sequence[str] = ()
    conditions: Callable[[int, str, ql.Comparison, int], Iterable[ql.Formula]] | None = None
    """Returns the formulas that compare an attribute of a variable with a number of the question."""
    parts: frozenset[tuple[int, int]] = frozenset()
    """Attributes with values that contain a value of the question, as pairs of indexes."""
    options: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Values of which one is enough, "in Leith or Wick", or of which a list has to have all."""


@dataclass
class _Builder:
    symbols: Symbols
    terms: Terms
    count: int = 0
    """Number of variables."""
    types: dict[str, str] = field(default_factory=dict)

    # Which tokens may follow

    def _allow(self, words: Iterable[str], *others: NDArray[np.int64] | Sequence[int]) -> Allowed:
        allowed = np.zeros(self.symbols.size, dtype=np.bool_)
        allowed[[CODES[word] for word in words]] = True
        for some in others:
            allowed[some] = True
        return allowed

    def _word(self, words: Iterable[str]) -> Generator[Allowed, int, str]:
        token: int = yield self._allow(words)
        return WORDS[token]

    def _variables(self, scope: Sequence[str], kind: str) -> list[str]:
        return [name for name in scope if self.types[name] == kind]

    def _new(self, kind: str) -> str:
        name = VARIABLES[self.count]
        self.count += 1
        self.types[name] = kind
        return name

    @property
    def _has_room(self) -> bool:
        return self.count < len(VARIABLES)

    # Queries

    def query(self) -> Generator[Allowed, int, ql.AnyQuery]:
        """Read a query up to its end."""
        pattern, scope, word = yield from self._pattern((), ("find", *get_args(ql.SetOperation)))
        if word != "find":
            left = yield from self.query()
            right = yield from self.query()
            return ql.Combined(cast(ql.SetOperation, word), left, right)
        expressions, conditions = self._expressions(scope), self._allow(CONDITIONS)
        follow = ("group", "having", "asc", "desc", "first", "end")
        columns, word = yield from self._listed(self._column, scope, expressions, follow)
        group: list[ql.Expression] = []
        having: list[ql.Formula] = []
        if word == "group":
            group, word = yield from self._listed(self._column, scope, expressions, follow[1:])
        if word == "having":
            having, word = yield from self._listed(self._condition, scope, conditions, follow[2:])
        order: list[ql.Order] = []
        while word in ("asc", "desc"):
            order.append(ql.Order((yield from self._sorter(scope)), word == "desc"))
            word = yield from self._word(follow[2:] if len(order) < MOST_KEYS else follow[4:])
        first: int | None = None
        if word == "first":
            limit = yield from self._word(("one", *NUMBERS[: len(self.terms.numbers)]))
            first = 1 if limit == "one" else max(1, int(self._number(limit).value or 1))
            yield self._allow(("end",))
        query = ql.Query(
            tuple(map(ql.Column, columns)), pattern, False, tuple(group), tuple(having), tuple(order), first
        )
        return replace(query, distinct=not query.is_grouped, ties=first == 1 and len(order) == 1)

    def _listed(
        self,
        read: Callable[[tuple[str, ...], int], Generator[Allowed, int, list[Any]]],
        scope: tuple[str, ...],
        starts: Allowed,
        follow: Sequence[str],
    ) -> Generator[Allowed, int, tuple[list[Any], str]]:
        """Read one or more items up to a word that follows them."""
        after, found, token = self._allow(follow), list[Any](), (yield starts)
        while token >= self.symbols.types or WORDS[token] not in follow:
            found += yield from read(scope, token)
            token = yield after | starts if len(found) < MOST_LISTED else after
        return found, WORDS[token]

    def _column(self, scope: tuple[str, ...], token: int) -> Generator[Allowed, int, list[ql.Expression]]:
        return [(yield from self._expression(scope, token))]

    def _sorter(self, scope: tuple[str, ...]) -> Generator[Allowed, int, ql.Expression]:
        allowed = self._expressions(scope)
        unsorted = [
            at for at, one in enumerate(self.symbols.vocabulary.attributes) if one.kind == "boolean" or one.is_list
        ]
        allowed[self.symbols.attributes + np.array(unsorted, dtype=np.int64)] = False
        return self._read((yield from self._expression(scope, (yield allowed))))

    def _pattern(
        self, outer: tuple[str, ...], closing: Sequence[str]
    ) -> Generator[Allowed, int, tuple[ql.Pattern, tuple[str, ...], str]]:
        """Read variables, edges and conditions up to a closing word."""
        symbols, own = self.symbols, list[str]()
        edges: list[ql.Edge] = []
        where: list[ql.Formula] = []
        while True:
            scope = (*outer, *own)
            starts = [symbols.starting[kind] for kind in {self.types[name] for name in scope}]
            kinds = range(symbols.types, symbols.attributes) if self._has_room else ()
            is_block = "find" not in closing
            ends = closing if is_block and edges else () if is_block else closing[:1] if own else closing[1:]
            token = yield self._allow((*ends, *(CONDITIONS if scope else ())), list(kinds), *starts)
            if token >= symbols.hops:
                hop = symbols.vocabulary.hops[token - symbols.hops]
                start = yield from self._word(self._variables(scope, hop.start))
                known = [*self._variables(scope, hop.end), *self._letters(hop.end)]
                word = yield from self._word(("new", *known) if self._has_room else known)
                if word == "new":
                    word = self._new(hop.end)
                    own.append(word)
                end = self.terms.names[LETTERS.index(word)][0] if word in LETTERS else word
                head, tail = (start, end) if hop.direction == "out" else (end, start)
                edges.append(ql.Edge(head, hop.relation, tail))
            elif token >= symbols.types:
                own.append(self._new(symbols.vocabulary.schema.type_names[token - symbols.types]))
            elif WORDS[token] in closing:
                variables = tuple(ql.Variable(name, self.types[name]) for name in own)
                return ql.Pattern(variables, tuple(dict.fromkeys(edges)), tuple(where)), scope, WORDS[token]
            else:
                where += yield from self._condition(scope, token)

    def _letters(self, kind: str) -> list[str]:
        return [LETTERS[place] for place, (_, own) in enumerate(self.terms.names) if own in (None, kind)]

    # Conditions

    def _condition(self, scope: tuple[str, ...], token: int) -> Generator[Allowed, int, list[ql.Formula]]:
        word = WORDS[token]
        match word:
            case "not":
                denied = yield from self._condition(scope, (yield self._allow(CONDITIONS)))
                return [ql.Not(denied[0] if len(denied) == 1 else ql.All(tuple(denied)))]
            case "any" | "all":
                parts, _ = yield from self._listed(self._condition, scope, self._allow(CONDITIONS), ("end",))
                return [ql.Either(tuple(parts)) if word == "any" else ql.All(tuple(parts))]
            case "exists":
                pattern, *_ = yield from self._pattern(scope, ("end",))
                return [ql.Exists(pattern)]
            case "missing":
                return [ql.Missing((yield from self._expression(scope, (yield self._expressions(scope)))))]
            case "in":
                left = yield from self._expression(scope, (yield self._expressions(scope)))
                yield self._allow(("sub",))
                return [ql.Compare(left, "in", ql.Subquery((yield from self.query())))]
        return (yield from self._comparison(scope, cast(ql.Comparison, word)))

    def _comparison(
        self, scope: tuple[str, ...], comparison: ql.Comparison
    ) -> Generator[Allowed, int, list[ql.Formula]]:
        equals = {name: [*self._letters(self.types[name]), *(one for one in scope if one != name)] for name in scope}
        allowed = self._expressions(scope)
        allowed[[CODES[name] for name, others in equals.items() if not others]] = False
        token = yield allowed
        place = token - self.symbols.attributes
        left = yield from self._expression(scope, token)
        if isinstance(left, ql.Var):
            end = yield from self._word(equals[left.name])
            right = self.terms.names[LETTERS.index(end)][0] if end in LETTERS else ql.Var(end)
            return [ql.Compare(left, comparison, right)]
        token = yield self._expressions(scope, literals=True)
        word = WORDS[token] if token < self.symbols.types else ""
        attribute = self.symbols.vocabulary.attributes[place] if isinstance(left, ql.Attribute) else None
        if word in NUMBERS and isinstance(left, ql.Attribute) and attribute is not None:
            quantity = self._number(word)
            if (attribute.kind in ("text", "category") and not attribute.is_written) or comparison not in COMPARISONS:
                return [ql.Compare(left, comparison, ql.Value(quantity.text))]
            if self.terms.conditions is not None:
                return list(self.terms.conditions(place, left.variable, comparison, NUMBERS.index(word)))
        if word in VALUES and comparison in ("=", "!="):
            return [self._compared(left, comparison, place, VALUES.index(word))]
        right_side = yield from self._expression(scope, token, attribute)
        if word not in VALUES and word not in ("true", "false"):
            left, right_side = self._read(left), self._read(right_side)
        return [ql.Compare(left, comparison, right_side)]

    def _compared(self, left: ql.Expression, comparison: ql.Comparison, place: int, value: int) -> ql.Formula:
        """Return the comparison with a value of the question, with a part of longer values, or with one of several."""
        how: ql.Comparison = "contains" if (place, value) in self.terms.parts else "="
        texts = self.terms.options.get(value, (self.terms.values[value],))
        parts = tuple(ql.Compare(left, how, ql.Value(text)) for text in texts)
        if len(parts) == 1 and how == "=":
            return replace(parts[0], comparison=comparison)
        is_list = self.symbols.vocabulary.attributes[place].is_list
        found = parts[0] if len(parts) == 1 else ql.All(parts) if is_list else ql.Either(parts)
        return found if comparison == "=" else ql.Not(found)

    # Expressions

    def _expressions(self, scope: tuple[str, ...], *, literals: bool = False) -> Allowed:
        kinds = {self.types[name] for name in scope}
        terms = self.terms
        words = [*scope, *AGGREGATES, *CALLS, "rows", "whether", "over", "sub", "row"]
        if literals:
            words += [*CONSTANTS, *NUMBERS[: len(terms.numbers)], *VALUES[: len(terms.values)]]
        return self._allow(words, *(self.symbols.owned[kind] for kind in kinds))

    def _expression(
        self, scope: tuple[str, ...], token: int, attribute: SchemaAttribute | None = None
    ) -> Generator[Allowed, int, ql.Expression]:
        symbols = self.symbols
        if token >= symbols.attributes:
            own = symbols.vocabulary.attributes[token - symbols.attributes]
            name = yield from self._word(self._variables(scope, own.owner))
            return ql.Attribute(name, own.name)
        word = WORDS[token]
        if word in VARIABLES:
            return ql.Var(word)
        if word in CONSTANTS:
            constant = CONSTANTS[word]
            return ql.Value(int(constant) if attribute is not None and attribute.is_flag else constant)
        if word in NUMBERS:
            number = self._number(word)
            if number.value is None:
                return ql.Value(number.low)
            return ql.Value(int(number.value) if number.value == int(number.value) else number.value)
        if word in VALUES:
            return ql.Value(self.terms.values[VALUES.index(word)])
        if word in ("rows", "whether"):
            return ql.Aggregate("count" if word == "rows" else "exists")
        if word == "sub":
            return ql.Subquery((yield from self.query()))
        if word == "row":
            return ql.Call("row", (ql.Var((yield from self._word(scope))),))
        if word == "over":
            pattern, inner, _ = yield from self._pattern(scope, ("end",))
            token = yield self._allow((*AGGREGATES, "rows"))
            if WORDS[token] == "rows":
                return ql.Aggregate("count", over=pattern)
            return (yield from self._aggregate(inner, WORDS[token], pattern))
        if word in AGGREGATES:
            return (yield from self._aggregate(scope, word, None))
        kinds = SORTED if word in ql.OPERATORS else {"text", "category"} if word == "length" else {"date"}
        arguments = [(yield from self._operand(scope, kinds))]
        if word in ql.OPERATORS:
            arguments.append((yield from self._operand(scope, kinds)))
        return ql.Call(word, tuple(arguments))

    def _operand(self, scope: tuple[str, ...], kinds: Collection[str]) -> Generator[Allowed, int, ql.Expression]:
        """Read what a function takes: an attribute of these kinds, or another expression that is no node."""
        allowed = self._expressions(scope, literals=True) & ~self._allow(scope)
        own = self.symbols.vocabulary.attributes
        others = [place for place, one in enumerate(own) if one.kind not in kinds or one.is_list]
        allowed[self.symbols.attributes + np.array(others, dtype=np.int64)] = False
        return self._read((yield from self._expression(scope, (yield allowed))))

    def _aggregate(
        self, scope: tuple[str, ...], word: str, over: ql.Pattern | None
    ) -> Generator[Allowed, int, ql.Expression]:
        argument: ql.Expression
        if word in ("count", "different"):
            argument = yield from self._expression(scope, (yield self._expressions(scope)))
        else:
            argument = yield from self._operand(scope, NUMBERS_ONLY if word in ("sum", "avg") else SORTED)
        is_distinct = word == "different" or (word == "count" and isinstance(argument, ql.Var))
        return ql.Aggregate(AGGREGATES[word], argument, distinct=is_distinct, over=over)

    def _read(self, part: ql.Expression) -> ql.Expression:
        """Return an attribute as a number or a date if its texts contain these."""
        if not isinstance(part, ql.Attribute):
            return part
        code = self.symbols.attribute_codes.get((self.types.get(part.variable, ""), part.name))
        return (
            part
            if code is None
            else comparable(self.symbols.vocabulary.attributes[code - self.symbols.attributes], part.variable)
        )

    def _number(self, word: str) -> Quantity:
        return self.terms.numbers[NUMBERS.index(word)]


def read_query(symbols: Symbols, terms: Terms) -> Generator[Allowed, int, ql.AnyQuery | None]:
    """Yield the tokens that may follow and receive one of them, until the query is complete. None for no query."""
    builder = _Builder(symbols, terms)
    reading = builder.query()
    allowed = next(reading).copy()
    allowed[CODES["none"]] = True
    token = yield allowed
    if token == CODES["none"]:
        return None
    while True:
        try:
            allowed = reading.send(token)
        except StopIteration as ended:
            return cast(ql.AnyQuery, ended.value)
        token = yield allowed


def query_of(tokens: Sequence[int], symbols: Symbols, terms: Terms) -> ql.AnyQuery | None:
    """Return the query of a whole sequence. Raise UnsayableError for a token that may not follow."""
    reading = read_query(symbols, terms)
    allowed = next(reading)
    for place, token in enumerate(tokens):
        if not allowed[token]:
            raise UnsayableError(f"{symbols.text([token])!r} may not follow {symbols.text(tokens[:place])!r}")
        try:
            allowed = reading.send(token)
        except StopIteration as ended:
            if place + 1 < len(tokens):
                raise UnsayableError("tokens after the end") from None
            return cast(ql.AnyQuery, ended.value)
    raise UnsayableError("the query does not end")


# From queries to tokens


READING = (*ql.READING, "number")
"""Functions that the vocabulary adds to attributes whose texts contain numbers or dates."""


def tokens_of(
    query: ql.AnyQuery,
    symbols: Symbols,
    names: Mapping[ql.Constant, str],
    literal: Callable[[ql.Value, ql.Expression | None], str],
) -> list[int]:
    """Return the tokens of a query. Raise UnsayableError if there are none.

    `names` gives the letter of each constant. `literal` returns the token of a value that an expression is compared
    with, or None.
    """
    return _Writer(symbols, names, literal).query(query)


@dataclass
class _Writer:
    symbols: Symbols
    names: Mapping[ql.Constant, str]
    literal: Callable[[ql.Value, ql.Expression | None], str]
    count: int = 0
    variables: dict[str, str] = field(default_factory=dict)
    """Variable of the query → its token."""
    types: dict[str, str] = field(default_factory=dict)

    def query(self, query: ql.AnyQuery) -> list[int]:
        if isinstance(query, ql.Combined):
            return [CODES[query.operation], *self.query(query.left), *self.query(query.right)]
        outer = self.variables, self.types
        self.variables, self.types = {}, {}
        query = plain(query)
        found = self._pattern(query.pattern, _root(query))
        found += [CODES["find"], *(token for one in query.columns for token in self._expression(one.expression))]
        if query.group:
            found += [CODES["group"], *(token for one in query.group for token in self._expression(one))]
        if query.having:
            found += [CODES["having"], *(token for one in query.having for token in self._condition(one))]
        for key in query.order:
            found += [CODES["desc" if key.descending else "asc"], *self._expression(key.expression)]
        if query.skip or len(query.order) > MOST_KEYS:
            raise UnsayableError("skipped rows")
        if query.first is not None:
            limit = self.literal(ql.Value(query.first), None)
            found += [CODES["first"], CODES[limit]]
        self.variables, self.types = outer
        return [*found, CODES["end"]]

    def _declare(self, name: str, kind: str) -> None:
        if self.count >= len(VARIABLES):
            raise UnsayableError("too many variables")
        self.variables[name], self.types[name] = VARIABLES[self.count], kind
        self.count += 1

    def _pattern(self, pattern: ql.Pattern, root: str | None = None) -> list[int]:
        if pattern.optional:
            raise UnsayableError("optional parts")
        found: list[int] = []
        types = {**self.types, **_named_types(pattern)}
        types |= {name: kind for name, kind in pattern.types.items() if kind is not None}
        left = list(pattern.edges)
        for name in self.variables.copy():
            found += self._edges(name, left, types)
        own = [one.name for one in pattern.variables if one.name not in self.variables]
        for name in sorted(own, key=lambda name: name != root):
            if name not in self.variables:
                if name not in types:
                    raise UnsayableError("a variable without a type")
                self._declare(name, types[name])
                found += [self.symbols.type_codes[types[name]], *self._edges(name, left, types)]
        if left:
            raise UnsayableError("an edge between names")
        return [*found, *self._conditions(pattern.where)]

    def _conditions(self, formulas: Sequence[ql.Formula]) -> list[int]:
        """Return the tokens of conditions in the order of their terms. Their variables are numbered in that order."""
        keys = []
        for one in formulas:
            before = self.count
            keys.append(_order(self._condition(one)))
            self.count = before
        order = sorted(range(len(formulas)), key=keys.__getitem__)
        return [token for place in order for token in self._condition(formulas[place])]

    def _edges(self, name: str, left: list[ql.Edge], types: Mapping[str, str]) -> list[int]:
        """Return the tokens of the edges that lead on from a variable, and remove them from those left."""
        found: list[int] = []
        while steps := [edge for edge in left if name in (edge.head, edge.tail)]:
            options = []
            for edge in steps:
                end = edge.tail if edge.head == name else edge.head
                options.append((_letters_behind(end, name, left, self.names), self._hop(edge, name, types), edge, end))
            _, hop, edge, end = min(options, key=lambda one: one[:2])
            left.remove(edge)
            found += [self.symbols.hops + hop, CODES[self.variables[name]]]
            if not isinstance(end, str):
                found.append(CODES[self._letter(end)])
            elif end in self.variables:
                found.append(CODES[self.variables[end]])
            else:
                self._declare(end, self.symbols.vocabulary.hops[hop].end)
                found += [CODES["new"], *self._edges(end, left, types)]
        return found

    def _letter(self, constant: ql.Constant) -> str:
        if constant not in self.names:
            raise UnsayableError("a name that the question does not have")
        return self.names[constant]

    def _hop(self, edge: ql.Edge, start: str, types: Mapping[str, str]) -> int:
        if not edge.is_single or not edge.directed or edge.name or edge.relation is None:
            raise UnsayableError("another kind of edge")
        other = edge.tail if edge.head == start else edge.head
        direction = "out" if edge.head == start else "in"
        end = types.get(other) if isinstance(other, str) else getattr(other, "type", None)
        found = [
            place
            for place, hop in enumerate(self.symbols.vocabulary.hops)
            if (hop.relation, hop.direction, hop.start) == (edge.relation, direction, types[start])
            and end in (None, hop.end)
        ]
        if len(found) != 1:
            raise UnsayableError("a relation that the schema does not have")
        return found[0]

    def _condition(self, formula: ql.Formula) -> list[int]:
        match formula:
            case ql.Compare(left, "in", ql.Subquery(query)):
                return [CODES["in"], *self._expression(left), CODES["sub"], *self.query(query)]
            case ql.Compare(left, comparison, ql.Named() | ql.Nodes() as right) if comparison in COMPARED:
                return [CODES[comparison], *self._expression(left), CODES[self._letter(right)]]
            case ql.Compare(left, comparison, right) if comparison in COMPARED:
                return [CODES[comparison], *self._expression(left), *self._expression(right, left)]
            case ql.Either(parts) | ql.All(parts):
                word = "any" if isinstance(formula, ql.Either) else "all"
                return [CODES[word], *self._conditions(parts), CODES["end"]]
            case ql.Not(part):
                return [CODES["not"], *self._condition(part)]
            case ql.Missing(part):
                return [CODES["missing"], *self._expression(part)]
            case ql.Exists(pattern):
                return [CODES["exists"], *self._block(pattern)]
        raise UnsayableError(f"the condition {formula}")

    def _block(self, pattern: ql.Pattern) -> list[int]:
        known, types = dict(self.variables), dict(self.types)
        found = self._pattern(pattern)
        self.variables, self.types = known, types
        return [*found, CODES["end"]]

    def _expression(self, part: ql.Expression, compared: ql.Expression | None = None) -> list[int]:
        match part:
            case ql.Value():
                return [CODES[self.literal(part, compared)]]
            case ql.Var(name) if name in self.variables:
                return [CODES[self.variables[name]]]
            case ql.Attribute(variable, name) if variable in self.variables:
                code = self.symbols.attribute_codes.get((self.types[variable], name))
                if code is not None:
                    return [code, CODES[self.variables[variable]]]
            case ql.Call("row", (ql.Var(name),)):
                return [CODES["row"], CODES[self.variables[name]]]
            case ql.Call(function, (argument,)) if function in READING:
                return self._expression(argument)
            case ql.Call(function, arguments) if function in CALLS:
                return [CODES[function], *(token for one in arguments for token in self._expression(one))]
            case ql.Subquery(query):
                return [CODES["sub"], *self.query(query)]
            case ql.Aggregate(function, argument, distinct, over):
                known, types = dict(self.variables), dict(self.types)
                before = [] if over is None else [CODES["over"], *self._pattern(over), CODES["end"]]
                if argument is None:
                    before.append(CODES["whether" if function == "exists" else "rows"])
                else:
                    is_different = function == "count" and distinct and not isinstance(argument, ql.Var)
                    before += [CODES["different" if is_different else function], *self._expression(argument)]
                self.variables, self.types = known, types
                return before
        raise UnsayableError(f"the expression {part}")


def _named_types(pattern: ql.Pattern) -> dict[str, str]:
    """Return the types of variables that must be a certain named node, or one of several."""
    found = {}
    for formula in pattern.where:
        for part in formula.parts if isinstance(formula, ql.Either) else (formula,):
            match part:
                case ql.Compare(ql.Var(name), "=", ql.Named(_, str() as kind)):
                    found[name] = kind
    return found


def _letters_behind(end: Any, start: str, edges: Sequence[ql.Edge], names: Mapping[ql.Constant, str]) -> str:
    """Return the first letter that an edge leads to, without passing its start. A high letter if there is none."""
    reached, seen = [end], {start}
    found = "Z"
    while reached:
        one = reached.pop()
        if not isinstance(one, str):
            found = min(found, names.get(one, "Z"))
        elif one not in seen:
            seen.add(one)
            reached += [e.tail if e.head == one else e.head for e in edges if one in (e.head, e.tail)]
    return found


def _order(tokens: Sequence[int]) -> tuple[int, Sequence[int]]:
    """Return a sort key: conditions in the order in which the question has their names, numbers and values."""
    said = [token for token in tokens if CODES["A"] <= token <= CODES[VALUES[-1]]]
    return min(said, default=len(WORDS)), tokens


def _root(query: ql.Query) -> str | None:
    """Return the variable that a query is about: of its first group or column."""
    shown = [*query.group, *(column.expression for column in query.columns)]
    for part in ql.walk(shown[0], lambda one: isinstance(one, ql.Pattern)):
        if isinstance(part, ql.Var):
            return part.name
        if isinstance(part, ql.Attribute):
            return part.variable
    return _many(query.pattern)


def _many(pattern: ql.Pattern) -> str | None:
    """Return the variable whose nodes lead to all others along the edges, if there is only one."""
    names = [one.name for one in pattern.variables]
    ends = {edge.tail for edge in pattern.edges}
    roots = [name for name in names if name not in ends] if len(names) > 1 else names
    return roots[0] if len(roots) == 1 else None


def plain(query: ql.Query) -> ql.Query:
    """Return an equivalent query in the one way that the tokens have for it.

    The nodes of an aggregate are not selected by a sub-query, and a value is shown without its node. All rows of a
    pattern are those of the nodes that lead to all others.
    """
    match query.pattern:
        case ql.Pattern((ql.Variable(name),), (), where, ()) if not query.order and query.first is None:
            chosen = [one for one in where if isinstance(one, ql.Compare) and one.comparison == "in"]
            inner = chosen[0].right.query if chosen and isinstance(chosen[0].right, ql.Subquery) else None
            if len(chosen) == 1 and chosen[0].left == ql.Var(name) and isinstance(inner, ql.Query):
                is_same = inner.columns[0].expression == ql.Var(name) and len(inner.columns) == 1
                is_plain = not inner.group and (not query.is_grouped or inner.first is None)
                if is_same and is_plain and not inner.skip:
                    rest = tuple(one for one in where if one is not chosen[0])
                    pattern = ql.requiring(inner.pattern, *rest)
                    query = replace(query, pattern=pattern, order=inner.order, first=inner.first)
    known = [one for one in query.pattern.where if not _is_known(one)]
    query = replace(query, pattern=replace(query.pattern, where=tuple(known)))
    columns = [column.expression for column in query.columns]
    owners = {one.variable for one in columns if isinstance(one, ql.Attribute)}
    if not query.is_grouped:
        shown = [one for one in columns if not (isinstance(one, ql.Var) and one.name in owners)]
        query = replace(query, columns=tuple(map(ql.Column, shown)))
    many = _many(query.pattern)

    def counted(part: Any) -> Any:
        if part == ql.Aggregate("count") and many is not None:
            return ql.Aggregate("count", ql.Var(many), distinct=True)
        return part if isinstance(part, ql.Aggregate | ql.Subquery | ql.Exists) else ql.mapped(part, counted)

    return replace(
        query,
        columns=tuple(ql.mapped(one, counted) for one in query.columns),
        order=tuple(ql.mapped(one, counted) for one in query.order),
        having=tuple(map(counted, query.having)),
    )


def _is_known(formula: ql.Formula) -> bool:
    """Return whether a condition only requires that a value is known."""
    return isinstance(formula, ql.Not) and isinstance(formula.part, ql.Missing)
