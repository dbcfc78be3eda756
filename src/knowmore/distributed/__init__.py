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
