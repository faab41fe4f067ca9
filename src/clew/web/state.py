"""What every handler needs, found on the application; asynchronous, since FastAPI calls all else in another thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, HTTPException, Request

from clew.web.access import Grant
from clew.web.asking import Asker
from clew.web.runs import Metrics, Runs
from clew.web.serving import Served, ServedBase


@dataclass(frozen=True)
class State:
    """One server."""

    served: Served
    asker: Asker
    runs: Runs
    metrics: Metrics


async def state_of(request: Request) -> State:
    """The server that a request came to."""
    return _state(request)


async def grant_of(request: Request) -> Grant:
    """What the request's token allows; 401 without one where tokens are asked for."""
    grant = _state(request).served.settings.access.grant(request.headers.get("authorization"))
    if grant is None:
        raise HTTPException(401, "a token is needed: Authorization: Bearer …", {"www-authenticate": "Bearer"})
    return grant


async def base_of(base: str, request: Request) -> ServedBase:
    """The base in the path; one that the token does not allow does not exist."""
    served = _state(request).served
    if not (await grant_of(request)).allows(base) or base not in served.bases:
        raise HTTPException(404, f"no base {base[:100]!r}")
    return served.bases[base]


async def writable_base_of(base: str, request: Request) -> ServedBase:
    """The same where documents may be changed."""
    found = await base_of(base, request)
    if not (await grant_of(request)).write:
        raise HTTPException(403, "this token may only read")
    return found


def _state(request: Request) -> State:
    return cast(State, request.app.state.clew)


StateOf = Annotated[State, Depends(state_of)]
GrantOf = Annotated[Grant, Depends(grant_of)]
BaseOf = Annotated[ServedBase, Depends(base_of)]
WritableBaseOf = Annotated[ServedBase, Depends(writable_base_of)]
