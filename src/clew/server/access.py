"""Who may do what with which base; tokens of the command line or of a file, compared by digest in constant time."""

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
"""Ask and look around; change documents, too; say who else may, too."""
ROLES: tuple[Role, ...] = get_args(Role)
EVERY_BASE = "*"
"""Stands for all bases of a server; its admin is the admin of the server."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one client may do."""

    name: str
    digest: bytes
    roles: Mapping[str, Role] = field(default_factory=lambda: {EVERY_BASE: ROLES[0]})
    groups: tuple[str, ...] = ()
    """Groups of a base that the client belongs to."""
    user: int | None = None
    """The user of a team."""
    csrf: str | None = None
    """What a request by cookie must repeat in a header; None where there is no cookie."""

    def allows(self, base: str, role: Role = "reader") -> bool:
        """Whether this much may be done with a base."""
        given = [ROLES.index(self.roles[name]) for name in (base, EVERY_BASE) if name in self.roles]
        return max(given, default=-1) >= ROLES.index(role)


EVERYONE = Grant("everyone", b"", {EVERY_BASE: "admin"})


@dataclass(frozen=True)
class Access:
    """The tokens of a server; without any, everyone who reaches it may do everything."""

    grants: tuple[Grant, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return not self.grants

    def grant(self, authorization: str | None, cookie: str | None = None) -> Grant | None:  # noqa: ARG002
        """The grant of an `Authorization: Bearer …` header; None where there is none."""
        if self.is_open:
            return EVERYONE
        digest = digest_of(bearer(authorization))
        found = None
        for grant in self.grants:  # all of them, so that time tells nothing
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        return found


def bearer(authorization: str | None) -> str:
    """The token of an `Authorization: Bearer …` header; empty where there is none."""
    kind, _, token = (authorization or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
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
    """Tokens from a TOML file of `[[key]]` tables with `token`, `bases` (all where left out) and `write`."""
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
