"""Client for SPARQL 1.1 endpoints: paged, with retries, rate limits and a local cache."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from clew.core.errors import InputError, QueryRefusedError, StorageError
from clew.core.kept_texts import KeptTexts
from clew.core.limits import Pace, ReplyTooLongError, read_bounded
from clew.core.texts import parse_json, whole_text
from clew.core.trace import span

T = TypeVar("T")
Term = str
"""An RDF term as SPARQL writes it: <iri>, "text", "text"@en or "1999"^^<type>."""
RETRIED = frozenset({429, 500, 502, 503, 504})
REDIRECTED = frozenset({301, 302, 303, 307, 308})
CACHE_CAP = 500_000_000
"""Maximum size of cached results of all endpoints, in bytes."""
SHOWN = 300
"""Maximum length of a reply in an error, in characters."""
_NOT_IN_IRIS = {*' <>"{}|\\^`', *map(chr, range(0x21))}
_LANGUAGE = re.compile("[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
UNSORTED = "Virtuoso 22023"
"""Error of Virtuoso for too many rows to sort, which a retry would not change."""


@dataclass(frozen=True)
class Politeness:
    """Limits for requests to an endpoint."""

    timeout: float = 60.0
    """Time limit for a reply, from the request to its last byte, in seconds. A timeout is not retried."""
    attempts: int = 4
    seconds: float = 300.0
    """Time limit for a query with all its pages."""
    most_rows: int = 2_000_000
    """Maximum number of rows of a query with all its pages."""
    most_bytes: int = 200_000_000
    """Maximum size of an unpacked reply."""
    per_second: float = 20.0
    page: int = 10_000
    """Number of rows per page. A full page means that there may be more."""
    keep: float = 7 * 86_400.0
    """Lifetime of a cached result, in seconds."""


class ResultRow(dict[str, Term]):
    """A row of a result. A missing variable raises StorageError, since it is the endpoint's fault."""

    def __missing__(self, name: str) -> Term:
        raise StorageError(f"the endpoint's reply lacks the variable ?{name}")


class SparqlEndpoint:
    """Runs queries. Cached results are not requested again."""

    def __init__(self, url: str, cache: Path | None = None, politeness: Politeness | None = None) -> None:
        """Initialise. `cache` is a file that is created if missing. None caches results in memory."""
        import httpx  # imported late, since it takes a tenth of a second

        self.url = url
        self.politeness = politeness or Politeness()
        self._client = httpx.Client(timeout=self.politeness.timeout)
        self._pace = Pace(60 * self.politeness.per_second)
        self._kept = KeptTexts(cache, cap=CACHE_CAP)
        weakref.finalize(self, self._client.close)

    def rows(self, query: str, ordered_by: str) -> list[ResultRow]:
        """Return all rows of a SELECT query, page by page. `ordered_by` makes the pages consistent."""
        size = self.politeness.page
        found: list[ResultRow] = []
        last: list[ResultRow] = []
        end = time.monotonic() + self.politeness.seconds
        while True:
            ordered, part = f"{query}\nORDER BY {ordered_by}", f"\nLIMIT {size} OFFSET {len(found)}"
            try:
                page = self.page(ordered + part)
            except QueryRefusedError:
                if not found:
                    raise
                page = self.page(f"SELECT * WHERE {{ {{ {ordered} }} }}{part}")  # Virtuoso sorts few rows for a limit
            if page and page == last:
                raise StorageError(f"{self.url} returns the same page for every OFFSET, so not all rows can be read")
            found += page
            if len(page) != size:  # fewer rows: the last page, more rows: no paging
                return found
            if len(found) >= self.politeness.most_rows:
                raise StorageError(f"{self.url} returned more than {self.politeness.most_rows:,} rows for one query")
            if time.monotonic() > end:
                raise StorageError(f"{self.url} did not return all rows within {self.politeness.seconds:g} seconds")
            last = page

    def page(self, query: str) -> list[ResultRow]:
        """Return the rows of one query."""
        key = hashlib.sha256(f"{self.url}\n{query}".encode("utf-8", "surrogatepass")).hexdigest()
        with span("sparql", endpoint=self.url, query=query) as step:
            kept = self._kept.get([key], since=time.time() - self.politeness.keep).get(key)
            step.note(cached=kept is not None)
            rows = self._ask(query) if kept is None else [ResultRow(row) for row in parse_json(kept)]
            if kept is None:
                self._kept.put(key, json.dumps(rows), anew=True)
            step.note(rows=len(rows))
        return rows

    def _ask(self, query: str) -> list[ResultRow]:
        from httpx import HTTPError, InvalidURL, TimeoutException

        problem = ""
        for attempt in range(self.politeness.attempts):
            if attempt:
                time.sleep(min(30.0, 0.5 * 2**attempt) * (0.5 + random.random()))
            self._pace.wait()
            try:
                status, content = self._post(query)
            except (TimeoutException, TimeoutError) as error:
                problem = f"no whole reply within {self.politeness.timeout:g} seconds ({type(error).__name__})"
                break
            except (HTTPError, InvalidURL) as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            said = content[:SHOWN].decode("utf-8", "replace")
            if status in RETRIED and not said.startswith(UNSORTED):
                problem = f"status {status}"
                continue
            if status in REDIRECTED:
                raise StorageError(f"{self.url} redirects, which Clew does not follow: {said}")
            if status != 200:
                raise QueryRefusedError(f"{self.url} refused a query (status {status}): {said}")
            return _read(content, self.url)
        tried = f"after {attempt + 1} attempts" if self.politeness.attempts else "as it may not be asked"
        raise StorageError(f"{self.url} did not answer {tried} ({problem}): check the address, and that it is running")

    def _post(self, query: str) -> tuple[int, bytes]:
        """Return the status and content of a reply. Raise an error if it is too long or too slow."""
        headers = {"Accept": "application/sparql-results+json", "User-Agent": "clew"}
        with self._client.stream("POST", self.url, data={"query": query}, headers=headers) as reply:
            if reply.status_code in REDIRECTED:
                return reply.status_code, reply.headers.get("location", "").encode()
            try:
                content = read_bounded(reply.iter_bytes(), self.politeness.most_bytes, self.politeness.timeout)
            except ReplyTooLongError as failure:
                raise StorageError(f"{self.url}: {failure}") from None
        return reply.status_code, content


