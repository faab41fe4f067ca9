"""The web application: routes, guard, errors, start and shutdown, and its OpenAPI description with examples."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from clew.core.errors import ClewError, InputError, LockedError, ModelError, NotFoundError
from clew.core.version import __version__
from clew.server import chat, routes_ask, routes_bases, routes_documents, routes_evaluations, routes_team
from clew.server import mcp as mcp_http
from clew.server.access import EVERY_BASE
from clew.server.answering import WorkerEndedError, WorkerPool
from clew.server.asking import Asker, BusyError
from clew.server.guard import SIGN_IN, Guard
from clew.server.runs import Metrics, Runs, StoredRuns
from clew.server.serving import Served
from clew.server.settings import ServerSettings
from clew.server.state import GrantOf, State, StateOf
from clew.server.team.team import PLAIN_COOKIE, SECURE_COOKIE, ProviderError, RefusedError, TooManyError
from clew.server.wire import ProblemReply

if TYPE_CHECKING:  # an extra
    from clew.server.shared_builds import SharedBuilds

STATIC = {"main.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}
STATUS: tuple[tuple[type[ClewError], int], ...] = (
    (BusyError, 503),
    (RefusedError, 401),
    (ProviderError, 502),
    (TooManyError, 429),
    (WorkerEndedError, 503),
    (NotFoundError, 404),
    (InputError, 422),
    (LockedError, 503),
    (ModelError, 502),
)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemReply} for status in (400, 401, 403, 404, 413, 422, 429, 502, 503)
}


def create_app(settings: ServerSettings) -> FastAPI:
    """Create a server for these bases."""
    served, metrics = Served(settings), Metrics()
    runs = Runs(settings.runs) if settings.state is None else StoredRuns(settings.state)
    builds = _shared_builds(served)
    places = {name: base.place for name, base in served.bases.items()}
    workers = WorkerPool(places, settings.groups, settings.workers) if settings.workers > 1 else None
    state = State(served, Asker(served, runs, metrics, workers), runs, metrics)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        for folder in served.document_folders():
            folder.resume()
        if builds is not None:
            builds.start()
        if workers is not None:
            workers.start()
        if settings.warm:
            for base in served.bases.values():
                await to_thread.run_sync(base.warm)
        yield
        for folder in served.document_folders():
            await to_thread.run_sync(folder.close)
        if builds is not None:
            await to_thread.run_sync(builds.close)
        if workers is not None:
            await to_thread.run_sync(workers.close)

    app = FastAPI(
        title="Clew",
        version=__version__,
        summary="Answers questions over knowledge bases, with evidence.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
    )
    app.state.clew = state
    first = (routes_ask.router, routes_documents.router, routes_team.router, routes_evaluations.router)
    bases = (routes_bases.making, routes_bases.router)
    for router in (*first, *bases, chat.router, mcp_http.router, routes_documents.pages):
        app.include_router(router)
    if settings.provider is not None:
        app.include_router(routes_team.provider_router)
    _add_errors(app)
    _add_pages(app)
    describe(app)
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    return app


def _shared_builds(served: Served) -> SharedBuilds | None:
    if served.settings.state is None:
        return None
    from clew.server.shared_bases import SharedBases
    from clew.server.shared_builds import SharedBuilds

    assert isinstance(served.managed, SharedBases)
    return SharedBuilds(served.managed, served.refresh)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ClewError)
    async def problem(request: Request, error: ClewError) -> Response:
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        message = request.app.state.clew.served.addresses.hidden(str(error))
        return _problem(request, message, status, {"retry-after": "2"} if status == 503 else None)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return _problem(request, str(error.detail), error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors())
        return _problem(request, wrong or "the request is not valid", 422)


def _problem(request: Request, text: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error reply, for chat clients in the format they expect."""
    is_chat = request.url.path == "/v1/chat/completions"
    error: object = {"message": text, "type": "invalid_request_error"} if is_chat else text
    return JSONResponse({"error": error}, status, headers)


