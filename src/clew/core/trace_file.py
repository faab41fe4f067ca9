"""Trace files: read as a tree, and convert to OpenTelemetry spans."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from clew.core.errors import SourceError
from clew.core.texts import parse_json
from clew.core.trace import Span, Spending
from clew.core.types import Fallback


@dataclass
class Step(Span):
    """A span of a trace file, with its inner spans in order of their start."""

    inner: list[Step] = field(default_factory=list)


_FALLBACK, _STEP = TypeAdapter(Fallback), TypeAdapter(Step)


@dataclass(frozen=True)
class TraceFile:
    """All steps of an answer. `roots` are the outermost steps."""

    steps: tuple[Step, ...]
    roots: tuple[Step, ...]
    fallbacks: tuple[Fallback, ...]
    """Fallbacks outside of any step."""

    def spending(self) -> Spending:
        """Return the total cost of the model calls."""
        return Spending.of(call for step in self.steps for call in step.calls)


def read_trace(file: Path) -> TraceFile:
    """Read a file written by `clew ask --trace`. Skip lines of unknown kinds."""
    steps: dict[int, Step] = {}
    roots: list[Step] = []
    outside: list[Fallback] = []
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as failure:
        raise SourceError(f"cannot be read as a trace: {failure}", file=file) from failure
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            told = parse_json(line)
            if told["kind"] == "fallback":
                outside.append(_FALLBACK.validate_python(told))
            elif told["kind"] == "span":
                step = _STEP.validate_python(told)
                steps[step.id] = step
                (roots if step.parent not in steps else steps[step.parent].inner).append(step)
        except (ValueError, KeyError, TypeError) as failure:
            raise SourceError(
                "not a line of a trace: pass a file written by `clew ask --trace`", file=file, line=number
            ) from failure
    return TraceFile(tuple(steps.values()), tuple(roots), tuple(outside))


def to_otlp(trace: TraceFile) -> dict[str, Any]:
    """Convert a trace to OTLP JSON for /v1/traces. Model calls follow the gen_ai conventions."""
    first = json.dumps([(step.name, step.start) for step in trace.steps])
    trace_id = hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    spans: list[dict[str, Any]] = []

    def add(step: Step, parent: str) -> None:
        own = _span_id(trace_id, step.id)
        events = [
            {"timeUnixNano": _nano(step.start), "name": "fallback", "attributes": _attributes(asdict(fallback))}
            for fallback in step.fallbacks
        ]
        details = {f"clew.{name}": value for name, value in step.details.items()}
        span = _otlp_span(own, parent, step.name, 1, step.start, step.seconds or 0.0, details, step.error)
        spans.append({"traceId": trace_id, **span, "events": events})
        for place, call in enumerate(step.calls):
            model = str(step.details.get("model", ""))
            attributes = call.attributes(model) | {"clew.prompt_hash": call.prompt_hash}
            call_id = _span_id(trace_id, step.id, place)
            span = _otlp_span(call_id, own, f"chat {model}", 3, step.start, call.seconds, attributes, call.error)
            spans.append({"traceId": trace_id, **span})
        for inner in step.inner:
            add(inner, own)

    for root in trace.roots:
        add(root, "")
    resource = {"attributes": _attributes({"service.name": "clew"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "clew"}, "spans": spans}]}]}


def _otlp_span(
    own: str,
    parent: str,
    name: str,
    kind: int,
    start: float,
    seconds: float,
    attributes: dict[str, Any],
    error: str | None,
) -> dict[str, Any]:
    """Return a span, of kind 1 for steps and 3 for requests to a server."""
    return {
        "spanId": own,
        "parentSpanId": parent,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": _nano(start),
        "endTimeUnixNano": _nano(start + seconds),
        "attributes": _attributes(attributes),
        "status": {"code": 2, "message": error} if error else {},
    }


def _span_id(trace_id: str, step: int, call: int | None = None) -> str:
    return hashlib.sha256(f"{trace_id} {step} {call}".encode()).hexdigest()[:16]


def _nano(seconds: float) -> str:
    return str(int(seconds * 1_000_000) * 1000)


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)}
