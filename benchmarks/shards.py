"""Shards on the worker processes of a real Dask cluster, against one process and the batch fit."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.scene import Array, Scale
from benchmarks.spectra import Sizes, sizes, table
from benchmarks.table import Row, Target, faster
from benchmarks.timing import REST, interleaved
from knowmore import Eigenspace, LinearGPClassifier

_WORKERS = 2


def merged(scale: Scale) -> Iterator[Row]:
    """All directions are kept, so that the merged eigenspace is the batch fit; sums are exact."""
    if find_spec("dask") is None or find_spec("distributed") is None:
        yield Row("shards on Dask workers", note='not installed: pip install ".[dask]"')
        return
    distributed = import_module("distributed")
    with (
        distributed.LocalCluster(
            n_workers=_WORKERS, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield from _compared(sizes(scale), distributed)
        yield from _summed(sizes(scale), distributed)


def _compared(size: Sizes, distributed: Any) -> Iterator[Row]:
    dask, eigenspace = import_module("dask"), import_module("knowmore.distributed").eigenspace
    rows, D = size.rows // size.shards, size.shard_features
    here = [table(rows, D, seed) for seed in range(size.shards)]
    there = dask.persist(*(dask.delayed(table)(rows, D, seed) for seed in range(size.shards)))
    distributed.wait(there)

    def alone() -> Eigenspace:
        # The same tree, without the cluster.
        with dask.config.set(scheduler="synchronous"):
            return eigenspace(here)  # type: ignore[no-any-return]

    operations = {"workers": lambda: eigenspace(there), "alone": alone}
    times = interleaved(min(size.rounds, 2), operations, rest=REST)
    facts = {"shards": size.shards, "rows": rows, "features": D, "workers": _WORKERS}
    name = f"{size.shards} shards of {rows} x {D} on {_WORKERS} workers"
    yield faster(
        name,
        times["workers"],
        "one process, all threads",
        times["alone"],
        None,
        "rows already in the memory of the workers, one thread each; models travel",
        **facts,
    )
    yield Row(
        f"{name}: relative error of the scatter",
        _error(eigenspace(there), np.concatenate(here)),
        "",
        target=Target("<=", 1e-10),
        raw=facts,
    )


def _summed(size: Sizes, distributed: Any) -> Iterator[Row]:
    dask, fit = import_module("dask"), import_module("knowmore.distributed").fit
    rows, D = size.rows // size.shards, size.shard_features
    here = [_labelled(rows, D, size.classes, seed) for seed in range(size.shards)]
    X, y = (np.concatenate(parts) for parts in zip(*here, strict=True))
    there = dask.persist(
        *(dask.delayed(_labelled)(rows, D, size.classes, seed) for seed in range(size.shards))
    )
    distributed.wait(there)
    operations = {
        "workers": lambda: fit(LinearGPClassifier(), there),
        "alone": lambda: LinearGPClassifier().fit(X, y),
    }
    with threadpool_limits(_WORKERS, "blas"):
        times = interleaved(size.rounds, operations, rest=REST)
    facts = {"shards": size.shards, "rows": rows, "features": D, "workers": _WORKERS}
    name = f"linear GP, {size.shards} shards of {rows} x {D} on {_WORKERS} workers"
    yield faster(
        name,
        times["workers"],
        f"one process, {_WORKERS} threads",
        times["alone"],
        None,
        "rows already in the memory of the workers, one thread each; sums travel",
        **facts,
    )
    same = operations["workers"]().digest() == operations["alone"]().digest()
    yield Row(f"{name}: the same digest", float(same), "", target=Target(">=", 1), raw=facts)


def _labelled(rows: int, D: int, classes: int, seed: int) -> tuple[Array, Array]:
    return table(rows, D, seed), np.random.default_rng(seed).integers(classes, size=rows)


def _error(model: Eigenspace, X: Array) -> float:
    S = np.cov(X.T, bias=True)
    return float(np.linalg.norm(model.covariance() - S) / np.linalg.norm(S))
