"""Who may use which base: bearer tokens, compared by digest in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.core.errors import SourceError


@dataclass(frozen=True, slots=True)
class Grant:
    """What one token allows."""

    name: str
    digest: bytes
    bases: frozenset[str] | None = None
    """None means every base."""
    write: bool = False
    """Whether documents may be uploaded and deleted."""

    def allows(self, base: str) -> bool:
        """Whether this base may be seen."""
        return self.bases is None or base in self.bases


EVERYONE = Grant("everyone", b"", write=True)


@dataclass(frozen=True)
class Access:
    """The tokens of a server; without any, everyone who reaches it may do everything."""

    grants: tuple[Grant, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return not self.grants

    def grant(self, authorization: str | None) -> Grant | None:
        """The grant of an `Authorization: Bearer …` header; None where there is none."""
        if self.is_open:
            return EVERYONE
        kind, _, token = (authorization or "").partition(" ")
        digest = digest_of(token.strip()) if kind.lower() == "bearer" else b""
        found = None
        for grant in self.grants:  # all of them, so that time tells nothing
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        return found


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
    try:
        keys = _Keys.model_validate(tomllib.loads(file.read_text("utf-8"))).key
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise SourceError(f"cannot be read as TOML: {failure}", file=file) from None
    except ValidationError as failure:
        wrong = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in failure.errors())
        raise SourceError(f"no file of keys: {wrong}", file=file) from None
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise SourceError(f"holds keys and can be read by others: chmod 600 '{file}'", file=file)
    return Access(
        tuple(
            Grant(
                key.name or f"key {place}",
                digest_of(key.token),
                None if key.bases is None else frozenset(key.bases),
                key.write,
            )
            for place, key in enumerate(keys, start=1)
        )
    )
