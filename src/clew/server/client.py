"""Typed client of `clew serve`, based only on httpx and pydantic."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from clew.core.errors import ClewError, InputError, NotFoundError
from clew.server.wire import (
    AnswerReply,
    AskReply,
    AskRequest,
    BaseDetails,
    BaseReply,
    DocumentsReply,
    EstimateReply,
    FoundReply,
    GraphReply,
    MentionReply,
    NodePage,
    SpanReply,
    UncheckedReply,
)

Event = SpanReply | UncheckedReply | AnswerReply | AskReply
_BASES, _FOUND, _MENTIONS = TypeAdapter(list[BaseReply]), TypeAdapter(list[FoundReply]), TypeAdapter(list[MentionReply])


class Client:
    """A connection to a server. Use it in a `with` block, or close it."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8321",
        token: str | None = None,
        *,
        timeout: float = 120.0,
        http: httpx.Client | None = None,
    ) -> None:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = http or httpx.Client(base_url=url, headers=headers, timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def bases(self) -> list[BaseReply]:
        """Return the bases that the token may ask."""
        return _BASES.validate_json(self.send("GET", "/v1/bases").content)

    def base(self, name: str) -> RemoteBase:
        """Return a base by name without a request."""
        return RemoteBase(self, name)

    def send(self, verb: str, path: str, **more: Any) -> httpx.Response:
        """Send a request. Raise the error that the server reports."""
        try:
            reply = self._http.request(verb, path, **more)
        except httpx.HTTPError as failure:
            raise ClewError(f"the server cannot be reached: {failure}") from failure
        return checked(reply)

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield server-sent events."""
        with self._http.stream("POST", path, json=body, params={"stream": "true"}) as reply:
            if not reply.is_success:
                reply.read()
            checked(reply)
            kind = ""
            for line in reply.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield kind, json.loads(line.removeprefix("data: "))


def checked(reply: httpx.Response) -> httpx.Response:
    """Return the reply, or raise its error."""
    if reply.is_success:
        return reply
    try:
        reason = str(reply.json()["error"])
    except (ValueError, KeyError, TypeError):
        reason = f"the server replied with status {reply.status_code}"
    kinds: dict[int, type[ClewError]] = {404: NotFoundError, 422: InputError}
    raise kinds.get(reply.status_code, ClewError)(reason)


@dataclass(frozen=True)
class RemoteBase:
    """A base on a server."""

    client: Client
    name: str

    def details(self) -> BaseDetails:
        """Return schema, methods, models and examples."""
        return BaseDetails.model_validate_json(self._get("").content)

    def ask(self, question: str, **more: Any) -> AskReply:
        """Answer a question. `more` are fields of `AskRequest`: method, model, k, options, fixes, …"""
        request = AskRequest(question=question, **more)
        return AskReply.model_validate_json(self._post("/ask", request).content)

    def stream(self, question: str, **more: Any) -> Iterator[Event]:
        """Yield steps, text of a model and answers as they arrive, then the complete run."""
        kinds: dict[str, type[Event]] = {
            "span": SpanReply,
            "unchecked": UncheckedReply,
            "answer": AnswerReply,
            "run": AskReply,
        }
        body = AskRequest(question=question, **more).model_dump()
        for kind, content in self.client.stream(self._path("/ask"), body):
            if kind == "error":
                raise ClewError(content["error"])
            yield kinds[kind].model_validate(content)

    def estimate(self, question: str, **more: Any) -> EstimateReply:
        """Estimate the cost of a question."""
        return EstimateReply.model_validate_json(self._post("/estimate", AskRequest(question=question, **more)).content)

    def run(self, run: str) -> AskReply:
        """Return a finished run."""
        return AskReply.model_validate_json(self._get(f"/runs/{quote(run, safe='')}").content)

    def node(self, key: str) -> NodePage:
        """Return a node by key or name."""
        return NodePage.model_validate_json(self._get(f"/nodes/{quote(key, safe='')}").content)

    def find(self, text: str, *, type: str | None = None, in_text: bool = False, k: int = 10) -> list[FoundReply]:
        """Find nodes by name, or by the words of their documents."""
        return _FOUND.validate_json(self._get("/find", text=text, type=type, in_text=in_text, k=k).content)

    def mentions(self, text: str) -> list[MentionReply]:
        """Find the names in a text."""
        return _MENTIONS.validate_json(self._get("/mentions", text=text).content)

    def neighbors(self, key: str, *, relation: str | None = None, k: int = 20) -> GraphReply:
        """Return a node and its neighbours."""
        return GraphReply.model_validate_json(self._get("/neighbors", key=key, relation=relation, k=k).content)

    def subgraph(self, entities: Sequence[str]) -> GraphReply:
        """Return the paths between entities."""
        return GraphReply.model_validate_json(self._get("/subgraph", entity=list(entities)).content)

    def drawing(self, entities: Sequence[str], format: Literal["svg", "text"] = "svg") -> str:
        """Return the paths between entities as an image or as text."""
        return self._get("/subgraph", entity=list(entities), format=format).text

    def documents(self) -> DocumentsReply:
        """Return the files of a document base and the state of its build."""
        return DocumentsReply.model_validate_json(self._get("/documents").content)

    def upload(self, file: str | Path, *, wait: float = 600.0) -> DocumentsReply:
        """Upload a file and wait until it can be asked about."""
        path = Path(file)
        self.client.send("PUT", self._path(f"/documents/{quote(path.name, safe='')}"), content=path.read_bytes())
        return self.built(wait)

    def delete(self, name: str, *, wait: float = 600.0) -> DocumentsReply:
        """Delete a file and wait until the base is rebuilt."""
        self.client.send("DELETE", self._path(f"/documents/{quote(name, safe='')}"))
        return self.built(wait)

    def built(self, wait: float) -> DocumentsReply:
        """Wait until the build ends. Raise ClewError if it failed."""
        deadline = time.monotonic() + wait
        while (found := self.documents()).build.state in ("waiting", "running"):
            if time.monotonic() > deadline:
                raise ClewError(f"the build takes longer than {wait:.0f} s")
            time.sleep(0.2)
        if found.build.state == "failed":
            raise ClewError(f"the build failed: {found.build.error}")
        return found

    def _path(self, rest: str) -> str:
        return f"/v1/bases/{quote(self.name, safe='')}{rest}"

    def _get(self, rest: str, **parameters: Any) -> httpx.Response:
        known = {name: value for name, value in parameters.items() if value is not None}
        return self.client.send("GET", self._path(rest), params=known)

    def _post(self, rest: str, request: AskRequest) -> httpx.Response:
        return self.client.send("POST", self._path(rest), json=request.model_dump())
