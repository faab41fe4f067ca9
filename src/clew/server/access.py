"""Permissions per base. Tokens of the command line or of a file are compared by digest in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from clew.core.disk import refuse_readable
from clew.core.texts import read_toml

Role = Literal["reader", "editor", "admin"]
"""Readers ask and explore, editors also change documents, admins also manage permissions."""
ROLES: tuple[Role, ...] = get_args(Role)
EVERY_BASE = "*"
"""Name for all bases of a server. Its admin is the admin of the server."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Permissions of one client."""

    name: str
    digest: bytes
    roles: Mapping[str, Role] = field(default_factory=lambda: {EVERY_BASE: ROLES[0]})
    groups: tuple[str, ...] = ()
    """Groups of the client."""
    user: int | None = None
    """Id of the user in a team."""
    csrf: str | None = None
    """Value that requests with a cookie must repeat in a header. None without a cookie."""

    def allows(self, base: str, role: Role = "reader") -> bool:
        """Return whether the client has a role on a base."""
        given = [ROLES.index(self.roles[name]) for name in (base, EVERY_BASE) if name in self.roles]
        return max(given, default=-1) >= ROLES.index(role)


EVERYONE = Grant("everyone", b"", {EVERY_BASE: "admin"})


@dataclass(frozen=True)
class Access:
    """The tokens of a server. Without tokens, everyone who reaches it has full access."""

    grants: tuple[Grant, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether no token is required."""
        return not self.grants

    def grant(self, authorization: str | None, cookie: str | None = None) -> Grant | None:  # noqa: ARG002
        """Return the grant of an `Authorization: Bearer …` header, or None."""
        if self.is_open:
            return EVERYONE
        digest = digest_of(bearer(authorization))
        found = None
        for grant in self.grants:  # check all, so that timing reveals nothing
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        return found


def bearer(authorization: str | None) -> str:
    """Return the token of an `Authorization: Bearer …` header, or ""."""
    kind, _, token = (authorization or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def digest_of(token: str) -> bytes:
    """Return the SHA-256 digest of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class _Key(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = ""
    token: str = Field(min_length=16)
    bases: list[str] | None = None
    write: bool = False


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    key: list[_Key] = Field(min_length=1)


def read_keys(file: Path) -> Access:
    """Read tokens from a TOML file of `[[key]]` tables with `token`, `bases` (default: all) and `write`."""
    keys = read_toml(file, _Keys, "no file of keys").key
    refuse_readable(file, "keys")
    return Access(
        tuple(
            Grant(
                key.name or f"key {place}",
                digest_of(key.token),
                dict.fromkeys([EVERY_BASE] if key.bases is None else key.bases, "editor" if key.write else "reader"),
            )
            for place, key in enumerate(keys, start=1)
        )
    )
