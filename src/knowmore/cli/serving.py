"""`knowmore serve` and `knowmore studio`: services on a model, until they are interrupted."""

from __future__ import annotations

import os
import signal
import socket
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import knowmore
from knowmore._base import optional
from knowmore.cli.options import load_without_pandas
from knowmore.cli.showing import counted, progress_bar, show_left_out, show_skipped, talk
from knowmore.errors import InvalidInput, KnowmoreError, MissingData
from knowmore.web import Door

# A browser that is opened early starts while the rest is loaded: see `run`.
if TYPE_CHECKING:
    from knowmore.workbench import UnlabelledPool

# Connections that ask nothing for so many seconds are closed.
_IDLE = 20.0
# Seconds between two looks whether a studio in the background has its terminal again.
_BACKGROUND = 1.0
# Where a Label Studio is, and a token for its pictures.
_LABEL_STUDIO = ("LABEL_STUDIO_URL", "LABEL_STUDIO_API_KEY")
# What is made if nothing is named: a plane from -1 to 1, where this width looks well.
_PLANE, _WIDTH, _NOISE = Path("plane.km"), 0.3, 0.05


def serve(model: Path, *, host: str, port: int, token: str | None, label_studio: bool) -> None:
    """Serve until interrupted; raises the error if the model cannot be loaded."""
    from knowmore.serve import Settings, create_app

    settings = Settings(model, host=host, token=token)
    if label_studio:
        # Label Studio's own machine-learning backends have the same variables.
        told = [os.environ.get(name) or None for name in _LABEL_STUDIO]
        settings = replace(
            settings, label_studio=True, label_studio_url=told[0], label_studio_token=told[1]
        )
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
            if label_studio and None in (settings.label_studio_url, settings.label_studio_token):
                _tell_of_pictures(model)

        app = create_app(settings, failed=failed, ready=ready)
        # The application limits requests: uvicorn would count connections.
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, http=impatient(_IDLE)
        )
        server = uvicorn.Server(config)
        server.run(sockets=[bound])
    if errors:
        raise errors[0]


def _tell_of_pictures(model: Path) -> None:
    """Say what a model of pictures cannot do before it is told where its Label Studio is."""
    with knowmore.open(model) as store:
        of_pictures = "pictures" in store.notes
    if of_pictures:
        talk(
            f"Set {' and '.join(_LABEL_STUDIO)} first: without them the pictures of tasks are "
            f"fetched with a token that newer Label Studios refuse, and then nothing is learnt."
        )


def studio(
    source: Path | None, *, pool: str | None, host: str, port: int, opens: bool, **teaching: Any
) -> None:
    """Serve the studio of a model until interrupted.

    teaching : options of `LearnOptions` for a table or folder that is learnt first
    """
    if source is None or source.suffix != ".km" or pool is not None:
        load_without_pandas()
    path = _model(source, teaching)
    asked = None if pool is None else _pool(path, pool)
    with listening(host, port) as bound:
        door = Door(host, bound.getsockname()[1])
        # A browser that comes now waits for the page, and sees there how the model is loaded.
        print(door.address, flush=True)
        another = ""
        if sys.stdin is not None and sys.stdin.isatty():
            another = " Enter prints a link for another browser;"
            _offer_links(door)
        print(f"The studio of {path}.{another} Ctrl+C ends it.", file=sys.stderr, flush=True)
        if opens:
            Thread(target=webbrowser.open, args=(door.address,), daemon=True).start()
        errors: list[KnowmoreError] = []
        _server(path, door, asked, errors).run(sockets=[bound])
    if errors:
        raise errors[0]


def _offer_links(door: Door) -> None:
    """Print a fresh address whenever Enter is pressed in the terminal."""
    if hasattr(signal, "SIGTTIN"):
        # A job in the background that reads would be stopped: now its read fails.
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def wait() -> None:
        while True:
            try:
                # Not through sys.stdin, whose lock would be held when Python ends.
                if not os.read(sys.stdin.fileno(), 1024):
                    return
            except OSError:
                sleep(_BACKGROUND)
                continue
            print(door.fresh(), flush=True)

    Thread(target=wait, name="knowmore-links", daemon=True).start()


def _pool(path: Path, word: str) -> UnlabelledPool:
    """Rows without labels, for questions."""
    from knowmore.workbench import pool_for

    with knowmore.open(path) as store, progress_bar("reading"):
        found = pool_for(store, word)
    skipped = f" {found.skipped} could not be used." if found.skipped else ""
    talk(f"{len(found.ids)} rows of {word} to ask about.{skipped}")
    return found


def _server(
    path: Path, door: Door, pool: UnlabelledPool | None, errors: list[KnowmoreError]
) -> Any:
    """A server of a studio, which ends if the file cannot be opened; `errors` says why."""
    load_without_pandas()
    from knowmore.studio import create_app
    from knowmore.workbench import pool_for

    uvicorn = optional("uvicorn", "studio")
    usual: Any = uvicorn.Server

    class Server(usual):
        def handle_exit(self, *arguments: Any) -> None:
            door.closing = True
            super().handle_exit(*arguments)

    def failed(error: KnowmoreError) -> None:
        errors.append(error)
        server.should_exit = door.closing = True

    config = uvicorn.Config(
        create_app(path, door, pool, pool_for, failed),
        log_level="warning",
        server_header=False,
        http=impatient(_IDLE),
        # A page that listens is told to go within a moment.
        timeout_graceful_shutdown=2,
    )
    server = Server(config)
    return server


def _model(source: Path | None, teaching: dict[str, Any]) -> Path:
    """The file of the model that was named, learnt first if it is not one itself."""
    if (source is None or source.suffix == ".km") and any(teaching.values()):
        raise InvalidInput(
            "--label, --id, --text, --columns, --category and --ignore are of a table that is "
            "learnt. Name the table, or leave them out."
        )
    if source is None:
        return _empty_plane()
    if source.suffix == ".km":
        if not source.is_file():
            raise MissingData(f"There is no file {str(source)!r}. Make one: knowmore learn.")
        return source
    return _learnt(source, teaching)


def _empty_plane() -> Path:
    if not _PLANE.exists():
        from sklearn.gaussian_process.kernels import RBF

        knowmore.open(_PLANE, knowmore.GPClassifier(RBF(_WIDTH), noise=_NOISE)).close()
        print(f"Made {_PLANE}, an empty plane.", file=sys.stderr, flush=True)
    return _PLANE


def _learnt(source: Path, teaching: dict[str, Any]) -> Path:
    """A model beside a folder of pictures or a table, taught with its contents."""
    from knowmore.workbench import LearnOptions, learn

    if not source.exists():
        raise MissingData(f"There is no file or folder {str(source)!r}. Check the path.")
    whole = source.resolve()
    path = source.with_name(f"{whole.name if whole.is_dir() else whole.stem}.km")
    request = LearnOptions(path, str(source), **teaching)
    with progress_bar("learning") as progress:
        found, read = learn(request, progress)
    show_skipped(read.skipped)
    show_left_out(found.left_out)
    talk(f"{path} has learnt {source}: {counted(found.examples)}, {found.added} of them new.")
    return path


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
