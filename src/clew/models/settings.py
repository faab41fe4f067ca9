"""Settings from the environment and the user's configuration file. The only module that reads keys.

OPENAI_API_KEY     key for `openai:` models, sent only to OpenAI (or OPENAI_BASE_URL)
OPENAI_BASE_URL    another server for `openai:` models
CLEW_MODEL_KEY     key for `--model http…#NAME`
CLEW_MODEL_SECONDS time limit of a reply, default 120. `seconds` of a named model overrides it
OLLAMA_HOST        address of Ollama, default 127.0.0.1:11434. LMSTUDIO_HOST: of LM Studio, default 127.0.0.1:1234
CLEW_EMBEDDER      embedder that bases may use: `openai:NAME`, `http…#NAME` or a folder
CLEW_EMBEDDER_KEY  key for `--embedder http…#NAME`
CLEW_VECTORS       vector store to use instead of each base's folder: `qdrant+http://HOST:6333`
NEO4J_USERNAME     user of a graph database at `bolt://…` or `neo4j://…`, default neo4j, with NEO4J_PASSWORD
CLEW_CONFIG        configuration file, default ~/.config/clew/config.toml
CLEW_CACHE         folder of the reply cache, default ~/.cache/clew

The configuration file may contain keys. Then only its owner may be able to read it:

    embedders = ["openai:text-embedding-3-small", "http://127.0.0.1:8080/v1#nomic"]     # that bases may use
    [keys]
    openai = "…"
    "https://models.example.org/v1" = "…"
    "bolt://graph.example.org:7687" = "…"
    [models.fast]
    spec = "https://models.example.org/v1#qwen"
    context_tokens = 32768
    concurrency = 16
    seconds = 900          # time limit of a reply
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final
from urllib.parse import quote, urlsplit

from clew.core.errors import InputError

OPENAI_URL = "https://api.openai.com/v1"


@final
class Secret:
    """A key that prints as dots in logs, traces and errors."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str = "") -> None:
        self._text = text
        self.source = source
        """Origin of the key, for errors."""

    def reveal(self) -> str:
        """Return the key, only for use in a request."""
        return self._text

    def hide_in(self, message: str) -> str:
        """Replace the key in a message by dots."""
        return message.replace(self._text, "•••") if self._text else message

    def hide_in_part(self, text: str) -> str:
        """Replace the key in a partial text by dots, and hold back a suffix that may be the start of the key."""
        hidden = self.hide_in(text)
        begun = (size for size in range(min(len(self._text), len(hidden)), 0, -1) if hidden.endswith(self._text[:size]))
        return hidden[: len(hidden) - next(begun, 0)]

    def __repr__(self) -> str:
        return "Secret(•••)"

    def __reduce__(self) -> str:
        raise InputError("a key is never written to disk")


