"""One question to one base, as the run that is kept and sent: a pure computation, in whichever process it happens."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from clew.core.trace import Recorder
from clew.core.types import plain
from clew.core.wire import AskRequest
from clew.kb.protocol import KnowledgeBase
from clew.models.protocol import LanguageModel
from clew.web.serving import ServedBase, checked_method


def answer_run(
    served: ServedBase, request: AskRequest, run: str, model: LanguageModel | None, recorder: Recorder
) -> bytes:
    """Ask, and encode the answer with its trace as JSON in one line."""
    base = served.base().with_model(model)
    method = checked_method(request.method, request.options)
    if request.history:
        shown = base.conversation(method).after(request.history).ask(request.question, recorder).to_dict()
    else:
        shown = base.ask(
            request.question, method, fixes=request.fixes, relations=request.relations, recorder=recorder
        ).to_dict()
    answers = shown["answers"][: request.k]
    for candidate in answers:
        place_passages(base.tools.kb, candidate["evidence"])
    place_passages(base.tools.kb, shown.get("evidence", []))
    begun = recorder.spans[0].start if recorder.spans else 0.0
    content = {
        **shown,
        "run": run,
        "base": served.name,
        "model": request.model,
        "answers": answers,
        "trace": [span.to_dict(begun) for span in recorder.spans],
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
