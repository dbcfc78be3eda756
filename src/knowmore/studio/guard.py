"""Around every request, before it is read: who asks, from where, and how much."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from html import escape
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
# What a browser shows in place of the page. Style sheets are for those who were let in.
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>knowmore studio</title>
<h1>knowmore studio</h1>
<p>{words}</p>
<p>If this browser was let in before: <a href="/">open the studio</a>.</p>
</html>
"""
_ANOTHER: Final = (
    "For a fresh link press Enter in the terminal where knowmore studio runs; if it runs in none, "
    "start it again."
)


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
            if scope["path"] == "/" and scope["query_string"]:
                await _lead_in(guarded, self._entering(scope))
                return
            body = await self._checked(scope, receive)
        except Refusal as refusal:
            await _say(guarded, refusal, "text/html" in _headers(scope).get("accept", ""))
        else:
            await self.inner(scope, _replayed(body, receive), guarded)

    def _entering(self, scope: Message) -> str | None:
        """The cookie for a visitor who has the token; None for one who has a cookie already.

        Raises Refusal for anybody else.
        """
        headers = self._addressed(scope)
        if scope["method"] == "GET":
            if self.door.spend(scope["query_string"].decode("latin-1")):
                return self.door.cookie
            if self.door.knows(headers.get("cookie", "")):
                return None
        raise Refusal(
            403,
            f"This link has been used, or replaced by a newer one, or was never right: a link lets "
            f"one browser in, once. {_ANOTHER}",
        )

    def _addressed(self, scope: Message) -> Headers:
        """The headers of a request to this studio. Raises Refusal."""
        headers = _headers(scope)
        if not self.door.answers_to(headers.get("host", "")):
            raise Refusal(421, "This studio answers only to the address that it was started with.")
        return headers

    async def _checked(self, scope: Message, receive: Receive) -> bytes:
        """The body of a request that may be answered. Raises Refusal."""
        headers, changes = self._addressed(scope), scope["method"] not in ("GET", "HEAD")
        if not self.door.knows(headers.get("cookie", "")):
            raise Refusal(
                401,
                f"This browser has not been let in. Open the link that knowmore studio printed. "
                f"{_ANOTHER}",
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


async def _lead_in(send: Send, cookie: str | None) -> None:
    """Lead a visitor to the page."""
    headers = [(b"location", b"/"), (b"content-length", b"0")]
    if cookie is not None:
        headers.append((b"set-cookie", cookie.encode()))
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _say(send: Send, refusal: Refusal, as_page: bool) -> None:
    kind, body = b"application/json", json.dumps({"error": refusal.words}).encode()
    if as_page:
        kind = b"text/html; charset=utf-8"
        body = _PAGE.format(words=escape(refusal.words)).encode()
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    # What is left of a body that was not read is not another request.
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
