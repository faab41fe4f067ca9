"""Settings of a server: bases, models, access and limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from clew.core.addresses import is_postgres
from clew.core.errors import InputError
from clew.models.budget import Budget
from clew.server.access import Access
from clew.server.managed import Sources
from clew.server.team.team import Team

if TYPE_CHECKING:  # extras
    from clew.server.database import DatabaseStore
    from clew.server.team.provider import Provider

NAME = re.compile(r"[\w][\w.-]{0,99}")
Door = Access | Team
"""Authentication: tokens (`Access`) or accounts (`Team`)."""


@dataclass(frozen=True)
class ClientLimits:
    """Limits for one client."""

    request_bytes: int = 256_000
    upload_bytes: int = 50_000_000
    per_minute: int = 600
    """Maximum requests per minute for one known token, or else for one address. Clew ignores proxy headers."""
    waiting: int = 256
    """Maximum queue length. Further questions fail with BusyError."""
    head_seconds: float = 15.0
    """Time limit for the head of a request."""
    body_seconds: float = 30.0
    """Time limit for the body of a request."""
    upload_seconds: float = 600.0
    """Time limit for an uploaded file."""
    reply_seconds: float = 60.0
    """Time limit without progress while a client reads a reply."""
    most_files: int = 2000
    """Maximum number of files in a document base."""


@dataclass(frozen=True)
class ServerSettings:
    """Bases and models by name, access and limits."""

    bases: Mapping[str, str | Path]
    documents: dict[str, Path] = field(default_factory=dict)
    """Folders of document bases, which accept uploads."""
    models: dict[str, str] = field(default_factory=dict)
    """Model specifications by name. Clients only see the names."""
    access: Door = field(default_factory=Access)
    limits: ClientLimits = ClientLimits()
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Allowed host names. Other names may be rebound DNS names."""
    provider: Provider | None = None
    """Login provider."""
    runs: Path | None = None
    """Folder for finished runs. None deletes them when the server stops."""
    evaluations: Path | None = None
    """Folder with runs of `clew eval` to show on the page."""
    made: Path | None = None
    """Folder for bases created on the page."""
    state: DatabaseStore | None = None
    """Database for all of this instead, for several servers."""
    sources: Sources = field(default_factory=Sources)
    """Sources for bases created on the page, in addition to uploads."""
    budget: Budget = field(default_factory=Budget)
    """Maximum cost of models while the server runs."""
    workers: int = 1
    """Number of processes for questions without a model. 1 uses threads of the server."""
    groups: tuple[str, ...] = ()
    """Groups of every client."""
    log: Callable[[str], None] | None = None
    """Callback with a line per request."""
    warm: bool = False
    """Whether to open indexes and the embedder before the first question."""

    @property
    def team(self) -> Team | None:
        """The users, if any."""
        return self.access if isinstance(self.access, Team) else None


def named_bases(folders: Sequence[Path]) -> dict[str, Path]:
    """Return bases by the names of their folders without `.kb`. Raise InputError for duplicate names."""
    return _named([(folder.resolve().name.removesuffix(".kb"), folder) for folder in folders])


def named_places(places: Sequence[str]) -> dict[str, str | Path]:
    """Return bases by name: folder names, and names in databases."""
    folders = named_bases([Path(place) for place in places if not is_postgres(place)])
    stored = [(unquote(place.partition("#")[2]) or "base", place) for place in places if is_postgres(place)]
    return _named([*folders.items(), *stored])


T = TypeVar("T", bound=str | Path)


def _named(given: Sequence[tuple[str, T]]) -> dict[str, T]:
    named: dict[str, T] = {}
    for name, place in given:
        if NAME.fullmatch(name) is None:
            shown = name if is_postgres(place) else place
            raise InputError(f"{shown}: the name of a base may contain only letters, digits, . _ -")
        if name in named:
            raise InputError(f"duplicate base name {name!r}: rename one of them")
        named[name] = place
    return named


def named_models(given: Sequence[str]) -> dict[str, str]:
    """Parse `fast=http://…#qwen` to {"fast": …}. Without a name, use the model's name."""
    named = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not equals or ":" in name or "/" in name:
            name, spec = text.rpartition("#")[2].rpartition(":")[2].rpartition("/")[2], text
        named[name] = spec
    return {name: spec for name, spec in named.items() if spec != "none"}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
