"""What a server serves, to whom, and how much of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from clew.core.errors import InputError
from clew.models.budget import Budget
from clew.server.access import Access
from clew.server.sources import Sources
from clew.server.team.team import Team
from clew.store.postgres import is_address

if TYPE_CHECKING:  # extras
    from clew.server.database import DatabaseStore
    from clew.server.team.provider import Provider

NAME = re.compile(r"[\w][\w.-]{0,99}")
Door = Access | Team
"""What a request meets first."""


@dataclass(frozen=True)
class Limits:
    """How much one client may ask for."""

    request_bytes: int = 256_000
    upload_bytes: int = 50_000_000
    per_minute: int = 600
    """Requests a minute for one known token, or else for one address; headers of proxies are not believed."""
    waiting: int = 256
    """Asks that may wait for a thread; more are turned away."""
    head_seconds: float = 15.0
    """How long the head of a request may take to come whole."""
    body_seconds: float = 30.0
    """How long its body may take."""
    upload_seconds: float = 600.0
    """How long an uploaded file may take."""
    reply_seconds: float = 60.0
    """How long a client may take nothing of a reply that waits for it."""
    most_files: int = 2000
    """Files in one document base."""


@dataclass(frozen=True)
class ServerSettings:
    """Bases by name, models by name, who may use them, and the limits."""

    bases: Mapping[str, str | Path]
    documents: dict[str, Path] = field(default_factory=dict)
    """Folders of document bases, which take uploads."""
    models: dict[str, str] = field(default_factory=dict)
    """Name → spec; a client names the model and never sees the spec."""
    access: Door = field(default_factory=Access)
    limits: Limits = Limits()
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """The names under which the server may be addressed: another one is a rebound DNS name."""
    provider: Provider | None = None
    """Where users may sign in instead."""
    runs: Path | None = None
    """Where finished runs are kept; None forgets them when the server stops."""
    evaluations: Path | None = None
    """Runs of `clew eval` that the page shows."""
    made: Path | None = None
    """Where bases lie that are made on the page."""
    state: DatabaseStore | None = None
    """Where all of this lies instead, for several servers."""
    sources: Sources = field(default_factory=Sources)
    """What bases can be made of on the page, besides uploads."""
    budget: Budget = field(default_factory=Budget)
    """A cap on what the models may cost as long as the server runs."""
    workers: int = 1
    """Processes that answer questions without a model; 1 answers them in threads of the server."""
    groups: tuple[str, ...] = ()
    """Everybody who asks sees what these groups may see, where a base is not for everybody."""
    log: Callable[[str], None] | None = None
    """Told every request in a line."""
    warm: bool = False
    """Whether indexes and the embedder are opened before the first question."""

    @property
    def team(self) -> Team | None:
        """The users, where there are some."""
        return self.access if isinstance(self.access, Team) else None


def named_bases(folders: Sequence[Path]) -> dict[str, Path]:
    """Bases by the names of their folders without `.kb`; two of one name are refused."""
    return _named([(folder.resolve().name.removesuffix(".kb"), folder) for folder in folders])


def named_places(places: Sequence[str]) -> dict[str, str | Path]:
    """Bases in folders by the names of these, and in databases by their own."""
    folders = named_bases([Path(place) for place in places if not is_address(place)])
    stored = [(unquote(place.partition("#")[2]) or "base", place) for place in places if is_address(place)]
    return _named([*folders.items(), *stored])


T = TypeVar("T", bound=str | Path)


def _named(given: Sequence[tuple[str, T]]) -> dict[str, T]:
    named: dict[str, T] = {}
    for name, place in given:
        if NAME.fullmatch(name) is None:
            shown = name if is_address(place) else place
            raise InputError(f"{shown}: a base is served under its name, which must be letters, digits, . _ -")
        if name in named:
            raise InputError(f"two bases are called {name!r}: rename one of them")
        named[name] = place
    return named


def named_models(given: Sequence[str]) -> dict[str, str]:
    """`fast=http://…#qwen` → {"fast": …}; without a name the model's own one stands in."""
    named = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not equals or ":" in name or "/" in name:
            name, spec = text.rpartition("#")[2].rpartition(":")[2].rpartition("/")[2], text
        named[name] = spec
    return {name: spec for name, spec in named.items() if spec != "none"}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
