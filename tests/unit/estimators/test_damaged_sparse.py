"""A sparse matrix with entries outside of itself would end the process: it is refused in words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from knowmore import (
    Eigenspace,
    EigenspaceLDA,
    ForestGPClassifier,
    GPClassifier,
    KnowmoreError,
    LinearGPClassifier,
)
from knowmore.kernels import HistogramIntersection, On, Task
from knowmore.linalg import Grid, Sums

X = np.arange(12.0).reshape(6, 2)
Y = list("ababab")


def changed(name, part, at, value):
    matrix = getattr(sparse, f"{name}_array")(X)
    values = getattr(matrix, part).copy()
    values[at] = value
    setattr(matrix, part, values)
    return matrix


def with_part(name, part, value):
    matrix = getattr(sparse, f"{name}_array")(X)
    setattr(matrix, part, value(getattr(matrix, part)))
    return matrix


def far(coords):
    return coords[0], np.append(coords[1][1:], 10**6)


def long_list(rows):
    rows[0] = [0, 10**6]
    return rows


DAMAGED = {
    "a column beyond the last": lambda: changed("csr", "indices", -1, 10**6),
    "a column below zero": lambda: changed("csr", "indices", 0, -1),
    "a row beyond the last": lambda: changed("csc", "indices", -1, 6),
    "a block beyond the last": lambda: changed("bsr", "indices", -1, 10**6),
    "a row that starts too late": lambda: changed("csr", "indptr", 1, 10**6),
    "a first row that starts late": lambda: changed("csr", "indptr", 0, 1),
    "more entries than there are": lambda: changed("csr", "indptr", -1, 10**6),
    "fewer values than entries": lambda: with_part("csr", "data", lambda data: data[:1]),
    "coordinates beyond the last": lambda: with_part("coo", "coords", far),
    "coordinates without values": lambda: with_part("coo", "data", lambda data: data[:1]),
    "a list that names another column": lambda: with_part("lil", "rows", long_list),
    "diagonals without values": lambda: with_part("dia", "offsets", lambda k: np.append(k, 3)),
}
READERS = {
    "LinearGPClassifier": lambda Z: LinearGPClassifier().fit(Z, Y),
    "GPClassifier": lambda Z: GPClassifier().fit(Z, Y),
    "ForestGPClassifier": lambda Z: ForestGPClassifier().fit(Z, Y),
    "EigenspaceLDA": lambda Z: EigenspaceLDA().fit(Z, Y),
    "Eigenspace": Eigenspace.of,
    "a question": lambda Z: LinearGPClassifier().fit(X, Y).predict(Z),
    "Grid": Grid.covering,
    "Sums": lambda Z: Sums.of(Grid.covering(X), Z),
    "a histogram kernel": HistogramIntersection(),
    "On": On(slice(0, 1), HistogramIntersection()),
    "Task": Task(0.5, 0),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_sparse_matrix_is_reported(damage, reader):
    Z = DAMAGED[damage]()
    with pytest.raises(KnowmoreError) as caught:
        READERS[reader](Z)
    assert str(caught.value) == (
        f"X is a damaged sparse matrix of shape (6, 2) ({Z.format}): some of its entries are "
        f"outside of that shape, or its parts differ in length. Make it anew from its values."
    )


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_a_sound_sparse_matrix_of_any_format_is_read(name):
    Z = getattr(sparse, f"{name}_matrix")(X)
    assert (GPClassifier().fit(Z, Y).model_.examples.X == X).all()


def test_room_behind_the_entries_is_allowed():
    Z = sparse.csr_array(X)
    Z.indices, Z.data = np.append(Z.indices, 10**6), np.append(Z.data, 1.0)
    assert (GPClassifier().fit(Z, Y).model_.examples.X == X).all()
