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

    def visit(step: Step, parent: str) -> None:
        own = _span_id(trace_id, step.id)
        spans.append(_otlp_span(step, trace_id, own, parent))
        spans.extend(_otlp_call(step, place, trace_id, own) for place in range(len(step.calls)))
        for inner in step.inner:
            visit(inner, own)

    for root in trace.roots:
        visit(root, "")
    resource = {"attributes": _attributes({"service.name": "clew"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "clew"}, "spans": spans}]}]}


def _otlp_span(step: Step, trace_id: str, span_id: str, parent: str) -> dict[str, Any]:
    events = [
        {"timeUnixNano": _nano(step.start), "name": "fallback", "attributes": _attributes(asdict(fallback))}
        for fallback in step.fallbacks
    ]
    return {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": step.name,
        "kind": 1,
        "startTimeUnixNano": _nano(step.start),
        "endTimeUnixNano": _nano(step.start + (step.seconds or 0.0)),
        "attributes": _attributes({f"clew.{name}": value for name, value in step.details.items()}),
        "events": events,
        "status": {"code": 2, "message": step.error} if step.error else {},
    }


def _otlp_call(step: Step, place: int, trace_id: str, parent: str) -> dict[str, Any]:
    call = step.calls[place]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": str(step.details.get("model", "")),
        "gen_ai.usage.input_tokens": call.prompt_tokens,
        "gen_ai.usage.output_tokens": call.completion_tokens,
        "clew.prompt_hash": call.prompt_hash,
        "clew.cached": call.cached,
        "clew.dollars": call.dollars,
    }
    return {
        "traceId": trace_id,
        "spanId": _span_id(trace_id, step.id, place),
        "parentSpanId": parent,
        "name": f"chat {attributes['gen_ai.request.model']}",
        "kind": 3,
        "startTimeUnixNano": _nano(step.start),
        "endTimeUnixNano": _nano(step.start + call.seconds),
        "attributes": _attributes(attributes),
        "status": {"code": 2, "message": call.error} if call.error else {},
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
