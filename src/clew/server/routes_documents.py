"""Documents over HTTP: upload, list, read, delete. The base is built in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from pydantic import Field, TypeAdapter, ValidationError

from clew.answering import exploring
from clew.core.errors import InputError
from clew.core.types import Box
from clew.documents.formats import READERS
from clew.documents.formats.pdf_render import rendered
from clew.server.managed import BaseDocuments
from clew.server.serving import ServedBase
from clew.server.state import BaseOf, State, StateOf, WritableBaseOf
from clew.server.wire import BuildReply, DocumentReply, DocumentsReply

router = APIRouter(prefix="/v1/bases/{base}/documents", tags=["documents"])
pages = APIRouter(prefix="/v1/bases/{base}/page", tags=["documents"])
HIDDEN_ERROR = "the build failed: users who can see the whole base see the reason"
MAX_LINES = 1000
"""Maximum number of highlighted lines of a node, limited by the length of a command line."""
FARTHEST = 20_000.0
"""Maximum distance from the top left of a page, in points."""
Side = Annotated[float, Field(ge=0, le=FARTHEST, allow_inf_nan=False)]
SIDES = TypeAdapter(tuple[Side, Side, Side, Side])


@router.get("")
async def documents(base: BaseOf, state: StateOf) -> DocumentsReply:
    """List the files of a base, and the state of the build if it accepts uploads."""
    return await _listing(base, state)


@router.get("/{name:path}")
async def document(base: BaseOf, state: StateOf, name: str) -> dict[str, Any]:
    """Return the extracted passages and tables of a file with their pages."""
    return await state.asker.in_thread(lambda: base.base().document(name))


@router.put(
    "/{name}",
    status_code=202,
    openapi_extra={
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def upload(base: WritableBaseOf, state: StateOf, name: str, request: Request) -> DocumentsReply:
    """Store a file sent as the body, and rebuild the base in the background."""
    content = await request.body()
    return await _changed(base, state, request, "uploaded", lambda folder: folder.put(name, content))


@router.delete("/{name}", status_code=202)
async def delete(base: WritableBaseOf, state: StateOf, name: str, request: Request) -> DocumentsReply:
    """Remove a file and rebuild the base. The file can be restored for an hour, or until the server stops."""
    return await _changed(base, state, request, "deleted", lambda folder: folder.delete(name))


@router.post("/{name}/restore", status_code=202)
async def restore(base: WritableBaseOf, state: StateOf, name: str, request: Request) -> DocumentsReply:
    """Undo the deletion of a file."""
    return await _changed(base, state, request, "restored", lambda folder: folder.restore(name))


async def _changed(
    base: ServedBase, state: State, request: Request, what: str, change: Callable[[BaseDocuments], str | None]
) -> DocumentsReply:
    """Apply a change, log it under the normalised file name, and return the new listing."""
    folder, name = _folder(base), request.path_params["name"]
    if not await state.asker.in_thread(lambda: base.sees_file(name)):
        raise HTTPException(403, f"{name[:100]!r} belongs to other groups, and only they may change it")
    kept = await state.asker.in_thread(lambda: change(folder)) or name
    await state.audit(request, f"document {what}", f"{base.name}/{kept}")
    return await _listing(base, state)


@pages.get("", response_class=Response, responses={200: {"content": {"image/png": {}}}})
async def page(
    base: BaseOf,
    state: StateOf,
    key: Annotated[str, Query(min_length=1, max_length=500)],
    box: Annotated[
        list[Annotated[str, Query(max_length=100)]] | None,
        Query(max_length=200, description="left,top,right,bottom in points. Default: all lines of the node."),
    ] = None,
) -> Response:
    """Render the page of an uploaded PDF with a passage, table or page, with its lines highlighted."""
    folder = _folder(base)
    boxes = None if box is None else [_box(text) for text in box]

    def work() -> bytes:
        tools = base.base().tools
        name = str(tools.kb.node(tools.find_node(key)).attributes.get("file"))
        with folder.folder_with(name) as files:
            found = exploring.printed_page(tools, key, files, boxes)
            return rendered(found.file, found.page, found.boxes[:MAX_LINES])

    return Response(await state.asker.in_thread(work), media_type="image/png")


def _box(text: str) -> Box:
    try:
        return SIDES.validate_python(tuple(text.split(",")))
    except ValidationError:
        raise InputError(f"box={text}: expected left,top,right,bottom in points") from None


def _folder(base: ServedBase) -> BaseDocuments:
    if base.documents is None:
        raise HTTPException(409, f"{base.name!r} accepts no documents: start the server with --documents FOLDER")
    return base.documents


async def _listing(base: ServedBase, state: State) -> DocumentsReply:
    folder, most_bytes = base.documents, state.served.settings.limits.upload_bytes
    opened = await state.asker.in_thread(base.base_if_ready)
    titles = {} if opened is None else await state.asker.in_thread(lambda: exploring.documents(opened.tools))
    if folder is None:
        if not titles:
            raise HTTPException(409, f"{base.name!r} accepts no documents: start the server with --documents FOLDER")
        found = tuple(DocumentReply(name=name, title=title, indexed=True) for name, title in titles.items())
        return DocumentsReply(documents=found, build=BuildReply(state="idle"), accepts=(), most_bytes=0)

    def listing() -> DocumentsReply:
        """List the files visible to the reader: files in the reader's view, and other files without a rule."""
        indexed, build, sees_all = folder.indexed(), folder.state(), base.sees_everything()
        status = build.model_copy(update={"error": state.served.addresses.hidden(build.error)})
        if not sees_all:  # stages, errors and counts refer to all files
            error = HIDDEN_ERROR if build.error else None
            status = BuildReply(
                state=build.state, error=error, skipped=tuple(one for one in build.skipped if base.sees_file(one.file))
            )
        return DocumentsReply(
            documents=tuple(
                DocumentReply(name=name, title=titles.get(name, ""), bytes=size, indexed=name in indexed)
                for name, size in folder.names().items()
                if name in titles or sees_all or (name not in indexed and base.sees_file(name))
            ),
            deleted=tuple(filter(base.sees_file, folder.deleted())),
            build=status,
            accepts=tuple(READERS),
            most_bytes=most_bytes,
        )

    return await state.asker.in_thread(listing)
