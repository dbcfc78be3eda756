"""The law of tables in a file: after any history the vectors are those of the cells that are held,
and after a forget levels and fills are those that the examples left would choose.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import answers as answers_of
from tolerance import assert_rounded

import knowmore
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.estimators import unnamed
from knowmore.store import Store, kinds, past, restore
from knowmore.tables import Encoding, cells_of
from knowmore.workbench import LearnOptions, learn, made, make, merge, wanted
from knowmore.workbench.cells import add_cells, replace_cells
from knowmore.workbench.learning import learn_source
from knowmore.workbench.sources import open_source

pd = pytest.importorskip("pandas")

KINDS = ["gp", "linear", "forest", "gp-regression", "lssvm"]
VERBS = ["learn", "learn", "change", "relabel", "undo", "redo", "forget", "merge", "reopen"]
VERBS += ["undo", "refuse", "back"]
NAMES = ["island", "mass", "ringed", "seen"]
LEVELS = ["Biscoe", "Dream", "Torgersen", "Anvers", "Cormorant", "Palmer"]


def answers(model, X):
    """The scores of rows, which have the names of no columns here."""
    return answers_of(unnamed(model.estimator if isinstance(model, Store) else model), X)


def silent(*_):
    """No progress to be told of."""


def teach(path, table, **options):
    return learn(LearnOptions(path, str(table), **options), silent)[0]


def rows(rng, k, levels=3, blanks=0.15):
    """Cells as a CSV file has them, some blank."""
    found = []
    for _ in range(k):
        day = f"2024-0{rng.integers(1, 9)}-1{rng.integers(0, 9)}"
        cells = [LEVELS[rng.integers(levels)], f"{rng.normal():.3f}", "false", day]
        cells[2] = "true" if rng.random() < 0.5 else "false"
        found.append(["" if rng.random() < blanks else cell for cell in cells])
    return found


def table(path, examples):
    """A CSV file of examples {id: (cells, label)}."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *NAMES, "label"])
        writer.writerows([one, *cells, label] for one, (cells, label) in examples.items())
    return path


def label(rng, kind):
    return f"{rng.normal():.3f}" if "regression" in kind else "xyz"[rng.integers(3)]


def new_examples(rng, kind, k=5, levels=3, blanks=0.15):
    ids = [f"e{rng.integers(10**9)}" for _ in range(k)]
    return {
        one: (cells, label(rng, kind))
        for one, cells in zip(ids, rows(rng, k, levels, blanks), strict=True)
    }


def first_examples(rng, kind):
    found = new_examples(rng, kind, 12)
    if "regression" not in kind:
        for i, one in enumerate(found):
            found[one] = found[one][0], "xyz"[i % 3]
    full = [["Biscoe", "1.5", "true", "2024-01-10"], ["Dream", "0.5", "false", "2024-01-11"]]
    for one, cells in zip(found, full, strict=False):
        found[one] = cells, found[one][1]
    return found


def edited(store, held, verb, rng, folder):
    """Do a verb to a store, and return what is held after it."""
    kind, path = store.kind, store.path
    if verb == "learn":
        new = new_examples(rng, kind, 4, int(rng.integers(3, 7)))
        teach(path, table(folder / "new.csv", new), origin="new")
        return held | new
    some = [sorted(held)[i] for i in rng.permutation(len(held))[:3]]
    if verb == "change":
        cells = rows(rng, len(some), 6)
        new = {one: (row, held[one][1]) for one, row in zip(some, cells, strict=True)}
        teach(path, table(folder / "new.csv", new), origin="new")
        return held | new
    if verb == "relabel":
        new = {one: (held[one][0], label(rng, kind)) for one in some}
        y = [each for _, each in new.values()]
        store.refresh()
        store.relabel(some, list(map(float, y)) if "regression" in kind else y)
        return held | new
    if verb == "refuse":
        store.refresh()
        return store.refuse(some[:2]) and {one: held[one] for one in held if one not in some[:2]}
    if verb == "back":
        store.refresh()
        aside = {one.id: (cells_of(one.thumbnail), label(rng, kind)) for one in store.aside()}
        for one, (_, y) in aside.items():
            store.relabel(one, float(y) if "regression" in kind else y)
            return held | {one: aside[one]}
        return held
    if verb == "merge":
        new, other = new_examples(rng, kind, 12, 6), folder / f"o{rng.integers(10**9)}.km"
        make(other, kind)
        teach(other, table(folder / "new.csv", new))
        with Store(other) as theirs:
            try:
                merge(store, theirs, again=False)
            except KnowmoreError:
                # The first examples of each have chosen other settings.
                return held
        return held | new
    store.forget(some)
    return {one: each for one, each in held.items() if one not in some}


