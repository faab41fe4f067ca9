"""What a knowledge base is made of: node types and relations, inferred at build and edited in a small TOML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from clew.core.errors import SchemaError

READABLE = ("passage", "table")
"""The node types of a base of documents that hold text to read."""
MOST_LISTED = 100
"""How many types or relations an error names."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """A type of node: how many there are, how to call it, and whether it may be an answer."""

    name: str
    count: int
    display: str = ""
    """How people call it; the name itself where empty."""
    description: str = ""
    answer: bool = True
    attributes: tuple[str, ...] = ()
    """Attributes its nodes have, in the order in which documents show them."""

    @property
    def label(self) -> str:
        """The display name, or the name with underscores read as spaces."""
        return self.display or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two node types with the number of its edges; one row per (name, head, tail)."""

    name: str
    head: str
    tail: str
    count: int
    display: str = ""
    inverse: str = ""
    """How people call it read from tail to head."""
    description: str = ""
    transitive: bool = False
    """Marks a hierarchy, such as is_a: a constant may stand for its descendants."""

    @property
    def label(self) -> str:
        """The display name, or the name with underscores read as spaces."""
        return self.display or self.name.replace("_", " ")


@dataclass(frozen=True)
class Schema:
    """Node types and relations; a relation's code is the position of its name in `relation_names`."""

    node_types: tuple[NodeType, ...]
    relations: tuple[Relation, ...]
    attribute_types: dict[str, str] = field(default_factory=dict)
    """Node attribute → "text", "integer", "number", "boolean", "date" or "list"."""
    edge_attributes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def relation_names(self) -> tuple[str, ...]:
        """Every relation name once, in order of code."""
        return tuple(dict.fromkeys(relation.name for relation in self.relations))

    @cached_property
    def relation_code(self) -> dict[str, int]:
        """Relation name → code."""
        return {name: code for code, name in enumerate(self.relation_names)}

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """Every node type, in order of code."""
        return tuple(node_type.name for node_type in self.node_types)

    @cached_property
    def type_code(self) -> dict[str, int]:
        """Node type → code."""
        return {name: code for code, name in enumerate(self.type_names)}

    @property
    def holds_passages(self) -> bool:
        """Whether the base is made of documents, or of passages alone."""
        return any(name in self.type_code for name in READABLE)

    @property
    def answer_types(self) -> tuple[str, ...]:
        """The types whose nodes may be answers."""
        return tuple(node_type.name for node_type in self.node_types if node_type.answer)

    def node_type(self, name: str) -> NodeType:
        """A node type by name."""
        if name not in self.type_code:
            raise SchemaError(f"no node type {name!r}; there are: {_listed(self.type_names)}")
        return self.node_types[self.type_code[name]]

    def relation_rows(self, name: str) -> tuple[Relation, ...]:
        """The rows of a relation, one per pair of head and tail type."""
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
"""Names of relations that are hierarchies, written without capitals, spaces and "is" before them."""
PARENTS = frozenset({"parent", "parentof", "childof"})
"""Names of hierarchies where every node has one parent at most; elsewhere they may be the parents of people."""
LEADS_DOWN = re.compile(
    r"^(parent[_ ]?of|has[_ ](?!parent|broader)|includes?|contains?|narrower|superclass[_ ]?of)", re.I
)


def leads_down(relation: str) -> bool:
    """Whether the head of a hierarchy's edges is the broader of the two, as with parent_of or has_part."""
    return LEADS_DOWN.match(relation) is not None


def may_be_parent(relation: str) -> bool:
    """Whether a relation is a hierarchy where no node has two parents."""
    return _squeezed(relation) in PARENTS


def with_hierarchies(relations: Iterable[Relation], trees: Collection[str] = ()) -> tuple[Relation, ...]:
    """Mark what is a hierarchy by its name: among nodes of one type, or from type to type as hotel, city, country."""
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
    """Node types and relation signatures; counts may change without what was learned losing its meaning."""
    signatures = sorted({(relation.name, relation.head, relation.tail) for relation in schema.relations})
    return tuple(sorted(schema.type_names)), tuple(signatures)


def refuse_other_schema(
    what: str,
    node_types: Iterable[str],
    relations: Iterable[tuple[str, str, str]],
    schema: Schema,
    remedy: str,
) -> None:
    """Raise where the base has other node types or relations than the one that something was trained on."""
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
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def words_of(name: str) -> str:
    """The words of an identifier, in lower case: `film.film.directed_by` and `directedBy` both end in "directed by"."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)", " ", name)
    words = re.findall(r"[^\W_]+", spaced.lower())
    kept = [word for place, word in enumerate(words) if place == 0 or word != words[place - 1]]
    return " ".join(kept) or name.lower()
