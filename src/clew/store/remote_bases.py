"""Graphs in remote stores, opened by address, and the descriptions of their nodes.

The nodes of a graph are read once and cached per user. Alternatively, `clew build ADDRESS --nodes-only` stores them for
all users in a folder or in PostgreSQL, and `ADDRESS#texts=BASE` uses that base. With `ADDRESS#only=BASE`, the graph has
no other nodes.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.core import trace
from clew.core.addresses import SPARQL, is_bolt, is_postgres, is_remote
from clew.core.errors import InputError, LockedError, StorageError
from clew.models.settings import Settings
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import MANIFEST, is_base
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.graph.tables import ELEMENT, Tables
from clew.store.remote.bolt import BoltServer, GraphAddress

if TYPE_CHECKING:  # optional clients
    from clew.store.remote.remote import RemoteKnowledgeBase
    from clew.store.remote.sparql_endpoint import SparqlEndpoint
    from clew.store.remote.sparql_schema import EndpointVocabulary

KEPT_GRAPH = 86_400.0
"""Lifetime of the description of a graph database in seconds, while its number of nodes is unchanged."""
SAMPLED = 5
"""Number of nodes to check whether a description belongs to a graph."""
_DESCRIBED_BY = re.compile("[#&](texts|only)=")


@dataclass(frozen=True)
class RemoteAddress:
    """`sparql+http://HOST/query#SETTINGS` or `bolt://…`, and optionally the base that describes its nodes."""

    graph: str
    texts: str | None = None
    is_part: bool = False
    """Whether the graph has no other nodes."""

    @classmethod
    def parse(cls, text: str) -> RemoteAddress:
        """Parse an address. The base comes last and needs no quoting."""
        graph, *named = _DESCRIBED_BY.split(text, maxsplit=1)
        if not named:
            return cls(graph)
        how, texts = named
        if not texts:
            raise InputError(f"#{how}= lacks a base: expected a folder or postgresql://USER@HOST/DATABASE#BASE")
        return cls(graph, texts, how == "only")

    def described_by(self, texts: str, *, is_part: bool) -> str:
        """Return the address of the same graph with its nodes described by a base."""
        return f"{self.graph}{'&' if '#' in self.graph else '#'}{'only' if is_part else 'texts'}={texts}"

    def __str__(self) -> str:
        shown = str(GraphAddress(self.graph)) if is_bolt(self.graph) else self.graph
        if self.texts is None:
            return shown
        return RemoteAddress(shown).described_by(shown_place(self.texts), is_part=self.is_part)


def shown_place(place: str | Path) -> str:
    """Return a location without passwords, for display."""
    if is_remote(place):
        return str(RemoteAddress.parse(str(place)))
    if not is_postgres(place):
        return str(place)
    from clew.store.postgres.connection import Address

    return str(Address.parse(str(place)))


def open_stored(place: str | Path) -> StoredKnowledgeBase:
    """Open a base that Clew stores in a folder or in PostgreSQL."""
    if not is_postgres(place):
        return ArrayKnowledgeBase.open(place)
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

    return PostgresKnowledgeBase.open(str(place))


def open_remote(text: str) -> RemoteKnowledgeBase:
    """Open a graph by its address, with the base that describes its nodes, if any."""
    from clew.store.remote.remote import PartOfGraph

    address = RemoteAddress.parse(text)
    opened = (_open_graph if is_bolt(address.graph) else _open_endpoint)(address)
    if address.texts is not None:
        opened.place = RemoteAddress(opened.place).described_by(address.texts, is_part=address.is_part)
    return PartOfGraph(opened) if address.is_part else opened


def with_logins(sources: Sequence[str | Path]) -> list[str | Path]:
    """Add user and password to sources that are graph databases. The result must not be shown."""
    settings = Settings.load()
    for one in sources:
        if is_remote(one) and not is_bolt(one):
            raise InputError(f"{one} cannot be copied: use `clew ask {one}`, or --nodes-only for a base of its texts")
    return [settings.with_login(str(one)) if is_bolt(one) else one for one in sources]


def read_remote_nodes(sources: Sequence[str | Path]) -> Tables:
    """Read the nodes of a graph, which is the only source, without a limit on their number."""
    from clew.store.remote.cypher import read_description
    from clew.store.remote.sparql_schema import read_nodes

    if len(sources) != 1 or not is_remote(sources[0]):
        raise InputError("--nodes-only needs one remote graph: sparql+http://HOST/query or bolt://…")
    graph = RemoteAddress.parse(str(sources[0])).graph
    if is_bolt(graph):
        return read_description(_server(graph), however_many=True)
    endpoint, reading = _endpoint(graph)
    if reading.claims:
        raise InputError(f"{graph}: endpoints of this shape cannot be read as a whole")
    return read_nodes(endpoint, reading)


# SPARQL endpoints


def _open_endpoint(address: RemoteAddress) -> RemoteKnowledgeBase:
    from clew.store.remote.sparql import SparqlKnowledgeBase

    endpoint, reading = _endpoint(address.graph)
    texts = address.texts

    def describe() -> StoredKnowledgeBase | None:
        if texts is None:
            return described_nodes(endpoint, reading, Settings.load().cache_folder / "endpoints")
        return open_stored(texts)

    opened = SparqlKnowledgeBase(endpoint, reading, describe)
    opened.place = address.graph
    return opened


def _endpoint(address: str) -> tuple[SparqlEndpoint, EndpointVocabulary]:
    """Parse `sparql+http://HOST/query` with settings after #, such as #shape=wikidata&language=de."""
    from clew.store.remote.sparql_endpoint import SparqlEndpoint
    from clew.store.remote.sparql_schema import SHAPES, EndpointVocabulary

    url, _, fragment = address.removeprefix(SPARQL).partition("#")
    given = dict(parse_qsl(fragment))
    shape = given.get("shape", "")
    if shape and shape not in SHAPES:
        raise InputError(f"{address}: unknown shape {shape!r}: use {', '.join(SHAPES)}")
    unknown = given.keys() - {"label", "comment", "type", "language", "noise", "shape"}
    if unknown:
        there = "comment, label, language, noise, only, shape, texts, type"
        raise InputError(f"{address}: unknown setting {min(unknown)!r}: use {there}")
    chosen: dict[str, Any] = {name: value for name, value in given.items() if name != "shape"}
    if "noise" in given:
        chosen["noise"] = tuple(given["noise"].split())
    reading = replace(SHAPES.get(shape, EndpointVocabulary()), **chosen)
    return SparqlEndpoint(url, Settings.load().cache_folder / "sparql.sqlite"), reading


