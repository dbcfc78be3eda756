"""The label-free half of every kernel model: the covariance of the examples it holds.

K~ = kappa(X, X) + sigma^2 diag(1 / w) and its factor; the weights w are one unless given. Labels do
not enter, so relabelling touches no matrix and the predictive variance is one for all classes.
(Weights by class are the exception: they follow the labels.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from knowmore.arrays import Array, Frozen, bounded, derived, first_not_finite, norm
from knowmore.errors import InvalidInput, NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner, cross, diagonal, is_positive
from knowmore.linalg import Factor
from knowmore.linalg.threads import threads_for
from knowmore.models.weights import Weighting

# Numbers in a block of kernel values that a question works on at a time.
_NUMBERS = 2**23
# Vectors that the residual of the factor is measured on.
_PROBES = 4


@final
@dataclass(frozen=True, eq=False)
class Covariance(Frozen):
    """kernel, noise sigma^2, examples, their weights, and the factor of K~; immutable."""

    kernel: AnyKernel
    noise: float
    examples: Examples
    factor: Factor
    weighting: Weighting = field(default_factory=Weighting)

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        noise: float,
        examples: Examples,
        empty: Factor,
        weighting: Weighting | None = None,
    ) -> Covariance:
        """The covariance of `examples`, factorised from scratch; `empty` is a factor of size 0."""
        nothing = Examples.of(examples.X[:0], examples.labels[:0])
        begin = cls(kernel, noise, nothing, empty.with_update("auto"), weighting or Weighting())
        batch = begin.follow(examples)
        return replace(batch, factor=batch.factor.with_update(empty.update))

    def __repr__(self) -> str:
        return f"Covariance({self.examples!r}, {self.kernel!r}, noise={self.noise:g})"

    def under(self, kernel: AnyKernel, examples: Examples) -> Covariance:
        """The covariance of `examples` by another kernel, factorised from scratch."""
        empty = self.factor.with_update("auto").delete(np.arange(self.factor.size))
        empty = empty.with_update(self.factor.update)
        return Covariance.of(kernel, self.noise, examples, empty, self.weighting)

    def prepare(self, examples: Examples, *, anew: bool = False) -> int:
        """Load what it takes to follow these examples, and return how many bytes it will take.

        Roughly, and rather more than less.
        """
        deleted, appended = examples.since(self.examples)
        if len(deleted):
            self.factor.prepare()
        n = len(examples)
        kept = int(deleted[0]) if len(deleted) else n - appended
        kept = 0 if anew or self.weighting.classes is not None else min(kept, n - appended)
        # A kernel's block of values, and a few that it is computed from.
        block = 5 * min(n - kept, self.factor.block) * n + 4 * examples.X.size
        return self.factor.room(kept, n, len(deleted)) + 8 * block

    @property
    def X(self) -> Array:
        """The inputs, (n, d)."""
        return self.examples.X

    @derived
    def weights(self) -> Array:
        """The weights w of the examples, (n,)."""
        return self.weighting(self.examples)

    @derived
    def diagonal(self) -> Array:
        """The diagonal of K~, (n,)."""
        return np.asarray(diagonal(self.kernel, self.X) + self.noise / self.weights)

    def follow(self, examples: Examples) -> Covariance:
        """The covariance of `examples`, by the smallest update that leads there."""
        deleted, appended = examples.since(self.examples)
        factor, weights = self.factor, self.weighting(examples)
        kept = np.delete(self.weights, deleted) if len(deleted) else self.weights
        if not np.array_equal(kept, weights[: len(kept)]):
            # Others weigh less or more now: from the first of these on the factor is made anew.
            first = int(np.argmin(kept == weights[: len(kept)]))
            stay = np.delete(np.arange(factor.size), deleted)[:first]
            deleted, appended = np.delete(np.arange(factor.size), stay), len(examples) - first
        if len(deleted):
            if self.is_certain(examples, self.peak) and factor.regrows(deleted):
                deleted = np.arange(deleted[0], factor.size)
                appended = len(examples) - int(deleted[0])
            factor = factor.delete(deleted)
        for begin in range(len(examples) - appended, len(examples), factor.block):
            end = min(begin + factor.block, len(examples))
            factor = self._append(factor, examples, self.noise / weights[begin:end], begin)
        return replace(self, examples=examples, factor=factor)

    def _append(self, factor: Factor, examples: Examples, noises: Array, begin: int) -> Factor:
        """The factor with as many more examples, from `begin` on, as there are `noises`."""
        end = begin + len(noises)
        X = examples.X[begin:end]
        held = examples.X[:begin]
        N = corner(self.kernel, X)
        C = cross(self.kernel, held, X) if begin else np.empty((0, len(X)))
        if not np.isfinite(noises).all():
            raise InvalidInput(
                f"noise / weight is not finite for one of the examples: the noise is {self.noise:g}"
                f" (1 / C of a least-squares SVM). Give weights, or C, that are not so small. "
                f"Nothing was changed."
            )
        N.flat[:: len(N) + 1] += noises
        self._check_range(C, N, examples.ids[begin:end].tolist())
        lost = (np.diagonal(N) > 0) & (np.diagonal(N) < _range(factor.dtype)[0])
        if lost.any():
            raise self._explained(begin + int(lost.argmax()), examples)
        try:
            return factor.append(C, N)
        except NotPositiveDefinite as error:
            raise self._explained(error.row, examples) from error

    def _check_range(self, C: Array, N: Array, ids: list[Any]) -> None:
        """Complain if rows C (n, k), N (k, k) for the examples `ids` have no place in a factor."""
        for block in (C, N):
            if (bad := first_not_finite(block.T)) is not None:
                raise InvalidInput(
                    f"The kernel {self.kernel!r} gave a value that is not finite for the example "
                    f"{ids[bad]!r}. Its features may be too large for it: scale them. "
                    f"Nothing was changed."
                )
        _, most = _range(self.factor.dtype)
        size = abs(N).max(axis=0)
        if size.max() > most:
            bad = int(size.argmax())
            raise InvalidInput(
                f"The kernel {self.kernel!r} gave {size[bad]:.3g}, noise included, for the example "
                f"{ids[bad]!r}, but {self.factor.dtype} holds no more than {most:.2g}. "
                f"Scale the features, or use dtype='float64'. Nothing was changed."
            )

    def _explained(self, row: int, examples: Examples) -> NotPositiveDefinite:
        """What to say of an example whose pivot vanishes."""
        X, ids = examples.X, examples.ids.tolist()
        x = X[row : row + 1]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scale = np.sqrt(diagonal(self.kernel, X[:row])) * np.sqrt(diagonal(self.kernel, x))
            similar = cross(self.kernel, X[:row], x)[:, 0] / scale if row else np.zeros(0)
        text = f"The covariance matrix is not positive definite at example {ids[row]!r}."
        if row and np.isfinite(similar).any():
            twin = int(np.nanargmax(similar))
            same = bool((X[twin] == x).all())
            relation = "has the very same features" if same else "is nearest to it"
            text += (
                f" Example {ids[twin]!r} {relation} (correlation {similar[twin]:.12g})."
                f" Either (a) the two are duplicates: remove one of them, or set noise above zero;"
            )
        else:
            text += (
                " Either (a) its own variance is not positive: look at the kernel's value there;"
            )
        factor = "" if self.factor.stable else ", or use solver='cholesky', which bears more"
        return NotPositiveDefinite(
            f"{text} or (b) noise={self.noise:g} is too small for so smooth a kernel: raise it"
            f"{factor}; or (c) the kernel {self.kernel!r} is not positive definite. "
            f"Nothing was changed.",
            row,
        )

    # -- what may go wrong -------------------------------------------------------------------

    @derived
    def peak(self) -> float:
        """The largest kappa(x, x) among the examples."""
        return self.peak_of(self.X)

    def peak_of(self, X: Array) -> float:
        """The largest kappa(x, x) among these; infinite if one is not finite."""
        peak = float(diagonal(self.kernel, X).max(initial=0))
        return np.inf if np.isnan(peak) else peak

    def is_certain(self, examples: Examples, peak: float) -> bool:
        """Is a factorisation of these examples, of kappa(x, x) at most `peak`, sure to succeed?

        Rounding perturbs K~ by at most about n^2 eps max K~_ii (Higham, Accuracy and Stability,
        theorem 10.7); noise above that keeps a positive kernel's matrix positive definite. In other
        words, eps times n times the condition, which is at most n (peak + noise) / noise.
        """
        if not is_positive(self.kernel):
            return False
        weights = self.weighting(examples)
        least, most = self.noise / weights.max(initial=1), self.noise / weights.min(initial=1)
        eps = float(np.finfo(self.factor.dtype).eps)
        smallest, largest = _range(self.factor.dtype)
        within = smallest <= least and peak + most <= largest
        worst = len(examples) ** 2 * (peak + most) / least if least else np.inf
        return bool(within and 4 * eps * worst < self.factor.bears)

    # -- asking ------------------------------------------------------------------------------

    def cross(self, X: Array, begin: int = 0) -> Array:
        """k_* = kappa(X_held, X), (n, m); all finite. X are rows from `begin` on of a question."""
        return finite(self.kernel, cross(self.kernel, self.X, X), begin)

    def prior(self, X: Array, begin: int = 0) -> Array:
        """k_** = kappa(x, x) for each row, (m,); all finite."""
        return finite(self.kernel, diagonal(self.kernel, X), begin)

    def weighted(self, X: Array, A: Array) -> Array:
        """Sums of kernel values: kappa(X, X_held) A, (m, M)."""
        nothing = np.zeros((0, A.shape[1]))
        sums = (self.cross(part, begin).T @ A for begin, part in self.parts(X))
        return bounded(lambda: np.concatenate([nothing, *sums]))

    def variance(self, X: Array) -> Array:
        """k_** - k_*' K~^-1 k_* + sigma^2, (m,), at weight one. Eq. (3), Lütz et al."""
        halves = (self.half_solve(self.cross(part, begin)) for begin, part in self.parts(X))
        explained = (np.einsum("ij,ij->j", H, H) for H in halves)
        with threads_for(self.factor.size**2, 1 + len(X)):
            known = bounded(lambda: np.concatenate([np.zeros(0), *explained]))
        return bounded(lambda: np.maximum(self.prior(X) - known, 0) + self.noise)

    def half_solve(self, K: Array) -> Array:
        """Some H (n, m) with H'H = K' K~^-1 K for kernel values K (n, m), in float64.

        A float32 factor holds numbers up to 1e38, a square of features is soon beyond: columns are
        taken in units of their own.
        """
        unit = _units(K)
        return np.asarray(self.factor.half_solve(K / unit) * unit)

    def solve(self, K: Array) -> Array:
        """K~^-1 K for kernel values K (n, m), in float64."""
        unit = _units(K)
        return np.asarray(self.factor.solve(K / unit) * unit)

    def parts(self, X: Array) -> Iterator[tuple[int, Array]]:
        """X cut so that a block of kernel values against the examples stays small.

        Each part comes with the number of rows before it.
        """
        step = max(_NUMBERS // max(len(self.examples), 1), 1)
        for begin in range(0, len(X), step):
            yield begin, X[begin : begin + step]

    def matrix_rows(self) -> Iterator[tuple[slice, Array]]:
        """K~ in blocks of rows (b, n), evaluated anew."""
        for begin, part in self.parts(self.X):
            rows = slice(begin, begin + len(part))
            K = np.array(self.cross(part).T)
            K[:, rows] = corner(self.kernel, part)
            K[:, rows] += np.diag(self.noise / self.weights[rows])
            yield rows, K

    def residual(self, A: Array, T: Array) -> float:
        """How far A (n, M) is from K~^-1 T, and the factor from that of K~, whichever is further.

        The backward error |T - K~A| / (|K~| |A| + |T|), Frobenius norms: the smallest relative
        change of K~ and T for which A is exact (Rigal and Gaches). For the factor, the same of what
        it solves for a few random vectors z; of an explicit inverse P it is |z - K~Pz| / |z|, for a
        wrong P is large and so hides in |P z|. The kernel is evaluated anew, so this takes about as
        long as a prediction for all examples.
        """
        signs = np.random.default_rng(len(T)).integers(0, 2, (len(T), _PROBES))
        Z, M = 2.0 * signs - 1, T.shape[1]
        X = self.factor.solve(Z).astype(float)
        R, size = np.hstack([T, Z]), 0.0
        for rows, K in self.matrix_rows():
            R[rows] -= K @ np.hstack([A, X])
            size = float(np.hypot(size, norm(K)))
        scales = size * norm(A) + norm(T), size * norm(X) * self.factor.stable + norm(Z)
        errors = norm(R[:, :M]), norm(R[:, M:])
        return max(e / s if s else 0.0 for e, s in zip(errors, scales, strict=True))


# -- numbers that can be used --------------------------------------------------------------------


def finite(kernel: AnyKernel, K: Array, begin: int = 0) -> Array:
    """The kernel's values for m rows that are asked about, (m,) or (n, m), if all are finite.

    begin : how many rows of the question come before these
    """
    if (bad := first_not_finite(K.T)) is None:
        return K
    raise InvalidInput(
        f"The kernel {kernel!r} gave a value that is not finite for row {begin + bad} of X. "
        f"Its features may be too large for it: scale them as those of the examples, or leave "
        f"it out."
    )


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest number that has an inverse of full precision in this type."""
    info = np.finfo(dtype)
    return float(info.tiny), min(float(info.max), 1 / float(info.tiny))


def _units(K: Array) -> Array:
    """A power of two near the largest value of each column, (m,): to divide by it is exact."""
    _, exponent = np.frexp(abs(K).max(axis=0, initial=0))
    return np.asarray(2.0 ** (exponent - 1))
