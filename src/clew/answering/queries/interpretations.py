"""Execute interpretations of a question: find all nodes that satisfy the query, and close matches.

If the base has a hierarchy, a name also includes the nodes below it. For example, diseases with an abnormal thumb
include diseases with a short thumb. Close matches come from similar names if the query finds nodes, otherwise from
relaxed requirements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from clew.answering.queries.certificates import certificate, formal_query
from clew.answering.queries.execution import Result
from clew.answering.queries.linking import Grounding, Groundings, ground, hierarchies, keys_of, link, widened
from clew.answering.queries.pushdown import execute as run
from clew.answering.queries.pushdown import found_nodes
from clew.answering.queries.query_answers import decisive_values, value_text, values_on_the_way, witnesses
from clew.answering.queries.words import kind_in_words
from clew.core import query as ql
from clew.core.roles import Interpretation
from clew.core.types import EMPTY, Answer, Evidence, Judgement, NodeSet, Value
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Link, Names

SIZES = (2, 3, 5, 8, 12)
"""Numbers of nodes per name, step by step (Fibonacci-like, as in FocusedRetriever)."""
RELAXED_TOGETHER = 2
"""Maximum number of edges to relax together."""


@dataclass(frozen=True)
class Execution:
    """An executed interpretation."""

    asked: Interpretation
    executed: Interpretation
    """The interpretation with linked names and hierarchies, and without the nodes that the question names."""
    groundings: Groundings
    nodes: NodeSet
    """All nodes found."""
    direct: NodeSet
    """Nodes found without following hierarchies below the names."""
    in_order: tuple[int, ...] = ()
    """The nodes in the requested order, if there is one."""
    value: Value | None = None
    table: Result | None = None
    """Numbers for each node or value, if requested."""
    how: str = ""
    """The relaxed requirement."""

    @property
    def is_answer(self) -> bool:
        """Whether there is an answer. A number is an answer even if it is zero."""
        if self.asked.asks in ("nodes", "each", "columns"):
            return len(self.nodes) > 0
        return self.asked.asks in ("number", "truth") or self.value is not None or self.table is not None

    def evidence(self, kb: KnowledgeBase, nodes: Sequence[int]) -> list[tuple[Evidence, ...]]:
        """Return paths to each node, the requested values, and the edges that were checked to be absent."""
        refs = kb.refs(nodes)
        query = replace(self.executed.query, order=(), first=None, ties=False)
        names = [] if self.asked.attribute is None else [self.asked.attribute, *self.asked.more]
        values = decisive_values(kb, self.executed.query, self.asked.variable, nodes, names)
        found = witnesses(kb, query, [[ref] for ref in refs])
        pieces = zip(refs, found, values, values_on_the_way(kb, self.asked.query, found), strict=True)
        return [(*paths, *said, *more, *self._absences(ref.name)) for ref, paths, said, more in pieces]

    def _absences(self, name: str) -> Iterator[Judgement]:
        for formula in self.asked.query.pattern.where:
            if isinstance(formula, ql.Not) and isinstance(formula.part, ql.Exists):
                types = formula.part.pattern.types
                for edge in formula.part.pattern.edges:
                    ends = [_end_text(end, self.asked.variable, name, types) for end in (edge.head, edge.tail)]
                    said = f"no edge {ends[0]} —{edge.relation or 'any relation'}→ {ends[1]}"
                    yield Judgement("absent", reason=said)


def execute(kb: KnowledgeBase, names: Names, asked: Interpretation, *, kinds: bool = True) -> Execution:
    """Find the nodes, their order, their number, their existence or a value, as the interpretation requests.

    With `kinds`, names also include the nodes below them in a hierarchy.
    """
    return carry_out(kb, asked, ground(ql.constants(asked.query), names), kinds=kinds)


def carry_out(kb: KnowledgeBase, asked: Interpretation, groundings: Groundings, *, kinds: bool) -> Execution:
    """Execute an interpretation whose names are linked."""
    query = link(asked.query, groundings, kb, kinds=kinds and bool(hierarchies(kb.schema)))
    strict = link(asked.query, groundings, kb, kinds=False)
    found = found_nodes(kb, replace(query, order=(), first=None, ties=False))
    named = _named_among(found, asked, groundings)
    if len(named):
        left_out = ql.Compare(ql.Var(asked.variable), "!=", keys_of(kb, named))
        query = replace(query, pattern=ql.requiring(query.pattern, left_out))
    is_chosen = bool(query.order) or query.first is not None
    in_order = tuple(row[0].id for row in run(kb, query).rows) if is_chosen else ()
    nodes = direct = NodeSet.of(in_order) if is_chosen else found - named
    if query != strict and not is_chosen and strict.pattern.edges:
        direct = nodes & found_nodes(kb, strict)
    compared = asked.compared
    if isinstance(compared, ql.Named):
        compared = keys_of(kb, groundings[compared].nodes)
    executed, value, table = replace(asked, query=query, compared=compared), None, None
    cells = kb.values(nodes, asked.attribute) if asked.asks == "value" and asked.attribute is not None else []
    cells = [None if cell != cell else cell for cell in cells]  # NaN is missing
    if asked.asks in ("nodes", "number", "truth"):
        value = _value(asked, nodes, groundings)
    elif asked.asks == "value" and len({value_text(cell) for cell in cells} - {"", "None"}) < 2:
        value = _shown(cells)
    else:
        result = run(kb, formal_query(executed))
        if cells:  # as stored: a year among dates stays a year
            stored = dict(zip(nodes, cells, strict=True))
            result = replace(result, rows=[(row[0], stored[row[0].id]) for row in result.rows])
        is_single = len(result.names) == 1 and len(result.rows) < 2
        value, table = (_shown([row[0] for row in result.rows]), None) if is_single else (None, result)
    return Execution(asked, executed, groundings, nodes, direct, in_order, value, table)


def _named_among(nodes: NodeSet, asked: Interpretation, groundings: Groundings) -> NodeSet:
    """Return the nodes named in a question. They are not answers, unless it asks about them or no node would remain.

    Not even then if the same edges lead to them: winners that have the country China have no country but China.
    """
    if names_answers(asked):
        return EMPTY
    left, alike = nodes, _reached_alike(asked)
    for constant, grounding in groundings.items():
        others = left - grounding.nodes
        left = others if len(others) or constant in alike else left
    return nodes - left


def _reached_alike(asked: Interpretation) -> set[ql.Constant]:
    """Return the constants at edges that differ only in their end from an edge of the answers."""
    edges = asked.query.pattern.edges
    ends = [(replace(edge, tail="", name=None), edge.tail) for edge in edges]
    ends += [(replace(edge, head="", name=None), edge.head) for edge in edges]
    leading = [edge for edge, end in ends if end == asked.variable]
    return {end for edge, end in ends if not isinstance(end, str) and edge in leading}


def names_answers(asked: Interpretation) -> bool:
    """Return whether the question names the nodes that may be the answer, to describe or to compare them."""
    return any(ql.constants_for(formula, asked.variable) for formula in asked.query.pattern.where)


def _value(asked: Interpretation, nodes: NodeSet, groundings: Groundings) -> Value | None:
    match asked.asks:
        case "number":
            return len(nodes)
        case "truth":
            compared = asked.compared
            return len(nodes & groundings[compared].nodes if isinstance(compared, ql.Named) else nodes) > 0
    return None


def _shown(values: Sequence[Any]) -> Value | None:
    """Return the first value, as a text unless it is a number or a truth value."""
    first = next((value for value in values if value is not None and value != ""), None)
    return first if first is None or isinstance(first, int | float | bool) else value_text(first)


def _end_text(end: Any, variable: str, name: str, types: dict[str, str | None]) -> str:
    if isinstance(end, str):
        return name if end == variable else f"any {types.get(end) or 'node'}"
    return end.text if isinstance(end, ql.Named) else str(end)


def near(kb: KnowledgeBase, execution: Execution, enough: int, *, kinds: bool = True) -> Iterator[Execution]:
    """Yield close matches of a query, closest first, until there are enough. Each execution contains only new nodes."""
    known, found = execution.nodes, 0
    for one in _looser(kb, execution, kinds):
        if not one.executed.query.pattern.edges and not one.executed.query.pattern.where:
            return  # without requirements only the documents decide
        fresh = one.nodes - known
        if len(fresh):
            known, found = known | fresh, found + len(fresh)
            yield replace(one, nodes=fresh, direct=fresh)
        if found >= enough:
            return


def _looser(kb: KnowledgeBase, execution: Execution, kinds: bool) -> Iterator[Execution]:
    asked, groundings = execution.asked, execution.groundings
    plain = replace(asked, query=replace(asked.query, order=(), first=None, ties=False), asks="nodes")
    if not len(execution.nodes):
        yield from _relaxed(kb, plain, groundings, kinds)
        return
    required = {
        end for edge in asked.query.pattern.edges for end in (edge.head, edge.tail) if isinstance(end, ql.Named)
    }
    last = groundings
    for size in SIZES:
        wider = widened(groundings, size, required)
        if wider != last:
            last = wider
            yield replace(carry_out(kb, plain, wider, kinds=kinds), how=f"satisfies the query with {size} near names")


def _relaxed(kb: KnowledgeBase, asked: Interpretation, groundings: Groundings, kinds: bool) -> Iterator[Execution]:
    """Relax as few edges as possible. Yield the variant with the fewest answers.

    Forbidden edges stay forbidden, because relaxing them would invert the question.
    """
    pattern = asked.query.pattern
    for step in ("any relation will do", "left out"):
        for together in range(1, min(len(pattern.edges), RELAXED_TOGETHER) + 1):
            found = []
            for chosen in combinations(pattern.edges, together):
                looser = _without(pattern, chosen, asked.variable) if step == "left out" else _loosened(pattern, chosen)
                if not looser.edges and not looser.where:
                    continue
                one = carry_out(kb, replace(asked, query=replace(asked.query, pattern=looser)), groundings, kinds=kinds)
                said = "; ".join(f"{ql.Pattern((), (edge,))}: {step}" for edge in chosen)
                if len(one.nodes):
                    found.append(replace(one, how=said))
            if found:
                yield min(found, key=lambda one: (len(one.nodes), one.how))
                return


def _loosened(pattern: ql.Pattern, chosen: Sequence[ql.Edge]) -> ql.Pattern:
    edges = [replace(edge, relation=None, directed=False) if edge in chosen else edge for edge in pattern.edges]
    return replace(pattern, edges=tuple(edges))


def _without(pattern: ql.Pattern, chosen: Sequence[ql.Edge], variable: str) -> ql.Pattern:
    """Return the pattern without some edges, and without the parts that only they connected to the variable."""
    edges = [edge for edge in pattern.edges if edge not in chosen]
    tied = ql.connected(edges, [variable])
    return replace(
        pattern,
        variables=tuple(one for one in pattern.variables if one.name in tied),
        edges=tuple(edge for edge in edges if tied & {*edge.variables}),
        where=tuple(one for one in pattern.where if not _names(one) - tied),
    )


def _names(formula: ql.Formula) -> set[str]:
    parts = ql.walk(formula, lambda part: isinstance(part, ql.Pattern))
    return {
        part.variable if isinstance(part, ql.Attribute) else part.name
        for part in parts
        if isinstance(part, ql.Attribute | ql.Var)
    }


def first_found(
    kb: KnowledgeBase, names: Names, interpretations: Sequence[Interpretation], *, kinds: bool = True
) -> Execution:
    """Return the first execution with an answer, or else the first execution.

    Numbers and truth values always count as answers, even zero and false.
    """
    executions: list[Execution] = []
    for one in interpretations:
        executions.append(execute(kb, names, one, kinds=kinds))
        if executions[-1].is_answer:
            return executions[-1]
    return executions[0]


def with_query(
    answer: Answer, kb: KnowledgeBase, execution: Execution, *, by_text: bool = False, is_exact: bool = True
) -> Answer:
    """Add the query to an answer. With `by_text`, the query had no requirements on the answers.

    With `is_exact=False`, omit the formal query: no query describes the paper's fixpoint on a cycle of requirements.
    """
    written = certificate(execution.executed, kb)
    if by_text:
        written = _in_words_only(written, "by what is written about them") | {"form": "text"}
    elif not is_exact:
        written = _in_words_only(written, "with each requirement checked separately")
    return replace(
        answer, query={**_query_json(execution, kb), **written}, notes=(*answer.notes, *_other_types(kb, execution))
    )


def _query_json(execution: Execution, kb: KnowledgeBase) -> dict[str, Any]:
    """Return the interpreted query, the nodes of its names, and the relaxed requirements."""
    asked = execution.asked
    query = asked.query
    order = query.order[0] if query.order else None
    counted = order.expression if order and isinstance(order.expression, ql.Aggregate) else None
    by = counted.over.edges[0] if counted and counted.over else None
    denied = {id(edge) for part in ql.walk(query.pattern) if isinstance(part, ql.Not) for edge in _edges(part)}
    types = {one.name: one.type for part in ql.walk(query) if isinstance(part, ql.Pattern) for one in part.variables}
    return {
        "target": {"name": asked.variable, "type": asked.type},
        "triplets": [
            {
                "head": _end(edge.head, types),
                "relation": edge.relation,
                "tail": _end(edge.tail, types),
                "negated": id(edge) in denied,
            }
            for edge in _edges(query.pattern)
        ],
        "constants": [_grounding(kb, grounding) for grounding in execution.groundings.values()],
        "conditions": [
            {
                "variable": part.left.variable,
                "attribute": part.left.name,
                "comparison": part.comparison,
                "value": str(part.right.value),
            }
            for part in ql.walk(query.pattern)
            if isinstance(part, ql.Compare) and isinstance(part.left, ql.Attribute) and isinstance(part.right, ql.Value)
        ],
        "best": None if order is None else {"most": order.descending, "relation": by.relation if by else None},
        "relaxed": [execution.how] if execution.how else [],
        "unexplained": list(asked.unexplained),
    }


def _edges(part: Any) -> list[ql.Edge]:
    return [one for one in ql.walk(part) if isinstance(one, ql.Edge)]


def _end(end: str | ql.Constant, types: Mapping[str, str | None]) -> dict[str, Any]:
    if isinstance(end, str):
        return {"variable": end, "type": types.get(end)}
    return (
        {"constant": end.text, "type": end.type} if isinstance(end, ql.Named) else {"constant": str(end), "type": None}
    )


def _grounding(kb: KnowledgeBase, grounding: Grounding) -> dict[str, Any]:
    return {
        "text": grounding.constant.text,
        "type": grounding.constant.type,
        "nodes": _links(kb, grounding.links),
        "alternatives": _links(kb, grounding.alternatives[:5]),
    }


def _links(kb: KnowledgeBase, links: Sequence[Link]) -> list[Mapping[str, Any]]:
    refs = kb.refs([link.node for link in links])
    return [
        {"key": ref.key, "name": ref.name, "type": ref.type, "alias": link.alias, "how": link.how, "score": link.score}
        for ref, link in zip(refs, links, strict=True)
    ]


def _other_types(kb: KnowledgeBase, execution: Execution) -> Iterator[str]:
    """Yield a note for each name whose node has another type than the query states."""
    told = partial(kind_in_words, kb.schema)
    for constant, grounding in execution.groundings.items():
        kinds = {ref.type for ref in kb.refs([link.node for link in grounding.links[:1]])} - {constant.type}
        if constant.type is not None and kinds:
            yield f"“{constant.text}” is a {told(kinds.pop())} here, not a {told(constant.type)}"


def _in_words_only(written: dict[str, str], how: str) -> dict[str, str]:
    """Return a certificate without the formal queries, which would have another meaning."""
    return {"form": written["form"], "kind": written["kind"], "text": f"{written['text']}, {how}"}
