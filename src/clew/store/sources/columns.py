"""Recognise the roles of columns by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from clew.store.graph.tables import EDGE_COLUMNS, NODE_COLUMNS

_KEYS = (
    *("id", "key", "node_id", "identifier", "uid", "uuid", "_id", "uri", "iri", "node", "node_index", "node_key"),
    *("index", "code"),
)
GENERAL_KEYS = frozenset(_KEYS) | {"rowid", "pk"}
"""Headers of keys that do not name their table."""
KEY_ENDINGS = ("_id", "_key", "_code", "_fk", "_no", "_uuid")
"""Suffixes of key headers."""
_NAMES = (
    *("name", "title", "label", "display_name", "node_name", "entity_name"),
    *("preferred_name", "preferred_label", "pref_label"),
)
NAMES = {
    "full": ("name", "full_name", "display_name", "label_name", *_NAMES[4:]),
    "title": ("title", "label", "caption", "subject", "headline"),
}
"""Headers of names: unique names, and titles that rows may share."""
NAME_PARTS = (
    *(("first_name", "last_name"), ("firstname", "lastname"), ("given_name", "family_name"), ("forename", "surname")),
    *(("given_name", "surname"), ("first_name", "surname"), ("name_first", "name_last")),
)
"""Headers of two columns that form a name together."""
_TYPES = ("type", "node_type", "entity_type", "category", "class", "kind", "labels", "label", "semantic_type")
_ALIASES = (
    *("aliases", "synonyms", "alias", "synonym", "alt_names", "alt_labels", "alt_label", "alternative_names"),
    *("alternate_names", "also_known_as", "other_names", "names", "alt"),
)
_TEXTS = (
    *("text", "description", "definition", "abstract", "summary", "content", "body", "document"),
    *("comment", "details"),
)
DESCRIPTIONS = frozenset({*_ALIASES, *_TEXTS})
"""Headers of texts that describe a row or are alternative names."""
_NODE_ROLES = {"key": _KEYS, "name": _NAMES, "type": _TYPES, "aliases": _ALIASES, "text": _TEXTS}
_ENDS = (
    *(("head", "tail"), ("source", "target"), ("from", "to"), ("subject", "object"), ("src", "dst")),
    *(("head_id", "tail_id"), ("source_id", "target_id"), ("from_id", "to_id"), ("subject_id", "object_id")),
    *(("src_id", "dst_id"), ("start_id", "end_id"), ("start", "end"), ("start_node", "end_node")),
    *(("x_index", "y_index"), ("x_id", "y_id"), ("src", "dest"), ("source", "destination"), ("node1", "node2")),
    *(("node_1", "node_2"), ("u", "v")),
    *(("h", "t"), ("s", "o"), ("subj", "obj"), ("sub", "obj"), ("source_key", "target_key"), ("head_key", "tail_key")),
)
_VAGUE_ENDS = {("start", "end"), ("from", "to"), ("u", "v"), ("h", "t"), ("s", "o")}
"""Names of edge ends that may also be attributes."""
_RELATIONS = (
    *("relation", "predicate", "relationship", "rel", "relation_type", "relation_name", "edge_type", "property"),
    *("link_type", "relationship_type", "edge", "edge_label", "type", "label", "name", "r", "p"),
)
_WORD = re.compile(r"[^\W\d_]{3}")
_NEO4J = re.compile(r":(ID|LABEL|START_ID|END_ID|TYPE)(\(.*\))?$")
Kind = Literal["nodes", "edges"]


def unique_names(names: Sequence[str], form: str) -> list[str]:
    """Return the names, with a number after repeated names. `form` is a pattern such as `{} {}`."""
    taken, used, found = set(names), dict.fromkeys(names, 0), []
    for name in names:
        used[name] += 1
        own = name
        while used[name] > 1 and (own := form.format(name or "unnamed", used[name])) in taken:
            used[name] += 1
        taken.add(own)
        found.append(own)
    return found


def plain(name: str) -> str:
    """Convert a column name to snake case: `nodeId`, `Node ID` and `node-id` all become `node_id`."""
    marked = _NEO4J.search(name)
    if marked:
        return marked[1].lower()
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9_]+", "_", spaced.lower()).rstrip("_")


def is_worded(name: str) -> bool:
    """Return whether the name of a table contains a word, not only numbers and abbreviations such as `en.1`."""
    return _WORD.search(name) is not None


def kind_of_columns(names: Sequence[str], columns: Mapping[str, str]) -> Kind | None:
    """Return "edges" if both ends are present, else "nodes" if there is a key, else None.

    Rows with a key and a name are nodes if the apparent ends may also be dates or places.
    """
    edges, nodes = edge_roles(names, columns), node_roles(names, columns)
    if edges.keys() >= {"head", "tail"} and not (nodes.keys() >= {"key", "name"} and is_vague(names, columns)):
        return "edges"
    return "nodes" if "key" in nodes else None


def is_vague(names: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Return whether the ends of an edge table may also be attributes of things, unless the user mapped them."""
    ends = edge_roles(names, columns)
    return not columns.keys() & {"head", "tail"} and (plain(ends["head"]), plain(ends["tail"])) in _VAGUE_ENDS


def node_roles(names: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a node table by role. Without a key column, names are the keys."""
    found = _mapped(names, columns, NODE_COLUMNS)
    for role, candidates in _NODE_ROLES.items():
        if role not in found:
            _take(role, candidates, names, found)
    for role in ("aliases", "text"):  # nested details may contain missing roles
        if role not in found:
            _take(role, _NODE_ROLES[role], names, found, nested=True)
    if "key" not in found and found.get("name") and plain(found["name"]) in ("name", "title"):
        found["key"] = found["name"]
    return found


def edge_roles(names: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of an edge table by role."""
    found = _mapped(names, columns, EDGE_COLUMNS)
    by_plain = {plain(name): name for name in reversed(names) if name not in found.values()}
    for head, tail in _ENDS:
        if not {"head", "tail"} & set(found) and head in by_plain and tail in by_plain:
            found |= {"head": by_plain[head], "tail": by_plain[tail]}
    for role, other, place in (("head", "tail", 0), ("tail", "head", 1)):
        if role not in found and other in found:  # the user has mapped the other end
            _take(role, [pair[place] for pair in _ENDS], names, found)
    if "relation" not in found:
        _take("relation", _RELATIONS, names, found)
    return found


def _mapped(names: Sequence[str], columns: Mapping[str, str], roles: Sequence[str]) -> dict[str, str]:
    return {role: columns[role] for role in roles if columns.get(role) in names}


def _take(
    role: str, candidates: Sequence[str], names: Sequence[str], found: dict[str, str], *, nested: bool = False
) -> None:
    """Assign the role to the first free candidate. With `nested`, `details.summary` counts as `summary`."""
    free = {
        plain(name.rpartition(".")[2] if nested else name): name
        for name in reversed(names)
        if name not in found.values()
    }
    for candidate in candidates:
        if candidate in free:
            found[role] = free[candidate]
            return
