"""Where services listen, and for how long they wait for a question."""

from __future__ import annotations

import socket
from typing import Any

from knowmore.errors import InvalidInput
from knowmore.extras import optional


def impatient(seconds: float) -> Any:
    """A protocol for uvicorn that closes connections which begin no request for so long.

    uvicorn's own timeout begins after a first answer, and ends with the first byte of the next
    request.
    """
    protocol: Any = optional("uvicorn.protocols.http.h11_impl", "serve").H11Protocol

    class Impatient(protocol):
        waiting: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self.waiting.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.wait()

        def wait(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
            self.waiting = self.loop.call_later(seconds, self.give_up)

        def give_up(self) -> None:
            # A request that has begun has limits of its own.
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Impatient


def listening(host: str, port: int) -> socket.socket:
    """A socket that waits for connections; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
        # Connections inherit it. asyncio sets it only for sockets that were made for TCP by name;
        # else the second part of an answer waits 40 ms until the first is acknowledged.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except OSError as error:
        problem = f"Nothing can be served at {host}, port {port}: {error.strerror or error}."
        raise InvalidInput(f"{problem} Choose another --port; 0 takes a free one.") from error
