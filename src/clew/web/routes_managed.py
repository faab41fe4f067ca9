"""Bases over HTTP: made, described and deleted by admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request

from clew.core.wire import BaseChange, BaseReply, ManagedReply, ModelChoice, NewBase
from clew.web.access import EVERY_BASE
from clew.web.documents import Documents
from clew.web.managed import MadeBases
from clew.web.routes_bases import summary
from clew.web.state import BaseOf, GrantOf, StateOf, actor_of

router = APIRouter(prefix="/v1", tags=["bases"])


async def managed_of(state: StateOf, grant: GrantOf) -> MadeBases:
    """Where bases can be made, for an admin of all of them."""
    if not grant.allows(EVERY_BASE, "admin"):
        raise HTTPException(403, "this needs the role of an admin of all bases")
    if state.served.managed is None:
        raise HTTPException(409, "this server makes no bases: start it with --bases FOLDER, or --state")
    return state.served.managed


ManagedOf = Annotated[MadeBases, Depends(managed_of)]


@router.get("/managed")
async def managed(state: StateOf, grant: GrantOf) -> ManagedReply:
    """Whether the client may make bases, and which can be restored."""
    found = state.served.managed
    if found is None or not grant.allows(EVERY_BASE, "admin"):
        return ManagedReply(may_make=False, deleted=())
    deleted, sources = await state.asker.in_thread(lambda: (found.deleted(), state.served.settings.sources.offered()))
    return ManagedReply(may_make=True, deleted=tuple(deleted), sources=tuple(sources))


@router.post("/bases", status_code=201)
async def make(asked: NewBase, request: Request, state: StateOf, found: ManagedOf) -> BaseReply:
    """A new base that takes documents, and perhaps begins with one that the server may read."""
    if asked.name in state.served.bases:
        raise HTTPException(422, f"there is a base {asked.name!r} already")
    settings, about = state.served.settings, BaseChange(title=asked.title, description=asked.description)

    def work() -> Documents:
        first = settings.sources.read(asked.source, settings.limits.upload_bytes) if asked.source else None
        folder = found.make(asked.name, about)
        if first is not None:
            folder.put(*first)
        if settings.team is not None:
            settings.team.users.forget_base(asked.name)  # an earlier one of this name was for others
        state.runs.forget(asked.name)
        return folder

    folder = await state.asker.in_thread(work)
    base = state.served.add(asked.name, folder)
    await state.audit(request, "base made", f"{asked.name} {asked.source}".strip())
    return await state.asker.in_thread(lambda: summary(base))


@router.patch("/bases/{base}")
async def describe(asked: BaseChange, request: Request, base: BaseOf, state: StateOf, found: ManagedOf) -> BaseReply:
    """Another title or description."""
    if not base.is_managed:
        raise HTTPException(409, f"{base.name!r} was given to the server, not made here: it cannot be changed here")
    await state.asker.in_thread(lambda: found.describe(base.name, asked))
    await state.audit(request, "base described", base.name)
    return await state.asker.in_thread(lambda: summary(base))


@router.put("/bases/{base}/model", status_code=204)
async def choose_model(asked: ModelChoice, request: Request, base: BaseOf, state: StateOf, grant: GrantOf) -> None:
    """Which of the server's models answers by default, said by an admin of the base."""
    if not grant.allows(base.name, "admin"):
        raise HTTPException(403, "this needs the role of an admin of the base")
    await state.asker.in_thread(lambda: state.served.choose_model(actor_of(request, grant), base.name, asked.model))


@router.delete("/bases/{base}", status_code=204)
async def delete(request: Request, base: BaseOf, state: StateOf, found: ManagedOf) -> None:
    """Delete a base that was made here; for an hour it can be restored."""
    folder = base.documents
    if not base.is_managed or folder is None:
        raise HTTPException(409, f"{base.name!r} was given to the server, not made here: it cannot be deleted here")
    state.served.remove(base.name)
    await state.asker.in_thread(lambda: folder.close(1))
    await state.asker.in_thread(lambda: found.delete(base.name))
    await state.audit(request, "base deleted", base.name)


@router.post("/managed/{name}/restore")
async def restore(name: str, request: Request, state: StateOf, found: ManagedOf) -> BaseReply:
    """Undo the deletion of a base."""
    folder = await state.asker.in_thread(lambda: found.restore(name))
    base = state.served.add(name, folder)
    folder.resume()
    await state.audit(request, "base restored", name)
    return await state.asker.in_thread(lambda: summary(base))
