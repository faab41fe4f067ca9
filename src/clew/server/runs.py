"""Finished runs, stored so that links stay valid, and counters for monitoring."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import zlib
from bisect import bisect_left
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

from clew.core.errors import NotFoundError
from clew.server.store import Store

MAX_STORED = 20_000
"""Maximum number of runs in a database. A run has about ten kilobytes."""
RUN_ID = re.compile(r"[A-Za-z0-9_-]{12}")


@dataclass
class Runs:
    """The last runs of every base in memory, and on disk if there is a folder."""

    folder: Path | None = None
    most: int = 2000
    _kept: OrderedDict[tuple[str, str], bytes] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @staticmethod
    def new_id() -> str:
        """Return an id that cannot be guessed."""
        return secrets.token_urlsafe(9)

    def put(self, base: str, run: str, content: bytes) -> None:
        """Store a run. Remove the oldest run if there are too many."""
        with self._lock:
            self._kept[base, run] = zlib.compress(content, 1)  # rows of a long list are similar
            dropped = [self._kept.popitem(last=False)[0] for _ in range(len(self._kept) - self.most)]
        if self.folder is not None:
            (self.folder / base).mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_privately(self._file(self.folder, base, run), content)
            for old in dropped:
                self._file(self.folder, *old).unlink(missing_ok=True)

    def get(self, base: str, run: str) -> bytes:
        """Return a run of this base. Raise NotFoundError for runs of other bases."""
        with self._lock:
            content = self._kept.get((base, run))
        if content is not None:
            return zlib.decompress(content)
        if self.folder is not None and RUN_ID.fullmatch(run):
            file = self._file(self.folder, base, run)
            if file.is_file():
                return file.read_bytes()
        raise NotFoundError("no such run: it has expired, or the link is wrong")

    def forget(self, base: str) -> None:
        """Delete all runs of a base, including runs of its views."""
        with self._lock:
            for key in [key for key in self._kept if key[0].partition("~")[0] == base]:
                del self._kept[key]
        for folder in () if self.folder is None else (self.folder / base, *self.folder.glob(f"{base}~*")):
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _file(folder: Path, base: str, run: str) -> Path:
        return folder / base / f"{run}.json"


class StoredRuns(Runs):
    """The last runs of all servers in their database, without memory, so that deletions apply to all servers."""

    def __init__(self, store: Store) -> None:
        super().__init__(None, MAX_STORED)
        self.store = store

    def put(self, base: str, run: str, content: bytes) -> None:
        """Store a run. Remove the oldest run if there are too many."""
        row = self.store.row(
            "INSERT INTO run (base, run, content) VALUES (?, ?, ?) ON CONFLICT (base, run) DO NOTHING RETURNING id",
            *(base, run, content),
        )
        if row is not None:
            self.store.note("DELETE FROM run WHERE id <= ?", row["id"] - self.most)

    def get(self, base: str, run: str) -> bytes:
        """Return a run of this base. Raise NotFoundError for runs of other bases."""
        row = self.store.row("SELECT content FROM run WHERE base = ? AND run = ?", base, run)
        if row is None:
            raise NotFoundError("no such run: it has expired, or the link is wrong")
        return bytes(row["content"])

    def forget(self, base: str) -> None:
        """Delete all runs of a base, including runs of its views."""
        view = f"{base}~"
        self.store.note("DELETE FROM run WHERE base = ? OR substr(base, 1, ?) = ?", base, len(view), view)


def _write_privately(file: Path, content: bytes) -> None:
    """Write a file that only the user of the server can read, since it contains questions and answers."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(content)


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of request times, in seconds: the defaults of Prometheus, and 30."""
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts and durations of requests by route and status, questions by base and method, and current activity."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, Counter[Labels]] = defaultdict(Counter)
        self._times: dict[Labels, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._sums: dict[Labels, float] = defaultdict(float)
        self.gauges: dict[str, int] = {"clew_asks_running": 0, "clew_asks_waiting": 0}

    def request(self, scope: Any, status: int, seconds: float) -> None:
        """Count a finished request. Routes are named by pattern, so that keys and names do not multiply them."""
        route = getattr(scope.get("route"), "path", "unmatched")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE", "HEAD") else "other"
        labels = (("method", method), ("route", route))
        with self._lock:
            self._counts["clew_requests_total"][(*labels, ("status", str(status)))] += 1
            self._times[labels][bisect_left(BUCKETS, seconds)] += 1
            self._sums[labels] += seconds

    def count(self, name: str, **labels: str) -> None:
        """Increment a counter."""
        with self._lock:
            self._counts[name][tuple(sorted(labels.items()))] += 1

    def change(self, gauge: str, by: int) -> None:
        """Change a gauge."""
        with self._lock:
            self.gauges[gauge] += by

    def text(self) -> str:
        """Render all metrics."""
        lines = []
        with self._lock:
            for name, counter in sorted(self._counts.items()):
                lines.append(f"# TYPE {name} counter")
                lines += [f"{name}{_shown(labels)} {count}" for labels, count in sorted(counter.items())]
            lines.append("# TYPE clew_request_seconds histogram")
            for labels, buckets in sorted(self._times.items()):
                for most, total in zip((*map(str, BUCKETS), "+Inf"), accumulate(buckets), strict=True):
                    lines.append(f"clew_request_seconds_bucket{_shown((*labels, ('le', most)))} {total}")
                lines.append(f"clew_request_seconds_sum{_shown(labels)} {self._sums[labels]:.6f}")
                lines.append(f"clew_request_seconds_count{_shown(labels)} {sum(buckets)}")
            for name, value in self.gauges.items():
                lines += [f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"


def _shown(labels: Labels) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels) + "}"