def described_nodes(endpoint: SparqlEndpoint, reading: EndpointVocabulary, folder: Path) -> ArrayKnowledgeBase | None:
    """Return the cached description of a small endpoint's nodes, or None if it cannot be read."""
    from clew.store.remote.sparql_schema import can_be_read, read_nodes

    def read() -> Tables | None:
        if not can_be_read(endpoint, reading):
            return None
        try:
            return read_nodes(endpoint, reading)
        except StorageError as error:
            why = f"what describes them could not be read ({error})"
            trace.fallback("nodes", why, "names are looked up one by one")
            return None

    return _kept_base(folder, f"{endpoint.url}\n{reading!r}", endpoint.politeness.keep, read)


# Graph databases


def _open_graph(address: RemoteAddress) -> RemoteKnowledgeBase:
    from clew.store.remote.cypher import CypherKnowledgeBase

    server = _server(address.graph)
    texts, is_part = address.texts, address.is_part

    def describe() -> StoredKnowledgeBase | None:
        if texts is None:
            return described_graph(server, Settings.load().cache_folder / "graphs")
        described = open_stored(texts)
        _check_description(server, described, shown_place(texts), is_part)
        return described

    return CypherKnowledgeBase(server, describe)


def _server(address: str) -> BoltServer:
    """Connect to `bolt://USER@HOST:7687/DATABASE` or `neo4j://…`."""
    return BoltServer(GraphAddress(Settings.load().with_login(address)))


def _check_description(server: BoltServer, described: StoredKnowledgeBase, texts: str, is_part: bool) -> None:
    """Raise InputError if a base does not describe a graph. Report if the number of nodes has changed."""
    from clew.store.remote.cypher import count_nodes, made_of
    from clew.store.sources.bolt import type_of
    from clew.store.sources.files import SourceOptions

    again = f"`clew build {server.address} --nodes-only -o {texts}`"
    some = [described.count * place // SAMPLED for place in range(SAMPLED)]
    elements = described.column(ELEMENT)
    asked = {elements[node]: described.type_of(node) for node in some}
    query = "UNWIND $nodes AS i MATCH (n) WHERE elementId(n) = i RETURN i, labels(n)"
    found = [] if None in asked else server.rows(query, nodes=list(asked))
    if {element: type_of(labels, SourceOptions()) for element, labels in found} != asked:
        raise InputError(f"{texts} does not describe the nodes of {server.address}: run {again}")
    count = 0 if is_part else count_nodes(server) - made_of(described)["nodes"]
    if count:
        why = f"{server.address} has {abs(count):,} nodes {'more' if count > 0 else 'fewer'} than when they were read"
        trace.fallback("nodes", why, f"those of that time are searched; {again} reads them again")


def described_graph(server: BoltServer, folder: Path) -> ArrayKnowledgeBase | None:
    """Return the description of a graph database, cached per user, since users may see different nodes."""
    from clew.store.remote.cypher import count_nodes, made_of, read_description

    count = count_nodes(server)
    who = f"{server.address}\n{server.address.user}"
    return _kept_base(
        folder, who, KEPT_GRAPH, lambda: read_description(server), lambda kept: made_of(kept)["nodes"] == count
    )


def _kept_base(
    folder: Path,
    what: str,
    seconds: float,
    read: Callable[[], Tables | None],
    is_current: Callable[[ArrayKnowledgeBase], bool] = lambda _: True,
) -> ArrayKnowledgeBase | None:
    """Return a cached base, or build it again if it is too old. Return None if it cannot be read."""
    place = folder / hashlib.sha256(what.encode()).hexdigest()[:16]
    if is_base(place) and (place / MANIFEST).stat().st_mtime > time.time() - seconds:
        kept = ArrayKnowledgeBase.open(place)
        if is_current(kept):
            return kept
    tables = read()
    if tables is None:
        return None
    with suppress(LockedError):  # another process has read and cached it
        from clew.store.building import build  # imported late, since it is seldom needed

        build(tables, place)
    return ArrayKnowledgeBase.open(place) if is_base(place) else None
