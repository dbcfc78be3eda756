"""Gram blocks and gradients of every kernel, and whether it is positive.

Any scikit-learn `Kernel` works, and so does any callable f(X, Y) -> (n, m). Each type of kernel has
one `KernelRule`, which stands beside the kernel's formula: the rules of scikit-learn's kernels are
in `standard.py`, ours in the files of their classes. A kernel without a rule is called itself, and
its values are checked.

A value depends on its two rows alone, and is the same in a cross block, in a corner and on the
diagonal (except a WhiteKernel's). Values that overflow are infinite or NaN, without a warning: the
caller knows which example they belong to.

Parameters are optimised by sums <W, dK / d theta_j> with one matrix W. The gradient of a kernel is
therefore K (n, n) and a `Pullback` from W to all these sums at once; sums and products of kernels
pass W on to their parts. Memory stays at a few matrices, however many parameters there are, and
what no parameter enters, distances above all, is computed once. theta are scikit-learn's: the
logarithms of the parameters that are not fixed, in its order.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel

from knowmore._base import Array, real_numbers
from knowmore.errors import InvalidInput

AnyKernel: TypeAlias = Kernel | Callable[[Array, Array], Array]
# From a symmetric W (n, n) to <W, dK / d theta>, (p,).
Pullback = Callable[[Array], Array]
# From a kernel, the prepared one with other parameters, to K, (n, n) or one number for all pairs,
# which must not be written to.
Gram = Callable[[Any], tuple[Array, Pullback]]
Function = Callable[..., Any]

# Rows and columns of a tile of a matrix that is added to its transpose.
_TILE = 128
# Rows that a callable is evaluated on at once when only its diagonal is wanted.
_DIAGONAL_ROWS = 32


def cross(kernel: AnyKernel, X: Array, Y: Array) -> Array:
    """The block kappa(X, Y), (n, m), between two sets of different examples.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> cross(RBF(), np.zeros((2, 3)), np.zeros((1, 3)))
    array([[1.],
           [1.]])
    """
    with np.errstate(all="ignore"):
        return np.asarray(_rule(kernel).cross(kernel, X, Y))


def corner(kernel: AnyKernel, X: Array) -> Array:
    """The matrix kappa(X, X), (n, n), of one set; a WhiteKernel adds to its diagonal."""
    with np.errstate(all="ignore"):
        return np.asarray(_rule(kernel).corner(kernel, X))


def diagonal(kernel: AnyKernel, X: Array) -> Array:
    """kappa(x, x) for each row, (n,), without the matrix if the kernel is scikit-learn's."""
    with np.errstate(all="ignore"):
        return np.asarray(_rule(kernel).diagonal(kernel, X))


def is_positive(kernel: AnyKernel) -> bool:
    """Whether the kernel is known to be positive semidefinite for all inputs; False: not known.

    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    >>> is_positive(RBF() + WhiteKernel()), is_positive(ConstantKernel(-1.0))
    (True, False)
    """
    return bool(_rule(kernel).is_positive(kernel))


def prepared(kernel: AnyKernel, X: Array) -> Gram:
    """Prepare K and its gradient for kernels that differ from this one in theta alone.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> K, pull = prepared(RBF(1.0), X)(RBF(2.0))
    >>> pull(np.ones((2, 2))), RBF(2.0)(X, eval_gradient=True)[1].sum(axis=(0, 1))
    (array([0.44124845]), array([0.44124845]))
    """
    if not isinstance(kernel, Kernel) or kernel.n_dims == 0:
        K = corner(kernel, X)
        return lambda _: (K, lambda _: np.empty(0))
    rule = _rule(kernel)
    fixed = rule.prepare(kernel, X)
    return lambda kernel: rule.gradient(kernel, fixed)


# -- a kernel without a rule is called itself ----------------------------------------------------


def _default_cross(kernel: Any, X: Array, Y: Array) -> Array:
    return _checked(kernel, kernel(X, Y), (len(X), len(Y)))


def _default_corner(kernel: Any, X: Array) -> Array:
    K = kernel(X) if isinstance(kernel, Kernel) else kernel(X, X)
    K = _checked(kernel, K, (len(X), len(X)))
    uneven = abs(K - K.T).max(initial=0)
    # A hundred roundings: a sum over features in another order, not another value.
    if uneven > 100 * np.finfo(float).eps * abs(K).max(initial=0):
        raise InvalidInput(
            f"The kernel {kernel!r} is not symmetric: k(x, y) and k(y, x) differ by {uneven:.1e}. "
            f"A covariance function must not depend on the order of its arguments."
        )
    return np.asarray((K + K.T) / 2)


