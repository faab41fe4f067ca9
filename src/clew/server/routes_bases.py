"""Bases over HTTP: nodes, names, neighbours and subgraphs. Admins create, describe and delete bases."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse, Response

from clew.answering.methods import catalog
from clew.answering.methods.protocol import plain_options
from clew.core.schema import Schema
from clew.core.types import Direction
from clew.server.access import EVERY_BASE
from clew.server.examples import examples
from clew.server.managed import BaseDocuments, MadeBases
from clew.server.serving import Served, ServedBase, runnable
from clew.server.state import BaseOf, GrantOf, StateOf, actor_of
from clew.server.wire import (
    BaseChange,
    BaseDetails,
    BaseReply,
    FoundReply,
    GraphReply,
    ManagedReply,
    MentionReply,
    MethodReply,
    ModelChoice,
    NewBase,
    NodePage,
    RelationReply,
    TypeReply,
)

router = APIRouter(prefix="/v1/bases", tags=["bases"])
making = APIRouter(prefix="/v1", tags=["bases"])
Text = Annotated[str, Query(min_length=1, max_length=500)]
Many = Annotated[int, Query(ge=1, le=200)]
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""A picture may style itself, and can do nothing else if opened directly."""


@router.get("")
async def bases(state: StateOf, grant: GrantOf) -> list[BaseReply]:
    """Return the bases that the client may ask."""

    def work() -> list[BaseReply]:
        state.served.refresh()
        return [summary(base) for base in state.seen_by(grant).values()]

    return await state.asker.in_thread(work)


@router.get("/{base}")
async def base_details(base: BaseOf, state: StateOf, grant: GrantOf) -> BaseDetails:
    """Return a base: schema, methods, models and example questions."""
    is_admin = grant.allows(base.name, "admin")
    return await state.asker.in_thread(lambda: _details(base, state.served, is_admin=is_admin))


@router.get("/{base}/nodes/{key:path}")
async def node(base: BaseOf, state: StateOf, key: str, k: Many = 10) -> NodePage:
    """Return a node with its document and its neighbours, by key or by name."""
    return NodePage(**await state.asker.in_thread(lambda: base.base().show(key, k)))


@router.get("/{base}/find")
async def find(
    base: BaseOf,
    state: StateOf,
    text: Text,
    type: Annotated[str | None, Query(max_length=200)] = None,
    in_text: bool = False,
    k: Many = 10,
) -> list[FoundReply]:
    """Find nodes by name (exact, then fuzzy, then by meaning), or by the words of their documents."""
    found = await state.asker.in_thread(lambda: base.base().find(text, type, k, in_text=in_text))
    return [FoundReply(**asdict(one)) for one in found]


@router.get("/{base}/mentions")
async def mentions(
    base: BaseOf, state: StateOf, text: Annotated[str, Query(min_length=1, max_length=2000)]
) -> list[MentionReply]:
    """Find the names in a text and their possible nodes."""
    return [MentionReply(**one) for one in await state.asker.in_thread(lambda: base.base().mentions(text))]


@router.get("/{base}/neighbors")
async def neighbors(
    base: BaseOf,
    state: StateOf,
    key: Text,
    relation: Annotated[str | None, Query(max_length=200)] = None,
    direction: Direction = "any",
    k: Many = 20,
) -> GraphReply:
    """Return a node and its neighbours, some of each relation."""
    found = await state.asker.in_thread(lambda: base.base().neighbours(key, relation, direction, k))
    return GraphReply(**found)


@router.get(
    "/{base}/subgraph",
    response_model=GraphReply,
    responses={200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}, "text/plain": {}}}},
)
async def subgraph(
    base: BaseOf,
    state: StateOf,
    entity: Annotated[list[Annotated[str, Query(min_length=1, max_length=500)]], Query(min_length=2, max_length=10)],
    format: Literal["json", "svg", "text"] = "json",
    hops: Annotated[int, Query(ge=1, le=6)] = 4,
) -> Any:
    """Return the paths between entities, given by key or name. All paths lead to the last entity."""

    def work() -> Any:
        found = base.base().subgraph(*entity, hops=hops)
        if format == "svg":
            return found.svg
        shown = found.to_dict()
        return shown["text"] if format == "text" else GraphReply(**shown)

    found = await state.asker.in_thread(work)
    if format == "svg":
        return Response(found, media_type="image/svg+xml", headers={"content-security-policy": PICTURE_POLICY})
    return PlainTextResponse(found) if format == "text" else found


def summary(base: ServedBase) -> BaseReply:
    """Summarise a base."""
    opened = base.base_if_ready()
    return BaseReply(
        name=base.name,
        nodes=0 if opened is None else opened.tools.stored.count,
        edges=0 if opened is None else opened.tools.stored.edge_count,
        documents=base.documents is not None,
        ready=opened is not None,
        managed=base.is_managed,
        **({} if base.about is None else base.about()),
    )


