"""Who may ask, how much, and what is counted: around every request, before it is read."""

from __future__ import annotations

import hmac
import json
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, final

from anyio import current_time, fail_after
from fastapi import HTTPException

from knowmore.serve.metrics import Metrics
from knowmore.serve.settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Whether the service is up and ready is told to everyone, and says nothing of the model.
_OPEN = ("/healthz", "/readyz", "/health")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


@final
class Guard:
    """An application behind checks of host, token, type and length of a request."""

    def __init__(self, inner: Any, settings: Settings, metrics: Metrics) -> None:
        self.inner, self.settings, self.metrics = inner, settings, metrics
        self._now = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, by itself or by the application."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.inner(scope, receive, send)
            return
        begin, answered = time.perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        path = scope["path"]
        refusal = self._refusal(scope)
        try:
            if refusal is not None:
                await _say(counted, *refusal)
            elif path in _OPEN:
                await self.inner(scope, receive, counted)
            else:
                await self._admitted(scope, receive, counted)
        finally:
            self.metrics.request(path, answered, time.perf_counter() - begin)

    async def _admitted(self, scope: Message, receive: Receive, send: Send) -> None:
        """A request that may be answered: one of few at a time."""
        self._now += 1
        try:
            await self.inner(scope, self._limited(receive), send)
        finally:
            self._now -= 1

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        """The status and words with which a request is refused; None if it is not."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if self.settings.is_local and _without_port(headers.get("host", "")) not in _LOCAL:
            # A page of another site may have been given a name that leads to this machine.
            return 421, "This service answers only to localhost and 127.0.0.1."
        if scope["path"] in _OPEN:
            # No route there reads a body.
            return None
        if not self._knows(headers.get("authorization", "")):
            return 401, "Give the token of this service: Authorization: Bearer TOKEN."
        if self._now >= self.settings.most_requests:
            return 503, "Too many requests at a time. Ask again in a moment."
        if scope["method"] == "POST":
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                # Of other types a page of another site could send without being allowed to.
                return 415, "Send JSON, with Content-Type: application/json."
            length = headers.get("content-length", "0")
            if not length.isdecimal() or int(length) > self.settings.most_bytes:
                return self._too_long()
        return None

    def _too_long(self) -> tuple[int, str]:
        most = f"{self.settings.most_bytes:,} bytes"
        return 413, f"A request may have at most {most}. Ask about fewer rows at a time."

    def _knows(self, authorization: str) -> bool:
        """Whether this carries the token, compared in constant time."""
        if self.settings.token is None:
            return True
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                secret = b64decode(secret, validate=True).decode("latin-1").partition(":")[2]
            except ValueError:
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(secret.strip().encode(), self.settings.token.encode())

    def _limited(self, receive: Receive) -> Receive:
        """The parts of a body as a route asks for them; what is too long or too slow is refused.

        A route that takes no body reads none, and neither does a path that leads nowhere.
        """
        size, more, end = 0, True, current_time() + self.settings.seconds

        async def limited() -> Message:
            nonlocal size, more
            if not more:
                return await receive()
            try:
                with fail_after(end - current_time()):
                    message = await receive()
            except TimeoutError as error:
                slow = f"The request took longer than {self.settings.seconds:g} s to come."
                raise HTTPException(408, slow) from error
            size += len(message.get("body", b""))
            if size > self.settings.most_bytes:
                raise HTTPException(*self._too_long())
            more = message.get("more_body", False)
            return message

        return limited


def _without_port(host: str) -> str:
    """The name in a Host header.

    >>> _without_port("localhost:8000"), _without_port("[::1]:80"), _without_port("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() and not host.endswith("]") else host.lower()


async def _say(send: Send, status: int, why: str) -> None:
    body = json.dumps({"detail": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
