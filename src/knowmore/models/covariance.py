"""The label-free half of every kernel model: the covariance of the examples it holds.

K~ = kappa(X, X) + sigma^2 diag(1 / w) and its factor; the weights w are one unless given. Labels do
not enter, so relabelling touches no matrix and the predictive variance is one for all classes.
(Weights by class are the exception: they follow the labels.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from math import isfinite, isnan
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from knowmore._base import (
    Array,
    Frozen,
    bounded,
    check_free,
    derived,
    first_not_finite,
    leading,
    report,
)
from knowmore.errors import InvalidInput, NotPositiveDefinite, warn
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner, cross, diagonal, is_positive
from knowmore.linalg import Factor, product
from knowmore.models.targets import Weighting

# Kernel values that are in memory at a time while a question is answered.
_NUMBERS = 2**23
# Rows by which the panels of a triangle exceed it, at most.
_PADDING = 256
# Below this size, skip the checks of memory and time.
MANY = 4000
# At most this many examples have a matrix of four megabytes or less.
_FEW = 700
# Operations a second of a factorisation on two cores that do nothing else.
_RATE = 5e10
_WAYS_OUT = (
    "For any number of rows there are linear models (LinearGPClassifier and LinearGPRegressor, "
    "behind Landmarks if the kernel is not linear) and forests (ForestGPClassifier and "
    "ForestGPRegressor)."
)
# The factor of the noise of a robust model.
_DOUBT = 10.0
# Columns whose largest number is between these are solved for as they are.
_UNSCALED = 1e-50, 1e50
# Two examples whose correlation is this close to one are taken for duplicates.
_ALIKE = 1e-6


class Asked(NamedTuple):
    """A single row that was asked about.

    x, k, half : the row (1, d), its kernel values k_* (n, 1), and F(k_*) (n, 1)
    """

    x: Array
    k: Array
    half: Array


@final
@dataclass(frozen=True, eq=False)
class Covariance(Frozen):
    """kernel, noise sigma^2, examples, their weights, and the factor of K~; immutable.

    width : the number of leading columns of the inputs that the kernel sees, None for all
    update : how a block of examples is added or removed: "direct", at once; "iterative", one after
        the other; "auto", at once, or by a new factor from the first change on if that is cheaper
    """

    # Computed again on demand.
    transient: ClassVar[frozenset[str]] = frozenset({"robust", "X"})

    kernel: AnyKernel
    noise: float
    examples: Examples
    factor: Factor
    weighting: Weighting = field(default_factory=Weighting)
    update: str = "auto"
    width: int | None = None

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        noise: float,
        examples: Examples,
        empty: Factor,
        weighting: Weighting | None = None,
        update: str = "auto",
    ) -> Covariance:
        """The covariance of `examples`, factorised from scratch; `empty` is a factor of size 0."""
        begin = cls(kernel, noise, examples, empty, weighting or Weighting(), update)
        return begin.anew(examples)

    def __repr__(self) -> str:
        return f"Covariance({self.examples!r}, {self.kernel!r}, noise={self.noise:g})"

    def anew(self, examples: Examples, **settings: Any) -> Covariance:
        """The covariance of `examples`, factorised from scratch, with other kernel or noise."""
        nothing = Examples.of(examples.X[:0], examples.labels[:0])
        empty = self.factor.delete(np.arange(self.factor.size)) if self.factor.size else self.factor
        return replace(self, examples=nothing, factor=empty, **settings).follow(examples)

    @derived
    def robust(self) -> Covariance:
        """The covariance of these examples with ten times the noise, factorised from scratch.

        `self`, if there is no noise, if the numbers would overflow, or if the matrix with more
        noise is not positive definite either.
        """
        largest = np.finfo(self.factor.dtype).max / _DOUBT**2
        if not self.noise or self.diagonal.max(initial=0) > largest:
            return self
        with suppress(NotPositiveDefinite):
            found = self.anew(self.examples, noise=_DOUBT * self.noise)
            # The chain ends here: no covariance of a hundred times the noise.
            vars(found)["robust"] = found
            return found
        return self

    @derived
    def X(self) -> Array:
        """The inputs that the kernel sees, (n, d)."""
        return self.seen(self.examples.X)

    def seen(self, X: Array) -> Array:
        """The columns of inputs X that the kernel sees, (m, d)."""
        return leading(X, self.width)

    @derived
    def weights(self) -> Array:
        """The weights w of the examples, (n,)."""
        return self.weighting(self.examples)

    @derived
    def diagonal(self) -> Array:
        """The diagonal of K~, (n,)."""
        return np.asarray(self.own + self.noise / self.weights)

    @derived
    def own(self) -> Array:
        """kappa(x, x) of the examples, (n,)."""
        return np.asarray(diagonal(self.kernel, self.X))

    # -- following the examples --------------------------------------------------------------

    def follow(self, examples: Examples) -> Covariance:
        """The covariance of `examples`, by the smallest update that leads there."""
        return self.carry(examples, np.empty((0, 0), dtype=self.factor.dtype))[0]

    def carry(
        self,
        examples: Examples,
        H: Array,
        since: tuple[Array, int] | None = None,
        asked: Asked | None = None,
    ) -> tuple[Covariance, Array]:
        """`follow`, and the leading rows of H (h, m) that stay valid, where H = F(B) by the factor.

        The rows of B for examples that stay do not change.
        since : `examples.since` our examples, if known
        asked : the last single row that was asked about, often the next to be learnt
        """
        factor, H = self.reduced(examples, H, since, asked)
        single = self.update == "iterative" and factor.size
        step = 1 if single else factor.traits.block
        weights = self.weighting(examples)
        try:
            for i in range(factor.size, len(examples), step):
                noises = self.noise / weights[i : i + step]
                factor = factor.append(*self._rows(examples, noises, i))
                report((factor.size / len(examples)) ** 3)
        except NotPositiveDefinite as error:
            raise explained(self, error.row, examples) from error
        settings = self.weighting, self.update, self.width
        after = Covariance(self.kernel, self.noise, examples, factor, *settings)
        robust = vars(self).get("robust", self)
        if factor is self.factor and robust is not self:
            # Labels alone have changed.
            vars(after)["robust"] = found = replace(robust, examples=examples)
            vars(found)["robust"] = found
        return after, H

    def reduced(
        self,
        examples: Examples,
        H: Array,
        since: tuple[Array, int] | None = None,
        asked: Asked | None = None,
    ) -> tuple[Factor, Array]:
        """The factor without the rows that must go, and H, as in `carry`, without them."""
        _, deleted, appended = self._changes(examples, since)
        factor, single = self.factor, self.update == "iterative"
        if len(examples) > MANY:
            _announce(factor.size - len(deleted), appended, self.prepare(examples))
        grown = self._with_answer(examples, asked) if appended == 1 and asked is not None else None
        factor = factor if grown is None else grown
        if len(deleted):
            for rows in deleted[::-1, None] if single else [deleted]:
                factor, H = factor.without(rows, H)
        return factor, H

    def _with_answer(self, examples: Examples, asked: Asked) -> Factor | None:
        """The factor of our examples and the last of these, if that is what was asked about.

        None if it is not, or if there can be no such factor while others are still to be deleted.
        """
        if not self.factor.traits.nested or not (asked.x == examples.X[-1]).all():
            return None
        noises = self.noise / self.weighting(examples)[-1:]
        _, N = self._rows(examples, noises, len(examples) - 1, asked.k)
        with suppress(NotPositiveDefinite):
            return self.factor.append(asked.k, N, asked.half)
        return None

    def prepare(self, examples: Examples, *, from_scratch: bool = False) -> int:
        """Compile what it takes to follow these examples, and return how many bytes it may take.

        Zero if there is memory for it in any case.
        """
        traits, n = self.factor.traits, len(examples)
        if n <= _FEW:
            # For any change: the code is compiled once, and the whole matrix is small.
            if not examples.extend(self.examples):
                traits.load(self.factor.dtype)
            return 0
        first, deleted, appended = self._changes(examples)
        if len(deleted):
            traits.load(self.factor.dtype)
        if from_scratch:
            first, appended = 0, n
        # The rows that stay are cut out of a whole inverse.
        rows = n + (_PADDING if traits.nested else len(deleted))
        stored = traits.copies * (rows**2 - first**2) * self.factor.dtype.itemsize
        # A block of kernel values and a few that it is computed from, and the factor's work space.
        work = n * (8 * min(appended, traits.block) + 3 * len(deleted)) + 4 * examples.X.size
        return int(stored) + 8 * work

    def _changes(
        self, examples: Examples, since: tuple[Array, int] | None = None
    ) -> tuple[int, Array, int]:
        """The factor's first row to change, its rows to delete, and how many to append then."""
        deleted, appended = examples.since(self.examples) if since is None else since
        traits, n, size = self.factor.traits, len(examples), self.factor.size
        if self.weighting.classes is not None:
            # The weight of an example never changes, but the weight of its class may.
            rows, weights = (np.delete(each, deleted) for each in (np.arange(size), self.weights))
            same = weights == self.weighting(examples)[: len(weights)]
            if not same.all():
                # From the first example whose weight changed on, all rows are replaced.
                rows = rows[: same.argmin()]
                deleted, appended = np.delete(np.arange(size), rows), n - len(rows)
        stay = n - appended
        first, changed = int(deleted[0]) if len(deleted) else stay, len(deleted)
        if not traits.nested:
            first, changed = 0, appended
        # It may be cheaper to drop what depends on the changes and append the rest again. But that
        # may fail, and a deletion must not.
        cheaper = self.update == "auto" and traits.update_cost * changed > stay - first
        if cheaper and len(deleted):
            cheaper = self.is_well_conditioned(examples, max_variance(self.kernel, self.X))
        if cheaper:
            deleted, appended = np.arange(first, size), n - first
        return first, deleted, appended

    def _rows(
        self, examples: Examples, noises: Array, begin: int, C: Array | None = None
    ) -> tuple[Array, Array]:
        """Rows of K~ from `begin` on, one for each of the `noises` (k,).

        Against the examples before, C (begin, k), and among each other, (k, k). A C that is known
        is finite.
        """
        new = slice(begin, begin + len(noises))
        X = self.seen(examples.X[new])
        N = corner(self.kernel, X)
        blocks = [N]
        if C is None:
            before = self.seen(examples.X[:begin])
            C = cross(self.kernel, before, X) if begin else np.empty((0, len(X)))
            blocks = [C, N]
        for block in blocks:
            if (bad := first_not_finite(block.T)) is not None:
                raise InvalidInput(
                    f"The kernel {self.kernel!r} gave a value that is not finite for the example "
                    f"{examples.names[begin + bad]!r}: scale its features. Nothing was changed."
                )
        if not isfinite(noises.max(initial=0)):
            raise InvalidInput(
                f"noise / weight is not finite for one of the examples, at noise={self.noise:g} "
                f"(1 / C of a least-squares SVM): raise the weights, or C. Nothing was changed."
            )
        N.flat[:: len(N) + 1] += noises
        least, most, _ = _range(self.factor.dtype)
        if len(N) == 1 and least <= N[0, 0] <= most:
            return C, N
        sizes = abs(N).max(axis=0)
        if (largest := sizes.max()) > most:
            raise InvalidInput(
                f"The kernel {self.kernel!r} gave {largest:.3g}, noise included, for the example "
                f"{examples.names[begin + sizes.argmax()]!r}, but {self.factor.dtype} holds no "
                f"more than {most:.2g}: scale the features, or use dtype='float64'. Nothing was "
                f"changed."
            )
        lost = (np.diagonal(N) > 0) & (np.diagonal(N) < least)
        if lost.any():
            raise explained(self, begin + int(lost.argmax()), examples)
        return C, N

    def is_well_conditioned(self, examples: Examples, max_variance: float) -> bool:
        """Is factorising these examples, with kappa(x, x) <= max_variance, sure to succeed?

        Rounding perturbs K~ by at most about n^2 eps max K~_ii (Higham, Accuracy and Stability,
        theorem 10.7); noise above that keeps a positive kernel's matrix positive definite. In other
        words, eps times n times the condition, at most n (max_variance + noise) / noise, is small.
        """
        if self.weighting.classes is None:
            return self.tolerates(len(examples), examples.extremes, max_variance)
        weights = self.weighting(examples)
        extremes = float(weights.min(initial=1)), float(weights.max(initial=1))
        return self.tolerates(len(examples), extremes, max_variance)

    def tolerates(self, n: int, weights: tuple[float, float], max_variance: float) -> bool:
        """Whether any n examples, of weights between these two, are well conditioned."""
        if not is_positive(self.kernel):
            return False
        least, most = self.noise / weights[1], self.noise / weights[0]
        smallest, largest, eps = _range(self.factor.dtype)
        if least < smallest or max_variance + most > largest:
            return False
        worst = n**2 * (max_variance + most) / least
        return bool(4 * eps * worst < self.factor.traits.rounding)

    # -- asking ------------------------------------------------------------------------------

    def cross(self, X: Array, begin: int = 0, first: int = 0) -> Array:
        """k_* = kappa(X_held, X), (n, m); all finite. X: rows from `begin` on of a question.

        first : the first of the examples to evaluate
        """
        return finite(self.kernel, cross(self.kernel, self.X[first:], self.seen(X)), begin)

    def prior(self, X: Array) -> Array:
        """k_** = kappa(x, x) for each row, (m,); all finite."""
        return finite(self.kernel, diagonal(self.kernel, self.seen(X)))

    def expansion(self, X: Array, A: Array) -> Array:
        """Sums of kernel values with coefficients A (n, M): kappa(X, X_held) A, (m, M)."""
        sums = (product(self.cross(part, begin).T, A) for begin, part in self.parts(X))
        return bounded(lambda: np.vstack([A[:0], *sums]))

    def variance(self, X: Array) -> Array:
        """k_** - k_*' K~^-1 k_* + sigma^2, (m,), at weight one. Eq. (3), Lütz et al."""
        halves = (self.half_solve(self.cross(part, begin)) for begin, part in self.parts(X))
        explained = (np.einsum("ij,ij->j", H, H) for H in halves)
        known = bounded(lambda: np.hstack([[], *explained]))
        return bounded(lambda: np.maximum(self.prior(X) - known, 0) + self.noise)

    def half_solve(self, K: Array) -> Array:
        """Some H (n, m) with H'H = K' K~^-1 K for kernel values K (n, m), in float64."""
        return _scaled(self.factor.half_solve, K, self.factor.dtype)

    def solve(self, K: Array) -> Array:
        """K~^-1 K for kernel values K (n, m), in float64."""
        return _scaled(self.factor.solve, K, self.factor.dtype)

    def parts(self, X: Array) -> Iterator[tuple[int, Array]]:
        """X cut so that a block of kernel values with the examples stays small.

        Each part comes with the number of rows before it.
        """
        step = max(_NUMBERS // max(len(self.examples), 1), 1)
        for begin in range(0, len(X), step):
            yield begin, X[begin : begin + step]


def matrix_rows(of: Covariance) -> Iterator[tuple[slice, Array]]:
    """K~ in blocks of rows (b, n), evaluated again."""
    for begin, part in of.parts(of.X):
        rows = slice(begin, begin + len(part))
        K = np.array(of.cross(part).T)
        K[:, rows] = corner(of.kernel, part)
        K[:, rows] += np.diag(of.noise / of.weights[rows])
        yield rows, K


# -- what cannot be factorised ------------------------------------------------------------------


def explained(of: Covariance, row: int, examples: Examples) -> NotPositiveDefinite:
    """The error for an example whose pivot vanishes."""
    X, ids = of.seen(examples.X), examples.ids.tolist()
    x = X[row : row + 1]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        scale = np.sqrt(diagonal(of.kernel, X[:row])) * np.sqrt(diagonal(of.kernel, x))
        similar = cross(of.kernel, X[:row], x)[:, 0] / scale if row else np.zeros(0)
    stable = of.factor.traits.stable
    other = "" if stable else ", or use solver='cholesky', which tolerates more"
    noise = f"noise={of.noise:g} is too small for so smooth a kernel: raise it{other}"
    kernel = f"the kernel {of.kernel!r} is not positive definite: use another one"
    nearest, own = "", "its own variance is not positive: look at the kernel's value there"
    causes = [own, kernel, noise]
    if row and np.isfinite(similar).any():
        twin = int(np.nanargmax(similar))
        same = bool((X[twin] == x).all())
        relation = "has exactly the same features" if same else "is nearest to it"
        nearest = f" Example {ids[twin]!r} {relation} (correlation {similar[twin]:.12g})."
        duplicates = "the two are duplicates: remove one of them, or set noise above zero"
        # The likeliest first. A correlation below this leaves more than rounding of a pivot.
        if same or similar[twin] > 1 - _ALIKE:
            causes = [duplicates, noise, kernel]
        elif is_positive(of.kernel):
            causes = [noise, duplicates, kernel]
        else:
            causes = [kernel, noise, duplicates]
    first, second, third = causes
    return NotPositiveDefinite(
        f"The covariance matrix is not positive definite at example {ids[row]!r}.{nearest} "
        f"Either (a) {first}; or (b) {second}; or (c) {third}. Nothing was changed.",
        row,
    )


# -- large models --------------------------------------------------------------------------------


def max_variance(kernel: AnyKernel, X: Array) -> float:
    """The largest kappa(x, x) of rows X (n, d); infinite if one is not finite."""
    largest = float(diagonal(kernel, X).max(initial=0))
    return np.inf if isnan(largest) else largest


def check_rows(kernel: AnyKernel, examples: Examples, width: int | None = None) -> None:
    """Raise InvalidInput if the kernel refuses the `width` columns of an example of weight zero.

    No factor has these, and the default kernel is chosen by the others; but leave-one-out predicts
    them, too.
    """
    unweighted = np.flatnonzero(examples.weights == 0)
    if not len(unweighted):
        return
    with suppress(InvalidInput):
        diagonal(kernel, leading(examples.X[unweighted], width))
        return
    for i in unweighted.tolist():
        try:
            diagonal(kernel, leading(examples.X[i : i + 1], width))
        except InvalidInput as error:
            raise InvalidInput(
                f"Example {examples.ids[i]} has weight zero, but leave-one-out predicts it like a "
                f"new row. {error}"
            ) from error


def check_memory(n: int, needed: int, what: str = "model", remedy: str = _WAYS_OUT) -> None:
    """Raise NotEnoughMemory if a model of n examples needs more bytes than there are."""
    if n > MANY:
        why = f"A {what} of {n:,} examples holds a triangle of n^2 / 2 numbers: with its work space"
        check_free(needed, why, remedy)


def _announce(stay: int, appended: int, needed: int) -> None:
    """Say before the work if it will find no memory, or take a minute or more."""
    n = stay + appended
    check_memory(n, needed)
    work = (n**3 - stay**3) / 3
    minutes = round(work / _RATE / 60)
    if minutes < 1:
        return
    what = f"{appended:,} more examples, {n:,} in all," if stay else f"{n:,} examples"
    warn(
        f"Learning {what} takes about {work:.0e} operations, as n^3 / 3 does: about "
        f"{_duration(minutes)} on two idle cores, at {_RATE:.0e} a second. knowmore.progress tells "
        f"how far it is. {_WAYS_OUT}"
    )


def _duration(minutes: int) -> str:
    """Minutes in words.

    >>> _duration(1), _duration(59), _duration(60), _duration(125)
    ('1 min', '59 min', '1 h 0 min', '2 h 5 min')
    """
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


# -- usable numbers ------------------------------------------------------------------------------


def finite(kernel: AnyKernel, K: Array, begin: int = 0) -> Array:
    """The kernel's values for m rows of a question, (m,) or (n, m), if all are finite.

    begin : how many rows of the question come before these
    """
    if (bad := first_not_finite(K.T)) is None:
        return K
    raise InvalidInput(
        f"The kernel {kernel!r} gave a value that is not finite for row {begin + bad} of X: "
        f"scale its features as those of the examples, or leave it out."
    )


@cache
def _range(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """The least and largest number with an inverse of full precision in a type, and its eps."""
    info = np.finfo(dtype)
    return float(info.tiny), min(float(info.max), 1 / float(info.tiny)), float(info.eps)


def _scaled(solve: Callable[[Array], Array], K: Array, dtype: np.dtype[Any]) -> Array:
    """solve(K), with each column of K (n, m) divided by a power of two near its largest value.

    That is exact, and not needed for usual numbers in the factor's own type. A float32 factor holds
    numbers up to 1e38, which squares of features soon exceed.
    """
    least, most = _UNSCALED if K.dtype == dtype else (0.5, 1.0)
    if K.shape[1] == 1 and least <= max(K.max(initial=0), -K.min(initial=0)) < most:
        return np.asarray(solve(K))
    largest = np.maximum(K.max(axis=0, initial=0), -K.min(axis=0, initial=0))
    if least <= largest.min(initial=1) and largest.max(initial=0) < most:
        return np.asarray(solve(K))
    _, exponent = np.frexp(largest)
    unit = 2.0 ** (exponent - 1)
    return np.asarray(solve(K / unit) * unit)
