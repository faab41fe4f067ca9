"""Client for OpenAI-compatible chat endpoints: OpenAI, vLLM, Ollama, llama.cpp, LM Studio and similar servers."""

from __future__ import annotations

import email.utils
import math
import re
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from clew.core.errors import ModelError, OutageError, ReplyError
from clew.core.trace import Failure, reply_listener, within
from clew.models.batch_runner import with_schema_in_words
from clew.models.chat_replies import StreamedReply, error_in_words, read_chat_reply, room_to_think
from clew.models.model_names import capabilities_by_name, name_at
from clew.models.prices import FREE, Price
from clew.models.protocol import Capabilities, Completion, Request
from clew.models.reply_store import digest
from clew.models.settings import NO_KEY, Secret

if TYPE_CHECKING:
    import httpx

JsonMode = Literal["json_schema", "json_object with schema", "json_object", "prompt"]
"""Ways to request JSON: enforce the schema in OpenAI's or llama.cpp's format, enforce any JSON, or ask in the
prompt."""


def chat_body(request: Request, model: str, *, json_mode: JsonMode = "json_schema") -> dict[str, Any]:
    """Return the body of POST /chat/completions for a request."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    body: dict[str, Any] = {"model": model, "messages": messages, "max_tokens": request.max_tokens}
    body["temperature"] = request.temperature
    if request.seed is not None:
        body["seed"] = request.seed
    if request.n > 1:
        body["n"] = request.n
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


TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
WRONG_REQUEST = frozenset({400, 422, 500, 501})
"""Statuses for unknown parameters. Some servers send 500."""
WRONG_KEY = frozenset({401, 402, 403, 407})
WRONG_PLACE = frozenset({301, 302, 307, 308, 404, 405, 410})
"""Statuses for an unknown model or address."""
_NO_MODEL = re.compile(r"model_not_found|model\b.{0,80}\b(not found|does not exist|not exist|unknown)", re.I | re.S)
NEXT_JSON_MODE: dict[JsonMode, JsonMode] = {
    "json_schema": "json_object with schema",
    "json_object with schema": "json_object",
    "json_object": "prompt",
}
_STREAMING = re.compile(r"\b(stream_options|include_usage)\b|\bstream(ing)?\b")
ROOM_FOR_EVENTS = 8
"""Factor for the size limit of streamed replies, since each token carries hundreds of bytes of overhead."""
SHOWN_ERROR = 500
"""Maximum characters of a server's reply in an error message. A proxy may reply with a whole web page."""
SHOWN_MODELS = 8
"""Maximum number of a server's models in an error message."""
GREETING_SECONDS = 1.7
"""Seconds to wait for a server's list of models."""


@dataclass
class Refusals:
    """Parameters that the server rejects, and whether the model reasons, learnt from replies for later requests."""

    json_mode: JsonMode = "json_schema"
    dropped: set[str] = field(default_factory=set)
    renamed_max_tokens: bool = False
    thinks: bool = False
    """Whether the model reasons before its answer and needs tokens for it."""
    thinking_tokens: int = room_to_think(8192)

    def learn(self, message: str, body: dict[str, Any]) -> bool:
        """Return whether the message names a parameter to rename or drop, and do so in later requests."""
        lowered = message.lower()
        if "stream" in body and (named := _STREAMING.search(lowered)):
            usage_alone = named[1] is not None and "stream_options" in body
            self.dropped |= {"stream_options"} if usage_alone else {"stream", "stream_options"}
            return True
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
        if self.json_mode == mode:  # unless another thread has already changed it
            self.json_mode = NEXT_JSON_MODE[mode]
        return True

    def body(self, request: Request, model: str, *, live: bool = False) -> dict[str, Any]:
        """Return the body of a request in a form that the server accepts. `live` requests a streamed reply."""
        body = chat_body(request, model, json_mode=self.json_mode)
        if live:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.thinks:
            body["max_tokens"] += self.thinking_tokens
        if self.renamed_max_tokens:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return {name: value for name, value in body.items() if name not in self.dropped}