def _add_pages(app: FastAPI) -> None:
    static = files("clew.server") / "static"
    content = {name: (static / name).read_bytes() for name in (*STATIC, "index.html")}

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> Response:
        return Response(content["index.html"], media_type="text/html", headers={"cache-control": "no-cache"})

    @app.api_route("/static/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "no such file")
        return Response(content[name], media_type=STATIC[name], headers={"cache-control": "no-cache"})

    @app.head("/health", include_in_schema=False)
    @app.get("/health", tags=["operation"])
    async def health(state: StateOf) -> dict[str, object]:
        """Report that the server is running, without details about its bases."""
        settings = state.served.settings
        return {
            "status": "ok",
            "version": __version__,
            "token": not settings.access.is_open,
            "users": settings.team is not None,
            "provider": None if settings.provider is None else settings.provider.settings.title,
        }

    @app.get("/ready", tags=["operation"])
    async def ready(state: StateOf) -> dict[str, str]:
        """Report whether all bases are open. 503 while bases are being opened, or if the file of users is missing."""
        bases = [base for base in state.served.bases.values() if base.is_ready]
        if not all(base.is_opened for base in bases):
            raise HTTPException(503, "bases are being opened", {"retry-after": "2"})
        return {"status": "ready"}

    @app.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    async def metrics(state: StateOf, grant: GrantOf) -> PlainTextResponse:
        """Return counters for Prometheus. They contain names of bases, so the token must be valid for all bases."""
        if not grant.allows(EVERY_BASE):
            raise HTTPException(403, "metrics require a token for all bases")
        return PlainTextResponse(state.metrics.text(), media_type="text/plain; version=0.0.4")


OPEN = {"/health", "/openapi.json", SIGN_IN}
SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of `--token`, of `--keys` or of a user. Not required on loopback without these options.",
}
SESSION = {
    "type": "apiKey",
    "in": "cookie",
    "name": PLAIN_COOKIE,
    "description": f"Session cookie (`{SECURE_COOKIE}` over HTTPS). Changes require the header `x-csrf-token`.",
}
ASKED = {"question": "Which genes cause Marfan syndrome?"}
MESSAGES = {"model": "medicine", "messages": [{"role": "user", "content": ASKED["question"]}]}
CALLED = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": ASKED}}
EXAMPLES: dict[tuple[str, str], dict[str, tuple[str, dict[str, Any]]]] = {
    ("/v1/bases/{base}/ask", "post"): {
        "question": ("A question", ASKED),
        "follow-up": (
            "A follow-up that leans on an earlier question",
            {"question": "What about Noonan syndrome?", "history": [ASKED["question"]]},
        ),
        "changed": ("The same name, meant otherwise", {**ASKED, "fixes": {"Marfan syndrome": ["OMIM:154700"]}}),
    },
    ("/v1/bases/{base}/estimate", "post"): {"question": ("A question", {**ASKED, "model": "fast"})},
    ("/v1/chat/completions", "post"): {
        "question": ("A base as a chat model", MESSAGES),
        "streamed": (
            "Streamed, with the tokens spent at the end",
            {**MESSAGES, "stream": True, "stream_options": {"include_usage": True}},
        ),
    },
    ("/v1/bases/{base}/runs/{run}/feedback", "post"): {"right": ("It is right", {"right": True})},
    ("/v1/bases", "post"): {"new": ("An empty base", {"name": "papers", "title": "Our papers"})},
    ("/v1/bases/{base}", "patch"): {"told": ("What it is", {"description": "Diseases and genes."})},
    ("/v1/bases/{base}/model", "put"): {"chosen": ("No model", {"model": "none"})},
    ("/v1/bases/{base}/members/{name}", "put"): {
        "given": ("May ask", {"role": "reader"}),
        "taken": ("May not", {"role": None}),
    },
    ("/v1/sign-in", "post"): {"user": ("A user", {"name": "anna", "password": "…"})},
    ("/v1/me/password", "post"): {"other": ("Another", {"old": "…", "new": "a long one"})},
    ("/v1/me/tokens", "post"): {"program": ("To read", {"name": "my program", "days": 30})},
    ("/v1/users", "post"): {"reader": ("One who asks", {"name": "anna", "roles": {"medicine": "reader"}})},
    ("/v1/users/{name}", "patch"): {"off": ("Switched off", {"active": False})},
    ("/mcp", "post"): {
        "tools": ("The tools", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        "ask": ("A question", CALLED),
    },
}
"""Examples of request bodies by path and method, each with its summary."""


def describe(app: FastAPI) -> None:
    """Add the security schemes and examples to the application's description."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        schema = plain()
        schema.setdefault("components", {})["securitySchemes"] = {"token": SCHEME, "session": SESSION}
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                if path not in OPEN:
                    operation["security"] = [{"token": []}, {"session": []}, {}]
                examples = EXAMPLES.get((path, method))
                if examples is not None:
                    operation["requestBody"]["content"]["application/json"]["examples"] = {
                        name: {"summary": summary, "value": value} for name, (summary, value) in examples.items()
                    }
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
