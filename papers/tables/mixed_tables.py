"""Tables with texts and blanks: the command `knowmore learn` beside recipes of Python.

The tables are all balanced sets of KEEL with a column of text, nine, and the penguins of
Palmer Station. The rule is older than the figures. The command gets a CSV file as it comes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import knowmore
from knowmore import GPClassifier
from knowmore._base import optional
from knowmore.errors import MissingExtra
from knowmore.tables import TableEncoder
from knowmore.workbench import LearnOptions, Predictor, learn, predictions
from papers.arrays import Array
from papers.data import keel_cells
from papers.findings import Progress, Report, Table, Verdict, silent, write_csv
from papers.practice.rows import Figure
from papers.stopwatch import one_thread
from papers.tables.tasks import FEW

_SPLITS, _QUICK_SPLITS = 5, 2
_TESTED = 2000
KEEL = (
    "breast",
    "chess",
    "crx",
    "german",
    "housevotes",
    "mushroom",
    "saheart",
    "splice",
    "tic-tac-toe",
)
PENGUINS = "penguins"
OURS = "knowmore learn"
RECIPE, SKRUB = "one-hot, median, scaled + GPClassifier", "skrub + GPClassifier"
# Shown for orientation.
LOGISTIC, TREES = "one-hot, median, scaled + LogisticRegression", "skrub + HistGradientBoosting"
ENCODER = "TableEncoder + GPClassifier"


class Cells(NamedTuple):
    """A table: names of columns, cells as texts (n, d), "" where one is blank, and classes (n,)."""

    names: tuple[str, ...]
    cells: Array
    y: Array


@final
@dataclass(frozen=True, eq=False)
class Mixed:
    """The share of right predictions, (splits,), by table and way; and whether it was quick."""

    rates: Mapping[str, Mapping[str, Array]]
    quick: bool

    def gain(self, table: str) -> tuple[str, Figure]:
        """The best recipe of a table, and ours less that in each split."""
        found = self.rates[table]
        best = max((RECIPE, SKRUB), key=lambda name: float(found[name].mean()))
        return best, Figure(tuple(found[OURS] - found[best]), 0.0)


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Mixed:
    """All ways on all tables in five splits; `quick`: two tables, two splits."""
    names = (*KEEL, PENGUINS)[-2:] if quick else (*KEEL, PENGUINS)
    splits = _QUICK_SPLITS if quick else _SPLITS
    rates: dict[str, dict[str, Array]] = {}
    with one_thread():
        for i, name in enumerate(names):
            progress(i / len(names), name)
            table = penguins() if name == PENGUINS else _keel(name)
            each = [_split(table, seed * splits + k) for k in range(splits)]
            rates[name] = {way: np.array([one[way] for one in each]) for way in each[0]}
    return Mixed(rates, quick)


def _split(table: Cells, seed: int) -> dict[str, float]:
    """The share of right predictions by each way, from the same rows."""
    n = len(table.y)
    rows = min(FEW, 2 * n // 3)
    parts = StratifiedShuffleSplit(
        1, train_size=rows, test_size=min(_TESTED, n - rows), random_state=seed
    )
    train, test = next(parts.split(table.cells, table.y))
    found = {OURS: _by_command(table, train, test)}
    X = _frame(table)
    for name, make in _WAYS.items():
        model = make().fit(X.iloc[train], table.y[train])
        found[name] = float(np.mean(model.predict(X.iloc[test]) == table.y[test]))
    return found


def _by_command(table: Cells, train: Array, test: Array) -> float:
    """The share of rows of a CSV file that a model of another CSV file predicts rightly."""
    with TemporaryDirectory() as folder:
        known, new, path = (Path(folder, one) for one in ("known.csv", "new.csv", "m.km"))
        _write(known, table, train, labelled=True)
        _write(new, table, test, labelled=False)
        learn(LearnOptions(path, str(known)), silent)
        with knowmore.open(path) as store:
            predictor = Predictor(store, 0.0, keep=False)
            _, blocks = predictions(store, predictor, [str(new)], None)
            said = [one.label for _, answers, _ in blocks for one in answers]
    return float(np.mean(np.array(said) == table.y[test]))


def _write(path: Path, table: Cells, rows: Array, *, labelled: bool) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *table.names, *(["label"] if labelled else [])])
        for i in rows.tolist():
            writer.writerow([i, *table.cells[i], *([table.y[i]] if labelled else [])])


def _frame(table: Cells) -> Any:
    """The table as pandas reads it: numbers, and texts."""
    pandas = optional("pandas", "tables")
    frame = pandas.DataFrame(table.cells, columns=list(table.names)).replace("", None)
    for name in table.names:
        numbers = pandas.to_numeric(frame[name], errors="coerce")
        if numbers.notna().equals(frame[name].notna()):
            frame[name] = numbers
        else:
            frame[name] = frame[name].astype(object).where(frame[name].notna(), np.nan)
    return frame


def _encoded() -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include="number")),
            ("texts", texts, make_column_selector(dtype_exclude="number")),
        ]
    )


def _skrub(estimator: Any) -> Any:
    return optional("skrub", "tables").tabular_pipeline(estimator)


_WAYS: Mapping[str, Callable[[], Any]] = {
    RECIPE: lambda: make_pipeline(_encoded(), GPClassifier()),
    SKRUB: lambda: _skrub(GPClassifier()),
    ENCODER: lambda: make_pipeline(TableEncoder(), GPClassifier()),
    LOGISTIC: lambda: make_pipeline(_encoded(), LogisticRegression(max_iter=1000)),
    TREES: lambda: _skrub(HistGradientBoostingClassifier(random_state=0)),
}


# -- tables --------------------------------------------------------------------------------------


def _keel(name: str) -> Cells:
    cells, y = keel_cells("balanced", name)
    return Cells(tuple(f"column{j + 1}" for j in range(cells.shape[1])), cells, y)


def penguins() -> Cells:
    """The penguins of Palmer Station, as the PyPI package palmerpenguins holds them."""
    package = find_spec("palmerpenguins")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra(
            "palmerpenguins is not installed: its table is read, but its code is not used. "
            "pip install --no-deps palmerpenguins"
        )
    path = Path(next(iter(package.submodule_search_locations)), "data", "penguins.csv")
    with open(path, newline="", encoding="utf-8") as file:
        (species, *names), *rows = csv.reader(file)
    assert species == "species"
    cells = np.array([["" if one == "NA" else one for one in row[1:]] for row in rows])
    return Cells(tuple(names), cells, np.array([row[0] for row in rows]))


# -- the report ----------------------------------------------------------------------------------


def report(result: Mixed, out: Path) -> Report:
    """A table of all shares, and a verdict on ours beside the best recipe."""
    ways = [OURS, *_WAYS]
    rows = [
        (name, *(f"{found[way].mean():.3f}" for way in ways), *_gains(result, name))
        for name, found in result.rates.items()
    ]
    header = ("", *ways, "best recipe", "ours less it")
    path = write_csv(out / "mixed-tables.csv", ("table", *header[1:]), rows)
    text = (
        "The share of right predictions of rows that were not learnt, in random splits that are "
        "the same for all. The command gets a CSV file without any option."
    )
    text += " For judging run it without --quick." * result.quick
    return Report((text, Table("Mixed tables", header, tuple(rows)), verdict(result)), (path,))


def _gains(result: Mixed, table: str) -> Sequence[str]:
    best, gain = result.gain(table)
    return best, f"{gain.mean:+.3f} ± {gain.error:.3f}"


def verdict(result: Mixed) -> Verdict:
    """Whether the command equals the best recipe in the mean of all tables."""
    gains = Figure(tuple(result.gain(name)[1].mean for name in result.rates), 0.0)
    behind = [
        name for name in result.rates if (one := result.gain(name)[1]).mean < -max(one.error, 0.0)
    ]
    measured = f"{gains.mean:+.4f} ± {gains.error:.4f} over {len(result.rates)} tables"
    measured += f"; behind by more than a standard error on {', '.join(behind) or 'none'}"
    return Verdict(
        "The command is as right as the best recipe, to a standard error of the differences",
        gains.mean >= -gains.error,
        measured,
    )