@dataclass(frozen=True)
class OpenAIChat:
    """A chat model at a base URL. Sends requests one by one, and `Limited` runs several at once."""

    base_url: str
    model: str
    key: Secret = NO_KEY
    price: Price = FREE
    context_tokens: int = 8192
    seconds: float = 120.0
    """Time limit of a whole reply. Most servers send nothing until it is complete."""
    key_variable: str = "CLEW_MODEL_KEY"
    """Setting for the key, for errors."""
    seconds_left: Callable[[], float] = field(default=lambda: math.inf, repr=False, compare=False)
    """Returns the remaining seconds of the budget."""
    max_bytes: int = 4 << 20
    """Maximum size of a reply, in bytes."""
    refusals: Refusals = field(default_factory=Refusals, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The model's name with its host."""
        return name_at(self.model, self.base_url)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities guessed from the name."""
        return capabilities_by_name(self.model, self.context_tokens)

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        timeout = httpx.Timeout(self.seconds, connect=min(GREETING_SECONDS, self.seconds), pool=None)
        secure = self.base_url.startswith("https:")  # loading certificates takes longer than a local reply
        client = httpx.Client(limits=limits, timeout=timeout, verify=secure)
        weakref.finalize(self, client.close)  # models have no close method
        return client

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Send requests one by one. Failures become completions with an error."""
        return [self._complete(request) for request in requests]

    def models(self) -> list[str]:
        """Return the names of the server's models. Raise ReplyError if it does not list them."""
        try:
            return [str(entry["id"]) for entry in self.get("/models")["data"]]
        except (KeyError, TypeError):
            raise ReplyError(f"{self.base_url}/models: the reply is not a list of models") from None

    def get(self, path: str) -> Any:
        """Return the JSON at a path below the base URL, or below the host if it starts with /../.

        Raise ReplyError if the reply is not JSON, and OutageError if the server does not reply.
        """
        import httpx

        try:
            return self._fetch(path).raise_for_status().json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as failure:
            raise ReplyError(self._safe(f"{self.base_url}{path}: {failure}")) from None

    def greet(self) -> str | None:
        """Check the server within two seconds. Return the problem, or None if it replies at all."""
        try:
            self._fetch("/models")
        except OutageError as outage:
            return str(outage)
        return None

    def _fetch(self, path: str) -> httpx.Response:
        import httpx

        seconds = min(GREETING_SECONDS, self.seconds)
        url = self.base_url.removesuffix("/v1") + path[3:] if path.startswith("/../") else self.base_url + path
        try:  # `within`, since a DNS lookup has no timeout
            return within(seconds, lambda: self._client.get(url, headers=self._headers(), timeout=seconds))
        except (httpx.ReadTimeout, TimeoutError):
            raise OutageError(f"{self.base_url}: no reply within {seconds:g} seconds") from None
        except httpx.TransportError as outage:
            raise OutageError(self._outage(outage, seconds)) from None

    def _complete(self, request: Request) -> Completion:
        begun = time.perf_counter()
        tell = reply_listener() if not request.top_logprobs else None
        for _ in range(8):  # each rejection may teach us a parameter
            body = self.refusals.body(request, self.model, live=tell is not None)
            completion, refused = self._post(request, body, tell if "stream" in body else None)
            if completion.thought and not self.refusals.thinks:
                self.refusals.thinks = True
                if completion.cut and not completion.text:
                    continue
            if refused is None or not self.refusals.learn(refused, body):
                break
        usage = completion.usage
        dollars = self.price.dollars(usage.prompt_tokens, usage.completion_tokens)
        usage = replace(usage, dollars=dollars, seconds=time.perf_counter() - begun)
        return replace(completion, usage=usage)

    def _post(
        self, request: Request, body: dict[str, Any], tell: Callable[[str], None] | None
    ) -> tuple[Completion, str | None]:
        """Return a completion, and the server's message if the request itself may be invalid.

        `tell` gets the text so far, without the key.
        """
        import httpx

        headers = {**self._headers(), "Idempotency-Key": digest(request, self.name)}
        seconds = min(self.seconds, max(0.01, self.seconds_left()))
        live = None if tell is None else StreamedReply(lambda text: tell(self.key.hide_in_part(text)))
        try:
            reply, content = within(seconds, lambda: self._exchange(body, headers, seconds, live))
            if content is None:
                return Completion("", error=f"the reply is longer than {self.max_bytes:,} bytes"), None
            if reply.status_code != 200:
                return self._refused(reply, content)
            completion = live.completion(request) if live and live.has_events else read_chat_reply(content)
            error = None if completion.error is None else self._safe(completion.error)
            told = tuple({self._safe(token): p for token, p in place.items()} for place in completion.logprobs)
            return replace(completion, text=self._safe(completion.text), error=error, logprobs=told), None
        except ReplyError as unreadable:
            return Completion("", error=self._safe(f"{self.base_url}: {unreadable}"), retry_after=0.0), None
        except (httpx.TimeoutException, httpx.ConnectError, TimeoutError) as outage:
            if self.seconds_left() <= 0:
                return Completion("", error="the budget of seconds ran out before a reply came", failure="budget"), None
            return Completion("", error=self._outage(outage, seconds), failure="outage"), None
        except httpx.TransportError as broken:  # such as a keep-alive connection closed by the server
            return Completion("", error=self._outage(broken, seconds), retry_after=0.0), None
        except (httpx.HTTPError, httpx.InvalidURL) as wrong:
            return Completion("", error=self._safe(f"{self.base_url}: {wrong}")), None

    def _exchange(
        self, body: dict[str, Any], headers: dict[str, str], seconds: float, live: StreamedReply | None
    ) -> tuple[httpx.Response, bytes | None]:
        """Return the reply and its content: None if it is too long, and empty if it came in events."""
        import httpx

        deadline = time.monotonic() + seconds
        timeout = httpx.Timeout(seconds, connect=min(GREETING_SECONDS, seconds), pool=None)
        url, content, received = f"{self.base_url}/chat/completions", bytearray(), 0
        with self._client.stream("POST", url, json=body, headers=headers, timeout=timeout) as reply:
            live = live if reply.status_code == 200 else None
            for piece in reply.iter_bytes():
                received += len(piece)
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("too slow")
                if live is not None:
                    live.hear(piece)
                in_events = live is not None and live.has_events
                if received > self.max_bytes * (ROOM_FOR_EVENTS if in_events else 1):
                    return reply, None
                if live is not None and live.is_over:  # a server may leave the connection open
                    return reply, b""
                if not in_events:
                    content += piece
            if live is not None:
                live.hear(b"", last=True)
        return reply, bytes(content)

    def _refused(self, reply: httpx.Response, content: bytes) -> tuple[Completion, str | None]:
        status = reply.status_code
        message = self._safe(content[: 4 * SHOWN_ERROR].decode("utf-8", "replace"))[:SHOWN_ERROR]
        said = f"{status}: {error_in_words(message)}"
        error, failure = f"{self.base_url} answered {said}", None
        if status in WRONG_KEY:
            error, failure = f"{self._wrong_key()} ({said})", "access"
        elif status in WRONG_PLACE or (status == 400 and _NO_MODEL.search(message)):
            error, failure = f"{self._wrong_place()} ({said})", "access"
        retry = _retry_after(reply) if status in TRANSIENT else None
        if retry:
            error += f" (asks to wait {retry:g} seconds)"
        refused = message if status in WRONG_REQUEST and failure is None else None
        return Completion("", error=error, failure=cast("Failure | None", failure), retry_after=retry), refused

    def _wrong_key(self) -> str:
        if self.key is NO_KEY:
            return f"{self.base_url} requires a key: set {self.key_variable}"
        return f"{self.base_url} rejects the key in {self.key.source or self.key_variable} for {self.model}"

    def _wrong_place(self) -> str:
        try:
            offered = self.models()
        except ModelError:
            return f"{self.base_url} is a wrong address or has no model {self.model!r}; most addresses end in /v1"
        if self.model in offered:
            return f"{self.base_url} lists {self.model!r}, but does not serve it as a chat model"
        shown = ", ".join(offered[:SHOWN_MODELS]) or "none"
        more = f" and {len(offered) - SHOWN_MODELS} more" if len(offered) > SHOWN_MODELS else ""
        return f"{self.base_url} has no model {self.model!r}; it has: {shown}{more}"

    def _outage(self, outage: Exception, seconds: float) -> str:
        import httpx

        if isinstance(outage, httpx.ConnectTimeout):
            what = "nothing answers at this address"
        elif isinstance(outage, httpx.TimeoutException | TimeoutError):
            what = f"no reply within {seconds:.3g} seconds"
            if seconds == self.seconds:
                what += "; CLEW_MODEL_SECONDS sets the limit"
        else:
            what = re.sub(r"^\[Errno -?\d+\] ", "", str(outage)) or type(outage).__name__
        return self._safe(f"{self.base_url}: {what}")

    def _headers(self) -> dict[str, str]:
        return {} if self.key is NO_KEY else {"Authorization": f"Bearer {self.key.reveal()}"}

    def _safe(self, message: str) -> str:
        """Hide the key in a message, since some servers repeat it."""
        return self.key.hide_in(message)


def _retry_after(reply: httpx.Response) -> float:
    """Return the seconds of the Retry-After header, given as a number or a date, or 0 without it."""
    value = reply.headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
