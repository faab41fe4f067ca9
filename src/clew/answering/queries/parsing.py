"""Parser of the text form: `parse(str(query)) == query`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import NoReturn, TypeVar

from clew.core import query as ql
from clew.core.errors import InputError
from clew.core.texts import whole_text

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<text>"(?:[^"\\]|\\.)*")|`(?P<quoted>(?:[^`]|``)*)`"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|!=|<>|->|<-|[-+*/=<>(){}\[\],.:]))"""
)
MAX_TERMS = 100
"""Maximum number of terms of a sum or a product, or of queries in a row."""
MAX_DIGITS = 400
"""Maximum length of a number, in characters."""
MAX_DEPTH = 60
"""Maximum number of brackets inside each other. Deeper texts would exhaust Python's stack."""
T = TypeVar("T")


class QuerySyntaxError(InputError):
    """A query's text cannot be read. The message shows the position and the expected tokens."""


def parse(text: str) -> ql.AnyQuery:
    """Read a query. Raise QuerySyntaxError for any other text."""
    parser = _Parser(text)
    query = parser.whole()
    if parser.tokens[parser.position][0] != "end":
        parser.fail(
            "the end, and, group by, having, order by, first, skip, union, intersect or except "
            "(names of several words stand in backticks)"
        )
    return query


