"""A claim as Cypher, over a property graph with a label for each type and the properties `key` and `name`.

Every edge has a pattern of its own, inside each of which Cypher uses no edge twice: what is required of a node is that
there is an edge whose other end is as required.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from clew.answering.queries.claims import TARGET, Absence, Block, Claim, Named, Requirement, renamed
from clew.answering.queries.finishing import NUMBER
from clew.answering.queries.grounding import follows
from clew.answering.queries.problem import Check, checks
from clew.core.query import Best, Condition, Count
from clew.core.texts import OPAQUE
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.remote.bolt import quoted
from clew.store.remote.remote import is_cypher


def cypher(claim: Claim, kb: KnowledgeBase) -> str:
    """A query whose results are the keys of the answers, their number, whether there are any, or a value of each."""
    writer = _Cypher(kb)
    lines = [f"MATCH {_node(TARGET, claim.type)}"]
    formulas = [writer.holds(block, typed=claim.type is not None) for block in claim.blocks]
    if len(formulas) > 1:
        lines.append("WHERE " + " OR ".join(f"({' AND '.join(tests) or 'true'})" for tests in formulas))
    elif formulas[0]:
        lines.append("WHERE " + " AND ".join(formulas[0]))
    if claim.best is not None:
        lines += writer.best(claim, claim.best)
    if claim.asked is not None:
        lines.append(f"WITH {TARGET} WHERE {writer.is_one_of(TARGET, claim.asked)}")
    match claim.asks:
        case "number":
            lines.append(f"RETURN count(DISTINCT {TARGET}) AS number")
        case "truth":
            lines.append(f"RETURN count(DISTINCT {TARGET}) > 0 AS answer")
        case "value" if claim.attribute is not None and writer.has(claim.type, claim.attribute):
            value = f"{TARGET}.{_name(claim.attribute)}"
            lines += [
                f"WITH {TARGET} WHERE {value} IS NOT NULL",
                f"RETURN DISTINCT {writer.key(TARGET)} AS key, {value} AS value",
            ]
        case "value":
            lines += [f"WITH {TARGET} WHERE false", f"RETURN DISTINCT {writer.key(TARGET)} AS key, null AS value"]
        case _:
            lines.append(f"RETURN DISTINCT {writer.key(TARGET)} AS key")
    return "\n".join(lines)


@dataclass
class _Cypher:
    kb: KnowledgeBase
    numbers: count[int] = field(default_factory=lambda: count(1))

    def has(self, kind: str | None, attribute: str) -> bool:
        """Whether a type has an attribute; some databases refuse to look for one that it has not."""
        return any(attribute in one.attributes for one in self.kb.schema.node_types if kind in (None, one.name))

    def best(self, claim: Claim, best: Best) -> Iterator[str]:
        """The answers with their amounts, then those whose amount none exceeds; equal ones all stay."""
        goal = "max" if best.most else "min"
        if best.attribute is not None:
            kind = self.kb.schema.attribute_types.get(best.attribute)
            amount = f"{TARGET}.{_name(best.attribute)}"
            if kind in ("boolean", "list") or not self.has(claim.type, best.attribute):
                yield f"WITH {TARGET} WHERE false"
                return
            if kind == "text":
                known = f"CASE WHEN {amount} =~ {_quoted(NUMBER)} THEN {amount} END"
                amount = f"CAST(regexp_replace({known}, ',', '', 'g') AS DOUBLE)"
            yield f"WITH {TARGET}, {amount} AS amount WHERE amount IS NOT NULL"
        else:
            relation = "" if best.relation is None else f":{_name(best.relation)}"
            other = _node("other", best.of)
            pattern = f"-[{relation}]->{other}" if best.is_head else f"<-[{relation}]-{other}"
            yield f"OPTIONAL MATCH ({TARGET}){pattern}"
            yield f"WITH {TARGET}, count(DISTINCT other) AS amount"
        yield f"WITH {goal}(amount) AS goal, collect({{key: {self.key(TARGET)}, amount: amount}}) AS rows"
        yield "UNWIND rows AS row"
        yield "WITH row, goal WHERE row.amount = goal"
        yield f"MATCH {_node(TARGET, claim.type)} WHERE {self.key(TARGET)} = row.key"

    def holds(self, block: Block, *, typed: bool = True) -> list[str]:
        """What is required of a block's target."""
        kind = block.types[block.target]
        own = [] if typed or kind is None else [self.again(block.target, f"same{next(self.numbers)}", kind)]
        return own + self.bound(block, frozenset((block.target,)), block.target, block.required)

    def bound(self, block: Block, known: frozenset[str], new: str, edges: Sequence[Requirement]) -> list[str]:
        """What is required once one more variable is known: of itself, and of those that it leads to."""
        tests = self.own(block, new)
        tests += [self.between(edge) for edge in edges if known.issuperset(edge.variables)]
        tests += [
            f"NOT {self.absent(one)}"
            for one in block.absences
            if new in one.edge.variables and known.issuperset(set(one.edge.variables) & block.types.keys())
        ]
        for component in _components([edge for edge in edges if not known.issuperset(edge.variables)], known):
            first = next(edge for edge in component if not known.isdisjoint(edge.variables))
            [unknown] = set(first.variables) - known
            rest = [edge for edge in component if edge is not first]
            inner = self.bound(block, known | {unknown}, unknown, rest)
            tests.append(self.exists(self.pattern(first, unknown, block.types[unknown]), inner))
        return tests

    def own(self, block: Block, variable: str) -> list[str]:
        """What is required of a variable by itself."""
        tests = [self.is_one_of(variable, block.only[variable])] if variable in block.only else []
        tests += [f"NOT {self.is_one_of(variable, block.never[variable])}"] if variable in block.never else []
        if variable in block.nameless:
            test = f"{variable}.name =~ {_quoted(OPAQUE.pattern)}"
            tests.append(test if block.nameless[variable] else f"NOT {test}")
        tests += [self.condition(one, block.types[variable]) for one in block.conditions if one.variable == variable]
        return tests + [self.count(block, one) for one in block.counts if one.variable == variable]

    def count(self, block: Block, counted: Count) -> str:
        """How many nodes there are with which the whole block holds."""
        names = {name: f"{name}_{next(self.numbers)}" for name in _variables(block) if name != counted.variable}
        inside = replace(renamed(block, names), counts=(), never={})  # counted before anything is left out
        of = names[counted.of]
        known = frozenset((counted.variable, of))
        tests = [*self.own(inside, counted.variable), *self.bound(inside, known, of, inside.required)]
        tests += [
            f"NOT {self.absent(one)}"
            for one in inside.absences
            if counted.variable in one.edge.variables
            and of not in one.edge.variables
            and known.issuperset(set(one.edge.variables) & inside.types.keys())
        ]
        comparison = {"!=": "<>"}.get(counted.comparison, counted.comparison)
        return (
            f"COUNT {{ MATCH {_node(of, inside.types[of])} WHERE {' AND '.join(tests)} }} {comparison} {counted.value}"
        )

    def absent(self, absence: Absence) -> str:
        inner = absence.inner
        if inner is None:
            return self.between(absence.edge)
        return self.exists(self.pattern(absence.edge, inner.target, inner.types[inner.target]), self.holds(inner))

    def between(self, edge: Requirement) -> str:
        """That there is an edge between two nodes that are known, or between one and a constant."""
        tests: list[str] = []
        for end in (edge.head, edge.tail):
            if isinstance(end, Named):
                constant = f"constant{next(self.numbers)}"
                edge = replace(edge, head=constant) if end is edge.head else replace(edge, tail=constant)
                tests.append(self.stands_for(constant, end))
        return self.exists(self.pattern(edge), tests)

    def stands_for(self, place: str, named: Named) -> str:
        """That a node is what a constant names, or lies below it in a hierarchy."""
        if not named.expansions:
            return self.is_one_of(place, named.nodes)
        *others, last = named.expansions
        upper, name = f"constant{next(self.numbers)}", _name(last.relation.name)
        arrow = f"-[:{name}*0..]->" if follows(last.relation, upward=last.upward) else f"<-[:{name}*0..]-"
        rest = self.stands_for(upper, replace(named, expansions=tuple(others)))
        return self.exists(f"({place}){arrow}({upper})", [rest])

    def pattern(self, edge: Requirement, new: str | None = None, kind: str | None = None) -> str:
        head, tail = (_node(str(end), kind if end == new else None) for end in (edge.head, edge.tail))
        relation = "" if edge.relation is None else f":{_name(edge.relation)}"
        return f"{head}-[{relation}]{'-' if edge.any_direction else '->'}{tail}"

    def exists(self, pattern: str, tests: Sequence[str]) -> str:
        return f"EXISTS {{ MATCH {pattern}{' WHERE ' + ' AND '.join(tests) if tests else ''} }}"

    def again(self, variable: str, same: str, kind: str | None, *tests: str) -> str:
        """Tests on a node under another name: Kuzu 0.11 loses rows where one filter looks into lists twice."""
        return self.exists(_node(same, kind), [f"{self.key(same)} = {self.key(variable)}", *tests])

    def is_one_of(self, variable: str, nodes: NodeSet) -> str:
        keys = [ref.key for ref in self.kb.refs(nodes.array)]
        if is_cypher(self.kb) and self.kb.key_property is None:
            keys = self.kb.elements(nodes)
        return f"{self.key(variable)} IN [{', '.join(map(_quoted, keys))}]"

    def key(self, variable: str) -> str:
        """What tells a node from all others: its key, or in a graph database without one, the id of its element."""
        known = self.kb.key_property if is_cypher(self.kb) else "key"
        return f"elementId({variable})" if known is None else f"{variable}.{_name(known)}"

    def condition(self, condition: Condition, kind: str | None) -> str:
        joined = checks(condition, self.kb.schema)
        value = f"{condition.variable}.{_name(condition.attribute)}"
        if not self.has(kind, condition.attribute) or not (joined.tests or joined.all):
            return "false"
        if self.kb.schema.attribute_types.get(condition.attribute) == "list":
            part = f"value{next(self.numbers)}"
            same = f"same{next(self.numbers)}"
            value = f"{same}.{_name(condition.attribute)}"
            inside = f"any({part} IN {value} WHERE {_compared(part, joined.tests[0])})"
            return self.again(condition.variable, same, kind, f"{value} IS NOT NULL", inside)
        tests = joined.joiner("AND", "OR").join(_compared(value, check) for check in joined.tests)
        return f"({tests})" if len(joined.tests) > 1 else tests or f"{value} IS NOT NULL"


