"""Living models in files: opening, durable edits, many rows, the size, and the first answer."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from PIL import Image, ImageDraw
from sklearn.gaussian_process.kernels import RBF

import knowmore
from benchmarks.scene import CLASSES, FEATURES, LENGTH, NOISE, Array, Scale
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import Samples, interleaved, once
from knowmore import GPClassifier, LinearGPClassifier
from knowmore.store.file import File

# Durable edits of one example that are measured.
_EDITS = 30
# Columns of the many rows; a value has eight bytes.
_WIDE = 128


def _data(n: int, d: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.integers(CLASSES, size=n)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def opening(scale: Scale) -> Iterator[Row]:
    """A file opened and asked a question, against a fresh fit that is asked; and its size."""
    X, y = _data(scale.n, FEATURES)
    kernel = RBF(LENGTH)
    with _folder() as folder:
        path = folder / "model.km"
        with knowmore.open(path, GPClassifier(kernel, NOISE)) as store:
            store.add(X, y)

        def opened() -> None:
            with knowmore.open(path) as store:
                store.predict_variance(X[:1])

        def refitted() -> None:
            GPClassifier(kernel, NOISE).fit(X, y).predict_variance(X[:1])

        times = interleaved(3, {"open": opened, "refit": refitted})
        name = f"open a file of {scale.n:,} examples and ask"
        yield faster(name, times["open"], "a fit and the question", times["refit"], 5)
        yield _size(path, X, f"{scale.n:,} x {FEATURES} examples", 4 * scale.n**2)


def _size(path: Path, X: Array, what: str, factor: int) -> Row:
    """The size of a file against the bytes of its vectors and of its factor."""
    size, own = path.stat().st_size, X.nbytes + factor
    return Row(
        f"the file of {what}",
        size,
        "B",
        "vectors and factor",
        own,
        size / own,
        target=Target("<=", 1.15),
    )


def durable(scale: Scale) -> Iterator[Row]:
    """Times of a durable `add` of an example: the factor, SQLite and the rest."""
    n = scale.n * 5 // 8
    X, y = _data(n + _EDITS + 1, FEATURES)
    kernel = RBF(LENGTH)
    alone = GPClassifier(kernel, NOISE).fit(X[:n], y[:n])
    with _folder() as folder, knowmore.open(folder / "m.km", GPClassifier(kernel, NOISE)) as store:
        store.add(X[:n], y[:n])
        store.predict(X[:1])
        commits: list[float] = []
        committed = File._commit

        def clocked(file: File, transaction: Any) -> None:
            commits.append(once(lambda: committed(file, transaction)))

        def ask(add: Callable[[Array, Array], object], i: int) -> None:
            add(X[i : i + 1], y[i : i + 1])

        whole, factor = [], []
        with patch.object(File, "_commit", clocked):
            for i in range(n, n + _EDITS + 1):
                whole.append(once(partial(ask, store.add, i)))
                store.predict(X[:1])
                factor.append(once(partial(ask, alone.add, i)))
                alone.predict(X[:1])
    whole, factor, commits = whole[1:], factor[1:], commits[-_EDITS:]
    beyond = Samples(tuple(w - f for w, f in zip(whole, factor, strict=True)))
    yield Row(
        f"one durable example at n = {n:,}, beyond the same edit in memory",
        beyond.median,
        target=Target("<=", 0.010),
        note=f"of it {1e3 * Samples(tuple(commits)).median:.1f} ms for SQLite's commit; in memory "
        f"{1e3 * Samples(tuple(factor)).median:.1f} ms",
        raw={"measured": beyond.raw(), "commits": commits, "in memory": factor},
    )


def many_rows(scale: Scale) -> Iterator[Row]:
    """Rows into the file of a linear model, and its size."""
    n, block = (100_000, 10_000) if scale.name == "full" else (2000, 500)
    X, y = _data(n, _WIDE)
    with _folder() as folder:
        path = folder / "model.km"
        with knowmore.open(path, LinearGPClassifier()) as store:

            def learn() -> None:
                for i in range(0, n, block):
                    store.add(X[i : i + block], y[i : i + block])

            seconds = once(learn)
        name = f"{n:,} rows of {_WIDE} into the file of a linear model, each second"
        yield Row(name, n / seconds, "rows", target=Target(">=", 20_000))
        yield _size(path, X, f"{n:,} x {_WIDE} rows", 16 * _WIDE**2)


def commands(scale: Scale) -> Iterator[Row]:
    """`knowmore predict` in a new process; and from 50 pictures to the first answer."""
    program = str(Path(sys.executable).with_name("knowmore"))
    X, y = _data(200, 4)
    with _folder() as folder:
        lines = [",".join(map(str, (*row, f"class {c}"))) for row, c in zip(X, y, strict=True)]
        table = folder / "rows.csv"
        table.write_text("\n".join(["a,b,c,d,label", *lines]))
        one = folder / "one.csv"
        one.write_text("a,b,c,d\n0,0,0,0\n")
        model = folder / "model.km"
        _run(program, "learn", model, table, "--label", "label")
        times = interleaved(
            scale.starts, {"predict": lambda: _run(program, "predict", model, one, "--json")}
        )["predict"]
        name = "knowmore predict, in a new process"
        yield Row(name, times.median, target=Target("<=", 1.5), raw=times.raw())
        _draw_pictures(folder / "pictures")
        began = time.perf_counter()
        _run(program, "learn", folder / "shapes.km", folder / "pictures")
        _run(program, "predict", folder / "shapes.km", folder / "pictures" / "disc" / "00.png")
        taken = time.perf_counter() - began
        yield Row("from 50 pictures to an answer: two commands", taken, target=Target("<=", 10))


def _draw_pictures(folder: Path) -> None:
    """Discs and squares of any size, in folders named after them."""
    rng = np.random.default_rng(0)
    for i in range(50):
        shape = ("disc", "square")[i % 2]
        (folder / shape).mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(rng.integers(0, 60, (160, 160), dtype=np.uint8))
        x, y, r = rng.integers(50, 110), rng.integers(50, 110), rng.integers(20, 50)
        draw = ImageDraw.Draw(picture)
        (draw.ellipse if shape == "disc" else draw.rectangle)((x - r, y - r, x + r, y + r), 200)
        picture.save(folder / shape / f"{i // 2:02d}.png")


def _run(*words: object) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"{words[1]} ended with {done.returncode}")


BENCHMARKS: list[Benchmark] = [opening, durable, many_rows, commands]
