"""Where a studio is, and who may enter: known names, a token for once, then a cookie."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from secrets import token_urlsafe
from threading import Lock
from typing import final
from urllib.parse import parse_qsl

# Names by which a page on this machine may call it.
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


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
        self._names = {*_LOCAL, name}
        self._lock = Lock()
        self._token: str | None = token_urlsafe(32)
        self._secret = token_urlsafe(32)

    @property
    def address(self) -> str:
        """The address that lets one visitor in, once."""
        return f"http://{self._name}:{self.port}/?token={self._token or 'spent'}"

    def fresh(self) -> str:
        """A new address for one more visitor; the one before lets nobody in any more."""
        with self._lock:
            self._token = token_urlsafe(32)
            return self.address

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this studio."""
        name, colon, port = host.lower().rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host.lower(), "80"
        return name in self._names and port == str(self.port)

    def is_own(self, origin: str, host: str) -> bool:
        """Whether an Origin header is that of a page which this studio served under that host."""
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
        """The Set-Cookie header of a visitor who may stay. Cookies do not know ports: it does."""
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
