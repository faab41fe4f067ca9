"""Where models are is nobody's business but the server's: their addresses are taken out of all that it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

INSTEAD = "its server"


class Addresses:
    """The hosts of models, known from their specs and from the names that opened models bear."""

    def __init__(self, specs: Iterable[str]) -> None:
        self._places: set[str] = set()
        for spec in specs:
            self.add(spec.partition("#")[0])

    def add(self, address: str) -> None:
        """Hide this address from now on: a URL, or what follows the @ in a model's name."""
        parts = urlsplit(address if "://" in address else f"//{address}")
        if ("://" in address or "/" in address) and parts.netloc:
            host = parts.netloc.rpartition("@")[2]
            if not host:  # a database on a socket of this machine
                return
            self._places |= {host, host.rpartition(":")[0] or host} if host.rpartition(":")[2].isdigit() else {host}

    def hidden(self, told: Any) -> Any:
        """The same without addresses, in texts however deep they lie."""
        if not self._places:
            return told
        if isinstance(told, str):
            return self._pattern().sub(INSTEAD, told)
        if isinstance(told, dict):
            return {name: self.hidden(value) for name, value in told.items()}
        if isinstance(told, list | tuple):
            return [self.hidden(value) for value in told]
        return told

    def _pattern(self) -> re.Pattern[str]:
        longest_first = "|".join(map(re.escape, sorted(self._places, key=len, reverse=True)))
        return re.compile(rf"""(?:https?://)?(?:[^\s/@"']*@)?(?:{longest_first})(?![\w-])(?:[:/][^\s"',;)]*)?""", re.I)
