"""Kernels as plain data: a tree of few kinds of nodes, which ONNX and JavaScript both know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.gaussian_process import kernels as sk

from knowmore.errors import InvalidInput
from knowmore.kernels import (
    AnyKernel,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)

# exp(-z) is zero from here on, times any power of z.
VANISHED = 1e4
# The orders of a Matern kernel that are an exponential times a polynomial.
_MATERN = {0.5: "matern-1/2", 1.5: "matern-3/2", 2.5: "matern-5/2", np.inf: "rbf"}


@final
@dataclass(frozen=True)
class Node:
    """A kernel k(x, y), made of `parts`.

    kind and numbers :
        "constant", (c,): c
        "white", (c,): c for a row with itself, 0 for two rows
        "dot", (c,): x'y + c
        "intersection", (): sum_i min(x_i, y_i)
        "chi-squared", (g,): exp(-g sum_i (x_i - y_i)^2 / (x_i + y_i)), 0 where both bins are empty
        "city-block", (g,): exp(-g sum_i |x_i - y_i|)
        "rbf", "matern-1/2", "matern-3/2", "matern-5/2", (l,) or (l_1, ..., l_d): the function of
        r = |(x - y) / l|
        "sum" and "product", (): of all parts
    """

    kind: str
    numbers: tuple[float, ...] = ()
    parts: tuple[Node, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The tree as values for JSON."""
        parts = [part.to_dict() for part in self.parts]
        return {"kind": self.kind, "numbers": [*self.numbers], "parts": parts}


def tree(kernel: AnyKernel) -> Node:
    """The kernel as a tree; raises InvalidInput if it has other parts.

    >>> tree(2.0 * sk.RBF(3.0)).to_dict()["parts"][1]
    {'kind': 'rbf', 'numbers': [3.0], 'parts': []}
    """
    # By the exact type: a subclass may compute something else.
    make = _MAKERS.get(type(kernel))
    node = None if make is None else make(kernel)
    if node is None:
        raise InvalidInput(
            f"The kernel {kernel!r} cannot be exported. Those that can are RBF, Matern with "
            f"nu=0.5, 1.5 or 2.5, DotProduct, ConstantKernel, WhiteKernel, HistogramIntersection, "
            f"ExponentialIntersection, ChiSquared, and sums and products of these. Fit with one of "
            f"them to export the model."
        )
    return node


def _stationary(kernel: Any) -> Node | None:
    kind = _MATERN.get(float(kernel.nu) if type(kernel) is sk.Matern else np.inf)
    scales = np.atleast_1d(np.squeeze(np.asarray(kernel.length_scale, dtype=float)))
    return None if kind is None else Node(kind, tuple(scales.tolist()))


def _composite(kind: str) -> Callable[[Any], Node]:
    return lambda kernel: Node(kind, (), (tree(kernel.k1), tree(kernel.k2)))


_MAKERS: dict[type, Callable[[Any], Node | None]] = {
    sk.RBF: _stationary,
    sk.Matern: _stationary,
    sk.DotProduct: lambda kernel: Node("dot", (float(kernel.sigma_0) ** 2,)),
    sk.ConstantKernel: lambda kernel: Node("constant", (float(kernel.constant_value),)),
    sk.WhiteKernel: lambda kernel: Node("white", (float(kernel.noise_level),)),
    HistogramIntersection: lambda kernel: Node("intersection"),
    ChiSquared: lambda kernel: Node("chi-squared", (float(kernel.gamma),)),
    ExponentialIntersection: lambda kernel: Node("city-block", (float(kernel.gamma),)),
    sk.Sum: _composite("sum"),
    sk.Product: _composite("product"),
}
