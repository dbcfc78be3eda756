"""Every argument of every public name: any value gives a sound answer, or an error in words.

Each name has one call that is right; a signature says what else could be given. Estimators for many
rows and eigenspaces have catalogues of their own, beside their tests.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anything import X, Y, assert_sound
from sklearn.gaussian_process.kernels import (
    RBF,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from knowmore import (
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
    images,
    insight,
    kernels,
)
from knowmore.models import Following

# A small folder: the one of the project may hold an environment of 10,000 files.
HERE = str(Path(__file__).parent)
GP = GPClassifier(RBF(1.0)).fit(X, Y)
LINEAR = LinearGPClassifier().fit(X, Y)
SOURCE = LSSVMClassifier(RBF(1.0)).fit(X[Y < 2], Y[Y < 2])
TUNED = insight.tune(GPClassifier(RBF(1.0)).fit(X, X[:, 0] > X[:, 0].mean()))


def scores(rows):
    return np.asarray(rows)[:, :2]


LIVING = (
    GP,
    GPRegressor(RBF(1.0)).fit(X, Y.astype(float)),
    LSSVMClassifier(RBF(1.0)).fit(X, Y),
    NPlusOneClassifier(SOURCE, RBF(1.0)).fit(X, Y),
    OneShotClassifier(RBF(1.0), supports={"one": X[:4], "two": X[4:8]}).fit(X, Y > 1),
)
# A right value for each name of an argument.
RIGHT: dict[str, Any] = {"X": X, "y": Y, "ids": range(12), "name": "three"}
VERBS = [
    "fit",
    "add",
    "partial_fit",
    "remove",
    "replace",
    "relabel",
    "merge",
    "add_support",
    "remove_support",
]
# `score` is scikit-learn's own, and raises its errors.
QUESTIONS = ["predict", "decision_function", "predict_proba", "predict_variance", "leave_one_out"]


def each(call: Callable[..., Any], **right: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """The call as a function of each of its arguments; the others are right."""

    def of(name: str) -> Callable[[Any], Any]:
        return lambda value: call(**{**right, name: value})

    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield name, of(name)


def verb(estimator: Any, name: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Each argument of a method of a fitted estimator, asked of a copy."""
    signature = inspect.signature(getattr(estimator, name))
    needed = {word for word, one in signature.parameters.items() if one.default is one.empty}
    right = {word: RIGHT[word] for word in needed & RIGHT.keys()}
    if isinstance(estimator, OneShotClassifier):
        right |= {"y": Y > 1} if "y" in right else {}
    if name in ("replace", "relabel"):
        right |= {"y": right.get("y", estimator.model_.examples.labels)}
    if name == "remove_support":
        right = {"name": "one"}
    if name == "add":
        right["ids"] = range(100, 112)

    def call(**words: Any) -> Any:
        return getattr(deepcopy(estimator), name)(**words)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return each(call, **right)


def parameter(estimator: Any, name: str) -> Callable[[Any], Any]:
    y = Y > 1 if isinstance(estimator, OneShotClassifier) else Y
    return lambda value: deepcopy(estimator).set_params(**{name: value}).fit(X, y).predict(X)


def estimators() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    for estimator in LIVING:
        kind = type(estimator).__name__
        for name in estimator.get_params(deep=False):
            yield f"{kind}({name})", parameter(estimator, name)
        for name in (*VERBS, *QUESTIONS):
            if hasattr(estimator, name):
                for word, call in verb(estimator, name):
                    yield f"{kind}.{name}({word})", call


def learnt(kernel: Any) -> Any:
    """The kernel as a function of its parameters: learnt, asked and tuned."""

    def call(**words: Any) -> Any:
        clf = GPClassifier(kernel(**words)).fit(X, Y)
        clf.predict(X)
        return insight.tune(clf).estimator.predict(X)

    # scikit-learn looks at bounds when it is asked for them, and raises its own errors.
    parameters = inspect.signature(kernel).parameters.values()
    own = [one for one in parameters if not one.name.endswith("bounds")]
    call.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return call


def of_source(**words: Any) -> Any:
    return NPlusOneClassifier(Scores(**words), RBF(1.0)).fit(X, Y).predict(X)


of_source.__signature__ = inspect.signature(Scores)  # type: ignore[attr-defined]


def last_columns(X: Any) -> None:
    """Scores that are columns of X; what is not finite is left to the model that takes them."""
    Scores([0, 1]).decision_function(X)


def following(**words: Any) -> Any:
    return Following(**words).scores


following.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [one for one in inspect.signature(Following).parameters.values() if one.name[0] != "_"]
)


