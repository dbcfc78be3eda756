"""How far a long history of edits leads from the batch fit. `python -m benchmarks.drift`.

Three models live through the same edits: the Cholesky factor, the explicit inverse that refreshes
itself, and the papers' inverse by Woodbury's formula alone. At some points each is held against a
batch fit in extended precision, and so is a batch fit in double precision: nobody can do better.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF

from benchmarks import reference
from benchmarks.scene import Array, Scale
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import machine
from knowmore.edits import Add, Edit, Remove, Replace
from knowmore.examples import Examples
from knowmore.linalg import Cholesky, Factor, Inverse
from knowmore.models import KernelModel, one_vs_all

BOUND = 1e-8
_QUESTIONS = 10


@dataclass(frozen=True)
class Setting:
    """The history: about `size` examples in `features` dimensions, edited `edits` times."""

    edits: int = 100_000
    size: int = 120
    features: int = 4
    length: float = 2.0
    noise: float = 1e-6
    classes: int = 3
    seed: int = 0

    def checkpoints(self) -> list[int]:
        """The powers of ten from a thousand on, and the end."""
        powers = (10**p for p in range(3, 12))
        return sorted({self.edits, *(p for p in powers if p < self.edits)})


@dataclass
class Course:
    """How one model fared; dictionaries have the number of edits as keys."""

    model: str
    seconds: float = 0.0
    broke: int | None = None
    errors: dict[int, float] = field(default_factory=dict)
    refreshes: dict[int, int] = field(default_factory=dict)
    batch: dict[int, float] = field(default_factory=dict)
    conditions: dict[int, float] = field(default_factory=dict)


def _factors() -> dict[str, Factor]:
    return {
        "Cholesky": Cholesky(),
        "Inverse, refreshes itself": Inverse(),
        "Inverse, Woodbury alone": Inverse(patience=np.inf),
    }


def courses(setting: Setting, pool: Executor | None = None) -> list[Course]:
    """Lead each model through the history, each in its own process if there is a pool."""
    every = map if pool is None else pool.map
    return list(every(partial(lead, setting), _factors()))


def lead(setting: Setting, name: str) -> Course:
    """Lead one model through the history; the seed makes it the same for all."""
    rng = np.random.default_rng(setting.seed)
    Z = rng.normal(size=(20, setting.features))
    teacher = rng.normal(size=(setting.features, setting.classes))
    examples = Examples.of(*_draw(rng, teacher, setting.size))
    kernel, factor = RBF(setting.length), _factors()[name]
    gp: KernelModel | None = KernelModel.of(kernel, setting.noise, examples, one_vs_all, factor)
    course, checkpoints = Course(name), set(setting.checkpoints())
    for index in range(1, setting.edits + 1):
        examples = examples.apply(_edit(rng, teacher, examples, setting.size))
        start = time.perf_counter()
        if gp is not None and (gp := _followed(gp, examples, Z, index)) is None:
            course.broke = index
        course.seconds += time.perf_counter() - start
        if index in checkpoints:
            _compare(course, setting, gp, examples, Z, index)
    return course


def _followed(gp: KernelModel, examples: Examples, Z: Array, index: int) -> KernelModel | None:
    """The model after one edit, and now and then a question; None if its numbers broke down."""
    try:
        with np.errstate(all="ignore"):
            gp = gp.follow(examples)
            if index % _QUESTIONS == 0:
                gp.mean(Z)
    except (ArithmeticError, np.linalg.LinAlgError):
        return None
    return gp


def _compare(
    course: Course,
    setting: Setting,
    gp: KernelModel | None,
    examples: Examples,
    Z: Array,
    index: int,
) -> None:
    """Note max |score - true| / max |true|, for the model and for a batch fit."""
    T = reference.one_vs_all(examples.labels)
    problem = (examples.X, T, Z, setting.length, setting.noise)
    true = reference.scores(*problem)
    with np.errstate(all="ignore"):
        scores = np.full_like(true, np.nan) if gp is None else gp.mean(Z)
    error = float(abs(scores - true).max() / abs(true).max())
    course.errors[index] = error if np.isfinite(error) else float("inf")
    plain = reference.plain_scores(*problem)
    course.batch[index] = float(abs(plain - true).max() / abs(true).max())
    course.conditions[index] = reference.condition(examples.X, setting.length, setting.noise)
    if gp is not None:
        course.refreshes[index] = getattr(gp.covariance.factor, "refreshes", 0)


def _draw(rng: np.random.Generator, teacher: Array, k: int) -> tuple[Array, Array]:
    X = rng.normal(size=(k, len(teacher)))
    return X, (np.sin(X) @ teacher).argmax(axis=1)


def _edit(rng: np.random.Generator, teacher: Array, examples: Examples, size: int) -> Edit:
    """Half of the edits replace one example; the others add or remove, drawn towards `size`."""
    X, y = _draw(rng, teacher, 1)
    if rng.random() < 0.5:
        return Replace(_any(rng, examples), X, y)
    lean = (len(examples) - size) / size
    return Remove(_any(rng, examples)) if rng.random() < 0.5 + lean else Add(X, y)


def _any(rng: np.random.Generator, examples: Examples) -> tuple[int, ...]:
    return (int(examples.ids[rng.integers(len(examples))]),)


# -- the faces -----------------------------------------------------------------------------------


def drift(scale: Scale) -> Iterator[Row]:
    """As rows among the other benchmarks."""
    setting, last = Setting(edits=scale.drift), scale.drift
    for course in courses(setting):
        error, batch = course.errors[last], course.batch[last]
        yield Row(
            f"{course.model}, {last:,} edits: relative error",
            error,
            "",
            note=f"a plain batch fit {batch:.1e}, condition {course.conditions[last]:.1e}, "
            f"{course.refreshes.get(last, 0)} refreshes, {course.seconds:.3g} s",
            target=Target("<=", BOUND) if course.model == "Cholesky" else None,
            raw=vars(setting) | asdict(course),
        )


def show(setting: Setting, found: list[Course], console: Console) -> None:
    """Print a table: a line for each model, a column for each checkpoint."""
    table = Table(
        title=f"Relative error of scores: n about {setting.size}, d = {setting.features}, "
        f"RBF({setting.length:g}), noise {setting.noise:g}",
        title_justify="left",
    )
    table.add_column("model")
    for index in setting.checkpoints():
        table.add_column(f"{index:,} edits", justify="right")
    table.add_column("refreshes", justify="right")
    table.add_column("seconds", justify="right")
    for one in found:
        errors = [f"{error:.1e}" for error in one.errors.values()]
        refreshes = str(max(one.refreshes.values(), default=0))
        broke = f"{one.model} (broke down at {one.broke:,})" if one.broke else one.model
        table.add_row(broke, *errors, refreshes, f"{one.seconds:.1f}")
    table.add_row("Batch fit in double", *(f"{e:.1e}" for e in found[0].batch.values()), "", "")
    table.add_row("Condition", *(f"{c:.1e}" for c in found[0].conditions.values()), "", "")
    console.print(table)
    error = found[0].errors[setting.edits]
    verdict = "met" if error <= BOUND else "missed"
    console.print(
        f"Cholesky after {setting.edits:,} edits: {error:.1e}, target <= {BOUND:g}: {verdict}"
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    for name, value in vars(Setting()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--out", type=Path, default=Path("results/drift.json"))
    given = vars(parser.parse_args())
    out, setting = given.pop("out"), Setting(**given)
    # Not forked: a child would inherit locks of BLAS threads that it does not have.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        found = courses(setting, pool)
    console = Console()
    show(setting, found, console if console.is_terminal else Console(width=120))
    out.parent.mkdir(parents=True, exist_ok=True)
    models = [asdict(course) for course in found]
    content = {"machine": machine(), "setting": vars(setting), "models": models}
    out.write_text(json.dumps(content, indent=1))


BENCHMARKS: list[Benchmark] = [drift]

if __name__ == "__main__":
    main()
