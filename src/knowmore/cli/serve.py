"""`knowmore serve`: answers about a model over HTTP."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.extras import optional
from knowmore.serve import Settings, create_app

# Requests beyond these are refused until others are answered.
_CONCURRENT = 64


def run(model: Path, *, host: str, port: int, token: str | None, label_studio: bool) -> None:
    """Serve until interrupted; raises the error if the model cannot be loaded."""
    settings = Settings(model, host=host, token=token, label_studio=label_studio)
    uvicorn = optional("uvicorn", "serve")
    errors: list[KnowmoreError] = []
    server: Any = None

    def failed(error: KnowmoreError) -> None:
        errors.append(error)
        server.should_exit = True

    app = create_app(settings, failed=failed)
    config = uvicorn.Config(
        app, log_level="warning", server_header=False, limit_concurrency=_CONCURRENT
    )
    server = uvicorn.Server(config)
    with _listening(host, port) as listening:
        name, number = listening.getsockname()[:2]
        where = f"[{name}]" if ":" in name else name
        print(
            f"Serving {model} at http://{where}:{number}. Ctrl+C ends it.",
            file=sys.stderr,
            flush=True,
        )
        server.run(sockets=[listening])
    if errors:
        raise errors[0]


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        problem = f"Nothing can be served at {host}, port {port}: {error.strerror or error}."
        raise InvalidInput(f"{problem} Choose another --port; 0 takes a free one.") from error
