"""How far a long history of edits leads from the batch fit. `python -m benchmarks.drift`.

Three models live through the same edits: the Cholesky factor, the explicit inverse that refreshes
itself, and the papers' inverse by Woodbury's formula alone. At some points each is held against a
batch fit in extended precision, and so is a batch fit in double precision: nobody can do better.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from knowmore.models import GP, one_vs_all

BOUND = 1e-8
_QUESTIONS = 10


@dataclass(frozen=True)
class Setting:
    """The history: about `size` examples in `features` dimensions, edited `edits` times."""

    edits: int = 100_000
    size: int = 120
    features: int = 4
    length: float = 1.5
    noise: float = 1e-6
    classes: int = 3
    seed: int = 0

    def checkpoints(self) -> list[int]:
        """The powers of ten from a thousand on, and the end."""
        powers = (10**p for p in range(3, 12))
        return sorted({self.edits, *(p for p in powers if p < self.edits)})


@dataclass
class Subject:
    """A model on its way; `None` once its numbers have broken down."""

    name: str
    gp: GP | None
    seconds: float = 0.0
    broke: int | None = None
    errors: dict[int, float] = field(default_factory=dict)
    refreshes: dict[int, int] = field(default_factory=dict)

    def follow(self, examples: Examples, ask: Array | None, index: int) -> None:
        """The next edit, and a question if one is asked."""
        if self.gp is None:
            return
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                self.gp = self.gp.follow(examples)
                if ask is not None:
                    self.gp.mean(ask)
        except (ArithmeticError, np.linalg.LinAlgError):
            self.gp, self.broke = None, index
        self.seconds += time.perf_counter() - start

    def compare(self, true: Array, Z: Array, index: int) -> None:
        """Note max |score - true| / max |true|."""
        if self.gp is None:
            self.errors[index] = float("inf")
            return
        with np.errstate(all="ignore"):
            error = float(abs(self.gp.mean(Z) - true).max() / abs(true).max())
        self.errors[index] = error if np.isfinite(error) else float("inf")
        self.refreshes[index] = getattr(self.gp.covariance.factor, "refreshes", 0)

    def at(self, index: int) -> float:
        """The error after so many edits."""
        return self.errors[index]


@dataclass(frozen=True)
class Drift:
    """What came out."""

    setting: Setting
    subjects: tuple[Subject, ...]
    batch: dict[int, float]
    conditions: dict[int, float]
    seconds: float

    def raw(self) -> dict[str, Any]:
        """For the JSON file."""
        models = {
            one.name: {
                "errors": one.errors,
                "refreshes": one.refreshes,
                "seconds": one.seconds,
                "broke_down_at": one.broke,
            }
            for one in self.subjects
        }
        return {
            "setting": vars(self.setting),
            "models": models,
            "batch": self.batch,
            "conditions": self.conditions,
            "seconds": self.seconds,
        }


def run(setting: Setting) -> Drift:
    """Lead the three models through one history."""
    start = time.perf_counter()
    rng = np.random.default_rng(setting.seed)
    Z = rng.normal(size=(20, setting.features))
    teacher = rng.normal(size=(setting.features, setting.classes))
    examples = Examples.of(*_draw(rng, teacher, setting.size))
    subjects = tuple(_subjects(setting, examples))
    batch, conditions, checkpoints = {}, {}, set(setting.checkpoints())
    for index in range(1, setting.edits + 1):
        examples = examples.apply(_edit(rng, teacher, examples, setting.size))
        ask = Z if index % _QUESTIONS == 0 else None
        for subject in subjects:
            subject.follow(examples, ask, index)
        if index in checkpoints:
            T = reference.one_vs_all(examples.labels)
            problem = (examples.X, T, Z, setting.length, setting.noise)
            true = reference.scores(*problem)
            batch[index] = float(abs(reference.plain_scores(*problem) - true).max())
            batch[index] /= float(abs(true).max())
            conditions[index] = reference.condition(examples.X, setting.length, setting.noise)
            for subject in subjects:
                subject.compare(true, Z, index)
    return Drift(setting, subjects, batch, conditions, time.perf_counter() - start)


def _subjects(setting: Setting, examples: Examples) -> Iterator[Subject]:
    empty: dict[str, Factor] = {
        "Cholesky": Cholesky(),
        "Inverse, refreshes itself": Inverse(),
        "Inverse, Woodbury alone": Inverse(patience=np.inf),
    }
    for name, factor in empty.items():
        kernel = RBF(setting.length)
        yield Subject(name, GP.of(kernel, setting.noise, examples, one_vs_all, factor))


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
    found = run(Setting(edits=scale.drift))
    last = scale.drift
    for subject in found.subjects:
        refreshed = subject.refreshes.get(last, 0)
        yield Row(
            f"{subject.name}, {last} edits: relative error",
            subject.at(last),
            "",
            "plain batch fit",
            found.batch[last],
            subject.at(last) / found.batch[last],
            note=f"condition {found.conditions[last]:.1e}, {refreshed} refreshes, "
            f"{subject.seconds:.3g} s",
            raw=found.raw(),
        )
    error = found.subjects[0].at(last)
    yield Row(f"Cholesky, {last} edits: error bound", error, "", target=Target("<=", BOUND))


def show(found: Drift, console: Console) -> None:
    """One line for each model, one column for each checkpoint."""
    setting = found.setting
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
    for one in found.subjects:
        errors = [f"{one.at(index):.1e}" for index in setting.checkpoints()]
        refreshes = str(max(one.refreshes.values(), default=0))
        broke = f"{one.name} (broke down at {one.broke:,})" if one.broke else one.name
        table.add_row(broke, *errors, refreshes, f"{one.seconds:.1f}")
    table.add_row("Batch fit in double", *(f"{e:.1e}" for e in found.batch.values()), "", "")
    table.add_row("Condition", *(f"{c:.1e}" for c in found.conditions.values()), "", "")
    console.print(table)
    error = found.subjects[0].at(setting.edits)
    verdict = "met" if error <= BOUND else "missed"
    console.print(
        f"Cholesky after {setting.edits:,} edits: {error:.1e}, target {BOUND:g}: {verdict}"
    )


def main() -> None:
    """The command."""
    default = Setting()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    for name in vars(default):
        value = getattr(default, name)
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--out", type=Path, default=Path("results/drift.json"))
    given = vars(parser.parse_args())
    out = given.pop("out")
    found = run(Setting(**given))
    console = Console()
    show(found, console if console.is_terminal else Console(width=120))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine()} | found.raw(), indent=1))


BENCHMARKS: list[Benchmark] = [drift]

if __name__ == "__main__":
    main()
