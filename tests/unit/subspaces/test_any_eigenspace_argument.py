"""Eigenspaces and what builds on them: any argument gives a finite answer, or an error in words."""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from anything import X, Y, assert_sound

from knowmore import Eigenspace, EigenspaceLDA, EigenspacePCA, SubspaceMonitor, Truncation
from knowmore.subspaces import Window, lagged

SPACE = Eigenspace.of(X)
PCA = EigenspacePCA().fit(X)
LDA = EigenspaceLDA().fit(X, Y)
MONITOR = SubspaceMonitor(1, 4, false_alarms=0.2).fit(X)
PARTS = {"n_samples": 3, "mean": np.zeros(3), "components": np.eye(3)[:1], "variances": np.ones(1)}
PARTS |= {"names": None, "discarded": 0.0, "blurred": 0.0, "lost": 0.0, "mean_rest": np.zeros(3)}


def part(name):
    return lambda value: Eigenspace(**PARTS | {name: value}).project(X)


def parameter(estimator, name):
    return lambda value: deepcopy(estimator).set_params(**{name: value}).fit(X, Y)


def verb(estimator, name, *before, **after):
    return lambda value: getattr(deepcopy(estimator), name)(*before, value, **after)


def seen(value):
    observed = deepcopy(MONITOR).observe(value)
    return np.concatenate([observed.errors, observed.drifts])


def count(**rule):
    return lambda value: Truncation(**rule).count(value)


FUNCTIONS = {
    **{f"Eigenspace({name})": part(name) for name in PARTS},
    "Eigenspace.of": Eigenspace.of,
    "Eigenspace.of-rank": partial(Eigenspace.of, X),
    **{f"Eigenspace.{name}": verb(SPACE, name) for name in ("merge", "split", "add_rows")},
    **{f"Eigenspace.{name}": verb(SPACE, name) for name in ("remove_rows", "truncate", "angles")},
    **{f"Eigenspace.{name}": verb(SPACE, name) for name in ("with_names", "__add__", "__sub__")},
    **{f"Eigenspace.{name}": verb(SPACE, name) for name in ("project", "reconstruct", "distances")},
    "Eigenspace.merge-rank": partial(SPACE.merge, SPACE),
    "Eigenspace.add_rows-rank": partial(SPACE.add_rows, X),
    "Eigenspace.split-rank": partial(SPACE.split, Eigenspace.of(X[:3])),
    "Eigenspace.remove_rows-rank": partial(SPACE.remove_rows, X[:3]),
    "Eigenspace.remove_rows-warn": lambda value: SPACE.remove_rows(X[:3], warn=value),
    **{
        f"Truncation({name})": lambda value, name=name: Truncation(**{name: value})
        for name in ("rank", "fraction", "tolerance")
    },
    "Truncation.by": Truncation.by,
    "Truncation.count": count(),
    "Truncation.count-fraction": count(fraction=0.5),
    "Truncation.count-tolerance": count(tolerance=0.5),
    "Truncation.count-dropped": lambda value: Truncation(fraction=0.5).count(np.ones(3), value),
    "Window.of": partial(Window.of, size=4),
    "Window.of-size": partial(Window.of, X),
    "Window.push": Window.of(X, 4).push,
    "lagged": partial(lagged, length=2),
    "lagged-length": partial(lagged, X),
    **{f"PCA({name})": parameter(PCA, name) for name in PCA.get_params()},
    **{f"PCA.{name}": verb(PCA, name) for name in ("fit", "partial_fit", "forget", "merge")},
    **{f"PCA.{name}": verb(PCA, name) for name in ("transform", "inverse_transform")},
    **{f"PCA.{name}": verb(PCA, name) for name in ("score", "score_samples", "fit_transform")},
    **{f"LDA({name})": parameter(LDA, name) for name in LDA.get_params()},
    **{f"LDA.{name}-X": verb(LDA, name, y=Y) for name in ("fit", "partial_fit", "forget")},
    **{f"LDA.{name}-y": verb(LDA, name, X) for name in ("fit", "partial_fit", "forget")},
    **{f"LDA.{name}-classes": verb(LDA, name, X, Y) for name in ("fit", "partial_fit", "forget")},
    **{f"LDA.{name}": verb(LDA, name) for name in ("merge", "absorb", "transform", "predict")},
    **{f"LDA.{name}": verb(LDA, name) for name in ("decision_function", "predict_proba")},
    "LDA.absorb-rounds": verb(LDA, "absorb", X),
    **{f"Monitor({name})": parameter(MONITOR, name) for name in MONITOR.get_params()},
    "Monitor.fit": verb(MONITOR, "fit"),
    "Monitor.observe": seen,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_argument_is_answered_or_refused_in_words(function):
    assert_sound(FUNCTIONS[function])
