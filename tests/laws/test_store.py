"""The law of a model in a file: after any history it equals the fit of its examples.

And what is in memory is what any other process reads from the file.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_kinds import KINDS, answers, drawn
from strategies import seeds
from tolerance import assert_rounded

from knowmore.errors import KnowmoreError
from knowmore.store import Store, kinds

EDITS = ["add", "relabel", "replace"]
VERBS = [*EDITS, "add", "together", "forget", "undo", "redo", "reopen", "other", "ask"]


def refit(store):
    """A fresh fit of the examples that the store holds, in the state that it is in."""
    held, facts = store.examples, store.session.state.facts
    fresh = kinds.unfitted(facts["kind"], facts["parameters"])
    for name in {"source", "source_", "supports"} & set(vars(store.estimator)):
        setattr(fresh, name, getattr(store.estimator, name))
    kinds.set_columns(fresh, facts["columns"])
    if kinds.capabilities(store.kind).has_sums:
        fresh = kinds.linear(fresh, facts["state"])
        if len(held):
            sums = fresh.model_.summed(held.X, held.labels, held.weights)
            return fresh.holding(fresh.editable_.of(sums))
        return fresh
    return fresh.holding(kinds.living(fresh, facts["state"], held))


def assert_is_a_fit(store, X):
    """Does the store say of X what a fit of its examples says?"""
    if len(store) == 0:
        return
    got, want = answers(store, X), answers(refit(store), X)
    if kinds.capabilities(store.kind).has_sums:
        np.testing.assert_array_equal(got, want)
    else:
        # Noise of a tenth and more: the condition is at most a few hundred.
        single = getattr(store.estimator, "dtype", "") == "float32"
        assert_rounded(got, want, 2e5 * (2**29 if single else 1), abs(want).max(initial=1.0))


def expected(model, verb, rng, name):
    """The examples {id: (x, label)} after a verb, by a plain dict, and how to do it to a store."""
    if verb == "together":
        return several(model, rng, name)
    ids = sorted(model)
    k = int(rng.integers(1, 4))
    X, y = drawn(name, rng, k)
    y = rng.permutation(y)
    if verb == "add":
        new = [f"e{rng.integers(10**9)}" for _ in range(k)]
        return model | dict(zip(new, zip(X.tolist(), y.tolist(), strict=True), strict=True)), (
            lambda store: store.add(X, y, new)
        )
    some = [ids[i] for i in rng.permutation(len(ids))[:k]]
    X, y = X[: len(some)], y[: len(some)]
    if verb == "relabel":
        changed = {one: (model[one][0], label) for one, label in zip(some, y.tolist(), strict=True)}
        return model | changed, lambda store: store.relabel(some, y)
    if verb == "replace":
        changed = {one: (x, model[one][1]) for one, x in zip(some, X.tolist(), strict=True)}
        return model | changed, lambda store: store.replace(some, X)
    rest = {one: model[one] for one in ids if one not in some}
    return rest, lambda store: store.forget(some)


def several(model, rng, name):
    """As `expected`, for some edits as one."""
    edits = []
    for verb in rng.choice(EDITS, 3):
        model, edit = expected(model, verb, rng, name)
        edits.append(edit)

    def all_of_them(store):
        with store.together("together"):
            for edit in edits:
                edit(store)

    return model, all_of_them


def held(store):
    """The examples of a store as a plain dict."""
    if not store.session.state.fitted:
        return {}
    found = store.examples
    X = found.X
    return dict(
        zip(found.ids.tolist(), zip(X.tolist(), found.labels.tolist(), strict=True), strict=True)
    )


def possible(call):
    """Do it, unless the examples would make no model of this kind; whether it was done."""
    try:
        call()
    except KnowmoreError as error:
        if "damaged" in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=5)
@given(seed=seeds, verbs=st.lists(st.sampled_from(VERBS), min_size=4, max_size=14))
def test_any_history_is_the_fit_of_what_is_held(name, tmp_path_factory, seed, verbs):
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("store") / "model.km"
    store, other = Store(path, KINDS[name]()), None
    X, y = drawn(name, rng, 12)
    ids = [f"first{i}" for i in range(12)]
    store.add(X, y, ids)
    model = dict(zip(ids, zip(X.tolist(), y.tolist(), strict=True), strict=True))
    queries, past, future = drawn(name, rng, 5)[0], [{}], []
    for verb in verbs:
        if verb == "ask":
            answers(store, queries)
        elif verb == "reopen":
            before = answers(store, queries) if len(store) else None
            store.close()
            store = Store(path)
            if len(store) and not store.kind.startswith("forest"):
                np.testing.assert_array_equal(answers(store, queries), before)
        elif verb == "other":
            other = other or Store(path)
            other.refresh()
            assert held(other) == held(store)
            store, other = other, store
        elif verb in ("undo", "redo"):
            come, go = (past, future) if verb == "undo" else (future, past)
            if not come or come[-1] is None:
                with pytest.raises(KnowmoreError):
                    getattr(store, verb)()
                continue
            if verb == "undo" and len(past) == 1:
                # Without any examples there is nothing to compare.
                continue
            if not possible(getattr(store, verb)):
                continue
            go.append(model)
            model = come.pop()
        elif model or verb == "add":
            after, edit = expected(model, verb, rng, name)
            if verb == "forget" and len(after) < 3:
                continue
            if not possible(lambda: edit(store)):  # noqa: B023  called at once
                assert held(store) == model
                continue
            past = [None] if verb == "forget" else [*past, model]
            model, future = after, []
        assert held(store) == model
        assert len(store) == len(model)
    assert_is_a_fit(store, queries)
    if other is not None:
        other.close()
    store.close()
    with Store(path) as again:
        assert held(again) == model
        assert_is_a_fit(again, queries)
