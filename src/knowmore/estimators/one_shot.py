"""One-shot learning as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol, Self, final

import numpy as np
from scipy.special import ndtr

from knowmore._living import Living
from knowmore.arguments import choice
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, RepeatedId, UnknownId
from knowmore.estimators.checks import noise_level
from knowmore.estimators.living import LivingClassifier
from knowmore.estimators.shell import update_fitted
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import Factor
from knowmore.models import OneShot, Ranking, Rule, Support
from knowmore.models.oneshot_criteria import CRITERIA
from knowmore.models.oneshot_search import SEARCHES


class Semantics(Protocol):
    """What knows how similar names of classes are: `knowmore.semantics.WordNet` does."""

    def most_similar(
        self, name: str, names: Iterable[str], k: int | None, *, unknown: Any
    ) -> Iterable[str]:
        """The k of the names that are most similar to `name`, and with "keep" the unknown ones."""
        ...


@final
class OneShotClassifier(LivingClassifier[OneShot]):
    """Learns a class from one example or a few, with the help of a class that is known better.

    Dependent Gaussian processes (Rodner and Denzler 2010): examples of a support task count as
    positive ones too, as far as rho says, from 0 (not at all) to 1 (as if they were examples). The
    task and rho are those that leave-one-out likes best, and rho = 0 is always among them. After
    any history of edits it equals a fresh fit of the examples and supports it holds: all that is
    chosen is chosen again when next asked for.

    Labels are of two classes; `name` is the positive one if it is one of them, else the second in
    sorted order is. Parameters count as they were at the last fit.

    Parameters
    ----------
    kernel : a scikit-learn Kernel, a callable of X (n, d) and Y (m, d) that returns (n, m), or None
        None is an RBF kernel as wide as the median distance of the examples. While fewer than 32
        are held, or all are the same, the width follows them with every edit; then it stays, by
        all that were given to `fit`, or by the first 32 of a stream. `kernel_` is the one in use.
    supports : {name: X (n_S, d)}, examples of other classes, none of the background
    criterion : what is asked of leave-one-out scores: "ap", average precision; "auc"; "lpp", log
        predictive probability; "squashed" or "weighted", a smooth count of errors; or "likelihood",
        that of the examples' labels given the support's
    search : "grid", 101 values of rho; "golden", golden section, as in the paper; or rho itself:
        0.0 is independent learning, as without supports; 1.0 pools the examples
    preselect : K, the number of supports, by their names the most similar ones, to choose from
    semantics : what knows names: a `knowmore.semantics.WordNet`, or any object with its
        `most_similar`
    noise : sigma^2, or "adaptive": the smallest of 0, 1e-8, 1e-7, ... times the mean variance of
        the examples with which none is explained by the others and a support but for a part of
        1e-10 of its variance; see `noise_`
    name : what the positive class is called, among the labels and beside the supports' names
    unknown : "raise" an error if `semantics` does not know a name, or "keep" such supports

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> supports = {"leopard": [[1.5, 0.5], [3.5, 1.0]], "wrench": [[-9.0, 2.0], [-8.0, 2.5]]}
    >>> X, y = [[1.0, 2.0], [0.0, 0.0], [1.0, -1.0]], ["cheetah", "background", "background"]
    >>> clf = OneShotClassifier(RBF(2.0), supports).fit(X, y)
    >>> clf.support_, clf.rho_, clf.noise_
    ('leopard', 0.91, 0.0)
    >>> clf.ranking_
    support   rho     ap     lpp
    leopard  0.91  1.000   -2.35
    wrench   0.00  0.500   -3.76
    >>> clf.predict([[3.0, -0.5]]), clf.remove_support("leopard").predict([[3.0, -0.5]])
    (array(['cheetah'], dtype='<U10'), array(['background'], dtype='<U10'))
    """

    solver = "cholesky"
    update = "auto"
    dtype = "float64"

    def __init__(
        self,
        kernel: AnyKernel | None,
        supports: Mapping[str, Any],
        criterion: str = "ap",
        search: str | float = "grid",
        preselect: int | None = None,
        semantics: Semantics | None = None,
        noise: float | str = "adaptive",
        *,
        name: str | None = None,
        unknown: str = "raise",
    ) -> None:
        self.kernel = kernel
        self.supports = supports
        self.criterion = criterion
        self.search = search
        self.preselect = preselect
        self.semantics = semantics
        self.noise = noise
        self.name = name
        self.unknown = unknown

    # -- support tasks -----------------------------------------------------------------------

    def add_support(self, name: str, X: Any) -> Self:
        """Let it learn from one more class too, X (n_S, d). This costs what that task costs."""

        def with_it(model: OneShot) -> tuple[Support, ...]:
            support = self._support(model.covariance.kernel, model.rule, name, X)
            if name in (one.name for one in model.supports):
                raise RepeatedId(
                    f"There is a support {name!r} already. Give the new one another name, or "
                    f"remove_support({name!r}) first."
                )
            return (*model.supports, support)

        return self._regrouped(with_it)

    def remove_support(self, name: str) -> Self:
        """Forget a class to learn from.

        A pickle never holds it. The dict that was given as `supports` is yours and stays as it is:
        another fit would learn from it again.
        """

        def without_it(model: OneShot) -> tuple[Support, ...]:
            if name not in (one.name for one in model.supports):
                raise UnknownId(
                    f"There is no support {name!r}. supports_ has those that are there."
                )
            return tuple(one for one in model.supports if one.name != name)

        return self._regrouped(without_it)

    @property
    def supports_(self) -> dict[str, Array]:
        """The classes it may learn from, {name: X (n_S, d)}."""
        return {one.name: one.X for one in self._fitted.model.supports}

    # -- what was chosen ---------------------------------------------------------------------

    @property
    def support_(self) -> str | None:
        """The support that helps, None if none does."""
        chosen = self._fitted.nonempty.chosen
        return None if chosen is None else chosen[0].support.name

    @property
    def rho_(self) -> float:
        """How far the support's examples count, from 0 to 1."""
        chosen = self._fitted.nonempty.chosen
        return 0.0 if chosen is None else chosen[1]

    @property
    def ranking_(self) -> Ranking:
        """Each support's best rho and the criterion's value there, the best first."""
        return self._fitted.nonempty.ranking

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return self._fitted.nonempty.covariance.noise

    # -- asking ------------------------------------------------------------------------------

    def predict_variance(self, X: Any) -> Array:
        """The predictive variance, (m,), noise included: how unlike all examples X is."""
        return self._fitted.nonempty.variance(self.model_inputs(X)[0])

    def predict_proba(self, X: Any) -> Array:
        """Phi(-mu_* / sigma_*) and Phi(mu_* / sigma_*), (m, 2), columns as in `classes_`."""
        model, (X, _) = self._fitted.nonempty, self.model_inputs(X)
        # Without noise there is no doubt at an example.
        with np.errstate(divide="ignore", invalid="ignore"):
            z = model.mean(X) / np.sqrt(model.variance(X))[:, None]
        return np.asarray(ndtr(np.nan_to_num(z, nan=0.0)))

    def __getstate__(self) -> dict[str, Any]:
        """With the supports held, in place of those given at first: some may be forgotten."""
        state: dict[str, Any] = super().__getstate__()
        if "_living" not in state:
            return state
        held = state["_living"].current.supports
        return state | {"supports": {one.name: one.X for one in held}}

    # -- inside ------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _batch(self, kernel: AnyKernel, examples: Examples, empty: Factor) -> OneShot:
        choice("criterion", self.criterion, CRITERIA)
        choice("unknown", self.unknown, ("raise", "keep"))
        if not isinstance(self.name, str | None):
            raise InvalidType(f"name={self.name!r}, but a name is text. Give one, or None.")
        rule = Rule(self.criterion, _search(self.search), _noise(self.noise), self.name)
        if not isinstance(self.supports, Mapping):
            raise InvalidType(
                f"supports is a {type(self.supports).__name__}. Give a dict of names and arrays."
            )
        supports = tuple(self._support(kernel, rule, *item) for item in self.supports.items())
        kept = _Preselection(self.preselect, self.semantics, self.name, self.unknown)
        return OneShot.of(kernel, examples, supports, kept, rule)

    def _settings(self, model: OneShot) -> dict[str, Any]:
        return {
            "kernel": model.covariance.kernel,
            "rule": model.rule,
            "supports": {one.name: _Rows(one.X) for one in model.supports},
            "preselected supports": [one.support.name for one in model.candidates],
        }

    def _support(self, kernel: AnyKernel, rule: Rule, name: Any, X: Any) -> Support:
        if not isinstance(name, str):
            raise InvalidType(f"A support is named {name!r}, but a name is text.")
        if name == rule.name:
            raise RepeatedId(
                f"{name!r} is the name of the class to be learnt and that of a support. Add what "
                f"is known of it as positive examples."
            )
        try:
            bare = isinstance(X, np.ndarray | list | tuple)
            X = (self._nameless() if bare else self).model_inputs(X)[0]
        except (InvalidInput, InvalidType) as error:
            raise type(error)(f"The support {name!r} cannot be used: {error}") from error
        return Support.of(kernel, name, X)

    def _nameless(self) -> Self:
        """One for arrays, which have no names of features, whatever the examples have."""
        other = type(self)(None, {})
        other.n_features_in_ = self.n_features_in_
        return other

    def _regrouped(self, change: Callable[[OneShot], tuple[Support, ...]]) -> Self:
        """Exchange the supports held by what `change` makes of the model.

        All of it is done anew on a model that another thread put there meanwhile.
        """

        def changed(living: Living[OneShot]) -> Living[OneShot]:
            return replace(living, model=living.current.holding(change(living.current)))

        update_fitted(self, "_living", changed)
        return self


