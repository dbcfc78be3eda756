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
    """T = basis @ mix, (n, M), one column for each of `names` (M,).

    What is solved for is the basis (n, q): its columns stay when a class comes or goes.
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
        carried = np.zeros((len(H), self.basis.shape[1]), dtype=H.dtype)
        carried[:, len(self.names) :] = H[:, len(earlier.names) :]
        at = np.searchsorted(earlier.names, self.names)
        at[at == len(earlier.names)] = 0
        known = earlier.names[at] == self.names
        carried[:, np.flatnonzero(known)] = H[:, at[known]]
        return carried


Coding = Callable[[Array], Targets]


def one_vs_all(labels: Array) -> Targets:
    """t^(c)_i = 1 where example i is of class c, else -1; classes in sorted order. Eq. (4).

    As 2 [label = c] - 1 it is made of an indicator for each class, which a new class does not
    touch, and a column of ones.

    >>> one_vs_all(np.array(["b", "a", "b"])).T
    array([[-1.,  1.],
           [ 1., -1.],
           [-1.,  1.]])
    """
    classes, codes = np.unique(labels, return_inverse=True)
    basis = np.zeros((len(labels), len(classes) + 1))
    basis[np.arange(len(labels)), codes] = 1
    basis[:, -1] = 1
    mix = np.vstack([2 * np.eye(len(classes)), -np.ones(len(classes))])
    return Targets(classes, basis, mix)


def real_values(labels: Array) -> Targets:
    """The values themselves, (n,) or (n, q)."""
    basis = labels.reshape(len(labels), -1).astype(float)
    return Targets(np.arange(basis.shape[1]), basis, np.eye(basis.shape[1]))
