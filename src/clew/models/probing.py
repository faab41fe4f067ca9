"""Which models are configured, and whether they answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec

from clew.errors import ClewError
from clew.models.openai_chat import OpenAIChat
from clew.models.opening import open_adapter
from clew.models.settings import NO_KEY, NamedModel, Settings


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
