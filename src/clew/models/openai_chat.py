"""Any OpenAI-compatible chat endpoint: OpenAI, vLLM, Ollama, llama.cpp, LM Studio, and whatever speaks like them."""

from __future__ import annotations

import email.utils
import math
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.core.errors import ReplyError
from clew.core.trace import Failure
from clew.models.batch_runner import with_schema_in_words
from clew.models.prices import FREE, Price
from clew.models.protocol import Completion, Request, Usage
from clew.models.reply_store import digest
from clew.models.settings import NO_KEY, Secret

if TYPE_CHECKING:
    import httpx

JsonMode = Literal["json_schema", "json_object with schema", "json_object", "prompt"]
"""How a server is told what JSON to write: constrained by the schema, in OpenAI's words or in llama.cpp's; constrained
to JSON; or only asked to."""


def chat_body(request: Request, model: str, *, json_mode: JsonMode = "json_schema") -> dict[str, Any]:
    """The request as the body of POST /chat/completions."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    body: dict[str, Any] = {"model": model, "messages": messages, "max_tokens": request.max_tokens}
    body["temperature"] = request.temperature
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if request.schema is not None:
        if json_mode == "json_schema":
            described = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif json_mode == "json_object with schema":
            body["response_format"] = {"type": "json_object", "schema": request.schema}
        else:
            body["messages"] = with_schema_in_words(messages, request.schema)
            if json_mode == "json_object":
                body["response_format"] = {"type": "json_object"}
    return body


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Candidate(_Lenient):
    token: str
    logprob: float


class _Token(_Candidate):
    top_logprobs: list[_Candidate] = Field(default_factory=list)


class _Logprobs(_Lenient):
    content: list[_Token] | None = None


class _ReplyMessage(_Lenient):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(_Lenient):
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    seconds: float = Field(0.0, ge=0)
    """Said by our own batch runner."""


class _ChatReply(_Lenient):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def read_chat_reply(body: bytes | str | Mapping[str, Any]) -> Completion:
    """The completion in the body of a reply; raises ReplyError where it is no such body."""
    try:
        if isinstance(body, bytes | str):
            reply = _ChatReply.model_validate_json(body)
        else:
            reply = _ChatReply.model_validate(body)
    except ValidationError as failure:
        first = failure.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise ReplyError(f"the server's reply is no chat completion: {place}: {first['msg']}") from failure
    choice = reply.choices[0]
    usage = reply.usage or _Usage(prompt_tokens=0, completion_tokens=0, seconds=0.0)
    spent = Usage(usage.prompt_tokens, usage.completion_tokens, seconds=usage.seconds)
    if choice.message.content is None:
        return Completion("", spent, error=f"the model refused: {choice.message.refusal or 'no content'}")
    tokens = choice.logprobs.content if choice.logprobs and choice.logprobs.content else []
    return Completion(
        choice.message.content,
        spent,
        cut=choice.finish_reason == "length",
        logprobs=tuple(
            {one.token: one.logprob for one in (token, *token.top_logprobs) if math.isfinite(one.logprob)}
            for token in tokens
        ),
    )


TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
WRONG_REQUEST = frozenset({400, 422, 500, 501})
NO_ACCESS = frozenset({401, 403, 404})
"""The key is missing or wrong, or there is no such model."""
"""What servers answer to a parameter they do not know; some of them say 500."""
NEXT_JSON_MODE: dict[JsonMode, JsonMode] = {
    "json_schema": "json_object with schema",
    "json_object with schema": "json_object",
    "json_object": "prompt",
}
SHOWN_ERROR = 500


@dataclass
class Refusals:
    """What this server does not understand, learnt from its own refusals and remembered for the later requests."""

    json_mode: JsonMode = "json_schema"
    dropped: set[str] = field(default_factory=set)
    renamed_max_tokens: bool = False

    def learn(self, message: str, body: dict[str, Any]) -> bool:
        """Whether the message names a parameter that can be said otherwise or left out; then it will be."""
        lowered = message.lower()
        if "response_format" in body and any(word in lowered for word in ("response_format", "json_schema", "grammar")):
            return self._leave_json_mode(body["response_format"])
        if "max_tokens" in body and "max_completion_tokens" in lowered:
            self.renamed_max_tokens = True
            return True
        for parameter in ("logprobs", "temperature", "seed", "stop"):
            if parameter in body and parameter in lowered:
                self.dropped |= {"logprobs", "top_logprobs"} if parameter == "logprobs" else {parameter}
                return True
        return False

    def _leave_json_mode(self, used: dict[str, Any]) -> bool:
        mode: JsonMode = "json_object with schema" if "schema" in used else used["type"]
        if self.json_mode == mode:  # otherwise another thread has already learnt it
            self.json_mode = NEXT_JSON_MODE[mode]
        return True

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The request in words this server understands."""
        body = chat_body(request, model, json_mode=self.json_mode)
        if self.renamed_max_tokens:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return {name: value for name, value in body.items() if name not in self.dropped}