def _unquoted(quoted: str, offset: int) -> str:
    try:
        return whole_text(json.loads(quoted, strict=False))
    except ValueError:
        raise QuerySyntaxError(f"invalid escape in the text at {offset}: write two backslashes for one") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.position, self.depth, self.fresh = text, 0, 0, count(1)
        self.furthest: tuple[int, str] = (0, "")
        self.tokens: list[tuple[str, str, int]] = []  # kind, content, offset
        offset, text = 0, text.rstrip()
        while offset < len(text):
            found = TOKEN.match(text, offset)
            if found is None:
                raise QuerySyntaxError(f"unexpected character {text[offset:].lstrip()[:1]!r} at {offset}: {text!r}")
            kind = found.lastgroup or ""
            content = found[kind]
            if kind == "number" and len(content) > MAX_DIGITS:
                raise QuerySyntaxError(f"a number of {len(content)} digits at {offset}: use at most {MAX_DIGITS}")
            content = _unquoted(content, offset) if kind == "text" else content
            self.tokens.append((kind, content.replace("``", "`") if kind == "quoted" else content, found.start(kind)))
            offset = found.end()
        self.tokens.append(("end", "", len(self.text)))

    # Tokens

    def fail(self, expected: str) -> NoReturn:
        if self.position >= self.furthest[0]:
            self.furthest = self.position, expected
        place, expected = self.furthest
        offset = self.tokens[place][2]
        seen = repr(self.text[offset : offset + 20]) if offset < len(self.text) else "the end"
        raise QuerySyntaxError(f"cannot read the query at {offset}: expected {expected}, found {seen}")

    def sees(self, *words: str) -> bool:
        """Return whether the next tokens are these signs or keywords."""
        for index, word in enumerate(words, self.position):
            kind, content, _ = self.tokens[index]
            if kind not in ("word", "sign") or content.lower() != word:  # as the end is, after the last token
                return False
        return True

    def takes(self, *words: str) -> bool:
        if self.sees(*words):
            self.position += len(words)
            return True
        return False

    def needs(self, *words: str) -> None:
        if not self.takes(*words):
            self.fail(repr(" ".join(words)))

    def take(self, kind: str, expected: str) -> str:
        if self.tokens[self.position][0] != kind:
            self.fail(expected)
        self.position += 1
        return self.tokens[self.position - 1][1]

    def name(self, expected: str, allowed: frozenset[str] = frozenset()) -> str:
        """Read a name. Words of the language are names only if they are `allowed` here."""
        kind, content, _ = self.tokens[self.position]
        if kind == "quoted" or (kind == "word" and content.lower() not in ql.WORDS - allowed):
            self.position += 1
            return content
        return self.fail(expected)

    def whole_number(self) -> int:
        number = self.take("number", "a whole number")
        if not number.isdigit():
            self.position -= 1
            self.fail("a whole number")
        return int(number)

    def attempt(self, rule: Callable[[], T]) -> T | None:
        """Try a rule. Go back if it does not fit, but remember the furthest position for the message."""
        start = self.position
        try:
            return rule()
        except QuerySyntaxError:
            self.position = start
            return None

    def nested(self, rule: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise QuerySyntaxError(f"more than {MAX_DEPTH} brackets inside each other: split the query")
        try:
            return rule()
        finally:
            self.depth -= 1

    def one_more(self, terms: int) -> int:
        if terms == MAX_TERMS:
            raise QuerySyntaxError(f"more than {MAX_TERMS} terms in a row: split the query")
        return terms + 1

    # Queries

    def whole(self) -> ql.AnyQuery:
        query, terms = self.part(), 1
        while any(self.sees(word) for word in ("union", "intersect", "except")):
            terms = self.one_more(terms)
            operation = self.take("word", "a set operation").lower()
            query = ql.Combined(operation, query, self.part())  # type: ignore[arg-type]
        return query

    def part(self) -> ql.AnyQuery:
        if self.takes("("):
            query = self.nested(self.whole)
            self.needs(")")
            return query
        return self.query()

    def query(self) -> ql.Query:
        self.needs("find")
        distinct = self.takes("distinct")
        columns = self.listed(self.column)
        pattern = self.pattern() if self.takes("where") else ql.Pattern()
        pattern = replace(pattern, variables=(*pattern.variables, *_named_alone(pattern)))
        group = self.listed(self.expression) if self.takes("group", "by") else ()
        having = self.conjunction() if self.takes("having") else ()
        order = self.listed(self.order) if self.takes("order", "by") else ()
        first = self.whole_number() if self.takes("first") else None
        skip = self.whole_number() if self.takes("skip") else 0
        return ql.Query(columns, pattern, distinct, group, having, order, first, skip, self.takes("with", "ties"))

    def listed(self, rule: Callable[[], T], separators: Sequence[str] = (",",)) -> tuple[T, ...]:
        items = [rule()]
        while any(map(self.takes, separators)):
            items.append(rule())
        return tuple(items)

    def column(self) -> ql.Column:
        return ql.Column(self.expression(), self.name("a column name") if self.takes("as") else "")

    def order(self) -> ql.Order:
        expression = self.expression()
        descending = self.takes("desc")
        if not descending:
            self.takes("asc")
        return ql.Order(expression, descending)

    # Patterns

    def pattern(self) -> ql.Pattern:
        """Parts joined by `and` or commas, such as `(a: drug) -[treats]-> (b) and b.year > 1990`."""
        variables: list[ql.Variable] = []
        edges: list[ql.Edge] = []
        where: list[ql.Formula] = []
        optional: list[ql.Pattern] = []
        while True:
            if self.takes("optional"):
                optional.append(self.braced())
            elif self.attempt(lambda: self.path(variables, edges)) is None:
                where.append(self.negation())
            if not (self.takes("and") or self.takes(",")):
                return ql.Pattern(tuple(variables), tuple(edges), tuple(where), tuple(optional))

    def braced(self) -> ql.Pattern:
        self.needs("{")
        pattern = ql.Pattern() if self.sees("}") else self.nested(self.pattern)
        self.needs("}")
        return pattern

    def path(self, variables: list[ql.Variable], edges: list[ql.Edge]) -> bool:
        """Read a node and the steps that follow it."""
        seen: list[ql.Variable] = []
        steps: list[ql.Edge] = []
        here = self.end(seen)
        if isinstance(here, ql.Named | ql.Nodes) and not (self.sees("-") or self.sees("<-")):
            self.fail("an edge, such as -[relation]->")
        while self.sees("-") or self.sees("<-"):
            backward = self.takes("<-")
            if not backward:
                self.needs("-")
            self.needs("[")
            name, relation, least, most = self.step()
            if not self.takes("]"):
                self.fail("']' (names of several words stand in backticks)")
            forward = self.takes("->")
            if not forward:
                self.needs("-")
            there = self.end(seen)
            head, tail = (there, here) if backward else (here, there)
            steps.append(ql.Edge(head, relation, tail, forward or backward, least, most, name))
            here = there
        variables += seen
        edges += steps
        return True

    def end(self, seen: list[ql.Variable]) -> str | ql.Constant:
        constant = self.constant()
        if constant is not None:
            return constant
        self.needs("(")
        name = f"_{next(self.fresh)}" if self.sees(":") or self.sees(")") else self.name("a variable")
        seen.append(ql.Variable(name, self.name("a node type", ql.WORDS) if self.takes(":") else None))
        self.needs(")")
        return name

    def constant(self) -> ql.Constant | None:
        if self.takes("node", "("):
            keys = self.listed(lambda: self.take("text", "a key in quotes"))
            self.needs(")")
            return ql.Nodes(keys)
        if self.tokens[self.position][0] == "text":
            text = self.take("text", "a name in quotes")
            return ql.Named(text, self.name("a node type", ql.WORDS) if self.takes(":") else None)
        return None

    def step(self) -> tuple[str | None, str | None, int, int | None]:
        """Read `relation`, `name: relation`, `any`, with `*`, `+` or `{least,most}` after it."""
        name = None
        relation = None if self.takes("any") else self.name("a relation, or any", ql.WORDS)
        if relation is not None and self.takes(":"):
            name, relation = relation, None if self.takes("any") else self.name("a relation, or any", ql.WORDS)
        if self.takes("*"):
            return name, relation, 0, None
        if self.takes("+"):
            return name, relation, 1, None
        if not self.takes("{"):
            return name, relation, 1, 1
        least = self.whole_number()
        most: int | None = least
        if self.takes(","):
            most = None if self.sees("}") else self.whole_number()
        self.needs("}")
        return name, relation, least, most

    # Formulas

    def conjunction(self) -> tuple[ql.Formula, ...]:
        return self.listed(self.negation, ("and", ","))

    def formula(self) -> ql.Formula:
        """Read conditions joined by `or`, each of which may be conditions joined by `and`."""
        options = self.listed(self.all, ("or",))
        return options[0] if len(options) == 1 else ql.Either(options)

    def all(self) -> ql.Formula:
        parts = self.listed(self.negation, ("and",))
        return parts[0] if len(parts) == 1 else ql.All(parts)

    def negation(self) -> ql.Formula:
        if self.takes("not"):
            return ql.Not(self.nested(self.negation))
        if not self.sees("exists", "(") and self.takes("exists"):
            return ql.Exists(self.braced())
        if self.sees("("):
            inner = self.attempt(self.bracketed)
            if inner is not None:
                return inner
        return self.attempt(self.path_formula) or self.comparison()

    def path_formula(self) -> ql.Formula:
        """Read a path inside `or` or after `not`, which means that it exists."""
        variables: list[ql.Variable] = []
        edges: list[ql.Edge] = []
        self.path(variables, edges)
        if not edges:
            self.fail("an edge, such as -[relation]->")
        return ql.Exists(ql.Pattern(tuple(variables), tuple(edges)))

    def bracketed(self) -> ql.Formula:
        self.needs("(")
        inner = self.nested(self.formula)
        self.needs(")")
        return inner

    def comparison(self) -> ql.Formula:
        left = self.expression()
        if self.takes("is"):
            denied = self.takes("not")
            if self.takes("missing"):
                return ql.Not(ql.Missing(left)) if denied else ql.Missing(left)
            if self.takes("present"):
                return ql.Missing(left) if denied else ql.Not(ql.Missing(left))
            right = self.constant() or ql.Var(self.name("missing, present, a variable or a name in quotes"))
            return ql.Compare(left, "!=" if denied else "=", right)
        if self.takes("between"):
            low = self.expression()
            self.needs("and")
            return ql.All((ql.Compare(left, ">=", low), ql.Compare(left, "<=", self.expression())))
        denied = self.takes("not")
        found = self.membership(left) if self.takes("in") else self.compared(left)
        return ql.Not(found) if denied else found

    def membership(self, left: ql.Expression) -> ql.Formula:
        closing = "]" if self.takes("[") else ")"
        if closing == ")":
            self.needs("(")
            if self.sees("find") or self.sees("("):
                query = self.nested(self.whole)
                self.needs(")")
                return ql.Compare(left, "in", ql.Subquery(query))
        options = tuple(ql.Compare(left, "=", value) for value in self.listed(self.expression))
        self.needs(closing)
        return options[0] if len(options) == 1 else ql.Either(options)

    def compared(self, left: ql.Expression) -> ql.Formula:
        for sign in ("<=", ">=", "!=", "<>", "=", "<", ">", "contains", "matches"):
            if self.takes(sign):
                return ql.Compare(left, "!=" if sign == "<>" else sign, self.expression())  # type: ignore[arg-type]
        for word in ("starts", "ends"):
            if self.takes(word, "with"):
                return ql.Compare(left, f"{word} with", self.expression())  # type: ignore[arg-type]
        return self.fail(
            "a comparison: =, !=, <, <=, >, >=, in, between, contains, starts with, ends with, matches, is"
        )

    # Expressions

    def expression(self) -> ql.Expression:
        return self.chain("+-", self.product)

    def product(self) -> ql.Expression:
        return self.chain("*/", self.atom)

    def chain(self, signs: str, part: Callable[[], ql.Expression]) -> ql.Expression:
        """Read parts that are separated by one of some signs. The operators are left-associative."""
        left, terms = part(), 1
        while any(map(self.sees, signs)):
            terms = self.one_more(terms)
            sign = self.take("sign", "a sign")
            left = ql.Call(sign, (left, part()))
        return left

    def atom(self) -> ql.Expression:
        kind, content, _ = self.tokens[self.position]
        if kind == "number":
            self.position += 1
            return ql.Value(int(content) if content.isdigit() else float(content))
        if kind == "text":
            self.position += 1
            return ql.Value(content)
        if self.takes("-"):
            number = self.take("number", "a number")
            return ql.Value(-int(number) if number.isdigit() else -float(number))
        if self.takes("true") or self.takes("false"):
            return ql.Value(content.lower() == "true")
        if self.takes("("):
            inner: ql.Expression | None = self.attempt(self.subquery)
            if inner is None:
                inner = self.nested(self.expression)
                self.needs(")")
            return inner
        if kind == "word" and self.sees(content.lower(), "(") and content.lower() in (*ql.AGGREGATES, *ql.FUNCTIONS):
            self.position += 2
            inner = self.aggregate(content.lower()) if content.lower() in ql.AGGREGATES else self.call(content.lower())
            self.needs(")")
            return inner
        known = ", ".join((*ql.AGGREGATES, *ql.FUNCTIONS))
        if kind == "word" and content.lower() not in ql.WORDS and self.sees(content.lower(), "("):
            self.fail(f"one of the functions {known}")
        name = self.name(f"a value, a variable, {known} or (find …)")
        return ql.Attribute(name, self.name("an attribute", ql.WORDS)) if self.takes(".") else ql.Var(name)

    def subquery(self) -> ql.Subquery:
        query = self.nested(self.whole)
        self.needs(")")
        return ql.Subquery(query)

    def call(self, function: str) -> ql.Call:
        return ql.Call(function, self.listed(lambda: self.nested(self.expression)))

    def aggregate(self, function: str) -> ql.Aggregate:
        distinct = self.takes("distinct")
        argument = None if function in ("count", "exists") and self.takes("*") else self.nested(self.expression)
        over = self.nested(self.pattern) if self.takes("for") else None
        return ql.Aggregate(function, argument, distinct, over)  # type: ignore[arg-type]


def _named_alone(pattern: ql.Pattern) -> list[ql.Variable]:
    """Return the variables that only a name introduces, as in `find x where x is "Tower Bridge"`."""
    names = [
        part.left.name
        for part in pattern.where
        if isinstance(part, ql.Compare) and part.comparison == "=" and isinstance(part.left, ql.Var)
        if isinstance(part.right, ql.Named | ql.Nodes)
    ]
    return [ql.Variable(name) for name in dict.fromkeys(names) if name not in pattern.bound]