def _details(base: ServedBase, served: Served, *, is_admin: bool) -> BaseDetails:
    opened, models = base.base_if_ready(), tuple(served.settings.models)
    schema = Schema((), ()) if opened is None else opened.schema
    methods = catalog.method_names() if opened is None else runnable(opened.tools, models)
    return BaseDetails(
        **summary(base).model_dump(),
        node_types=tuple(TypeReply(**asdict(row), label=row.label) for row in schema.node_types),
        relations=tuple(RelationReply(**asdict(row), label=row.label) for row in schema.relations),
        methods=tuple(_method(name) for name in methods),
        default_method=catalog.DEFAULT_METHOD,
        models=("none", *models),
        default_model=served.default_model(base.name),
        may_choose_model=is_admin and bool(models),
        examples=() if opened is None else examples(opened.tools),
    )


def _method(name: str) -> MethodReply:
    summary, options = catalog.describe(name)
    allowed = plain_options(catalog.method_class(name))
    return MethodReply(
        name=name, summary=summary, options={option: kind for option, kind in options.items() if option in allowed}
    )


async def managed_of(state: StateOf, grant: GrantOf) -> MadeBases:
    """Return the store of created bases, for an admin of all bases."""
    if not grant.allows(EVERY_BASE, "admin"):
        raise HTTPException(403, "this requires the role admin on all bases")
    if state.served.managed is None:
        raise HTTPException(409, "this server cannot create bases: start it with --bases FOLDER or --state")
    return state.served.managed


ManagedOf = Annotated[MadeBases, Depends(managed_of)]


@making.get("/managed")
async def managed(state: StateOf, grant: GrantOf) -> ManagedReply:
    """Return whether the client may create bases, and which bases can be restored."""
    found = state.served.managed
    if found is None or not grant.allows(EVERY_BASE, "admin"):
        return ManagedReply(may_make=False, deleted=())
    deleted, sources = await state.asker.in_thread(lambda: (found.deleted(), state.served.settings.sources.offered()))
    return ManagedReply(may_make=True, deleted=tuple(deleted), sources=tuple(sources))


@making.post("/bases", status_code=201)
async def make(asked: NewBase, request: Request, state: StateOf, found: ManagedOf) -> BaseReply:
    """Create a base for documents, optionally with a first document from the server's sources."""
    if asked.name in state.served.bases:
        raise HTTPException(422, f"the base {asked.name!r} already exists")
    settings, about = state.served.settings, BaseChange(title=asked.title, description=asked.description)

    def work() -> BaseDocuments:
        first = settings.sources.read(asked.source, settings.limits.upload_bytes) if asked.source else None
        folder = found.make(asked.name, about)
        if first is not None:
            folder.put(*first)
        if settings.team is not None:
            settings.team.users.forget_base(asked.name)  # permissions of an earlier base of this name
        state.runs.forget(asked.name)
        return folder

    folder = await state.asker.in_thread(work)
    base = state.served.add(asked.name, folder)
    await state.audit(request, "base made", f"{asked.name} {asked.source}".strip())
    return await state.asker.in_thread(lambda: summary(base))


@making.patch("/bases/{base}")
async def describe(asked: BaseChange, request: Request, base: BaseOf, state: StateOf, found: ManagedOf) -> BaseReply:
    """Update the title or description."""
    if not base.is_managed:
        raise HTTPException(409, f"{base.name!r} was not created here, so it cannot be changed here")
    await state.asker.in_thread(lambda: found.describe(base.name, asked))
    await state.audit(request, "base described", base.name)
    return await state.asker.in_thread(lambda: summary(base))


@making.put("/bases/{base}/model", status_code=204)
async def choose_model(asked: ModelChoice, request: Request, base: BaseOf, state: StateOf, grant: GrantOf) -> None:
    """Set the default model of a base, as an admin of the base."""
    if not grant.allows(base.name, "admin"):
        raise HTTPException(403, "this requires the role admin on the base")
    await state.asker.in_thread(lambda: state.served.choose_model(actor_of(request, grant), base.name, asked.model))


@making.delete("/bases/{base}", status_code=204)
async def delete(request: Request, base: BaseOf, state: StateOf, found: ManagedOf) -> None:
    """Delete a base that was created here. It can be restored for an hour."""
    folder = base.documents
    if not base.is_managed or folder is None:
        raise HTTPException(409, f"{base.name!r} was not created here, so it cannot be deleted here")
    state.served.remove(base.name)
    await state.asker.in_thread(lambda: folder.close(1))
    await state.asker.in_thread(lambda: found.delete(base.name))
    await state.audit(request, "base deleted", base.name)


@making.post("/managed/{name}/restore")
async def restore(name: str, request: Request, state: StateOf, found: ManagedOf) -> BaseReply:
    """Undo the deletion of a base."""
    folder = await state.asker.in_thread(lambda: found.restore(name))
    base = state.served.add(name, folder)
    folder.resume()
    await state.audit(request, "base restored", name)
    return await state.asker.in_thread(lambda: summary(base))
