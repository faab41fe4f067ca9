"""The bases of a server, opened on demand and reopened after a rebuild."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method, parse_options, plain_options
from clew.api import Base
from clew.api import open as open_base
from clew.core.addresses import is_postgres
from clew.core.errors import InputError, NotFoundError
from clew.models.budget import Ledger
from clew.models.opening import open_model
from clew.models.protocol import LanguageModel
from clew.server.documents import DocumentFolder
from clew.server.managed import BaseDocuments, MadeBases, ManagedBases
from clew.server.settings import ServerSettings
from clew.server.store import Actor
from clew.server.wire import AskRequest
from clew.store.graph.manifest import MANIFEST
from clew.store.graph.visibility import Rules, rule_audience
from clew.store.open_base import OpenBase

if TYPE_CHECKING:  # an extra
    from clew.store.postgres.catalog import Watched

LARGEST_NUMBER = 1000
"""Maximum absolute value of a method's options, so that clients cannot request a billion candidates."""


@dataclass(frozen=True)
class Opened:
    """One state of a base, as visible to some groups."""

    state: float
    base: Base
    groups: frozenset[str]
    """All groups of the whole base."""
    rules: Rules
    """Visibility rules for documents."""
    restrictions: str
    """Fingerprint of the visibility of all content."""


@dataclass
class ServedBase:
    """A base by name, reopened after a rebuild, with its documents."""

    name: str
    place: str | Path
    """A folder, or the address of a database."""
    documents: BaseDocuments | None = None
    groups: tuple[str, ...] = ()
    """Groups of the reader."""
    about: Callable[[], dict[str, str]] | None = None
    """Title and description of a base created on the page. None for other bases."""
    _lock: Lock = field(default_factory=Lock, repr=False)
    _opened: Opened | None = field(default=None, repr=False)
    _views: dict[tuple[str, ...], ServedBase] = field(default_factory=dict, repr=False)

    @property
    def runs_name(self) -> str:
        """Name under which finished runs are stored.

        A run of a base with groups is only for readers in the same groups, while the base hides the same content.
        """
        opened = self.opened()
        if not opened.base.is_view:
            return self.name
        visible = json.dumps([sorted(opened.groups.intersection(self.groups)), opened.restrictions])
        return f"{self.name}~{hashlib.sha256(visible.encode()).hexdigest()[:16]}"

    def for_groups(self, groups: tuple[str, ...]) -> ServedBase:
        """Return the base for a reader who also belongs to these groups."""
        wanted = tuple(sorted({*self.groups, *groups}))
        if wanted == tuple(sorted(self.groups)):
            return self
        with self._lock:
            if wanted not in self._views:
                self._views[wanted] = ServedBase(self.name, self.place, self.documents, wanted, self.about)
            return self._views[wanted]

    @property
    def is_managed(self) -> bool:
        """Whether the base was created on the page."""
        return self.about is not None

    @property
    def is_opened(self) -> bool:
        """Whether the base is already open."""
        return self._opened is not None

    @property
    def is_ready(self) -> bool:
        """Whether there is content to ask about."""
        return self._state() is not None

    def base(self) -> Base:
        """Return the current generation, without the content that the reader may not see.

        Answers come from one state, even if the base is rewritten meanwhile.
        """
        return self.opened().base

    def sees_everything(self) -> bool:
        """Return whether the reader can see everything in the base."""
        try:
            return self.opened().groups.issubset(self.groups)
        except NotFoundError:  # empty, or without content visible to the reader
            return not self.is_ready

    def sees_file(self, name: str) -> bool:
        """Return whether the groups may see a document of this name, by the rules of the base."""
        try:
            groups = rule_audience(name, self.opened().rules)
        except NotFoundError:
            return not self.is_ready
        return not groups or not groups.isdisjoint(self.groups)

    def opened(self) -> Opened:
        """Open the current generation unless it is already open."""
        state = self._state()
        if state is None:
            raise NotFoundError(f"the base {self.name!r} is empty: upload documents first")
        with self._lock:
            if self._opened is None or self._opened.state != state:
                whole = open_base(self.place)
                known = whole.tools.described
                view = whole.for_groups(self.groups)
                self._opened = Opened(state, view, known.groups, known.visibility.rules, known.restrictions)
            return self._opened

    def base_if_ready(self) -> Base | None:
        """Return the current generation, or None if there is no content, even if it is deleted meanwhile."""
        try:
            return self.base()
        except NotFoundError:
            return None

    def _state(self) -> float | None:
        """Return a value that changes with a rebuild: the time of the manifest, or the generation number."""
        if self._watched is not None:
            return self._watched.newest()
        try:
            return (Path(self.place) / MANIFEST).stat().st_mtime
        except FileNotFoundError:
            return None

    @cached_property
    def _watched(self) -> Watched | None:
        if not is_postgres(self.place):
            return None
        from clew.store.postgres.catalog import Watched

        return Watched(str(self.place))

    def warm(self) -> None:
        """Open everything that questions need, before the first question."""
        base = self.base_if_ready()
        if base is not None:
            tools = base.tools
            _ = tools.names, tools.lexical, tools.vectors


