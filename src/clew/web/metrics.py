"""Counters and times in Prometheus's text format, kept in the process."""

from __future__ import annotations

from collections import Counter, defaultdict
from threading import Lock
from typing import Any

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Requests by route and status with their times, asks by base and method, and what is going on now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, Counter[Labels]] = defaultdict(Counter)
        self._times: dict[Labels, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._sums: dict[Labels, float] = defaultdict(float)
        self.gauges: dict[str, int] = {"clew_asks_running": 0, "clew_asks_waiting": 0}

    def request(self, scope: Any, status: int, seconds: float) -> None:
        """One finished request; routes are named by their pattern, so that keys and names do not multiply them."""
        route = getattr(scope.get("route"), "path", "unmatched")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE", "HEAD") else "other"
        labels = (("method", method), ("route", route))
        place = next((place for place, most in enumerate(BUCKETS) if seconds <= most), len(BUCKETS))
        with self._lock:
            self._counts["clew_requests_total"][(*labels, ("status", str(status)))] += 1
            self._times[labels][place] += 1
            self._sums[labels] += seconds

    def count(self, name: str, **labels: str) -> None:
        """One more of something."""
        with self._lock:
            self._counts[name][tuple(sorted(labels.items()))] += 1

    def change(self, gauge: str, by: int) -> None:
        """More or less of something is going on."""
        with self._lock:
            self.gauges[gauge] += by

    def text(self) -> str:
        """All of it."""
        lines = []
        with self._lock:
            for name, counter in sorted(self._counts.items()):
                lines.append(f"# TYPE {name} counter")
                lines += [f"{name}{_shown(labels)} {count}" for labels, count in sorted(counter.items())]
            lines.append("# TYPE clew_request_seconds histogram")
            for labels, buckets in sorted(self._times.items()):
                total = 0
                for most, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                    total += count
                    lines.append(f"clew_request_seconds_bucket{_shown((*labels, ('le', most)))} {total}")
                lines.append(f"clew_request_seconds_sum{_shown(labels)} {self._sums[labels]:.6f}")
                lines.append(f"clew_request_seconds_count{_shown(labels)} {total}")
            for name, value in self.gauges.items():
                lines += [f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"


def _shown(labels: Labels) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels) + "}"
