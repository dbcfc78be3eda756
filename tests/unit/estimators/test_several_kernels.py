"""Several kernels: the weights of their sum are chosen by the examples, whatever the estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import knowmore
from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LSSVMClassifier,
)
from knowmore.errors import InvalidInput
from knowmore.export import to_html
from knowmore.kernels import On, default_kernel

CLASSIFIERS = [GPClassifier, LSSVMClassifier, ForestGPClassifier]
REGRESSORS = [GPRegressor, ForestGPRegressor]
MAKE = pytest.mark.parametrize("make", [*CLASSIFIERS, *REGRESSORS])
# Two columns tell, three do not.
BLOCKS = [On(slice(0, 2)), On(slice(2, 5))]


def table(make, n=60, seed=0):
    """Rows (n, 5), and classes or values that the first two columns tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    score = X[:, 0] + X[:, 1]
    values = score + 0.1 * rng.normal(size=n)
    return X, values if make in REGRESSORS else (score > 0).astype(int)


def leaves(kernel):
    """The terms of a sum, as (factor, kernel), factors multiplied."""
    parts = [getattr(kernel, name, None) for name in ("k1", "k2")]
    if type(kernel).__name__ == "Sum":
        return [leaf for part in parts for leaf in leaves(part)]
    if type(kernel).__name__ == "Product" and isinstance(parts[0], ConstantKernel):
        return [(parts[0].constant_value * by, leaf) for by, leaf in leaves(parts[1])]
    return [(1.0, kernel)]


# -- what is chosen ------------------------------------------------------------------------------


@MAKE
def test_columns_that_tell_nothing_get_the_least_weight(make):
    X, y = table(make)
    model = make(BLOCKS).fit(X, y)
    chosen = {(leaf.columns.start, leaf.columns.stop) for _, leaf in leaves(model.kernel_)}
    assert (0, 2) in chosen
    shares = {leaf.columns.start: by for by, leaf in leaves(model.kernel_)}
    assert shares[0] > shares.get(2, 0)
    other, answers = table(make, 300, 1)
    assert model.score(other, answers) > make(On(slice(2, 5))).fit(X, y).score(other, answers)
    # What was tried is a table: all splits of four shares among two kernels.
    assert len(model.settings_.candidates) == 5
    losses = [one.total for one in model.settings_.candidates]
    assert losses == sorted(losses)


def test_equal_weights_are_tried_whatever_the_number_of_kernels():
    X, y = table(GPClassifier)
    model = GPClassifier([RBF(1.0), RBF(2.0), RBF(4.0)]).fit(X, y)
    kinds = [one.kind for one in model.settings_.candidates]
    assert "0.33 of kernel 1 + 0.33 of kernel 2 + 0.33 of kernel 3" in kinds
    # All splits of four shares among three kernels, and equal ones.
    assert len(kinds) == len(set(kinds)) == 15 + 1


@MAKE
def test_kernels_of_very_different_sizes_have_equal_chances(make):
    X, y = table(make)
    small = make([On(slice(0, 2), RBF(2.0)), On(slice(2, 5), RBF(2.0))]).fit(X, y)
    sizes = [2.0**20, 2.0**-20]
    large = make(
        [
            On(one.columns, ConstantKernel(by) * RBF(2.0))
            for one, by in zip(BLOCKS, sizes, strict=True)
        ]
    ).fit(X, y)
    # Powers of two are not rounded.
    for one, other in zip(small.settings_.candidates, large.settings_.candidates, strict=True):
        assert (one.kind, one.loss, one.noise) == (other.kind, other.loss, other.noise)
    np.testing.assert_array_equal(large.predict(X), small.predict(X))


@MAKE
def test_a_kernel_that_is_zero_is_left_out(make):
    X, y = table(make)
    X[:, 4] = 0
    zero = On(slice(4, 5), DotProduct(0.0, "fixed"))
    model = make([On(slice(0, 2)), zero]).fit(X, y)
    assert all(leaf.columns == slice(0, 2) for _, leaf in leaves(model.kernel_))
    assert [one.kind for one in model.settings_.candidates] == ["1 of kernel 1"]
    model = make([zero, RBF(1.0)]).fit(X[:1], y[:1])
    assert leaves(model.kernel_) == [(1.0, RBF(1.0))]
    # A column that never changes is no reason to fail.
    assert np.isfinite(make([On(slice(0, 2)), On(slice(4, 5))]).fit(X, y).predict(X)).all()


@MAKE
def test_a_list_of_one_is_this_kernel(make):
    X, y = table(make)
    model = make([Matern(2.0)]).fit(X, y)
    assert [leaf for _, leaf in leaves(model.kernel_)] == [Matern(2.0)]
    alone = make(On(slice(0, 2))).fit(X, y)
    assert alone.kernel_ == make([On(slice(0, 2))]).fit(X, y).kernel_


def test_the_sum_of_a_regressor_has_one_amplitude():
    """Factors within a block would be a second name for its weight."""
    X, y = table(GPRegressor)
    model = GPRegressor(BLOCKS).fit(X, y)
    assert all(not hasattr(leaf.kernel, "k1") for _, leaf in leaves(model.kernel_))


@MAKE
def test_before_there_is_anything_to_judge_all_kernels_count_equally(make):
    X, y = table(make)
    model = make([RBF(1.0), 1e4 * Matern(2.0)]).fit(X[:1], y[:1])
    terms = dict.fromkeys(str(leaf) for _, leaf in leaves(model.kernel_))
    assert len(terms) == 2
    diagonal = [by for by, _ in leaves(model.kernel_)]
    np.testing.assert_allclose(diagonal, 0.5, rtol=8 * np.finfo(float).eps)