@dataclass(frozen=True)
class OpenAIChat:
    """One model behind one base URL; requests go one after another, and `Limited` runs several at once."""

    base_url: str
    model: str
    key: Secret = NO_KEY
    price: Price = FREE
    context_tokens: int = 8192
    seconds: float = 300.0
    """How long one reply may take, however slowly its bytes arrive."""
    idle_seconds: float = 300.0
    """How long the server may be silent; most are until the whole reply is there."""
    max_bytes: int = 4 << 20
    """Larger replies are given up."""
    refusals: Refusals = field(default_factory=Refusals, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The model with its host: equal names on two servers are two models."""
        parts = urlsplit(self.base_url)
        place = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        return f"{self.model}@{place}{parts.path.rstrip('/')}"

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        timeout = httpx.Timeout(self.idle_seconds, connect=min(10.0, self.idle_seconds), pool=None)
        secure = self.base_url.startswith("https:")  # loading the certificates takes longer than a local reply
        client = httpx.Client(limits=limits, timeout=timeout, verify=secure)
        weakref.finalize(self, client.close)  # models have no end of their own
        return client

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """One HTTP request after another; failures become completions with an error."""
        return [self._complete(request) for request in requests]

    def models(self) -> list[str]:
        """What the server offers; raises ReplyError where it cannot say."""
        import httpx

        try:
            reply = self._client.get(
                f"{self.base_url}/models", headers=self._headers(), timeout=min(10.0, self.idle_seconds)
            )
            return [str(entry["id"]) for entry in reply.raise_for_status().json()["data"]]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as failure:
            raise ReplyError(self._safe(f"{self.base_url}/models: {failure}")) from None

    def _complete(self, request: Request) -> Completion:
        begun = time.perf_counter()
        for _ in range(8):  # each turn but the last taught us a refusal
            body = self.refusals.body(request, self.model)
            completion, refused = self._post(request, body)
            if refused is None or not self.refusals.learn(refused, body):
                break
        usage = completion.usage
        dollars = self.price.dollars(usage.prompt_tokens, usage.completion_tokens)
        usage = replace(usage, dollars=dollars, seconds=time.perf_counter() - begun)
        return replace(completion, usage=usage)

    def _post(self, request: Request, body: dict[str, Any]) -> tuple[Completion, str | None]:
        """A completion, and the server's words where it may have called the request itself wrong."""
        import httpx

        headers = {**self._headers(), "Idempotency-Key": digest(request, self.name)}
        try:
            with self._client.stream("POST", f"{self.base_url}/chat/completions", json=body, headers=headers) as reply:
                content = self._read(reply)
                if content is None:
                    return Completion("", error=f"the reply is longer than {self.max_bytes:,} bytes"), None
                if reply.status_code == 200:
                    return read_chat_reply(content), None
                message = self._safe(content[: 4 * SHOWN_ERROR].decode("utf-8", "replace"))[:SHOWN_ERROR]
                error = f"{self.base_url} answered {reply.status_code}: {message}"
                retry = _retry_after(reply) if reply.status_code in TRANSIENT else None
                refused = message if reply.status_code in WRONG_REQUEST else None
                failure: Failure | None = "access" if reply.status_code in NO_ACCESS else None
                return Completion("", error=error, failure=failure, retry_after=retry), refused
        except ReplyError as unreadable:
            return Completion("", error=self._safe(str(unreadable)), retry_after=0.0), None
        except httpx.TransportError as outage:
            error = self._safe(f"{self.base_url}: {str(outage) or type(outage).__name__}")
            return Completion("", error=error, failure="outage", retry_after=0.0), None
        except (httpx.HTTPError, httpx.InvalidURL) as wrong:
            return Completion("", error=self._safe(f"{self.base_url}: {wrong}")), None

    def _read(self, reply: httpx.Response) -> bytes | None:
        import httpx

        content = bytearray()
        deadline = time.monotonic() + self.seconds
        for piece in reply.iter_bytes():
            content += piece
            if len(content) > self.max_bytes:
                return None
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout(f"the reply took longer than {self.seconds:g} seconds")
        return bytes(content)

    def _headers(self) -> dict[str, str]:
        return {} if self.key is NO_KEY else {"Authorization": f"Bearer {self.key.reveal()}"}

    def _safe(self, message: str) -> str:
        """A message without the key, which some servers repeat."""
        return self.key.hide_in(message)


def _retry_after(reply: httpx.Response) -> float:
    """Seconds from the Retry-After header, given as a number or a date; 0 where there is none."""
    value = reply.headers.get("retry-after", "")
    try:
        return min(600.0, max(0.0, float(value)))
    except ValueError:
        pass
    try:
        return min(600.0, max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time()))
    except (ValueError, TypeError):
        return 0.0
