"""What every request passes before anything else sees it (host, origin, size, rate), and what every reply carries."""

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
"""Needs no word of the page, which has none before; its origin is checked like that of all requests."""
CALLBACK = "/v1/oidc/callback"
"""Where a provider leads back to."""
OPENED = ("/", CALLBACK)
"""What a link on another site may open in a tab."""
HOST = re.compile(r"([^\s:\[\]/@]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
"""A host name or an address, and perhaps a port: all that the header may hold."""
MOST_CLIENTS = 10_000


@dataclass
class RateLimiter:
    """A bucket of tokens for each client, refilled steadily; clients not seen for longest are forgotten."""

    per_minute: int
    _buckets: OrderedDict[bytes, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, client: bytes, now: float) -> float:
        """Seconds until the next request is welcome; 0 where this one is."""
        allowed, last = self._buckets.pop(client, (float(self.per_minute), now))
        allowed = min(float(self.per_minute), allowed + (now - last) * self.per_minute / 60)
        taken = allowed >= 1
        self._buckets[client] = (allowed - taken, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - allowed) * 60 / self.per_minute


def network_of(address: str) -> str:
    """The address; of IPv6 the part that one customer is given whole, since its addresses cost nothing."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.is_loopback:
        return address
    return str(ip_network((int(parsed) >> 64 << 64, 64)))


class _BodyError(Exception):
    """Leaves the application, and reaches nobody."""


@dataclass
class _Body:
    """A body is counted as it comes, and must have come within some seconds."""

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
                return await receive()  # what comes after a body is the end of the connection, whenever that is
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
    """Refuses foreign hosts and origins, large bodies and floods; adds the security headers; counts."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.rate = RateLimiter(settings.limits.per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
                return  # what the application makes of half a body
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
                late = (408, f"the request did not come whole within {body.seconds:g} seconds")
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
            return 421, "the server is not addressed by this name: start it with --host-name", {}
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
            return 503, "who asks cannot be looked up: where users are kept does not answer", {"retry-after": "2"}
        wait = self.rate.wait(self._client(scope, grant), time.monotonic())
        if wait:
            return 429, "too many requests: wait a little", {"retry-after": str(int(wait) + 1)}
        if grant is not None and grant.csrf is not None and scope["method"] not in SAFE and scope["path"] != SIGN_IN:
            told = headers.get("x-csrf-token", "").encode()
            if not hmac.compare_digest(told, grant.csrf.encode()):
                return 403, "x-csrf-token is missing or out of date: GET /v1/me tells it", {}
        return None

    async def _grant(self, authorization: str | None, cookie: str | None) -> Grant | None:
        """What may be done; users are looked up in a thread, since a file or a database may be slow."""
        access = self.settings.access
        if self.settings.team is None or not (authorization or cookie):
            return access.grant(authorization, cookie)
        return await to_thread.run_sync(access.grant, authorization, cookie)

    def _client(self, scope: Scope, grant: Grant | None) -> bytes:
        """Who is counted: a known user or token, or else the address, so that inventing tokens wins nothing."""
        if grant is None or self.settings.access.is_open:
            return digest_of(network_of((scope.get("client") or ("", 0))[0]))
        return grant.digest

    def _most_bytes(self, scope: Scope) -> int:
        limits = self.settings.limits
        return limits.upload_bytes if _is_upload(scope) else limits.request_bytes


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "PUT" and "/documents/" in scope["path"]


def _is_foreign(origin: str | None, host: str) -> bool:
    """Whether an Origin header names another site than the Host header."""
    return origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())


def _line(scope: Scope, status: int, seconds: float) -> str:
    """A request in a line: when, from where, who, what; neither its query, which may be a question, nor a secret."""
    grant: Grant | None = scope.get("clew.grant")
    who = "-" if grant is None else grant.name
    path = scope["path"].encode("unicode_escape").decode()[:300]  # nobody writes lines of his own
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{now} {(scope.get('client') or ('-',))[0]} {who} {scope['method']} {path} {status} {seconds * 1000:.0f}ms"


async def _refuse(send: Send, status: int, reason: str, headers: dict[str, str]) -> None:
    body = json.dumps({"error": reason}).encode()
    sent = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
