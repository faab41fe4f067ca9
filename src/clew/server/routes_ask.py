"""Questions, runs and estimates over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from clew.core.errors import InputError
from clew.lab.training.feedback import confirm, withdraw
from clew.server.answering import run_of
from clew.server.runs import RUN_ID
from clew.server.serving import ServedBase, checked_method
from clew.server.state import BaseOf, GrantOf, State, StateOf
from clew.server.wire import AskReply, AskRequest, EstimateReply, FeedbackRequest

router = APIRouter(prefix="/v1/bases/{base}", tags=["questions"])
RunOf = Annotated[str, Path(pattern=f"^{RUN_ID.pattern}$")]


@router.post(
    "/ask", response_model=AskReply, responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
)
async def ask(
    base: BaseOf,
    state: StateOf,
    grant: GrantOf,
    asked: AskRequest,
    stream: Annotated[bool, Query(description="Send events: span, unchecked (being written), answer, run.")] = False,
) -> Any:
    """Answer a question with the evidence for each answer."""
    checked_method(asked.method, asked.options)
    state.served.model(asked.model or "none")
    answered = await to_thread.run_sync(state.admit, grant, base, asked.question)
    if stream:
        return StreamingResponse(_events(state, base, asked, answered), media_type="text/event-stream")
    content = await state.asker.ask(base, asked)
    await to_thread.run_sync(answered, run_of(content))
    return Response(content, media_type="application/json")


@router.post("/estimate")
async def estimate(base: BaseOf, state: StateOf, asked: AskRequest) -> EstimateReply:
    """Estimate the cost of a question without spending anything."""
    method = checked_method(asked.method, asked.options)
    asked = state.served.settled(base, asked)
    state.served.model(asked.model)
    spec = state.served.settings.models.get(asked.model, "none")
    found = await state.asker.in_thread(lambda: base.base().estimate(asked.question, method, model=spec))
    return EstimateReply(**asdict(found), words=found.in_words())


@router.get("/runs/{run}", response_model=AskReply)
async def run(base: BaseOf, state: StateOf, run: RunOf) -> Any:
    """Return a finished run."""
    content = await state.asker.in_thread(lambda: state.runs.get(base.runs_name, run))
    return Response(content, media_type="application/json")


@router.post("/runs/{run}/feedback", status_code=204)
async def feedback(base: BaseOf, state: StateOf, run: RunOf, asked: FeedbackRequest, request: Request) -> None:
    """Confirm the matches of a run for `clew feedback --learn`, or withdraw the confirmation of its question."""

    def keep() -> str:
        content = json.loads(state.runs.get(base.runs_name, run))
        question, tools = content["request"]["question"], base.base().tools
        if content["request"].get("history"):
            raise InputError("a follow-up cannot be confirmed: its question depends on earlier questions")
        if asked.right:
            confirm(tools, question, [one["key"] for one in content["answers"] if one["group"] == "match"])
        else:
            withdraw(tools, question)
        return str(question)

    question = await state.asker.in_thread(keep)
    await state.audit(request, "answer confirmed" if asked.right else "answer called wrong", f"{base.name}: {question}")


async def _events(
    state: State, base: ServedBase, asked: AskRequest, answered: Callable[[str], None]
) -> AsyncIterator[str]:
    async for kind, content in state.asker.stream(base, asked):
        if kind == "run":
            await to_thread.run_sync(answered, content["run"])
        yield f"event: {kind}\ndata: {json.dumps(content, ensure_ascii=False, default=str)}\n\n"
