"""Three tools that explore a base: search, show and query. The method `agent` and MCP offer the same tools.

Passages, pages and tables of documents are nodes, so the same tools search and open them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

from clew.answering.methods.answering import nearest, nodes_of_type
from clew.answering.queries.parsing import parse
from clew.answering.queries.query_answers import Executed, answer_query, run_query
from clew.core.errors import InputError
from clew.core.query import name_text
from clew.core.texts import asked_text
from clew.core.types import Evidence, Fact, NodeRef, Path, Ranking, plain
from clew.models.tokens import count_tokens, cut_end, cut_to_question
from clew.store.graph.description import node_page
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.fusion import reciprocal_rank_fusion
from clew.store.index.protocol import Link
from clew.store.open_base import OpenBase

LANGUAGE = resources.files("clew.answering.methods.agent").joinpath("language.txt").read_text("utf-8").strip()
"""Short description of the query language for a model."""
FEWEST_TOKENS = 15
"""Minimum tokens for the text of a neighbour. With less room, only its name is shown."""
NAME_WORDS, MAX_NAME_CHARS = 12, 200
"""Maximum words and characters of a name in a result."""
MAX_TOKENS = 4_000
"""Default maximum of a result as text, in tokens."""
FEW = 3
"""Neighbours per relation in a result, if no relation is chosen."""


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node found by its name or by its text."""

    key: str
    name: str
    type: str
    how: str
    """Type of match: exact, fuzzy, partial, vector or text."""
    score: float
    alias: str = ""
    """The name that matched."""


@dataclass(frozen=True)
class Observation:
    """Result of a tool, as text for a model and as plain values for a program."""

    text: str
    seen: Mapping[int, tuple[Evidence, ...]] = field(default_factory=dict)
    """Nodes in the text, with the facts that the text shows of them."""
    data: dict[str, Any] = field(default_factory=dict)
    executed: Executed | None = None
    """The executed query, if the tool ran one."""


Line = tuple[str, Mapping[int, tuple[Evidence, ...]]]


def find(tools: OpenBase, text: str, type: str | None = None, k: int = 10, *, in_text: bool = False) -> list[FoundNode]:
    """Find nodes by name, or by the words of their documents."""
    text = asked_text(text, "name").strip()
    if type is not None:
        tools.kb.schema.node_type(type)
    if not in_text:
        return found_nodes(tools, tools.names.link(text, type=type, k=k))
    ranking = tools.lexical.search(text, k, among=None if type is None else tools.kb.nodes(type))
    refs, scores = tools.kb.refs(ranking.nodes), ranking.scores.tolist()
    return [FoundNode(r.key, r.name, r.type, "text", round(s, 4)) for r, s in zip(refs, scores, strict=True)]


def found_nodes(tools: OpenBase, links: Sequence[Link]) -> list[FoundNode]:
    """Describe linked nodes."""
    refs = tools.kb.refs([link.node for link in links])
    return [
        FoundNode(ref.key, ref.name, ref.type, link.how, round(float(link.score), 4), link.alias)
        for ref, link in zip(refs, links, strict=True)
    ]


def show(tools: OpenBase, key: str, most: int = 10) -> dict[str, Any]:
    """Return a node with its document and its first neighbours by relation."""
    page = node_page(tools.kb, tools.find_node(key), most)
    for group in page["neighbors"]:
        for node in group["nodes"]:
            if "attributes" in node:
                node["attributes"] = plain(node["attributes"])
    return {**page, "attributes": plain(page["attributes"])}


def search_nodes(
    tools: OpenBase, text: str, type: str | None = None, k: int = 10, tokens: int = MAX_TOKENS
) -> Observation:
    """Search nodes by name, then by the words and the meaning of their texts."""
    text, kb = asked_text(text, "text").strip(), tools.kb
    if not text:
        raise InputError("the text is empty: give a name or words to search for")
    among = nodes_of_type(kb, type)
    links = (tools.names.link if kb.described is None else tools.names.spelled)(text, type=type, k=k)
    ranking = Ranking.of([link.node for link in links], [link.score for link in links])
    if kb.described is not None:
        words, meaning = tools.lexical.search(text, 10 * k, among=among), nearest(tools, text, 10 * k, among)
        ranking = reciprocal_rank_fusion([ranking, words, meaning]).top(2 * k)
    by_name = dict(zip([link.node for link in links], found_nodes(tools, links), strict=True))
    found = {link.node: by_name[link.node] for link in links if link.how == "exact"}
    for ref, (node, score) in zip(kb.refs(ranking.nodes), ranking, strict=True):
        found.setdefault(node, by_name.get(node, FoundNode(ref.key, ref.name, ref.type, "text", round(score, 4))))
    kept = list(found)[:k]
    refs = kb.refs(kept)
    lines = _with_texts(kb, refs, [(label(ref), {ref.id: ()}) for ref in refs], text, tokens)
    data = {"nodes": [asdict(found[node]) for node in kept]}
    return Observation(*_fitted(lines if refs else [("nothing found", {})], tokens), data=data)


def show_node(
    tools: OpenBase, key: str, relation: str | None = None, k: int = 20, about: str = "", tokens: int = MAX_TOKENS
) -> Observation:
    """Show a node: names, attributes, text, and its neighbours by relation and direction.

    With `relation`, list up to `k` neighbours by that relation with their texts. `about` selects the sentences to show
    of long texts.
    """
    kb, node = tools.kb, tools.find_node(key)
    if relation is not None:
        kb.schema.relation_rows(relation)
    page = show(tools, kb.refs([node])[0].key, k)
    if relation is not None:
        page["neighbors"] = [group for group in page["neighbors"] if group["relation"] == relation]
    return Observation(*_fitted(_page_lines(kb, node, page, relation, about, tokens), tokens), data=page)


