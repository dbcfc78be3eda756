"""Models of data that are spread over many places, by the same algebra over Dask.

Each shard is learnt where it is, and the models are merged in a tree: models travel, not rows. At
full rank the result is the model of all rows, to rounding, whatever the shards, their order and the
tree; a linear Gaussian process is that of all rows to the bit. Forests hold their rows, so these do
travel: each goes by its path to the worker that grows the part of the tree there.

It runs on the cluster of the active `distributed.Client` if there is one, else on Dask's local
scheduler; linear Gaussian processes and forests, in the calling thread. Work that is lost with a
worker is done again.

A shard is removed as rows are, by the same algebra; from a forest, by the ids of its rows.

>>> import dask.array as da
>>> import numpy as np
>>> from knowmore import Eigenspace, EigenspacePCA
>>> from knowmore.distributed import eigenspace, fit
>>> X = np.random.default_rng(0).normal(size=(100, 5))
>>> spread = da.from_array(X, chunks=(30, 2))
>>> whole = eigenspace(spread)
>>> whole
Eigenspace(100 rows of 5, 5 directions, discarded 0)
>>> whole - Eigenspace.of(X[30:60])                      # without the second shard
Eigenspace(70 rows of 5, 5 directions, discarded 0)
>>> fit(EigenspacePCA(), spread).forget(X[30:60]).n_samples_
70

A `LinearGPClassifier` or `LinearGPRegressor` reads the shards twice, first for the grid, unless its
grids are given: the result is equal to one `fit`, to the bit. It can also be given the `.kms` files
of `refresh_sums`, which hold the sums of the rows. They count even if the file of the rows is gone:
to forget a shard, delete its `.kms` file too. A fitted model forgets it by `forget`, or by
`split(load_sums(path))`.

>>> from knowmore import LinearGPClassifier
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> clf = fit(LinearGPClassifier(), [(X[:90], y[:90]), (X[90:], y[90:])])
>>> clf.digest() == LinearGPClassifier().fit(X, y).digest()
True

>>> from tempfile import TemporaryDirectory
>>> from knowmore.distributed import load_sums, refresh_sums
>>> with TemporaryDirectory() as folder:
...     for day in range(3):
...         np.savez(f"{folder}/{day}.npz", X=X[day::3], y=y[day::3])
...     found = refresh_sums(folder)
...     clf = fit(LinearGPClassifier(), f"{folder}/*.kms")
...     rest = clf.split(load_sums(f"{folder}/2.npz.kms"))
>>> len(found.computed), rest.n_samples_
(3, 100)

A `ForestGPClassifier` or `ForestGPRegressor` is grown and factorised by the workers, each row where
its path leads; then all of it comes back. It is equal to one `fit`, leaf by leaf. Without ids
examples are numbered in the order of the shards, so `remove(range(100, 250))` forgets a shard of
150 rows behind one of 100. As in one `fit`, an index of pandas tables is ids, unless it is 0, 1,
... or dates.

>>> from knowmore import ForestGPClassifier
>>> forest = fit(ForestGPClassifier(capacity=32), [(X[:90], y[:90]), (X[90:], y[90:])])
>>> alone = ForestGPClassifier(capacity=32).fit(X, y)
>>> bool((forest.predict(X) == alone.predict(X)).all())
True
>>> forest.remove(range(90)).classes_                         # without the first shard
array([1, 2])
"""

from __future__ import annotations

from knowmore._base import require

# Before the imports that would fail with other messages.
require("dask", "dask")
require("distributed", "dask")

from knowmore.distributed.merging import eigenspace, fit  # noqa: E402
from knowmore.distributed.reading import read  # noqa: E402
from knowmore.distributed.refreshing import Refreshed, refresh_sums  # noqa: E402
from knowmore.distributed.sums import load_sums, save_sums  # noqa: E402

__all__ = ["Refreshed", "eigenspace", "fit", "load_sums", "read", "refresh_sums", "save_sums"]
