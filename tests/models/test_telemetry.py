"""Model calls reach OpenTelemetry by the GenAI conventions, without prompts and replies."""

import pytest

from clew.core.trace import Recorder, recording
from clew.models.protocol import Message, Request
from clew.models.scripted import ScriptedModel
from clew.models.wrappers import Traced

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")


def test_a_call_is_a_span_with_its_model_and_tokens():
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    model = Traced(ScriptedModel.saying("a secret reply"))
    with recording(Recorder()):
        model.complete([Request((Message("user", "a secret prompt"),))])
    (span,) = kept.get_finished_spans()
    assert span.name == f"chat {model.name}"
    assert span.attributes["gen_ai.operation.name"] == "chat"
    assert span.attributes["gen_ai.request.model"] == model.name
    assert span.attributes["gen_ai.usage.output_tokens"] >= 0
    assert "secret" not in str(dict(span.attributes))
