"""Login with a provider by OpenID Connect: the authorization code flow with PKCE, state and nonce.

https://openid.net/specs/openid-connect-core-1_0.html, section 3.1, and RFC 7636.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeGuard
from urllib.parse import urlencode, urlsplit

import httpx
import jwt
from pydantic import BaseModel, ConfigDict, Field

from clew.core.disk import refuse_readable
from clew.core.errors import InputError
from clew.core.limits import read_bounded
from clew.core.texts import parse_json, read_toml
from clew.server.access import ROLES, Role, digest_of
from clew.server.guard import CALLBACK
from clew.server.settings import is_loopback
from clew.server.store import Actor
from clew.server.team.team import LONGEST_LOGIN, ProviderError, Team

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures with a private key of the provider, not `none` and not with a secret that clients share."""
KEPT_SECONDS = 3600.0
"""Lifetime of the provider's cached addresses and keys, in seconds."""
SECONDS = 20.0
"""Time limit for a reply of the provider in seconds, since every login waits for it."""
MAX_BYTES = 1_000_000
"""Maximum size of a reply of the provider in bytes. Usual replies have some thousand."""
FAILURES = (httpx.HTTPError, TimeoutError, ValueError)
"""Exceptions if a provider does not answer correctly."""


class _Role(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    value: str
    role: Role
    base: str = "*"


class ProviderSettings(BaseModel):
    """Settings of `clew serve --oidc`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    issuer: str
    client_id: str = Field(min_length=1)
    client_secret: str | None = None
    address: str
    """Address of this server for browsers."""
    title: str = "OpenID Connect"
    """Name of the provider on the page."""
    scopes: tuple[str, ...] = ("profile",)
    name: str = "preferred_username"
    """Claim with the user name."""
    claim: str = "groups"
    """Claim that determines roles."""
    groups: bool = False
    """Whether the values of the claim are also groups of bases."""
    role: tuple[_Role, ...] = ()
    """Rules from claim values to roles. If empty, admins assign roles on the page."""


def read_provider(file: Path) -> ProviderSettings:
    """Read the provider from a TOML file that only its owner can read."""
    found = read_toml(file, ProviderSettings, "no file of a provider")
    for address in (found.issuer, found.address):
        _check_address(address)
    refuse_readable(file, "the secret of a client")
    return found


def _is_plain(value: object) -> TypeGuard[str]:
    """Return whether a claim is a text that every database can hold."""
    return isinstance(value, str) and value != "" and value.isprintable()


class Provider:
    """Signs in users of a team, safe for threads."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._known: tuple[float, Mapping[str, Any], jwt.PyJWKSet] | None = None

    def begin(self, team: Team) -> tuple[str, str]:
        """Start a login. Return the address for the browser, and the state that it must bring back."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        now = time.time()
        team.store.note("DELETE FROM login WHERE made < ?", now - LONGEST_LOGIN)
        team.store.note("INSERT INTO login VALUES (?, ?, ?, ?)", digest_of(state), nonce, verifier, now)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self._redirect,
            "scope": " ".join(("openid", *self.settings.scopes)),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._discovered()[0]['authorization_endpoint']}?{urlencode(asked)}", state

    def finish(self, team: Team, address: str, code: str, state: str, cookie: str) -> str:
        """Return the secret of a session for a browser that returned with this code."""
        if not state or not hmac.compare_digest(state.encode(), cookie.encode()):
            raise ProviderError("login state does not match: sign in again")
        kept = team.store.row("DELETE FROM login WHERE state = ? RETURNING *", digest_of(state))
        if kept is None or time.time() - kept["made"] > LONGEST_LOGIN:
            raise ProviderError("the login was already used or took too long: sign in again")
        claims = self._claims(self._exchanged(code, kept["verifier"]), kept["nonce"])
        name = claims.get(self.settings.name)
        if not isinstance(name, str):
            raise ProviderError(f"the provider's token lacks the claim {self.settings.name!r}")
        if not _is_plain(claims["sub"]):
            raise ProviderError("the provider's 'sub' is not plain text")
        values = claims.get(self.settings.claim, [])
        given = [value for value in (values if isinstance(values, list) else [values]) if _is_plain(value)]
        subject = f"{self.settings.issuer} {claims['sub']}"
        groups = given if self.settings.groups else []
        user = team.users.admit(Actor(name, address), subject, name, self._roles(given), groups)
        return team.sessions.begin(user)

    def _roles(self, given: list[str]) -> dict[str, Role] | None:
        """Return the highest role on each base, or None if the provider does not assign roles."""
        rules = sorted(self.settings.role, key=lambda rule: ROLES.index(rule.role))
        return {rule.base: rule.role for rule in rules if rule.value in given} if rules else None

    def _exchanged(self, code: str, verifier: str) -> str:
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "client_id": self.settings.client_id,
            "code_verifier": verifier,
        }
        if self.settings.client_secret is not None:
            sent["client_secret"] = self.settings.client_secret
        try:
            token = _told("POST", self._discovered()[0]["token_endpoint"], sent)["id_token"]
        except (*FAILURES, KeyError, TypeError):
            token = None
        if not isinstance(token, str):
            raise ProviderError("the provider returned no token for this code")
        return token

    def _claims(self, token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of a token. Verify signature, audience, issuer, time and nonce."""
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                self._key(jwt.get_unverified_header(token).get("kid")),
                algorithms=ALGORITHMS,
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=30.0,  # seconds between the clocks
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except jwt.PyJWTError as failure:
            raise ProviderError(f"invalid token of the provider: {failure}") from None
        audiences = found["aud"] if isinstance(found["aud"], list) else [found["aud"]]
        if len(audiences) > 1 and found.get("azp") != self.settings.client_id:
            raise ProviderError("invalid token of the provider: issued for another client")
        if not hmac.compare_digest(str(found.get("nonce", "")).encode(), nonce.encode()):
            raise ProviderError("invalid token of the provider: issued for another login")
        return found

    def _key(self, name: str | None) -> jwt.PyJWK:
        """Return the key with this id. If it is unknown, fetch the provider's keys again."""
        for is_again in (False, True):
            keys = [key for key in self._discovered(anew=is_again)[1].keys if key.key_id == name or name is None]
            if len(keys) == 1:
                return keys[0]
        raise ProviderError("invalid token of the provider: signed with an unknown key")

    def _discovered(self, *, anew: bool = False) -> tuple[Mapping[str, Any], jwt.PyJWKSet]:
        """Return the provider's addresses and keys."""
        with self._lock:
            if self._known is None or anew or time.monotonic() - self._known[0] > KEPT_SECONDS:
                issuer = self.settings.issuer.rstrip("/")
                try:
                    found = _told("GET", f"{issuer}/.well-known/openid-configuration")
                    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                        _check_address(found[name])
                    keys = jwt.PyJWKSet.from_dict(_told("GET", found["jwks_uri"]))
                except (*FAILURES, KeyError, TypeError, AttributeError, jwt.PyJWTError) as failure:
                    raise ProviderError(f"the provider does not answer correctly: {failure}") from None
                if found.get("issuer") != self.settings.issuer:
                    raise ProviderError("the provider has another issuer name")
                self._known = (time.monotonic(), found, keys)
            return self._known[1:]

    @property
    def _redirect(self) -> str:
        return self.settings.address.rstrip("/") + CALLBACK

    @property
    def scheme(self) -> Literal["http", "https"]:
        """URL scheme of this server for browsers."""
        return "https" if self.settings.address.startswith("https://") else "http"


def _told(method: str, address: str, form: Mapping[str, str] | None = None) -> Any:
    """Return the JSON of a reply. Raise one of FAILURES."""
    with httpx.stream(method, address, data=form, timeout=SECONDS) as reply:
        reply.raise_for_status()
        return parse_json(read_bounded(reply.iter_bytes(), MAX_BYTES, SECONDS))


def _check_address(address: str) -> None:
    """Raise InputError unless an address uses HTTPS or is on this machine."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise InputError(f"{address[:200]}: expected an address that starts with https://")