def journal(store):
    return [(entry.number, entry.undone) for entry in store.log()]


def assert_holds(store, held):
    """Does the file hold these cells and labels, with vectors that follow from the cells?"""
    assert set(store.ids_.tolist()) == set(held)
    if not held:
        return
    encoding = store.table
    read = {one: encoding.read(cells) for one, (cells, _) in held.items()}
    ids = store.ids_.tolist()
    cells = [cells_of(record.thumbnail) for record in store.records()]
    assert dict(zip(ids, cells, strict=True)) == read
    np.testing.assert_array_equal(store.examples.X, encoding.vectors(cells))
    assert encoding.covers(cells)
    assert store.status().names == encoding.features
    assert store.notes["columns"] == list(encoding.features)


def assert_same(store, other, X):
    got, want = answers(store, X), answers(other, X)
    if "linear" in store.kind:
        np.testing.assert_array_equal(got, want)
    else:
        assert_rounded(got, want, 2e5, abs(want).max(initial=1.0))


def refit(store):
    """A fit of what is held from scratch, in the state that it is in."""
    held, facts = store.examples, store.session.state.facts
    fresh = kinds.unfitted(facts["kind"], facts["parameters"])
    kinds.set_columns(fresh, facts["columns"])
    if kinds.capabilities(store.kind).has_sums:
        fresh = kinds.linear(fresh, facts["state"])
        sums = fresh.model_.summed(held.X, held.labels, held.weights)
        return fresh.holding(fresh.editable_.of(sums))
    return fresh.holding(kinds.living(fresh, facts["state"], held))


def fresh_model(store, held, folder):
    """A new file that learns what is held at once, by the types and options of the first."""
    path = folder / "fresh.km"
    path.unlink(missing_ok=True)
    make(path, store.kind)
    ordered = {one: held[one] for one in store.ids_.tolist() if one in held}
    teach(path, table(folder / "fresh.csv", ordered))
    return path