def iri(text: str) -> Term:
    """Convert an IRI to a term."""
    if not _is_iri(text):
        raise InputError(f"{text!r} is not an IRI")
    return f"<{text}>"


def literal(text: str, language: str = "") -> Term:
    """Convert a text to a term."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"' + (f"@{language}" if language else "")


def content(term: Term) -> str:
    """Return an IRI without brackets, or a literal without quotes, language and type."""
    if term.startswith("<"):
        return term[1:-1]
    if not term.startswith('"'):
        return term
    return str(json.loads(term[: term.rindex('"') + 1], strict=False))


def literal_parts(term: Term) -> tuple[str, str, str]:
    """Return the text of a literal, its language in lower case and its datatype, or empty strings."""
    after = term[term.rindex('"') + 1 :]
    return content(term), after[1:].lower() if after.startswith("@") else "", after[3:-1] if "^" in after else ""


def number(term: Term) -> int:
    """Parse a count from an endpoint."""
    try:
        return int(content(term))
    except ValueError:
        raise StorageError(f"the endpoint returned {content(term)[:SHOWN]!r} instead of a number") from None


def _read(reply: bytes, url: str) -> list[ResultRow]:
    try:
        bindings = parse_json(reply)["results"]["bindings"]
        return [ResultRow({name: term for name, value in row.items() if (term := _term(value))}) for row in bindings]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{url} is not a SPARQL endpoint: its reply is not a JSON result ({error})") from error


def _term(value: Mapping[str, Any]) -> Term | None:
    """Convert a binding to a term. Return None for blank nodes and invalid IRIs, which later queries cannot use."""
    text, kind = whole_text(value["value"]), value.get("datatype")
    if value["type"] == "uri":
        return f"<{text}>" if _is_iri(text) else None
    if value["type"] == "bnode":
        return None
    language = str(value.get("xml:lang", ""))
    plain = literal(text, language if _LANGUAGE.fullmatch(language) else "")
    return plain if not kind or kind.endswith("#string") or not _is_iri(kind) else f"{plain}^^<{kind}>"


def _is_iri(text: str) -> bool:
    return bool(text) and not set(text) & _NOT_IN_IRIS


def pages_of(items: list[T], size: int) -> Iterator[list[T]]:
    """Split a list into portions of a size, such as terms for one VALUES clause each."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
