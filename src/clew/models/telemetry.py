"""OpenTelemetry spans for model calls, by the GenAI conventions. Without an installed SDK they have no effect."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec

from clew.core.trace import ModelCall


@cache
def is_told() -> bool:
    """Return whether the extra `telemetry` is installed."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None


def tell(model: str, calls: Iterable[ModelCall]) -> None:
    """Emit one span per call that ends now, without the prompt and the reply."""
    if not is_told():
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer

    tracer, now = get_tracer("clew"), time.time_ns()
    for call in calls:
        span = tracer.start_span(
            f"chat {model}",
            kind=SpanKind.CLIENT,
            start_time=now - int(call.seconds * 1e9),  # in nanoseconds
            attributes=call.attributes(model),
        )
        if call.error is not None:
            span.set_attribute("error.type", call.failure or "other")
            span.set_status(Status(StatusCode.ERROR, call.error))
        span.end(end_time=now)