@pytest.mark.slow(fast=8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_after_any_history_a_table_equals_a_fresh_one(kind, seed, tmp_path):
    folder, rng = tmp_path, np.random.default_rng(seed)
    path, verbs = folder / "m.km", rng.choice(VERBS, 9)
    make(path, kind)
    held = first_examples(rng, kind)
    teach(path, table(folder / "first.csv", held))
    states, redone = [], []
    store = Store(path)
    for verb in verbs:
        if verb == "reopen":
            store.close()
            store = Store(path)
        elif verb == "undo":
            if states:
                store.undo()
                redone.append(held)
                held = states.pop()
        elif verb == "redo":
            if redone:
                store.redo()
                states.append(held)
                held = redone.pop()
        elif held:
            before, entries = held, journal(store)
            held = edited(store, held, verb, rng, folder)
            if verb == "forget":
                states.clear()
                redone.clear()
            elif journal(store) != entries:
                states.append(before)
                redone.clear()
        store.refresh()
        assert_holds(store, held)
        if not held:
            return
        assert_same(store, refit(store), store.examples.X)
        if verb == "forget":
            assert store.verify().ok, str(store.verify())
            with Store(fresh_model(store, held, folder)) as fresh:
                assert fresh.table.columns == store.table.columns
                X = store.examples.X
                assert_same(store, fresh, X)
    assert store.verify().ok, str(store.verify())
    store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_forgotten_level_is_nowhere(kind, tmp_path):
    rng, path = np.random.default_rng(3), tmp_path / "m.km"
    make(path, kind)
    held = first_examples(rng, kind)
    teach(path, table(tmp_path / "first.csv", held))
    secret = {"gone": (["Zanzibar", "987.125", "", "1987-06-05"], held[next(iter(held))][1])}
    teach(path, table(tmp_path / "new.csv", secret), origin="new")
    with Store(path) as store:
        assert "island=Zanzibar" in store.table.features
        assert b"Zanzibar" in path.read_bytes()
        found = store.forget(["gone"])
        assert (found.count, found.traces, found.kept) == (1, [], ())
        assert "island=Zanzibar" not in store.table.features
        assert store.verify().ok
    raw = path.read_bytes()
    for text in (b"Zanzibar", b"987.125", b"1987-06-05", np.float64(987.125).tobytes()):
        assert text not in raw, text
    with Store(path) as store, Store(fresh_model(store, held, tmp_path)) as fresh:
        assert fresh.table.columns == store.table.columns
        facts = store.session.state.facts, fresh.session.state.facts
        assert facts[0]["state"] == facts[1]["state"]
        assert facts[0]["columns"] == facts[1]["columns"]


def test_a_forgotten_blank_and_a_forgotten_number_move_the_fill(tmp_path):
    path = tmp_path / "m.km"
    table_of = {"a": (["Dream", "1", "true", ""], "x"), "b": (["Dream", "5", "true", ""], "y")}
    more = {"c": (["Biscoe", "9", "false", "2024-01-01"], "x"), "d": (["", "", "", ""], "y")}
    teach(path, table(tmp_path / "t.csv", table_of | more))
    with knowmore.open(path) as store:
        island, mass = store.table.columns[:2]
        assert (island.levels, island.blank) == (("Biscoe", "Dream"), True)
        assert (mass.fill, mass.blank) == (5.0, True)
        store.forget(["d", "c"])
        island, mass, _, seen = store.table.columns
        assert (island.levels, island.blank) == (("Dream",), False)
        assert (mass.fill, mass.blank) == (3.0, False)
        assert (seen.fill, seen.blank) == ("1970-01-01", True)
        assert store.verify().ok


def test_a_forget_leaves_no_count_of_the_rows_of_then(tmp_path):
    path, source = tmp_path / "m.km", tmp_path / "t.csv"
    rows = [f"e{i},{'PQ'[i % 2]},Name{i},{'xy'[i // 2 % 2]}" for i in range(20)]
    source.write_text("\n".join(["id,c,name,label", *rows]))
    assert "20 different texts in 20 rows" in teach(path, source).left_out["name"]
    with knowmore.open(path) as store:
        assert b"20 different texts" in path.read_bytes()
        store.forget([f"e{i}" for i in range(8, 20)])
        assert store.table.left_out == {"name": "did not count in the first table"}
        assert store.verify().ok
    assert b"20 different texts" not in path.read_bytes()
    # The column is known, and does not count.
    assert teach(path, source).forgotten_before == 12


def test_a_table_of_nothing_keeps_no_level(tmp_path):
    path = tmp_path / "m.km"
    teach(path, table(tmp_path / "t.csv", first_examples(np.random.default_rng(0), "gp")))
    with knowmore.open(path) as store:
        store.forget(store.ids_)
        assert store.notes["table"] is None
        assert store.notes["columns"] is None
        assert store.verify().ok
    for level in LEVELS[:3]:
        assert level.encode() not in path.read_bytes()
    other = tmp_path / "other.csv"
    other.write_text("colour,label\nred,x\nblue,y\n")
    assert teach(path, other).added == 2


def test_another_table_after_all_was_undone(tmp_path):
    path, other = tmp_path / "m.km", tmp_path / "other.csv"
    teach(path, table(tmp_path / "t.csv", first_examples(np.random.default_rng(0), "gp")))
    with knowmore.open(path) as store:
        store.undo()
        other.write_text("colour,label\nred,x\nblue,y\n")
        assert teach(path, other).added == 2
        store.refresh()
        assert store.table.features == ("colour=blue", "colour=red")
        assert store.verify().ok


def test_numbers_after_a_table_was_undone(tmp_path):
    path = tmp_path / "m.km"
    teach(path, table(tmp_path / "t.csv", first_examples(np.random.default_rng(0), "gp")))
    with knowmore.open(path) as store:
        store.undo()
        store.add([[1.0, 2.0], [3.0, 4.0]], ["x", "y"])
        assert (store.table, store.notes["table"], len(store)) == (None, None, 2)
        assert store.verify().ok
    assert b"Biscoe" not in path.read_bytes()


def test_a_copy_takes_the_place_of_a_table(tmp_path):
    path, copy = tmp_path / "m.km", tmp_path / "copy.km"
    first = first_examples(np.random.default_rng(0), "gp")
    new = {"n": (["Zanzibar", "", "", ""], "x")}
    teach(path, table(tmp_path / "t.csv", first | new))
    copy.write_bytes(path.read_bytes())
    back = next(iter(first))
    with knowmore.open(path) as store:
        store.forget(["n", back])
        teach(path, table(tmp_path / "t.csv", {back: first[back]}), again=True)
        held = store.refresh() and len(store)
    assert restore(path, copy).forgotten == ["n"]
    with knowmore.open(path) as store:
        assert len(store) == held
        assert "island=Zanzibar" not in store.table.features
        assert store.verify().ok
    assert b"Zanzibar" not in path.read_bytes()


def test_undo_over_a_new_level_and_redo(tmp_path):
    path, rng = tmp_path / "m.km", np.random.default_rng(1)
    first, new = first_examples(rng, "gp"), {"n": (["Palmer", "", "", ""], "x")}
    teach(path, table(tmp_path / "t.csv", first))
    with knowmore.open(path) as store:
        alone = answers(store, store.examples.X)
        width = store.n_features_in_
        teach(path, table(tmp_path / "n.csv", new), origin="n")
        store.refresh()
        assert store.n_features_in_ > width
        assert store.log()[-1].verb == "learn"
        after, held = answers(store, store.examples.X), store.examples.X
        store.undo()
        assert_holds(store, first)
        # A column of zeros changes no distance.
        assert_rounded(answers(store, store.examples.X), alone, 2e5, 1.0)
        with Store(path) as other:
            np.testing.assert_array_equal(answers(other, held), answers(store, held))
        store.redo()
        assert_holds(store, first | new)
        assert_same(store, refit(store), held)
        assert after.shape == answers(store, held).shape
        store.undo()
        store.undo()
        assert len(store) == 0
        store.redo()
        assert_holds(store, first)
        assert_same(store, refit(store), held)
        assert store.verify().ok
        assert past(store, 0).estimator is None
        assert past(store, 1).estimator.n_features_in_ == store.n_features_in_
        assert len(past(store, 2).examples) == len(first) + 1


def test_what_undo_brings_back_has_its_level(tmp_path):
    path, first = tmp_path / "m.km", first_examples(np.random.default_rng(1), "gp")
    back, other = {"z": (["Zanzibar", "", "", ""], "x")}, {"z": (["Dream", "1", "true", ""], "x")}
    new = {"n": (["Palmer", "2", "true", "2024-01-01"], "y")}
    with made(path):
        pass
    teach(path, table(tmp_path / "t.csv", first | back), origin="t")
    teach(path, table(tmp_path / "t.csv", other), origin="t")
    teach(path, table(tmp_path / "t.csv", new), origin="t")
    with knowmore.open(path) as store:
        assert "island=Zanzibar" not in store.table.features
        then = past(store, 1)
        assert "island=Zanzibar" in then.estimator.feature_names_in_
        with Store(fresh_model(store, first | back, tmp_path)) as fresh:
            np.testing.assert_array_equal(then.examples.X, fresh.examples.X)
            X = fresh.examples.X
            assert_rounded(answers(then.estimator, X), answers(fresh, X), 2e5, 1.0)
        for held in (first | other, first | back):
            store.undo()
            assert_holds(store, held)
            assert_same(store, refit(store), store.examples.X)
        assert "island=Zanzibar" in store.table.features
        for held in (first | other, first | other | new):
            store.redo()
            assert_holds(store, held)
            assert_same(store, refit(store), store.examples.X)
        assert store.verify().ok


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_put_aside_comes_back_with_its_level(kind, tmp_path):
    path, first = tmp_path / "m.km", first_examples(np.random.default_rng(1), kind)
    make(path, kind)
    y = first[next(iter(first))][1]
    teach(path, table(tmp_path / "t.csv", first | {"z": (["Zanzibar", "", "", ""], y)}))
    with knowmore.open(path) as store:
        store.refuse("z")
        store.forget(next(iter(first)))
        assert "island=Zanzibar" not in store.table.features
        held = {one: first[one] for one in store.ids_.tolist()}
        store.relabel("z", float(y) if "regression" in kind else y)
        held |= {"z": (["Zanzibar", "", "", ""], y)}
        assert_holds(store, held)
        assert store.verify().ok
        with Store(fresh_model(store, held, tmp_path)) as fresh:
            assert fresh.table.columns == store.table.columns
            assert_same(store, fresh, store.examples.X)
        store.undo()
        assert "z" not in store.ids_
        assert store.verify().ok


def test_what_was_put_aside_stays_when_all_others_are_forgotten(tmp_path):
    path, first = tmp_path / "m.km", first_examples(np.random.default_rng(1), "gp")
    both = {"z": (["Zanzibar", "", "", ""], "x"), "u": (["Ushuaia", "2", "", ""], "x")}
    teach(path, table(tmp_path / "t.csv", first | both))
    with knowmore.open(path) as store:
        store.refuse(["z", "u"])
        store.forget(list(first))
        assert (len(store), store.verify().ok) == (0, True)
        assert store.table.columns[0].levels == ("Ushuaia", "Zanzibar")
        assert store.aside_features().shape == (2, len(store.table.features))
        for level in LEVELS[:3]:
            assert level.encode() not in path.read_bytes()
        with pytest.raises(InvalidInput, match=r"are of another type. Give others of that"):
            store.relabel("z", 1)
        store.relabel("z", "y")
        assert_holds(store, {"z": (both["z"][0], "y")})
        store.relabel("u", "x")
        assert_holds(store, {"z": (both["z"][0], "y"), "u": (both["u"][0], "x")})
        assert_same(store, refit(store), store.examples.X)
        assert store.verify().ok
        store.forget(["z", "u"])
        assert (store.table, store.verify().ok) == (None, True)


def test_numbers_meet_their_first_blank(tmp_path):
    path, source = tmp_path / "m.km", tmp_path / "t.csv"
    lines = ["a,b,label", "1,2,x", "3,4,y", "2,2,x", "4,4,y"]
    source.write_text("\n".join(lines) + "\n")
    teach(path, source)
    with knowmore.open(path) as store:
        assert store.table is None
        before = store.records()
        source.write_text("\n".join([*lines, "5,,y"]) + "\n")
        found = teach(path, source)
        assert (found.added, found.skipped) == (1, 4)
        store.refresh()
        assert store.table.features == ("a", "b", "b is blank")
        assert [one.content for one in store.records()][:4] == [one.content for one in before]
        assert store.examples.X.tolist()[-1] == [5.0, 3.0, 1.0]
        store.undo()
        assert_same(store, refit(store), store.examples.X)
        store.redo()
        store.forget([store.ids_.tolist()[-1]])
        assert store.table.features == ("a", "b")
        assert store.verify().ok
    assert teach(path, source).forgotten_before == 1


def test_declared_classes_stay_when_vectors_are_made_anew(tmp_path):
    path = tmp_path / "m.km"
    X = pd.DataFrame({"u": [1.0, 3.0, 5.0], "v": [2.0, 4.0, 1.0]}, ["a", "b", "c"])
    with knowmore.open(path, knowmore.GPClassifier(RBF(), noise=0.1)) as store:
        store.partial_fit(X, ["x", "y", "x"], classes=["m", "x", "y"])
    source = tmp_path / "t.csv"
    source.write_text("id,u,v,label\nd,5,,y\n")
    teach(path, source)
    with knowmore.open(path) as store:
        assert store.classes_.tolist() == ["m", "x", "y"]
        store.undo()
        store.redo()
        store.forget("d")
        assert store.classes_.tolist() == ["m", "x", "y"]
        assert store.verify().ok
    # Of another model, whose encoding becomes another one to merge it, too.
    other = tmp_path / "o.km"
    with knowmore.open(other, knowmore.GPClassifier(RBF(), noise=0.1)) as store:
        X = pd.DataFrame({"u": [1.0], "v": [3.0]}, ["k"])
        store.add(X, ["x"])
        source.write_text("id,u,v,label\ne,,,y\n")
        teach(other, source)
        store.refresh()
        store.forget("k")
    source.write_text("id,u,v,label\nf,5,,y\n")
    teach(path, source)
    with Store(other) as store:
        store.merge(path)
        assert store.classes_.tolist() == ["m", "x", "y"]
        assert store.verify().ok


def test_numbers_of_python_meet_their_first_blank(tmp_path):
    path, source = tmp_path / "m.km", tmp_path / "t.csv"
    with knowmore.open(path, knowmore.GPClassifier()) as store:
        store.add([[1.0, 2.0], [3.0, 4.0]], ["x", "y"], ["a", "b"], columns=["u", "v"])
        source.write_text("id,u,v,label\nc,5,,y\n")
        assert teach(path, source).added == 1
        store.refresh()
        assert store.table.features == ("u", "v", "v is blank")
        assert store.verify().ok
    unnamed_path = tmp_path / "n.km"
    with knowmore.open(unnamed_path, knowmore.GPClassifier()) as store:
        store.add([[1.0, 2.0], [3.0, 4.0]], ["x", "y"], ["a", "b"])
        words = "has learnt numbers, and .* holds a table by the names of its columns"
        with pytest.raises(InvalidInput, match=words):
            teach(unnamed_path, source)


@pytest.mark.parametrize("kind", KINDS)
def test_a_contributor_who_gave_other_cells_is_forgotten(kind, tmp_path):
    rng, path = np.random.default_rng(4), tmp_path / "m.km"
    make(path, kind)
    held = first_examples(rng, kind)
    teach(path, table(tmp_path / "t.csv", held), contributor="ann")
    one = list(held)[5]
    other = held | {one: (["Zanzibar", "987.125", "true", ""], held[one][1])}
    teach(path, table(tmp_path / "t.csv", other), contributor="ben")
    with knowmore.open(path) as store:
        assert "island=Zanzibar" in store.table.features
        found = store.forget(contributor="ben")
        assert (found.count, found.changed) == (0, 1)
        assert_holds(store, held)
        assert store.verify().ok
        with Store(fresh_model(store, held, tmp_path)) as fresh:
            assert fresh.table.columns == store.table.columns
            assert_same(store, fresh, store.examples.X)
    raw = path.read_bytes()
    for text in (b"Zanzibar", b"987.125", np.float64(987.125).tobytes()):
        assert text not in raw, text


def test_another_process_follows_an_encoding(tmp_path):
    for kind in KINDS:
        path, rng = tmp_path / f"{kind}.km", np.random.default_rng(2)
        make(path, kind)
        first = first_examples(rng, kind)
        teach(path, table(tmp_path / "t.csv", first))
        with Store(path) as reader, Store(path) as writer:
            answers(reader, reader.examples.X)
            # The same width, with another fill.
            some = list(first)[2:5]
            writer.forget(some)
            reader.refresh()
            np.testing.assert_array_equal(reader.examples.X, writer.examples.X)
            np.testing.assert_array_equal(
                answers(reader, reader.examples.X), answers(writer, writer.examples.X)
            )


def test_another_process_teaches_a_level_before_an_edit(tmp_path):
    path, held = tmp_path / "m.km", first_examples(np.random.default_rng(0), "gp")
    teach(path, table(tmp_path / "t.csv", held))
    edits = [
        lambda store, k: add_cells(store, [(f"new{k}", None, True, None)], ["x"]),
        lambda store, k: add_cells(store, [("Dream", None, True, None)], ["x"]),
        lambda store, k: replace_cells(store, next(iter(held)), (f"new{k}", 1.0, True, None), None),
    ]
    for k, edit in enumerate(edits):
        with Store(path) as store:
            new = {f"n{k}": ([f"other{k}", "", "", ""], "y")}
            teach(path, table(tmp_path / "n.csv", new), origin="n")
            edit(store, k)
            assert f"island=other{k}" in store.table.features
            assert store.table.covers(store.cells())
            assert store.verify().ok


@pytest.mark.parametrize("first", [True, False])
def test_another_process_teaches_while_a_table_is_read(first, tmp_path):
    path, rng = tmp_path / "m.km", np.random.default_rng(0)
    held, theirs = first_examples(rng, "gp"), {"n": (["Zanzibar", "", "", ""], "y")}
    mine = new_examples(rng, "gp", 6, 5) | {"m": (["Palmer", "", "true", ""], "x")}
    make(path, "gp")
    if first:
        teach(path, table(tmp_path / "t.csv", held))
    else:
        theirs |= held
    other = table(tmp_path / "n.csv", theirs)
    with Store(path) as store:
        name = str(table(tmp_path / "m.csv", mine))
        learn_source(store, slow_source(store, name, other), LearnOptions(path, name))
        assert_holds(store, (held if first else {}) | theirs | mine)
        assert store.verify().ok


def slow_source(store, name, other):
    """The cells of a table; before its rows come, another process teaches another table."""
    source = open_source(name, wanted(store))
    source = source if source.table is not None else source.cells()

    def blocks():
        teach(store.path, other, origin="n")
        yield from source.blocks()

    return replace(source, blocks=blocks)


def test_another_process_teaches_other_columns_while_a_table_is_read(tmp_path):
    path, other = tmp_path / "m.km", tmp_path / "other.csv"
    make(path, "gp")
    other.write_text("colour,label\nred,x\nblue,y\n")
    name = str(table(tmp_path / "t.csv", first_examples(np.random.default_rng(0), "gp")))
    with Store(path) as store:
        source = slow_source(store, name, other)
        with pytest.raises(InvalidInput, match=r"other columns while .*t.csv' was read. Learn it"):
            learn_source(store, source, LearnOptions(path, name))
        assert store.table.features == ("colour=blue", "colour=red")
        assert (len(store), store.verify().ok) == (2, True)


def test_vectors_without_cells_are_refused(tmp_path):
    path = tmp_path / "m.km"
    teach(path, table(tmp_path / "t.csv", first_examples(np.random.default_rng(0), "gp")))
    with knowmore.open(path) as store:
        before = path.read_bytes()
        with pytest.raises(
            InvalidInput, match="This model has learnt a table, and keeps the cells"
        ):
            store.add(store.examples.X[:1], ["x"], ["new"])
        cells = b'["Biscoe",9.0,true,null]'
        with pytest.raises(InvalidInput, match="are not those of its cells"):
            store.add(store.examples.X[:1], ["x"], ["new"], thumbnails=[cells])
        assert path.read_bytes() == before


def test_models_of_other_columns_do_not_merge(tmp_path):
    one, other, source = tmp_path / "a.km", tmp_path / "b.km", tmp_path / "t.csv"
    source.write_text("id,a,label\n1,red,x\n2,blue,y\n")
    teach(one, source)
    source.write_text("id,a,label\n3,1,x\n4,,y\n")
    teach(other, source)
    words = "same columns, with the same types"
    with Store(one) as mine, Store(other) as theirs, pytest.raises(InvalidInput, match=words):
        mine.merge(theirs)


def test_the_note_is_plain_json(tmp_path):
    path = tmp_path / "m.km"
    with made(path) as store:
        pass
    teach(path, table(tmp_path / "t.csv", first_examples(np.random.default_rng(0), "gp")))
    with knowmore.open(path) as store:
        note = json.loads(json.dumps(store.notes["table"]))
        assert Encoding.of(note) == store.table
        assert [one["type"] for one in note["columns"]] == ["category", "number", "truth", "date"]
