"""`knowmore studio`: a page on a model, until it is interrupted."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from pathlib import Path
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import knowmore
from knowmore.cli.listening import impatient, listening
from knowmore.cli.loading import load_without_pandas
from knowmore.cli.showing import counted, progress_bar, show_skipped, talk
from knowmore.errors import MissingData
from knowmore.extras import optional
from knowmore.studio.door import Door

# A browser that is opened early starts while the rest is loaded: see `run`.
if TYPE_CHECKING:
    from knowmore.studio.pool import Pool

# Connections that ask nothing for so many seconds are closed.
_IDLE = 20.0
# Seconds between two looks whether a studio in the background has its terminal again.
_BACKGROUND = 1.0
# What is made if nothing is named: a plane from -1 to 1, where this width looks well.
_PLANE, _WIDTH, _NOISE = Path("plane.km"), 0.3, 0.05


def run(source: Path | None, *, pool: str | None, host: str, port: int, opens: bool) -> None:
    """Serve the studio of a model until interrupted."""
    if source is None or source.suffix != ".km" or pool is not None:
        load_without_pandas()
    path = _model(source)
    asked = None if pool is None else _pool(path, pool)
    with listening(host, port) as socket:
        door = Door(host, socket.getsockname()[1])
        # Whoever comes now waits until the model is loaded.
        print(door.address, flush=True)
        another = ""
        if sys.stdin is not None and sys.stdin.isatty():
            another = " Enter prints a link for another browser;"
            _offer_links(door)
        print(f"The studio of {path}.{another} Ctrl+C ends it.", file=sys.stderr, flush=True)
        if opens:
            Thread(target=webbrowser.open, args=(door.address,), daemon=True).start()
        _server(path, door, asked).run(sockets=[socket])


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


def _pool(path: Path, word: str) -> Pool:
    """Rows without labels, for questions."""
    from knowmore.cli.model import opened
    from knowmore.cli.pools import pool_for

    with opened(path) as model, progress_bar("reading"):
        found = pool_for(model.store, word)
    skipped = f" {found.skipped} could not be used." if found.skipped else ""
    talk(f"{len(found.ids)} rows of {word} to ask about.{skipped}")
    return found


def _read_pool(*arguments: Any) -> Pool:
    """What reads a pool that a page gives, loaded when one does."""
    from knowmore.cli.pools import pool_for

    return pool_for(*arguments)


def _server(path: Path, door: Door, pool: Pool | None) -> Any:
    load_without_pandas()
    from knowmore.studio import create_app

    uvicorn = optional("uvicorn", "studio")
    usual: Any = uvicorn.Server

    class Server(usual):
        def handle_exit(self, *arguments: Any) -> None:
            door.closing = True
            super().handle_exit(*arguments)

    config = uvicorn.Config(
        create_app(path, door, pool, _read_pool),
        log_level="warning",
        server_header=False,
        http=impatient(_IDLE),
        # A page that listens is told to go within a moment.
        timeout_graceful_shutdown=2,
    )
    return Server(config)


def _model(source: Path | None) -> Path:
    """The file of the model that was named, learnt first if it is not one itself."""
    if source is None:
        return _empty_plane()
    if source.suffix == ".km":
        if not source.is_file():
            raise MissingData(f"There is no file {str(source)!r}. Make one: knowmore learn.")
        return source
    return _learnt(source)


def _empty_plane() -> Path:
    if not _PLANE.exists():
        from sklearn.gaussian_process.kernels import RBF

        knowmore.open(_PLANE, knowmore.GPClassifier(RBF(_WIDTH), noise=_NOISE)).close()
        print(f"Made {_PLANE}, an empty plane.", file=sys.stderr, flush=True)
    return _PLANE


def _learnt(source: Path) -> Path:
    """The model beside a folder of pictures or a table, which has learnt what is there."""
    from knowmore.cli.learning import Request, learn

    if not source.exists():
        raise MissingData(f"There is no file or folder {str(source)!r}. Check the path.")
    whole = source.resolve()
    path = source.with_name(f"{whole.name if whole.is_dir() else whole.stem}.km")
    request = Request(
        path, str(source), None, None, contributor=None, origin=None, sync=False, dry_run=False
    )
    with progress_bar("learning") as progress:
        found, read = learn(request, progress)
    show_skipped(read.skipped)
    talk(f"{path} has learnt {source}: {counted(found.examples)}, {found.added} of them new.")
    return path
