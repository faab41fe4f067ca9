"""The bases as chat models: OpenAI's `/v1/chat/completions` and `/v1/models`, for existing clients.

A base is the model `NAME`, or `NAME/METHOD`. The answer has citations [1], [2]. The field `clew` of the reply contains
the run with all evidence.

Streamed text cannot be withdrawn, and a model's text is only checked when it is complete. So a stream has two fields.
`reasoning_content`, where clients expect thoughts, has the unchecked answer while it is written, and says so. `content`
has only the checked answer, the same as without a stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from clew.answering.methods import catalog
from clew.core.states import certainty_in_words, headline, sections
from clew.server.serving import ServedBase
from clew.server.state import GrantOf, State, StateOf, base_of
from clew.server.wire import LONGEST_QUESTION, MAX_EARLIER, AskRequest

router = APIRouter(prefix="/v1", tags=["chat"])
MAX_CITED = 5
"""Maximum number of answers in a chat reply. The rest is counted."""
UNCHECKED = "Being written, not checked yet: "


class ContentPart(BaseModel):
    """A part of a message. Images and audio are ignored."""

    type: str
    text: Annotated[str, Field(max_length=100_000)] = ""


class ChatMessage(BaseModel):
    """One message of a conversation."""

    role: Annotated[str, Field(max_length=50)]
    content: Annotated[str, Field(max_length=100_000)] | Annotated[list[ContentPart], Field(max_length=100)] | None = (
        None
    )

    def words(self) -> str:
        """Return the text of the message."""
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """Request of a chat client. Unsupported fields are ignored."""

    model: Annotated[str, Field(min_length=1, max_length=300)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    language_model: Annotated[str, Field(max_length=200)] = ""
    """Extension by Clew: the language model that the method may use."""


class ModelCard(BaseModel):
    """A base as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "clew"


class ModelList(BaseModel):
    """List of models."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


@router.get("/models")
async def models(state: StateOf, grant: GrantOf) -> ModelList:
    """Return every base that this token may ask, and every base with every method."""
    names = [name for name in state.served.bases if grant.allows(name)]
    ids = names + [f"{name}/{method}" for name in names for method in catalog.method_names()]
    return ModelList(data=[ModelCard(id=one) for one in ids])


@router.get("/models/{model:path}")
async def retrieve_model(model: str, request: Request) -> ModelCard:
    """Return one model."""
    name, slash, method = model.partition("/")
    await base_of(name, request)
    if slash and method not in catalog.method_names():
        raise HTTPException(404, f"no model {model[:100]!r}")
    return ModelCard(id=model)


@router.post("/chat/completions", response_model=dict[str, Any])
async def complete(asked: ChatRequest, request: Request, state: StateOf, grant: GrantOf) -> Response:
    """Answer the last question of a conversation, in the context of earlier questions."""
    name, _, method = asked.model.partition("/")
    base = await base_of(name, request)
    questions = [message.words().strip() for message in asked.messages if message.role == "user"]
    if not questions or not questions[-1]:
        raise HTTPException(422, "no question: the last message of role user is empty")
    *earlier, last = (question[:LONGEST_QUESTION] for question in questions if question)
    question = AskRequest(
        question=last, method=method or None, model=asked.language_model, history=earlier[-MAX_EARLIER:]
    )
    state.served.model(question.model or "none")
    if method and method not in catalog.method_names():
        raise HTTPException(404, f"no method {method[:100]!r}")
    answered = await to_thread.run_sync(state.admit, grant, base, question.question)
    if asked.stream:
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        chunks = _chunks(state, base, question, asked.model, usage, answered)
        return StreamingResponse(chunks, media_type="text/event-stream")
    run = json.loads(await state.asker.ask(base, question))
    await to_thread.run_sync(answered, run["run"])
    text, citations = written(run)
    return JSONResponse(
        {
            **_envelope(run["run"], asked.model, "chat.completion"),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text, "citations": citations},
                }
            ],
            "usage": _usage(run),
            "clew": run,
        }
    )


def _usage(run: dict[str, Any]) -> dict[str, int]:
    prompt, completion = run["spending"]["prompt_tokens"], run["spending"]["completion_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def written(run: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Render a run as text with numbered citations, and return the citations."""
    citations: list[dict[str, Any]] = []

    def cite(pieces: list[dict[str, Any]]) -> str:
        marks = []
        for piece in [piece for piece in pieces if piece["kind"] != "judgement"][:2]:
            citations.append({"number": len(citations) + 1, **piece})
            marks.append(f"[{len(citations)}]")
        return " ".join(marks)

    state, text = run["state"], run.get("text") or ""
    opening = headline(state, text)
    lines = [opening] if opening else []
    if text:
        lines.append(f"{text} {cite(run.get('evidence', []))}".strip())
    if sure := certainty_in_words(state, run["certainty"]):
        lines.append(f"({sure})")
    matches, is_value = run["matches"] or 0, run["value"] is not None
    for title, answers in sections(state, run["answers"], matches, MAX_CITED, is_value=is_value):
        lines += ["", f"{title}:"]
        for answer in answers:
            lines.append(f"{answer['rank']}. {answer['name']} ({answer['type']}) {cite(answer['evidence'])}".strip())
    if (left := matches - min(MAX_CITED, len(run["answers"]))) > 0:
        lines.append(f"{left:,} more are not shown.")
    if citations:
        lines += ["", *(f"[{one['number']}] {one['text']}{_place(one)}" for one in citations)]
    return "\n".join(lines), citations


def _place(citation: dict[str, Any]) -> str:
    if "file" not in citation:
        return ""
    return f" ({citation['file']}" + (f", page {citation['page']})" if "page" in citation else ")")


async def _chunks(
    state: State,
    base: ServedBase,
    question: AskRequest,
    model: str,
    include_usage: bool,
    answered: Callable[[str], None],
) -> AsyncIterator[str]:
    name = f"chatcmpl-{state.runs.new_id()}"
    usage: dict[str, Any] = {"usage": None} if include_usage else {}

    def sent(choices: list[dict[str, Any]], **more: Any) -> str:
        body = {**_envelope(name, model, "chat.completion.chunk"), "choices": choices, **usage, **more}
        return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        return sent([{"index": 0, "delta": delta, "finish_reason": finish}], **more)

    yield chunk({"role": "assistant", "content": ""})
    shown = ""
    async for kind, content in state.asker.stream(base, question):
        if kind == "error":
            yield f"data: {json.dumps({'error': {'message': content['error']}})}\n\n"
            return
        if kind == "unchecked" and content["text"]:
            yield chunk({"reasoning_content": _continued(shown, content["text"])})
            shown = content["text"]
        if kind == "run":
            await to_thread.run_sync(answered, content["run"])
            text, citations = written(content)
            for line in text.splitlines(keepends=True):
                yield chunk({"content": line})
            yield chunk({"citations": citations}, "stop", clew=content)
            if include_usage:
                yield sent([], usage=_usage(content))
    yield "data: [DONE]\n\n"


def _continued(shown: str, text: str) -> str:
    """Return the text to append to the shown part: the remaining text, or all of a different text."""
    if shown and text.startswith(shown):
        return text[len(shown) :]
    return ("\n\n" if shown else "") + UNCHECKED + text


def _envelope(name: str, model: str, kind: str) -> dict[str, Any]:
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}
