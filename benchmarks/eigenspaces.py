"""Eigenspaces against what others offer for the same job, and against batch fits.

An error is the largest principal angle between the leading halves of the components, or the
largest relative error of their variances. The last directions that are kept are mixed with those
that were dropped: the angle between the whole subspaces says how close two variances there are.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks import shards
from benchmarks.scene import Array, Scale
from benchmarks.spectra import Stream, faces, labelled, sizes, table
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import REST, Samples, interleaved, once
from knowmore import Eigenspace, EigenspaceLDA, EigenspacePCA

_EPS = float(np.finfo(float).eps)

# Both incremental fits drop the same directions at each step, so that their errors differ by
# roundings alone, in either direction. They are below a millionth of the error.
_NO_LARGER = Target("<=", 1 + 1e-6)


def orl_faces(scale: Scale) -> Iterator[Row]:
    """Many features, few rows."""
    size = sizes(scale)
    X = faces(size.step)
    if X is None:
        yield Row("faces: one update", note="orl_faces.npz is not in KNOWMORE_DATA")
        return
    exact = PCA(size.faces.components, svd_solver="full").fit(X)
    yield from _streamed("faces", X, size.faces, exact, at_least=6, rounds=size.rounds)


def long_table(scale: Scale) -> Iterator[Row]:
    """Many rows, and fewer features than rows in a few batches."""
    size = sizes(scale)
    X = table(size.rows, size.features)
    exact = PCA(size.table.components, svd_solver="covariance_eigh").fit(X)
    yield from _streamed("table", X, size.table, exact, at_least=6, rounds=1)


def _streamed(
    name: str, X: Array, stream: Stream, exact: PCA, at_least: float, rounds: int
) -> Iterator[Row]:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        mine, peer = EigenspacePCA(stream.components), IncrementalPCA(stream.components)
        mine.partial_fit(X[: stream.first])
        peer.partial_fit(X[: stream.first])
        for begin in range(stream.first, len(X), stream.batch):
            for model, seconds in (mine, ours), (peer, theirs):
                time.sleep(REST)
                seconds.append(once(partial(model.partial_fit, X[begin : begin + stream.batch])))
    of = f"{X.shape[1]} features, {stream.components} components"
    facts: dict[str, Any] = {"n": len(X), "features": X.shape[1]} | vars(stream)
    yield faster(
        f"{name}: one update, {stream.batch} rows",
        Samples(tuple(ours)),
        "scikit-learn IncrementalPCA",
        Samples(tuple(theirs)),
        at_least,
        of,
        **facts,
    )
    yield from _no_larger(name, mine, peer, exact, f"{len(X)} rows, {of}")


def _no_larger(
    name: str, mine: EigenspacePCA, peer: IncrementalPCA, exact: PCA, note: str
) -> Iterator[Row]:
    """Both against the batch fit, and how far they are from each other."""
    apart = _errors(mine, peer)
    for kind, error in _errors(mine, exact).items():
        other = _errors(peer, exact)[kind]
        yield Row(
            f"{name}, whole stream: {kind}",
            error,
            "",
            "scikit-learn IncrementalPCA",
            other,
            error / other,
            target=_NO_LARGER,
            note=f"{note}; the two are {apart[kind]:.1e} from each other",
            raw={"apart": apart[kind], "whole": _angle(mine, exact, len(mine.components_))},
        )


def _errors(one: Any, other: Any) -> dict[str, float]:
    """Errors of the leading half of the components, between two fitted models."""
    half = len(other.components_) // 2
    v, w = one.explained_variance_[:half], other.explained_variance_[:half]
    return {
        "angle to batch": _angle(one, other, half),
        "variances against batch": float(abs(v / w - 1).max()),
    }


def _angle(one: Any, other: Any, leading: int) -> float:
    P, Q = one.components_[:leading], other.components_[:leading]
    return float(subspace_angles(P.T, Q.T)[0])


# -- forgetting ----------------------------------------------------------------------------------


def forgetting(scale: Scale) -> Iterator[Row]:
    """A batch is taken out of the whole; the reference is the fastest fit of the rest."""
    size = sizes(scale)
    k, batch = size.table.components, size.table.batch
    X = table(size.rows, size.features)
    gone, rest = X[:batch], X[batch:]
    few, all_ = EigenspacePCA(k).fit(X), EigenspacePCA().fit(X)
    again = PCA(k, svd_solver="covariance_eigh")
    operations: dict[str, Callable[[], object]] = {
        "forget": lambda: copy.copy(few).forget(gone),
        "forget, all": lambda: copy.copy(all_).forget(gone),
        "Eigenspace": lambda: Eigenspace.of(rest, k),
        "scikit-learn PCA": lambda: again.fit(rest),
    }
    times = interleaved(size.rounds, operations, times={"forget": 15}, rest=REST, warm=0)
    refit = min("Eigenspace", "scikit-learn PCA", key=lambda name: times[name].median)
    facts: dict[str, Any] = {name: samples.raw() for name, samples in times.items()}
    facts |= {"n": len(X), "features": size.features, "batch": batch, "components": k}
    few.forget(gone)
    errors = ", ".join(f"{kind} {error:.1e}" for kind, error in _errors(few, again).items())
    yield faster(
        f"forget {batch} of {len(X)} rows, {k} of {size.features} directions",
        times["forget"],
        f"{refit} refit",
        times[refit],
        10,
        errors,
        **facts,
    )
    all_.forget(gone)
    yield faster(
        f"forget {batch} of {len(X)} rows, all {size.features} directions",
        times["forget, all"],
        f"{refit} refit, {k} directions",
        times[refit],
        None,
        **facts,
    )
    S = np.cov(rest.T, bias=True)
    wrong = np.linalg.norm(all_.eigenspace_.covariance() - S) / np.linalg.norm(S)
    yield Row(
        f"forget {batch}, all {size.features} directions: scaled error of the scatter",
        float(wrong / _EPS),
        "",
        note="relative, in units of eps",
    )


# -- discriminants -------------------------------------------------------------------------------


def new_class(scale: Scale) -> Iterator[Row]:
    """A class turns up and one question is asked; the reference is scikit-learn's fastest refit."""
    size = sizes(scale)
    n, D = size.of_class, size.class_features
    X, y = labelled(np.arange(size.classes), n, D, seed=3)
    new, label = labelled(np.array([size.classes]), n, D, seed=4)
    Z, z = labelled(np.arange(size.classes + 1), 20, D, seed=5)
    whole, labels = np.concatenate([X, new]), np.concatenate([y, label])
    peers = {one: LinearDiscriminantAnalysis(solver=one) for one in ("svd", "eigen")}
    ours = {rank: EigenspaceLDA(rank=rank).fit(X, y) for rank in (None, size.rank)}
    operations: dict[str, Callable[[], object]] = {
        name: partial(lambda peer: peer.fit(whole, labels).predict(Z[:1]), peer)
        for name, peer in peers.items()
    }
    operations |= {
        str(rank): partial(lambda lda: copy.copy(lda).partial_fit(new, label).predict(Z[:1]), lda)
        for rank, lda in ours.items()
    }
    times = interleaved(
        min(size.rounds, 2), operations, times={str(size.rank): 15}, rest=REST, warm=0
    )
    solver = min(peers, key=lambda name: times[name].median)
    said = peers[solver].predict(Z)
    for rank, lda in ours.items():
        mine = lda.partial_fit(new, label).predict(Z)
        yield faster(
            f"add a class to {size.classes}, ask one, {f'rank {rank}' if rank else 'exact'}",
            times[str(rank)],
            f"scikit-learn LDA {solver} refit",
            times[solver],
            10 if rank else None,
            f"{len(y)} + {n} rows, {D} features; the same answer to {(mine == said).mean():.1%} of "
            f"{len(z)} held-out rows, right {(mine == z).mean():.1%} and {(said == z).mean():.1%}",
            agreement=float((mine == said).mean()),
            **{name: samples.raw() for name, samples in times.items()},
        )


BENCHMARKS: list[Benchmark] = [orl_faces, long_table, forgetting, shards.merged, new_class]
