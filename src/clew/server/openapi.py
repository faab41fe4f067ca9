"""OpenAPI description: FastAPI's routes with authentication and examples."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from clew.server.guard import SIGN_IN
from clew.server.team.sessions import PLAIN_COOKIE, SECURE_COOKIE

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
