"""The Model protocol: what a living estimator asks of the frozen value behind it."""

from __future__ import annotations

from typing import Protocol, Self

from knowmore.arrays import Array
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models.covariance import Covariance
from knowmore.models.loo import Verdicts
from knowmore.models.targets import Targets


def brief(model: Model) -> str:
    """A model in one line: its arrays are not for reading."""
    covariance, kind = model.covariance, type(model).__name__
    return (
        f"{kind}({len(model.examples)} examples, {len(model.targets.names)} columns, "
        f"{covariance.kernel!r}, noise={covariance.noise:g})"
    )


class Model(Protocol):
    """An immutable kernel model of n examples with M columns of targets."""

    @property
    def covariance(self) -> Covariance:
        """The examples, the kernel and the factor."""
        ...

    @property
    def examples(self) -> Examples:
        """What it learnt from."""
        ...

    @property
    def targets(self) -> Targets:
        """What it learnt for these."""
        ...

    def follow(self, examples: Examples) -> Self:
        """The batch fit of `examples`, by the smallest update that leads there."""
        ...

    def under(self, kernel: AnyKernel, examples: Examples) -> Self:
        """The batch fit of `examples` with another kernel; all other settings stay."""
        ...

    def mean(self, X: Array) -> Array:
        """The scores of X (m, d), (m, M)."""
        ...

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Scores (n, M) and variances (n,) of the examples by those of other groups."""
        ...

    def verdicts(self, groups: Array | None = None) -> Verdicts:
        """The same, and of whom the others say nothing, (n,)."""
        ...

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples."""
        ...