# -- the law -------------------------------------------------------------------------------------


@MAKE
def test_with_living_settings_edits_equal_a_fresh_fit(make):
    X, y = table(make)
    model = make([*BLOCKS, RBF(2.0)], settings="living").fit(X[:40], y[:40], ids=range(40))
    model.add(X[40:], y[40:], ids=range(40, 60))
    model.remove(range(10)).replace([12], X[:1], y[:1]).relabel([15], y[16:17])
    held = model.editable_.examples
    fresh = make([*BLOCKS, RBF(2.0)], settings="living")
    fresh.fit(held.X, held.labels, ids=held.ids)
    assert model.kernel_ == fresh.kernel_
    assert model.settings_.noise == fresh.settings_.noise
    assert set(model.settings_.ids) == set(fresh.settings_.ids)


@MAKE
def test_a_stream_ends_where_a_fit_does(make):
    X, y = table(make)
    model = make(BLOCKS).fit(X[:30], y[:30])
    model.add(X[30:], y[30:])
    assert model.kernel_ == make(BLOCKS).fit(X, y).kernel_


# -- kept and passed on --------------------------------------------------------------------------


@MAKE
def test_parameters_are_kept(make):
    X, y = table(make)
    kernels = [*BLOCKS, RBF(2.0)]
    model = make(kernels).fit(X, y)
    assert model.get_params()["kernel"] is kernels
    other = clone(model)
    assert other.get_params()["kernel"] == kernels
    other.set_params(**other.get_params()).fit(X, y)
    assert other.kernel_ == model.kernel_
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.add(X[:1], y[:1])
    assert again.kernel == kernels
    assert make().set_params(kernel=kernels).fit(X, y).kernel_ == model.kernel_


@MAKE
def test_files_keep_the_list_and_what_was_chosen(make, tmp_path):
    X, y = table(make)
    model = make(BLOCKS).fit(X, y)
    model.save(tmp_path / "model.km")
    loaded = knowmore.load(tmp_path / "model.km")
    assert loaded.kernel == BLOCKS
    assert loaded.kernel_ == model.kernel_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with knowmore.open(tmp_path / "living.km", make(BLOCKS)) as store:
        store.add(X[:40], y[:40])
        store.add(X[40:], y[40:])
        store.remove([3])
        kernel, answers = store.estimator.kernel_, store.predict(X)
    with knowmore.open(tmp_path / "living.km") as store:
        assert store.estimator.kernel == BLOCKS
        assert store.estimator.kernel_ == kernel
        np.testing.assert_array_equal(store.predict(X), answers)
        assert all(check.ok for check in store.verify().checks)


def test_sums_are_exported_and_blocks_of_columns_are_refused(tmp_path):
    X, y = table(GPClassifier)
    to_html(GPClassifier([RBF(1.0), Matern(2.0)]).fit(X, y), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 0
    with pytest.raises(InvalidInput, match=r"The kernel On\(0:2, .* cannot be exported"):
        to_html(GPClassifier(BLOCKS).fit(X, y), tmp_path / "page.html")


# -- mistakes ------------------------------------------------------------------------------------


@MAKE
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ([], "a list of 0 kernels. Give one to 8"),
        ([RBF(1.0)] * 9, "a list of 9 kernels. Give one to 8"),
        ("rbf", "kernel is of type str. Give a scikit-learn Kernel"),
        (["rbf"], "kernel is a list that has 'rbf', a str. Give scikit-learn kernels"),
        ([RBF], "Give scikit-learn kernels"),
        ([None, RBF(1.0)], "kernel is a list that has None"),
        ([[RBF(1.0)]], "a list. Give scikit-learn kernels"),
        ([On("a")], "columns='a' is not a slice: give slice.begin, end., the positions"),
        ([On(["a", "b"])], "not the names of columns"),
        ([On(slice(7, 9))], "was given a table of 5 columns"),
        ([On(slice(0, 0))], "has no columns"),
        (RBF(1.0) + On(slice(0, 2)), r"On\(0:2\) has no kernel. It stands for the kernel that"),
        ([RBF(1.0) * On(slice(0, 2))], r"On\(0:2\) has no kernel"),
    ],
    ids=str,
)
def test_mistakes_are_explained(make, kernel, message):
    X, y = table(make)
    with pytest.raises(InvalidInput, match=message):
        make(kernel).fit(X, y)


def test_a_block_without_a_kernel_is_written_and_compared():
    assert repr(BLOCKS[0]) == "On(0:2)"
    assert repr(On(["a"])) == "On(['a'])"
    assert On(slice(0, 2)) == BLOCKS[0]
    assert On(slice(0, 2)) != On(slice(0, 2), RBF(1.0))
    assert clone(BLOCKS[0]) == BLOCKS[0]


def test_histograms_side_by_side_have_kernels_of_histograms():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, size=(40, 16)).astype(float)
    X = np.hstack([counts / counts.sum(axis=1, keepdims=True), rng.normal(size=(40, 2))])
    y = (counts[:, 0] > 3).astype(int)
    model = GPClassifier([On(slice(0, 16)), On(slice(16, 18))], settings="living").fit(X, y)
    kinds = {type(leaf.kernel) for _, leaf in leaves(model.kernel_) if leaf.columns.start == 0}
    assert kinds <= {
        type(default_kernel(X[:, :16])),
        type(knowmore.kernels.HistogramIntersection()),
    }
