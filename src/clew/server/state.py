"""Dependencies of the handlers. They are asynchronous, since FastAPI calls other functions in another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, cast

from anyio import to_thread
from fastapi import Depends, HTTPException, Request

from clew.server.access import Grant
from clew.server.asking import Asker
from clew.server.runs import Metrics, Runs
from clew.server.serving import Served, ServedBase
from clew.server.store import Actor


@dataclass(frozen=True)
class State:
    """State of one server."""

    served: Served
    asker: Asker
    runs: Runs
    metrics: Metrics

    def seen_by(self, grant: Grant) -> dict[str, ServedBase]:
        """Return the bases that a client may see, restricted to its groups."""
        return {name: base.for_groups(grant.groups) for name, base in self.served.bases.items() if grant.allows(name)}

    def admit(self, grant: Grant, base: ServedBase, question: str) -> Callable[[str], None]:
        """Count or reject a question of a user. Return a callback for the id of its run."""
        team = self.served.settings.team
        if team is None or grant.user is None:
            return lambda _: None
        number = team.admit(grant.user, base.name, question)
        return lambda run: team.answered(number, run)

    async def audit(self, request: Request, what: str, about: str) -> None:
        """Log an action of a user."""
        team, grant = self.served.settings.team, request.scope["clew.grant"]
        if team is not None and grant is not None:
            await to_thread.run_sync(team.store.audit, actor_of(request, grant), what, about)


async def state_of(request: Request) -> State:
    """Return the server state of a request."""
    return cast(State, request.app.state.clew)


async def grant_of(request: Request) -> Grant:
    """Return the grant of the request's token or session. 401 if one is required and missing."""
    grant: Grant | None = request.scope["clew.grant"]
    if grant is None:
        needed = "a token is required: Authorization: Bearer …"
        if (await state_of(request)).served.settings.team is not None:
            needed = "sign in, or send a token: Authorization: Bearer …"
        raise HTTPException(401, needed, {"www-authenticate": "Bearer"})
    return grant


async def base_of(base: str, request: Request) -> ServedBase:
    """Return the base in the path, restricted to the client's groups. 404 if the client may not see it."""
    grant, served = await grant_of(request), (await state_of(request)).served
    if grant.allows(base) and base not in served.bases:
        await to_thread.run_sync(served.refresh)  # another server may have created it
    if not grant.allows(base) or base not in served.bases:
        raise HTTPException(404, f"no base {base[:100]!r}")
    return served.bases[base].for_groups(grant.groups)


async def writable_base_of(base: str, request: Request) -> ServedBase:
    """Return the base in the path, if the client may change its documents."""
    found = await base_of(base, request)
    if not (await grant_of(request)).allows(base, "editor"):
        raise HTTPException(403, "this requires the role editor, or a token with write access")
    return found


def actor_of(request: Request, grant: Grant) -> Actor:
    """Return the actor for the audit log."""
    return Actor(grant.name, request.client.host if request.client is not None else "")


StateOf = Annotated[State, Depends(state_of)]
GrantOf = Annotated[Grant, Depends(grant_of)]
BaseOf = Annotated[ServedBase, Depends(base_of)]
WritableBaseOf = Annotated[ServedBase, Depends(writable_base_of)]
