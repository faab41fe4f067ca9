"""Bases in a store elsewhere, opened by their address: a SPARQL endpoint, or a graph database that speaks Bolt.

Their graph is asked where it is. What describes their nodes is read once and kept in the cache as a base of its own.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from clew.core import trace
from clew.core.errors import InputError, LockedError, StorageError
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.bolt import is_graph_address
from clew.kb.manifest import MANIFEST, is_base
from clew.kb.protocol import KnowledgeBase

if TYPE_CHECKING:  # an extra
    from clew.kb.bolt import BoltServer
    from clew.kb.sparql_endpoint import SparqlEndpoint
    from clew.kb.sparql_schema import Reading
    from clew.kb.tables import Tables

SPARQL = "sparql+"
SETTINGS = frozenset({"comment", "label", "language", "noise", "shape", "type"})
"""What the address of an endpoint may say about how to read it."""
KEPT_GRAPH = 86_400.0
"""Seconds for which what was read of the nodes of a graph database is used, where their number is the same."""


def is_remote(place: str | Path) -> bool:
    """Whether a base is in a store elsewhere that is asked as it is."""
    return str(place).startswith(SPARQL) or is_graph_address(place)


def open_remote(address: str) -> KnowledgeBase:
    """A base at an address of either kind."""
    return _open_graph(address) if is_graph_address(address) else _open_endpoint(address)


def _open_endpoint(address: str) -> KnowledgeBase:
    """A base behind `sparql+http://HOST/query`; after # how to read it, such as #shape=wikidata&language=de."""
    from clew.kb.sparql import SparqlKnowledgeBase
    from clew.kb.sparql_endpoint import SparqlEndpoint
    from clew.kb.sparql_schema import SHAPES, Reading
    from clew.models.settings import Settings

    url, _, fragment = address.removeprefix(SPARQL).partition("#")
    given = dict(parse_qsl(fragment))
    shape = given.get("shape", "")
    if shape and shape not in SHAPES:
        raise InputError(f"{address}: no shape {shape!r}; there are: {', '.join(SHAPES)}")
    if given.keys() - SETTINGS:
        raise InputError(
            f"{address}: no setting {min(given.keys() - SETTINGS)!r}; there are: {', '.join(sorted(SETTINGS))}"
        )
    usual = SHAPES.get(shape, Reading())
    reading = replace(
        usual,
        label=given.get("label", usual.label),
        comment=given.get("comment", usual.comment),
        type=given.get("type", usual.type),
        language=given.get("language", usual.language),
        noise=tuple(given["noise"].split()) if "noise" in given else usual.noise,
    )
    cache = Settings.load().cache_folder
    endpoint = SparqlEndpoint(url, cache / "sparql.sqlite")
    return SparqlKnowledgeBase(endpoint, reading, lambda: described_nodes(endpoint, reading, cache / "endpoints"))


def described_nodes(endpoint: SparqlEndpoint, reading: Reading, folder: Path) -> ArrayKnowledgeBase | None:
    """What describes the nodes of a small endpoint, kept in a folder as long as its answers are; else None."""
    from clew.kb.sparql_nodes import can_be_read, read_nodes

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


def _open_graph(address: str) -> KnowledgeBase:
    """A base in a graph database at `bolt://USER@HOST:7687/DATABASE`, or `neo4j://…`."""
    from clew.kb.bolt import BoltServer, GraphAddress
    from clew.kb.cypher import CypherKnowledgeBase
    from clew.models.settings import Settings

    settings = Settings.load()
    server = BoltServer(GraphAddress(settings.with_login(address)))
    return CypherKnowledgeBase(server, lambda: described_graph(server, settings.cache_folder / "graphs"))


def described_graph(server: BoltServer, folder: Path) -> ArrayKnowledgeBase | None:
    """What describes the nodes of a graph database, kept for who asks: others may see others of them."""
    from clew.kb.cypher import count_nodes, made_of, read_description

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
    """The base that is kept of something read, or a new one where it is too old; None where it cannot be read."""
    place = folder / hashlib.sha256(what.encode()).hexdigest()[:16]
    if is_base(place) and (place / MANIFEST).stat().st_mtime > time.time() - seconds:
        kept = ArrayKnowledgeBase.open(place)
        if is_current(kept):
            return kept
    tables = read()
    if tables is None:
        return None
    with suppress(LockedError):  # another process has read them as well, and keeps them
        from clew.building import build  # reads of files what is seldom needed here

        build(tables, place)
    return ArrayKnowledgeBase.open(place) if is_base(place) else None
