"""The guard around every request, before it is read: who asks, from where, and how much.

`Guard` is the ASGI middleware of both applications. `ServiceRules` and `StudioRules` say whom it
admits, and how it words a refusal.
"""

from __future__ import annotations

import hmac
import json
import math
import sys
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from html import escape
from typing import Any, Final, NamedTuple, final

from anyio import current_time, fail_after
from fastapi import HTTPException
from fastapi.responses import HTMLResponse, Response

from knowmore.web.access import LOCAL_NAMES, Door, Settings, host_and_port
from knowmore.web.questions import FORM, SEND_PICTURE, media_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[str, str]

# Whether the service is up and ready is told to everyone, and says nothing of the model.
_OPEN: Final = ("/healthz", "/readyz", "/health")
PREDICT: Final = "/predict"
# Where Label Studio tells of annotations. It shows nobody what is answered.
WEBHOOK: Final = "/webhook"
_TOKEN_IN_ADDRESS: Final = (
    "Connect the model in Label Studio by the address http://knowmore:TOKEN@HOST:PORT, or give its "
    "webhook that header."
)
# Seconds between two such refusals that are printed.
_QUIET: Final = 60.0
PICTURES: Final = "/api/pictures"
TABLES: Final = "/api/pool"
# The longest body with pictures.
_MOST_PICTURES: Final = 25_000_000
# The longest usual body for a studio, and the seconds that a body may take to come.
_MOST_JSON, _SECONDS = 1_000_000, 30.0
# The most digits of the announced length of a body.
_DIGITS: Final = 20
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"
_PLAIN_HEADERS: Final = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_PAGE_HEADERS: Final = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    *_PLAIN_HEADERS,
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
# A browser shows this in place of the page. Style sheets are for signed-in browsers.
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>knowmore studio</title>
{again}<h1>knowmore studio</h1>
<p>{words}</p>
<p>If this browser was let in before: <a href="/">open the studio</a>.</p>
</html>
"""
_AGAIN: Final = '<meta http-equiv="refresh" content="0; url=/">\n'
_ANOTHER: Final = (
    "For a fresh link press Enter in the terminal where knowmore studio runs; if it runs in none, "
    "start it again."
)


@final
class Refusal(HTTPException):
    """A request that goes no further: the status, words and further headers of its answer."""

    def answer(self, key: str) -> Response:
        """The words as JSON, under this key."""
        return Response(json.dumps({key: self.detail}), self.status_code, self.headers, _JSON)


class BodyLimit(NamedTuple):
    """The longest body of a request, in bytes, and its media type.

    remedy : what to do about a body that is too long
    also : what else may be sent, if another media type comes
    """

    most: int
    remedy: str = "Send less at a time."
    media: str = _JSON
    also: str = ""

    def too_long(self) -> Refusal:
        """The refusal of a longer body."""
        return Refusal(413, f"A request may have at most {self.most:,} bytes. {self.remedy}")

    def check(self, headers: Headers) -> None:
        """Raise Refusal for a body of another type or announced as longer."""
        if media_of(headers.get("content-type", "")) != self.media:
            # A page of another site may send other types without being allowed to.
            what = "JSON" if self.media == _JSON else "one picture"
            raise Refusal(415, f"Send {what}, with Content-Type: {self.media}.{self.also}")
        length = headers.get("content-length", "0")
        # Python converts no text of thousands of digits.
        if not length.isdecimal() or len(length) > _DIGITS or int(length) > self.most:
            raise self.too_long()

    def limited(self, receive: Receive, seconds: float) -> Receive:
        """Messages with the parts of a body; Refusal if the body is too long or too slow."""
        size, more, end = 0, True, current_time() + seconds

        async def limited() -> Message:
            nonlocal size, more
            if not more:
                return await receive()
            try:
                with fail_after(end - current_time()):
                    message = await receive()
            except TimeoutError as error:
                slow = f"The request took longer than {seconds:g} s to come."
                raise Refusal(408, slow) from error
            size += len(message.get("body", b""))
            if size > self.most:
                raise self.too_long()
            more = message.get("more_body", False)
            return message

        return limited


# The bodies for a studio that may be longer.
_LIMITS = {
    PICTURES: BodyLimit(_MOST_PICTURES, media=_BYTES),
    TABLES: BodyLimit(10_000_000),
}


@final
class ServiceRules:
    """The rules of a service: its host, its token, and so many requests at a time.

    key : the name of the words of an error in JSON
    headers : headers of every answer
    count : is told the path, status and seconds of every answer
    """

    key, headers = "detail", _PLAIN_HEADERS

    def __init__(self, settings: Settings, count: Callable[[str, int, float], None]) -> None:
        self.settings, self.answered = settings, count
        self._limit = BodyLimit(settings.most_bytes, "Ask about fewer rows at a time.")
        self._now, self._told = 0, -math.inf

    @asynccontextmanager
    async def admitted(self, scope: Message, receive: Receive) -> AsyncIterator[Receive]:
        """Messages of a request that may be answered.

        A route that takes no body reads none, and neither does a path that leads nowhere.
        """
        headers = _headers(scope)
        if self.settings.is_local and host_and_port(headers.get("host", ""))[0] not in LOCAL_NAMES:
            # A page of another site may have been given a name that leads to this machine.
            raise Refusal(421, "This service answers only to localhost and 127.0.0.1.")
        if scope["path"] in _OPEN:
            # No route there reads a body.
            yield receive
            return
        if not self._knows(headers.get("authorization", "")):
            words = "Give the token of this service: Authorization: Bearer TOKEN."
            raise Refusal(401, words, {"www-authenticate": "Bearer"})
        if self._now >= self.settings.most_requests:
            raise Refusal(503, "Too many requests at a time. Ask again in a moment.")
        limit = self._limit
        if scope["method"] == "POST":
            limit = self._limit_of(scope["path"], headers)
            limit.check(headers)
        self._now += 1
        try:
            yield limit.limited(receive, self.settings.seconds)
        finally:
            self._now -= 1

    def _limit_of(self, path: str, headers: Headers) -> BodyLimit:
        """The limit of a body: of one picture, of a form with several, or of JSON."""
        media = media_of(headers.get("content-type", ""))
        if path != PREDICT or self.settings.label_studio:
            return self._limit
        if media == FORM and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            # A browser sends a form to any site without asking that site first.
            raise Refusal(403, "A page of another site may not ask this service.")
        if media == FORM or media.startswith("image/"):
            return BodyLimit(_MOST_PICTURES, "Send fewer pictures, or smaller ones.", media)
        return self._limit._replace(also=f" A model of pictures also takes one: {SEND_PICTURE}")

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

    def refused(self, refusal: Refusal, scope: Message) -> Response:
        """The refusal as JSON; printed, too, if an edit is lost by it that nobody else tells of."""
        now = time.monotonic()
        # Strangers who knock may not fill the log.
        if scope["path"] == WEBHOOK and self.settings.label_studio and now > self._told + _QUIET:
            self._told = now
            told = f"knowmore: A message of Label Studio was refused: {refusal.detail}"
            if refusal.status_code == 401:
                told += f" {_TOKEN_IN_ADDRESS}"
            print(told, file=sys.stderr, flush=True)
        return refusal.answer(self.key)


@final
class StudioRules:
    """The rules of a studio: visitors who came through its door, from its own page."""

    key, headers = "error", _PAGE_HEADERS

    def __init__(self, door: Door) -> None:
        self.door = door

    @asynccontextmanager
    async def admitted(self, scope: Message, receive: Receive) -> AsyncIterator[Receive]:
        """Messages of a request that may be answered, which begin with its whole body."""
        headers = _headers(scope)
        if not self.door.answers_to(headers.get("host", "")):
            raise Refusal(421, "This studio answers only to the address that it was started with.")
        if scope["path"] == "/" and scope["query_string"]:
            raise self._entering(scope, headers)
        self._check(scope, headers)
        if scope["method"] in ("GET", "HEAD"):
            yield _replayed(b"", receive)
            return
        limit = _LIMITS.get(scope["path"], BodyLimit(_MOST_JSON))
        limit.check(headers)
        yield _replayed(await _body(limit.limited(receive, _SECONDS)), receive)

    def _entering(self, scope: Message, headers: Headers) -> Refusal:
        """The way to the page for a visitor with the token, who gets a cookie, or with a cookie."""
        if scope["method"] == "GET":
            if self.door.spend(scope["query_string"].decode("latin-1")):
                return Refusal(303, "", {"location": "/", "set-cookie": self.door.cookie})
            if self.door.knows(headers.get("cookie", "")):
                return Refusal(303, "", {"location": "/"})
        return Refusal(
            403,
            f"This link has been used, or replaced by a newer one, or was never right: a link lets "
            f"one browser in, once. {_ANOTHER}",
        )

    def _check(self, scope: Message, headers: Headers) -> None:
        """Raise Refusal unless the request comes from this studio's page in a known browser."""
        if not self.door.knows(headers.get("cookie", "")):
            raise Refusal(
                401,
                f"This browser has not been let in. Open the link that knowmore studio printed: it "
                f"lets one browser in, once, and has been used if it led here. {_ANOTHER}",
            )
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "A page of another site may not ask this one.")
        if b"%" in scope["raw_path"]:
            # No name here needs it: two ways to write a path are one more than is checked.
            raise Refusal(404, "There is nothing of this name.")
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and not self.door.is_own(headers.get("origin", ""), headers["host"]):
            raise Refusal(403, "Only a page of this studio may edit: the Origin header is not its.")

    def refused(self, refusal: Refusal, scope: Message) -> Response:
        """The refusal as JSON, or as a page for a browser that asks for one."""
        if refusal.status_code == 303:
            return Response(b"", 303, refusal.headers)
        # The rest of a body that was not read is no further request.
        refusal.headers = {"connection": "close"}
        if "text/html" in _headers(scope).get("accept", ""):
            # A browser that was let in sends its cookie with a link of this page, but not with one
            # of another page: so this page leads it in, and others to the words above.
            entering = scope["path"] == "/" and scope["query_string"] and refusal.status_code == 403
            again = _AGAIN if entering else ""
            page = _PAGE.format(words=escape(refusal.detail), again=again)
            return HTMLResponse(page, refusal.status_code, refusal.headers)
        return refusal.answer(self.key)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Nothing is counted."""


@final
class Guard:
    """An application behind rules, which admit requests and word refusals."""

    def __init__(self, inner: Any, rules: ServiceRules | StudioRules) -> None:
        self.inner, self.rules = inner, rules

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, by the guard itself or by the application."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.inner(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", []), *self.rules.headers]
                message = {**message, "headers": headers}
            await send(message)

        try:
            async with self.rules.admitted(scope, receive) as admitted:
                await self.inner(scope, admitted, guarded)
        except Refusal as refusal:
            await self.rules.refused(refusal, scope)(scope, receive, guarded)
        finally:
            self.rules.answered(scope["path"], status, time.perf_counter() - begin)


async def _body(receive: Receive) -> bytes:
    """The whole body of a request."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


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


def _headers(scope: Message) -> Headers:
    """Headers by name. Repeated ones are emptied, except cookies (request smuggling)."""
    found: Headers = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = "" if key in found and key != "cookie" else value.decode("latin-1")
    return found
