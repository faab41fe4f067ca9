"""A chat server on loopback that misbehaves on demand and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]


def chat_body(text: str, finish: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def chat_events(text: str, finish: str = "stop", step: int = 3) -> list[bytes]:
    """The same reply in events, some characters each, as OpenAI sends them."""

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choices = [] if more else [{"index": 0, "delta": delta, "finish_reason": finish}]
        told = {"id": "x", "object": "chat.completion.chunk", "choices": choices, **more}
        return b"data: " + json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"

    pieces = [text[place : place + step] for place in range(0, len(text), step)]
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    begin, end = event({"role": "assistant", "content": ""}), [event({}, finish), event({}, usage=usage)]
    return [begin, *(event({"content": piece}) for piece in pieces), *end, b"data: [DONE]\n\n"]


@dataclass
class ChatServer:
    reply: Callable[[dict[str, Any]], str]
    misbehave: list[Behaviour] = field(default_factory=list)
    latency: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    pages: dict[str, Any] = field(default_factory=lambda: {"/v1/models": {"data": [{"id": "qwen"}, {"id": "other"}]}})
    gets: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    chat: ChatServer

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.chat.lock:
            self.chat.bodies.append(body)
            self.chat.headers.append(dict(self.headers))
            behaviour = self.chat.misbehave.pop(0) if self.chat.misbehave else None
        if self.chat.latency:
            time.sleep(self.chat.latency)
        try:
            if behaviour is not None:
                behaviour(self, body)
            else:
                self.send(200, chat_body(self.chat.reply(body)))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self):
        self.chat.gets.append(self.path)
        if self.path in self.chat.pages:
            self.send(200, json.dumps(self.chat.pages[self.path]).encode())
        else:
            self.send(404, b"")

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def serving(
    reply: Callable[[dict[str, Any]], str] = lambda _: "fine", *, port: int = 0, **options: Any
) -> Iterator[ChatServer]:
    chat = ChatServer(reply, **options)
    handler = type("OneServersHandler", (Handler,), {"chat": chat})
    server = QuietServer(("127.0.0.1", port), handler)
    chat.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(text: str) -> Behaviour:
    return lambda handler, _: handler.send(200, chat_body(text))


def status(code: int, body: bytes = b'{"error": {"message": "no"}}', **headers: str) -> Behaviour:
    return lambda handler, _: handler.send(code, body, **headers)


def raw(body: bytes) -> Behaviour:
    return lambda handler, _: handler.send(200, body)


def sends(pieces: Iterable[bytes], pause: float = 0.0, then: Callable[["Handler"], None] | None = None) -> Behaviour:
    """Sends pieces as they are drawn, of a body whose end is the end of the connection."""

    def behave(handler: Handler, _: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(pause)
        if then is not None:
            then(handler)
        handler.close_connection = True

    return behave


def drops_the_connection(handler: Handler, _: dict[str, Any]) -> None:
    handler.close_connection = True
    handler.connection.close()


def stops_halfway(handler: Handler, _: dict[str, Any]) -> None:
    body = chat_body("a long reply that never ends")
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def drips(seconds_per_byte: float) -> Behaviour:
    def behave(handler: Handler, _: dict[str, Any]) -> None:
        body = chat_body("slowly")
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for byte in body:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(seconds_per_byte)

    return behave


def drips_headers(seconds_per_byte: float) -> Behaviour:
    def behave(handler: Handler, _: dict[str, Any]) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}":
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(seconds_per_byte)

    return behave


def is_silent(seconds: float) -> Behaviour:
    return lambda handler, _: time.sleep(seconds)
