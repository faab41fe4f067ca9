"""Ollama and LM Studio on this machine: where they listen, and what they offer.

ollama:qwen3     http://127.0.0.1:11434/v1, or where OLLAMA_HOST says
lmstudio:NAME    http://127.0.0.1:1234/v1, or where LMSTUDIO_HOST says
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from clew.core.errors import InputError

PORTS = {"ollama": 11434, "lmstudio": 1234}
HOSTS = {"ollama": "OLLAMA_HOST", "lmstudio": "LMSTUDIO_HOST"}
START = {"ollama": "`ollama serve`", "lmstudio": "`lms server start`"}
"""How each is started."""
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared, never listened on


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """The base URL of each, on loopback unless the environment names a host."""
    return {name: base_url(environment.get(HOSTS[name], "").strip(), port) for name, port in PORTS.items()}


def base_url(host: str, port: int) -> str:
    """`HOST`, `HOST:PORT`, `:PORT` or a URL, as Ollama understands it; an address to listen on means this machine."""
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        name = _ANY.get(parts.hostname or "", parts.hostname or "")
        secure = parts.scheme == "https"
        number = parts.port or (443 if secure and "://" in host else port)
    except ValueError as wrong:
        raise InputError(f"{host!r} is no address of a server: expected HOST:PORT ({wrong})") from None
    shown = f"[{name}]" if ":" in name else name
    return f"{'https' if secure else 'http'}://{shown}:{number}{parts.path.rstrip('/').removesuffix('/v1')}/v1"
