"""Schema of a knowledge base: node types and relations, inferred at build time and editable in a TOML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from clew.core.errors import SchemaError

READABLE = ("passage", "table")
"""Node types with text to read, in a base of documents."""
MOST_LISTED = 100
"""Maximum number of types or relations in an error message."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type: its number of nodes, its display name, and whether its nodes may be answers."""

    name: str
    count: int
    """Number of nodes. At an endpoint that is too large to read, the number of edges that leave them."""
    display: str = ""
    """Name for display. If empty, `name` is displayed."""
    description: str = ""
    answer: bool = True
    attributes: tuple[str, ...] = ()
    """Attributes of the nodes, in the order in which documents show them."""

    @property
    def label(self) -> str:
        """The display name, or the name with spaces for underscores."""
        return self.display or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one node type to another. Each (name, head, tail) has its own row."""

    name: str
    head: str
    tail: str
    count: int
    display: str = ""
    inverse: str = ""
    """Name for display from tail to head."""
    description: str = ""
    transitive: bool = False
    """Whether the relation is a hierarchy, such as is_a, so that a constant may represent its descendants."""

    @property
    def label(self) -> str:
        """The display name, or the name with spaces for underscores."""
        return self.display or self.name.replace("_", " ")


@dataclass(frozen=True)
class Schema:
    """Node types and relations. A relation's code is the index of its name in `relation_names`."""

    node_types: tuple[NodeType, ...]
    relations: tuple[Relation, ...]
    attribute_types: dict[str, str] = field(default_factory=dict)
    """Node attribute → "text", "integer", "number", "boolean", "date" or "list"."""
    edge_attributes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def relation_names(self) -> tuple[str, ...]:
        """Distinct relation names in order of code."""
        return tuple(dict.fromkeys(relation.name for relation in self.relations))

    @cached_property
    def relation_code(self) -> dict[str, int]:
        """Relation name → code."""
        return {name: code for code, name in enumerate(self.relation_names)}

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """Node types in order of code."""
        return tuple(node_type.name for node_type in self.node_types)

    @cached_property
    def type_code(self) -> dict[str, int]:
        """Node type → code."""
        return {name: code for code, name in enumerate(self.type_names)}

    @property
    def holds_passages(self) -> bool:
        """Whether the base contains documents or passages."""
        return any(name in self.type_code for name in READABLE)

    @property
    def answer_types(self) -> tuple[str, ...]:
        """Node types that may be answers."""
        return tuple(node_type.name for node_type in self.node_types if node_type.answer)

    def node_type(self, name: str) -> NodeType:
        """Return a node type. Raise SchemaError if it does not exist."""
        if name not in self.type_code:
            raise SchemaError(f"no node type {name!r}; there are: {_listed(self.type_names)}")
        return self.node_types[self.type_code[name]]

    def relation_rows(self, name: str) -> tuple[Relation, ...]:
        """Return the rows of a relation, one per pair of head and tail type. Raise SchemaError if there are none."""
        if name not in self._rows:
            raise SchemaError(f"no relation {name!r}; there are: {_listed(self.relation_names)}")
        return self._rows[name]

    @cached_property
    def _rows(self) -> dict[str, tuple[Relation, ...]]:
        rows: dict[str, list[Relation]] = {}
        for relation in self.relations:
            rows.setdefault(relation.name, []).append(relation)
        return {name: tuple(same) for name, same in rows.items()}


HIERARCHIES = frozenset({"isa", "kindof", "subclassof", "subtypeof", "partof", "locatedin", "broader", "narrower"})
"""Names of hierarchies in lower case, without spaces and a leading "is"."""
PARENTS = frozenset({"parent", "parentof", "childof"})
"""Relation names that mean a hierarchy only if every node has at most one parent. People have two parents."""
LEADS_DOWN = re.compile(
    r"^(parent[_ ]?of|has[_ ](?!parent|broader)|includes?|contains?|narrower|superclass[_ ]?of)", re.I
)


def leads_down(relation: str) -> bool:
    """Return whether the head of a hierarchy's edges is the broader node, as in parent_of or has_part."""
    return LEADS_DOWN.match(relation) is not None


def may_be_parent(relation: str) -> bool:
    """Return whether a relation is a hierarchy provided that no node has two parents."""
    return _squeezed(relation) in PARENTS


def with_hierarchies(relations: Iterable[Relation], trees: Collection[str] = ()) -> tuple[Relation, ...]:
    """Mark hierarchies by name, within one node type or across a chain of types such as hotel, city, country."""
    rows = tuple(relations)
    heads = {(row.name, row.head) for row in rows}
    tails = {(row.name, row.tail) for row in rows}
    return tuple(
        replace(row, transitive=True)
        if (_squeezed(row.name) in HIERARCHIES or row.name in trees)
        and ((row.name, row.tail) in heads or (row.name, row.head) in tails)
        else row
        for row in rows
    )


def _squeezed(relation: str) -> str:
    letters = re.sub(r"[^a-z]", "", relation.lower())
    return letters if letters in HIERARCHIES else letters.removeprefix("is")


def schema_of(schema: Schema) -> tuple[tuple[str, ...], tuple[tuple[str, str, str], ...]]:
    """Return node types and relation signatures. Counts are left out, since they may change after training."""
    signatures = sorted({(relation.name, relation.head, relation.tail) for relation in schema.relations})
    return tuple(sorted(schema.type_names)), tuple(signatures)


def refuse_other_schema(
    what: str, node_types: Iterable[str], relations: Iterable[tuple[str, str, str]], schema: Schema, remedy: str
) -> None:
    """Raise SchemaError if the base differs in node types or relations from the base used for training."""
    ours = [{*node_types}, {f"{head} —{name}→ {tail}" for name, head, tail in relations}]
    types, signatures = schema_of(schema)
    theirs = [{*types}, {f"{head} —{name}→ {tail}" for name, head, tail in signatures}]
    differences = [
        f"{kind} {name} is {'missing' if name in old else 'new'}"
        for kind, old, new in zip(("node type", "relation"), ours, theirs, strict=True)
        for name in old ^ new
    ]
    if differences:
        shown = "; ".join(sorted(differences)[:5])
        more = f"; and {len(differences) - 5} more differences" if len(differences) > 5 else ""
        raise SchemaError(f"{what} was trained on a base with another schema ({shown}{more}): {remedy}")


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


_CAPITALS = re.compile(r"[A-Z]\d|.[A-Z]")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words_of(name: str) -> str:
    """Split an identifier into words: `film.film.directed_by` and `directedBy` both end in "directed by"."""
    spaced = re.sub(rf"{_HUMPS.pattern}|(?<=[A-Za-z])(?=\d)", " ", name)
    return _joined(re.findall(r"[^\W_]+", spaced.lower())) or name.lower()


def label_of(name: str) -> str:
    """Return the words of a name for display, with its abbreviations: "electricity from nuclear TWh", "CO2 emissions".

    Trained networks read `words_of`.
    """
    name = name.lower() if name.isupper() and (len(name) > 3 or "_" in name) else name
    if re.search(r"\s", name):  # people wrote it
        parts = name.replace("_", " ").split()
    else:
        split = ((token, _HUMPS.split(token)) for token in re.findall(r"[^\W_]+", name))
        parts = [part for token, humps in split for part in (humps if len(humps[0]) > 1 else [token])]
    return _joined([part if _CAPITALS.search(part) else part.lower() for part in parts]) or name.lower()


def _joined(words: Sequence[str]) -> str:
    return " ".join(word for index, word in enumerate(words) if index == 0 or word != words[index - 1])
