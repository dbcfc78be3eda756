"""Shards in many places, merged in any tree and any order, give the model of all rows."""

from __future__ import annotations

import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import oracle
import pytest
import strategies
from dask import delayed
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tolerance import assert_models, assert_rounded, scatter_error

from knowmore import Eigenspace, EigenspaceLDA, EigenspacePCA, Truncation
from knowmore._base import missing_extra
from knowmore.distributed import eigenspace, fit

X = np.random.default_rng(0).normal(size=(61, 7)) + 5
Y = np.sort(np.random.default_rng(1).integers(0, 5, len(X)))


def cut(rows, rng):
    """Consecutive parts of random sizes, some of them without any row."""
    return np.split(rows, np.sort(rng.integers(0, len(rows) + 1, rng.integers(0, 12))))


@settings(max_examples=40)
@given(strategies.row_tables(), strategies.seeds, st.integers(2, 9))
def test_any_tree_and_any_order_is_the_batch(X, seed, split_every):
    rng = np.random.default_rng(seed)
    parts = cut(X[rng.permutation(len(X))], rng)
    with dask.config.set(scheduler="synchronous"):
        whole = eigenspace(parts, split_every=split_every)
    assert_models(whole, X, edits=1 + len(parts))


@pytest.mark.parametrize(
    "chunks",
    [(61, 7), (1, 1), (60, 3), ((1, 0, 17, 40, 3), (2, 5)), ((30, 31), (1, 0, 6))],
    ids=str,
)
def test_a_dask_array_in_any_chunks(chunks):
    assert_models(eigenspace(da.from_array(X, chunks=chunks)), X, edits=1 + len(X))


def test_a_dask_array_whose_chunks_are_not_known():
    far = X[:, 0] > np.median(X[:, 0])
    spread = da.from_array(X, chunks=(8, 3))
    filtered = spread[spread[:, 0] > np.median(X[:, 0])]
    assert np.isnan(filtered.chunks[0]).all()
    assert_models(eigenspace(filtered), X[far], edits=9)


@pytest.mark.parametrize(
    "of",
    [
        lambda parts: (part.tolist() for part in parts),
        lambda parts: tuple(delayed(part) for part in parts),
        lambda parts: [sparse.csr_array(part) for part in parts],
        lambda parts: [da.from_array(part, chunks=(5, 2)) for part in parts],
        lambda parts: da.from_array(X, chunks=(16, 7)).to_delayed().ravel(),
    ],
    ids=["lists", "delayed", "sparse", "Dask arrays", "an array of delayed"],
)
def test_shards_of_any_kind(of):
    assert_models(eigenspace(of(np.array_split(X, 4))), X, edits=5)


def test_one_shard_needs_no_merge():
    assert_models(eigenspace([X]), X)


def test_a_rank_bounds_every_model_and_says_what_it_cost():
    parts = np.array_split(X, 6)
    few = eigenspace(parts, 3)
    assert len(few.variances) == 3
    assert few.discarded > 0
    assert_rounded(few.total_variance, Eigenspace.of(X).total_variance)
    half = eigenspace(parts, Truncation(fraction=0.5))
    assert 0 < len(half.variances) < 7


def test_a_shard_is_taken_out_by_a_split():
    parts = np.array_split(X, 5)
    left = np.concatenate(parts[:2] + parts[3:])
    assert_models(eigenspace(parts) - Eigenspace.of(parts[2]), left, held=X, edits=7)
    pca = fit(EigenspacePCA(), parts).forget(parts[2])
    assert_models(pca.eigenspace_, left, held=X, edits=7)


def test_fit_gives_a_fitted_estimator_and_leaves_the_given_one_alone():
    given = EigenspacePCA(whiten=True)
    pca = fit(given, da.from_array(X, chunks=(9, 2)), split_every=3)
    assert_models(pca.eigenspace_, X, edits=8)
    assert pca.whiten
    assert not hasattr(given, "eigenspace_")
    learnt = EigenspacePCA().fit(X[:1] * 100)
    assert_models(fit(learnt, np.array_split(X, 4)).eigenspace_, X, edits=5)
    assert learnt.n_samples_ == 1


@pytest.mark.parametrize("seed", range(5))
def test_classes_that_only_some_shards_have(seed):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, len(X) + 1, 6))
    shards = list(zip(np.split(X, cuts), np.split(Y, cuts), strict=True))
    rng.shuffle(shards)
    assert len(np.unique(shards[0][1])) < 5
    rows, labels = zip(*shards, strict=True)
    lda = fit(EigenspaceLDA(), rows, labels, split_every=int(rng.integers(2, 5)))
    assert lda.classes_.tolist() == [0, 1, 2, 3, 4]
    assert_models(lda.total_, X, edits=8)
    between = oracle.scatter_between(X, np.eye(5)[Y])
    scale = scatter_error(X, edits=8) / np.finfo(float).eps
    assert_rounded(len(X) * lda.between_.covariance(), between, 1, scale)
    assert (lda.predict(X) == EigenspaceLDA().fit(X, Y).predict(X)).all()


def test_labels_in_a_dask_array():
    spread = da.from_array(X, chunks=(20, 4))
    lda = fit(EigenspaceLDA(), spread, da.from_array(Y, chunks=20))
    assert_models(lda.total_, X, edits=5)
    assert lda.between_.n_samples == len(X)


class Tally:
    """The least that can be learnt in parts: how often each label was seen, kept in place."""

    def fit(self, X, y):
        self.counts = np.bincount(y, minlength=5)
        return self

    def merge(self, other):
        self.counts += other.counts
        return self


class Forgetful(Tally):
    def merge(self, other):
        self.counts += other.counts


def test_anything_with_fit_and_merge():
    parts = np.array_split(X, 7), np.array_split(Y, 7)
    assert (fit(Tally(), *parts).counts == np.bincount(Y)).all()


def test_models_that_a_merge_changes_are_not_those_that_dask_holds():
    """A leaf that is asked for again must not hold what was merged into it."""
    seen = []

    class Watched(Tally):
        def fit(self, X, y):
            seen.append(super().fit(X, y))
            return self

    with dask.config.set(scheduler="synchronous"):
        fit(Watched(), np.array_split(X, 7), np.array_split(Y, 7))
    assert sorted(one.counts.sum() for one in seen) == sorted(map(len, np.array_split(X, 7)))


def test_a_merge_that_returns_nothing_raises():
    with pytest.raises(
        TypeError, match=r"Forgetful\.merge returned None\. It must return the merged"
    ):
        fit(Forgetful(), [X, X], [Y, Y])


def test_a_bar_is_drawn_only_when_asked_for(capsys):
    eigenspace(np.array_split(X, 4))
    assert capsys.readouterr().out == ""
    assert_models(eigenspace(np.array_split(X, 4), progress=True), X, edits=5)
    assert "100% Completed" in capsys.readouterr().out


@pytest.mark.parametrize("library", ["dask", "distributed"])
def test_a_missing_library_names_its_extra(library):
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from knowmore.errors import MissingExtra\n"
        "try: import knowmore.distributed\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{missing_extra(library, 'dask')}\n"