INSIGHT = {
    "calibrate": each(insight.calibrate, model=GP),
    "calibrate-linear": each(insight.calibrate, model=LINEAR, X=X, y=Y),
    "Calibrated.predict_proba": each(insight.calibrate(GP).predict_proba),
    "Calibrated.score": each(insight.calibrate(GP).score, X=X, y=Y),
    "due": each(insight.due, tuned=TUNED, every=3),
    "explain": each(insight.explain, model=GP, x=X[0]),
    "explain-linear": each(insight.explain, model=LINEAR, x=X[0]),
    "grounds": each(insight.grounds, model=GP, x=X[0]),
    "novelty": each(insight.novelty, model=GP, X=X),
    "novelty-linear": each(insight.novelty, model=LINEAR, X=X, reference=(X, Y)),
    "Novelty.unknown": each(insight.novelty(GP, X).unknown),
    "Novelty.threshold": each(insight.novelty(GP, X).threshold),
    "Novelty.separates": each(insight.novelty(GP, X).separates),
    "reliability": each(insight.reliability, model=GP, X=X, y=Y),
    "reliability-reference": each(insight.reliability, model=LINEAR, reference=(X, Y)),
    "suggest": each(insight.suggest, model=GP, X_pool=X),
    "suspects": each(insight.suspects, model=GP),
    "suspects-linear": each(insight.suspects, model=LINEAR, X=X, y=Y),
    "transfer": each(insight.transfer),
    "tune": each(insight.tune, model=GP),
    "LearningCurveDisplay": each(insight.LearningCurveDisplay.from_estimator, estimator=GP),
    "NoveltyDisplay": each(insight.NoveltyDisplay.from_estimator, estimator=GP, X=X),
    "ReliabilityDisplay": each(insight.ReliabilityDisplay.from_estimator, estimator=GP),
    "ScoreFieldDisplay": each(insight.ScoreFieldDisplay.from_estimator, estimator=GP),
    "SuspectsDisplay": each(insight.SuspectsDisplay.from_estimator, estimator=GP),
    "TransferDisplay": each(insight.TransferDisplay.from_estimator, estimator=LIVING[3]),
    "SuggestQuery": each(insight.SuggestQuery().query, X=X, y=np.where(Y > 1, np.nan, Y), clf=GP),
}
OTHERS = {
    "Scores": each(of_source, classes=[0, 1], of=scores),
    "Scores.decision_function": each(last_columns),
    "Following": each(following, model=GP.model_, X=X),
    "RBF": each(learnt(RBF)),
    "Matern": each(learnt(Matern)),
    "RationalQuadratic": each(learnt(RationalQuadratic)),
    "DotProduct": each(learnt(DotProduct)),
    "WhiteKernel": each(learnt(WhiteKernel)),
    "ExpSineSquared": each(learnt(ExpSineSquared)),
    "ChiSquared": each(learnt(kernels.ChiSquared)),
    "ExponentialIntersection": each(learnt(kernels.ExponentialIntersection)),
    "On": each(learnt(kernels.On), columns=slice(0, 2), kernel=RBF()),
    "Task": each(learnt(kernels.Task)),
    "HistogramIntersection.diag": each(kernels.HistogramIntersection().diag),
    "listing": each(images.listing, source=HERE),
    "image_folder": each(images.image_folder, path=HERE),
    "feature_table": each(images.feature_table, path="absent.npz"),
}
ENTRIES = dict(estimators()) | {
    f"{name}({word})": call
    for name, calls in (INSIGHT | OTHERS).items()
    for word, call in calls
    if word != "ax"
}


@pytest.fixture(autouse=True)
def closed_figures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with pyplot.rc_context({"figure.max_open_warning": 0}):
        yield
    pyplot.close("all")


@pytest.mark.parametrize("entry", ENTRIES)
def test_any_argument_is_answered_or_refused_in_words(entry):
    assert_sound(ENTRIES[entry])


def test_every_question_of_insight_is_in_the_catalogue():
    asked = {name.split(".")[0].split("-")[0] for name in INSIGHT}
    answers = {"Explanation", "FeatureExplanation", "Novelty", "Reliability", "Suggestion"}
    answers |= {"Grounds", "Suspects", "Transfer", "Tuned", "Calibrated"}
    assert set(insight.__all__) == asked | answers


def unequal(name: str) -> str:
    return f"{name} has lists of different lengths: "