def _default_diagonal(kernel: Any, X: Array) -> Array:
    if isinstance(kernel, Kernel) and len(X):
        return _checked(kernel, kernel.diag(X), (len(X),))
    blocks = [X[i : i + _DIAGONAL_ROWS] for i in range(0, len(X), _DIAGONAL_ROWS)]
    return np.concatenate([np.diagonal(corner(kernel, block)) for block in blocks] or [X[:0, 0]])


def _default_gradient(kernel: Any, X: Array) -> tuple[Array, Pullback]:
    """Takes n x n x p numbers for the kernel's own p parameters."""
    K, gradient = kernel(X, eval_gradient=True)
    return np.asarray(K), lambda W: np.tensordot(W, gradient, 2)


@final
@dataclass(frozen=True)
class KernelRule:
    """Functions for one type of kernel; for a missing one the kernel itself is called.

    cross(kernel, X, Y) : kappa(X, Y), (n, m)
    corner(kernel, X) : kappa(X, X), (n, n), symmetric to the last bit
    diagonal(kernel, X) : kappa(x, x) for each row, (n,)
    prepare(kernel, X) : what its gradient needs that does not depend on theta; X by default
    gradient(kernel, what was prepared) : K, (n, n) or one number for all pairs, and a `Pullback`
    is_positive(kernel) : whether it is positive semidefinite for all inputs
    """

    cross: Callable[[Any, Array, Array], Array] = _default_cross
    corner: Callable[[Any, Array], Array] = _default_corner
    diagonal: Callable[[Any, Array], Array] = _default_diagonal
    prepare: Callable[[Any, Array], Any] = lambda kernel, X: X
    gradient: Callable[[Any, Any], tuple[Array, Pullback]] = _default_gradient
    is_positive: Callable[[Any], bool] = lambda kernel: False


# By the exact type: a subclass may compute something else.
RULES: dict[type, KernelRule] = {}
_DEFAULT = KernelRule()


def _rule(kernel: AnyKernel) -> KernelRule:
    return RULES.get(type(kernel), _DEFAULT)


# -- parts of rules ------------------------------------------------------------------------------


def always(kernel: Any) -> bool:
    """Positive for all parameters."""
    return True


def mean_corner(kernel: Any, X: Array) -> Array:
    """The corner from a cross block that is symmetric up to rounding."""
    return symmetric(cross(kernel, X, X))


def symmetric(K: Array) -> Array:
    """(K + K') / 2, in place, in tiles that stay in the cache."""
    for i in range(0, len(K), _TILE):
        for j in range(0, i + 1, _TILE):
            rows, columns = slice(i, i + _TILE), slice(j, j + _TILE)
            K[rows, columns] = (K[rows, columns] + K[columns, rows].T) / 2
            K[columns, rows] = K[rows, columns].T
    return K


def own_corner(kernel: Any, X: Array) -> Array:
    """The corner of a scikit-learn kernel whose matrices are symmetric to the last bit."""
    return np.asarray(kernel(X), dtype=float)


def by_pairs(value: Function, slopes: Function) -> Function:
    """The gradient of a kernel that is a function of one prepared number D for each pair of rows.

    value(kernel, D) : K, (n, n) or one number
    slopes(kernel, D, K) : dK / d log p, (n, n) or one number, by the name of each parameter p
    """

    def gradient(kernel: Any, D: Any) -> tuple[Array, Pullback]:
        K = value(kernel, D)

        def pull(W: Array) -> Array:
            parts = free(kernel, slopes(kernel, D, K))
            return np.array([np.vdot(W, dK) if np.ndim(dK) else W.sum() * dK for dK in parts])

        return K, pull

    return gradient


def composite(
    parts: Function,
    operate: Function,
    weights: Function,
    keeps_positive: Callable[[Any], bool] = always,
    inputs: Function = lambda kernel, X: X,
) -> KernelRule:
    """The rule of a kernel of kernels.

    parts(kernel) : the kernels it is made of
    operate(kernel, K1, ...) : its values from theirs
    weights(kernel, W, K1, ...) : W1, ..., such that <W, dK> is the sum of all <W1, dK1>
    keeps_positive(kernel) : whether it is positive if its parts are
    inputs(kernel, X) : the inputs of its parts
    """

    def values(function: Function, kernel: Any, *tables: Array) -> Any:
        tables = tuple(inputs(kernel, X) for X in tables)
        return operate(kernel, *(function(part, *tables) for part in parts(kernel)))

    def prepare(kernel: Any, X: Array) -> list[Gram]:
        return [prepared(part, inputs(kernel, X)) for part in parts(kernel)]

    def gradient(kernel: Any, grams: list[Gram]) -> tuple[Array, Pullback]:
        made = [gram(part) for gram, part in zip(grams, parts(kernel), strict=True)]
        blocks, pulls = zip(*made, strict=True)

        def pull(W: Array) -> Array:
            passed = zip(pulls, weights(kernel, W, *blocks), strict=True)
            return np.concatenate([pull(V) for pull, V in passed])

        return operate(kernel, *blocks), pull

    return KernelRule(
        cross=partial(values, cross),
        corner=partial(values, corner),
        diagonal=partial(values, diagonal),
        prepare=prepare,
        gradient=gradient,
        is_positive=lambda kernel: keeps_positive(kernel) and all(map(is_positive, parts(kernel))),
    )


