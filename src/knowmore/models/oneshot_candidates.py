"""What a one-shot model may learn from: support tasks, and the best rho of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, final

import numpy as np

from knowmore.arrays import Array, Frozen, derived, first_not_finite
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput
from knowmore.extras import optional
from knowmore.kernels import AnyKernel, corner
from knowmore.models.oneshot import Pair
from knowmore.models.oneshot_criteria import CRITERIA
from knowmore.models.oneshot_search import SEARCHES, Best, grid, ranking

# Support tasks that a ranking shows.
_SHOWN = 10


@final
@dataclass(frozen=True, eq=False)
class Support(Frozen):
    """A support task: examples X (n_S, d) of another class, and their kernel matrix K (n_S, n_S).

    The background is the target's. Here it would be there twice, so all labels are one (section 3
    of Rodner and Denzler).
    """

    name: str
    X: Array
    K: Array

    @classmethod
    def of(cls, kernel: AnyKernel, name: str, X: Array) -> Support:
        """The task of a copy of X."""
        X = np.array(X)
        X.flags.writeable = False
        return cls(name, X, finite(kernel, name, corner(kernel, X)))

    @cached_property
    def _digests(self) -> frozenset[bytes]:
        return frozenset(map(_digest, self.X))

    def shared(self, X: Array) -> tuple[int, int] | None:
        """A row of X (n, d) that is an example of this task, and which; None if there is none."""
        for row, x in enumerate(X):
            if _digest(x) in self._digests:
                return row, int((x == self.X).all(axis=1).argmax())
        return None


@final
@dataclass(frozen=True)
class Rule:
    """How rho and the support task are chosen, and for which class.

    criterion : one of `CRITERIA`
    search : one of `SEARCHES`, or the only rho that is looked at
    noise : sigma^2; None for the smallest that will do
    name : what the positive class is called
    """

    criterion: str = "ap"
    search: str | float = "grid"
    noise: float | None = None
    name: str | None = None

    @property
    def largest(self) -> float:
        """The largest rho that is looked at."""
        return 1.0 if isinstance(self.search, str) else self.search

    def positive(self, classes: Array) -> int:
        """Which of the two classes is positive: the one of that name, or else the second."""
        labels = classes.tolist()
        return labels.index(self.name) if self.name in labels else 1

    def best(self, pair: Pair) -> Best:
        """The best rho of a pair of tasks."""
        if isinstance(self.search, str):
            return SEARCHES[self.search](pair, CRITERIA[self.criterion])
        return grid(pair, CRITERIA[self.criterion], np.array([self.search]))


@final
@dataclass(frozen=True, eq=False)
class Candidate(Frozen):
    """A support task beside the target: C (n_T, n_S), their pair, and what is best for it."""

    support: Support
    C: Array
    pair: Pair
    rule: Rule

    @derived
    def best(self) -> Best:
        """The best rho."""
        return self.rule.best(self.pair)


class Ranked(NamedTuple):
    """A support task with its best rho, the criterion's value, and the log predictive probability.

    The last decides between equal values.
    """

    support: str
    rho: float
    value: float
    lpp: float


@final
@dataclass(frozen=True, repr=False)
class Ranking:
    """Support tasks, the best first.

    >>> Ranking("ap", (Ranked("cheetah", 0.42, 1.0, -3.25), Ranked("wrench", 0.0, 0.5, -4.5)))
    support   rho     ap     lpp
    cheetah  0.42  1.000   -3.25
    wrench   0.00  0.500   -4.50
    """

    criterion: str
    rows: tuple[Ranked, ...]

    @classmethod
    def of(cls, criterion: str, candidates: tuple[Candidate, ...]) -> Ranking:
        """The ranking of these; of equal ones the first given is first."""
        found = {one.support.name: one.best for one in candidates}
        return cls(criterion, tuple(Ranked(name, *found[name]) for name in ranking(found)))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> Ranked:
        return self.rows[place]

    def __repr__(self) -> str:
        shown = self.rows[:_SHOWN]
        table = [("support", "rho", f"{self.criterion:>6}", f"{'lpp':>7}")]
        table += [
            (name, f"{rho:.2f}", f"{value:.3f}", f"{lpp:.2f}") for name, rho, value, lpp in shown
        ]
        wide = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            f"{name:{wide[0]}}  {rho:>4} {value:>{wide[2]}} {lpp:>{wide[3]}}"
            for name, rho, value, lpp in table
        ]
        more = [f"... and {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return "\n".join(lines + more)

    def to_pandas(self) -> Any:
        """A table with the columns support, rho, value and lpp."""
        return optional("pandas", "tables").DataFrame(list(self.rows), columns=Ranked._fields)


def _digest(x: Array) -> bytes:
    """Equal for equal rows. Adding zero makes one of the two zeros."""
    return blake2b(np.ascontiguousarray(x + 0.0, dtype=float).tobytes(), digest_size=16).digest()


def finite(kernel: AnyKernel, name: str, K: Array) -> Array:
    """The kernel values K of the support task `name`, if they are all finite."""
    if first_not_finite(K) is not None:
        raise InvalidInput(
            f"The kernel {kernel!r} gave a value that is not finite for the support {name!r}. "
            f"Its features may be too large: scale them as those of the examples. "
            f"Nothing was changed."
        )
    return K
