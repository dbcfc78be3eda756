"""Access: the settings of a service with its token, and the door of a studio."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from typing import Final, final
from urllib.parse import parse_qsl

from knowmore.errors import InvalidInput, MissingData

# Names by which a page on this machine may call it.
LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
# Shorter tokens can be guessed.
_SHORTEST: Final = 16


def host_and_port(header: str) -> tuple[str, str]:
    """The name and the port in a Host header; the port of HTTP if it has none.

    >>> host_and_port("localhost:8000"), host_and_port("[::1]")
    (('localhost', '8000'), ('[::1]', '80'))
    """
    name, _, port = header.lower().rpartition(":")
    return (name, port) if name and port.isdecimal() else (header.lower(), "80")


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that is bound to this address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@final
@dataclass(frozen=True)
class Settings:
    """Which file to serve, who may ask, and how much at once.

    path : a .km file
    host : the address that the server is bound to; one that other machines reach needs a token
    token : a secret of at least 16 characters that requests must carry, as `Authorization: Bearer`
        or as the password of HTTP's basic authentication. None: no request needs one
    label_studio : whether to be a machine-learning backend of Label Studio too, which edits the
        model. Otherwise nothing is ever written
    label_studio_url, label_studio_token : where it is, and a token for its pictures; None: as it
        says itself. Its own token is refused where only personal access tokens are allowed
    rate : the fraction of known examples that may be called unknown; 0: none is
    most_rows : the most rows of a request
    most_bytes : the longest body of a request
    most_requests : the most requests that are read or answered at a time; others are refused
    seconds : the longest time that a request may take to come, and an answer to be found
    follow : seconds between two looks at the file
    """

    path: Path
    host: str = "127.0.0.1"
    token: str | None = None
    label_studio: bool = False
    label_studio_url: str | None = None
    label_studio_token: str | None = None
    rate: float = 0.05
    most_rows: int = 1000
    most_bytes: int = 8_000_000
    most_requests: int = 64
    seconds: float = 30.0
    follow: float = 1.0

    def __post_init__(self) -> None:
        if not Path(self.path).is_file():
            raise MissingData(
                f"There is no file {str(self.path)!r} to serve. Make one: knowmore learn."
            )
        if self.token is not None and (len(self.token) < _SHORTEST or not self.token.isascii()):
            raise InvalidInput(
                f"The token must have at least {_SHORTEST} ASCII characters: shorter ones can be "
                f'guessed. Make one: python -c "import secrets; print(secrets.token_urlsafe())".'
            )
        if self.token is None and not self.is_local:
            raise InvalidInput(
                f"The host {self.host!r} lets other machines ask, so a token is needed: give one "
                f"(--token, or the variable KNOWMORE_TOKEN), or serve this machine alone, on "
                f"127.0.0.1."
            )

        if self.label_studio_token is not None and self.label_studio_url is None:
            raise InvalidInput(
                "There is a token for a Label Studio, but not where that is. Give its address, "
                "too, such as LABEL_STUDIO_URL=http://localhost:8080."
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the service."""
        return _is_loopback(self.host)


@final
class Door:
    """The address of a studio with its secrets, which are made here and written nowhere.

    host, port : where it is served. A page of another site may have been given a name that leads to
        this machine, so only the machine's own names count, and the host
    closing : set when the server is about to end, so that what waits does not keep it
    """

    def __init__(self, host: str, port: int) -> None:
        name = f"[{host}]" if ":" in host else host.lower()
        self.host, self.port, self.closing = host, port, False
        self._name = name
        self._names = {*LOCAL_NAMES, name}
        self._lock = Lock()
        self._token: str | None = token_urlsafe(32)
        self._secret = token_urlsafe(32)

    @property
    def address(self) -> str:
        """The address that lets one visitor in, once."""
        return f"http://{self._name}:{self.port}/?token={self._token or 'spent'}"

    def fresh(self) -> str:
        """A new address for one more visitor; the address before lets nobody in any more."""
        with self._lock:
            self._token = token_urlsafe(32)
            return self.address

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the studio."""
        return _is_loopback(self.host)

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this studio."""
        name, port = host_and_port(host)
        return name in self._names and port == str(self.port)

    def is_own(self, origin: str, host: str) -> bool:
        """Whether an Origin header names a page that this studio served under that host."""
        return origin.lower() == f"http://{host.lower()}" and self.answers_to(host)

    def spend(self, query: str) -> bool:
        """Whether a query has the token, which is worth nothing from now on."""
        given = dict(parse_qsl(query)).get("token", "")
        with self._lock:
            token = self._token
            if token is None or not hmac.compare_digest(given.encode(), token.encode()):
                return False
            self._token = None
            return True

    @property
    def cookie(self) -> str:
        """The Set-Cookie header of a signed-in visitor. Cookies have no port: the name has."""
        return f"{self._cookie_name}={self._secret}; HttpOnly; SameSite=Strict; Path=/"

    def knows(self, cookies: str) -> bool:
        """Whether a Cookie header has the secret."""
        try:
            found = SimpleCookie(cookies).get(self._cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(
            found.value.encode(), self._secret.encode()
        )

    @property
    def _cookie_name(self) -> str:
        return f"knowmore-studio-{self.port}"