def free(kernel: Any, by_name: dict[str, Any]) -> list[Any]:
    """Entries of the parameters that are not fixed, in the order of theta."""
    return [by_name[h.name] for h in kernel.hyperparameters if not h.fixed]


def with_gradient(kernel: Any, K: Array, Y: Any, slopes: dict[str, Array]) -> tuple[Array, Array]:
    """K and dK / d theta, (n, n, p): the result of our kernels with eval_gradient=True."""
    if Y is not None:
        raise InvalidInput("The gradient is that of K(X, X), but Y was given: leave Y out.")
    gradient = free(kernel, slopes)
    return K, np.stack(gradient, axis=2) if gradient else np.empty((*K.shape, 0))


# -- checks of what a kernel returns -------------------------------------------------------------


def _checked(kernel: Any, values: Any, shape: tuple[int, ...]) -> Array:
    """The values as an array of floats of this shape; sparse ones are filled up with zeros."""
    values = values.toarray() if sparse.issparse(values) else values
    try:
        K = np.asarray(values)
        K = K.astype(float) if K.dtype.kind == "O" else K
    except (TypeError, ValueError):
        K = np.empty(0, dtype=object)
    is_masked = np.ma.is_masked(values)
    if is_masked or K.dtype.kind not in "fiub":
        got = "masked values" if is_masked else f"values of type {K.dtype}"
        raise InvalidInput(
            f"The kernel {kernel!r} gave {got}, but covariances are real numbers: return an array "
            f"of floats, one for each pair of rows."
        )
    if K.shape != shape:
        raise InvalidInput(
            f"The kernel {kernel!r} was asked for a block of shape {shape} and gave {K.shape}. "
            f"A callable kernel takes X (n, d) and Y (m, d) and returns all n x m values at once."
        )
    return np.asarray(K, dtype=float)


# -- checks of parameters ------------------------------------------------------------------------


def check_parameters(kernel: Kernel) -> None:
    """Raise InvalidInput unless each parameter has as many real numbers as it says.

    >>> from sklearn.gaussian_process.kernels import RationalQuadratic
    >>> check_parameters(RationalQuadratic([1.0, 2.0]))
    Traceback (most recent call last):
    knowmore.errors.InvalidInput: The kernel has length_scale=[1.0, 2.0]. Give a real number.
    """
    values = kernel.get_params()
    try:
        parameters = kernel.hyperparameters
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The parameters of the kernel cannot be read: {error}.") from error
    for one in parameters:
        value = values.get(one.name, 0.0)
        try:
            numbers = real_numbers(one.name, value)
        except InvalidInput:
            numbers = np.empty((0, 0))
        if value is None or numbers.ndim > 1 or numbers.size != one.n_elements:
            several = f"{one.n_elements} real numbers" if one.n_elements > 1 else "a real number"
            raise InvalidInput(f"The kernel has {one.name}={reprlib.repr(value)}. Give {several}.")


# -- comparison ----------------------------------------------------------------------------------


def describe_difference(one: Any, other: Any) -> str | None:
    """How two kernels differ in what they compute, in words; None if they compute the same.

    Bounds do not count: only a search for parameters uses them. If both print the same, the words
    name the parameter that differs.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> describe_difference(RBF(1.0), RBF(3.0))
    'RBF(length_scale=1) here, RBF(length_scale=3) there'
    >>> describe_difference(RBF(1.0), RBF(1.0, length_scale_bounds="fixed"))
    >>> describe_difference(2.0 * RBF(1.0), 2.0 * RBF(1.0000001))
    'k2__length_scale=1.0 here, k2__length_scale=1.0000001 there'
    """
    here, there = _settings(one), _settings(other)
    for name in here | there:
        mine, theirs = here.get(name), there.get(name)
        # Squeezed: a list of one number is that number.
        if not np.array_equal(np.squeeze(np.asarray(mine)), np.squeeze(np.asarray(theirs))):
            if repr(one) != repr(other):
                return f"{one!r} here, {other!r} there"
            return f"{name}={mine!r} here, {name}={theirs!r} there"
    return None


def _settings(kernel: Any) -> dict[str, Any]:
    """Attributes that decide what a kernel computes, by name; of inner kernels, their types."""
    if not isinstance(kernel, Kernel):
        return {"kernel": kernel}
    params = {name: p for name, p in kernel.get_params().items() if not name.endswith("_bounds")}
    parts = {name: type(p) if isinstance(p, Kernel) else p for name, p in params.items()}
    return {"type": type(kernel)} | parts