@final
@dataclass(frozen=True, eq=False)
class _Preselection:
    """Which supports may be chosen, by their names: see `OneShotClassifier`."""

    preselect: int | None
    semantics: Semantics | None
    name: str | None
    unknown: str

    def __call__(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the names."""
        if self.preselect is None:
            return names
        K = _whole(self.preselect)
        if not 1 <= K <= len(names):
            raise InvalidInput(
                f"preselect={K} supports are to be chosen from, but there would be {len(names)}. "
                f"Give a number from 1 to that, or None for all."
            )
        if self.semantics is None or not hasattr(self.semantics, "most_similar"):
            raise InvalidInput(
                f"preselect={K} needs to know which names are similar, but semantics="
                f"{self.semantics!r} has no most_similar. Give a knowmore.semantics.WordNet."
            )
        if not isinstance(self.name, str):
            raise InvalidInput(
                f"preselect={K} needs to know what the positive class is, but name={self.name!r}. "
                f"Give name, such as 'okapi'."
            )
        kept = tuple(self.semantics.most_similar(self.name, names, K, unknown=self.unknown))
        if strange := [one for one in kept if one not in names]:
            raise InvalidInput(
                f"semantics was asked for the {K} of {len(names)} names most similar to "
                f"{self.name!r}, and gave {strange[0]!r}, which is not one of them."
            )
        if not kept:
            raise InvalidInput(
                f"semantics was asked for the {K} of {len(names)} names most similar to "
                f"{self.name!r}, and gave none. Leave preselect out if it does not know them."
            )
        return kept


class _Rows:
    """An array to compare as a whole, and to show in few words."""

    def __init__(self, X: Array) -> None:
        self.X = X

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rows) and np.array_equal(self.X, other.X)

    def __repr__(self) -> str:
        return f"{len(self.X)} examples, {self.X.sum():.6g} in sum"


def _search(search: Any) -> str | float:
    """A word, or a rho from 0 to 1."""
    if isinstance(search, Real) and not isinstance(search, (bool, np.bool_)):
        if not 0 <= float(search) <= 1:
            raise InvalidInput(
                f"search={search!r} is to be rho, but tasks are related by 0 (nothing in common) "
                f"to 1 (the same). Give a rho between them."
            )
        return float(search)
    if not isinstance(search, str) or search not in SEARCHES:
        words = ", ".join(map(repr, SEARCHES))
        raise InvalidInput(f"search={search!r} is not known. Choose one of {words}, or give rho.")
    return search


def _noise(noise: Any) -> float | None:
    if isinstance(noise, str):
        if noise != "adaptive":
            raise InvalidInput(f"noise={noise!r} is not known. Give a variance, or 'adaptive'.")
        return None
    return noise_level(noise)


def _whole(preselect: Any) -> int:
    if isinstance(preselect, Integral) and not isinstance(preselect, bool):
        return int(preselect)
    raise InvalidType(f"preselect={preselect!r} must be a whole number, or None.")
