"""`knowmore serve`: answers about a model over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from knowmore.cli.listening import impatient, listening
from knowmore.errors import KnowmoreError
from knowmore.extras import optional
from knowmore.serve import Settings, create_app

# Connections that have asked nothing for so many seconds are closed.
_IDLE = 20.0


def run(model: Path, *, host: str, port: int, token: str | None, label_studio: bool) -> None:
    """Serve until interrupted; raises the error if the model cannot be loaded."""
    settings = Settings(model, host=host, token=token, label_studio=label_studio)
    uvicorn = optional("uvicorn", "serve")
    errors: list[KnowmoreError] = []
    server: Any = None

    def failed(error: KnowmoreError) -> None:
        errors.append(error)
        server.should_exit = True

    with listening(host, port) as bound:
        name, number = bound.getsockname()[:2]
        where = f"[{name}]" if ":" in name else name

        def ready() -> None:
            told = f"Serving {model} at http://{where}:{number}. Ctrl+C ends it."
            print(told, file=sys.stderr, flush=True)

        app = create_app(settings, failed=failed, ready=ready)
        # The application limits requests: uvicorn would count connections.
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, http=impatient(_IDLE)
        )
        server = uvicorn.Server(config)
        server.run(sockets=[bound])
    if errors:
        raise errors[0]