NO_KEY = Secret("")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model named by the user, with settings that its spec does not contain."""

    spec: str
    context_tokens: int | None = None
    concurrency: int | None = None
    per_minute: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Settings:
    """Model settings from the environment and the configuration file."""

    models: Mapping[str, NamedModel] = field(default_factory=dict)
    openai_url: str = OPENAI_URL
    reply_seconds: float = 120.0
    local_urls: Mapping[str, str] = field(default_factory=lambda: addresses({}))
    """Base URLs of Ollama and LM Studio."""
    cache_folder: Path = Path()
    config_file: Path = Path()
    _keys: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    embedders: frozenset[str] = frozenset()
    """Embedders that the user allows bases to use, in addition to the bundled embedders."""
    vectors: str = ""
    """Address of a vector store. Empty if each base stores its vectors."""
    _endpoint_key: Secret = field(default=NO_KEY, repr=False)
    _embedder_key: Secret = field(default=NO_KEY, repr=False)
    graph_user: str = "neo4j"
    _graph_password: Secret = field(default=NO_KEY, repr=False)

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Load the settings. Raise SourceError if the file is invalid, or contains keys and other users can read it."""
        given = os.environ if environment is None else environment
        home = Path(given.get("HOME") or Path.home())
        config = Path(given.get("XDG_CONFIG_HOME") or home / ".config") / "clew" / "config.toml"
        config = Path(given.get("CLEW_CONFIG") or config)
        cache = Path(given.get("XDG_CACHE_HOME") or home / ".cache") / "clew"
        models: dict[str, NamedModel] = {}
        keys: dict[str, Secret] = {}
        embedders: list[str] = []
        if config.is_file():
            from clew.models.config_file import read_config  # importing pydantic is slow

            file = read_config(config)
            models = {name: NamedModel(**row.model_dump()) for name, row in file.models.items()}
            keys = {name.rstrip("/"): Secret(key, f"{config}, [keys] {name}") for name, key in file.keys.items()}
            embedders = file.embedders
        if given.get("OPENAI_API_KEY"):
            keys["openai"] = _secret(given, "OPENAI_API_KEY")
        return cls(
            models=models,
            openai_url=(given.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/"),
            reply_seconds=_seconds(given, "CLEW_MODEL_SECONDS"),
            local_urls=addresses(given),
            cache_folder=Path(given.get("CLEW_CACHE") or cache),
            config_file=config,
            _keys=keys,
            embedders=frozenset((*embedders, given.get("CLEW_EMBEDDER", "").strip())) - {""},
            vectors=given.get("CLEW_VECTORS", "").strip(),
            _endpoint_key=_secret(given, "CLEW_MODEL_KEY"),
            _embedder_key=_secret(given, "CLEW_EMBEDDER_KEY"),
            graph_user=given.get("NEO4J_USERNAME") or "neo4j",
            _graph_password=_secret(given, "NEO4J_PASSWORD"),
        )

    @property
    def price_file(self) -> Path:
        """The user's price table, which may be missing."""
        return self.config_file.with_name("prices.toml")

    def openai_key(self) -> Secret:
        """Return the key for `openai:` models."""
        return self._keys.get("openai", NO_KEY)

    def endpoint_key(self, base_url: str) -> Secret:
        """Return the key stored under the model server's URL or host, else CLEW_MODEL_KEY, but not OpenAI's key."""
        return self._filed_key(base_url) or self._endpoint_key

    def local_key(self, base_url: str) -> Secret:
        """Return the key stored under the URL or host of Ollama or LM Studio, which usually need none."""
        return self._filed_key(base_url) or NO_KEY

    def embedder_key(self, base_url: str) -> Secret:
        """Return the key stored under the embedding server's URL or host, else CLEW_EMBEDDER_KEY."""
        return self._filed_key(base_url) or self._embedder_key

    def with_login(self, address: str) -> str:
        """Return the address of a graph database with user and password. Do not display the result.

        A password in the address takes precedence, then the password stored under the address, then NEO4J_PASSWORD.
        """
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        secret = self._filed_key(parts._replace(netloc=host).geturl()) or self._graph_password
        if parts.password is not None or not secret.reveal():
            return address
        login = f"{parts.username or quote(self.graph_user, safe='')}:{quote(secret.reveal(), safe='')}"
        return parts._replace(netloc=f"{login}@{host}").geturl()

    def _filed_key(self, base_url: str) -> Secret | None:
        parts = urlsplit(base_url)
        names = (base_url.rstrip("/"), parts.netloc, parts.hostname or "")
        return next((self._keys[name] for name in names if name and name in self._keys), None)


def _secret(environment: Mapping[str, str], name: str) -> Secret:
    key = environment.get(name, "").strip()
    return Secret(key, name) if key else NO_KEY


def _seconds(environment: Mapping[str, str], name: str) -> float:
    text = environment.get(name, "").strip() or "120"
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise InputError(f"{name}={text}: expected a number of seconds, such as 120")
    return seconds


PORTS = {"ollama": 11434, "lmstudio": 1234}
HOSTS = {"ollama": "OLLAMA_HOST", "lmstudio": "LMSTUDIO_HOST"}
START = {"ollama": "`ollama serve`", "lmstudio": "`lms server start`"}
"""Command that starts each server."""
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared, not bound


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the base URL of each local server, on loopback unless the environment names a host."""
    return {name: base_url(environment.get(HOSTS[name], "").strip(), port) for name, port in PORTS.items()}


def base_url(host: str, port: int) -> str:
    """Build a base URL from `HOST`, `HOST:PORT`, `:PORT` or a URL, as Ollama does. 0.0.0.0 and :: mean loopback."""
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        name = _ANY.get(parts.hostname or "", parts.hostname or "")
        secure = parts.scheme == "https"
        number = parts.port or (443 if secure and "://" in host else port)
    except ValueError as wrong:
        raise InputError(f"{host!r} is not a server address: expected HOST:PORT ({wrong})") from None
    shown = f"[{name}]" if ":" in name else name
    return f"{'https' if secure else 'http'}://{shown}:{number}{parts.path.rstrip('/').removesuffix('/v1')}/v1"
