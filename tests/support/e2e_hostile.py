"""An endpoint that answers what a test tells it to, for texts that no honest provider sends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from e2e_desk import MODEL

ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x00 \b\r"
MARKUP = "[bold]not bold[/bold] [@click=app.quit]x[/] [/nothing] [[sim"
BIDI = "\u202eesrever\u202c \u2066isolate\u2069 zero\u200bwidth"
EMOJI = "\N{GRINNING FACE} \U0001f468\u200d\U0001f469 \U0001f1eb\U0001f1f7 e\u0301\u0302"
LONG = "w" * 10_000
NASTY = f"{MARKUP} {ESCAPES} {BIDI} {EMOJI} {LONG}"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came; names of headers in lower case."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def text(self) -> str:
        """The last message's words."""
        return str(self.body["messages"][-1]["content"])


Answer = tuple[int, Any]
"""Status, and a JSON value or the bytes themselves."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listening endpoint, and what it was asked."""

    base_url: str
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def answering(answer: Callable[[Asked], Answer]) -> Iterator[Endpoint]:
    """Serve while the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            self._reply(json.loads(raw))

        def _reply(self, asked_for: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, asked_for)
            endpoint.asked.append(asked)
            status, value = answer(asked)
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(content: str, **more: Any) -> Answer:
    """A good reply."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}}
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "cost": 0.001}
    return 200, {"id": "g1", "model": MODEL, "choices": [choice], "usage": usage, **more}


def models() -> Answer:
    """The catalogue of an endpoint with this one model."""
    return 200, {"data": [{"id": MODEL}]}
