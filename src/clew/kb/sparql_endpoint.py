"""A SPARQL 1.1 endpoint over HTTP: paged, retried, polite, with its answers kept in a local file."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import httpx

from clew.core.errors import InputError, QueryRefusedError, StorageError
from clew.core.trace import span

Term = str
"""An RDF term as SPARQL writes it: <iri>, "text", "text"@en or "1999"^^<type>."""
Row = Mapping[str, Term]
RETRIED = frozenset({429, 500, 502, 503, 504})
UNSORTED = "Virtuoso 22023"
"""How Virtuoso says that it will not sort so many rows; it would say so again."""


@dataclass(frozen=True)
class Politeness:
    """How hard an endpoint may be asked."""

    timeout: float = 60.0
    attempts: int = 4
    per_second: float = 20.0
    page: int = 10_000
    """Rows asked for at once; a full page means that there may be more."""
    keep: float = 7 * 86_400.0
    """Seconds for which an answer is taken from the local file."""


class SparqlEndpoint:
    """Answers queries; the same query is sent once as long as its answer is kept."""

    def __init__(self, url: str, cache: Path | None = None, politeness: Politeness | None = None) -> None:
        """`cache` is a file, made where it is missing; None keeps answers in memory for this process."""
        self.url = url
        self.politeness = politeness or Politeness()
        self._client = httpx.Client(timeout=self.politeness.timeout, follow_redirects=True)
        self._lock = Lock()
        self._next = 0.0
        self._kept = _open_cache(cache)
        weakref.finalize(self, _close, self._client, self._kept)

    def rows(self, query: str, *, ordered_by: str) -> list[Row]:
        """Every row of a SELECT query, page by page; `ordered_by` makes the pages of one query fit together."""
        size = self.politeness.page
        found: list[Row] = []
        while True:
            ordered, part = f"{query}\nORDER BY {ordered_by}", f"\nLIMIT {size} OFFSET {len(found)}"
            try:
                page = self.page(ordered + part)
            except QueryRefusedError:
                if not found:
                    raise
                page = self.page(f"SELECT * WHERE {{ {{ {ordered} }} }}{part}")  # Virtuoso sorts few rows for a limit
            found += page
            if len(page) < size:
                return found

    def page(self, query: str) -> list[Row]:
        """The rows of one query as it stands."""
        key = hashlib.sha256(f"{self.url}\n{query}".encode()).hexdigest()
        with span("sparql", endpoint=self.url, query=query) as step:
            kept = self._recall(key)
            step.note(cached=kept is not None)
            if kept is None:
                kept = self._ask(query)
                self._remember(key, kept)
            step.note(rows=len(kept))
        return kept

    def _ask(self, query: str) -> list[Row]:
        headers = {"Accept": "application/sparql-results+json", "User-Agent": "clew"}
        problem = ""
        for attempt in range(self.politeness.attempts):
            if attempt:
                time.sleep(min(30.0, 0.5 * 2**attempt) * (0.5 + random.random()))
            self._wait()
            try:
                reply = self._client.post(self.url, data={"query": query}, headers=headers)
            except httpx.HTTPError as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            if reply.status_code in RETRIED and not reply.text.startswith(UNSORTED):
                problem = f"status {reply.status_code}"
                continue
            if reply.status_code != 200:
                raise QueryRefusedError(f"{self.url} refused a query (status {reply.status_code}): {reply.text[:300]}")
            return _read(reply, self.url)
        raise StorageError(f"{self.url} did not answer after {self.politeness.attempts} attempts ({problem})")

    def _wait(self) -> None:
        """Keep to the agreed number of queries a second, over all threads."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + 1 / self.politeness.per_second
        if start > now:
            time.sleep(start - now)

    def _recall(self, key: str) -> list[Row] | None:
        with self._lock:
            oldest = time.time() - self.politeness.keep
            kept = self._kept.execute("SELECT value FROM answer WHERE key = ? AND made > ?", (key, oldest)).fetchone()
        return None if kept is None else list(json.loads(kept[0]))

    def _remember(self, key: str, rows: list[Row]) -> None:
        with self._lock:
            self._kept.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?)", (key, json.dumps(rows), time.time()))
            self._kept.commit()


def _close(client: httpx.Client, kept: sqlite3.Connection) -> None:
    client.close()
    kept.close()


def iri(text: str) -> Term:
    """An IRI as a term."""
    if not text or set(text) & set(' <>"{}|\\^`\n'):
        raise InputError(f"{text!r} is not an IRI")
    return f"<{text}>"


def literal(text: str, language: str = "") -> Term:
    """A text as a term."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"' + (f"@{language}" if language else "")


def content(term: Term) -> str:
    """An IRI without its brackets, a literal without quotes, language and type."""
    if term.startswith("<"):
        return term[1:-1]
    if not term.startswith('"'):
        return term
    return str(json.loads(term[: term.rindex('"') + 1]))


def _read(reply: httpx.Response, url: str) -> list[Row]:
    try:
        bindings = reply.json()["results"]["bindings"]
        return [{name: term for name, value in row.items() if (term := _term(value))} for row in bindings]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{url} is not a SPARQL endpoint: its reply is no result in JSON ({error})") from error


def _term(value: Mapping[str, Any]) -> Term | None:
    """Blank nodes have no name that a second query could use: they are left out."""
    if value["type"] == "bnode":
        return None
    if value["type"] == "uri":
        return f"<{value['value']}>"
    plain = literal(value["value"], value.get("xml:lang", ""))
    kind = value.get("datatype")
    return plain if not kind or kind.endswith("#string") else f"{plain}^^<{kind}>"


def _open_cache(file: Path | None) -> sqlite3.Connection:
    try:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(file or ":memory:", timeout=60, check_same_thread=False)
        connection.execute("CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, value TEXT, made REAL)")
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"cannot keep answers in {file}: {error}") from error
    return connection


def pages_of(terms: list[Term], size: int) -> Iterator[list[Term]]:
    """Terms in portions that fit into one VALUES clause."""
    for start in range(0, len(terms), size):
        yield terms[start : start + size]
