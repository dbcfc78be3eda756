"""The law of `forget` in a file: the file is as if the forgotten had never been there.

It is compared with a file that learnt the other examples alone, and every byte of it is searched
for numbers that a file with the forgotten had, and a file without them has not.
"""

from __future__ import annotations

import gc
import json
import re
import sqlite3
import warnings
from contextlib import closing
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.gaussian_process.kernels import RBF
from store_kinds import KINDS, SUPPORTS, answers, drawn
from tolerance import assert_rounded

from knowmore import (
    ForestGPRegressor,
    GPClassifier,
    OneShotClassifier,
)
from knowmore.errors import KnowmoreError
from knowmore.estimators.linear import LinearGP
from knowmore.examples import _Buffer
from knowmore.store import Store, kinds, past
from knowmore.workbench.predicting import Predictor

# As in a new file, where the examples choose every setting that is open.
CHOOSING = {
    "gp-histograms": lambda: GPClassifier(),
    "gp-loo-balanced": lambda: GPClassifier(noise="loo", class_weight="balanced"),
    "one-shot-chosen": lambda: OneShotClassifier(None, SUPPORTS, noise="adaptive"),
    "forest-regression-median": lambda: ForestGPRegressor(capacity=8),
}
ALL = KINDS | CHOOSING
# Its factor has numbers of four bytes, which may be anywhere by chance.
del ALL["gp-single"]
# So many examples settle a kernel width, also without the forgotten.
N = 44
GONE = [3, 7, 20, 41]
CODE = (FunctionType, BuiltinFunctionType, MethodType, ModuleType)
# A number that is an id, as a telephone's.
PHONE = 5551234567


def examples(name, seed=0, n=N):
    """X, y and ids; those at GONE are far away from all others, and one id is a number."""
    rng = np.random.default_rng(seed)
    X, y = drawn(name.removesuffix("-chosen"), rng, n)
    X = rng.normal(size=X.shape)
    X[GONE] = 37 * rng.normal(size=X[GONE].shape)
    if "regression" in name:
        y = rng.normal(size=n)
        y[GONE] *= 37
    if name == "gp-histograms":
        X = abs(rng.normal(size=(n, 9)))
        X /= X.sum(axis=1, keepdims=True)
    ids = [f"n{i:02d}" for i in range(n)]
    ids[GONE[0]] = PHONE
    return X, y, ids


# -- what happened before ------------------------------------------------------------------------


def one_by_one(store, X, y, ids):
    store.add(X[:6], y[:6], ids[:6])
    for i in range(6, len(X)):
        store.add(X[[i]], y[[i]], [ids[i]])
    return store


def at_once(store, X, y, ids):
    store.add(X, y, ids)
    return store


def changed(store, X, y, ids):
    """Each of the forgotten has had other features and another label."""
    store.add(X[:20], y[:20], ids[:20])
    store.replace([ids[3]], X[[3]] * 3.3)
    store.replace([ids[3]], X[[3]])
    store.relabel([ids[7]], y[[7]] if y.dtype.kind == "f" else 1 - np.minimum(y[[7]], 1))
    store.undo()
    store.redo()
    store.undo()
    store.add(X[20:], y[20:], ids[20:])
    store.replace([ids[41]], X[[41]] * 1.7)
    return store


def other_settings(store, X, y, ids):
    store.add(X[:40], y[:40], ids[:40])
    parameter = {"C": 3.25} if hasattr(store.estimator, "C") else {"noise": 0.75}
    store.set_parameters(**parameter)
    store.undo()
    store.add(X[40:], y[40:], ids[40:])
    return store


def reopened(store, X, y, ids):
    """Caches are written, thresholds and temperatures too."""
    path = store.path
    for part in np.split(np.arange(len(X)), [8, 30]):
        store.add(X[part], y[part], [ids[i] for i in part])
        if not store.kind.endswith("regression"):
            with warnings.catch_warnings(action="ignore"):
                Predictor(store, 0.05, keep=True)
        store.close()
        store = Store(path)
    return store


def together(store, X, y, ids):
    """Versions that came and went in one entry have never been there for anybody."""
    with store.together("learn"):
        store.add(X * 1.9, y, ids)
        store.replace(ids, X)
    return store


def merged(store, X, y, ids):
    path = store.path.with_name("other.km")
    with Store(path, kinds.blank(store.estimator)) as other:
        other.add(X[10:], y[10:], ids[10:])
        store.add(X[:10], y[:10], ids[:10])
        try:
            store.merge(other)
        except KnowmoreError:
            # The first examples of each have settled another kernel, noise or grid.
            store.add(X[10:], y[10:], ids[10:])
    path.unlink()
    return store


