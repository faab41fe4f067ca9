"""From a spec on the command line to a model with its wrappers: the one table of kinds of models.

none                            no model (the default)
openai:gpt-4o-mini              OpenAI's API, key in OPENAI_API_KEY
http://127.0.0.1:8080/v1#qwen   any OpenAI-compatible endpoint, model name after the #
gguf:/path/file.gguf            a local file through llama.cpp (extra `local`)
hf:FOLDER                       a folder for the transformers library (torch and transformers installed)
batch:DIR                       collects requests in a folder and reads replies from it; batch:DIR#NAME names the model
scripted:FILE                   replies from a file, for tests and trials
NAME                            a model named in the configuration file
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from clew.core.errors import ClewError, InputError
from clew.models.batch import BatchFolder
from clew.models.local import GgufModel, HuggingFaceModel
from clew.models.openai_chat import OpenAIChat
from clew.models.prices import FREE, EstimatingModel, Price, PriceTable
from clew.models.protocol import LanguageModel
from clew.models.reply_store import ReplyStore
from clew.models.scripted import ScriptedModel
from clew.models.settings import NO_KEY, NamedModel, Settings
from clew.models.wrappers import Budgeted, Cached, Ledger, Limited, Retrying, Traced

REPLY_SECONDS = 300.0
EXPECTED = (
    "none, openai:NAME, http://HOST/v1#NAME, gguf:FILE, hf:FOLDER, batch:DIR, scripted:FILE or a name from the "
    "configuration file"
)


@dataclass(frozen=True)
class Adapter:
    """A bare model and how it likes to be called."""

    model: LanguageModel
    concurrency: int = 1
    batch: int = 1
    price: Price = FREE
    remote: bool = False
    """Whether somebody may send a bill."""


def open_model(
    spec: str | None,
    *,
    ledger: Ledger | None = None,
    cache: bool = True,
    concurrency: int | None = None,
    per_minute: float | None = None,
    settings: Settings | None = None,
) -> LanguageModel | None:
    """The model a spec names, traced, cached, budgeted, limited and retrying; None for `none`.

    Keep the `ledger` to see afterwards what was spent and whether the budget cut anything short.
    """
    if spec is None or spec.strip() in ("", "none"):
        return None
    settings = settings or Settings.load()
    named = settings.models.get(spec, NamedModel(spec))
    adapter = open_adapter(named, settings)
    ledger = ledger or Ledger()
    if ledger.budget.dollars is not None and adapter.remote and adapter.price == FREE:
        raise InputError(
            f"a budget in dollars, but no price for {named.spec!r}: add it to {settings.price_file} "
            "(in the form of clew/models/prices.toml), or give the budget in tokens or calls"
        )
    if named.spec.startswith("batch:"):  # its folder is cache and queue at once
        return Traced(adapter.model)
    model: LanguageModel = Retrying(adapter.model)
    model = Limited(
        model,
        concurrency=concurrency or named.concurrency or adapter.concurrency,
        per_minute=per_minute or named.per_minute,
        batch=adapter.batch,
    )
    model = Budgeted(model, ledger)
    if cache and not named.spec.startswith("scripted:"):
        model = Cached(model, ReplyStore(settings.cache_folder / "replies.sqlite"))
    return Traced(model)


def open_estimating(spec: str, *, settings: Settings | None = None) -> EstimatingModel:
    """A stand-in for the model a spec names that counts what a run would ask and pay."""
    settings = settings or Settings.load()
    adapter = open_adapter(settings.models.get(spec, NamedModel(spec)), settings)
    store = settings.cache_folder / "replies.sqlite"
    return EstimatingModel(
        adapter.model.name,
        price=adapter.price,
        context_tokens=adapter.model.context_tokens,
        store=ReplyStore(store) if store.is_file() else None,
    )


def open_adapter(named: NamedModel, settings: Settings) -> Adapter:
    """The bare model of a spec."""
    for prefix, opened in _KINDS.items():
        if named.spec.startswith(prefix):
            return opened(named, settings)
    raise InputError(f"no model {named.spec!r}: expected {EXPECTED}")


def _openai(named: NamedModel, settings: Settings) -> Adapter:
    model = named.spec.removeprefix("openai:")
    price = PriceTable.load(settings.price_file).of(model)
    chat = OpenAIChat(
        settings.openai_url,
        model,
        key=settings.openai_key(),
        price=price,
        context_tokens=named.context_tokens or price.context or 8192,
        seconds=named.seconds or REPLY_SECONDS,
        idle_seconds=named.seconds or REPLY_SECONDS,
    )
    return Adapter(chat, concurrency=8, price=price, remote=True)


def _http(named: NamedModel, settings: Settings) -> Adapter:
    base_url, _, model = named.spec.partition("#")
    parts = urlsplit(base_url)
    if not parts.hostname or not model:
        raise InputError(
            f"{named.spec!r}: expected a URL and, after #, the model's name: http://127.0.0.1:8080/v1#qwen"
        )
    if parts.username or parts.password:
        raise InputError("a URL with a user name or password in it: put the key into CLEW_MODEL_KEY instead")
    price = PriceTable.load(settings.price_file).of(model)
    chat = OpenAIChat(
        base_url.rstrip("/"),
        model,
        key=settings.endpoint_key(base_url),
        price=price,
        context_tokens=named.context_tokens or price.context or 8192,
        seconds=named.seconds or REPLY_SECONDS,
        idle_seconds=named.seconds or REPLY_SECONDS,
    )
    return Adapter(chat, concurrency=8, price=price, remote=not _is_local(parts.hostname))


def _gguf(named: NamedModel, _: Settings) -> Adapter:
    file = Path(named.spec.removeprefix("gguf:")).expanduser()
    return Adapter(GgufModel(file, context_tokens=named.context_tokens or 8192))


def _huggingface(named: NamedModel, _: Settings) -> Adapter:
    spec = named.spec.removeprefix("hf:")
    return Adapter(HuggingFaceModel(spec, context_tokens=named.context_tokens or 8192), batch=64)


def _batch(named: NamedModel, settings: Settings) -> Adapter:
    folder, _, model = named.spec.removeprefix("batch:").partition("#")
    prices = PriceTable.load(settings.price_file)
    price = prices.of(model).discounted(prices.batch_discount)
    context = named.context_tokens or price.context or 8192
    return Adapter(BatchFolder(Path(folder), model or "local", price=price, context_tokens=context), price=price)


def _scripted(named: NamedModel, _: Settings) -> Adapter:
    return Adapter(ScriptedModel.load(Path(named.spec.removeprefix("scripted:"))))


def _is_local(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith(".local")


_KINDS: dict[str, Callable[[NamedModel, Settings], Adapter]] = {
    "openai:": _openai,
    "http://": _http,
    "https://": _http,
    "gguf:": _gguf,
    "hf:": _huggingface,
    "batch:": _batch,
    "scripted:": _scripted,
}


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found out about a model without spending anything."""

    name: str
    spec: str
    ready: bool
    detail: str
    seconds: float = 0.0


