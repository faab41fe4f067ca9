"""One question to one base, as the run that is kept and sent: a pure computation, in whichever process it happens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from clew.answering.methods.protocol import Method
from clew.answering.queries.corrections import Corrections
from clew.api import Base
from clew.core.trace import Recorder
from clew.core.types import Answer, plain
from clew.models.protocol import LanguageModel
from clew.server.serving import ServedBase, checked_method
from clew.server.wire import AskRequest
from clew.store.graph.protocol import KnowledgeBase, StoredKnowledgeBase

FIRST = re.compile(rb'\{"run": "([\w-]+)"')
LONGEST_ATTRIBUTE = 200
"""Characters of a value that still fits into a table."""


def answer_run(
    served: ServedBase,
    request: AskRequest,
    run: str,
    model: LanguageModel | None,
    recorder: Recorder,
    hidden: Callable[[Any], Any] = lambda told: told,
) -> bytes:
    """Ask, and encode the answer with its trace as JSON in one line; `hidden` takes out where the model is."""
    base = served.base().with_model(model)
    method = checked_method(request.method, request.options)
    shown = _answer(base, method, request, recorder).to_dict()
    answers = shown["answers"][request.offset : request.offset + request.k]
    for candidate in answers:
        place_passages(base.tools.kb, candidate["evidence"])
    add_attributes(base.tools.kb, answers)
    place_passages(base.tools.kb, shown.get("evidence", []))
    begun = recorder.spans[0].start if recorder.spans else 0.0
    content = {
        "run": run,  # first, where `run_of` looks
        **shown,
        "base": served.name,
        "model": request.model,
        "answers": answers,
        **{name: hidden(shown[name]) for name in ("notes", "fallbacks")},
        "trace": hidden([span.to_dict(begun) for span in recorder.spans]),
        "spending": asdict(recorder.spending()),
        "request": request.model_dump(),
    }
    return json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "replace")


def run_of(content: bytes) -> str:
    """The name of a run in its JSON, without reading the rest."""
    found = FIRST.match(content)
    assert found is not None, content[:50]
    return found[1].decode()


def _answer(base: Base, method: Method, request: AskRequest, recorder: Recorder) -> Answer:
    """A question alone, or in its conversation."""
    fixes, relations, kind = request.fixes, request.relations, request.type
    if not request.history:
        return base.ask(request.question, method, fixes=fixes, relations=relations, type=kind, recorder=recorder)
    conversation = base.conversation(method).after(request.history)
    return conversation.corrected(fixes, Corrections(relations, kind)).ask(request.question, recorder)


def add_attributes(kb: KnowledgeBase, answers: list[dict[str, Any]]) -> None:
    """Give answers of a graph that lies here what a table of them shows; passages show themselves."""
    if not isinstance(kb, StoredKnowledgeBase) or "file" in kb.schema.attribute_types:
        return
    for answer in answers:
        if kb.schema.node_type(answer["type"]).attributes:
            told = plain(kb.node(kb.find(answer["key"])).attributes)
            answer["attributes"] = {name: value for name, value in told.items() if _is_short(value)}


def _is_short(value: object) -> bool:
    return value is not None and value != "" and len(str(value)) <= LONGEST_ATTRIBUTE


def place_passages(kb: KnowledgeBase, evidence: list[dict[str, Any]]) -> None:
    """Give quotations from a file its name and page, which the node knows."""
    if "file" not in kb.schema.attribute_types:
        return
    for piece in evidence:
        if piece["kind"] == "passage" and "file" not in piece:
            attributes = plain(kb.node(kb.find(piece["node"]["key"])).attributes)
            piece |= {name: attributes[name] for name in ("file", "page") if attributes.get(name) is not None}
