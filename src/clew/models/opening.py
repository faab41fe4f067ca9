"""Opening of language models with their wrappers, by a spec from the command line.

none                            no model (the default)
openai:gpt-4o-mini              OpenAI's API, key in OPENAI_API_KEY
ollama:qwen3                    a model of Ollama on this machine or at OLLAMA_HOST. ollama: is its first model
lmstudio:NAME                   a model of LM Studio on this machine. lmstudio: is its first model
http://127.0.0.1:8080/v1#qwen   any OpenAI-compatible endpoint, model name after the #
gguf:/path/file.gguf            a local file through llama.cpp (extra `local`)
hf:FOLDER                       a folder for the transformers library (torch and transformers installed)
batch:DIR                       collects requests in a folder and reads replies from it. batch:DIR#NAME names the model
scripted:FILE                   replies from a file, for tests and trials
NAME                            a model named in the configuration file
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from clew.core.errors import AccessError, ClewError, InputError, ModelError
from clew.core.trace import concurrently
from clew.models.batch import BatchFolder
from clew.models.budget import Ledger
from clew.models.capabilities import Memory, Probed, remembered
from clew.models.local import GgufModel, HuggingFaceModel
from clew.models.model_names import can_chat
from clew.models.openai_chat import OpenAIChat
from clew.models.prices import FREE, EstimatingModel, Price, PriceTable
from clew.models.protocol import Capabilities, LanguageModel
from clew.models.reply_store import ReplyStore
from clew.models.scripted import ScriptedModel
from clew.models.settings import NO_KEY, OPENAI_URL, PORTS, START, NamedModel, Secret, Settings
from clew.models.wrappers import Breaking, Budgeted, Cached, Limited, Retrying, Traced

DETECTION_SECONDS = 0.5
"""Seconds to wait for a reply when detecting Ollama and LM Studio."""
EXPECTED = (
    "none, openai:NAME, ollama:NAME, lmstudio:NAME, http://HOST/v1#NAME, gguf:FILE, hf:FOLDER, batch:DIR, "
    "scripted:FILE or a name from the configuration file"
)


@dataclass(frozen=True)
class Adapter:
    """A model without wrappers, and the settings for its wrappers."""

    model: LanguageModel
    concurrency: int = 1
    batch: int = 1
    price: Price = FREE
    remote: bool = False
    """Whether the model may cost money."""
    context_tokens: int | None = None
    """Configured or listed context length. None means to ask the server."""


def open_model(
    spec: str | None, *, ledger: Ledger | None = None, cache: bool = True, settings: Settings | None = None
) -> LanguageModel | None:
    """Open the model of a spec with all wrappers, or return None for `none`.

    Pass a `ledger` to read the cost afterwards, and whether the budget cut anything short.
    """
    if spec is None or spec.strip() in ("", "none"):
        return None
    settings = settings or Settings.load()
    named = settings.models.get(spec, NamedModel(spec))
    adapter = open_adapter(named, settings)
    ledger = ledger or Ledger()
    if ledger.budget.dollars is not None and adapter.remote and adapter.price == FREE:
        raise InputError(
            f"no price for {named.spec!r}, but a budget in dollars: add the price to {settings.price_file} "
            "(in the form of clew/models/prices.toml), or give the budget in tokens or calls"
        )
    if named.spec.startswith("batch:"):  # its folder is both cache and queue
        return Traced(adapter.model)

    def limited(model: LanguageModel) -> LanguageModel:
        at_once = named.concurrency or adapter.concurrency
        return Budgeted(Limited(model, at_once, named.per_minute, adapter.batch), ledger)

    if isinstance(adapter.model, OpenAIChat):
        _require_key(named.spec, adapter.model)
        chat = replace(adapter.model, seconds_left=ledger.seconds_left)
        server = Breaking(Retrying(chat, seconds_left=ledger.seconds_left), chat.greet)
        model: LanguageModel = Probed(limited(server), chat, _memory(settings), server.answers, adapter.context_tokens)
    else:
        model = limited(adapter.model)
    if cache and not named.spec.startswith("scripted:"):
        model = Cached(model, ReplyStore(settings.cache_folder / "replies.sqlite"))
    return Traced(model)


def _require_key(spec: str, chat: OpenAIChat) -> None:
    if chat.base_url == OPENAI_URL and chat.key is NO_KEY:
        raise AccessError(f"{spec} needs a key: set {chat.key_variable}, or name another model (`clew models`)")


def _memory(settings: Settings) -> Memory:
    return Memory(settings.cache_folder / "models")


def open_estimating(spec: str, *, settings: Settings | None = None) -> EstimatingModel:
    """Open a substitute for a model that estimates the requests and cost of a run."""
    settings = settings or Settings.load()
    adapter = open_adapter(settings.models.get(spec, NamedModel(spec)), settings)
    store = settings.cache_folder / "replies.sqlite"
    return EstimatingModel(
        adapter.model.name,
        price=None if adapter.remote and adapter.price == FREE else adapter.price,
        capabilities=_known(adapter, settings),
        store=ReplyStore(store) if store.is_file() else None,
    )


def open_adapter(named: NamedModel, settings: Settings) -> Adapter:
    """Open the model of a spec without wrappers."""
    prefix, colon, rest = named.spec.partition(":")
    context = named.context_tokens or 8192
    match prefix + colon:
        case "http:" | "https:" if rest.startswith("//"):
            return _http(named, settings)
        case "ollama:" | "lmstudio:":
            return _local_server(prefix, rest, named, settings)
        case "openai:":
            url, key = settings.openai_url, settings.openai_key()
            return _chat(url, rest, key, named, settings, remote=True, key_variable="OPENAI_API_KEY")
        case "gguf:":
            return Adapter(GgufModel(Path(rest).expanduser(), context))
        case "hf:":
            return Adapter(HuggingFaceModel(rest, context), batch=64)
        case "batch:":
            return _batch(rest, named, settings)
        case "scripted:":
            return Adapter(ScriptedModel.load(Path(rest)))
    raise InputError(f"no model {named.spec!r}: expected {EXPECTED}")


def _known(adapter: Adapter, settings: Settings) -> Capabilities:
    """Return the known capabilities of a model without any request."""
    if isinstance(adapter.model, OpenAIChat):
        return remembered(adapter.model, _memory(settings), adapter.context_tokens)
    return adapter.model.capabilities


def _http(named: NamedModel, settings: Settings) -> Adapter:
    base_url, _, model = named.spec.partition("#")
    parts = urlsplit(base_url)
    if not parts.hostname or not model:
        raise InputError(f"{named.spec!r}: expected URL#MODEL, such as http://127.0.0.1:8080/v1#qwen")
    if parts.username or parts.password:
        raise InputError("the URL contains a user name or password: set CLEW_MODEL_KEY instead")
    key, remote = settings.endpoint_key(base_url), not _is_local(parts.hostname)
    return _chat(base_url.rstrip("/"), model, key, named, settings, remote=remote)


def _local_server(kind: str, model: str, named: NamedModel, settings: Settings) -> Adapter:
    """Open a model of Ollama or LM Studio, by default its first model."""
    url = settings.local_urls[kind]
    model = model or _first_model(kind, url, settings)
    return _chat(url, model, settings.local_key(url), named, settings, key_variable=f'[keys] "{url}" in the file')


def _first_model(kind: str, url: str, settings: Settings) -> str:
    try:
        offered = [name for name in OpenAIChat(url, "", settings.local_key(url)).models() if can_chat(name)]
    except ModelError as failure:
        raise ModelError(f"{failure}: start it with {START[kind]}, or name another model (`clew models`)") from None
    if not offered:
        raise ModelError(f"{url} has no chat model: add one, for example with `ollama pull qwen3`")
    return offered[0]


def _chat(
    url: str,
    model: str,
    key: Secret,
    named: NamedModel,
    settings: Settings,
    *,
    remote: bool = False,
    key_variable: str = "CLEW_MODEL_KEY",
) -> Adapter:
    price = PriceTable.load(settings.price_file).of(model)
    context = named.context_tokens or price.context
    seconds = named.seconds or settings.reply_seconds
    chat = OpenAIChat(url, model, key, price, context or 8192, seconds, key_variable=key_variable)
    return Adapter(chat, concurrency=8, price=price, remote=remote, context_tokens=context)


def _batch(place: str, named: NamedModel, settings: Settings) -> Adapter:
    folder, _, model = place.partition("#")
    prices = PriceTable.load(settings.price_file)
    price = prices.of(model).discounted(prices.batch_discount)
    context = named.context_tokens or price.context or 8192
    return Adapter(BatchFolder(Path(folder), model or "local", price=price, context_tokens=context), price=price)


def _is_local(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith(".local")


@dataclass(frozen=True, slots=True)
class Probe:
    """Availability of a model, detected at no cost."""

    name: str
    spec: str
    ready: bool
    detail: str
    seconds: float = 0.0
    capabilities: Capabilities | None = None
    """Known capabilities. None if the model is not ready."""


def configured(settings: Settings) -> dict[str, NamedModel]:
    """Return the user's named models, OpenAI's default model if its key is set, and models of Ollama and LM Studio."""
    models = dict(settings.models)
    if settings.openai_key() is not NO_KEY:
        models.setdefault("openai:gpt-4o-mini", NamedModel("openai:gpt-4o-mini"))
    for kinds in concurrently(lambda kind: detected(kind, settings), list(PORTS)):
        models |= {spec: NamedModel(spec) for spec in kinds if spec not in models}
    return models


def detected(kind: str, settings: Settings) -> list[str]:
    """Return the models of Ollama or LM Studio, or an empty list if it does not run."""
    url = settings.local_urls[kind]
    try:
        offered = OpenAIChat(url, "", settings.local_key(url), seconds=DETECTION_SECONDS).models()
    except ModelError:
        return []
    return [f"{kind}:{name}" for name in offered if can_chat(name)]


def probe(name: str, named: NamedModel, settings: Settings, *, try_out: bool = False) -> Probe:
    """Check whether a server has the model, or whether the files and packages of a local model exist.

    `try_out` also detects the capabilities, at the cost of one short request.
    """
    begun = time.perf_counter()
    known = None
    try:
        adapter = open_adapter(named, settings)
        ready, detail = _look(named, adapter)
        if ready and try_out:
            opened = open_model(named.spec if name == named.spec else name, settings=settings)
            known = opened.capabilities if opened is not None else None
        elif ready:
            known = _known(adapter, settings)
    except ClewError as failure:
        ready, detail = False, str(failure)
    return Probe(name, named.spec, ready, detail, time.perf_counter() - begun, known)


def _look(named: NamedModel, adapter: Adapter) -> tuple[bool, str]:
    model = adapter.model
    if isinstance(model, OpenAIChat):
        _require_key(named.spec, model)
        offered = model.models()
        key = "with a key" if model.key is not NO_KEY else "without a key"
        if model.model in offered or f"{model.model}:latest" in offered:
            return True, f"answers {key}"
        return False, f"answers {key}, but offers {', '.join(offered[:5]) or 'no model'}"
    for prefix, package, extra in (("gguf:", "llama_cpp", "local"), ("hf:", "transformers", "train")):
        if named.spec.startswith(prefix) and find_spec(package) is None:
            return False, f"{package} is not installed: pip install 'clew-kb[{extra}]'"
    return True, model.name
