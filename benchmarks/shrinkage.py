"""Ledoit and Wolf's shrinkage beside scikit-learn's: `python -m benchmarks.shrinkage`.

Few rows of each class are learnt, all others asked about: the mean part that is right over draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from knowmore import EigenspaceLDA
from knowmore.errors import MissingData
from papers.data import animals_with_attributes, find, orl_faces

_DRAWS = 5
_ASKED = 2000


def tables() -> Iterator[tuple[str, Any, Any, int]]:
    """Name, X (n, D), y (n,), and how many rows of each class are learnt."""
    digits = load_digits(return_X_y=True)
    yield "digits, 10 of each", *digits, 10
    yield "digits, 10 of each, every 7th column times 1e6", digits[0] * _uneven(64), digits[1], 10
    try:
        faces = orl_faces()
        # Every 16th pixel: scikit-learn's solver makes D x D matrices.
        yield "ORL faces, 5 of each", faces.X[:, ::16], faces.labels, 5
        animals = animals_with_attributes("surf")
        yield "animals, words of SURF, 9 of each", animals.X[:, ::4], animals.labels, 9
        with np.load(find("fashion_mnist.npz")) as file:
            X, y = (file[f"test_{name}"] for name in ("images", "labels"))
        yield "Fashion-MNIST, 50 of each", X.reshape(len(X), -1).astype(float), y, 50
    except MissingData as error:
        print(error)


def _uneven(columns: int) -> Any:
    return np.where(np.arange(columns) % 7 == 0, 1e6, 1.0)


def right(make: Any, X: Any, y: Any, each: int) -> float:
    """The mean part of other rows that is right after `each` of every class."""
    found = []
    for seed in range(_DRAWS):
        order = np.random.default_rng(seed).permutation(len(y))
        learnt = np.concatenate([order[y[order] == c][:each] for c in np.unique(y)])
        asked = np.setdiff1d(order, learnt)[:_ASKED]
        found.append(make().fit(X[learnt], y[learnt]).score(X[asked], y[asked]))
    return float(np.mean(found))


if __name__ == "__main__":
    ways = {
        "no shrinkage": EigenspaceLDA,
        "ledoit-wolf": lambda: EigenspaceLDA(shrinkage="ledoit-wolf"),
        "scikit-learn auto": lambda: LinearDiscriminantAnalysis("eigen", shrinkage="auto"),
    }
    for name, X, y, each in tables():
        print(name, {way: round(right(make, X, y, each), 3) for way, make in ways.items()})
