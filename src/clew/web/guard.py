"""What every request passes before anything else sees it (host, origin, size, rate), and what every reply carries."""

from __future__ import annotations

import contextlib
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.web.access import digest_of
from clew.web.runs import Metrics
from clew.web.settings import ServerSettings

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
MOST_CLIENTS = 10_000


class _TooLargeError(Exception):
    """Leaves the application, and reaches nobody."""


@dataclass
class _Body:
    """A body without a length is counted as it comes."""

    most: int
    seen: int = 0
    is_refused: bool = False

    @property
    def is_too_large(self) -> bool:
        return self.seen > self.most

    def counted(self, receive: Receive) -> Receive:
        async def counting() -> Message:
            message = await receive()
            self.seen += len(message.get("body", b""))
            if self.is_too_large:
                raise _TooLargeError
            return message

        return counting


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
        body = _Body(self._most_bytes(scope))

        async def sending(message: Message) -> None:
            nonlocal status
            if body.is_too_large and not body.is_refused:
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
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await _refuse(sending, *refusal)
                return
            with contextlib.suppress(_TooLargeError):
                await self.app(scope, body.counted(receive), sending)
            if body.is_too_large:
                body.is_refused = True
                await _refuse(sending, 413, f"the request is larger than {body.most:,} bytes", {})
        finally:
            self.metrics.request(scope, status, time.perf_counter() - begun)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, dict[str, str]] | None:
        host = headers.get("host", "").rsplit(":", 1)[0] if "]" not in headers.get("host", "") else "[::1]"
        if "*" not in self.settings.hosts and host.lower() not in self.settings.hosts:
            return 421, "the server is not addressed by this name: start it with --host-name", {}
        if headers.get("sec-fetch-site") == "cross-site" or _is_foreign(headers.get("origin"), headers.get("host", "")):
            return 403, "requests from other sites are refused", {}
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._most_bytes(scope):
            return 413, f"the request is larger than {self._most_bytes(scope):,} bytes", {}
        authorization = headers.get("authorization")
        address = (scope.get("client") or ("", 0))[0]
        client = digest_of(authorization if authorization and not self.settings.access.is_open else address)
        wait = self.rate.wait(client, time.monotonic())
        if wait:
            return 429, "too many requests: wait a little", {"retry-after": str(int(wait) + 1)}
        return None

    def _most_bytes(self, scope: Scope) -> int:
        limits = self.settings.limits
        is_upload = scope["method"] == "PUT" and "/documents/" in scope["path"]
        return limits.upload_bytes if is_upload else limits.request_bytes


def _is_foreign(origin: str | None, host: str) -> bool:
    return origin is not None and urlsplit(origin).netloc.lower() != host.lower()


async def _refuse(send: Send, status: int, reason: str, headers: dict[str, str]) -> None:
    body = json.dumps({"error": reason}).encode()
    sent = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
