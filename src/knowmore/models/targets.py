"""Labels as numbers: the columns that a kernel model solves for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from knowmore.examples import Examples

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Targets:
    """T = basis @ mix, (n, M), one column for each of `names` (M,), which ascend.

    What is solved for is the basis (n, M + r): a column for each name, then r others. Its columns
    do not change when a class comes or goes, nor with what the mix says.
    """

    names: Array
    basis: Array
    mix: Array

    @property
    def T(self) -> Array:
        """The targets, (n, M)."""
        return np.asarray(self.basis @ self.mix)

    def carry(self, earlier: Targets, H: Array) -> Array:
        """Columns of H, made for the `earlier` basis, in the order of this one.

        A name that is new had no example before: its column was zero.
        """
        if np.array_equal(self.names, earlier.names):
            return H
        M, others = len(self.names), H[:, len(earlier.names) :]
        carried = np.hstack([np.zeros((len(H), M), dtype=H.dtype), others])
        at = np.searchsorted(earlier.names, self.names)
        known = at < len(earlier.names)
        known[known] = earlier.names[at[known]] == self.names[known]
        carried[:, :M][:, known] = H[:, at[known]]
        return carried


Coding = Callable[[Examples], Targets]


def one_vs_all(examples: Examples) -> Targets:
    """t^(c)_i = 1 where example i is of class c, else -1; classes in sorted order. Eq. (4).

    The basis is the indicators e^(c), which a new class does not touch. They sum to one, so
    t^(c) = 2 e^(c) - sum_c' e^(c').

    >>> one_vs_all(Examples.of(np.zeros((3, 1)), np.array(["b", "a", "b"]))).T
    array([[-1.,  1.],
           [ 1., -1.],
           [-1.,  1.]])
    """
    labels = examples.labels
    classes = np.unique(labels)
    basis = np.zeros((len(labels), len(classes)))
    basis[np.arange(len(labels)), np.searchsorted(classes, labels)] = 1
    return Targets(classes, basis, 2 * np.eye(len(classes)) - 1)


def real_values(examples: Examples) -> Targets:
    """The values themselves, (n,) or (n, M)."""
    labels = examples.labels
    basis = (labels[:, None] if labels.ndim == 1 else labels).astype(float)
    return Targets(np.arange(basis.shape[1]), basis, np.eye(basis.shape[1]))