RAGGED = [[1.0], [2.0, 3.0]]
ONE_SHOT = LIVING[-1]
MISTAKES = {
    "classes None": (
        lambda: NPlusOneClassifier(Scores(None, scores)).fit(X, Y),
        "The source has the classes array(None, dtype=object). Give a list of known classes, one "
        "for each column of its scores.",
    ),
    "classes ragged": (lambda: Scores(RAGGED, scores), unequal("classes")),
    "one column of scores": (
        lambda: Scores([0, 1]).decision_function([1.0, 2.0]),
        "X has shape (2,). Give features, then the 2 scores.",
    ),
    "length scales": (
        lambda: GPClassifier(2.0 * RationalQuadratic(np.ones(3))).fit(X, Y),
        "The kernel has k2__length_scale=array([1., 1., 1.]). Give a real number.",
    ),
    "text for two numbers": (
        lambda: GPClassifier(RBF(["a", "b"])).fit(X, Y),
        "The kernel has length_scale=['a', 'b']. Give 2 real numbers.",
    ),
    "order": (
        lambda: GPClassifier(Matern(nu="rough")).fit(X, Y),
        "A Matern kernel has nu='rough': give an order above zero, such as 1.5.",
    ),
    "negative start": (
        lambda: insight.tune(GPClassifier(RBF(-1.0)).fit(X, Y)),
        "kernel__length_scale is -1, not within 1e-05 to 100000. Give the kernel other "
        "bounds, or fit the model with another value.",
    ),
    "dtype": (
        lambda: GPRegressor(dtype=["float32"]).fit(X, Y),
        "dtype=['float32'] is not known. Choose one of 'float64', 'float32'.",
    ),
    "return_std": (
        lambda: LIVING[1].predict(X, return_std=[1, 2]),
        "return_std=[1, 2] is neither True nor False.",
    ),
    "explain": (lambda: insight.explain(GP, RAGGED), unequal("x")),
    "explain label": (lambda: insight.explain(GP, X[0], RAGGED), unequal("label")),
    "reliability": (lambda: insight.reliability(GP, X, RAGGED), unequal("y")),
    "class": (
        lambda: insight.reliability(GPClassifier, X, Y),
        "ABCMeta has no predict_proba. Give a GPClassifier.",
    ),
    "support": (
        lambda: ONE_SHOT.add_support(np.array([1, 2]), X),
        "A support is named array([1, 2]), but a name is a string. Give a string.",
    ),
    "support to remove": (
        lambda: ONE_SHOT.remove_support(7),
        "A support is named 7, but a name is a string. Give a string.",
    ),
    "following": (
        lambda: Following(GP.model_, [["a", "b", "c"]]),
        "X has values that are not real numbers: they are of type <U1. Encode text and dates as "
        "numbers first, and give complex numbers as two columns each.",
    ),
    "not following": (
        lambda: insight.suggest(GP, X, following=GP),
        "following is a GPClassifier. Give a Following of X_pool, or None.",
    ),
    "label": (
        lambda: GPClassifier().fit(X, [2**64 - 1] * 6 + [1] * 6),
        "Integers outside -2**63 to 2**63 - 1 and strings that end in NUL cannot be labels. "
        "Rename them.",
    ),
    "query": (
        lambda: insight.SuggestQuery().query(X, [0] * 11 + [None], clf=[GP]),
        "clf is a list. Give an estimator, as GPClassifier().",
    ),
    "query ragged": (lambda: insight.SuggestQuery().query(RAGGED, [0, None], GP), unequal("X")),
    "separates": (
        lambda: insight.novelty(GP, X).separates("most"),
        "q='most' must be a number in [0, 1]. It is the fraction of known examples to be called "
        "known.",
    ),
    "restarts": (
        lambda: insight.tune(GP, restarts=10**9),
        "restarts=1000000000. Give a whole number from 0 to 10000.",
    ),
    "column of tasks": (
        lambda: GPClassifier(kernels.Task(column="site")).fit(X, Y),
        "The kernel Task(rho=0.5, column=site) reads the task in column 'site', but was given a "
        "table of 3 columns. Add the column that names the task of each row.",
    ),
    "weights": (
        lambda: GPClassifier(kernels.On(slice(0, 2), RBF(), RAGGED)).fit(X, Y),
        "weights has values that are not real numbers: ",
    ),
    "no path": (
        lambda: images.listing(None),
        "The path is None, of type NoneType. Give the name of a file or folder: a str or a "
        "pathlib.Path.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_words(mistake):
    call, text = MISTAKES[mistake]
    with pytest.raises(KnowmoreError, match=f"^{re.escape(text)}"):
        call()


def test_rows_to_follow_may_be_a_list():
    want = Following(GP.model_, X).scores
    np.testing.assert_array_equal(Following(GP.model_, X.tolist()).scores, want)
