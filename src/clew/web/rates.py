"""How often somebody may do something, and who counts as one somebody."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

MOST_CLIENTS = 10_000


@dataclass
class RateLimiter:
    """A bucket of tokens for each client, refilled steadily; clients not seen for longest are forgotten."""

    per_minute: int
    _buckets: OrderedDict[bytes, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, client: bytes, now: float) -> float:
        """Seconds until the next request is welcome; 0 where this one is."""
        allowed, last = self._buckets.pop(client, (float(self.per_minute), now))
        allowed = min(float(self.per_minute), allowed + (now - last) * self.per_minute / 60)
        taken = allowed >= 1
        self._buckets[client] = (allowed - taken, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - allowed) * 60 / self.per_minute


def network_of(address: str) -> str:
    """The address; of IPv6 the part that one customer is given whole, since its addresses cost nothing."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.is_loopback:
        return address
    return str(ip_network((int(parsed) >> 64 << 64, 64)))