def _page_lines(
    kb: KnowledgeBase, node: int, page: Mapping[str, Any], relation: str | None, about: str, tokens: int
) -> Iterator[Line]:
    center = kb.refs([node])[0]
    yield label(center), {node: ()}
    if page["aliases"]:
        yield f"also called: {'; '.join(page['aliases'][:FEW])}", {}
    told = {*kb.schema.node_type(center.type).attributes, "page"}  # others, such as positions of lines, are internal
    values = [f"{name_text(n)} = {cut_end(str(value), 40)}" for n, value in page["attributes"].items() if n in told]
    if values:
        yield f"attributes: {'; '.join(values)}", {}
    text = kb.node(node).text
    if text and relation is None:
        yield f"text: {cut_to_question(text, about, tokens * 7 // 10)}", {}
    for group in page["neighbors"]:
        is_out = group["direction"] == "out"
        arrow = f"-[{name_text(group['relation'])}]->" if is_out else f"<-[{name_text(group['relation'])}]-"
        entries = group["nodes"] if relation is not None else group["nodes"][:FEW]
        refs = kb.refs(kb.ids([entry["key"] for entry in entries]))
        parts: list[Line] = []
        for ref, entry in zip(refs, entries, strict=True):
            edge = entry.get("attributes", {})
            head, tail = (center, ref) if is_out else (ref, center)
            fact = (Path((Fact(head, group["relation"], tail, edge),)),)
            written = label(ref) + (f" {{{'; '.join(f'{name} = {edge[name]}' for name in edge)}}}" if edge else "")
            parts.append((written, {ref.id: fact, node: fact}))
        title = f"{arrow} {group['count']:,}: "
        if relation is None:
            facts = {ref.id: seen[ref.id] for ref, (_, seen) in zip(refs, parts, strict=True)}
            yield (
                title + "; ".join(written for written, _ in parts),
                {**facts, node: tuple(f[0] for f in facts.values())},
            )
            continue
        yield title, {}
        yield from _with_texts(kb, refs, parts, about, tokens // len(page["neighbors"]))


def query_nodes(tools: OpenBase, query: str, k: int = 20, tokens: int = MAX_TOKENS) -> Observation:
    """Run a query of the query language. Show the first rows and their number. Raise InputError if it is wrong."""
    executed = run_query(tools.kb, tools.names, parse(asked_text(query, "query")))
    answer = answer_query(tools.kb, query, executed)
    rows = executed.result.rows
    different = [*{repr(row): row for row in rows}.values()]
    lines: list[Line] = [(note, {}) for note in (*executed.notes, *(one.to_text() for one in executed.unknown))]
    if not executed.unknown:
        amount = f"{len(rows):,} row{'s' * (len(rows) != 1)}"
        amount += f", {len(different):,} different" if len(different) < len(rows) else ""
        lines.append((f"{amount}: {' | '.join(executed.result.names)}", {}))
    evidence = {one.node.id: one.evidence for one in answer.candidates[:k]}
    for row in different[:k]:
        cells = [cell for cell in row if isinstance(cell, NodeRef)]
        shown = " | ".join(label(cell) if isinstance(cell, NodeRef) else cut_end(str(cell), 60) for cell in row)
        lines.append((shown, {cell.id: evidence.get(cell.id, ()) for cell in cells}))
    described = answer.to_dict()
    cut = {"answers": described["answers"][:k], "rows": described["rows"][:k]}
    data = {name: described[name] for name in ("value", "matches", "columns", "query", "unknown", "notes")} | cut
    return Observation(*_fitted(lines, tokens), data=data, executed=executed)


def label(ref: NodeRef) -> str:
    """Return the key, name and type of a node for a model. Long names are cut in the middle."""
    words = ref.name.split()
    name = ref.name if len(words) <= NAME_WORDS else f"{' '.join(words[:4])} … {' '.join(words[4 - NAME_WORDS :])}"
    return f"[{ref.key}] {name[:MAX_NAME_CHARS]} ({name_text(ref.type)})"


def _with_texts(
    kb: KnowledgeBase, refs: Sequence[NodeRef], lines: Sequence[Line], about: str, tokens: int
) -> Iterator[Line]:
    """Add the texts of the nodes, cut to equal shares of the remaining tokens."""
    share = (tokens - sum(count_tokens(line) + 2 for line, _ in lines)) // max(1, len(lines))
    for ref, (line, seen) in zip(refs, lines, strict=True):
        text = " ".join(cut_to_question(kb.node(ref.id).text, about, share).split()) if share >= FEWEST_TOKENS else ""
        yield f"{line}: {text}" if text else line, seen


def _fitted(lines: Iterable[Line], tokens: int) -> tuple[str, dict[int, tuple[Evidence, ...]]]:
    """Return the lines that fit, and the nodes in them."""
    shown: list[str] = []
    seen: dict[int, tuple[Evidence, ...]] = {}
    left_out = 0
    for line, nodes in lines:
        cost = count_tokens(line)
        if cost > tokens:
            left_out += 1
            continue
        tokens -= cost
        shown.append(line)
        for node, evidence in nodes.items():
            seen[node] = (*seen.get(node, ()), *evidence)
    more = [f"({left_out} more line{'s' * (left_out != 1)} left out: too long)"] if left_out else []
    return "\n".join([*shown, *more]), seen