# All kinds, and some that choose all that they have, with everything that may happen before.
HISTORIES = [
    *((name, history) for name in ALL for history in (one_by_one, changed, reopened)),
    *(
        (name, history)
        for name in ("gp", "gp-loo-balanced", "linear-regression", "one-shot-chosen", "n-plus-one")
        for history in (at_once, other_settings, together, merged)
    ),
]


# -- what is in a file ---------------------------------------------------------------------------


def tables(path):
    """All rows of all tables, without hashes."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        return {
            name: [row[:-1] for row in connection.execute(f"SELECT * FROM {name}")]
            for name in names
        }


def facts(path):
    return {name: json.loads(text) for name, text in tables(path)["facts"]}


def texts(path):
    """All texts in the tables, but for sums of hashes."""
    rows = (row for table in tables(path).values() for row in table if row[0] != "totals")
    return "\n".join(value for row in rows for value in row if isinstance(value, str))


def decimals(text):
    """The numbers in a text that are no small whole ones."""
    found = (float(one) for one in re.findall(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?", text))
    return {one for one in found if np.isfinite(one) and one != round(one, 3)}


def words(path):
    """The words of eight bytes in all blobs."""
    blobs = (v for t in tables(path).values() for row in t for v in row if isinstance(v, bytes))
    return {blob[i : i + 8] for blob in blobs for i in range(0, len(blob) - 7, 8)}


def floats(path):
    """All numbers that a file has, as text or as eight bytes."""
    found = np.frombuffer(b"".join(sorted(words(path))), "<f8")
    return np.array([*found[np.isfinite(found)], *decimals(texts(path))])


def every_word(path):
    """The words of eight bytes that begin at any byte of a file, as numbers."""
    raw = path.read_bytes()
    parts = [np.frombuffer(raw[at:], "<u8", (len(raw) - at) // 8) for at in range(8)]
    return np.unique(np.concatenate(parts))


def every_float(path):
    """The float at every byte of a file, and every number in its bytes that is readable."""
    text = path.read_bytes().decode("latin-1")
    numbers = np.array([*every_word(path).view("<f8"), *decimals(text)])
    numbers = numbers[np.isfinite(numbers)]
    return numbers[(abs(numbers) > 1e-30) & (abs(numbers) < 1e30)]


def nearest(some, others):
    """The nearest of other numbers, zero among them, to each of some."""
    some, others = np.asarray(some, float), np.sort([0.0, *others])
    at = np.searchsorted(others, some)
    left, right = others[np.maximum(at - 1, 0)], others[np.minimum(at, len(others) - 1)]
    return np.where(abs(some - left) < abs(some - right), left, right)


def near(some, others):
    """Which of some numbers are among others, but for a few roundings; signs do not count."""
    some = abs(np.asarray(some, float))
    return abs(some - nearest(some, abs(np.asarray(others)))) <= 64 * np.finfo(float).eps * some


def computed(X, y, gone):
    """Numbers computed from forgotten rows and others, as an attacker would search for them."""
    rest = np.delete(X, gone, axis=0)
    found = [X[gone].ravel(), np.linalg.norm(X[gone], axis=1), (X[gone] ** 2).sum(axis=1)]
    found += [(X[gone][:, None] - X).ravel(), cdist(X[gone], X).ravel()]
    found += [cdist(X[gone], X, "sqeuclidean").ravel(), X.mean(axis=0), X.std(axis=0)]
    for n in range(2, len(X) + 1):
        r = pdist(X[:n])
        both = [np.median(r), np.mean(r), 1 / np.median(r)]
        found.append([] if set(range(n)).isdisjoint(gone) else both)
    if y.dtype.kind == "f":
        found += [y[gone], (y[gone][:, None] - y).ravel(), [y.mean(), y.std(), abs(y).max()]]
    found = np.concatenate(found)
    found = found[(abs(found) > 1e-30) & (found != found.round(3))]
    return found[~near(found, [*rest.ravel(), *pdist(rest)])]


def assert_as_never_there(path, control, before, X, y, gone):
    """Is a file as one that has never had some examples?

    before : the numbers of the file with them, as eight bytes and as floats
    """
    found, wanted = tables(path), tables(control)
    for name in ("kind", "parameters", "columns", "labels", "state", "notes", "arrays"):
        assert facts(path)[name] == facts(control)[name], name
    assert all(row[5:] == (None, None) for row in found["journal"])
    assert sorted(row[1:4] for row in found["examples"]) == sorted(
        row[1:4] for row in wanted["examples"]
    )
    assert sorted(row[1] for row in found["vectors"]) == sorted(row[1] for row in wanted["vectors"])
    assert_no_trace(path, control, before, X, y, gone)


def assert_no_trace(path, control, before, X, y, gone):
    """Has a file no numbers of before but those that another has?"""
    sums = [
        [row[3] for row in one["arrays"] if row[1] == "cache/sums"]
        for one in map(tables, (path, control))
    ]
    assert sums[0] == sums[1]

    clean = floats(control)
    old_words, old_floats = before
    raw = path.read_bytes()
    # Words that are found anywhere by chance, and texts, are looked at as numbers below.
    strange = {word for word in old_words if len(set(word)) > 4 and not word.isascii()}
    values = np.frombuffer(b"".join(strange), "<u8")
    values = values[np.isin(values, every_word(path))].view("<f8")
    # The factors of the two files differ by rounding.
    assert_rounded(values, nearest(values, clean), 2e5, 1.0)
    there = every_float(path)
    forbidden = np.array([*computed(X, y, gone), *old_floats])
    forbidden = forbidden[~near(forbidden, clean) & (abs(forbidden) > 1e-30)]
    assert len(forbidden) > 100
    left = forbidden[near(forbidden, there)]
    assert not len(left), left
    for number in (PHONE - 1, PHONE, PHONE + 1):
        assert str(number).encode() not in raw
        assert number.to_bytes(5, "big") not in raw


def file_without(path, store, keep, X, y, ids):
    """A new file that learns some of the examples at once, and is closed."""
    with Store(path, kinds.blank(store.estimator)) as control:
        control.add(X[keep], y[keep], [ids[i] for i in keep])
        return control.estimator


@pytest.mark.slow(fast=20)
@pytest.mark.parametrize(
    ("name", "history"), HISTORIES, ids=[f"{name}-{one.__name__}" for name, one in HISTORIES]
)
def test_nothing_computed_from_the_forgotten_is_left(name, history, tmp_path):
    X, y, ids = examples(name)
    path, control = tmp_path / "m.km", tmp_path / "control.km"
    store = history(Store(path, ALL[name]()), X, y, ids)
    store.close()
    before = words(path), decimals(texts(path))
    store = Store(path)
    assert len(store) == N
    found = store.forget([ids[i] for i in GONE])
    assert (found.count, found.traces) == (len(GONE), [])
    keep = [ids.index(one) for one in store.ids_.tolist()]
    fresh = file_without(control, store, keep, X, y, ids)
    rows = examples(name, seed=1)[0]
    same(store, fresh, rows)
    assert store.verify().ok, str(store.verify())
    # Before and after caches are written.
    assert_as_never_there(path, control, before, X, y, GONE)
    store.close()
    assert_as_never_there(path, control, before, X, y, GONE)
    with Store(path) as store:
        same(store, fresh, rows)


def same(model, fresh, rows):
    """Are these the same model? Sums of linear models are, to the bit."""
    got, want = answers(model, rows), answers(fresh, rows)
    if isinstance(fresh, LinearGP):
        np.testing.assert_array_equal(got, want)
    else:
        assert_rounded(got, want, 2e5, abs(want).max(initial=1.0))


# -- few examples --------------------------------------------------------------------------------


def state(store):
    return store.session.state.facts["state"]


def test_widths_of_entries_are_forgotten(tmp_path):
    """The secret was the sum of a width and of the first row."""
    with Store(tmp_path / "m.km", GPClassifier()) as store:
        for i, x in enumerate([1000.0, 98765.4321, 1500.0]):
            store.add([[x]], ["ab"[i % 2]], [f"n{i}"])
        store.forget("n1")
        file_without(
            tmp_path / "control.km",
            store,
            [0, 1],
            np.array([[1000.0], [1500.0]]),
            np.array(["a", "a"]),
            ["n0", "n2"],
        )
        assert state(store) == facts(tmp_path / "control.km")["state"]
    assert decimals(texts(tmp_path / "m.km")) == decimals(texts(tmp_path / "control.km"))


@pytest.mark.parametrize("name", ["gp", "gp-loo", "lssvm", "gp-regression", "forest-median"])
def test_the_last_examples(name, tmp_path):
    X, y, ids = examples(name)
    with Store(tmp_path / "m.km", ALL[name]()) as store:
        store.add(X, y, ids)
        store.forget(ids[2:])
        file_without(tmp_path / "two.km", store, [0, 1], X, y, ids)
        assert state(store) == facts(tmp_path / "two.km")["state"]
        store.forget(ids[1])
        # Leave-one-out of one example says nothing, and neither does its width.
        by_loo = "loo" in store.get_params().values()
        width, noise = (1.0, 0.1) if name == "gp-regression" else (0.5, 0.01)
        assert store.kernel_.length_scale == width
        assert state(store)["noise"] == (1.0 if by_loo else noise)
        assert store.verify().ok
        store.forget(ids[0])
        assert [store.session.state.facts[name] for name in ("state", "columns", "labels")] == [
            None
        ] * 3
        assert store.verify().ok
        assert "loo" in store.get_params().values() or not by_loo
    with Store(tmp_path / "m.km") as store:
        store.add(X[5:9, :1], y[5:9], ids[5:9])
        assert store.undo().verb == "add"


@pytest.mark.parametrize("name", ["one-shot", "n-plus-one", "linear"])
def test_a_model_of_any_kind_can_forget_all(name, tmp_path):
    X, y, ids = examples(name)
    with Store(tmp_path / "m.km", ALL[name]()) as store:
        store.add(X, y, ids)
        store.forget(ids)
        assert len(store) == 0
        store.add(X[4:], y[4:], ids[4:])
        file_without(tmp_path / "control.km", store, range(4, N), X, y, ids)
        assert state(store) == facts(tmp_path / "control.km")["state"]


# -- versions that nobody sees any more ----------------------------------------------------------


@pytest.mark.parametrize("name", ["gp", "gp-loo", "linear", "linear-regression", "gp-balanced"])
def test_what_was_undone_and_overwritten_leaves_nothing(name, tmp_path):
    X, y, ids = examples(name)
    path, control = tmp_path / "m.km", tmp_path / "control.km"
    rest = np.setdiff1d(np.arange(N), GONE)
    first, last = rest[:-2], rest[-2:]
    with Store(path, ALL[name]()) as store:
        store.add(X[first], y[first], [ids[i] for i in first])
        store.add(X[GONE], y[GONE], [ids[i] for i in GONE])
        store.replace([ids[0]], X[[GONE[0]]] * 1.25)
    before = words(path), decimals(texts(path))
    with Store(path) as store:
        store.undo()
        store.undo()
        store.add(X[last], y[last], [ids[i] for i in last])
        with Store(control, kinds.blank(store.estimator)) as other:
            other.add(X[first], y[first], [ids[i] for i in first])
            other.add(X[last], y[last], [ids[i] for i in last])
        for name in ("columns", "labels", "state", "parameters"):
            assert facts(path)[name] == facts(control)[name]
        assert_no_trace(path, control, before, X, y, GONE)
    assert_no_trace(path, control, before, X, y, GONE)


def test_the_label_that_was_undone_and_overwritten_is_in_no_cache(tmp_path):
    X, y, ids = examples("gp")
    path = tmp_path / "m.km"
    with Store(path, GPClassifier(RBF(2.0))) as store:
        store.add(X[:40], y[:40], ids[:40])
        store.relabel(ids[5], 9)
        answers(store, X)
        store.add(X[40:], y[40:], ids[40:])
    with Store(path) as store:
        (before,) = [row[3] for row in tables(path)["arrays"] if row[1] == "cache/head"]
        assert len(before)
        store.undo()
        store.undo()
        store.relabel(ids[6], 2)
        assert not [row for row in tables(path)["arrays"] if row[1] == "cache/head"]


@pytest.mark.parametrize("name", ["gp", "gp-loo", "linear", "one-shot-chosen"])
def test_what_came_and_went_in_one_entry_chooses_nothing(name, tmp_path):
    X, y, ids = examples(name)
    with Store(tmp_path / "m.km", ALL[name]()) as store:
        together(store, X, y, ids)
        file_without(tmp_path / "control.km", store, range(N), X, y, ids)
        assert state(store) == facts(tmp_path / "control.km")["state"]
        store.undo()
        store.redo()
        assert state(store) == facts(tmp_path / "control.km")["state"]


def test_an_earlier_version_of_another_contributor(tmp_path):
    """Nobody holds it any more, but it may have settled the width."""
    X, y, ids = examples("gp")
    with Store(tmp_path / "m.km", GPClassifier()) as store:
        store.add(X, y, ids, contributor="ann")
        store.replace(ids[3], X[[3]] / 100, contributor="ben")
        store.replace(ids[3], X[[4]] + 1, contributor="ann")
        chosen = store.kernel_
        assert store.forget(contributor="ben").erased == 1
        assert len(store) == N
        X[3] = X[4] + 1
        keep = [ids.index(one) for one in store.ids_.tolist()]
        file_without(tmp_path / "control.km", store, keep, X, y, ids)
        assert state(store) == facts(tmp_path / "control.km")["state"]
        assert store.kernel_ != chosen


# -- panels of a factor --------------------------------------------------------------------------


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("balanced", [None, "balanced"])
@pytest.mark.parametrize("kernel", [RBF(2.0), None])
def test_panels_that_a_file_without_them_would_not_have(kernel, balanced, tmp_path):
    """Panels of rows before the forgotten ones stay, if kernel and weights do."""
    X, y, ids = examples("gp", n=300)
    gone, path = [299, 290], tmp_path / "m.km"
    X[GONE], ids[GONE[0]] = 1.0, "no number"
    X[gone] *= 37
    with Store(path, GPClassifier(kernel, class_weight=balanced)) as store:
        store.add(X, y, ids)
    before = words(path), decimals(texts(path))
    with Store(path) as store:
        store.forget([ids[i] for i in gone])
        kept = [row for row in tables(path)["arrays"] if row[1] == "cache/factor"]
        assert len(kept) == (2 if kernel is not None and balanced is None else 0)
        control = tmp_path / "control.km"
        file_without(control, store, [i for i in range(300) if i not in gone], X, y, ids)
        assert_no_trace(path, control, before, X, y, gone)
    assert_no_trace(path, control, before, X, y, gone)


# -- in memory, in other processes and in the past -----------------------------------------------


def reachable(root):
    """All objects that an object leads to, but for code; of a buffer that part which is filled.

    The rest of a buffer is memory that somebody freed.
    """
    seen, waiting = {}, [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (type, *CODE)):
            continue
        seen[id(one)] = one
        waiting += [one.array[: one.filled]] if isinstance(one, _Buffer) else gc.get_referents(one)
    return seen.values()


@pytest.mark.parametrize("name", ["gp", "gp-inverse", "gp-loo", "one-shot-chosen", "linear"])
def test_nothing_of_the_forgotten_is_in_memory(name, tmp_path):
    X, y, ids = examples(name)
    store = Store(tmp_path / "m.km", ALL[name]())
    other = Store(tmp_path / "m.km")
    one_by_one(store, X, y, ids)
    for one in (store, other):
        one.refresh()
        answers(one, X)
        assert len(one.examples) == N
    gone = {ids[i] for i in GONE}
    store.forget([*gone])
    other.refresh()
    forbidden = {PHONE, PHONE + 1, *computed(X, y, GONE).tolist(), *gone}
    control = file_without(
        tmp_path / "control.km", store, np.setdiff1d(np.arange(N), GONE), X, y, ids
    )
    forbidden -= {one for one in reachable(control) if isinstance(one, (int, float, str))}
    for one in (store, other):
        known = {v for v in reachable(one) if isinstance(v, (int, float, str))}
        assert not known & forbidden
        arrays = [v for v in reachable(one) if isinstance(v, np.ndarray) and v.dtype == float]
        numbers = np.concatenate([[0.0], *(array.ravel() for array in arrays)])
        assert not np.isin(X[GONE], numbers).any()
        one.close()


@pytest.mark.parametrize("name", ["gp", "gp-loo", "linear", "forest-median", "one-shot-chosen"])
def test_other_processes_follow(name, tmp_path):
    X, y, ids = examples(name)
    with Store(tmp_path / "m.km", ALL[name]()) as store, Store(tmp_path / "m.km") as other:
        one_by_one(store, X, y, ids)
        other.refresh()
        store.forget([ids[i] for i in GONE])
        other.refresh()
        assert state(other) == state(store) == kinds.state(other.estimator)
        same(other, store.estimator, examples(name, seed=1)[0])


@pytest.mark.parametrize("name", ["gp", "gp-loo", "linear", "forest-median", "lssvm"])
def test_states_of_before_are_fits_of_what_is_left(name, tmp_path):
    X, y, ids = examples(name)
    with Store(tmp_path / "m.km", ALL[name]()) as store:
        one_by_one(store, X, y, ids)
        store.forget([ids[i] for i in GONE])
        after = store.log()[-1].number
        store.relabel(ids[0], y[1])
        rows = examples(name, seed=1)[0]
        for number, n in ((1, 6), (20, 25), (after - 1, N)):
            then = past(store, number)
            keep = [i for i in range(n) if i not in GONE]
            assert then.examples.ids.tolist() == [ids[i] for i in keep]
            path = tmp_path / f"{number}.km"
            fresh = file_without(path, store, keep, X, y, ids)
            assert kinds.state(then.estimator) == facts(path)["state"]
            same(then.estimator, fresh, rows)
        kept = past(store, after)
        assert kinds.state(kept.estimator) == state(store)
