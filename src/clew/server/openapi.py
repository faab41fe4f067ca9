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
EXAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("/v1/bases/{base}/ask", "post"): {
        "question": {"summary": "A question", "value": ASKED},
        "follow-up": {
            "summary": "A follow-up that leans on an earlier question",
            "value": {"question": "What about Noonan syndrome?", "history": [ASKED["question"]]},
        },
        "changed": {
            "summary": "The same name, meant otherwise",
            "value": {**ASKED, "fixes": {"Marfan syndrome": ["OMIM:154700"]}},
        },
    },
    ("/v1/bases/{base}/estimate", "post"): {"question": {"summary": "A question", "value": {**ASKED, "model": "fast"}}},
    ("/v1/chat/completions", "post"): {
        "question": {
            "summary": "A base as a chat model",
            "value": {"model": "medicine", "messages": [{"role": "user", "content": ASKED["question"]}]},
        },
        "streamed": {
            "summary": "Streamed, with the tokens spent at the end",
            "value": {
                "model": "medicine",
                "messages": [{"role": "user", "content": ASKED["question"]}],
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        },
    },
    ("/v1/bases/{base}/runs/{run}/feedback", "post"): {"right": {"summary": "It is right", "value": {"right": True}}},
    ("/v1/bases", "post"): {"new": {"summary": "An empty base", "value": {"name": "papers", "title": "Our papers"}}},
    ("/v1/bases/{base}", "patch"): {"told": {"summary": "What it is", "value": {"description": "Diseases and genes."}}},
    ("/v1/bases/{base}/model", "put"): {"chosen": {"summary": "No model", "value": {"model": "none"}}},
    ("/v1/bases/{base}/members/{name}", "put"): {
        "given": {"summary": "May ask", "value": {"role": "reader"}},
        "taken": {"summary": "May not", "value": {"role": None}},
    },
    ("/v1/sign-in", "post"): {"user": {"summary": "A user", "value": {"name": "anna", "password": "…"}}},
    ("/v1/me/password", "post"): {"other": {"summary": "Another", "value": {"old": "…", "new": "a long one"}}},
    ("/v1/me/tokens", "post"): {"program": {"summary": "To read", "value": {"name": "my program", "days": 30}}},
    ("/v1/users", "post"): {
        "reader": {"summary": "One who asks", "value": {"name": "anna", "roles": {"medicine": "reader"}}},
    },
    ("/v1/users/{name}", "patch"): {"off": {"summary": "Switched off", "value": {"active": False}}},
    ("/mcp", "post"): {
        "tools": {"summary": "The tools", "value": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
        "ask": {
            "summary": "A question",
            "value": {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "ask", "arguments": ASKED},
            },
        },
    },
}


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
                    operation["requestBody"]["content"]["application/json"]["examples"] = examples
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
