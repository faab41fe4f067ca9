"""Bases, nodes, names, neighbours and subgraphs over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response

from clew.core.schema import Schema
from clew.core.types import Direction
from clew.core.wire import (
    BaseDetails,
    BaseReply,
    FoundReply,
    GraphReply,
    MentionReply,
    MethodReply,
    NodePage,
    RelationReply,
    TypeReply,
)
from clew.methods import catalog
from clew.methods.options import plain_options
from clew.web.examples import examples
from clew.web.serving import Served, ServedBase, runnable
from clew.web.state import BaseOf, GrantOf, StateOf

router = APIRouter(prefix="/v1/bases", tags=["bases"])
Text = Annotated[str, Query(min_length=1, max_length=500)]
Many = Annotated[int, Query(ge=1, le=200)]
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""A picture styles itself, and opened alone it can do nothing else."""


@router.get("")
async def bases(state: StateOf, grant: GrantOf) -> list[BaseReply]:
    """The bases that the client may ask."""

    def work() -> list[BaseReply]:
        state.served.refresh()
        return [summary(base) for base in state.seen_by(grant).values()]

    return await state.asker.in_thread(work)


@router.get("/{base}")
async def base_details(base: BaseOf, state: StateOf, grant: GrantOf) -> BaseDetails:
    """One base: schema, methods, models, and questions to begin with."""
    is_admin = grant.allows(base.name, "admin")
    return await state.asker.in_thread(lambda: _details(base, state.served, is_admin=is_admin))


@router.get("/{base}/nodes/{key:path}")
async def node(base: BaseOf, state: StateOf, key: str, k: Many = 10) -> NodePage:
    """One node with its document and its neighbours, by key or by name."""
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
    """Nodes by name (exact, then fuzzy, then by meaning), or by the words of their documents."""
    found = await state.asker.in_thread(lambda: base.base().find(text, type, k, in_text=in_text))
    return [FoundReply(**asdict(one)) for one in found]


@router.get("/{base}/mentions")
async def mentions(
    base: BaseOf, state: StateOf, text: Annotated[str, Query(min_length=1, max_length=2000)]
) -> list[MentionReply]:
    """The names in a text with the nodes they may stand for."""
    found = await state.asker.in_thread(lambda: base.base().mentions(text))
    return [MentionReply(**one) for one in found]


@router.get("/{base}/neighbors")
async def neighbors(
    base: BaseOf,
    state: StateOf,
    key: Text,
    relation: Annotated[str | None, Query(max_length=200)] = None,
    direction: Direction = "any",
    k: Many = 20,
) -> GraphReply:
    """A node and its neighbours, some of each relation."""
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
    """What lies between entities, named by key or name; the last is the one all paths lead to."""

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
    """A base in short."""
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
