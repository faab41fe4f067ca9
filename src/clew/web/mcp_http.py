"""MCP over HTTP: one message in, one reply out; no session is kept and nothing is pushed."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from clew.web.mcp import McpServer
from clew.web.state import GrantOf, StateOf

router = APIRouter(tags=["agents"])


@router.post(
    "/mcp",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
    responses={202: {"description": "A notification, taken note of."}},
)
async def mcp(request: Request, state: StateOf, grant: GrantOf) -> Response:
    """One JSON-RPC message of the Model Context Protocol."""
    body = await request.body()
    seen = {name: base for name, base in state.served.bases.items() if grant.allows(name)}
    reply = await state.asker.in_thread(lambda: McpServer(state.asker, seen).handle(body))
    if reply is None:
        return Response(status_code=202)
    return JSONResponse(reply, 400 if "error" in reply and reply["id"] is None else 200)
