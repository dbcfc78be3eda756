"""Rows without labels, and which of them the model would like to have one for.

The covariance of a Gaussian process does not depend on labels. So what the label of a row takes off
the variance of the others is known before it is: sum_j c(x, x_j)^2 / sigma_*^2, with the posterior
covariance c.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, final

import numpy as np
from pydantic import BaseModel, ConfigDict

from knowmore._base import Array, Id
from knowmore.errors import InvalidInput
from knowmore.insight import suggest
from knowmore.store import Store
from knowmore.web.doubting import chances_but
from knowmore.web.drawing import FieldAnswers
from knowmore.web.snapshot import Snapshot
from knowmore.workbench import UnlabelledPool, shown

# The most rows of a pool, and of a pool times a model: what follows edits is as large.
_ROWS, _NUMBERS = 20_000, 40_000_000
# Rows that the next question is chosen from, and how many are chosen.
_CANDIDATES, _NEXT = 1000, 5
# Classes that are named with their chances: as many as have a key.
_CHANCES = 9
# A label informs a row notably that loses this part of its variance, or more.
_NOTABLY = 0.05

# Reads the text of a CSV table of a name as a pool for a model.
PoolReader = Callable[[Store, str, str], UnlabelledPool]


class PoolQuestion(BaseModel):
    """A row to label, why, and what its label takes off the variance of the pool.

    alike : how many other rows of the pool it informs: see `informed`
    unknown : whether the model would say that it knows nothing like it
    refused : labels that somebody has said it has not
    """

    model_config = ConfigDict(extra="allow")
    id: Id
    reason: str
    drop: float | None = None
    alike: int | None = None
    unknown: bool = False
    refused: list[Any] = []


class NextQuestion(BaseModel):
    """The next question, the state of the pool, and accuracies by the number of answers."""

    model_config = ConfigDict(extra="allow")
    number: int
    pool: dict[str, Any] | None
    question: PoolQuestion | None
    curve: list[tuple[int, float | None]]


@final
class PoolQuestions:
    """The questions of a model about a pool, and its accuracy after each answer.

    pool : None if nobody gave one
    reader : reads the text of a CSV table as a pool for a model; None: no table is read
    """

    def __init__(
        self, pool: UnlabelledPool | None = None, reader: PoolReader | None = None
    ) -> None:
        self.reader = reader
        self.pool: UnlabelledPool | None = None
        self._followed: FieldAnswers | None = None
        self._curve: dict[int, float | None] = {}
        # Labels that rows have not, until the studio ends: the file holds nothing of these rows.
        self._refused: dict[Id, list[Any]] = {}
        if pool is not None:
            self.take(pool)

    def read(self, store: Store, name: str, text: str) -> None:
        """Ask about the rows of a CSV table from now on."""
        if self.reader is None:
            problem = "This studio reads no tables."
            raise InvalidInput(f"{problem} Start it by the command knowmore studio.")
        self.take(self.reader(store, name, text))

    def take(self, pool: UnlabelledPool) -> None:
        """Ask about these rows from now on."""
        if len(pool.ids) > _ROWS:
            raise InvalidInput(
                f"{pool.name!r} has {len(pool.ids):,} rows, but a pool may have {_ROWS:,}. Give a "
                f"part of it."
            )
        self.pool, self._followed, self._curve, self._refused = pool, None, {}, {}

    def refuse(self, one: Id, label: Any) -> None:
        """Note that a row is not of this class: it is not proposed for it any more."""
        if self.pool is None or one not in self.pool.ids:
            raise InvalidInput(f"The pool has no row {one!r}.")
        known = self._refused.setdefault(one, [])
        if label not in known:
            known.append(label)

    def _not(self, now: Snapshot, one: Id) -> list[Any]:
        """The labels that somebody has said a row has not, here or before it was put aside."""
        before = now.store.refused().get(one, []) if now.in_file else []
        return [*dict.fromkeys([*before, *self._refused.get(one, [])])]

    def let_go(self, before: Snapshot, now: Snapshot) -> None:
        """Something was forgotten: rows that were examples before and are none now leave the pool.

        So do the accuracies of the states before.
        """
        self._followed, self._curve = None, {}
        if self.pool is None:
            return
        known = {one.id for one in before.entries if one.undone and one.id is not None}
        gone = (known | before.held) - now.held
        if gone.intersection(self.pool.ids):
            self.pool = self.pool.without(gone)
        labels = {*now.labels}
        self._refused = {
            one: [label for label in refused if label in labels]
            for one, refused in self._refused.items()
            if one not in gone
        }

    def ask(self, now: Snapshot, skip: Collection[Id]) -> dict[str, Any]:
        """The next question, leaving out rows to skip, and the state of the pool."""
        pool = self.pool
        if pool is not None and pool is not (other := pool.by(now.table)):
            # New levels have changed what rows are.
            pool, self._followed = other, None
            self.pool = pool
        if pool is None:
            return {"number": now.number, "pool": None, "question": None, "curve": []}
        if not now.is_classifier:
            raise InvalidInput("A model of values has no classes to ask for.")
        left = np.array([i for i, one in enumerate(pool.ids) if one not in now.held], dtype=int)
        may = np.array([i for i in left.tolist() if pool.ids[i] not in skip], dtype=int)
        answered = len(pool.ids) - len(left)
        self._curve = {k: one for k, one in self._curve.items() if k < answered}
        self._curve[answered] = now.accuracy
        about = {"name": pool.name, "rows": len(pool.ids), "left": len(left), "open": len(may)}
        about |= {"unusable": pool.skipped, "pictures": bool(pool.pictures)}
        return {
            "number": now.number,
            "pool": about,
            "curve": [[k, one] for k, one in sorted(self._curve.items())],
            **(self._chosen(now, pool, left, may) if len(may) else {"question": None}),
        }

    def _chosen(
        self, now: Snapshot, pool: UnlabelledPool, left: Array, may: Array
    ) -> dict[str, Any]:
        """The most useful of the rows that may be asked about, and those that may come next."""
        if now.examples is None:
            why = "the model knows nothing yet: begin anywhere"
            first = _shown(pool, int(may[0])) | {"reason": why}
            return {"question": first, "next": []}
        followed = self._follow(now, pool)
        some = np.linspace(0, len(may) - 1, min(len(may), _CANDIDATES)).astype(int)
        among = may[some]
        known = None if followed.following is None else followed.following.among(among)
        found = suggest(now.estimator, pool.X[among], min(_NEXT, len(among)), following=known)
        rows = among[found.indices]
        C, own = _covariances(now.estimator.model_, followed, rows, left)
        drops = _drops(C, own, len(rows))
        first, variance = rows[:1], followed.variance
        assert variance is not None
        refused = self._not(now, pool.ids[rows[0]])
        left_out = f"; it is not {', not '.join(map(str, refused))}" if refused else ""
        unknown = now.judge is not None and now.judge.unknown(
            now.estimator.model_,
            now.estimator.model_inputs(pool.X[first]),
            followed.scores[first],
            variance[first],
        )
        question = {
            **_shown(pool, int(rows[0])),
            "reason": found.reasons[0] + left_out,
            "criterion": found.criterion,
            "drop": drops[0],
            "alike": None if C is None else informed(C[:, 0], own[0], variance[left]) - 1,
            "refused": refused,
            # Until then each example moves the length scale, too.
            "settled": getattr(getattr(now.estimator, "editable_", None), "settled", True),
            "variance": float(variance[left].sum()),
            "unknown": bool(unknown),
            "chances": [
                {"label": label, "probability": chance}
                for label, chance in chances_but(now.estimator, pool.X[rows[0]], refused)[:_CHANCES]
            ],
        }
        rest = zip(rows[1:].tolist(), drops[1:], strict=True)
        coming = [{"id": pool.ids[i], "drop": drop} for i, drop in rest]
        return {"question": question, "next": coming, "among": len(among)}

    def _follow(self, now: Snapshot, pool: UnlabelledPool) -> FieldAnswers:
        """Answers for all rows of the pool, updated from the state before if possible."""
        kept = now.estimator.model_.keeps_rows
        if len(pool.ids) * len(now) > _NUMBERS and kept:
            raise InvalidInput(
                f"The model holds {len(now):,} examples: a pool for it may have "
                f"{_NUMBERS // len(now):,} rows, but {pool.name!r} has {len(pool.ids):,}."
            )
        before = self._followed
        found = FieldAnswers.of(now, pool.X) if before is None else before.follow(now)
        self._followed = found
        return found


def _covariances(
    model: Any, answers: FieldAnswers, rows: Array, left: Array
) -> tuple[Array | None, Array]:
    """The posterior covariances (k, m) of the rows left with `rows`, and the variances of these.

    None for a forest, whose leaves may split.
    """
    if not model.keeps_rows:
        # A row is learnt as it is on the grid, unless it lies beyond.
        try:
            learnt = model.grid.rounded(answers.X[rows])
        except InvalidInput:
            return None, np.zeros(len(rows))
        own = model.noise * (1 + model.leverage(learnt))
        return np.asarray(model.covariance(answers.X[left], learnt)), np.asarray(own)
    if answers.following is not None and answers.variance is not None:
        return answers.following.covariance(rows)[left], answers.variance[rows]
    return None, np.zeros(len(rows))


def _drops(C: Array | None, own: Array, m: int) -> Sequence[float | None]:
    """How much the variances of the rows left would fall in all, had each of m rows a label."""
    if C is None:
        return [None] * m
    drops = np.where(own > 0, (C**2).sum(axis=0) / np.where(own > 0, own, 1), 0.0)
    return [*drops.tolist()]


def informed(covariance: Array, own: float, variance: Array) -> int:
    """How many rows a label informs notably: each loses a twentieth of its variance, or more.

    The label takes c(x, x_j)^2 / sigma_*^2 off the variance of row j, whatever it is.

    covariance : (k,), posterior, of the rows with the labelled one, which may be among them
    own : the variance of that one, with the noise
    variance : (k,), of the rows

    >>> informed(np.array([1.0, 0.3, 0.2]), 1.0, np.array([1.0, 1.0, 1.0]))
    2
    """
    if own <= 0:
        return 0
    return int((covariance**2 / own >= _NOTABLY * variance).sum())


def _shown(pool: UnlabelledPool, row: int) -> dict[str, Any]:
    one = pool.ids[row]
    names = pool.columns or tuple(f"x{i}" for i in range(pool.X.shape[1]))
    values = pool.cells.get(one) or pool.X[row].tolist()
    text = None if pool.texts is None else pool.texts[one]
    return {"id": one, "shown": shown(names, values, picture=one in pool.pictures, text=text)}
