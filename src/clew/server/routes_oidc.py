"""Sign in with a provider over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from clew.core.errors import ClewError
from clew.server.guard import CALLBACK, network_of
from clew.server.routes_team import TeamOf, set_cookie
from clew.server.state import StateOf
from clew.server.store import Actor
from clew.server.team.provider import LONGEST_LOGIN, Provider
from clew.server.team.sessions import secret_in

router = APIRouter(tags=["team"])
COOKIE = "clew-way"
"""Cookie to check that the browser that returns is the browser that left."""
Told = Annotated[str, Query(max_length=4000)]


@router.get("/v1/oidc/start", response_class=RedirectResponse, status_code=303)
async def start(state: StateOf, team: TeamOf) -> Response:
    """Redirect to the provider."""
    provider = _provider(state)
    address, expected = await state.asker.in_thread(lambda: provider.begin(team))
    reply = RedirectResponse(address, 303)
    reply.set_cookie(
        *(COOKIE, expected),
        max_age=int(LONGEST_LOGIN),
        path=CALLBACK,
        secure=provider.scheme == "https",
        httponly=True,
        samesite="lax",  # the provider redirects back here
    )
    return reply


@router.get(CALLBACK, response_class=RedirectResponse, status_code=303)
async def callback(
    request: Request, state: StateOf, team: TeamOf, code: Told = "", state_: Annotated[Told, Query(alias="state")] = ""
) -> Response:
    """Handle the return from the provider: start a session, or show the sign-in with an error.

    The log has the reason.
    """
    provider = _provider(state)
    address = network_of(request.client.host if request.client is not None else "")
    cookie = request.cookies.get(COOKIE, "")
    try:
        secret = await state.asker.in_thread(lambda: provider.finish(team, address, code, state_, cookie))
    except ClewError as refused:
        actor, why = Actor("unknown", address), str(refused)
        await state.asker.in_thread(lambda: team.store.audit(actor, "sign-in refused", why))
        reply = RedirectResponse("/#/sign-in?problem=provider", 303)
    else:
        reply = RedirectResponse("/", 303)
        await state.asker.in_thread(lambda: team.sessions.end(secret_in(request.headers.get("cookie"))))
        set_cookie(reply, secret, is_secure=provider.scheme == "https")
    reply.delete_cookie(COOKIE, path=CALLBACK, httponly=True)
    return reply


def _provider(state: StateOf) -> Provider:
    provider = state.served.settings.provider
    if provider is None:
        raise HTTPException(404, "no login provider: start the server with --oidc FILE")
    return provider