class Addresses:
    """Addresses of model servers, which are removed from all output.

    They come from the specifications of models and from the names of opened models.
    """

    def __init__(self, specs: Iterable[str]) -> None:
        self._places: set[str] = set()
        for spec in specs:
            self.add(spec.partition("#")[0])

    def add(self, address: str) -> None:
        """Hide this address from now on: a URL, or the part after the @ in a model's name."""
        parts = urlsplit(address if "://" in address else f"//{address}")
        if ("://" in address or "/" in address) and parts.netloc:
            host = parts.netloc.rpartition("@")[2]
            if not host:  # a database on a local socket
                return
            self._places |= {host, host.rpartition(":")[0] or host} if host.rpartition(":")[2].isdigit() else {host}

    def hidden(self, value: Any) -> Any:
        """Remove addresses from all texts in a value."""
        if not self._places:
            return value
        if isinstance(value, str):
            return self._pattern().sub("its server", value)
        if isinstance(value, dict):
            return {name: self.hidden(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.hidden(part) for part in value]
        return value

    def _pattern(self) -> re.Pattern[str]:
        longest_first = "|".join(map(re.escape, sorted(self._places, key=len, reverse=True)))
        return re.compile(rf"""(?:https?://)?(?:[^\s/@"']*@)?(?:{longest_first})(?![\w-])(?:[:/][^\s"',;)]*)?""", re.I)


class Served:
    """All bases and models of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.bases = {name: ServedBase(name, place, None, settings.groups) for name, place in settings.bases.items()}
        for name, folder in settings.documents.items():
            if name in self.bases:
                raise InputError(f"duplicate base name {name!r}: rename the folder {folder}")
            documents = DocumentFolder(folder, settings.limits.most_files)
            self.bases[name] = ServedBase(name, documents.base, documents, settings.groups)
        self._lock = Lock()
        self.managed = _made(settings)
        for name, made in ({} if self.managed is None else self.managed.all()).items():
            if settings.state is None or name not in self.bases:
                self.add(name, made)
        databases = [str(place) for place in settings.bases.values() if is_postgres(place)]
        databases += [] if settings.state is None else [settings.state.address.url]
        self.addresses = Addresses((*settings.models.values(), *databases))
        self._ledger = Ledger(settings.budget)
        self._models: dict[str, LanguageModel | None] = {"none": None}
        self._chosen: dict[str, str] = {}

    def add(self, name: str, documents: BaseDocuments) -> ServedBase:
        """Serve a base created on the page."""
        assert self.managed is not None
        with self._lock:
            known = self.bases.get(name)
            if known is not None and known.place == documents.base:
                return known  # `refresh` was faster
            if known is not None:
                raise InputError(f"duplicate base name {name!r}: rename the folder {documents.base}")
            about = partial(self.managed.about, name)
            base = ServedBase(name, documents.base, documents, self.settings.groups, about)
            self.bases = {**self.bases, name: base}  # another thread may iterate over the old mapping
            return base

    def refresh(self) -> None:
        """Update the bases created or deleted by other servers. Bases given to this server take precedence."""
        if self.managed is None or self.settings.state is None:
            return
        made = self.managed.all()
        for base in self.bases.values():
            if base.is_managed and (base.name not in made or made[base.name].base != base.place):
                self.remove(base.name)
        for name in made.keys() - self.bases.keys():
            self.add(name, made[name])

    def remove(self, name: str) -> None:
        """Stop serving a base."""
        with self._lock:
            self.bases = {other: base for other, base in self.bases.items() if other != name}

    def document_folders(self) -> list[BaseDocuments]:
        """Return the documents of all bases that accept documents."""
        return [base.documents for base in self.bases.values() if base.documents is not None]

    def default_model(self, base: str) -> str:
        """Return the default model of a base, or "none" if the server no longer has it."""
        team = self.settings.team
        if not self.settings.models:
            return "none"
        chosen = self._chosen.get(base) if team is None else team.store.setting(f"model of {base}")
        return chosen if chosen in self.settings.models else "none"

    def choose_model(self, actor: Actor, base: str, name: str) -> None:
        """Set the default model. Without users, the setting lasts until the server stops."""
        self.model(name)
        if self.settings.team is None:
            self._chosen[base] = name
        else:
            self.settings.team.store.set_setting(actor, f"model of {base}", name)

    def settled(self, base: ServedBase, request: AskRequest) -> AskRequest:
        """Return the request with a model name."""
        return request if request.model else request.model_copy(update={"model": self.default_model(base.name)})

    def model(self, name: str) -> LanguageModel | None:
        """Return a model by its name on this server. Addresses in requests are not accepted."""
        if name != "none" and name not in self.settings.models:
            there = ", ".join(["none", *self.settings.models])
            raise NotFoundError(f"no model {name[:100]!r}: use {there}")
        with self._lock:
            if name not in self._models:
                model = open_model(self.settings.models[name], ledger=self._ledger)
                self.addresses.add("" if model is None else model.name.partition("@")[2])
                self._models[name] = model
            return self._models[name]


def _made(settings: ServerSettings) -> MadeBases | None:
    """Return the store for bases created on the page, if any."""
    if settings.state is not None:
        from clew.server.shared_bases import SharedBases  # an extra

        return SharedBases(settings.state, settings.limits.most_files)
    return None if settings.made is None else ManagedBases(settings.made, settings.limits.most_files)


def checked_method(name: str | None, given: Mapping[str, str | int | float | bool]) -> Method:
    """Return the method of a request. Clients cannot set options that could name a file."""
    kind = catalog.method_class(name or catalog.DEFAULT_METHOD)
    allowed = plain_options(kind)
    for option in given:
        if option not in allowed:
            there = ", ".join(sorted(allowed)) or "none"
            raise InputError(f"{kind.name} has no option {option!r} here: use {there}")
    parsed = parse_options(kind, {option: str(value) for option, value in given.items()})
    for option, value in parsed.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int | float) and not abs(number) <= LARGEST_NUMBER for number in numbers):
            raise InputError(f"{kind.name}: {option} must be between -{LARGEST_NUMBER} and {LARGEST_NUMBER}")
    return kind(**parsed)


def runnable(tools: OpenBase, models: Collection[str]) -> tuple[str, ...]:
    """Return the methods for this base: passages need documents, queries and paths need a graph."""
    schema = tools.kb.schema
    of_graphs, of_texts = ("focus", "paths", "subgraph_reranking"), ("knowledge_graph_prompting",)
    left_out = of_graphs if schema.holds_passages else of_texts if schema.relations else (*of_graphs, *of_texts)
    return tuple(
        name
        for name, kind in ((name, catalog.method_class(name)) for name in catalog.method_names())
        if kind.__module__.removeprefix("clew.answering.methods.").split(".")[0] not in left_out
        and (models or not kind.needs_model)
    )
