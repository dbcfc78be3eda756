"""Pictures of tasks, from the Label Studio that asks and from nowhere else.

Whoever writes a task writes the addresses in it, so an address counts for nothing but its path:
that of an upload or of a local file. Nothing is redirected, or larger or slower than is usual.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from knowmore.errors import InvalidInput

# Bytes of a picture, and seconds that it may take to come.
MOST_BYTES: Final = 25_000_000
_SECONDS: Final = 10.0
_PLACES: Final = ("/data/upload/", "/data/local-files/")
_PORTS: Final = {"http": 80, "https": 443}
_CHUNK: Final = 2**16
_TOKEN: Final = (
    "Label Studio refused the token. Make a personal access token there (Account & Settings), and "
    "start knowmore serve with the variables LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY."
)


@final
@dataclass(frozen=True)
class TaskPicture:
    """The bytes of a picture.

    name : what errors call it
    """

    name: str
    data: bytes

    def read(self) -> bytes:
        """The bytes of the encoded picture."""
        return self.data


@final
class LabelStudioServer:
    """A Label Studio that pictures are fetched from.

    address : where it is
    token : a personal access token, or one of the older kind
    """

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = _origin(address), token
        if not _fits_header(token):
            raise InvalidInput(
                "The token of Label Studio is empty or has blanks or letters that no token has. "
                "Copy it anew from there: Account & Settings."
            )
        # What a personal access token was exchanged for, for some minutes.
        self._access = ""

    def fetched(self, addresses: Iterable[str], end: float) -> dict[str, bytes | str]:
        """The bytes at each address, or the reason why there are none.

        end : the time of the monotonic clock when there is no time left
        """
        found: dict[str, bytes | str] = {}
        for one in addresses:
            if one in found:
                continue
            try:
                found[one] = self.fetch(one, end)
            except InvalidInput as error:
                found[one] = str(error)
            except (OSError, HTTPException) as error:
                why = str(error) or type(error).__name__
                found[one] = f"{_short(one)} could not be fetched from {self.name}: {why}."
        return found

    def fetch(self, address: str, end: float) -> bytes:
        """The bytes at an address in a task; see `fetched`."""
        path = self._path(address)
        status, data, to = self._asked("GET", path, end, self._authorization(end))
        if status == 401 and self._is_personal:
            self._access = ""
            status, data, to = self._asked("GET", path, end, self._authorization(end))
        if status in (401, 403):
            raise InvalidInput(f"{_short(address)} could not be fetched. {_TOKEN}")
        if 300 <= status < 400:
            raise InvalidInput(
                f"{_short(address)} leads elsewhere, to {_short(to)}, which is not followed. Keep "
                f"pictures in Label Studio: uploads, or its local files."
            )
        if status != 200:
            raise InvalidInput(
                f"{_short(address)} could not be fetched: {self.name} answered {status}."
            )
        return data

    @property
    def name(self) -> str:
        """The host and port."""
        return self.address.netloc.rpartition("@")[2]

    @property
    def _is_personal(self) -> bool:
        return self.token.count(".") == 2

    def _authorization(self, end: float) -> str:
        """The header that lets a request in."""
        if not self._is_personal:
            return f"Token {self.token}"
        if not self._access:
            path, body = f"{self.address.path}/api/token/refresh", {"refresh": self.token}
            status, data, _ = self._asked("POST", path, end, "", body)
            try:
                self._access = json.loads(data)["access"] if status == 200 else ""
            except (ValueError, KeyError, TypeError):
                self._access = ""
            if not _fits_header(self._access):
                self._access = ""
                raise InvalidInput(_TOKEN)
        return f"Bearer {self._access}"

    def _path(self, address: str) -> str:
        """The path and query to ask for; raises InvalidInput if an address is no file's here."""
        try:
            given = urlsplit(address)
            same = not given.netloc or _place(given) == _place(self.address)
        except ValueError:
            given, same = SplitResult("", "", "", "", ""), False
        if not same or given.scheme not in ("", self.address.scheme):
            raise InvalidInput(
                f"{_short(address)} is not at {self.name}, and pictures are fetched from there "
                f"alone. Upload it to Label Studio, or serve it as a local file."
            )
        inside = given.path.removeprefix(self.address.path)
        plain, asked = unquote(inside), unquote(given.query)
        parts = [*plain.split("/"), *re.split("[/=&]", asked)]
        if not plain.startswith(_PLACES) or ".." in parts or "\\" in plain + asked:
            raise InvalidInput(
                f"{_short(address)} is neither an upload ({_PLACES[0]}...) nor a local file "
                f"({_PLACES[1]}...) of Label Studio."
            )
        path = quote(inside, safe="/%~!$&'()*+,;=:@")
        query = quote(given.query, safe="/%~!$&'()*+,;=:@?")
        return self.address.path + path + (f"?{query}" if query else "")

    def _asked(
        self,
        method: str,
        path: str,
        end: float,
        authorization: str,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[int, bytes, str]:
        """The status, body and Location of an answer. The body is read if the status is 200."""
        left = min(end - time.monotonic(), _SECONDS)
        if left <= 0:
            raise InvalidInput(f"There was no time to fetch it from {self.name}. Ask for fewer.")
        kind = HTTPSConnection if self.address.scheme == "https" else HTTPConnection
        connection = kind(str(self.address.hostname), self.address.port, timeout=left)
        headers = {"Authorization": authorization} if authorization else {}
        sent = None if body is None else json.dumps(body)
        if sent is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            data = _read(answer, time.monotonic() + left) if answer.status == 200 else b""
            return answer.status, data, answer.headers.get("Location", "")
        finally:
            connection.close()


def _read(answer: HTTPResponse, end: float) -> bytes:
    """The body of an answer, if it is not too long and comes in time."""
    found = bytearray()
    while chunk := answer.read1(_CHUNK):
        found += chunk
        if len(found) > MOST_BYTES:
            raise InvalidInput(f"A picture has more than the {MOST_BYTES:,} bytes allowed.")
        if time.monotonic() > end:
            raise InvalidInput(f"A picture took longer than {_SECONDS:g} s to come.")
    if answer.length:
        raise InvalidInput("A picture was cut off while it came. Try again.")
    return bytes(found)


def _origin(address: str) -> SplitResult:
    """The address of a server, checked."""
    try:
        parts = urlsplit(address.strip().rstrip("/"))
        good = parts.scheme in _PORTS and parts.hostname and (parts.port or 1) > 0
        # What http.client would refuse or cannot send.
        good = good and bool(str(parts.hostname).encode("idna")) and parts.path.isascii()
    except ValueError:
        good = False
    if not good:
        raise InvalidInput(
            f"{_short(address)} is no address of a Label Studio. It begins with http:// or "
            f"https://, such as http://localhost:8080; its variable is LABEL_STUDIO_HOST."
        )
    return parts


def _place(parts: SplitResult) -> tuple[str | None, int | None]:
    """The host and the port of an address."""
    return parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _fits_header(text: Any) -> bool:
    """Whether this is a text that a header can carry as a token."""
    return (
        isinstance(text, str) and text.isascii() and text.isprintable() and text.split() == [text]
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:97]}...")
