"""A local server that speaks the OpenAI chat protocol, scripted by a function: request body -> what to do.

    with FakeServer(lambda body: Reply('{"query": "..."}')) as server:
        EndpointLlm.Options(base_url=server.url, model="fake")

For any room's tests: the client that talks to it is the real one, and so is the wire.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    Attributes:
        text: the assistant's words.
        finish: `finish_reason` on the wire: stop, length, content_filter, ...
        status: another HTTP status; `text` is then the error's message.
        headers: further response headers (Retry-After).
        hang_s: wait this long before answering.
        raw: send these bytes as the body instead of a completion (garbage).
        cut_at: send only so many bytes of the announced body, then close the connection (truncated).
    """

    text: str = ""
    finish: str = "stop"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_s: float = 0.0
    raw: bytes | None = None
    cut_at: int | None = None


Script = Callable[[dict[str, Any]], Reply]


class FakeServer:
    """The server; a context manager.

    Attributes:
        url: base URL, version included.
        requests: every request body, in order of arrival.
        headers: the headers of every request.
        most_in_flight: how many requests were open at once at most.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()  # wakes hanging replies
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.requests.append(body)
                    outer.headers.append(dict(self.headers))
                    outer._in_flight += 1
                    outer.most_in_flight = max(outer.most_in_flight, outer._in_flight)
                try:
                    if self.path != "/v1/chat/completions":
                        self._send(Reply(f"no route {self.path}", status=404), body)
                        return
                    reply = outer.script(body)
                    if reply.hang_s:
                        outer._stop.wait(reply.hang_s)
                    self._send(reply, body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the client gave up, as some tests want it to
                finally:
                    with outer._lock:
                        outer._in_flight -= 1

            def _send(self, reply: Reply, body: dict[str, Any]) -> None:
                data = reply.raw if reply.raw is not None else json.dumps(_payload(reply, body)).encode()
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data[: reply.cut_at] if reply.cut_at is not None else data)
                if reply.cut_at is not None:
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        return Handler


def _payload(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    if reply.status != 200:
        return {"error": {"message": reply.text, "type": "server_error", "code": reply.status}}
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "fake"),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text},
                "finish_reason": reply.finish,
            }
        ],
        "usage": {
            "prompt_tokens": sum(len(str(m["content"]).split()) for m in body["messages"]),
            "completion_tokens": len(reply.text.split()),
        },
    }
