"""One question to one base, as the run that is kept and sent: a pure computation, in whichever process it happens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from clew.core.json_form import answer_json, plain
from clew.core.trace import Recorder, Span
from clew.core.wire import AskRequest
from clew.kb.protocol import KnowledgeBase
from clew.methods import catalog
from clew.models.protocol import LanguageModel
from clew.web.serving import ServedBase, checked_options

LONGEST_DETAIL = 2000


def answer_run(
    base: ServedBase, request: AskRequest, run: str, model: LanguageModel | None, recorder: Recorder
) -> bytes:
    """Ask, and encode the answer with its trace as JSON in one line."""
    name = request.method or catalog.DEFAULT_METHOD
    options = checked_options(name, request.options)
    fixes = {text: tuple(keys) for text, keys in request.fixes.items()}
    method = base.method(name, options, model, fixes)
    answer = catalog.ask(method, request.question, recorder)
    kb, shown = base.tools().kb, answer_json(answer)
    answers = shown["answers"][: request.k]
    for candidate in answers:
        place_passages(kb, candidate["evidence"])
    place_passages(kb, shown.get("evidence", []))
    begun = recorder.spans[0].start if recorder.spans else 0.0
    content = {
        **shown,
        "run": run,
        "base": base.name,
        "model": request.model,
        "answers": answers,
        "trace": [span_json(span, begun) for span in recorder.spans],
        "spending": asdict(recorder.spending()),
        "request": request.model_dump(),
    }
    return json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "replace")


def place_passages(kb: KnowledgeBase, evidence: list[dict[str, Any]]) -> None:
    """Give quotations from a file its name and page, which the node knows."""
    if "file" not in kb.schema.attribute_types:
        return
    for piece in evidence:
        if piece["kind"] == "passage" and "file" not in piece:
            attributes = plain(kb.node(kb.find(piece["node"]["key"])).attributes)
            piece |= {name: attributes[name] for name in ("file", "page") if attributes.get(name) is not None}


def span_json(span: Span, begun: float) -> dict[str, Any]:
    """A step for the page; what it found is cut to a readable length."""
    return {
        "id": span.id,
        "parent": span.parent,
        "name": span.name,
        "start": round(span.start - begun, 6),
        "seconds": span.seconds,
        "details": _brief(span.details),
        "error": span.error,
        "calls": [asdict(call) for call in span.calls],
    }


def _brief(details: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in details.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        kept[name] = value if isinstance(value, int | float | bool | None) else text[:LONGEST_DETAIL]
    return kept
