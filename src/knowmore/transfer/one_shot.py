"""Estimator of one-shot learning, in scikit-learn's form."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Self, final

import numpy as np

from knowmore._base import Array, a_type, choice, number, whole_number
from knowmore._living import Living
from knowmore.errors import InvalidInput, InvalidType, RepeatedId, UnknownId
from knowmore.estimators import (
    EditableClassifier,
    LivingEstimator,
    check_meaning,
    own_kernel,
    update_fitted,
)
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models import ModelSettings, SettingsRule, one_vs_all
from knowmore.transfer.choice import CRITERIA, SEARCHES, Ranking, Rule, Support
from knowmore.transfer.dependent import OneShot


@final
@dataclass(eq=False, repr=False)
class OneShotClassifier(EditableClassifier[Living[OneShot]], LivingEstimator[OneShot]):
    """Learns a class from one or a few examples with the help of a class that is known better.

    Dependent Gaussian processes (Rodner and Denzler 2010): the examples of a support task count as
    positive to a degree rho, from 0 (not at all) to 1 (like the class's own). Each support has the
    rho of the best leave-one-out result, and rho = 0 is always considered; the answers of the best
    supports are averaged. What resembles no example is background, and the positive class begins
    two standard deviations above the mean of the background, each example left out: there the score
    is zero. After any history of edits the model equals a fresh fit of the examples and supports it
    holds: supports, rhos and that border are chosen again at the next question.

    The paper's own choices are `criterion="ap"`, `noise="adaptive"`, `prior=0.0`, `members=1`.

    Labels are of two classes. The positive class is the one called `name`, or else that with fewer
    examples, of equally many the second in sorted order. Changed parameters take effect at the next
    fit.

    Parameters
    ----------
    kernel : as in `GPClassifier`
    supports : {name: X (n_S, d)}, examples of other classes, none of the background
    criterion : what to maximise over leave-one-out scores: "lpp", log predictive probability; "ap",
        average precision; "auc"; "squashed" or "weighted", minus a smooth count of errors; or
        "likelihood", that of the examples' labels given the support's
    search : "grid", 101 values of rho; "golden", golden section, as in the paper; or rho itself:
        0.0 ignores the supports; 1.0 pools the examples
    preselect : K, to choose among the K supports with the most similar names only
    semantics : compares names: a `knowmore.semantics.WordNet`, or any object with a `most_similar`
        like its own: of a name, names, k and the keyword `unknown`
    noise : sigma^2; "auto": the power of two nearest to a quarter of the mean variance of the
        examples; or "adaptive": the smallest of 0, 1e-8, 1e-7, ... times that variance for which
        the other examples, with any support, leave at least 1e-10 of each example's variance
        unexplained; see `noise_`
    prior : the value of what resembles no example, from -1, background, to 1, the positive class.
        If it is not below zero, the positive class begins at the value zero
    members : how many of the best supports answer; their answers are averaged
    name : the name of the positive class, among the labels and those of the supports
    unknown : "raise" an error if `semantics` does not know a name, or "keep" such supports
    probability : "calibrated", or "raw": see `predict_proba`

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> supports = {"leopard": [[1.5, 0.5], [3.5, 1.0]], "wrench": [[-9.0, 2.0], [-8.0, 2.5]]}
    >>> X, y = [[1.0, 2.0], [0.0, 0.0], [1.0, -1.0]], ["cheetah", "background", "background"]
    >>> clf = OneShotClassifier(RBF(2.0), supports).fit(X, y)
    >>> clf.support_, clf.rho_, clf.noise_
    ('leopard', 1.0, 0.25)
    >>> clf.ranking_
    support   rho     lpp
    leopard  1.00   -3.10
    wrench   0.00   -4.64
    >>> clf.predict([[3.0, 1.0]]), clf.remove_support("leopard").predict([[3.0, 1.0]])
    (array(['cheetah'], dtype='<U10'), array(['background'], dtype='<U10'))
    """

    kernel: AnyKernel | None = None
    supports: Mapping[str, Any] | None = None
    criterion: str = "lpp"
    search: str | float = "grid"
    preselect: int | None = None
    semantics: Any = None
    noise: float | str = "auto"
    _: KW_ONLY
    prior: float = -1.0
    members: int = 10
    name: str | None = None
    unknown: str = "raise"
    probability: str = "calibrated"

    # -- support tasks -----------------------------------------------------------------------

    def add_support(self, name: str, X: Any) -> Self:
        """Add a class to learn from, X (n_S, d). This costs only the work for that task."""

        def added(model: OneShot) -> OneShot:
            _check_name(name)
            if name in (one.name for one in model.supports):
                raise RepeatedId(f"There is a support {name!r} already. Remove that one first.")
            support = self._support(model.covariance.kernel, model.rule, name, X)
            return model.with_supports((*model.supports, support))

        return self._change(added)

    def remove_support(self, name: str) -> Self:
        """Forget a class to learn from. A pickle does not contain it.

        The dict that was given as `supports` does not change: another fit learns from it again.
        """

        def removed(model: OneShot) -> OneShot:
            _check_name(name)
            rest = tuple(one for one in model.supports if one.name != name)
            if len(rest) == len(model.supports):
                raise UnknownId(f"There is no support {name!r}. supports_ lists the existing ones.")
            return model.with_supports(rest)

        return self._change(removed)

    def _change(self, change: Callable[[OneShot], OneShot]) -> Self:
        """Exchange the model, again if another thread has exchanged it in the meantime."""
        update_fitted(self, "_living", lambda living: replace(living, model=change(living.current)))
        return self

    @property
    def supports_(self) -> dict[str, Array]:
        """The classes to learn from, {name: X (n_S, d)}."""
        return _inputs(self.editable_.model)

    # -- what was chosen ---------------------------------------------------------------------

    @property
    def support_(self) -> str | None:
        """The name of the best support, None if none helps."""
        return next((one.support for one in self.ranking_.rows[:1] if one.rho), None)

    @property
    def rho_(self) -> float:
        """How much the best support's examples count, from 0 to 1."""
        return next((one.rho for one in self.ranking_.rows[:1]), 0.0)

    @property
    def ranking_(self) -> Ranking:
        """Each support's best rho, the best support first; the first `members` of them answer.

        The columns are `support`, its name; `rho`; `value`, the criterion's, which a repr shows
        under the criterion's name; and `lpp`, the log predictive probability, which decides
        between equal values.
        """
        return self.editable_.nonempty.ranking

    @property
    def border_(self) -> float:
        """The value, between the labels -1 and 1, at which the positive class begins.

        Scores are what is above it.
        """
        return self.editable_.nonempty.border

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return self.editable_.nonempty.covariance.noise

    # -- asking ------------------------------------------------------------------------------

    def predict_variance(self, X: Any) -> Array:
        """The predictive variance, (m,), noise included: how unlike all examples X is."""
        return self.editable_.nonempty.variance(self.model_inputs(X))

    def __getstate__(self) -> dict[str, Any]:
        """The state with the supports in use: some of the given ones may have been removed."""
        state: dict[str, Any] = super().__getstate__()
        if "_living" in state:
            state = state | {"supports": _inputs(state["_living"].current)}
        return state

    # -- inside ------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def rule_for(self, examples: Examples) -> SettingsRule:
        """The kernel, if none is given; the noise follows from the support."""
        kernel = None if self.kernel is None else own_kernel(self.kernel)
        return SettingsRule(kernel, 0.0, "median", one_vs_all)

    def _batch(self, settings: ModelSettings, examples: Examples) -> OneShot:
        kernel = settings.kernel
        check_meaning(self.probability)
        choice("criterion", self.criterion, CRITERIA)
        choice("unknown", self.unknown, ("raise", "keep"))
        if not isinstance(self.name, str | None):
            raise InvalidType(f"name={self.name!r}, but a name is a string. Give one, or None.")
        given = {} if self.supports is None else self.supports
        if not isinstance(given, Mapping):
            raise InvalidType(f"supports is {a_type(given)}. Give a dict of names and arrays.")
        prior = number("prior", self.prior, "[-1, 1]", "-1 is the background.")
        members = whole_number("members", self.members, 1)
        rule = Rule(self.criterion, self._search(), self._noise(), self.name, prior, members)
        supports = tuple(self._support(kernel, rule, *item) for item in given.items())
        by_name = partial(_most_similar, self.preselect, self.semantics, self.name, self.unknown)
        return OneShot.of(kernel, examples, supports, by_name, rule)

    def _search(self) -> str | float:
        if isinstance(self.search, str):
            return choice("search", self.search, SEARCHES)
        return number("search", self.search, "[0, 1]", "It is rho; or give 'grid' or 'golden'.")

    def _noise(self) -> float | str:
        if isinstance(self.noise, str) and self.noise in ("auto", "adaptive"):
            return self.noise
        return number(
            "noise", self.noise, "[0, inf)", "It is a variance; or give 'auto' or 'adaptive'."
        )

    def _settings(self, model: OneShot) -> dict[str, Any]:
        return {
            "kernel": model.covariance.kernel,
            **asdict(model.rule),
            "supports": {name: _fingerprint(X) for name, X in _inputs(model).items()},
            "preselected supports": [one.name for one in model.candidates],
        }

    def _support(self, kernel: AnyKernel, rule: Rule, name: Any, X: Any) -> Support:
        _check_name(name)
        if name == rule.name:
            raise RepeatedId(f"{name!r} is the positive class. Add its rows as examples instead.")
        checker = self
        if isinstance(X, np.ndarray | list | tuple):
            # Arrays have no feature names, even if the examples have.
            checker = type(self)(None, {})
            checker.n_features_in_ = self.n_features_in_
        try:
            return Support.of(kernel, name, checker.model_inputs(X))
        except (InvalidInput, InvalidType) as error:
            raise type(error)(f"The support {name!r} cannot be used: {error}") from error


def _check_name(name: Any) -> None:
    """Raise InvalidType unless this can be the name of a support."""
    if not isinstance(name, str):
        shown = reprlib.repr(name)
        raise InvalidType(f"A support is named {shown}, but a name is a string. Give a string.")


def _most_similar(
    preselect: int | None, semantics: Any, name: str | None, unknown: str, names: tuple[str, ...]
) -> tuple[str, ...]:
    """The names of the supports to choose from, of all `names`: see `OneShotClassifier`."""
    if preselect is None:
        return names
    whole_number("preselect", preselect, 1, len(names))
    if name is None or semantics is None or not hasattr(semantics, "most_similar"):
        raise InvalidInput(
            f"preselect={preselect} compares names, but name={name!r} and semantics={semantics!r}. "
            f"Give the positive class a name, and semantics such as knowmore.semantics.WordNet."
        )
    similar = tuple(semantics.most_similar(name, names, preselect, unknown=unknown))
    if not similar or not set(similar) <= set(names):
        problem = f"semantics.most_similar returned {similar!r}, not some supports."
        raise InvalidInput(f"{problem} Set preselect=None.")
    return similar


def _inputs(model: OneShot) -> dict[str, Array]:
    """The inputs of each support."""
    return {one.name: one.X for one in model.supports}


def _fingerprint(X: Array) -> str:
    """A short text, the same for the same examples."""
    return f"{len(X)} examples, hash {blake2b(X.tobytes(), digest_size=8).hexdigest()}"
