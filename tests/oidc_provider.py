"""A small provider of OpenID Connect on loopback: discovery, keys, the code flow with PKCE, tokens signed by RSA."""

import base64
import functools
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "clew", "the secret of the client"


def made_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class TestProvider:
    """Whom it signs in, and how it lies where a test wants that."""

    __test__ = False
    address: str = ""
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "42", "preferred_username": "mia"})
    twist: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
    sign: Callable[[dict[str, Any], "TestProvider"], str] | None = None
    key: rsa.RSAPrivateKey = field(default_factory=functools.cache(made_key))
    key_name: str = "first"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    pieces: dict[str, Callable[[], Iterable[bytes]]] = field(default_factory=dict)
    """Bodies that are sent in place of the right ones, by path."""

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self.key, "RS256", headers={"kid": self.key_name})

    def discovery(self) -> dict[str, Any]:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return {"issuer": self.address, **{name: f"{self.address}/{place}" for name, place in places.items()}}

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": self.key_name, "use": "sig", "alg": "RS256"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is led back to."""
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, sent: dict[str, str]) -> dict[str, Any] | None:
        """A token for a code, once, for the client that has its verifier."""
        asked = self.codes.pop(sent.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or sent.get("client_secret") != SECRET
            or sent.get("redirect_uri") != asked["redirect_uri"]
            or challenge.rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return None
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        told = self.twist(claims | self.claims)
        return {"id_token": self.signed(told) if self.sign is None else self.sign(told, self), "token_type": "Bearer"}


@contextmanager
def provider_running() -> Iterator[TestProvider]:
    """A provider as long as the block."""
    provider = TestProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("location", provider.authorize(asked))
                self.end_headers()
                return
            if self._lies(parts.path):
                return
            self._tell(provider.keys() if parts.path == "/keys" else provider.discovery())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            if not self._lies("/token"):
                self._tell(provider.token({name: values[0] for name, values in parse_qs(body).items()}))

        def _lies(self, path: str) -> bool:
            if path not in provider.pieces:
                return False
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            with suppress(OSError):  # the other side has had enough
                for piece in provider.pieces[path]():
                    self.wfile.write(piece)
                    self.wfile.flush()
            return True

        def _tell(self, content: dict[str, Any] | None) -> None:
            body = json.dumps(content or {"error": "invalid_grant"}).encode()
            self.send_response(200 if content else 400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