def _components(edges: Sequence[Requirement], known: frozenset[str]) -> Iterator[list[Requirement]]:
    """The edges parted by the variables that are not known yet: what does not share one is independent."""
    left = list(edges)
    while left:
        group, reached = [left[0]], set(left[0].variables) - known
        while more := [e for e in left if not any(e is one for one in group) and not reached.isdisjoint(e.variables)]:
            group += more
            reached |= {variable for edge in more for variable in edge.variables} - known
        yield [edge for edge in left if any(edge is one for one in group)]
        left = [edge for edge in left if not any(edge is one for one in group)]


def _variables(block: Block) -> list[str]:
    inner = [name for absence in block.absences if absence.inner is not None for name in _variables(absence.inner)]
    return [*block.types, *inner]


def _compared(value: str, check: Check) -> str:
    comparison = "<>" if check.comparison == "!=" else check.comparison
    match check.kind:
        case "text":
            word = "CONTAINS" if comparison == "contains" else comparison
            return f"toLower({value}) {word} {_quoted(check.value)}"
        case "day":
            return f"{value} {comparison} date('{check.value}')"
        case _:
            return f"{value} {comparison} {check.value}"


def _node(variable: str, kind: str | None) -> str:
    return f"({variable})" if kind is None else f"({variable}:{_name(kind)})"


def _name(text: str) -> str:
    """A name that is no plain word is quoted."""
    return text if text.isidentifier() and text.isascii() else quoted(text)


def _quoted(text: str) -> str:
    """Only quotes and backslashes are escaped: not every database knows more than these."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
