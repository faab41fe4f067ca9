"""What is finished, one line each, in a file that is only appended to: killed anywhere, a run goes on from here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.core.errors import CorruptError


def content_key(*parts: Any) -> str:
    """The hash of everything that decides a result."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()


class ProgressLog:
    """Results by the content of what they were made from."""

    def __init__(self, file: Path) -> None:
        """Read what is there; a last line that a kill has torn is cut off."""
        self.file = file
        self.known: dict[str, Mapping[str, Any]] = {}
        whole = 0
        if file.is_file():
            data = file.read_bytes()
            whole = data.rfind(b"\n") + 1
            for number, line in enumerate(data[:whole].splitlines(), 1):
                try:
                    row = json.loads(line)
                    self.known[row["key"]] = row["result"]
                except (ValueError, KeyError, TypeError) as error:
                    raise CorruptError(f"{file}, line {number}, is damaged: delete it to begin again") from error
            if whole < len(data):
                with file.open("r+b") as opened:
                    opened.truncate(whole)

    def add(self, results: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Write results down and remember them."""
        fresh = [(key, result) for key, result in results if key not in self.known]
        if not fresh:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps({"key": key, "result": result}, ensure_ascii=False) + "\n" for key, result in fresh)
        with self.file.open("ab") as opened:
            opened.write(lines.encode("utf-8", "replace"))
            opened.flush()
            os.fsync(opened.fileno())
        self.known.update(fresh)


def write_atomically(file: Path, text: str) -> None:
    """Beside, then renamed into place: a reader sees the old file or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.partial")
    beside.write_text(text, "utf-8", errors="replace")
    beside.replace(file)
