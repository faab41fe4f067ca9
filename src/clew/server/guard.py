"""Checks for every request (host, origin, size, rate), and headers of every reply."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import re
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.core.errors import StorageError
from clew.server.access import Grant, digest_of
from clew.server.runs import Metrics
from clew.server.settings import ServerSettings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
SAFE = ("GET", "HEAD", "OPTIONS")
SIGN_IN = "/v1/sign-in"
"""Route without a CSRF token, since the page has none yet. Its origin is checked as usual."""
CALLBACK = "/v1/oidc/callback"
"""Route to which a provider redirects."""
OPENED = ("/", CALLBACK)
"""Routes that a link on another site may open."""
HOST = re.compile(r"([^\s:\[\]/@]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
"""A host name or address with an optional port, the only valid content of the header."""
MAX_CLIENTS = 10_000
"""Maximum number of clients to count, so that many addresses cannot fill the memory. The oldest is dropped."""


@dataclass
class RateLimiter:
    """A token bucket for each client, refilled steadily. The least recently seen clients are removed."""

    per_minute: int
    _buckets: OrderedDict[bytes, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, client: bytes, now: float) -> float:
        """Return the seconds until the next request is allowed, or 0 if this request is allowed."""
        allowed, last = self._buckets.pop(client, (float(self.per_minute), now))
        allowed = min(float(self.per_minute), allowed + (now - last) * self.per_minute / 60)
        taken = allowed >= 1
        self._buckets[client] = (allowed - taken, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - allowed) * 60 / self.per_minute


def network_of(address: str) -> str:
    """Return the address, or the /64 network of IPv6, since one customer owns a whole network."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.is_loopback:
        return address
    return str(ip_network((int(parsed) >> 64 << 64, 64)))


class _BodyError(Exception):
    """Ends the application's handling of a request body."""


@dataclass
class _Body:
    """Counts a request body, and limits its duration."""

    most: int
    seconds: float
    seen: int = 0
    is_late: bool = False
    is_refused: bool = False

    @property
    def is_too_large(self) -> bool:
        return self.seen > self.most

    @property
    def is_wrong(self) -> bool:
        return self.is_too_large or self.is_late

    def counted(self, receive: Receive) -> Receive:
        deadline = asyncio.get_running_loop().time() + self.seconds
        is_whole = False

        async def counting() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()  # after a body, only the end of the connection follows
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                self.is_late = True
                raise _BodyError from None
            is_whole = not message.get("more_body", False)
            self.seen += len(message.get("body", b""))
            if self.is_too_large:
                raise _BodyError
            return message

        return counting


class Guard:
    """Rejects foreign hosts and origins, large bodies and floods. Adds security headers and counts requests."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.rate = RateLimiter(settings.limits.per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        begun = time.perf_counter()
        status = 500
        limits = self.settings.limits
        body = _Body(self._most_bytes(scope), limits.upload_seconds if _is_upload(scope) else limits.body_seconds)

        async def sending(message: Message) -> None:
            nonlocal status
            if body.is_wrong and not body.is_refused:
                return  # reply of the application to an incomplete body
            if message["type"] == "http.response.start":
                status = message["status"]
                reply = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    reply.setdefault(name, value)
                if scope["path"].startswith("/v1"):
                    reply.setdefault("cache-control", "no-store")
            await send(message)

        try:
            refusal = await self._refusal(scope, headers)
            if refusal is not None:
                await _refuse(sending, *refusal)
                return
            with contextlib.suppress(_BodyError):
                await self.app(scope, body.counted(receive), sending)
            if body.is_wrong:
                body.is_refused = True
                late = (408, f"the request was not complete within {body.seconds:g} seconds")
                await _refuse(
                    sending,
                    *(late if body.is_late else (413, f"the request is larger than {body.most:,} bytes")),
                    {"connection": "close"},
                )
        finally:
            seconds = time.perf_counter() - begun
            self.metrics.request(scope, status, seconds)
            if self.settings.log is not None:
                self.settings.log(_line(scope, status, seconds))

    async def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, dict[str, str]] | None:
        if "transfer-encoding" in headers and ("content-length" in headers or scope["http_version"] == "1.0"):
            return 400, "the length of the body is ambiguous: send content-length or chunks", {"connection": "close"}
        host = HOST.fullmatch(headers.get("host", ""))
        if "*" not in self.settings.hosts and (host is None or host[1].lower() not in self.settings.hosts):
            return 421, "unknown host name: start the server with --host-name", {}
        is_link = scope["path"] in OPENED and scope["method"] in SAFE and headers.get("sec-fetch-mode") == "navigate"
        is_cross = headers.get("sec-fetch-site") == "cross-site" and not is_link
        if is_cross or _is_foreign(headers.get("origin"), headers.get("host", "")):
            return 403, "requests from other sites are refused", {}
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._most_bytes(scope):
            return 413, f"the request is larger than {self._most_bytes(scope):,} bytes", {}
        try:
            grant = scope["clew.grant"] = await self._grant(headers.get("authorization"), headers.get("cookie"))
        except StorageError:
            return 503, "users cannot be looked up: the user store does not answer", {"retry-after": "2"}
        wait = self.rate.wait(self._client(scope, grant), time.monotonic())
        if wait:
            return 429, "too many requests: try again later", {"retry-after": str(int(wait) + 1)}
        if grant is not None and grant.csrf is not None and scope["method"] not in SAFE and scope["path"] != SIGN_IN:
            token = headers.get("x-csrf-token", "").encode()
            if not hmac.compare_digest(token, grant.csrf.encode()):
                return 403, "x-csrf-token is missing or outdated: get it from /v1/me", {}
        return None

    async def _grant(self, authorization: str | None, cookie: str | None) -> Grant | None:
        """Return the grant of a request. Look up users in a thread, since a file or a database may be slow."""
        access = self.settings.access
        if self.settings.team is None or not (authorization or cookie):
            return access.grant(authorization, cookie)
        return await to_thread.run_sync(access.grant, authorization, cookie)

    def _client(self, scope: Scope, grant: Grant | None) -> bytes:
        """Return the rate limit key: a known user or token, or else the address, so that fake tokens do not help."""
        if grant is None or self.settings.access.is_open:
            return digest_of(network_of((scope.get("client") or ("", 0))[0]))
        return grant.digest

    def _most_bytes(self, scope: Scope) -> int:
        limits = self.settings.limits
        return limits.upload_bytes if _is_upload(scope) else limits.request_bytes


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "PUT" and "/documents/" in scope["path"]


def _is_foreign(origin: str | None, host: str) -> bool:
    """Return whether an Origin header names another site than the Host header."""
    return origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())


def _line(scope: Scope, status: int, seconds: float) -> str:
    """Format a log line: time, address, user, request. Without the query and secrets."""
    grant: Grant | None = scope.get("clew.grant")
    who = "-" if grant is None else grant.name
    path = scope["path"].encode("unicode_escape").decode()[:300]  # prevents forged lines
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{now} {(scope.get('client') or ('-',))[0]} {who} {scope['method']} {path} {status} {seconds * 1000:.0f}ms"


async def _refuse(send: Send, status: int, reason: str, headers: dict[str, str]) -> None:
    body = json.dumps({"error": reason}).encode()
    sent = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
