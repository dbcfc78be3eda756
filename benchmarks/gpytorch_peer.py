"""GPyTorch as a peer. It learns one of our ten columns only, which is cheapest for it.

Its prediction caches are warm before the clock starts. `max_cholesky_size` decides what they are:
above n they hold exact factors, as ours do; at the default of 800 they hold a Lanczos
approximation of rank 100, which is fast and answers something else. Both are shown, the second
with how far its answers are from the exact ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.scene import LENGTH, NOISE, Scale, adding, classifier, data, facts, stream
from benchmarks.table import Row, faster
from benchmarks.timing import REST, interleaved


def fantasy(scale: Scale) -> Iterator[Row]:
    """Exact, then as it comes."""
    n = scale.n
    gpytorch = import_module("gpytorch")
    exact = gpytorch.settings.max_cholesky_size(n + 100)
    for name, setting, bound in (
        ("get_fantasy_model, exact", exact, 2000),
        ("get_fantasy_model, default", nullcontext(), None),
    ):
        peer = _Peer(n, setting)
        operations: dict[str, Callable[[], object]] = {
            "peer": peer.add,
            "add": adding(classifier(n)),
        }
        rounds = 1 if bound else 3
        times = interleaved(
            rounds, operations, times={"add": 15}, rest=REST, warm=0 if bound else 1
        )
        note = f"one output of ten; scores off by {peer.error():.1e}"
        yield faster(
            "add one", times["add"], f"GPyTorch {name}", times["peer"], bound, note, **facts(n)
        )


class _Peer:
    """An ExactGP of n examples, one-vs-all for the first class."""

    def __init__(self, n: int, setting: AbstractContextManager[Any]) -> None:
        self.torch, self.gpytorch = import_module("torch"), import_module("gpytorch")
        self.setting = setting
        self.X, self.y = data(n)
        self.more = stream(2)
        self.questions = data(20, seed=12)[0]
        likelihood = self.gpytorch.likelihoods.GaussianLikelihood().double()
        # GPyTorch reads a Python number in single precision.
        likelihood.noise = self.torch.tensor(NOISE, dtype=self.torch.float64)
        self.model = self._exact_gp(likelihood)
        self.model.covar_module.lengthscale = LENGTH
        self.model.eval()
        likelihood.eval()
        self._answer(self.model)

    def _exact_gp(self, likelihood: Any) -> Any:
        gpytorch = self.gpytorch

        class Exact(gpytorch.models.ExactGP):  # type: ignore[name-defined,misc]
            def __init__(self, X: Any, t: Any) -> None:
                super().__init__(X, t, likelihood)
                self.mean_module = gpytorch.means.ZeroMean()
                self.covar_module = gpytorch.kernels.RBFKernel()

            def forward(self, X: Any) -> Any:
                mean, covariance = self.mean_module(X), self.covar_module(X)
                return gpytorch.distributions.MultivariateNormal(mean, covariance)

        return Exact(*self._tensors(self.X, self.y)).double()

    def _tensors(self, X: Any, y: Any) -> tuple[Any, Any]:
        t = np.where(y == 0, 1.0, -1.0)
        return self.torch.as_tensor(X), self.torch.as_tensor(t)

    def _answer(self, model: Any) -> Any:
        """Means and variances: asking for both fills both caches."""
        with self.torch.no_grad(), self.setting, self.gpytorch.settings.fast_pred_var():
            answer = model(self.torch.as_tensor(self.questions))
            return answer.mean.numpy(), answer.variance.numpy()

    def add(self) -> object:
        """Add an example; GPyTorch too returns a new model and keeps the old one."""
        self.new = next(self.more)
        with self.torch.no_grad(), self.setting, self.gpytorch.settings.fast_pred_var():
            self.grown = self.model.get_fantasy_model(*self._tensors(*self.new))
        return self.grown

    def error(self) -> float:
        """max |score - ours| / max |ours| after the last example."""
        clf = classifier(len(self.X))
        clf.add(*self.new)
        ours = clf.decision_function(self.questions)[:, 0]
        theirs, _ = self._answer(self.grown)
        return float(abs(theirs - ours).max() / abs(ours).max())
