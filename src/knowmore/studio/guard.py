"""Around every request, before it is read: who asks, from where, and how much."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, final

from anyio import fail_after

from knowmore.studio.door import Door

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[str, str]

PICTURES: Final = "/api/pictures"
TABLES: Final = "/api/pool"
# The longest bodies, and how many seconds one may take to come.
_MOST_JSON, _MOST_PICTURE, _SECONDS = 1_000_000, 25_000_000, 30.0
_MOST_TABLE = 10_000_000
_HEADERS: Final = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


@final
class Refusal(Exception):
    """A request that goes no further: the status and the words of its answer."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


@final
class Guard:
    """An application that only those who came through the door reach."""

    def __init__(self, inner: Any, door: Door) -> None:
        self.inner, self.door = inner, door

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, by itself or by the application."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.inner(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            if self._enters(scope):
                await _let_in(guarded, self.door.cookie)
                return
            body = await self._checked(scope, receive)
        except Refusal as refusal:
            await _say(guarded, refusal)
        else:
            await self.inner(scope, _replayed(body, receive), guarded)

    def _enters(self, scope: Message) -> bool:
        """Whether it is the first request of a visitor, with the token. Raises Refusal."""
        headers, query = _headers(scope), scope["query_string"].decode("latin-1")
        if not self.door.answers_to(headers.get("host", "")):
            raise Refusal(421, "This studio answers only to the address that it was started with.")
        if scope["path"] != "/" or not query:
            return False
        if scope["method"] == "GET" and self.door.spend(query):
            return True
        raise Refusal(
            403,
            "This address has been used, or was never right: it lets one browser in, once. In that "
            "browser open the address without what follows the last slash; for another one start "
            "the studio again.",
        )

    async def _checked(self, scope: Message, receive: Receive) -> bytes:
        """The body of a request that may be answered. Raises Refusal."""
        headers, changes = _headers(scope), scope["method"] not in ("GET", "HEAD")
        if not self.door.knows(headers.get("cookie", "")):
            raise Refusal(
                401,
                "Nobody let this browser in. Open the address with the token that knowmore studio "
                "printed first. If you did, by a link of another page: go to the address line and "
                "press Enter.",
            )
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "A page of another site may not ask this one.")
        if b"%" in scope["raw_path"]:
            # No name here needs it: two ways to write a path are one more than is checked.
            raise Refusal(404, "There is nothing of this name.")
        if changes and not self.door.is_own(headers.get("origin", ""), headers["host"]):
            raise Refusal(403, "Only a page of this studio may edit: the Origin header is not its.")
        if not changes:
            return b""
        most, kind = _MOST_JSON, headers.get("content-type", "").partition(";")[0].strip()
        if scope["path"] == TABLES:
            most = _MOST_TABLE
        if scope["path"] == PICTURES:
            most = _MOST_PICTURE
            if kind != "application/octet-stream":
                raise Refusal(415, "Send one picture, with Content-Type: application/octet-stream.")
        elif kind != "application/json":
            raise Refusal(415, "Send JSON, with Content-Type: application/json.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise _too_long(most)
        return await _body(receive, most)


async def _body(receive: Receive, most: int) -> bytes:
    """A body no longer than this, whatever was announced. Raises Refusal."""
    body, more = bytearray(), True
    try:
        with fail_after(_SECONDS):
            while more:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > most:
                    raise _too_long(most)
                more = message.get("more_body", False)
    except TimeoutError as error:
        raise Refusal(408, f"The request took longer than {_SECONDS:g} s to come.") from error
    return bytes(body)


def _too_long(most: int) -> Refusal:
    return Refusal(413, f"A request may have at most {most:,} bytes. Send less at a time.")


def _headers(scope: Message) -> Headers:
    """By name. One that comes twice counts for nothing: who sends such means two readers."""
    found: Headers = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = "" if key in found and key != "cookie" else value.decode("latin-1")
    return found


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Messages that begin with a body that was read already."""
    told = False

    async def replayed() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _let_in(send: Send, cookie: str) -> None:
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _say(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"error": refusal.words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    # What is left of a body that was not read is not another request.
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
