"""Links the constants of a query to nodes. A constant may also include the nodes below it in a hierarchy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, TypeVar

from clew.core.query import AnyQuery, Constant, Edge, Named, Nodes, Pattern, constants, linked, rewrite
from clew.core.roles import Interpretation, Parse
from clew.core.schema import Relation, Schema, leads_down
from clew.core.types import EMPTY, Direction, NodeSet, UnknownName
from clew.store.graph.protocol import KnowledgeBase, Linked
from clew.store.index.linking import LINKED as LIKELY
from clew.store.index.linking import link_probability
from clew.store.index.names import form_of
from clew.store.index.protocol import CorrectedNames, Link, Names

Unmatched = Literal["vector", "drop"]
OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "any": "any"}
AQuery = TypeVar("AQuery", bound=AnyQuery | Pattern)
LINKED = 12
"""Maximum number of nodes to look up for a name, the likeliest first."""
CLOSE = 3
"""Maximum number of close names shown for an unknown name."""
NAMESAKES = 1000
"""Maximum number of nodes of one name, if all of the likeliest nodes have exactly this name."""
EQUAL = 1e-6
"""Names whose scores differ by less are equally near: "Labonte" is Bobby Labonte and Terry Labonte."""


def below(relation: Relation) -> Direction:
    """Return how edges are followed from a broader node to the narrower ones."""
    return "out" if leads_down(relation.name) else "in"


def hierarchies(schema: Schema, type: str | None = None) -> tuple[Relation, ...]:
    """Return the transitive relations that start or end at nodes of one type, or of any type, without duplicates."""
    rows = (row for row in schema.relations if row.transitive and type in (None, row.head, row.tail))
    return tuple({row.name: row for row in rows}.values())


def descendants(graph: Linked, nodes: NodeSet, relation: Relation) -> NodeSet:
    """Return the nodes themselves and all below them."""
    return graph.closure(nodes, relation.name, below(relation))


@dataclass(frozen=True)
class Grounding:
    """The nodes of a constant, the kind of match, and alternatives."""

    constant: Named
    links: tuple[Link, ...]
    """The nodes of the constant."""
    alternatives: tuple[Link, ...] = ()

    @property
    def nodes(self) -> NodeSet:
        """The nodes as a set."""
        return NodeSet.of([link.node for link in self.links]) if self.links else EMPTY


Groundings = Mapping[Named, Grounding]


def ground(constants: Iterable[Named], names: Names, *, unmatched: Unmatched = "drop") -> Groundings:
    """Link constants to nodes by name.

    Try exact names, then likely names of similar spelling, both of the stated type, then exact names of other types. A
    constant without a match gets no node or, with `unmatched="vector"`, the nearest node by meaning. Deviation from the
    paper: an alias of several nodes means all of them.
    """
    return {constant: _ground(constant, names, unmatched) for constant in constants}


def _ground(constant: Named, names: Names, unmatched: Unmatched) -> Grounding:
    look_up = names.link if unmatched == "vector" else names.spelled
    inside = look_up(constant.text, type=constant.type, k=LINKED)
    if len(inside) == LINKED and all(link.how == "exact" for link in inside):
        inside = look_up(constant.text, type=constant.type, k=NAMESAKES)
    exact = [link for link in inside if link.how == "exact"]
    is_likely = not exact and link_probability(constant.text, inside) >= LIKELY
    if not exact and not is_likely and constant.type is not None:
        exact = [link for link in names.spelled(constant.text, k=NAMESAKES) if link.how == "exact"]
    spelled = [link for link in exact if link.score == 1.0]
    exact = spelled or exact  # identical spelling comes before differences in case or accents
    if exact:
        return Grounding(constant, tuple(exact), tuple(link for link in inside if link not in exact))
    nearest = inside[:1] if unmatched == "vector" else ()
    same = [link for link in inside if _is_as_near(link, inside[0])] if is_likely else ()
    chosen = tuple(same) or tuple(nearest)
    return Grounding(constant, chosen, tuple(link for link in inside if link not in chosen))


def _is_as_near(link: Link, best: Link) -> bool:
    return form_of(link.alias) == form_of(best.alias) or link.score >= best.score - EQUAL


def unknown_names(groundings: Groundings) -> tuple[UnknownName, ...]:
    """Return the constants without nodes, each with close names."""
    lacking = [
        (one, dict.fromkeys(link.alias for link in one.alternatives)) for one in groundings.values() if not one.links
    ]
    return tuple(UnknownName(one.constant.text, tuple(close)[:CLOSE]) for one, close in lacking)


def with_known_names(parse: Parse, names: Names) -> Parse:
    """Add the unknown names of the query to the parse. Remove alternatives with unknown names."""

    def lacking(asked: Interpretation) -> tuple[UnknownName, ...]:
        return unknown_names(ground(constants(asked.query), names))

    others = tuple(one for one in parse.alternatives if not lacking(one))
    unknown = parse.unknown or lacking(parse.interpretation)
    if isinstance(names, CorrectedNames):  # the user excluded these texts as names: do not report them
        unknown = tuple(one for one in unknown if not names.is_excluded(one.text))
    return replace(parse, alternatives=others, unknown=unknown)


def widened(groundings: Groundings, size: int, constants: Collection[Named]) -> Groundings:
    """Extend the given constants to their `size` best nodes, or to all exact nodes if these are more."""
    wider: dict[Named, Grounding] = {}
    for constant, grounding in groundings.items():
        missing = max(0, size - len(grounding.links)) if constant in constants else 0
        more, rest = grounding.alternatives[:missing], grounding.alternatives[missing:]
        wider[constant] = Grounding(constant, (*grounding.links, *more), rest)
    return wider


def link(query: AQuery, groundings: Groundings, kb: KnowledgeBase, *, kinds: bool) -> AQuery:
    """Replace the constants of a query by nodes. With `kinds`, include the nodes below them in a hierarchy."""
    wide = with_kinds(query, kb.schema) if kinds else query
    return linked(wide, lambda one: keys_of(kb, groundings[one].nodes).keys)


def keys_of(kb: KnowledgeBase, nodes: NodeSet) -> Nodes:
    """Return nodes as a constant of a query."""
    return Nodes(tuple(ref.key for ref in kb.refs(nodes.array)))


def with_kinds(query: AQuery, schema: Schema) -> AQuery:
    """Extend constants to the nodes below them in a hierarchy, and follow hierarchy edges from them all the way."""
    rows = {row.name: row for row in hierarchies(schema)}
    numbers = count()

    def wider(end: str | Constant, edges: list[Edge]) -> str | Constant:
        """Return the replacement for an end. For a constant, chain a variable below it for each hierarchy."""
        for row in hierarchies(schema, end.type) if isinstance(end, Named) else ():
            lower = f"kind{next(numbers)}"
            head, tail = (lower, end) if below(row) == "in" else (end, lower)
            edges.append(Edge(head, row.name, tail, least=0, most=None))
            end = lower
        return end

    def changed(part: Any) -> Any:
        if not isinstance(part, Pattern):
            return part
        edges: list[Edge] = []
        for edge in part.edges:
            if edge.relation in rows and edge.is_single and edge.name is None and len(edge.variables) < 2:
                edges.append(replace(edge, most=None))
                continue
            head, tail = wider(edge.head, edges), wider(edge.tail, edges)
            edges.append(replace(edge, head=head, tail=tail))
        return replace(part, edges=tuple(edges))

    return rewrite(query, changed) if rows else query
