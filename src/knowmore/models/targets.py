"""Labels as numbers: the columns that a kernel model solves for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Targets:
    """T = basis @ mix, (n, M), one column for each of `names` (M,), which ascend.

    What is solved for is the basis (n, M): its columns do not change when a class comes or goes.
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
        carried = np.zeros((len(H), len(self.names)), dtype=H.dtype)
        at = np.searchsorted(earlier.names, self.names)
        known = at < len(earlier.names)
        known[known] = earlier.names[at[known]] == self.names[known]
        carried[:, known] = H[:, at[known]]
        return carried


Coding = Callable[[Array], Targets]


def one_vs_all(labels: Array) -> Targets:
    """t^(c)_i = 1 where example i is of class c, else -1; classes in sorted order. Eq. (4).

    The basis is the indicators e^(c), which a new class does not touch. They sum to one, so
    t^(c) = 2 e^(c) - sum_c' e^(c').

    >>> one_vs_all(np.array(["b", "a", "b"])).T
    array([[-1.,  1.],
           [ 1., -1.],
           [-1.,  1.]])
    """
    classes = np.unique(labels)
    basis = np.zeros((len(labels), len(classes)))
    basis[np.arange(len(labels)), np.searchsorted(classes, labels)] = 1
    return Targets(classes, basis, 2 * np.eye(len(classes)) - 1)


def real_values(labels: Array) -> Targets:
    """The values themselves, (n,) or (n, M)."""
    basis = labels.reshape(len(labels), -1).astype(float)
    return Targets(np.arange(basis.shape[1]), basis, np.eye(basis.shape[1]))
