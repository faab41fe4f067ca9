"""Documents over HTTP: upload, list, read, delete; the base is built in the background."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Request

from clew.core.wire import DocumentReply, DocumentsReply
from clew.documents.formats import READERS
from clew.web.documents import DocumentFolder
from clew.web.serving import ServedBase
from clew.web.state import BaseOf, StateOf, WritableBaseOf

router = APIRouter(prefix="/v1/bases/{base}/documents", tags=["documents"])


@router.get("")
async def documents(base: BaseOf, state: StateOf) -> DocumentsReply:
    """The uploaded files and how the build stands."""
    return _listing(_folder(base), state.served.settings.limits.upload_bytes)


@router.get("/{name:path}")
async def document(base: BaseOf, state: StateOf, name: str) -> dict[str, Any]:
    """A file as it was read: passages and tables with their pages."""
    return await state.asker.in_thread(lambda: base.base().document(name))


@router.put(
    "/{name}",
    status_code=202,
    openapi_extra={
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def upload(base: WritableBaseOf, state: StateOf, name: str, request: Request) -> DocumentsReply:
    """Keep a file, sent as the body, and build the base anew in the background."""
    folder = _folder(base)
    content = await request.body()
    await state.asker.in_thread(lambda: folder.put(name, content))
    return _listing(folder, state.served.settings.limits.upload_bytes)


@router.delete("/{name}", status_code=202)
async def delete(base: WritableBaseOf, state: StateOf, name: str) -> DocumentsReply:
    """Remove a file and build the base anew."""
    folder = _folder(base)
    await state.asker.in_thread(lambda: folder.delete(name))
    return _listing(folder, state.served.settings.limits.upload_bytes)


def _folder(base: ServedBase) -> DocumentFolder:
    if base.documents is None:
        raise HTTPException(409, f"{base.name!r} takes no documents: start the server with --documents FOLDER")
    return base.documents


def _listing(folder: DocumentFolder, most_bytes: int) -> DocumentsReply:
    indexed = folder.indexed()
    return DocumentsReply(
        documents=tuple(
            DocumentReply(name=name, bytes=size, indexed=name in indexed) for name, size in folder.names().items()
        ),
        build=folder.state(),
        accepts=tuple(READERS),
        most_bytes=most_bytes,
    )
