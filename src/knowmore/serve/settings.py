"""What a service is told at its start."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import final

from knowmore.errors import InvalidInput, MissingData

# Shorter tokens can be guessed.
_SHORTEST = 16


@final
@dataclass(frozen=True)
class Settings:
    """Which file to serve, who may ask, and how much at once.

    path : a .km file
    host : the address that the server is bound to. Another than that of this machine needs a token
    token : a secret of at least 16 characters that requests must carry, as `Authorization: Bearer`
        or as the password of HTTP's basic authentication. None: whoever reaches the service may ask
    label_studio : whether to be a machine-learning backend of Label Studio too, which edits the
        model. Otherwise nothing is ever written
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

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the service."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False