def configured(settings: Settings) -> dict[str, NamedModel]:
    """The models the user has named, and OpenAI's where its key is there."""
    models = dict(settings.models)
    if settings.openai_key() is not NO_KEY:
        models.setdefault("openai:gpt-4o-mini", NamedModel("openai:gpt-4o-mini"))
    return models


def probe(name: str, named: NamedModel, settings: Settings) -> Probe:
    """Ask a server which models it has; look for the files and packages of a local model."""
    begun = time.perf_counter()
    try:
        ready, detail = _look(named, settings)
    except ClewError as failure:
        ready, detail = False, str(failure)
    return Probe(name, named.spec, ready, detail, time.perf_counter() - begun)


def _look(named: NamedModel, settings: Settings) -> tuple[bool, str]:
    model = open_adapter(named, settings).model
    if isinstance(model, OpenAIChat):
        offered = model.models()
        key = "with a key" if model.key is not NO_KEY else "without a key"
        if model.model in offered:
            return True, f"answers {key}"
        return False, f"answers {key}, but offers {', '.join(offered[:5]) or 'no model'}"
    for prefix, package, extra in (("gguf:", "llama_cpp", "local"), ("hf:", "transformers", "train")):
        if named.spec.startswith(prefix) and find_spec(package) is None:
            return False, f"{package} is not installed: pip install 'clew[{extra}]'"
    return True, model.name
